"""Episodes without the ways that led them back to where they were: a correction is worth keeping, and no outlier."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from qc.episodes import Episode

_NEARLY_ALL = 0.9


Loop = tuple[str, int, int]
"""Phase that is entered again, and the rows (end exclusive) that led back to it."""


def find_loops(episodes: Sequence[Episode]) -> list[list[Loop]]:
    """Loops of each episode, in order.

    A loop leads from a phase, through others, back to it, where nine in ten successes of the task enter that phase once
    at most and some do. Of a phase that is entered again the last time counts, as in loop-erased walks.
    """
    by_task: dict[str, list[Episode]] = {}
    for episode in episodes:
        by_task.setdefault(episode.task, []).append(episode)
    once = {task: _entered_once(mine) for task, mine in by_task.items()}
    return [_loops(e, once[e.task]) for e in episodes]


def without_loops(episodes: Sequence[Episode]) -> list[Episode]:
    """Episodes as if each had gone straight on; those that make no loop are returned as they are."""
    return [_cut(e, found) if found else e for e, found in zip(episodes, find_loops(episodes), strict=True)]


def _loops(episode: Episode, once: set[str]) -> list[Loop]:
    path: list[Mapping[str, Any]] = []
    found = []
    for span in sorted(episode.phase_spans, key=lambda s: int(s["start"])):
        again = next((i for i, s in enumerate(path) if s["phase"] == span["phase"]), None)
        if again is not None and again < len(path) - 1 and span["phase"] in once:
            found.append((str(span["phase"]), int(path[again]["start"]), int(span["start"])))
            del path[again:]
        path.append(span)
    return found


def _entered_once(episodes: Sequence[Episode]) -> set[str]:
    good = [e for e in episodes if e.succeeded] or list(episodes)
    counts = [Counter(str(s["phase"]) for s in e.phase_spans) for e in good]
    return {phase for phase in set().union(*counts) if np.mean([c[phase] <= 1 for c in counts]) >= _NEARLY_ALL}


def _cut(episode: Episode, loops: Sequence[Loop]) -> Episode:
    kept = np.ones(episode.length, dtype=bool)
    for _, start, end in loops:
        kept[start:end] = False
    return episode.cut(np.flatnonzero(kept))
