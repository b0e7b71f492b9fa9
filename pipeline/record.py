"""Record attempts into a run folder by worker processes: one simulator each, killed and resumed at any moment."""

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from experts.contract import Handicap
from pipeline.engine import Engine
from pipeline.errors import DamagedEpisode, UserError
from pipeline.faults import Fault
from pipeline.sim.worker import Shard
from pipeline.store import Run, episode_id, read_episode, read_meta
from pipeline.tasks import CATALOGUE, get_task
from randomization.draws import COMPETENCE

MAX_SEED = 2**63 - 1


def tasks_with_expert() -> tuple[str, ...]:
    """Ids of the tasks that can be recorded, in catalogue order."""
    return tuple(task.id for task in CATALOGUE.values() if task.family in COMPETENCE)


@dataclass(frozen=True)
class Request:
    """What to record.

    Attributes:
        root: run folder; made if it is missing.
        tasks: task ids.
        episodes: attempts of each task.
        run_seed: with task and attempt it fixes every draw.
        num_envs: parallel envs of a worker; does not change the episodes.
        workers: worker processes at a time, each with one task.
        fault, handicap: of negative controls.
    """

    root: Path
    tasks: tuple[str, ...]
    episodes: int
    run_seed: int
    engine: Engine
    num_envs: int = 16
    workers: int = 1
    fault: Fault = Fault()
    handicap: Handicap = Handicap()

    def __post_init__(self) -> None:
        for task in self.tasks:
            if get_task(task).family not in COMPETENCE:
                raise UserError(f"task {task!r} has no expert yet; `demomill tasks` shows which have one")
        for name, value in (("--episodes", self.episodes), ("--num-envs", self.num_envs), ("--workers", self.workers)):
            if value < 1:
                raise UserError(f"{name} is {value}; it must be at least 1")
        if not 0 <= self.run_seed <= MAX_SEED:
            raise UserError(f"--seed is {self.run_seed}; it must be between 0 and {MAX_SEED}")
        if not self.tasks:
            raise UserError("no task given; `demomill tasks` lists them")

    @property
    def recipe(self) -> dict[str, Any]:
        """What every episode of a run folder has in common."""
        return {
            "run_seed": self.run_seed,
            "engine": self.engine.to_dict(),
            "fault": asdict(self.fault),
            "handicap": {**asdict(self.handicap), "seat_error_m": list(self.handicap.seat_error_m)},
        }


@dataclass(frozen=True)
class Progress:
    """One event of a recording: ``kind`` is ``ready``, ``episode`` or ``note``."""

    kind: str
    task: str
    text: str = ""
    outcome: str = ""


Listener = Callable[[Progress], None]


@dataclass(frozen=True)
class Recorded:
    """Every episode that the request asked for.

    Attributes:
        episodes: their ``episode.json``, in order of task and attempt.
        new: how many were recorded by this call.
        seconds_per_episode: of each task of which some were: core seconds of the worker, without its start.
    """

    episodes: tuple[dict[str, Any], ...]
    new: int
    seconds_per_episode: Mapping[str, float]

    def to_dict(self) -> dict[str, Any]:
        """Summary as printed by ``demomill record --json``."""
        wins = sum(meta["outcome"] == "success" for meta in self.episodes)
        keys = ("id", "task", "seed", "env_index", "outcome", "reason", "failed_phase", "length", "content_hash")
        return {
            "attempted": len(self.episodes),
            "succeeded": wins,
            "success_rate": wins / len(self.episodes),
            "by_reason": dict(Counter(meta["reason"] for meta in self.episodes if meta["reason"])),
            "new": self.new,
            "episodes": [{key: meta[key] for key in keys} for meta in self.episodes],
        }


