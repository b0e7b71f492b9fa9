"""How often each phase appears, and episodes that lack one."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import ClassVar, Self

import numpy as np
import pandas as pd

from qc.episodes import Episode
from qc.filters.base import Explanation, Filter, reference_rows

_USUAL = 0.95
_RARE_SHARE = 0.025
_RARE_EPISODES = 0.1


class PhasesFilter(Filter):
    """Episodes without a phase that nearly all others of their task pass through; the score is minus their number.

    A phase more is no fault: corrections are rare and worth keeping.
    """

    name: ClassVar[str] = "phases"

    def __init__(self, min_episodes: int = 10) -> None:
        self.min_episodes = min_episodes

    def fit(self, X: Sequence[Episode], y: None = None, *, reference: np.ndarray | None = None) -> Self:  # noqa: N803
        """Learn which phases are usual."""
        normal = [e for e, counts in zip(X, reference_rows(len(X), reference), strict=True) if counts]
        if len(normal) < self.min_episodes:
            return self._admit(f"{len(normal)} of {self.min_episodes} episodes needed")
        if not any(e.phase_spans for e in normal):
            return self._admit("no phases are recorded")
        self.episodes_ = tuple(X)
        seen = Counter(phase for e in normal for phase in _phases(e))
        self.usual_ = {phase for phase, count in seen.items() if count >= _USUAL * len(normal)}
        self.cutoff_, self.not_assessed_ = 0.0, ""
        return self

    def _score(self, X: Sequence[Episode]) -> np.ndarray:  # noqa: N803
        return 0.0 - np.array([len(self.usual_ - _phases(e)) for e in X], dtype=np.float64)

    def _explain(self, i: int) -> Explanation:
        lacking = sorted(self.usual_ - _phases(self.episodes_[i]))
        if not lacking:
            return Explanation("passes through every phase that is usual")
        return Explanation(f"never enters {', '.join(lacking)}, which others of the task do", {"lacking": lacking})


def phase_balance(episodes: Iterable[Episode]) -> pd.DataFrame:
    """How often each phase appears, per task and overall.

    Returns:
        One row a task (``*`` for all together) and phase: ``episodes`` and ``rows`` that have it, as shares; ``rare``
        if it makes up less than 2.5 % of the rows or is entered by less than 10 % of the episodes: in one published
        study such steps vanished from the policy while every overall number stayed healthy.
    """
    rows: Counter[tuple[str, str]] = Counter()
    entered: Counter[tuple[str, str]] = Counter()
    totals: Counter[str] = Counter()
    counts: Counter[str] = Counter()
    for episode in episodes:
        for task in (episode.task, "*"):
            totals[task] += episode.length
            counts[task] += 1
            for span in episode.phase_spans:
                rows[task, str(span["phase"])] += int(span["end"]) - int(span["start"])
            entered.update((task, phase) for phase in _phases(episode))
    table = [
        {"task": task, "phase": phase, "episodes": entered[task, phase] / counts[task], "rows": n / totals[task]}
        for (task, phase), n in sorted(rows.items())
    ]
    found = pd.DataFrame(table, columns=["task", "phase", "episodes", "rows"])
    return found.assign(rare=(found["rows"] < _RARE_SHARE) | (found["episodes"] < _RARE_EPISODES))


def _phases(episode: Episode) -> set[str]:
    return {str(span["phase"]) for span in episode.phase_spans}
