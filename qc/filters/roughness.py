"""Motion that trembles, or that leaps once, told for each dimension."""

from collections.abc import Callable, Sequence
from itertools import batched, pairwise
from typing import Any, ClassVar

import numpy as np

from qc.episodes import ACTION, EEF_POS, STATE, Episode
from qc.filters.features import FeatureFilter
from qc.units import bounds, reach, stack

_DECADE = 0.1
_LEAST = {"jitter": 10**-3.3, "spikes": 10**-2.0}
_LEAST_OUT = 10**-2.2
_AT_ONCE = 64


class _RoughnessFilter(FeatureFilter):
    """Change of velocity from row to row, of each dimension of arm and tool, as a part of its range, log10."""

    upper_only: ClassVar[bool] = True
    summary: ClassVar[Callable[[np.ndarray], np.ndarray]]

    def _prepare(self, normal: Sequence[Episode]) -> tuple[tuple[str, ...], np.ndarray]:
        first = normal[0]
        self.columns_ = [c for c in (STATE, ACTION, EEF_POS) if all(c in e.frames for e in normal)]
        self.reach_ = {c: reach(_stack(normal, c)) for c in self.columns_}
        if EEF_POS in self.reach_:
            self.reach_[EEF_POS][:] = self.reach_[EEF_POS].max()
        names = [(c, n) for c in self.columns_ for n in _names(first, c)]
        return tuple(f"{c}, {n}" for c, n in names), np.full(len(names), _DECADE)

    def _measure(self, episodes: Sequence[Episode]) -> np.ndarray:
        changes = (each for some in batched(episodes, _AT_ONCE) for each in self._changes(some))
        return np.log10(_LEAST[self.name] + np.array([type(self).summary(each) for each in changes]))

    def _changes(self, episodes: Sequence[Episode]) -> list[np.ndarray]:
        """Of each episode (length - 2, k), or a single row of zeros."""
        return _apart(np.abs(np.diff(self._stack(episodes), n=2, axis=0)), episodes)

    def _stack(self, episodes: Sequence[Episode]) -> np.ndarray:
        """All rows, one under another, (rows, k)."""
        return np.hstack([_stack(episodes, c) / self.reach_[c] for c in self.columns_])

    def _tell(self, episode: Episode, worst: int) -> tuple[str, dict[str, Any]]:
        changes = self._changes([episode])[0][:, worst]
        row = int(changes.argmax()) + 1
        return self._words(self.names_[worst], row, changes), {"frame": row, "change": float(changes.max())}

    def _words(self, dimension: str, row: int, changes: np.ndarray) -> str:
        raise NotImplementedError


class JitterFilter(_RoughnessFilter):
    """Episodes that tremble all along: the median change of velocity, which a few honest jolts do not raise."""

    name: ClassVar[str] = "jitter"
    summary: ClassVar[Callable[[np.ndarray], np.ndarray]] = staticmethod(lambda x: np.median(x, axis=0))

    def _words(self, dimension: str, row: int, changes: np.ndarray) -> str:
        return f"{dimension} trembles by {np.median(changes):.2%} of its range from row to row"


class SpikesFilter(_RoughnessFilter):
    """Episodes that leap once: the largest change of velocity, and how far a row sticks out from both its neighbours.

    The latter is nothing while a joint moves one way, however fast, so that a small leap of one row shows.
    """

    name: ClassVar[str] = "spikes"
    summary: ClassVar[Callable[[np.ndarray], np.ndarray]] = staticmethod(lambda x: x.max(axis=0))

    def _prepare(self, normal: Sequence[Episode]) -> tuple[tuple[str, ...], np.ndarray]:
        names, resolution = super()._prepare(normal)
        return names * 2, np.tile(resolution, 2)

    def _measure(self, episodes: Sequence[Episode]) -> np.ndarray:
        out = [each.max(axis=0) for some in batched(episodes, _AT_ONCE) for each in self._sticks_out(some)]
        return np.hstack([super()._measure(episodes), np.log10(_LEAST_OUT + np.array(out))])

    def _sticks_out(self, episodes: Sequence[Episode]) -> list[np.ndarray]:
        """Of each episode (length - 2, k), or a single row of zeros."""
        x = self._stack(episodes)
        before, at, after = x[:-2], x[1:-1], x[2:]
        out = np.maximum(at - np.maximum(before, after), np.minimum(before, after) - at)
        return _apart(np.maximum(out, 0.0), episodes)

    def _tell(self, episode: Episode, worst: int) -> tuple[str, dict[str, Any]]:
        size = len(self.names_) // 2
        if worst < size:
            return super()._tell(episode, worst)
        out = self._sticks_out([episode])[0][:, worst - size]
        row = int(out.argmax()) + 1
        told = f"{self.names_[worst]} leaps out and back by {out.max():.1%} of its range at frame {row}"
        return told, {"frame": row, "change": float(out.max())}

    def _words(self, dimension: str, row: int, changes: np.ndarray) -> str:
        return f"{dimension} leaps by {changes.max():.1%} of its range at frame {row}"


def _apart(inner: np.ndarray, episodes: Sequence[Episode]) -> list[np.ndarray]:
    """What belongs to each episode, of what was found for all rows but the first and the last, (rows - 2, k)."""
    ends = bounds(np.array([e.length for e in episodes])).tolist()
    return [inner[a : b - 2] if b - a > 2 else np.zeros((1, inner.shape[1])) for a, b in pairwise(ends)]


def _stack(episodes: Sequence[Episode], column: str) -> np.ndarray:
    if column == EEF_POS:
        return np.concatenate([e.frames[EEF_POS] for e in episodes], dtype=np.float64)
    return stack(episodes, column)


def _names(episode: Episode, column: str) -> list[str]:
    if column == EEF_POS:
        return ["x", "y", "z"]
    return [episode.layout.names[column][i] for i in episode.layout.arm(column)]
