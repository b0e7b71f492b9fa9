"""Checks of every row: ids dense, times on the grid, numbers finite, content as it was exported."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from numpy.typing import NDArray

from pipeline.export.digests import rows_digest
from pipeline.export.layout import TASKS_PATH
from pipeline.export.verify.findings import Finding
from pipeline.export.verify.tree import EPISODES, TOLERANCE_S, Columns, Member, Tree, read_numbers


def check_rows(tree: Tree) -> Iterator[Finding]:
    """Every row of every episode."""
    if list(tree.tasks) != list(range(len(tree.tasks))):
        yield Finding(TASKS_PATH, "", f"task_index runs {list(tree.tasks)[:8]}, readers take rows by their place")
    start = 0
    for place, member in enumerate(tree.members):
        bounds = (member.row["dataset_from_index"], member.row["dataset_to_index"])
        if member.number != place:
            yield Finding(EPISODES, f"row {place}", f"episode_index is {member.number}, expected {place}")
        if bounds != (start, start + member.length):
            expected = f"{start} to {start + member.length}"
            yield Finding(EPISODES, member.name, f"dataset index runs {bounds[0]} to {bounds[1]}, expected {expected}")
        start += member.length
    start = 0
    for file, members in tree.by_data_file():
        path = tree.root / file
        rows, wanted = pq.read_metadata(path).num_rows, sum(member.length for member in members)
        try:
            columns = read_numbers(path, tree.numeric)
        except (KeyError, ValueError) as error:
            yield Finding(file, "", f"does not hold the columns of info.json ({error})")
            start += rows
            continue
        first = 0
        for member in members:
            own = {key: values[first : first + member.length] for key, values in columns.items()}
            yield from _episode(tree, file, first, member, own, start)
            first, start = first + member.length, start + member.length
        if rows != wanted:
            last = members[-1]
            yield Finding(file, f"row {min(rows, wanted)}, {last.name}", f"{rows} rows, expected {wanted}")


def _episode(tree: Tree, file: str, first: int, member: Member, columns: Columns, start: int) -> Iterator[Finding]:
    step = np.arange(len(columns["index"]))
    expected: dict[str, NDArray[np.generic]] = {
        "episode_index": np.full_like(step, member.number),
        "frame_index": step,
        "index": start + step,
    }
    for key, values in expected.items():
        yield from _first_difference(file, first, member, key, columns[key] != values, columns[key], values)
    times = step / tree.fps
    late = np.abs(columns["timestamp"].astype(np.float64) - times) > TOLERANCE_S
    yield from _first_difference(file, first, member, "timestamp", late, columns["timestamp"], times)
    told = np.array([tree.tasks.get(int(index), "") for index in columns["task_index"]])
    foreign = ~np.isin(told, list(member.row["tasks"]))
    yield from _first_difference(file, first, member, "task", foreign, told, [member.row["tasks"]] * len(told))
    for key in tree.recorded:
        values = columns[key]
        if values.dtype.kind == "f":
            bad = ~np.isfinite(values).reshape(len(values), -1).all(axis=1)
            yield from _first_difference(file, first, member, key, bad, values, None)
    digest = member.row.get("rows_sha256")
    if digest and digest != rows_digest({key: columns[key] for key in tree.recorded}):
        where = f"rows {first} to {first + member.length - 1}, {member.name}"
        yield Finding(file, where, "hold other values than were exported (rows_sha256)")


def _first_difference(
    file: str, first: int, member: Member, key: str, bad: NDArray[np.generic], found: Any, wanted: Any
) -> Iterator[Finding]:
    """One finding for the first row that is wrong, with the number of others."""
    rows = np.flatnonzero(bad)
    if len(rows):
        row = int(rows[0])
        told = "not finite" if wanted is None else f"expected {wanted[row]}"
        more = f"; {len(rows) - 1} more rows" if len(rows) > 1 else ""
        yield Finding(file, f"row {first + row}, {member.name}", f"{key} is {found[row]}, {told}{more}")
