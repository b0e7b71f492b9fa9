"""What the filters that measure distances between embedded episodes share."""

from abc import abstractmethod
from typing import Any, Self

import numpy as np

from qc.filters.base import Explanation, Filter, reference_rows
from qc.projection import RobustPCA

_NAMED = 3


class DistanceFilter(Filter):
    """Distance from normal, over robust principal components and their residual; the score is minus the distance.

    There is one pass and a fixed, calibrated cutoff (:mod:`qc.filters.calibration`): dropping and refitting eats clean
    data.

    Args:
        components: number of principal components wanted, see :class:`qc.projection.RobustPCA`.
        min_episodes: fewer than this are not assessed.
        false_alarm: probability of flagging anything in a clean sample.
        seed: of the Monte Carlo cutoff.
        groups: (d,) group of each column, weighed alike.
        columns: (d,) name of each column, for explanations.
    """

    def __init__(
        self,
        components: int = 9,
        min_episodes: int = 30,
        false_alarm: float = 0.02,
        seed: int = 0,
        groups: np.ndarray | None = None,
        columns: tuple[str, ...] | None = None,
    ) -> None:
        self.components = components
        self.min_episodes = min_episodes
        self.false_alarm = false_alarm
        self.seed = seed
        self.groups = groups
        self.columns = columns

    def fit(
        self,
        X: np.ndarray,  # noqa: N803
        y: None = None,
        *,
        reference: np.ndarray | None = None,
        projection: RobustPCA | None = None,
    ) -> Self:
        """Learn from standardised columns, (n, d).

        Args:
            projection: one that was fitted to the same reference rows, to spare the work.
        """
        rows = reference_rows(len(X), reference)
        n = int(rows.sum())
        if n < self.min_episodes:
            return self._admit(f"{n} of {self.min_episodes} episodes needed")
        self.deviations_ = np.asarray(X)
        self.projection_ = projection or RobustPCA(self.components, self.groups).fit(X[rows])
        scores = self.projection_.transform(X)
        self.normal_ = scores[rows]
        self.distances_ = self._distance(scores)
        self.cutoff_ = -self._chance(*self.normal_.shape)
        self.not_assessed_ = ""
        return self

    @abstractmethod
    def _distance(self, scores: np.ndarray) -> np.ndarray:
        """Distance of each row of scores (m, k) from the fitted ones, (m,)."""

    @abstractmethod
    def _chance(self, n: int, k: int) -> float:
        """Largest distance to be expected in n clean rows of k scores."""

    def _score(self, X: np.ndarray) -> np.ndarray:  # noqa: N803
        return -(self.distances_ if X is self.deviations_ else self._distance(self.projection_.transform(X)))

    def _explain(self, i: int) -> Explanation:
        distance = float(self.distances_[i])
        unusual = self._most_unusual(i)
        named = ", ".join(f"{column} {value:+.1f} deviations" for column, value in unusual.items())
        return Explanation(
            f"{self._what(distance)} (cutoff {-self.cutoff_:.1f}); farthest from the task's median: {named}",
            {"distance": distance, "cutoff": -self.cutoff_, "deviations": unusual},
        )

    @abstractmethod
    def _what(self, distance: float) -> str:
        """The distance in words."""

    def _most_unusual(self, i: int) -> dict[str, Any]:
        """Largest deviation of each group of columns, of the groups where it is largest."""
        row = self.deviations_[i]
        groups = np.zeros(len(row)) if self.groups is None else self.groups
        size = np.abs(row)
        best = [int(np.where(groups == g, size, -1.0).argmax()) for g in np.unique(groups)]
        best = sorted(best, key=lambda j: -size[j])[:_NAMED]
        return {self.columns[j] if self.columns else f"column {j}": round(float(row[j]), 2) for j in best}
