"""At which rows episodes are compared."""

from collections.abc import Mapping, Sequence

import numpy as np

from qc.episodes import Episode

_NEARLY_ALL = 0.9


def instants(episodes: Sequence[Episode], points: int) -> np.ndarray:
    """Rows (n, points), fractional, that stand for the same moments of a task.

    Evenly spread over each episode. Where nine in ten successes of a task enter a phase once, its beginning is set at
    their median share of time, and the instants between are spread evenly: a longer dwell then does not shift what
    follows it. Episodes that lack the phase, or return to it, go without.
    """
    shares = np.linspace(0.0, 1.0, points)
    last = np.array([e.length - 1 for e in episodes], dtype=np.float64)
    at = shares * last[:, None]
    for task in sorted({e.task for e in episodes}):
        members = [i for i, e in enumerate(episodes) if e.task == task]
        begins = {i: _once(episodes[i]) for i in members}
        good = [i for i in members if episodes[i].succeeded]
        usual = _usual([begins[i] for i in good], last[good])
        for i in members:
            mine = [(usual[name], row) for name, row in begins[i].items() if name in usual]
            rows = [row for _, row in sorted(mine)]
            if rows and rows == sorted(set(rows)):
                at[i] = np.interp(shares, [0.0, *sorted(share for share, _ in mine), 1.0], [0.0, *rows, last[i]])
    return at


def _usual(begins: Sequence[Mapping[str, int]], last: np.ndarray) -> dict[str, float]:
    """Median share of time at which each phase begins that nearly all enter once."""
    shares: dict[str, list[float]] = {}
    for mine, end in zip(begins, last, strict=True):
        for name, row in mine.items():
            shares.setdefault(name, []).append(row / max(end, 1.0))
    return {name: float(np.median(of)) for name, of in shares.items() if len(of) >= _NEARLY_ALL * len(begins)}


def _once(episode: Episode) -> dict[str, int]:
    """First row of each phase that an episode enters once, after its first row."""
    begins: dict[str, list[int]] = {}
    for span in episode.phase_spans:
        begins.setdefault(str(span["phase"]), []).append(int(span["start"]))
    return {name: rows[0] for name, rows in begins.items() if len(rows) == 1 and 0 < rows[0] < episode.length - 1}
