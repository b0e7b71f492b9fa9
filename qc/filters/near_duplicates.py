"""Episodes that are another one once more: with noise, trimmed, or shifted in time."""

from collections.abc import Iterator, Sequence
from typing import ClassVar, Self

import numpy as np
from scipy.spatial import cKDTree

from qc.episodes import ACTION, STATE, Episode
from qc.filters.base import Explanation, Filter, reference_rows
from qc.units import reach

_OFFSETS = (-12, -6, 0, 6, 12)
_OVERLAP = 0.5
_COMPARED = 256


class NearDuplicatesFilter(Filter):
    """Near duplicates by the root mean square difference of aligned rows, in parts of each joint's range.

    Rows around moments that a copy shares with its original whatever was cut off before or after (the first and the
    last change of the gripper's command, and the fastest row) are compared through a k-d tree; pairs that agree there
    are aligned by that moment and compared over all rows that they share, half of the shorter one at least. A cosine
    of such vectors calls every sixth pair of distinct scripted episodes a duplicate; this distance none.

    Of a pair, the shorter is the copy; of two of one length, the later in order of id. The score is minus 1 over the
    smallest distance to an episode that it is a copy of (0 if there is none), so that the cutoff is minus 1 over
    ``distance``.

    Args:
        distance: largest difference between copies.
    """

    name: ClassVar[str] = "near_duplicates"

    def __init__(self, distance: float = 0.005) -> None:
        self.distance = distance

    def fit(self, X: Sequence[Episode], y: None = None, *, reference: np.ndarray | None = None) -> Self:  # noqa: N803
        """Compare all pairs of one task."""
        self.episodes_ = tuple(X)
        rows = reference_rows(len(X), reference)
        self.copies_: dict[str, tuple[str, float, int]] = {}
        self.cutoff_, self.not_assessed_ = -1.0 / self.distance, ""
        normal = [e for e, counts in zip(X, rows, strict=True) if counts]
        if len(normal) > 1:
            self.reach_ = _reach(normal)
            self._compare(normal)
        return self

    def _compare(self, episodes: Sequence[Episode]) -> None:
        motions = [_motion(e) / self.reach_ for e in episodes]
        marks = [_moments(e, m) for e, m in zip(episodes, motions, strict=True)]
        seen: set[tuple[int, int, int]] = set()
        for moment in range(3):
            there = [i for i, m in enumerate(marks) if m[moment] is not None]
            if len(there) < 2:
                continue
            prints = np.array([_fingerprint(motions[i], int(marks[i][moment] or 0)) for i in there])
            radius = 2 * self.distance * np.sqrt(prints.shape[1])
            for a, b in _close_pairs(prints, radius):
                i, j = there[a], there[b]
                lag = int(marks[i][moment] or 0) - int(marks[j][moment] or 0)
                if (i, j, lag) not in seen:
                    seen.add((i, j, lag))
                    self._judge(episodes[i], episodes[j], _aligned(motions[i], motions[j], lag), lag)

    def _judge(self, first: Episode, second: Episode, difference: float, lag: int) -> None:
        if difference > self.distance:
            return
        original, copy = sorted((first, second), key=lambda e: (-e.length, e.id))
        if copy.id not in self.copies_ or difference < self.copies_[copy.id][1]:
            self.copies_[copy.id] = (original.id, difference, lag if first is original else -lag)

    def _score(self, X: Sequence[Episode]) -> np.ndarray:  # noqa: N803
        least = np.finfo(np.float32).eps
        found = [self.copies_[e.id][1] if e.id in self.copies_ else np.inf for e in X]
        return 0.0 - 1.0 / np.maximum(np.array(found, dtype=np.float64), least)

    def _explain(self, i: int) -> Explanation:
        if self.episodes_[i].id not in self.copies_:
            return Explanation("no other episode moves the same way")
        original, difference, lag = self.copies_[self.episodes_[i].id]
        shifted = f", {abs(lag)} rows {'later' if lag > 0 else 'earlier'} there" if lag else ""
        told = f"moves as {original} does{shifted}: {difference:.4%} of the range apart (cutoff {self.distance:.1%})"
        return Explanation(told, {"original": original, "difference": difference, "lag": lag})


def _motion(episode: Episode) -> np.ndarray:
    """Joints, measured where they are, else commanded, (length, k) float64."""
    return episode.arm(STATE if STATE in episode.frames else ACTION).astype(np.float64)


def _reach(episodes: Sequence[Episode]) -> np.ndarray:
    return reach(np.concatenate([_motion(e) for e in episodes]))


def _moments(episode: Episode, motion: np.ndarray) -> tuple[int | None, int | None, int | None]:
    commanded = episode.commanded()
    changes = np.flatnonzero((commanded[1:] != commanded[:-1]).any(axis=1)) + 1
    first, last = (int(changes[0]), int(changes[-1])) if len(changes) else (None, None)
    speed = np.linalg.norm(np.diff(motion, axis=0), axis=1)
    return first, last, int(speed.argmax()) if len(speed) else None


def _fingerprint(motion: np.ndarray, row: int) -> np.ndarray:
    return motion[np.clip(row + np.array(_OFFSETS), 0, len(motion) - 1)].ravel()


def _close_pairs(prints: np.ndarray, radius: float) -> Iterator[tuple[int, int]]:
    """Pairs of rows no farther apart than ``radius``; looked for among few orthogonal directions, which only shrink."""
    centred = prints - prints.mean(axis=0)
    _, _, axes = np.linalg.svd(centred[: 4 * prints.shape[1]], full_matrices=False)
    pairs = cKDTree(centred @ axes[:8].T).query_pairs(radius, output_type="ndarray")
    if len(pairs):
        apart = np.linalg.norm(centred[pairs[:, 0]] - centred[pairs[:, 1]], axis=1)
        for a, b in pairs[apart <= radius]:
            yield int(a), int(b)


def _aligned(first: np.ndarray, second: np.ndarray, lag: int) -> float:
    """Root mean square difference of rows ``t + lag`` of the first and ``t`` of the second, where both are."""
    start, end = max(0, -lag), min(len(second), len(first) - lag)
    if end - start < _OVERLAP * min(len(first), len(second)):
        return np.inf
    rows = np.unique(np.linspace(start, end - 1, _COMPARED).astype(np.int64))
    return float(np.sqrt(np.square(first[rows + lag] - second[rows]).mean()))
