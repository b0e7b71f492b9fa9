"""Episodes that lie far from the others of their task, in a group of their own."""

from typing import ClassVar

import numpy as np
from scipy.spatial import cKDTree

from qc.filters.calibration import largest_by_chance
from qc.filters.distance import DistanceFilter
from qc.robust import robust_z

_LARGEST_SHARE = 4


class NeighboursFilter(DistanceFilter):
    """Small clusters by the distance to the k-th nearest neighbour (Ramaswamy et al., 2000).

    A fault that several episodes share bends mean and covariance towards itself: no Mahalanobis distance sees it. Of
    a cluster smaller than k, the k-th neighbour lies outside. Whether such a cluster is a shared fault or a second
    good way to do the task cannot be told from the motion, so it is for review. k is 20, or a quarter of the sample if
    that is less.
    """

    name: ClassVar[str] = "neighbours"
    neighbours: ClassVar[int] = 20

    def _distance(self, scores: np.ndarray) -> np.ndarray:
        return _kth_distance(scores, self.normal_, self._k(len(self.normal_)))

    def _chance(self, n: int, k: int) -> float:
        return largest_by_chance(_within, n, k, self.false_alarm, self.seed, self._k(n))

    def _k(self, n: int) -> int:
        return max(1, min(self.neighbours, n // _LARGEST_SHARE))

    def _what(self, distance: float) -> str:
        k = self._k(len(self.normal_))
        return f"its {k} nearest neighbours reach as far as {distance:.1f} robust deviations"


def _kth_distance(scores: np.ndarray, normal: np.ndarray, k: int) -> np.ndarray:
    distance, _ = cKDTree(normal).query(scores, k=[min(k + 1, len(normal))])  # an episode's nearest is itself
    return np.asarray(distance[:, 0])


def _within(samples: np.ndarray, k: int) -> np.ndarray:
    """Distances within each sample (m, n, d) of the quarter farthest out, where the largest one lies: (m, n // 4)."""
    scores = robust_z(samples, samples)
    count = scores.shape[1] // _LARGEST_SHARE
    far = np.argpartition(np.square(scores).sum(axis=-1), -count, axis=-1)[:, -count:]
    return np.array([_kth_distance(mine[out], mine, k) for mine, out in zip(scores, far, strict=True)])
