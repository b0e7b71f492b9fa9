"""Recorded episodes as quality control sees them: the low-dimensional columns and what is said about them."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from qc.errors import QcError

STATE, ACTION, EEF_POS, EEF_QUAT = "observation.state", "action", "observation.eef_pos", "observation.eef_quat"
COLUMNS: Mapping[str, int] = {STATE: 8, ACTION: 8, EEF_POS: 3, EEF_QUAT: 4}
"""Columns that are read, with the size of a row."""

ARM, GRIPPER = slice(0, 7), slice(7, 8)
"""Dimensions of state and action: seven joints, then the gripper (0 open, 1 closed)."""


@dataclass(frozen=True)
class Episode:
    """One attempt at a task.

    Attributes:
        outcome: ``success`` or ``failure``.
        reason: named failure; empty for a success.
        length: number of rows.
        content_hash: identity of what was recorded, as committed.
        frames: the columns of :data:`COLUMNS`, each (length, size) float32: joints in radians, positions in metres in
            the robot's base frame, quaternions xyzw.
        phase_spans: ``{"phase", "start", "end"}`` in rows, end exclusive.
    """

    id: str
    task: str
    outcome: str
    reason: str
    length: int
    content_hash: str
    frames: Mapping[str, np.ndarray] = field(repr=False)
    phase_spans: tuple[Mapping[str, Any], ...] = field(default=(), repr=False)

    @property
    def family(self) -> str:
        """Task without its size, e.g. ``peg_round``."""
        return self.task.rpartition("_")[0] or self.task

    @property
    def succeeded(self) -> bool:
        """Whether the task was accomplished."""
        return self.outcome == "success"

    def phase_at(self, row: int) -> str:
        """Phase to which a row belongs; empty if the recording does not say."""
        return next((str(s["phase"]) for s in self.phase_spans if s["start"] <= row < s["end"]), "")


@dataclass(frozen=True)
class Damaged:
    """An episode folder that cannot be read, and why."""

    id: str
    task: str
    why: str


@dataclass(frozen=True)
class EpisodeSet:
    """Every episode of a run, in order of id, and every folder that could not be read: none is left out."""

    episodes: tuple[Episode, ...]
    damaged: tuple[Damaged, ...] = ()

    def __len__(self) -> int:
        return len(self.episodes)


def read_run(root: Path | str) -> EpisodeSet:
    """Read the episodes of a run folder, ``episodes/<task>/<id>/{episode.json, frames.parquet}``.

    A folder that is incomplete, unreadable or at odds with its own description becomes a :class:`Damaged` entry.

    Raises:
        QcError: if ``root`` holds no run.
    """
    root = Path(root)
    if not (root / "run.json").is_file():
        raise QcError(f"{root}: no run here (run.json is missing); make one with `demomill record`")
    episodes, damaged = [], []
    for folder in sorted(path for path in root.glob("episodes/*/*") if path.is_dir()):
        try:
            episodes.append(_read_episode(folder))
        except KeyError as error:
            damaged.append(Damaged(folder.name, folder.parent.name, f"{error.args[0]} is missing"))
        except (OSError, pa.ArrowException, TypeError, ValueError) as error:
            damaged.append(Damaged(folder.name, folder.parent.name, " ".join(str(error).split())))
    return EpisodeSet(tuple(sorted(episodes, key=lambda e: e.id)), tuple(damaged))


def _read_episode(folder: Path) -> Episode:
    for name in ("episode.json", "frames.parquet"):
        if not (folder / name).is_file():
            raise ValueError(f"{name} is missing")
    meta = json.loads((folder / "episode.json").read_bytes())
    if not isinstance(meta, dict):
        raise TypeError("episode.json holds no object")
    if (meta["id"], meta["task"]) != (folder.name, folder.parent.name):
        raise ValueError(f"episode.json describes {meta['task']}/{meta['id']}")
    if meta["outcome"] not in ("success", "failure"):
        raise ValueError(f"outcome is {meta['outcome']!r}")
    frames = _read_frames(folder / "frames.parquet")
    rows = len(frames[STATE])
    if rows != meta["length"] or rows == 0:
        raise ValueError(f"frames.parquet has {rows} rows, episode.json says {meta['length']}")
    return Episode(
        id=meta["id"],
        task=meta["task"],
        outcome=meta["outcome"],
        reason=meta["reason"] or "",
        length=rows,
        content_hash=str(meta["content_hash"]),
        frames=frames,
        phase_spans=tuple(meta["phase_spans"]),
    )


def _read_frames(path: Path) -> dict[str, np.ndarray]:
    # One small file after another: a thread pool and read-ahead cost more than they save.
    table = pq.ParquetFile(path, pre_buffer=False).read(columns=list(COLUMNS), use_threads=False)
    if absent := [name for name in COLUMNS if name not in table.column_names]:
        raise ValueError(f"column {', '.join(absent)} is missing")
    frames = {}
    for name, size in COLUMNS.items():
        column = table[name].combine_chunks()
        values = column.flatten().to_numpy(zero_copy_only=False).astype(np.float32, copy=False)
        values = values.reshape(table.num_rows, size)
        if not np.isfinite(values).all():
            raise ValueError(f"{name} is not finite at row {int(np.argwhere(~np.isfinite(values))[0, 0])}")
        frames[name] = values
    if len(short := np.flatnonzero(np.linalg.norm(frames[EEF_QUAT], axis=1) < 0.5)):
        raise ValueError(f"{EEF_QUAT} is no rotation at row {short[0]}")
    return frames
