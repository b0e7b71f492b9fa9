"""Episodes that lie far from the others of their task, each in its own way."""

from typing import ClassVar

import numpy as np
from sklearn.covariance import ledoit_wolf

from qc.filters.calibration import largest_by_chance
from qc.filters.distance import DistanceFilter
from qc.robust import robust_z, winsorise

_RADIUS = 1.3


class MahalanobisFilter(DistanceFilter):
    """Outliers by squared Mahalanobis distance.

    The covariance is Ledoit and Wolf's (2004), of rows pulled back to 1.3 times the median distance, so that outliers
    do not widen it for themselves. Minimum covariance determinant would need more episodes than a task has: at this
    size it flags several times its nominal rate of clean ones.
    """

    name: ClassVar[str] = "mahalanobis"

    def _distance(self, scores: np.ndarray) -> np.ndarray:
        return _squared_distance(scores, self.normal_)

    def _chance(self, n: int, k: int) -> float:
        return largest_by_chance(_within, n, k, self.false_alarm, self.seed)

    def _what(self, distance: float) -> str:
        return f"squared Mahalanobis distance {distance:.1f}"


def _squared_distance(scores: np.ndarray, normal: np.ndarray) -> np.ndarray:
    radius = _RADIUS * float(np.median(np.linalg.norm(normal, axis=1)))
    covariance, _ = ledoit_wolf(winsorise(normal, radius), assume_centered=True)
    return np.einsum("ij,ij->i", scores, np.linalg.solve(covariance, scores.T).T)


def _within(sample: np.ndarray) -> np.ndarray:
    scores = robust_z(sample, sample)
    return _squared_distance(scores, scores)
