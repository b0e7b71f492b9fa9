"""Episodes that took far longer or shorter than the others of their task."""

from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from qc.filters.base import Explanation, Filter, reference_rows
from qc.filters.calibration import largest_by_chance
from qc.robust import centre_and_spread, robust_z


class LengthFilter(Filter):
    """Length outliers, by median and median absolute deviation.

    Mean and standard deviation would let a few extreme lengths hide each other, and cannot exceed (n-1)/sqrt(n)
    deviations at all: a rule at 3 never fires for 10 episodes or fewer. The cutoff is that of normal lengths
    (:mod:`qc.filters.calibration`). The score is minus the distance from the median in robust deviations.

    Args:
        min_episodes: fewer than this are not assessed.
        floor: least deviation, as a part of the median length: a task whose episodes all take about the same time has
            no length outliers among those that differ by less.
        false_alarm: probability of flagging anything in a clean task.
        seed: of the Monte Carlo cutoff.
    """

    name: ClassVar[str] = "length"

    def __init__(self, min_episodes: int = 10, floor: float = 0.03, false_alarm: float = 0.02, seed: int = 0) -> None:
        self.min_episodes = min_episodes
        self.floor = floor
        self.false_alarm = false_alarm
        self.seed = seed

    def fit(self, X: ArrayLike, y: None = None, *, reference: np.ndarray | None = None) -> Self:  # noqa: N803
        """Learn from lengths in rows, (n,) or (n, 1)."""
        self.lengths_ = _lengths(X)
        normal = self.lengths_[reference_rows(len(self.lengths_), reference)]
        if len(normal) < self.min_episodes:
            return self._admit(f"{len(normal)} of {self.min_episodes} episodes needed")
        centre, spread = centre_and_spread(normal)
        self.median_ = float(centre)
        self.deviation_ = max(float(spread), self.floor * self.median_)
        self.cutoff_ = -largest_by_chance(_distances, len(normal), 1, self.false_alarm, self.seed)
        self.not_assessed_ = ""
        return self

    def _score(self, X: ArrayLike) -> np.ndarray:  # noqa: N803
        return -np.abs(_lengths(X) - self.median_) / self.deviation_

    def _explain(self, i: int) -> Explanation:
        length = int(self.lengths_[i])
        off = (length - self.median_) / self.deviation_
        return Explanation(
            f"{length} rows, {abs(off):.1f} deviations {'above' if off > 0 else 'below'} the task's median of "
            f"{self.median_:g} (cutoff {-self.cutoff_:.1f})",
            {"length": length, "median": self.median_, "deviation": self.deviation_, "z": off},
        )


def _lengths(x: ArrayLike) -> np.ndarray:
    return np.asarray(x, dtype=np.float64).reshape(len(np.asarray(x)))


def _distances(x: np.ndarray) -> np.ndarray:
    return np.abs(robust_z(x, x)[..., 0])
