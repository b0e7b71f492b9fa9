"""Arrow columns as arrays."""

import numpy as np
import pyarrow as pa


def to_array(column: pa.ChunkedArray) -> np.ndarray:
    """Values of a column, (rows,) or (rows, size), in their own type; a missing number is NaN.

    Raises:
        ValueError: if rows are of different sizes, or hold no numbers.
    """
    joined = column.combine_chunks()
    joined = joined.combine_chunks() if isinstance(joined, pa.ChunkedArray) else joined
    kind = joined.type
    if pa.types.is_fixed_size_list(kind):
        flat = joined.flatten() if not joined.null_count else joined.values
        return _flat(flat).reshape(len(joined), kind.list_size)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        sizes = np.diff(joined.offsets.to_numpy())
        if len(sizes) and (sizes != sizes[0]).any():
            raise ValueError(f"rows of {sizes.min()} to {sizes.max()} numbers; the first differs at row "
                             f"{int(np.flatnonzero(sizes != sizes[0])[0])}")  # fmt: skip
        return _flat(joined.flatten()).reshape(len(joined), int(sizes[0]) if len(sizes) else 0)
    return _flat(joined)


def _flat(values: pa.Array) -> np.ndarray:
    if not (pa.types.is_floating(values.type) or pa.types.is_integer(values.type) or pa.types.is_boolean(values.type)):
        raise ValueError(f"holds {values.type}, not numbers")
    return np.asarray(values.to_numpy(zero_copy_only=False))
