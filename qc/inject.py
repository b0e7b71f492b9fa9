"""Known defects at a chosen severity, planted into healthy episodes: what quality control is measured with.

Each keeps an episode consistent with itself: phases move with the rows that they name, joints follow the tool.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

from qc.episodes import ACTION, EEF_POS, EEF_QUAT, HELD_POSE, STATE, TIME, Episode, motion_hash
from qc.filters.moments import release_row

SENSOR_NOISE_RAD = 3e-4

_FPS = 15.0
_EDGE = 20
_AMID = 0.1


@dataclass(frozen=True)
class Arm:
    """How joints follow a small displacement of the tool: ``joints_per_m`` is (3, joints)."""

    joints_per_m: np.ndarray

    @classmethod
    def learn(cls, episodes: Sequence[Episode]) -> "Arm":
        """Least squares over all steps of the episodes, turns of the tool taken into account."""
        moves, turns, joints = [], [], []
        for episode in episodes:
            moves.append(np.diff(episode.frames[EEF_POS].astype(np.float64), axis=0))
            rotation = Rotation.from_quat(episode.frames[EEF_QUAT].astype(np.float64))
            turns.append((rotation[1:] * rotation[:-1].inv()).as_rotvec())
            joints.append(np.diff(episode.arm(STATE).astype(np.float64), axis=0))
        tool = np.hstack([np.concatenate(moves), np.concatenate(turns)])
        found, *_ = np.linalg.lstsq(tool, np.concatenate(joints), rcond=None)
        return cls(found[:3])


@dataclass(frozen=True)
class Injector:
    """Plants defects: each method returns an episode with one, at a severity in the unit that its argument names."""

    arm: Arm
    rng: np.random.Generator

    def release_early(self, episode: Episode, rows: float) -> Episode:
        """The gripper lets go ``rows`` rows before its time, while the arm moves as it did."""
        row, early = release_row(episode), int(rows)
        if row is None:
            return episode
        frames = dict(episode.frames)
        for column in (STATE, ACTION):
            fingers = list(episode.layout.grippers.get(column, ()))
            values = frames[column].copy()
            tail = values[row:, fingers]
            values[row - early :, fingers] = np.vstack([tail, np.repeat(tail[-1:], early, axis=0)])
            frames[column] = values
        spans = [
            {**s, "start": s["start"] - early * (s["start"] == row), "end": s["end"] - early * (s["end"] == row)}
            for s in episode.phase_spans
        ]
        return _with(episode, frames, tuple(spans))

    def end_pose(self, episode: Episode, millimetres: float) -> Episode:
        """Tool and held part drift sideways, to be off by so much from half-way between grasp and release on."""
        row = release_row(episode)
        release = episode.length - 1 if row is None else row
        commanded = episode.commanded
        grasp = int(np.argmax((commanded != commanded[0]).any(axis=1)))
        start, end = grasp + (release - grasp) // 4, grasp + (release - grasp) // 2
        share = _ramp(episode.length, start, end)
        angle = self.rng.uniform(0, 2 * np.pi)
        return _displaced(episode, share[:, None] * 1e-3 * millimetres * [np.cos(angle), np.sin(angle), 0.0], self.arm)

    def freeze(self, episode: Episode, rows: float) -> Episode:
        """Stands still for so many rows amid a motion, while the sensors' noise goes on.

        Where the arm waits anyway, a freeze is but a longer wait.
        """
        speed = np.linalg.norm(np.diff(episode.arm(ACTION).astype(np.float64), axis=0), axis=1)
        moving = np.flatnonzero(speed > _AMID * np.percentile(speed, 95))
        inside = moving[(moving > _EDGE) & (moving < episode.length - _EDGE)]
        at = int(self.rng.choice(inside if len(inside) else moving))
        held = _hold(episode, at, int(rows))
        noisy = with_sensor_noise(held, self.rng).frames[STATE]
        state = held.frames[STATE].copy()
        state[at + 1 : at + 1 + int(rows)] = noisy[at + 1 : at + 1 + int(rows)]
        return _with(held, {**held.frames, STATE: state})

    def idle_start(self, episode: Episode, rows: float) -> Episode:
        """Stands still before it begins."""
        return _hold(episode, 0, int(rows))

    def idle_middle(self, episode: Episode, rows: float) -> Episode:
        """Stands still half-way."""
        return _hold(episode, episode.length // 2, int(rows))

    def idle_end(self, episode: Episode, rows: float) -> Episode:
        """Stands still after it has ended."""
        return _hold(episode, episode.length - 1, int(rows))

    def jitter(self, episode: Episode, millimetres: float) -> Episode:
        """The tool trembles by so much (standard deviation along each axis) from row to row."""
        return _displaced(episode, 1e-3 * millimetres * self.rng.standard_normal((episode.length, 3)), self.arm)

    def spike(self, episode: Episode, percent: float) -> Episode:
        """One measured joint leaps for one row, by a part of the range that it moves over."""
        state = episode.frames[STATE].copy()
        joint = int(self.rng.choice(episode.layout.arm(STATE)))
        state[int(self.rng.integers(5, episode.length - 5)), joint] += 0.01 * percent * np.ptp(state[:, joint])
        return _with(episode, {**episode.frames, STATE: state})

    def truncate(self, episode: Episode, percent: float) -> Episode:
        """The last part is missing."""
        return take(episode, np.arange(max(2, round(episode.length * (1 - 0.01 * percent)))))

    def short(self, episode: Episode, rows: float) -> Episode:
        """Only the first rows are there."""
        return take(episode, np.arange(int(rows)))

    def gap(self, episode: Episode, seconds: float) -> Episode:
        """Rows are lost, and time jumps over them."""
        lost = max(1, round(_FPS * seconds))
        at = int(self.rng.integers(5, episode.length - lost - 5))
        return take(episode, np.r_[np.arange(at), np.arange(at + lost, episode.length)])

    def not_a_number(self, episode: Episode, values: float) -> Episode:
        """Some numbers of the state are NaN."""
        state = episode.frames[STATE].copy()
        state.ravel()[self.rng.choice(state.size, int(values), replace=False)] = np.nan
        return _with(episode, {**episode.frames, STATE: state})

    def noisy_copy(self, episode: Episode, noise: float) -> Episode:
        """The same again, with noise on every number of state and action (0: not one bit differs)."""
        frames = dict(episode.frames)
        for column in (STATE, ACTION) if noise else ():
            frames[column] = frames[column] + noise * self.rng.standard_normal(frames[column].shape).astype(np.float32)
        return _with(episode, frames)

    def trimmed_copy(self, episode: Episode, rows: float) -> Episode:
        """The same again, cut at either end, with a trace of noise."""
        first = int(self.rng.integers(0, int(rows) + 1))
        cut = take(episode, np.arange(first, episode.length - (int(rows) - first)))
        return self.noisy_copy(cut, 1e-5)

    def detour(self, episode: Episode, millimetres: float, direction: np.ndarray) -> Episode:
        """The carried part takes a way round, at most so far off: what episodes share that share a fault."""
        row = release_row(episode) or episode.length - 1
        commanded = episode.commanded
        grasp = int(np.argmax((commanded != commanded[0]).any(axis=1)))
        t = np.clip((np.arange(episode.length) - grasp) / max(1, row - grasp), 0, 1)
        return _displaced(episode, np.sin(np.pi * t)[:, None] ** 2 * 1e-3 * millimetres * direction, self.arm)


@dataclass(frozen=True)
class Defect:
    """A kind of defect.

    Attributes:
        unit: of the severity.
        severities: from mild to severe.
        moderate: severity at which nearly all should be found.
        plant: ``plant(injector, episode, severity)``.
        adds: whether the result stands beside the episode (a copy) instead of in its place.
    """

    name: str
    unit: str
    severities: tuple[float, ...]
    moderate: float
    plant: Callable[[Injector, Episode, float], Episode]
    adds: bool = False


DEFECTS: Mapping[str, Defect] = {
    d.name: d
    for d in (
        Defect("early release", "rows", (2, 4, 7, 10, 20, 40), 10, Injector.release_early),
        Defect("end pose off", "mm", (2, 4, 8, 15, 30, 50), 15, Injector.end_pose),
        Defect("freeze under noise", "rows", (8, 12, 15, 20, 30, 40), 20, Injector.freeze),
        Defect("idle at the start", "rows", (8, 12, 15, 20, 30, 60), 30, Injector.idle_start),
        Defect("idle in the middle", "rows", (8, 12, 15, 20, 30, 60), 30, Injector.idle_middle),
        Defect("idle at the end", "rows", (8, 12, 15, 20, 30, 60), 30, Injector.idle_end),
        Defect("jitter", "mm", (0.05, 0.1, 0.3, 1, 2, 3), 1, Injector.jitter),
        Defect("spike", "% of range", (1, 2, 5, 10, 20, 50), 20, Injector.spike),
        Defect("truncated", "%", (2, 5, 10, 20, 40, 60), 20, Injector.truncate),
        Defect("short", "rows", (150, 100, 60, 30, 12), 12, Injector.short),
        Defect("gap in time", "s", (0.07, 0.15, 0.3, 0.5, 1.0), 0.5, Injector.gap),
        Defect("not a number", "values", (1, 10, 100), 1, Injector.not_a_number),
        Defect("copy with noise", "rad", (0, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2), 1e-5, Injector.noisy_copy, adds=True),
        Defect("trimmed copy", "rows", (2, 5, 10, 20, 40, 60), 20, Injector.trimmed_copy, adds=True),
    )
}
"""Defects of single episodes, by name."""


def take(episode: Episode, rows: np.ndarray) -> Episode:
    """An episode of some of its rows, in order; phases and time go with them."""
    cut = episode.cut(rows)
    return _with(cut, cut.frames)


def with_sensor_noise(episode: Episode, rng: np.random.Generator, size_rad: float = SENSOR_NOISE_RAD) -> Episode:
    """White noise on the measured joints, as encoders have it."""
    state = episode.frames[STATE].copy()
    joints = list(episode.layout.arm(STATE))
    state[:, joints] += size_rad * rng.standard_normal((episode.length, len(joints))).astype(np.float32)
    return _with(episode, {**episode.frames, STATE: state})


def _hold(episode: Episode, at: int, rows: int) -> Episode:
    held = take(episode, np.sort(np.r_[np.arange(episode.length), np.full(rows, at)]))
    if TIME not in held.frames:
        return held
    return _with(held, {**held.frames, TIME: episode.frames[TIME][0] + np.arange(held.length) / _FPS})


def _displaced(episode: Episode, offset: np.ndarray, arm: Arm) -> Episode:
    """Tool, joints and their commands, and what is held, moved by ``offset`` (length, 3) metres."""
    frames = dict(episode.frames)
    frames[EEF_POS] = frames[EEF_POS] + offset.astype(np.float32)
    joints = (offset @ arm.joints_per_m).astype(np.float32)
    for column in (STATE, ACTION):
        values = frames[column].copy()
        values[:, list(episode.layout.arm(column))] += joints
        frames[column] = values
    if HELD_POSE in frames:
        held = frames[HELD_POSE].copy()
        held[:, :3] += offset.astype(np.float32)
        frames[HELD_POSE] = held
    return _with(episode, frames)


def _ramp(length: int, start: int, end: int) -> np.ndarray:
    t = np.clip((np.arange(length) - start) / max(1, end - start), 0.0, 1.0)
    return np.asarray(t * t * (3 - 2 * t))


def _with(
    episode: Episode, frames: Mapping[str, np.ndarray], spans: tuple[Mapping[str, Any], ...] | None = None
) -> Episode:
    cast = {name: np.asarray(values, dtype=np.float32) for name, values in frames.items()}
    return replace(
        episode,
        frames=cast,
        length=len(next(iter(cast.values()))),
        content_hash=motion_hash(cast),
        phase_spans=episode.phase_spans if spans is None else spans,
    )
