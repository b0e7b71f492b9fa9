"""Recorded episodes as quality control sees them: the low-dimensional columns and what is said about them."""

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

STATE, ACTION, EEF_POS, EEF_QUAT = "observation.state", "action", "observation.eef_pos", "observation.eef_quat"
HELD_POSE, FIXED_POSE, TIME = "privileged.held_pose", "privileged.fixed_pose", "timestamp"

_GRIPPER = re.compile(r"grip|finger|claw|jaw", re.IGNORECASE)
_EITHER_END = 0.95


@dataclass(frozen=True)
class Layout:
    """Which dimensions of state and action belong to a gripper.

    Attributes:
        names: name of each dimension, by column.
        grippers: dimensions that are a gripper's, by column.
        spans: of each of those, the values at the two ends of its travel.
    """

    names: Mapping[str, tuple[str, ...]]
    grippers: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    spans: Mapping[str, tuple[tuple[float, float], ...]] = field(default_factory=dict)

    def arm(self, column: str) -> tuple[int, ...]:
        """Dimensions that are no gripper's."""
        gripper = self.grippers.get(column, ())
        return tuple(i for i in range(len(self.names.get(column, ()))) if i not in gripper)


_JOINTS = tuple(f"joint_{i}" for i in range(1, 8))
OURS = Layout(
    {STATE: (*_JOINTS, "gripper"), ACTION: (*_JOINTS, "gripper")},
    {STATE: (7,), ACTION: (7,)},
    {STATE: ((0.0, 1.0),), ACTION: ((0.0, 1.0),)},
)
"""Seven joints in radians, then the gripper (0 open, 1 closed)."""


def find_layout(names: Mapping[str, Sequence[str]], rows: Mapping[str, np.ndarray]) -> Layout:
    """Layout of a dataset, from the names of its dimensions and its rows, (rows, size) by column.

    A gripper is known by its name; where no name tells, by a value that is nearly always at one of two ends, which the
    commanded one often is and the measured one of the same place then is, too.
    """
    told = any(_GRIPPER.search(name) for of_column in names.values() for name in of_column)
    there = [column for column in (STATE, ACTION) if column in rows and len(rows[column])]
    ends, found = {}, {}
    for column in there:
        values = rows[column][np.isfinite(rows[column]).all(axis=1)]
        values = values if len(values) else np.zeros((1, len(names[column])))
        low, high = ends[column] = np.percentile(values, (0.5, 99.5), axis=0)
        if told:
            found[column] = {i for i, name in enumerate(names[column]) if _GRIPPER.search(name)}
        else:
            off_centre = np.abs(values - (low + high) / 2) > 0.45 * (high - low)
            found[column] = set(np.flatnonzero((off_centre.mean(axis=0) > _EITHER_END) & (high > low)).tolist())
    if not told and len(there) > 1 and len(names[STATE]) == len(names[ACTION]):
        found = dict.fromkeys(there, found[STATE] | found[ACTION])
    grippers = {column: tuple(sorted(of)) for column, of in found.items()}
    spans = {c: tuple((float(ends[c][0][i]), float(ends[c][1][i])) for i in of) for c, of in grippers.items()}
    return Layout({column: tuple(of_column) for column, of_column in names.items()}, grippers, spans)


@dataclass(frozen=True)
class Finding:
    """Something wrong with files or rows, whatever the motion.

    Attributes:
        kind: e.g. ``not_finite``; see :mod:`qc.integrity`.
        episode: id of the episode, or empty for the dataset.
        frame: row in the episode at which it begins, or None.
        file: file in which it is.
        told: what is wrong, in words.
        fatal: whether no verdict on anything can be trusted.
        harmful: whether the episode is not fit for training.
    """

    kind: str
    told: str
    file: str = ""
    episode: str = ""
    frame: int | None = None
    fatal: bool = False
    harmful: bool = False

    def __str__(self) -> str:
        where = ", ".join(filter(None, (self.episode, self.file, "" if self.frame is None else f"frame {self.frame}")))
        return f"{where}: {self.told}" if where else self.told


