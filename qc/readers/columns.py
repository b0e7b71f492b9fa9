"""Parquet files, and Arrow columns as arrays."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

UNREADABLE = (OSError, UnicodeDecodeError, pa.ArrowException)
"""What opening or reading a Parquet file raises if it cannot be read."""

_NO_FOOTER = ("magic bytes", "footer", "too small")


class BadRowError(ValueError):
    """A row of a column that is of another size than wanted."""

    def __init__(self, row: int, found: int, wanted: int) -> None:
        super().__init__(f"row {row} holds {found} numbers, not {wanted}")
        self.row = row


def list_files(folder: Path) -> list[Path]:
    """Parquet files in the folders of a folder, in order; none if it is not there.

    Raises:
        OSError: if a folder may not be read.
    """
    if not folder.is_dir():
        return []
    return sorted(
        file for within in folder.iterdir() if within.is_dir() for file in within.iterdir() if file.suffix == ".parquet"
    )


def why_unreadable(error: Exception) -> str:
    """Why a Parquet file could not be read, in words, and what to do."""
    told = " ".join(str(error).split())
    if isinstance(error, PermissionError):
        return "may not be read; see to its permissions"
    if "size is 0 bytes" in told:
        return "is empty; fetch it again, or record its episodes again"
    if any(sign in told.lower() for sign in _NO_FOOTER):
        return "not finalized: its footer is missing; fetch it again, or record its episodes again and finalize them"
    return f"not readable ({told}); fetch it again, or record its episodes again"


def to_array(column: pa.ChunkedArray, size: int | None = None) -> np.ndarray:
    """Values of a column, (rows,) or (rows, size), in their own type; a missing number or row is NaN.

    Args:
        size: numbers wanted in a row; by default as many as the first holds.

    Raises:
        BadRowError: if a row is of another size.
        ValueError: if it holds no numbers.
    """
    joined = column.combine_chunks()
    joined = joined.combine_chunks() if isinstance(joined, pa.ChunkedArray) else joined
    kind = joined.type
    if not (pa.types.is_fixed_size_list(kind) or pa.types.is_list(kind) or pa.types.is_large_list(kind)):
        values = _flat(joined)
        if size not in (None, 1) and len(values):
            raise BadRowError(0, 1, size)
        return values
    sizes = pc.fill_null(pc.list_value_length(joined), -1).to_numpy(zero_copy_only=False)
    there = sizes >= 0
    size = int(sizes[there][0]) if size is None and there.any() else size or 0
    if len(wrong := np.flatnonzero(there & (sizes != size))):
        raise BadRowError(int(wrong[0]), int(sizes[wrong[0]]), size)
    values = _flat(joined.flatten()).reshape(int(there.sum()), size)
    if there.all():
        return values
    filled = np.full((len(there), size), np.nan, np.result_type(values, np.float32))
    filled[there] = values
    return filled


def to_integers(column: pa.ChunkedArray) -> np.ndarray:
    """Whole numbers of a column, (rows,) int64; -1 where one is missing.

    Raises:
        ValueError: if it holds anything else.
    """
    values: np.ndarray = to_array(column, 1).reshape(-1)
    if np.issubdtype(values.dtype, np.floating):
        values = np.where(np.isnan(values), -1, values)
        if not (np.mod(values, 1) == 0).all():
            raise ValueError("holds numbers that are not whole")
    return values.astype(np.int64)


def _flat(values: pa.Array) -> np.ndarray:
    if pa.types.is_boolean(values.type):
        values = values.cast(pa.uint8())
    if not (pa.types.is_floating(values.type) or pa.types.is_integer(values.type)):
        raise ValueError(f"holds {values.type}, not numbers")
    return np.asarray(values.to_numpy(zero_copy_only=False))
