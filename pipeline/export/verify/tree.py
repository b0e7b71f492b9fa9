"""A dataset as its own metadata describes it."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from pipeline.errors import UserError
from pipeline.export.layout import BOOKKEEPING, CODEBASE_VERSION, INFO_PATH, MANIFEST_PATH, STATS_PATH, TASKS_PATH

EPISODES = "meta/episodes"

TOLERANCE_S = 1e-4
"""How far LeRobot lets a time be off."""

Columns = Mapping[str, NDArray[np.generic]]


@dataclass(frozen=True)
class Member:
    """One episode, by its row of ``meta/episodes``."""

    number: int
    row: Mapping[str, Any]

    @property
    def length(self) -> int:
        """Number of rows."""
        return int(self.row["length"])

    @property
    def name(self) -> str:
        """How a person finds it."""
        own = self.row.get("episode_id")
        return f"episode {self.number}" + (f" ({own})" if own else "")


class Tree:
    """Reads a LeRobot v3.0 dataset folder with nothing but pyarrow.

    Args:
        root: the folder.

    Raises:
        UserError: if there is no such dataset in ``root``.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        try:
            self.info: dict[str, Any] = json.loads((root / INFO_PATH).read_text())
            version = self.info["codebase_version"]
            absent = [key for key in ("fps", "features", "data_path") if key not in self.info]
            if absent:
                raise KeyError(*absent)
        except (FileNotFoundError, NotADirectoryError):
            raise UserError(
                f"{root}: no LeRobot dataset here ({INFO_PATH} is missing); make one with `demomill export`"
            ) from None
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise UserError(
                f"{root / INFO_PATH}: not readable as a dataset description ({error!r}); export or download it again"
            ) from None
        if version != CODEBASE_VERSION:
            raise UserError(
                f"{root}: a LeRobot {version} dataset; only {CODEBASE_VERSION} can be verified, convert it with "
                "LeRobot's own script"
            )

    @cached_property
    def manifest(self) -> dict[str, Any] | None:
        """Our own manifest; None for datasets that others wrote.

        Raises:
            UserError: if it is not JSON.
        """
        path = self.root / MANIFEST_PATH
        try:
            return dict(json.loads(path.read_text())) if path.is_file() else None
        except (ValueError, TypeError) as error:
            raise UserError(f"{path}: not readable as a manifest ({error}); export again") from None

    @property
    def ours(self) -> bool:
        """Whether `demomill export` wrote it."""
        return self.manifest is not None

    @property
    def fps(self) -> int:
        """Rows per second."""
        return int(self.info["fps"])

    @cached_property
    def statistics(self) -> dict[str, Any]:
        """Content of ``meta/stats.json``."""
        return json.loads((self.root / STATS_PATH).read_text())

    @cached_property
    def tasks(self) -> dict[int, str]:
        """Instructions by task index, in the order of the file."""
        table = pd.read_parquet(self.root / TASKS_PATH)
        return {int(index): str(task) for task, index in zip(table.index, table["task_index"], strict=True)}

    @cached_property
    def members(self) -> list[Member]:
        """Episodes, in the order of ``meta/episodes``."""
        rows = [row for path in self.paths("meta/episodes/*/*.parquet") for row in pq.read_table(path).to_pylist()]
        return [Member(int(row["episode_index"]), row) for row in rows]

    @property
    def cameras(self) -> list[str]:
        """Keys of the videos."""
        return [key for key, feature in self.info["features"].items() if feature["dtype"] == "video"]

    @property
    def numeric(self) -> list[str]:
        """Keys of the columns of numbers, bookkeeping included."""
        return [
            key
            for key, feature in self.info["features"].items()
            if feature["dtype"] not in ("video", "image", "string", "language")
        ]

    @property
    def recorded(self) -> list[str]:
        """Keys of the columns of numbers that were recorded."""
        bookkeeping = {feature.key for feature in BOOKKEEPING}
        return [key for key in self.numeric if key not in bookkeeping]

    def is_aligned(self) -> bool:
        """Whether every data file has as many rows as its episodes, so that rows can be assigned to episodes."""
        return all(
            pq.read_metadata(self.root / file).num_rows == sum(member.length for member in members)
            and set(self.numeric) <= set(pq.read_schema(self.root / file).names)
            for file, members in self.by_data_file()
        )

    @property
    def episode_columns(self) -> set[str]:
        """What ``meta/episodes`` must say of each episode."""
        places = [f"videos/{key}" for key in self.cameras]
        spans = {f"{place}/{end}_timestamp" for place in places for end in ("from", "to")}
        files = {f"{place}/{part}_index" for place in ("data", *places) for part in ("chunk", "file")}
        return {"episode_index", "length", "tasks", "dataset_from_index", "dataset_to_index", *files, *spans}

    def paths(self, pattern: str) -> list[Path]:
        """Files, in order."""
        return sorted(self.root.glob(pattern))

    def shown(self, path: Path) -> str:
        """Path within the dataset."""
        return path.relative_to(self.root).as_posix()

    def data_file(self, member: Member) -> str:
        """Data file of an episode."""
        row = member.row
        return str(self.info["data_path"]).format(
            chunk_index=row["data/chunk_index"], file_index=row["data/file_index"]
        )

    def video_file(self, member: Member, key: str) -> str:
        """Video file of an episode."""
        row = member.row
        return str(self.info["video_path"]).format(
            video_key=key, chunk_index=row[f"videos/{key}/chunk_index"], file_index=row[f"videos/{key}/file_index"]
        )

    def by_data_file(self) -> Iterator[tuple[str, list[Member]]]:
        """Data files and their episodes."""
        for file, members in groupby(self.members, self.data_file):
            yield file, list(members)

    def by_video_file(self, key: str) -> Iterator[tuple[str, list[Member]]]:
        """Video files of a camera and their episodes."""
        for file, members in groupby(self.members, lambda member: self.video_file(member, key)):
            yield file, list(members)

    def episodes(self) -> Iterator[tuple[Member, Columns]]:
        """Each episode with its columns, as arrays (length, ...) in the type of the file."""
        for file, members in self.by_data_file():
            columns, start = read_numbers(self.root / file, self.numeric), 0
            for member in members:
                yield member, {key: values[start : start + member.length] for key, values in columns.items()}
                start += member.length


def read_numbers(path: Path, keys: list[str]) -> dict[str, NDArray[np.generic]]:
    """Columns of a data file, (rows,) or (rows, size).

    Raises:
        KeyError: if a column is missing.
        ValueError: if a column does not hold numbers, as many in every row.
    """
    table = pq.read_table(path, columns=keys)
    return {key: _numbers(table[key].combine_chunks()) for key in keys}


def _numbers(column: pa.Array) -> NDArray[np.generic]:
    if pa.types.is_list(column.type) or pa.types.is_large_list(column.type):
        size = len(column[0]) if len(column) else 0
        column = column.cast(pa.list_(column.type.value_type, size))
    flat = column.flatten() if pa.types.is_fixed_size_list(column.type) else column
    values = np.asarray(flat.to_numpy(zero_copy_only=False))
    return values.reshape(len(column), -1) if flat is not column else values
