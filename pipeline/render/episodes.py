"""Render recorded episodes to videos, by worker processes that can be killed and resumed at any moment."""

import difflib
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipeline.errors import DamagedEpisode, UserError
from pipeline.render import sidecar
from pipeline.render.cameras import CAMERAS, DEFAULT_CAMERAS, require_cameras, size_of
from pipeline.render.looks import look_names, look_of
from pipeline.render.renderer import choose_renderer
from pipeline.render.worker import Job
from pipeline.store import Run, read_meta

STOP_S = 10.0
"""How long a worker may take to end after its last episode."""


@dataclass(frozen=True)
class Progress:
    """One event: ``kind`` is ``rendered``, ``skipped``, ``failed`` or ``note``; ``text`` says why or what."""

    kind: str
    episode: str = ""
    text: str = ""


Listener = Callable[[Progress], None]


def _silent(event: Progress) -> None:
    """Listen to nothing."""


@dataclass(frozen=True)
class RenderSummary:
    """What became of every episode.

    Attributes:
        rendered, skipped: episode ids; skipped ones had whole videos already.
        failed: message by episode id.
        renderer: ``mujoco`` or ``newton``.
        note: why it is not the preferred one, or None.
        seconds: wall time.
    """

    rendered: tuple[str, ...]
    skipped: tuple[str, ...]
    failed: dict[str, str]
    renderer: str
    note: str | None
    seconds: float

    def to_dict(self) -> dict[str, Any]:
        """Summary for machines."""
        return {
            "rendered": len(self.rendered),
            "skipped": len(self.skipped),
            "failed": dict(self.failed),
            "renderer": self.renderer,
            "note": self.note,
            "seconds": round(self.seconds, 3),
        }


def render_run(
    root: Path | str,
    episode_ids: Sequence[str] | None = None,
    *,
    look: str = "plain",
    looks_per_episode: int = 1,
    cameras: Sequence[str] = DEFAULT_CAMERAS,
    size: str = "320x180",
    renderer: str = "auto",
    workers: int | None = None,
    progress: Listener = _silent,
) -> RenderSummary:
    """Render episodes to ``<look>.<camera>.mp4`` in their folders; frame t shows the state of row t.

    Videos that are whole and were made from the same rows with the same settings are kept. A damaged episode, or
    one whose video does not show it, is reported and the others are still rendered.

    Args:
        root: run folder.
        episode_ids: which episodes; None means all.
        look, looks_per_episode: see :func:`pipeline.render.looks.look_names`.
        size: of the pictures, a key of :data:`pipeline.render.cameras.SIZES`; videos of another size are made anew.
        renderer: ``mujoco``, ``newton``, or ``auto``, which takes the second where the first lacks a library.
        workers: processes; None means one a CPU. They do not change the videos.
        progress: called from worker threads.

    Raises:
        UserError: for an unknown episode, look, camera, size or renderer, a missing OpenGL library, or a disk that is
            full or cannot be written; videos that are done stay.
    """
    start = time.perf_counter()
    run, looks, size_px = Run(root), look_names(look, looks_per_episode), size_of(size)
    _check(cameras, workers)
    folders = _folders(run, episode_ids)
    done: dict[str, list[str]] = {"rendered": [], "skipped": []}
    failed: dict[str, str] = {}

    def tell(kind: str, episode: str, text: str = "") -> None:
        if kind == "failed":
            failed[episode] = text
        else:
            done[kind].append(episode)
        progress(Progress(kind, episode, text))

    with run.lock() as lock:
        choice = choose_renderer(renderer)
        if choice.note:
            progress(Progress("note", text=choice.note))
        job = Job(choice, looks, tuple(cameras), size_px)
        todo: list[Path] = []
        for folder in folders:
            try:
                stale = _stale(folder, job)
            except DamagedEpisode as error:
                tell("failed", folder.name, str(error))
                continue
            if stale:
                todo.append(folder)
            else:
                tell("skipped", folder.name)
        _render(todo, job, workers or os.cpu_count() or 1, lock, tell)
    rendered, skipped = (tuple(sorted(done[kind])) for kind in ("rendered", "skipped"))
    seconds = time.perf_counter() - start
    return RenderSummary(rendered, skipped, failed, choice.name, choice.note, seconds)


