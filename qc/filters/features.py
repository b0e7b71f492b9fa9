"""What the filters share that compare a handful of measured numbers with those of the task's other episodes."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np

from qc.episodes import Episode
from qc.filters.base import Explanation, Filter, reference_rows
from qc.filters.calibration import largest_by_chance
from qc.robust import centre_and_spread, robust_z


class FeatureFilter(Filter):
    """Largest deviation of any feature from the task's median, in robust deviations; the score is minus that.

    The cutoff is what the largest of as many normal features exceeds in a clean sample of that size with probability
    ``false_alarm`` (:mod:`qc.filters.calibration`). A deviation is at least the feature's resolution, so that what a
    script does to the millimetre makes no outliers of micrometres.

    Args:
        min_episodes: fewer than this are not assessed.
        false_alarm: probability of flagging anything in a clean task.
        seed: of the Monte Carlo cutoff.
    """

    upper_only: ClassVar[bool] = False

    def __init__(self, min_episodes: int = 10, false_alarm: float = 0.02, seed: int = 0) -> None:
        self.min_episodes = min_episodes
        self.false_alarm = false_alarm
        self.seed = seed

    def fit(self, X: Sequence[Episode], y: None = None, *, reference: np.ndarray | None = None) -> Self:  # noqa: N803
        """Learn from episodes of one task."""
        rows = reference_rows(len(X), reference)
        normal = [e for e, counts in zip(X, rows, strict=True) if counts]
        if len(normal) < self.min_episodes:
            return self._admit(f"{len(normal)} of {self.min_episodes} episodes needed")
        self.episodes_ = tuple(X)
        self.names_, resolution = self._prepare(normal)
        if not self.names_:
            return self._admit(f"{self.name} finds nothing to measure in this task")
        measured = self._measure(self.episodes_)
        self.centre_, spread = centre_and_spread(measured[rows])
        self.spread_ = np.maximum(spread, resolution)
        self.z_ = self._deviations(measured)
        chance = largest_by_chance(_largest, len(normal), len(self.names_), self.false_alarm, self.seed)
        self.cutoff_, self.not_assessed_ = -chance, ""
        return self

    @abstractmethod
    def _prepare(self, normal: Sequence[Episode]) -> tuple[tuple[str, ...], np.ndarray]:
        """Names of the features that can be measured, and the resolution of each, (k,)."""

    @abstractmethod
    def _measure(self, episodes: Sequence[Episode]) -> np.ndarray:
        """Features of each episode, (n, k)."""

    def _deviations(self, measured: np.ndarray) -> np.ndarray:
        z = (measured - self.centre_) / self.spread_
        return np.maximum(z, 0.0) if self.upper_only else np.abs(z)

    def _score(self, X: Sequence[Episode]) -> np.ndarray:  # noqa: N803
        z = self.z_ if X is self.episodes_ else self._deviations(self._measure(X))
        return 0.0 - z.max(axis=1)

    def _explain(self, i: int) -> Explanation:
        worst = int(self.z_[i].argmax())
        z = float(self.z_[i, worst])
        told, evidence = self._tell(self.episodes_[i], worst)
        return Explanation(
            f"{told}, {z:.1f} deviations from the task's median (cutoff {-self.cutoff_:.1f})",
            {"feature": self.names_[worst], "z": z, "cutoff": -self.cutoff_, **evidence},
        )

    @abstractmethod
    def _tell(self, episode: Episode, worst: int) -> tuple[str, dict[str, Any]]:
        """What is unusual about a feature of an episode, in words, and the evidence."""


def _largest(sample: np.ndarray) -> np.ndarray:
    return np.asarray(np.abs(robust_z(sample, sample)).max(axis=-1))
