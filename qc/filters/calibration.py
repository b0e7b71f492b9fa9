"""A cutoff that a clean sample crosses with a stated probability.

The probability is family-wise: of flagging anything at all in a clean sample of that size. A quantile of the data, or
a set contamination, would flag its share of any data, and again after each refit.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache

import numpy as np

_NUMBERS_AT_ONCE = 1 << 17
ROUNDS = 400
LARGEST = 400
"""Samples larger than this are not simulated: their largest value grows with the logarithm of their size."""


def largest_by_chance(
    statistic: Callable[..., np.ndarray], n: int, k: int, false_alarm: float, seed: int, *arguments: int
) -> float:
    """Value that the largest of a statistic exceeds with probability ``false_alarm`` in clean data.

    Monte Carlo over :data:`ROUNDS` samples of n standard normal k-vectors; remembered for sizes that hardly differ.

    Args:
        statistic: from samples (m, n, k), and the further arguments, to the values (m, :) among which is the largest.
    """
    if n > LARGEST:
        half, full = (_simulate(statistic, size, k, false_alarm, seed, *arguments) for size in (LARGEST // 2, LARGEST))
        return full + (full - half) * float(np.log2(n / LARGEST))
    step = 2 ** max(0, int(np.log2(n)) - 3)
    return _simulate(statistic, (n + step // 2) // step * step, k, false_alarm, seed, *arguments)


@lru_cache(maxsize=1024)
def _simulate(
    statistic: Callable[..., np.ndarray], n: int, k: int, false_alarm: float, seed: int, *arguments: int
) -> float:
    rng = np.random.default_rng(seed)
    at_once = max(1, _NUMBERS_AT_ONCE // (n * k))
    samples = [rng.standard_normal((min(at_once, ROUNDS - done), n, k)) for done in range(0, ROUNDS, at_once)]
    with ThreadPoolExecutor() as pool:
        largest = pool.map(lambda some: statistic(some, *arguments).max(axis=1), samples)
        return float(np.quantile(np.concatenate(list(largest)), 1.0 - false_alarm))