@dataclass(frozen=True)
class Episode:
    """One attempt at a task.

    Attributes:
        outcome: ``success`` or ``failure``; a dataset that does not say holds successes.
        reason: named failure; empty for a success.
        length: number of rows.
        content_hash: identity of what was recorded.
        frames: :data:`STATE` and :data:`ACTION`, (length, size) float32; where they are recorded :data:`EEF_POS`
            (3, metres) and :data:`EEF_QUAT` (4, xyzw) in the robot's base frame, :data:`HELD_POSE` and
            :data:`FIXED_POSE` (7, metres and xyzw), and :data:`TIME` (length,) in seconds.
        phase_spans: ``{"phase", "start", "end"}`` in rows, end exclusive.
        layout: what the dimensions of state and action are.
        index: place in its dataset.
        env_index: which parallel env recorded it, if that is known.
        file: where its rows are.
        findings: what is wrong with its rows.
    """

    id: str
    task: str
    outcome: str
    reason: str
    length: int
    content_hash: str
    frames: Mapping[str, np.ndarray] = field(repr=False)
    phase_spans: tuple[Mapping[str, Any], ...] = field(default=(), repr=False)
    layout: Layout = field(default=OURS, repr=False)
    index: int = 0
    env_index: int | None = None
    file: str = ""
    findings: tuple[Finding, ...] = ()

    @property
    def family(self) -> str:
        """Task without its size, e.g. ``peg_round``."""
        return self.task.rpartition("_")[0] or self.task

    @property
    def succeeded(self) -> bool:
        """Whether the task was accomplished."""
        return self.outcome == "success"

    @property
    def sound(self) -> bool:
        """Whether its rows can be judged as a motion."""
        return not any(finding.harmful for finding in self.findings)

    def arm(self, column: str) -> np.ndarray:
        """What of state or action is no gripper, (length, joints), as recorded."""
        dims = self.layout.arm(column)
        together = len(dims) > 0 and dims[-1] - dims[0] == len(dims) - 1
        return self.frames[column][:, slice(dims[0], dims[-1] + 1) if together else list(dims)]

    def gripper(self, column: str) -> np.ndarray:
        """Grippers of state or action, (length, grippers), from 0 at one end of their travel to 1 at the other."""
        found = list(self.layout.grippers.get(column, ()))
        if not found:
            return np.zeros((self.length, 0))
        low, high = np.array(self.layout.spans[column]).T
        return (self.frames[column][:, found] - low) / np.where(high > low, high - low, 1.0)

    @cached_property
    def commanded(self) -> np.ndarray:
        """Which end each gripper is told to go to, (length, grippers) bool; measured where nothing is commanded."""
        column = ACTION if self.layout.grippers.get(ACTION) else STATE
        return np.asarray(self.gripper(column) > 0.5)

    @cached_property
    def motion(self) -> str:
        """Hash of state and action (:func:`motion_hash`)."""
        return motion_hash(self.frames)

    def cut(self, rows: np.ndarray) -> "Episode":
        """The episode with some of its rows (n,) only, in order; phases go with them, the content hash stays."""
        spans = []
        for span in self.phase_spans:
            inside = np.flatnonzero((rows >= span["start"]) & (rows < span["end"]))
            if len(inside):
                spans.append({**span, "start": int(inside[0]), "end": int(inside[-1]) + 1})
        frames = {name: values[rows] for name, values in self.frames.items()}
        return replace(self, frames=frames, length=len(rows), phase_spans=tuple(spans))

    def phase_at(self, row: int) -> str:
        """Phase to which a row belongs; empty if the recording does not say."""
        return next((str(s["phase"]) for s in self.phase_spans if s["start"] <= row < s["end"]), "")


def motion_hash(frames: Mapping[str, np.ndarray]) -> str:
    """Sha256 over the rows of state and action, as float32; not over id, task, outcome or time."""
    digest = hashlib.sha256()
    for name in (STATE, ACTION):
        if name in frames:
            values = np.asarray(frames[name], dtype="<f4") + 0.0  # + 0.0: one zero, not two
            digest.update(f"{name}{values.shape}".encode())
            digest.update(values.tobytes())
    return digest.hexdigest()


@dataclass(frozen=True)
class Damaged:
    """An episode folder that cannot be read, and why."""

    id: str
    task: str
    why: str


@dataclass(frozen=True)
class Unrecorded:
    """An attempt that left no episode, and the reason it counts as failed by."""

    id: str
    task: str
    reason: str


@dataclass(frozen=True)
class EpisodeSet:
    """Every episode of a run or dataset, in order, and every folder that could not be read: none is left out.

    Attributes:
        unrecorded: attempts that hang the simulator.
        findings: what is wrong with files and rows, the fatal first.
        fps: rows a second.
        videos: file, first and last second of each episode's video, by camera and episode id.
    """

    episodes: tuple[Episode, ...]
    damaged: tuple[Damaged, ...] = ()
    unrecorded: tuple[Unrecorded, ...] = ()
    findings: tuple[Finding, ...] = ()
    fps: float = 15.0
    videos: Mapping[str, Mapping[str, tuple[str, float, float]]] = field(default_factory=dict, repr=False)

    def __len__(self) -> int:
        return len(self.episodes)
