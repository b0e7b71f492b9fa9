"""All rows of a dataset, one under another, and who is told what is wrong with them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

Spans = Sequence[tuple[int, slice]]
"""Index of each episode and its rows."""

_SHOWN = 5


class Note(Protocol):
    """Remembers a finding about an episode whose first row is ``row``."""

    def __call__(self, index: int, kind: str, told: str, row: int, frame: int, harmful: bool = True) -> None:
        """Remember one."""


@dataclass(frozen=True)
class Rows:
    """All rows of a dataset, one under another, by column; and the file of each."""

    columns: Mapping[str, np.ndarray]
    file_of_row: np.ndarray
    files: tuple[str, ...]

    def spans(self) -> Iterator[tuple[int, slice]]:
        """Each stretch of rows with one episode index."""
        index = self.columns.get("episode_index", np.zeros(0, np.int64))
        edges = np.r_[0, np.flatnonzero(np.diff(index)) + 1, len(index)] if len(index) else np.zeros(1, np.int64)
        for a, b in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
            yield int(index[a]), slice(a, b)

    def file(self, row: int) -> str:
        """File of a row."""
        return self.files[self.file_of_row[row]]

    def row_in_file(self, row: int) -> int:
        """Place of a row in its file."""
        return int((self.file_of_row[:row] == self.file_of_row[row]).sum())


def some(indices: Sequence[int], count: int | None = None) -> str:
    """The first few of so many, in words."""
    more = (len(indices) if count is None else count) - len(indices[:_SHOWN])
    shown = ", ".join(map(str, indices[:_SHOWN]))
    return f"{shown} and {more} more" if more else shown
