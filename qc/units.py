"""The size of a dimension, measured in the data, so that no unit decides a verdict."""

from collections.abc import Sequence

import numpy as np

from qc.episodes import ACTION, STATE, Episode
from qc.robust import quantiles

_SAMPLE = 20_000
_LEAST_SHARE = 1e-3
_ROUNDING = 64 * np.finfo(np.float32).eps
_TINY = np.finfo(np.float64).tiny


def reach(values: np.ndarray, of: np.ndarray | None = None) -> np.ndarray:
    """Robust range of each column of rows (n, k), in its own unit: from the 0.5th to the 99.5th percentile.

    A column that hardly moves counts as a thousandth of the widest at least, and as what float32 can tell apart at its
    values: rounding is no motion.

    Args:
        of: (n,) bool, the rows that count; all by default.
    """
    rows = np.arange(len(values)) if of is None else np.flatnonzero(of)
    if not len(rows):
        return np.ones(values.shape[1])
    some = values[rows[:: max(1, len(rows) // _SAMPLE)]]
    low, high = quantiles(some, 0.005, 0.995)
    wide = high - low
    least = np.maximum(_LEAST_SHARE * wide.max(initial=0.0), _ROUNDING * np.abs(some).max(axis=0))
    return np.maximum(np.maximum(wide, least), _TINY)


def stack(episodes: Sequence[Episode], column: str) -> np.ndarray:
    """What of state or action is no gripper, of all episodes, one under another, as recorded (float64)."""
    return np.concatenate([e.arm(column) for e in episodes], dtype=np.float64)


def motions(episodes: Sequence[Episode]) -> list[np.ndarray]:
    """Measured and commanded motion of each episode, (length, k) float64: the arm's columns, then the grippers'."""
    there = [column for column in (STATE, ACTION) if column in episodes[0].layout.names]
    arms = [stack(episodes, column) for column in there]
    grippers = [np.concatenate([e.gripper(column) for e in episodes], dtype=np.float64) for column in there]
    return np.split(np.hstack([*arms, *grippers]), np.cumsum([e.length for e in episodes])[:-1])


def arm_columns(episodes: Sequence[Episode]) -> int:
    """How many columns of :func:`motions` are the arm's."""
    return sum(len(episodes[0].layout.arm(column)) for column in (STATE, ACTION))


def moving(values: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Which columns of rows (n, k) move within any episode by more than float32 rounds, (k,) bool."""
    starts = bounds(lengths)[:-1]
    high, low = np.maximum.reduceat(values, starts), np.minimum.reduceat(values, starts)
    size = np.maximum(np.abs(high), np.abs(low)).max(axis=0)
    return np.asarray((high - low > _ROUNDING * size).any(axis=0))


def bounds(lengths: np.ndarray) -> np.ndarray:
    """First row of each of n episodes that lie one under another, and one past the last: (n + 1,)."""
    return np.concatenate([[0], np.cumsum(lengths)])
