"""Synthetic pick-and-insert episodes, smooth and randomised, with gripper dwells; and defects to plant in them."""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from qc.episodes import ACTION, EEF_POS, EEF_QUAT, STATE, Episode
from qc.readers.run import content_hash

TASK = "peg_round_8mm"
_HOME = np.array([0.45, 0.0, 0.30])


def episode_id(number: int, task: str = TASK) -> str:
    return f"{task}-s7-{number:05d}"


def make_episode(
    number: int = 0, *, task: str = TASK, seed: int = 0, outcome: str = "success", reason: str = ""
) -> Episode:
    """A pure function of its arguments; about 130 rows."""
    rng = np.random.default_rng([seed, number, *task.encode()])
    pick = np.array([0.37, -0.07, 0.05]) + [*rng.uniform(-0.05, 0.05, 2), rng.uniform(-0.002, 0.002)]
    place = np.array([0.37, 0.07, 0.03]) + [*rng.uniform(-0.05, 0.05, 2), 0.0]
    over = np.array([0.0, 0.0, 0.08 + rng.uniform(0.0, 0.03)])
    yaw = rng.uniform(-0.3, 0.3)
    plan: list[tuple[str, np.ndarray, int, float]] = [
        ("hover", pick + over, int(rng.integers(20, 26)), 0.0),
        ("descend", pick, int(rng.integers(12, 16)), 0.0),
        ("grasp", pick, int(rng.integers(12, 25)), 1.0),
        ("lift", pick + over, int(rng.integers(12, 16)), 1.0),
        ("transport", place + over, int(rng.integers(18, 24)), 1.0),
        ("insert", place, int(rng.integers(18, 24)), 1.0),
        ("release", place, 10, 0.0),
        ("retreat", place + over, 10, 0.0),
        ("hold", place + over, 6, 0.0),
    ]
    at, positions, grip, spans = _HOME, [_HOME], [0.0], []
    for phase, target, rows, closed in plan:
        t = np.arange(1, rows + 1) / rows
        ease = (t**3 * (10 - 15 * t + 6 * t**2))[:, None]  # minimum jerk
        spans.append({"phase": phase, "start": len(grip) - 1, "end": len(grip) - 1 + rows})
        positions.extend(at + (target - at) * ease)
        grip.extend([closed] * rows)
        at = target
    path, command = np.array(positions), np.array(grip)
    heading = yaw * np.minimum(1.0, np.arange(len(path)) / 30.0)
    joints = _joints(path, heading)
    fingers = 0.6 * np.clip(np.convolve(command, np.ones(5) / 5)[: len(command)], 0, 1)
    frames = {
        STATE: np.column_stack([joints[:-1], fingers[:-1]]),
        ACTION: np.column_stack([joints[1:], command[1:]]),
        EEF_POS: path[:-1],
        EEF_QUAT: np.column_stack([np.cos(heading / 2), np.sin(heading / 2), 0 * heading, 0 * heading])[:-1],
    }
    return Episode(
        id=episode_id(number, task),
        task=task,
        outcome=outcome,
        reason=reason,
        length=len(path) - 1,
        content_hash=f"{number:064x}",
        frames={name: values.astype(np.float32) for name, values in frames.items()},
        phase_spans=tuple(spans),
    )


def _joints(path: np.ndarray, heading: np.ndarray) -> np.ndarray:
    """A smooth, made-up arm: seven joints from tool position and heading."""
    x, y, z = path.T
    bend = np.hypot(x, y)
    return np.column_stack(
        [np.arctan2(y, x), 2 * z - bend, 0.2 * y, -2 * bend - z, 0.3 * heading + 0.1 * y, bend + 2 * z, heading]
    )


def make_task(count: int, *, task: str = TASK, seed: int = 0) -> list[Episode]:
    return [make_episode(i, task=task, seed=seed) for i in range(count)]


def with_frames(episode: Episode, frames: Mapping[str, np.ndarray]) -> Episode:
    cast = {name: np.asarray(values, dtype=np.float32) for name, values in frames.items()}
    return replace(episode, frames=cast, length=len(cast[STATE]))


