"""Stretches of an episode in which nothing happens."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
from scipy.ndimage import maximum_filter1d, minimum_filter1d, uniform_filter1d

from qc.episodes import ACTION, STATE, Episode
from qc.filters.base import Explanation, Filter, reference_rows
from qc.robust import quantiles
from qc.units import arm_columns, bounds, motions, reach

_NOISE_RANGE = 8.0
_LEAST_SPEED = 0.1
_FINGERS = ("fingers return", "fingers go")
_PATIENCE = 5
_FINGER_MOVES = 0.02
_SOME, _NEARLY_ALL = 0.15, 0.9


@dataclass(frozen=True)
class Streak:
    """Rows ``start`` to ``end`` (exclusive), and where they lie: ``start``, ``middle`` or ``end`` of the episode."""

    where: str
    start: int
    end: int

    @property
    def rows(self) -> int:
        """How many rows."""
        return self.end - self.start


_Looked = tuple[np.ndarray, list[tuple[int, int, set[str]]]]
"""Idle rows (length,) bool, and runs of them with their occasions."""


class IdleFilter(Filter):
    """Idle streaks: at least so many rows in which neither the arm nor the gripper moves or is told to.

    A column stands still over a window of ``rows`` rows if it stays within what it would cover at ``speed`` times its
    top speed, or within eight deviations of its noise if that is more. Top speed is the 95th percentile of row-to-row
    steps over the task (the whole range for the gripper). Noise is measured where the task is calmest. Both are in the
    column's own unit, so no unit matters. Measured and commanded motion must both stand still: a slow press against
    noise is not idle.

    Waiting can be part of the work. A streak that touches a change of the gripper's command, or lies in a phase in
    which nine in ten episodes of the task wait, is compared with how long they wait there: only what goes beyond their
    90th percentile by three quarters of the spread between it and the 10th is idle. Streaks at the end are reported and
    kept, for an arm has to learn to stop; those at the start teach it not to start. The score is minus the longest
    streak at the start or in the middle.

    Args:
        rows: shortest streak; 15 is the length of an action chunk.
        speed: part of a column's top speed below which it stands still. At twice the default a hand that presses gently
            while a gear's teeth are searched for, by half a millimetre a second, would be called idle.
        excused_before: rows before a change of the gripper's command in which a wait belongs to it.
        excused_after: rows after the fingers' last motion.
    """

    name: ClassVar[str] = "idle"

    def __init__(self, rows: int = 15, speed: float = 0.005, excused_before: int = 5, excused_after: int = 12) -> None:
        self.rows = rows
        self.speed = speed
        self.excused_before = excused_before
        self.excused_after = excused_after

    def fit(self, X: Sequence[Episode], y: None = None, *, reference: np.ndarray | None = None) -> Self:  # noqa: N803
        """Measure speed, noise and dwells of the task, and find the streaks of each episode."""
        self.episodes_ = tuple(X)
        kept = reference_rows(len(X), reference)
        signals = motions(self.episodes_)
        normal = [x for x, counts in zip(signals, kept, strict=True) if counts and len(x) >= self.rows]
        if not normal:
            return self._admit(f"no episode of {self.rows} rows to learn from")
        top = _top_speed(normal, arm_columns(self.episodes_))
        noise = _NOISE_RANGE * _noise(normal, self.rows)
        self.range_ = np.maximum(self.speed * self.rows * top, noise)
        self.cutoff_, self.not_assessed_ = 1.0 - self.rows, ""
        looked = self._look(self.episodes_, signals)
        self.wait_ = self._waits([stretches for (_, stretches), counts in zip(looked, kept, strict=True) if counts])
        self.streaks_ = [self._streaks(*found) for found in looked]
        return self

    def streaks(self, episode: Episode) -> tuple[Streak, ...]:
        """Idle streaks of an episode, in order; of a wait that is part of the work, what is too much of it."""
        return self._streaks(*self._look([episode], motions([episode]))[0])

    def _look(self, episodes: Sequence[Episode], signals: Sequence[np.ndarray]) -> list[_Looked]:
        """Of each episode the idle rows, and runs of them that are long enough with their occasions."""
        found = []
        for episode, idle in zip(episodes, _still(signals, self.rows, self.range_), strict=True):
            runs = _runs(idle, self.rows)
            acts = _finger_acts(episode) if runs else []
            found.append((idle, [(a, b, self._occasions(episode, a, b, acts)) for a, b in runs]))
        return found

    def _occasions(self, episode: Episode, start: int, end: int, acts: Sequence[tuple[int, bool]]) -> set[str]:
        """Fingers that close or open, and the phase."""
        near = {a for row, a in acts if start - self.excused_before < row < end + self.excused_before}
        return {_FINGERS[int(a)] for a in near} | {episode.phase_at((start + end) // 2)} - {""}

    def _streaks(self, idle: np.ndarray, stretches: Sequence[tuple[int, int, set[str]]]) -> tuple[Streak, ...]:
        streaks = []
        for start, end, occasions in stretches:
            usual = max((self.wait_.get(occasion, 0.0) for occasion in occasions), default=0.0)
            if end - start <= usual:
                continue
            begin = min(start + int(usual), end - self.rows)
            where = "start" if idle[:start].all() else "end" if idle[end:].all() else "middle"
            streaks.append(Streak(where, begin, end))
        return tuple(streaks)

    def _waits(self, looked: Sequence[Sequence[tuple[int, int, set[str]]]]) -> dict[str, float]:
        """Longest wait that is usual in the task, in rows, by occasion."""
        waits: dict[str, list[int]] = {}
        for start, end, occasions in (stretch for stretches in looked for stretch in stretches):
            for occasion in occasions:
                waits.setdefault(occasion, []).append(end - start)
        usual = dict.fromkeys(_FINGERS, float(self.rows + _PATIENCE))
        for occasion, found in waits.items():
            if len(found) >= (_SOME if occasion in _FINGERS else _NEARLY_ALL) * len(looked):
                low, high = np.percentile(found, (10, 90))
                usual[occasion] = max(usual.get(occasion, 0.0), float(high + max(0.75 * (high - low), 2.0)))
        return usual

    def _score(self, X: Sequence[Episode]) -> np.ndarray:  # noqa: N803
        found = self.streaks_ if X is self.episodes_ else [self.streaks(e) for e in X]
        return 0.0 - np.array([max((s.rows for s in _harmful(f)), default=0) for f in found], dtype=np.float64)

    def _explain(self, i: int) -> Explanation:
        episode = self.episodes_[i]
        streaks = self.streaks_[i]
        told = [_told(s, episode) for s in (*_harmful(streaks), *(s for s in streaks if s.where == "end"))]
        return Explanation("; ".join(told) or "always on the move", {"streaks": streaks})


def _finger_acts(episode: Episode) -> list[tuple[int, bool]]:
    """Rows at which a gripper is told to change or still moves, and whether away from where it began."""
    commanded, acts = episode.commanded, []
    for column in (STATE, ACTION):
        if column in episode.frames:
            moves = np.abs(np.diff(episode.gripper(column), axis=0)) > _FINGER_MOVES
            acts += [(int(row) + 1, g) for row, g in np.argwhere(moves)]
    acts += [(int(row) + 1, g) for row, g in np.argwhere(commanded[1:] != commanded[:-1])]
    last = commanded.shape[1] - 1
    return [(row, bool(commanded[row, min(g, last)] != commanded[0, min(g, last)])) for row, g in acts] if acts else []


def _harmful(streaks: Sequence[Streak]) -> list[Streak]:
    return [s for s in streaks if s.where != "end"]


def _told(streak: Streak, episode: Episode) -> str:
    phase = episode.phase_at(streak.start)
    during = f" during {phase}" if phase else ""
    place = "in the middle" if streak.where == "middle" else f"at the {streak.where}"
    return f"idle for {streak.rows} rows {place}{during} (rows {streak.start} to {streak.end - 1})"


def _top_speed(episodes: Sequence[np.ndarray], arms: int) -> np.ndarray:
    """Per row, of each column. A joint that is hardly ever moved is granted a tenth of the liveliest one's."""
    top = quantiles(np.concatenate([np.abs(np.diff(x, axis=0)) for x in episodes]), 0.95)[0]
    size = reach(np.concatenate(episodes)[:, :arms])
    share = top[:arms] / size
    top[:arms] = np.maximum(share, _LEAST_SPEED * share.max(initial=0.0)) * size
    top[arms:] = 1.0
    return top