def record(request: Request, listen: Listener = lambda _: None) -> Recorded:
    """Record what is missing of a request and return all of it.

    Args:
        request: what to record.
        listen: called from worker threads as episodes are committed.

    Raises:
        UserError: if the folder cannot be used, or a worker stopped early; committed episodes stay.
    """
    run = Run.open(request.root, request.recipe)
    with run.lock() as lock:
        run.clear_staging()
        shards = [shard for task in request.tasks if (shard := _missing(run, request, task, listen)).attempts]
        threads = max(1, request.engine.threads // max(1, min(request.workers, len(shards))))
        shards = [replace(shard, engine=replace(shard.engine, threads=threads)) for shard in shards]
        with ThreadPoolExecutor(request.workers) as pool:
            futures = [pool.submit(run_shard, shard, lock, listen) for shard in shards]
            try:
                seconds = [future.result() for future in futures]
            finally:
                pool.shutdown(wait=False, cancel_futures=True)
    metas = [
        read_meta(run.folder(task, episode_id(task, request.run_seed, attempt)))
        for task in request.tasks
        for attempt in range(request.episodes)
    ]
    each = {shard.task: spent / len(shard.attempts) for shard, spent in zip(shards, seconds, strict=True)}
    return Recorded(tuple(metas), sum(len(shard.attempts) for shard in shards), each)


def _missing(run: Run, request: Request, task: str, listen: Listener) -> Shard:
    """The attempts of a task that are not committed; damaged ones are put aside and recorded again."""
    attempts = []
    for attempt in range(request.episodes):
        folder = run.folder(task, episode_id(task, request.run_seed, attempt))
        if folder.exists():
            try:
                read_episode(folder)
                continue
            except DamagedEpisode:
                moved = run.quarantine(folder)
                listen(Progress("note", task, f"{folder.name}: damaged, moved to {moved}; recording it again"))
        attempts.append(attempt)
    return Shard(
        root=str(run.root),
        task=task,
        run_seed=request.run_seed,
        attempts=tuple(attempts),
        num_envs=min(request.num_envs, max(1, len(attempts))),
        engine=request.engine,
        fault=request.fault,
        handicap=request.handicap,
    )


def run_shard(shard: Shard, lock: int, listen: Listener) -> float:
    """Run one worker to its end; returns its core seconds, without its start.

    Args:
        shard: what it records.
        lock: descriptor of the run's lock, inherited by the worker.
        listen: told of every event.

    Raises:
        UserError: if the worker could not finish.
    """
    log = Path(shard.root) / "logs" / f"{shard.task}.log"
    log.parent.mkdir(exist_ok=True)
    committed, core_seconds = 0, 0.0
    with _worker(shard, lock, log) as (process, events):
        for line in events:
            event = json.loads(line)
            if event["event"] == "error":
                raise UserError(event["message"])
            if event["event"] == "ready":
                listen(Progress("ready", shard.task))
            if event["event"] == "episode":
                committed += 1
                listen(Progress("episode", shard.task, event["reason"] or "", event["outcome"]))
            if event["event"] == "done":
                core_seconds = event["core_seconds"]
        code = process.wait()
    if code:
        raise UserError(
            f"{shard.task}: the worker stopped with exit code {code} after {committed} of {len(shard.attempts)} "
            f"episodes, which are kept; see {log}, then run the same command again to go on"
        )
    return core_seconds


@contextmanager
def _worker(shard: Shard, lock: int, log: Path) -> Iterator[tuple[subprocess.Popen[bytes], Iterator[str]]]:
    read, write = os.pipe()
    with log.open("ab") as sink, os.fdopen(read) as events:
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "pipeline.sim.worker", shard.to_json(), str(write)],
            stdin=subprocess.DEVNULL,
            stdout=sink,
            stderr=sink,
            pass_fds=(write, lock),
        )
        os.close(write)
        try:
            yield process, events
        finally:
            if process.poll() is None:
                process.kill()
            process.wait()


def success_by_task(episodes: Sequence[dict[str, Any]]) -> dict[str, Counter[str]]:
    """Count outcomes by task: ``success`` or the failure's reason."""
    counts: dict[str, Counter[str]] = {}
    for meta in episodes:
        counts.setdefault(meta["task"], Counter())[meta["reason"] or "success"] += 1
    return counts