def _stale(folder: Path, job: Job) -> bool:
    meta = read_meta(folder)
    settings = (sidecar.settings(job.choice.name, look_of(look, meta["seed"]), job.size) for look in job.looks)
    return any(sidecar.missing(folder, meta["content_hash"], made_with, job.cameras) for made_with in settings)


def _check(cameras: Sequence[str], workers: int | None) -> None:
    require_cameras(cameras)
    if not cameras:
        raise UserError(f"no camera given; there is: {', '.join(CAMERAS)}")
    if workers is not None and workers < 1:
        raise UserError(f"--workers is {workers}; it must be at least 1")


def _folders(run: Run, episode_ids: Sequence[str] | None) -> list[Path]:
    known = {folder.name: folder for folder in run.folders()}
    if episode_ids is None:
        return list(known.values())
    for episode in episode_ids:
        if episode not in known:
            near = difflib.get_close_matches(episode, known, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise UserError(f"{run.root}: no episode {episode!r} among its {len(known)}{hint}")
    return [known[episode] for episode in sorted(set(episode_ids))]


def _render(todo: Sequence[Path], job: Job, workers: int, lock: int, tell: Callable[..., None]) -> None:
    """Share the episodes among worker processes, each fed by a thread."""
    waiting, stop = iter(todo), threading.Event()
    count = min(workers, len(todo))

    def feed() -> None:
        with _Worker(job, lock, todo[0].parents[2] / "logs" / "render.log") as worker:
            for folder in waiting:
                if stop.is_set():
                    return
                reply = worker.render(folder)
                if reply["ok"]:
                    tell("rendered", folder.name)
                elif reply["fatal"]:
                    raise UserError(reply["message"])
                else:
                    tell("failed", folder.name, reply["message"])

    with ThreadPoolExecutor(max(1, count)) as pool:
        try:
            for future in as_completed([pool.submit(feed) for _ in range(count)]):
                future.result()
        finally:
            stop.set()


class _Worker:
    """Handle of one worker process; a crash costs the episode that it was rendering, two in a row end the run."""

    def __init__(self, job: Job, lock: int, log: Path) -> None:
        self._job, self._lock, self._log = job, lock, log
        self._crashes = 0
        log.parent.mkdir(exist_ok=True)

    def __enter__(self) -> "_Worker":
        self._start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._stop()

    def render(self, folder: Path) -> dict[str, Any]:
        """The worker's reply, as in :mod:`pipeline.render.worker`."""
        try:
            self._input.write(f"{folder}\n")
            self._input.flush()
            reply = self._replies.readline()
        except BrokenPipeError:
            reply = ""
        if reply:
            self._crashes = 0
            return dict(json.loads(reply))
        self._crashes += 1
        self._stop()
        message = f"{folder}: the rendering process stopped (exit code {self._process.returncode}); see {self._log}"
        if self._crashes == 1:
            self._start()
        return {"ok": False, "fatal": self._crashes > 1, "message": message}

    def _start(self) -> None:
        read, write = os.pipe()
        with self._log.open("ab") as sink:
            self._process = subprocess.Popen(
                [
                    sys.executable,
                    "-P",
                    "-m",
                    "pipeline.render.worker",
                    self._job.to_json(),
                    str(write),
                    str(os.getpid()),
                ],
                env=self._job.choice.environment(),
                stdin=subprocess.PIPE,
                stdout=sink,
                stderr=sink,
                text=True,
                pass_fds=(write, self._lock),
            )
        os.close(write)
        assert self._process.stdin is not None
        self._input, self._replies = self._process.stdin, os.fdopen(read)

    def _stop(self) -> None:
        with suppress(BrokenPipeError):
            self._input.close()
        self._replies.close()
        try:
            self._process.wait(timeout=STOP_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
