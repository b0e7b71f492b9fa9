"""Few numbers for many columns: principal components that a handful of bad episodes cannot turn their way."""

from typing import Self

import numpy as np
from scipy.linalg import eigh
from sklearn.base import BaseEstimator, TransformerMixin

_MAD_TO_SD = 1.4826
_ROWS_PER_COMPONENT = 6
_TINY = np.finfo(np.float64).tiny


def robust_z(x: np.ndarray, reference: np.ndarray) -> np.ndarray:
    """Columns of ``x`` (n, k) in robust deviations (1.4826 median absolute deviations) from the reference's median."""
    normal = x[reference]
    median = np.median(normal, axis=0)
    spread = _MAD_TO_SD * np.median(np.abs(normal - median), axis=0)
    return (x - median) / np.where(spread > 0, spread, 1.0)


def winsorise(x: np.ndarray, radius: float) -> np.ndarray:
    """Rows of ``x`` (n, k) pulled back onto a sphere around the origin where they lie outside."""
    norm = np.linalg.norm(x, axis=1, keepdims=True)
    return x * np.minimum(1.0, radius / np.where(norm > 0, norm, 1.0))


class RobustPCA(TransformerMixin, BaseEstimator):  # type: ignore[misc]  # untyped
    """Principal component scores and the logarithm of what they leave out, each in robust deviations.

    Far rows are pulled back to the median distance before the axes are found (as in spherical components, Locantore
    et al., 1999), and scores are scaled by median absolute deviation: with standard deviations four bad episodes in
    sixty hide themselves. The residual counts as one more component (the SPE chart of process control, Jackson and
    Mudholkar, 1979): it holds the defects that no clean episode resembles.

    Args:
        components: number of components wanted; at most two, or one for each six reference rows, are used.
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

    def fit(self, X: np.ndarray, y: None = None, *, reference: np.ndarray | None = None) -> Self:  # noqa: N803
        """Find the axes of standardised columns (n, d) from the reference rows (all by default)."""
        rows = np.ones(len(X), dtype=bool) if reference is None else reference
        weighted = self._weigh(X)
        normal = weighted[rows]
        self.center_ = np.median(normal, axis=0)
        normal = normal - self.center_
        pulled = winsorise(normal, float(np.median(np.linalg.norm(normal, axis=1))))
        pulled -= pulled.mean(axis=0)
        k = min(self.components, max(2, len(normal) // _ROWS_PER_COMPONENT), len(normal))
        # Far fewer rows than columns: the axes come from the products of rows.
        variance, rows_along = eigh(pulled @ pulled.T, subset_by_index=(len(normal) - k, len(normal) - 1))
        axes = rows_along.T[::-1] @ pulled
        sign = np.sign(axes[np.arange(k), np.abs(axes).argmax(axis=1)])
        self.axes_ = axes * (sign / np.maximum(np.linalg.norm(axes, axis=1), _TINY))[:, None]
        self.explained_ = variance[::-1] / max(float((pulled**2).sum()), _TINY)
        self._normal = self._raw_scores(weighted)[rows]
        return self

    def transform(self, X: np.ndarray) -> np.ndarray:  # noqa: N803
        """Scores of rows (n, d): (n, k + 1), about standard normal where the reference is normal."""
        raw = self._raw_scores(self._weigh(X))
        stacked = np.vstack([self._normal, raw])
        return robust_z(stacked, np.arange(len(stacked)) < len(self._normal))[len(self._normal) :]

    def _weigh(self, x: np.ndarray) -> np.ndarray:
        if self.groups is None:
            return np.asarray(x, dtype=np.float64)
        _, group, size = np.unique(self.groups, return_inverse=True, return_counts=True)
        return x / np.sqrt(size[group])

    def _raw_scores(self, weighted: np.ndarray) -> np.ndarray:
        centered = weighted - self.center_
        scores = centered @ self.axes_.T
        left = np.square(centered - scores @ self.axes_).sum(axis=1)
        return np.column_stack([scores, np.log(left + _TINY)])
