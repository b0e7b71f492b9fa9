"""Episodes that lie far from the others of their task, each in its own way."""

from typing import ClassVar

import numpy as np

from qc.filters.calibration import largest_by_chance
from qc.filters.distance import DistanceFilter
from qc.robust import robust_z, winsorise

_RADIUS = 1.3
_LEAST_VARIANCE = 1e-12


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
    """Of rows (..., m, k) from normal ones (..., n, k): (..., m)."""
    radius = _RADIUS * np.median(np.linalg.norm(normal, axis=-1), axis=-1)
    covariance = shrunk_covariance(winsorise(normal, radius[..., None, None]))
    solved = np.linalg.solve(covariance, np.swapaxes(scores, -1, -2))
    return np.asarray(np.einsum("...ij,...ji->...i", scores, solved))


def shrunk_covariance(x: np.ndarray) -> np.ndarray:
    """Ledoit and Wolf's covariance of centred rows (..., n, k): (..., k, k)."""
    n, k = x.shape[-2:]
    covariance = np.swapaxes(x, -1, -2) @ x / n
    mean = np.trace(covariance, axis1=-2, axis2=-1) / k
    size = np.square(covariance).sum(axis=(-2, -1))
    noise = (np.square(np.square(x).sum(axis=-1)).sum(axis=-1) / n - size) / (k * n)
    apart = size / k - mean**2
    share = np.where(apart > 0, np.minimum(noise, apart) / np.where(apart > 0, apart, 1.0), 1.0)
    share, mean = share[..., None, None], np.maximum(mean, _LEAST_VARIANCE)[..., None, None]
    return np.asarray((1 - share) * covariance + share * mean * np.eye(k))


def _within(samples: np.ndarray) -> np.ndarray:
    scores = robust_z(samples, samples)
    return _squared_distance(scores, scores)
