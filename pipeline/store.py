"""The raw episode store: one folder an episode, committed whole or not at all, and read back verified.

Layout of a run folder::

    run.json                             what the run is (run seed, engine); guards against mixing runs
    episodes/<task>/<episode id>/        episode.json, frames.parquet, later <look>.<camera>.mp4
    quarantine/                          episode folders that did not read back as committed
    shards.jsonl                         what became of each shard
    quarantine/seeds/<episode id>.json   attempts that hang the simulator, and are not tried again
"""

import errno
import fcntl
import hashlib
import json
import os
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from pipeline.errors import DamagedEpisode, DiskFull, UserError
from pipeline.schema import FEATURES, Feature, body_feature

SCHEMA = 1

_REMEDY = "`demomill record` again puts it aside and replaces it"

HUNG = "hung"
"""Reason of an attempt that failed because the simulator hung."""

LOCK_PATIENCE_S = 5.0
"""How long a run's lock is waited for: the workers of a run that was just killed need a moment to die."""


@dataclass(frozen=True)
class Episode:
    """One attempt at a task.

    Attributes:
        id: ``<task>-s<run seed>-<attempt>``, unique over runs with different seeds.
        seed: seed of every draw, a pure function of (run seed, task, attempt).
        draws: every value drawn from the seed, by axis.
        outcome: ``success`` or ``failure``.
        reason: named failure, or None.
        failed_phase: phase in which it failed, or None.
        phases: names behind the integer ``phase`` column.
        phase_spans: ``{"phase", "start", "end"}`` in rows, end exclusive, in order.
        bodies: names behind the ``bodies`` column.
        contact: extremes over the episode: ``max_penetration_m`` of held and fixed part, ``max_stray_penetration_m`` of
            the held part and anything else rigid after the grasp, ``max_pad_penetration_m``, ``max_fixture_force_n``,
            ``max_pad_force_n``, ``max_wrist_force_n``, ``max_held_speed_m_s``, ``max_contacts``; and
            ``home_distance_rad`` at its start, dense ``score``.
        frames: column name to array, as in :mod:`pipeline.schema`, plus ``bodies``.
        versions: code and engine versions.
        engine: engine settings (device, substeps, ...).
        env_index: which parallel env recorded it (not part of the content).
    """

    id: str
    task: str
    run_seed: int
    attempt: int
    seed: int
    draws: Mapping[str, Any]
    outcome: str
    reason: str | None
    failed_phase: str | None
    length: int
    phases: tuple[str, ...]
    phase_spans: tuple[Mapping[str, Any], ...]
    bodies: tuple[str, ...]
    contact: Mapping[str, float]
    frames: Mapping[str, np.ndarray] = field(repr=False)
    versions: Mapping[str, str] = field(default_factory=dict)
    engine: Mapping[str, Any] = field(default_factory=dict)
    env_index: int = 0

    @property
    def features(self) -> tuple[Feature, ...]:
        """Columns of this episode, in storage order."""
        return (*FEATURES, body_feature(self.bodies))

    def content_hash(self) -> str:
        """Sha256 over rows, draws and outcome; not over time stamps, paths, versions or the env index."""
        digest = hashlib.sha256()
        identity = {
            "task": self.task,
            "seed": self.seed,
            "draws": self.draws,
            "outcome": self.outcome,
            "reason": self.reason,
            "phases": self.phases,
        }
        digest.update(canonical_json(identity).encode())
        for feature in self.features:
            digest.update(f"{feature.key}:{feature.dtype}:{feature.shape}".encode())
            digest.update(feature.check(self.frames[feature.key], self.length).tobytes())
        return digest.hexdigest()


