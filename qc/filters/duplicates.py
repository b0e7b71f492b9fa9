"""Episodes that were recorded twice."""

from collections import defaultdict
from collections.abc import Sequence
from typing import ClassVar, Self

import numpy as np

from qc.episodes import Episode
from qc.filters.base import Explanation, Filter, reference_rows


class DuplicatesFilter(Filter):
    """Exact duplicates: equal state and action in every row. The first in order of id is the original.

    Equal motion with another outcome or another task is no duplicate but a contradiction: which of the labels is
    right is for a person to say, so all of them are in conflict and none is an outlier.

    The score is minus the number of equal episodes that come before; the cutoff is 0.
    """

    name: ClassVar[str] = "duplicates"

    def fit(self, X: Sequence[Episode], y: None = None, *, reference: np.ndarray | None = None) -> Self:  # noqa: N803
        """Hash the motion of each episode; one is enough."""
        self.cutoff_, self.not_assessed_ = 0.0, ""
        self.episodes_ = tuple(X)
        self.equal_: dict[str, list[Episode]] = defaultdict(list)
        rows = reference_rows(len(X), reference)
        for episode, counts in sorted(zip(X, rows, strict=True), key=lambda pair: pair[0].id):
            if counts:
                self.equal_[episode.motion].append(episode)
        return self

    def conflicts(self, X: Sequence[Episode]) -> np.ndarray:  # noqa: N803
        """Whether each episode's motion is on record with another outcome or task, (n,) bool."""
        return np.array([self._contradicts(self._twins(e), e) for e in X], dtype=bool)

    def _score(self, X: Sequence[Episode]) -> np.ndarray:  # noqa: N803
        scores = np.zeros(len(X))
        for i, episode in enumerate(X):
            twins = self._twins(episode)
            if not self._contradicts(twins, episode):
                scores[i] = -sum(twin.id < episode.id for twin in twins)
        return scores

    def _twins(self, episode: Episode) -> list[Episode]:
        return [twin for twin in self.equal_.get(episode.motion, ()) if twin.id != episode.id]

    @staticmethod
    def _contradicts(twins: Sequence[Episode], episode: Episode) -> bool:
        return len({(e.task, e.outcome) for e in (*twins, episode)}) > 1

    def _explain(self, i: int) -> Explanation:
        episode = self.episodes_[i]
        twins = self._twins(episode)
        evidence = {"motion_sha256": episode.motion, "equal": [twin.id for twin in twins]}
        if self._contradicts(twins, episode):
            labels = ", ".join(f"{e.id} ({e.task}, {e.outcome})" for e in twins)
            return Explanation(f"same state and action in every row as {labels}: only one label can be right", evidence)
        before = [twin.id for twin in twins if twin.id < episode.id]
        if before:
            return Explanation(f"same state and action in every row as {before[0]}", evidence)
        return Explanation("no earlier episode moves the same way", evidence)