def _noise(episodes: Sequence[np.ndarray], rows: int) -> np.ndarray:
    """Standard deviation of each column's noise, from second differences over the calmest tenth of the task."""
    second = np.concatenate([np.diff(x, n=2, axis=0) for x in episodes])
    if not len(second):
        return np.zeros(episodes[0].shape[1])
    power = uniform_filter1d(second**2, rows, axis=0)
    return np.sqrt(quantiles(np.maximum(power, 0.0), 0.1)[0] / 6.0)


def _still(signals: Sequence[np.ndarray], rows: int, within: np.ndarray) -> list[np.ndarray]:
    """Rows of each episode in a window of ``rows`` rows over which every column stays within its range."""
    x, lengths = np.concatenate(signals), [len(mine) for mine in signals]
    spread = maximum_filter1d(x, rows, axis=0) - minimum_filter1d(x, rows, axis=0)
    calm, found = (spread <= within).all(axis=1), []
    for first, length in zip(bounds(np.array(lengths)).tolist(), lengths, strict=False):
        idle = np.zeros(length, dtype=bool)
        inside = calm[first + rows // 2 : max(0, first + rows // 2 + length - rows + 1)]
        for start in np.flatnonzero(inside):
            idle[start : start + rows] = True
        found.append(idle)
    return found


def _runs(mask: np.ndarray, at_least: int) -> list[tuple[int, int]]:
    edges = np.flatnonzero(np.diff(np.r_[False, mask, False]))
    return [(int(a), int(b)) for a, b in zip(edges[::2], edges[1::2], strict=True) if b - a >= at_least]