def canonical_json(value: object) -> str:
    """JSON with sorted keys and shortest round-trip floats: equal values give equal text."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def first_difference(there: Mapping[str, Any], here: Mapping[str, Any]) -> str:
    """The first entry in which two recipes differ, in words; empty if there is none."""
    for key in sorted({*there, *here}):
        if there.get(key) != here.get(key):
            return f"{key} is {there.get(key)!r} there, {here.get(key)!r} here"
    return ""


def episode_id(task: str, run_seed: int, attempt: int) -> str:
    """Name of an attempt; sorts in attempt order."""
    return f"{task}-s{run_seed}-{attempt:05d}"


class Run:
    """A run folder.

    Args:
        root: the folder.

    Raises:
        UserError: if ``root`` holds no run.
    """

    def __init__(self, root: Path | str) -> None:
        self.root = Path(root)
        try:
            self.recipe: dict[str, Any] = json.loads((self.root / "run.json").read_text())["recipe"]
        except FileNotFoundError:
            raise UserError(
                f"{self.root}: no run here (run.json is missing); make one with `demomill record`"
            ) from None
        except (json.JSONDecodeError, KeyError, TypeError) as error:
            raise UserError(f"{self.root / 'run.json'}: not readable as a run description ({error})") from None

    @classmethod
    def open(cls, root: Path | str, recipe: Mapping[str, Any]) -> "Run":
        """Create the run folder, or open it if it holds the same recipe.

        Raises:
            UserError: if the folder cannot be written, holds other files, or holds another recipe.
        """
        root = Path(root)
        wanted = json.loads(canonical_json(recipe))
        if (root / "run.json").exists():
            run = cls(root)
            if difference := first_difference(run.recipe, wanted):
                raise UserError(
                    f"{root}: holds another run ({difference}); choose another --out, or repeat that run's options"
                )
            _require_writable(root)
            return run
        if root.exists() and (not root.is_dir() or any(root.iterdir())):
            raise UserError(f"{root}: exists and is not a run folder; choose a new or empty folder for --out")
        with explain_os_errors(root):
            root.mkdir(parents=True, exist_ok=True)
            _require_writable(root)
            write_atomically(root / "run.json", json.dumps({"schema": SCHEMA, "recipe": wanted}, indent=2) + "\n")
        return cls(root)

    @contextmanager
    def lock(self) -> Iterator[int]:
        """Hold the run for writing; a second writer is refused, unless the first ends within moments.

        Yields:
            File descriptor of the lock: a worker that inherits it keeps the run locked while it lives.

        Raises:
            UserError: if another process holds it.
        """
        with (self.root / ".lock").open("a") as handle:
            patience = time.monotonic() + LOCK_PATIENCE_S
            while not _acquired(handle.fileno()):
                if time.monotonic() > patience:
                    raise UserError(f"{self.root}: another demomill process is writing here; wait for it")
                time.sleep(0.05)
            yield handle.fileno()

    def folder(self, task: str, episode: str) -> Path:
        """Folder of a committed episode."""
        return self.root / "episodes" / task / episode

    def folders(self, task: str | None = None) -> list[Path]:
        """Folders of all committed episodes, in order of task and attempt."""
        return sorted(path for path in self.root.glob(f"episodes/{task or '*'}/*") if path.is_dir())

    def commit(self, episode: Episode) -> Path:
        """Write an episode: temporary folder, fsync, rename.

        Raises:
            UserError: if the disk is full or the folder cannot be written; nothing half-written stays visible.
        """
        final = self.folder(episode.task, episode.id)
        with self._appears_whole(final) as staging:
            _write_frames(staging / "frames.parquet", episode)
            (staging / "episode.json").write_text(json.dumps(_to_json(episode), indent=2, allow_nan=False) + "\n")
        return final

    def adopt(self, folder: Path) -> Path:
        """Copy an episode of another run, with its videos, as :meth:`commit` writes one.

        Raises:
            DamagedEpisode: if the copy does not read back as it was committed.
            UserError: if the disk is full or the folder cannot be written.
        """
        final = self.folder(folder.parent.name, folder.name)
        with self._appears_whole(final) as staging:
            for path in folder.iterdir():
                if path.is_file() and not path.is_symlink() and not path.name.startswith("."):
                    shutil.copyfile(path, staging / path.name)
            read_episode(staging)
        return final

    @contextmanager
    def _appears_whole(self, final: Path) -> Iterator[Path]:
        """A temporary folder to write an episode to; renamed to ``final`` at the end, removed on any error."""
        with explain_os_errors(self.root):
            final.parent.mkdir(parents=True, exist_ok=True)
            staging = Path(tempfile.mkdtemp(prefix=f".staging-{final.name}-", dir=self.root))
            try:
                yield staging
                for path in (*staging.iterdir(), staging):
                    fsync(path)
                staging.chmod(0o755)
                if not final.exists():
                    staging.rename(final)
                fsync(final.parent)
            finally:
                shutil.rmtree(staging, ignore_errors=True)

    def clear_staging(self, episode: str) -> None:
        """Remove what a killed writer of an episode left behind; call it while holding the lock of its attempt."""
        for path in self.root.glob(f".staging-{episode}-*"):
            shutil.rmtree(path, ignore_errors=True)

    def quarantine(self, folder: Path) -> Path:
        """Move a damaged episode folder aside, under a name that is free; returns the new place."""
        target = self.root / "quarantine" / folder.name
        target.parent.mkdir(exist_ok=True)
        n = 0
        while target.exists():
            n += 1
            target = target.with_name(f"{folder.name}.{n}")
        return folder.rename(target)

    def quarantine_seed(self, task: str, run_seed: int, attempt: int, why: str) -> Path:
        """Note that an attempt hangs the simulator, so that it is not tried again; returns the note."""
        name = episode_id(task, run_seed, attempt)
        note = {"id": name, "task": task, "run_seed": run_seed, "attempt": attempt, "reason": HUNG, "evidence": why}
        path = self.root / "quarantine" / "seeds" / f"{name}.json"
        with explain_os_errors(self.root):
            path.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(path, json.dumps(note, indent=2) + "\n")
        return path

    def hung(self) -> dict[str, dict[str, Any]]:
        """Attempts that hang the simulator, by episode id: ``id, task, run_seed, attempt, reason, evidence``.

        Raises:
            UserError: if a note is not readable.
        """
        notes = {}
        for path in sorted(self.root.glob("quarantine/seeds/*.json")):
            try:
                note = dict(json.loads(path.read_text()))
                if episode_id(note["task"], note["run_seed"], note["attempt"]) != path.stem:
                    raise ValueError("it is of another attempt than its name says")
                notes[path.stem] = note
            except (OSError, ValueError, TypeError, KeyError) as error:
                raise UserError(f"{path}: not readable ({error}); delete it to try this attempt again") from None
        return notes

    def note_shard(self, report: Mapping[str, Any]) -> None:
        """Add what became of a shard to ``shards.jsonl``, on a line of its own, in one write."""
        with explain_os_errors(self.root), (self.root / "shards.jsonl").open("a") as lines:
            lines.write("\n" + canonical_json(report) + "\n")

    def shard_reports(self) -> list[dict[str, Any]]:
        """What became of the shards that ended, in that order; a line that a crash cut off is left out."""
        path, reports = self.root / "shards.jsonl", []
        for line in path.read_text().splitlines() if path.exists() else ():
            with suppress(ValueError):
                reports.append(dict(json.loads(line)))
        return reports


def _acquired(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def read_episode(folder: Path) -> Episode:
    """Read an episode back and verify its content hash.

    Raises:
        DamagedEpisode: if a file is missing, does not parse, or differs from what was committed.
    """
    meta, episode = read_meta(folder), None
    try:
        table = pq.read_table(folder / "frames.parquet", memory_map=False)
        features = (*FEATURES, body_feature(tuple(meta["bodies"])))
        frames = {f.key: _column(table, f) for f in features}
        episode = Episode(
            **{k: meta[k] for k in _META if k not in ("phases", "phase_spans", "bodies")},
            phases=tuple(meta["phases"]),
            phase_spans=tuple(meta["phase_spans"]),
            bodies=tuple(meta["bodies"]),
            frames=frames,
        )
        found = episode.content_hash()
    except MemoryError:  # Arrow's is an ArrowException, too
        raise
    except (OSError, pa.ArrowException, KeyError, TypeError, ValueError) as error:
        raise DamagedEpisode(f"{folder}: damaged episode ({error}); {_REMEDY}") from None
    if found != meta["content_hash"]:
        raise DamagedEpisode(f"{folder}: not what was committed, by its content hash; {_REMEDY}")
    return episode


def is_sound(folder: Path) -> bool:
    """Whether an episode is there and reads back as it was committed."""
    try:
        read_episode(folder)
    except DamagedEpisode:
        return False
    return True


def read_meta(folder: Path) -> dict[str, Any]:
    """Read ``episode.json`` alone.

    Raises:
        DamagedEpisode: if it is missing, does not parse, or lacks a field.
    """
    try:
        meta = json.loads((folder / "episode.json").read_text())
        missing = {*_META, "content_hash"} - set(meta)
    except (OSError, ValueError, TypeError) as error:
        raise DamagedEpisode(f"{folder}: damaged episode ({error}); {_REMEDY}") from None
    if missing:
        raise DamagedEpisode(f"{folder}: episode.json lacks {', '.join(sorted(missing))}; {_REMEDY}")
    return dict(meta)


_META = tuple(Episode.__dataclass_fields__.keys() - {"frames"})


def _to_json(episode: Episode) -> dict[str, Any]:
    meta = {name: getattr(episode, name) for name in Episode.__dataclass_fields__ if name != "frames"}
    return {"schema": SCHEMA, **meta, "content_hash": episode.content_hash(), "features": [asdict(f) for f in FEATURES]}


def _write_frames(path: Path, episode: Episode) -> None:
    columns, fields = [], []
    for feature in episode.features:
        values = feature.check(episode.frames[feature.key], episode.length)
        flat = pa.array(values.reshape(-1))
        columns.append(pa.FixedSizeListArray.from_arrays(flat, len(feature.names)) if feature.names else flat)
        fields.append(pa.field(feature.key, columns[-1].type, nullable=False))
    pq.write_table(pa.Table.from_arrays(columns, schema=pa.schema(fields)), path, compression="zstd")


def _column(table: pa.Table, feature: Feature) -> np.ndarray:
    column = table[feature.key].combine_chunks()
    flat = column.flatten() if feature.names else column
    return feature.check(flat.to_numpy(zero_copy_only=False).reshape(table.num_rows, *feature.shape), table.num_rows)


@contextmanager
def appears_whole(path: Path) -> Iterator[Path]:
    """A temporary neighbour of ``path`` to write to; renamed to it at the end, removed on any error."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        yield temporary
        fsync(temporary)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def write_atomically(path: Path, text: str) -> None:
    """Replace a small text file in one step."""
    with appears_whole(path) as temporary:
        temporary.write_text(text)


@contextmanager
def explain_os_errors(where: Path) -> Iterator[None]:
    """Turn a full disk or a refused write into a :class:`UserError` that names the place."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise DiskFull(f"{where}: no space left; free some and run the same command again to go on") from None
        if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOENT, errno.ENOTDIR, errno.EEXIST):
            raise UserError(f"{where}: cannot be written ({error.strerror}); choose another folder") from None
        raise


def _require_writable(root: Path) -> None:
    if not os.access(root, os.W_OK | os.X_OK):
        raise UserError(f"{root}: cannot be written (permission denied); choose another folder")


def fsync(path: Path) -> None:
    """Flush a file or folder to the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
