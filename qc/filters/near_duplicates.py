"""Episodes that are another one once more: with noise, trimmed, or shifted in time."""

from collections.abc import Sequence
from typing import ClassVar, Self

import numpy as np
from scipy.spatial import cKDTree

from qc.episodes import Episode
from qc.filters.base import Explanation, Filter, reference_rows
from qc.units import arm_columns, bounds, motions, moving, reach

_OFFSETS = (-12, -6, 0, 6, 12)
_OVERLAP = 0.5
_COMPARED = 64
_AT_ONCE = 1024


class NearDuplicatesFilter(Filter):
    """Near duplicates by the root mean square difference of aligned rows, in parts of each dimension's range.

    Compared is all that moves in the task, measured and commanded: where the arm's state is not recorded, its commands.

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
            moved, arms = _moved(normal)
            if not arms:
                return self._admit("no joint moves in any episode of the task")
            self._compare(normal, moved, arms)
        return self

    def _compare(self, episodes: Sequence[Episode], moved: Sequence[np.ndarray], arms: int) -> None:
        found = [np.zeros((0, 3), dtype=np.int64)]
        for marks in np.array([_moments(e, m[:, :arms]) for e, m in zip(episodes, moved, strict=True)]).T:
            there = np.flatnonzero(marks >= 0)
            if len(there) > 1:
                prints = np.array([_fingerprint(moved[i], marks[i]) for i in there])
                pairs = there[_close_pairs(prints, 2 * self.distance * np.sqrt(prints.shape[1]))]
                found.append(np.column_stack([pairs, marks[pairs[:, 0]] - marks[pairs[:, 1]]]))
        aligned = np.unique(np.concatenate(found), axis=0)
        for (i, j, lag), difference in zip(aligned.tolist(), _differences(moved, aligned).tolist(), strict=True):
            self._judge(episodes[i], episodes[j], difference, lag)

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


def _moved(episodes: Sequence[Episode]) -> tuple[list[np.ndarray], int]:
    """Columns that move in any episode, in parts of their range, (length, k) each; and how many are the arm's."""
    rows, arms = np.concatenate(motions(episodes)), arm_columns(episodes)
    lengths = np.array([e.length for e in episodes])
    moves = moving(rows, lengths)
    rows[:, :arms] /= reach(rows[:, :arms])
    return np.split(rows[:, moves], np.cumsum(lengths)[:-1]), int(moves[:arms].sum())


def _moments(episode: Episode, arm: np.ndarray) -> tuple[int, int, int]:
    """Rows at which the gripper's command first and last changes and the arm is fastest; -1 for what there is not."""
    commanded = episode.commanded
    changes = np.flatnonzero((commanded[1:] != commanded[:-1]).any(axis=1)) + 1
    first, last = (int(changes[0]), int(changes[-1])) if len(changes) else (-1, -1)
    speed = np.linalg.norm(np.diff(arm, axis=0), axis=1)
    return first, last, int(speed.argmax()) if speed.any() else -1


def _fingerprint(motion: np.ndarray, row: int) -> np.ndarray:
    return motion[np.clip(row + np.array(_OFFSETS), 0, len(motion) - 1)].ravel()


def _close_pairs(prints: np.ndarray, radius: float) -> np.ndarray:
    """Pairs (p, 2) of rows no farther apart than ``radius``; sought in few orthogonal directions, which only shrink."""
    centred = prints - prints.mean(axis=0)
    _, _, axes = np.linalg.svd(centred[: 4 * prints.shape[1]], full_matrices=False)
    pairs = cKDTree(centred @ axes[:8].T).query_pairs(radius, output_type="ndarray")
    return pairs[np.linalg.norm(centred[pairs[:, 0]] - centred[pairs[:, 1]], axis=1) <= radius]


def _differences(moved: Sequence[np.ndarray], aligned: np.ndarray) -> np.ndarray:
    """Root mean square difference (p,) of rows ``t + lag`` of episode i and ``t`` of episode j, where both have them.

    Args:
        aligned: (p, 3), each i, j and lag; pairs that share less than half of the shorter one are infinitely different.
    """
    lengths = np.array([len(m) for m in moved])
    i, j, lag = aligned.T
    start, end = np.maximum(0, -lag), np.minimum(lengths[j], lengths[i] - lag)
    out = np.full(len(aligned), np.inf)
    rows, first, shares = np.concatenate(moved), bounds(lengths), np.linspace(0.0, 1.0, _COMPARED)
    enough = np.flatnonzero(end - start >= _OVERLAP * np.minimum(lengths[i], lengths[j]))
    for some in np.array_split(enough, len(enough) // _AT_ONCE + 1):
        t = (start[some, None] + shares * (end - 1 - start)[some, None]).astype(np.int64)
        apart = rows[first[i[some], None] + lag[some, None] + t] - rows[first[j[some], None] + t]
        out[some] = np.sqrt(np.square(apart).mean(axis=(1, 2)))
    return out
