"""Few numbers for many columns: principal components that a handful of bad episodes cannot turn their way."""

from typing import Self

import numpy as np
from scipy.linalg import eigh

from qc.estimator import Estimator
from qc.robust import robust_z, winsorise

_ROWS_PER_COMPONENT = 8
_TINY = np.finfo(np.float64).tiny


def components_for(n: int, wanted: int) -> int:
    """Number of components that n rows can tell: one for each eight of them, two at least."""
    return min(wanted, max(2, n // _ROWS_PER_COMPONENT), n)


class RobustPCA(Estimator):
    """Principal component scores and the logarithm of what they leave out, each in robust deviations.

    Far rows are pulled back to the median distance before the axes are found, as in spherical principal components
    (Locantore et al., 1999). The residual counts as one more component (the SPE chart of process control, Jackson and
    Mudholkar, 1979): it holds the defects that no clean episode resembles.

    Args:
        components: number of components wanted; at most two, or one for each eight rows, are used.
        groups: (d,) labels of columns. Each group weighs the same, however many columns it has, as in multiple factor
            analysis (Escofier and Pages, 1994); None gives each column the same weight.

    Attributes:
        center_: (d,) median.
        axes_: (k, d), orthonormal, in order of spread.
        explained_: (k,) part of the (pulled-back) variance along each axis.
    """

    def __init__(self, components: int = 9, groups: np.ndarray | None = None) -> None:
        self.components = components
        self.groups = groups

    def fit(self, X: np.ndarray, y: None = None) -> Self:  # noqa: N803
        """Find the axes of standardised columns, (n, d)."""
        weighted = self._weigh(X)
        self.center_ = np.median(weighted, axis=0)
        centered = weighted - self.center_
        pulled = winsorise(centered, float(np.median(np.linalg.norm(centered, axis=1))))
        pulled -= pulled.mean(axis=0)
        n = len(pulled)
        k = components_for(n, self.components)
        # Far fewer rows than columns: the axes come from the products of rows.
        variance, along_rows = eigh(pulled @ pulled.T, subset_by_index=(n - k, n - 1))
        axes = along_rows.T[::-1] @ pulled
        sign = np.sign(axes[np.arange(k), np.abs(axes).argmax(axis=1)])
        self.axes_ = axes * (sign / np.maximum(np.linalg.norm(axes, axis=1), _TINY))[:, None]
        self.explained_ = variance[::-1] / max(float((pulled**2).sum()), _TINY)
        self.fitted_ = self._scores(weighted)
        return self

    def transform(self, X: np.ndarray) -> np.ndarray:  # noqa: N803
        """Scores of rows (m, d): (m, k + 1), about standard normal where the fitted rows are normal."""
        return robust_z(self._scores(self._weigh(X)), self.fitted_)

    def _weigh(self, x: np.ndarray) -> np.ndarray:
        if self.groups is None:
            return np.asarray(x, dtype=np.float64)
        _, group, size = np.unique(self.groups, return_inverse=True, return_counts=True)
        return x / np.sqrt(size[group])

    def _scores(self, weighted: np.ndarray) -> np.ndarray:
        centered = weighted - self.center_
        scores = centered @ self.axes_.T
        left = np.square(centered - scores @ self.axes_).sum(axis=1)
        return np.column_stack([scores, np.log(left + _TINY)])
