"""Whether the episodes of a task differ as they should: randomisation that does not reach the motion is no data.

A policy trained on one template repeated learns the template. Three things must spread within each task: where its
parts start, how long its episodes take, and the paths of the tool.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.spatial.distance import pdist, squareform

from qc.episodes import EEF_POS, FIXED_POSE, HELD_POSE, STATE, Episode

PASS, FAIL, NOT_ASSESSED = "pass", "fail", "not assessed"

MIN_EPISODES = 8
"""Successes of a task below which nothing is said."""

FLOORS: Mapping[str, float] = {
    "held_start_m": 0.005,
    "length_rows": 2.0,
    "path_m": 0.010,
    "nearest_path_m": 0.001,
}
"""Least value of each figure, see :class:`Diversity`.

64 recorded episodes of each of the fourteen tasks measured 23 to 43 mm, 5.3 to 38 rows, 23 to 59 mm and 8.3 to 24 mm
(the least are the nuts', whose bolt is bolted down); one template with half a millimetre of noise lies below each.
"""

POINTS = 64

_ADVICE = {
    "held_start_m": "let the held part start elsewhere: widen the task's start ranges",
    "length_rows": "let the speed and the dwell of the motion vary: widen the task's competence ranges",
    "path_m": "let the motion vary: widen the task's start and competence ranges",
    "nearest_path_m": "look for episodes recorded twice: one run, or runs with the same seed, given together",
}


@dataclass(frozen=True)
class Diversity:
    """How much the successes of a task differ.

    Attributes:
        verdict: ``pass``, ``fail``, or ``not assessed``.
        episodes: successes that were compared.
        measured: figures by name; None where the episodes lack the columns. ``held_start_m``, ``fixed_start_m``: spread
            of each part's position in the first row, the root mean square distance from the mean. ``arm_start_rad``:
            the same of the arm's joints. The last two have no floor: a fixture may be bolted down and an arm may start
            at home. ``length_rows``: standard deviation of the
            length. ``path_m``: median distance of two tool paths, the root mean square over instants spread evenly over
            each episode. ``nearest_path_m``: median distance of a path from the one most like it.
        floors: least value of each figure that has one.
        advice: what to do about each figure below its floor; or what is missing.
    """

    verdict: str
    episodes: int
    measured: Mapping[str, float | None]
    floors: Mapping[str, float]
    advice: str


def diversity(episodes: Sequence[Episode], floors: Mapping[str, float] = FLOORS) -> dict[str, Diversity]:
    """Measure every task's successes against the floors."""
    tasks: dict[str, list[Episode]] = {}
    for episode in episodes:
        tasks.setdefault(episode.task, []).extend([episode] if episode.succeeded and episode.sound else [])
    return {task: _judge(members, floors) for task, members in tasks.items()}


def _judge(episodes: Sequence[Episode], floors: Mapping[str, float]) -> Diversity:
    n = len(episodes)
    if n < MIN_EPISODES:
        return Diversity(NOT_ASSESSED, n, {}, floors, f"{n} successes, diversity needs {MIN_EPISODES}: record more")
    measured = {
        "held_start_m": _start(episodes, HELD_POSE),
        "fixed_start_m": _start(episodes, FIXED_POSE),
        "arm_start_rad": _arm_start(episodes),
        "length_rows": float(np.std([e.length for e in episodes], ddof=1)),
        **_paths(episodes),
    }
    low = [name for name, floor in floors.items() if (value := measured[name]) is not None and value < floor]
    unknown = [name for name in floors if measured[name] is None]
    advice = [f"{name} {measured[name]:.2g} is below {floors[name]:.2g}: {_ADVICE[name]}" for name in low]
    advice += [f"{', '.join(unknown)}: not recorded"] if unknown else []
    return Diversity(FAIL if low else NOT_ASSESSED if unknown else PASS, n, measured, floors, "; ".join(advice))


def _spread(rows: np.ndarray) -> float:
    """Root mean square distance of rows (n, k) from their mean."""
    return float(np.sqrt(rows.astype(np.float64).var(axis=0, ddof=1).sum()))


def _start(episodes: Sequence[Episode], part: str) -> float | None:
    if not all(part in e.frames for e in episodes):
        return None
    return _spread(np.stack([e.frames[part][0, :3] for e in episodes]))


def _arm_start(episodes: Sequence[Episode]) -> float | None:
    if not all(STATE in e.frames for e in episodes):
        return None
    return _spread(np.stack([e.arm(STATE)[0] for e in episodes]))


def _paths(episodes: Sequence[Episode]) -> dict[str, float | None]:
    if not all(EEF_POS in e.frames for e in episodes):
        return {"path_m": None, "nearest_path_m": None}
    paths = np.stack([_resampled(e.frames[EEF_POS]) for e in episodes])
    distances = pdist(paths.reshape(len(paths), -1)) / np.sqrt(POINTS)
    square = squareform(distances)
    np.fill_diagonal(square, np.inf)
    return {"path_m": float(np.median(distances)), "nearest_path_m": float(np.median(square.min(axis=1)))}


def _resampled(path: np.ndarray) -> np.ndarray:
    """Positions (POINTS, 3) at instants spread evenly over the rows of (length, 3)."""
    rows, at = np.arange(len(path)), np.linspace(0.0, len(path) - 1, POINTS)
    return np.column_stack([np.interp(at, rows, axis) for axis in path.astype(np.float64).T])
