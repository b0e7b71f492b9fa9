"""The contract of a filter."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np

from qc.estimator import Estimator

NORMAL, NOT_ASSESSED, OUTLIER = 1, 0, -1


@dataclass(frozen=True)
class Explanation:
    """Why an episode was judged as it was: one sentence, and the numbers behind it."""

    sentence: str
    evidence: Mapping[str, Any] = field(default_factory=dict)


class Filter(Estimator, ABC):
    """An outlier detector that can say why, and that admits when it has too little to go by.

    Attributes:
        name: name of the filter in tables and settings.
        cutoff_: rows that score lower are outliers; NaN if not assessed.
        not_assessed_: why nothing can be said of any row; empty if something can.
    """

    name: ClassVar[str]
    cutoff_: float
    not_assessed_: str
    _kind = "outlier_detector"

    @abstractmethod
    def fit(self, X: Any, y: None = None, *, reference: np.ndarray | None = None) -> Self:  # noqa: N803
        """Learn what is normal.

        Args:
            X: n rows or episodes.
            y: ignored.
            reference: (n,) bool, those to learn from; all by default.
        """

    def score_samples(self, X: Any) -> np.ndarray:  # noqa: N803
        """Score of each row of ``X``, (n,): the higher the more normal; NaN if not assessed."""
        return np.full(len(X), np.nan) if self.not_assessed_ else self._score(X)

    def predict(self, X: Any) -> np.ndarray:  # noqa: N803
        """+1 for each normal row of ``X``, -1 for each outlier, 0 for all if not assessed."""
        if self.not_assessed_:
            return np.full(len(X), NOT_ASSESSED)
        return np.where(self._score(X) < self.cutoff_, OUTLIER, NORMAL)

    def fit_predict(self, X: Any, y: None = None) -> np.ndarray:  # noqa: N803
        """:meth:`fit`, then :meth:`predict` for the same rows."""
        return self.fit(X).predict(X)

    def explain(self, i: int) -> Explanation:
        """Say how the ``i``-th row given to :meth:`fit` was judged."""
        return Explanation(f"not assessed: {self.not_assessed_}") if self.not_assessed_ else self._explain(i)

    def _admit(self, why: str) -> Self:
        """Answer NOT ASSESSED from now on."""
        self.cutoff_, self.not_assessed_ = float("nan"), why
        return self

    @abstractmethod
    def _score(self, X: Any) -> np.ndarray: ...  # noqa: N803

    @abstractmethod
    def _explain(self, i: int) -> Explanation: ...


def reference_rows(n: int, reference: np.ndarray | None) -> np.ndarray:
    """Mask (n,) of the rows to learn from."""
    return np.ones(n, dtype=bool) if reference is None else np.asarray(reference, dtype=bool)