def copy_of(episode: Episode, number: int, **changes: Any) -> Episode:
    named = {"id": episode_id(number, changes.get("task", episode.task)), "content_hash": f"{number:064x}"}
    return replace(episode, **{**named, **changes})


def take(episode: Episode, rows: np.ndarray) -> Episode:
    return with_frames(episode, {name: values[rows] for name, values in episode.frames.items()})


def freeze(episode: Episode, rows: int, at: int) -> Episode:
    """Stand still at one row until it has been there ``rows`` times."""
    return take(episode, np.sort(np.r_[np.arange(episode.length), np.full(rows - 1, at)]))


def truncate(episode: Episode, part: float) -> Episode:
    return take(episode, np.arange(int(episode.length * part)))


def jitter(episode: Episode, size_m: float, seed: int = 0) -> Episode:
    rng = np.random.default_rng(seed)
    shaken = rng.normal(0.0, size_m, (episode.length, 3))
    joints = _joints(np.array([0.4, 0.1, 0.1]) + shaken, np.zeros(episode.length))
    joints = np.column_stack([joints - joints.mean(axis=0), np.zeros(episode.length)])
    frames = episode.frames
    return with_frames(
        episode,
        {**frames, STATE: frames[STATE] + joints, ACTION: frames[ACTION] + joints, EEF_POS: frames[EEF_POS] + shaken},
    )


def release_early(episode: Episode, rows: int) -> Episode:
    def earlier(values: np.ndarray) -> np.ndarray:
        moved = values.copy()
        opens = int(np.flatnonzero(episode.frames[ACTION][:, 7] > 0.5)[-1])
        tail = values[opens - 4 :, 7]
        moved[opens - 4 - rows :, 7] = np.r_[tail, np.full(rows, tail[-1])]
        return moved

    frames = episode.frames
    return with_frames(episode, {**frames, STATE: earlier(frames[STATE]), ACTION: earlier(frames[ACTION])})


def in_units(episode: Episode, *, angle: float = 1.0, length: float = 1.0) -> Episode:
    """The same episode with joints and positions in other units."""
    joints = np.array([angle] * 7 + [1.0])
    frames = episode.frames
    return with_frames(
        episode,
        {**frames, STATE: frames[STATE] * joints, ACTION: frames[ACTION] * joints, EEF_POS: frames[EEF_POS] * length},
    )


def change(episodes: list[Episode], at: Iterable[int], how: Callable[[Episode], Episode]) -> list[Episode]:
    chosen = set(at)
    return [how(e) if i in chosen else e for i, e in enumerate(episodes)]


def write_run(root: Path, episodes: Iterable[Episode]) -> Path:
    root.mkdir(parents=True, exist_ok=True)
    (root / "run.json").write_text(json.dumps({"schema": 1, "recipe": {}}))
    for episode in episodes:
        folder = root / "episodes" / episode.task / episode.id
        folder.mkdir(parents=True)
        names = [name for name, values in episode.frames.items() if values.ndim == 2]
        meta = {
            "id": episode.id,
            "task": episode.task,
            "attempt": episode.index,
            "seed": episode.index,
            "draws": {},
            "outcome": episode.outcome,
            "reason": episode.reason or None,
            "length": episode.length,
            "phases": [],
            "phase_spans": list(episode.phase_spans),
            "bodies": [],
            "env_index": episode.env_index,
            "features": [
                {"key": name, "dtype": "float32", "names": [""] * episode.frames[name].shape[1]} for name in names
            ],
        }
        columns = {name: episode.frames[name] for name in names}
        meta["content_hash"] = content_hash(meta, columns)
        (folder / "episode.json").write_text(json.dumps(meta))
        arrays = {
            name: pa.FixedSizeListArray.from_arrays(pa.array(values.ravel(), pa.float32()), values.shape[1])
            for name, values in columns.items()
        }
        pq.write_table(pa.table(arrays), folder / "frames.parquet")
    return root
