"""What a LeRobot dataset says of its episodes and tasks, and where their videos are."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq

from qc.episodes import Finding
from qc.errors import QcError
from qc.readers.columns import UNREADABLE, list_files, why_unreadable
from qc.readers.lerobot_info import Info, read_info

Place = tuple[str, float, float]
"""File, first and last second of an episode's video."""

_OURS = ("episode_id", "task_id", "outcome", "reason", "env_index", "phases", "content_hash")
_TOLD = ("episode_index", "length", "tasks", "dataset_from_index", *_OURS)
_PLACE = ("chunk_index", "file_index", "from_timestamp", "to_timestamp")


def is_lerobot(root: Path) -> bool:
    """Whether a folder is a LeRobot dataset's."""
    return (root / "meta" / "info.json").is_file()


@dataclass(frozen=True)
class Meta:
    """Metadata of a dataset.

    Attributes:
        episodes: by ``episode_index``; ``length``, ``tasks``, places of videos, and what this project adds.
        tasks: text of each task by its index, in the order of the file.
    """

    root: Path
    info: Info
    episodes: pd.DataFrame
    tasks: Mapping[int, str]

    @property
    def where(self) -> str:
        """Where episodes are described."""
        return "meta/episodes" if self.info.version >= (3, 0) else "meta/episodes.jsonl"

    def task_of(self, told: Mapping[Any, Any], given: np.ndarray) -> str:
        """Task of an episode, by ``task_index`` of its rows (n,) or else by its metadata."""
        if len(given) and (index := int(given[0])) in self.tasks:
            return self.tasks[index]
        return next(iter(self.tasks_told(told)), "task")

    def tasks_told(self, told: Mapping[Any, Any]) -> list[str]:
        """Tasks that an episode's metadata name."""
        named = told.get("tasks")
        return [str(task) for task in named] if isinstance(named, list | np.ndarray) else []

    def videos(self, ids: Mapping[int, str]) -> tuple[dict[str, dict[str, Place]], list[Finding]]:
        """Places of the videos that are there, by camera and episode id, and a finding for each that is not.

        Args:
            ids: of the episodes by index.
        """
        places: dict[str, dict[str, Place]] = {}
        findings, there = [], {}
        for key in self.info.videos():
            camera = key.removeprefix("observation.images.")
            for told in self.episodes.to_dict("records") if ids else ():
                if (index := int(told["episode_index"])) not in ids or not told["length"]:
                    continue
                try:
                    file, start, end = self._video(key, index, told)
                except (LookupError, TypeError, ValueError, AttributeError) as error:
                    why = f"{camera}: nothing tells where its video is ({error}); fetch meta/ again, or correct it"
                    findings.append(Finding("video_missing", why, self.where, ids[index], harmful=True))
                    continue
                if file not in there:
                    there[file] = (self.root / file).is_file()
                if there[file]:
                    places.setdefault(camera, {})[ids[index]] = (str(self.root / file), start, end)
                else:
                    why = f"{camera}: its video is missing; fetch videos/ as well, or record the episode again"
                    findings.append(Finding("video_missing", why, file, ids[index], harmful=True))
        return places, findings

    def _video(self, key: str, index: int, told: Mapping[Any, Any]) -> tuple[str, float, float]:
        if not self.info.video_path:
            raise ValueError("video_path in meta/info.json is missing")
        if self.info.version < (3, 0):
            chunk = index // self.info.chunks_size
            names: dict[str, Any] = {"episode_chunk": chunk, "episode_index": index}
            start, end = 0.0, told["length"] / self.info.fps
        else:
            if absent := [name for name in _PLACE if f"videos/{key}/{name}" not in told]:
                raise ValueError(f"column videos/{key}/{absent[0]} is missing")
            chunk, number, start, end = (told[f"videos/{key}/{name}"] for name in _PLACE)
            names = {"chunk_index": int(chunk), "file_index": int(number)}
            if not (math.isfinite(start) and 0 <= start < end < math.inf):
                raise ValueError(f"it lasts from {start} to {end} s")
        try:
            return self.info.video_path.format(video_key=key, **names), float(start), float(end)
        except (LookupError, ValueError, AttributeError):
            raise ValueError(f"video_path in meta/info.json is {self.info.video_path!r}") from None


def read_meta(root: Path) -> Meta:
    """Read the metadata of a dataset folder.

    Raises:
        OSError: if a file may not be read.
        QcError: if there is none, it does not parse, its version is not known, or an episode is described wrongly.
    """
    if not is_lerobot(root):
        raise QcError(f"{root}: no LeRobot dataset here (meta/info.json is missing)")
    info = read_info(root / "meta" / "info.json")
    return Meta(root, info, *(_read_v3(root / "meta") if info.version >= (3, 0) else _read_v2(root / "meta")))


def _read_v3(meta: Path) -> tuple[pd.DataFrame, dict[int, str]]:
    if not (files := list_files(meta / "episodes")):
        raise QcError(f"{meta / 'episodes'}: there is no file; fetch it, or finalize the recording")
    read = [_read_parquet(file) for file in files]
    tasks = _read_parquet(meta / "tasks.parquet", all_columns=True)
    if "task" in tasks:
        tasks = tasks.set_index("task")
    numbers = _whole(tasks, meta / "tasks.parquet", "task_index")["task_index"]
    named = {int(index): str(text) for text, index in numbers.items()}
    return _by_index(pd.concat(read, ignore_index=True), meta / "episodes"), named


def _read_v2(meta: Path) -> tuple[pd.DataFrame, dict[int, str]]:
    tasks = _whole(_read_lines(meta / "tasks.jsonl", "task_index", "task"), meta / "tasks.jsonl", "task_index")
    episodes = _read_lines(meta / "episodes.jsonl", "episode_index", "length")
    if "task" not in tasks:
        raise QcError(f"{meta / 'tasks.jsonl'}: there is no task in it; fetch it again")
    named = dict(zip(tasks["task_index"].tolist(), tasks["task"].astype(str), strict=True))
    return _by_index(episodes, meta / "episodes.jsonl"), named


def _by_index(episodes: pd.DataFrame, path: Path) -> pd.DataFrame:
    whole = [name for name in ("episode_index", "length", "dataset_from_index") if name in episodes]
    checked = _whole(episodes, path, *dict.fromkeys(("episode_index", "length", *whole)))
    if len(twice := checked["episode_index"][checked["episode_index"].duplicated()]):
        raise QcError(f"{path}: episode {twice.iloc[0]} is described twice; leave one, or fetch it again")
    ids = checked["episode_id"].dropna() if "episode_id" in checked else checked["episode_index"]
    if len(twice := ids[ids.duplicated()]):
        raise QcError(f"{path}: two episodes have the episode_id {twice.iloc[0]!r}; correct one, or fetch it again")
    return checked.set_index("episode_index", drop=False).sort_index()


def _whole(table: pd.DataFrame, path: Path, *names: str) -> pd.DataFrame:
    """The same table, its columns ``names`` whole numbers from 0 on."""
    table = table.copy()
    for name in names:
        if name not in table:
            raise QcError(f"{path}: column {name} is missing; fetch it again")
        found = table[name].map(lambda v: v if isinstance(v, int | float | np.number) else math.nan).astype(np.float64)
        if (bad := ~((found >= 0) & (found < 2**53) & (found % 1 == 0))).any():
            row = int(np.argmax(bad))
            value = "missing" if pd.isna(found.iloc[row]) else f"{found.iloc[row]:g}"
            raise QcError(f"{path}: {name} is {value} in row {row}, not a whole number; correct it, or fetch it again")
        table[name] = found.astype(np.int64)
    return table


def _read_parquet(path: Path, *, all_columns: bool = False) -> pd.DataFrame:
    if not path.is_file():
        raise QcError(f"{path}: it is missing; fetch meta/ again")
    try:
        reader = pq.ParquetFile(path)
        names = [n for n in reader.schema_arrow.names if all_columns or n in _TOLD or n.startswith("videos/")]
        return reader.read(columns=names).to_pandas()
    except UNREADABLE as error:
        raise QcError(f"{path}: {why_unreadable(error)}") from None


def _read_lines(path: Path, *names: str) -> pd.DataFrame:
    if not path.is_file():
        raise QcError(f"{path}: it is missing; fetch meta/ again")
    rows: list[Any] = []
    try:
        text = path.read_text(encoding="utf-8")
        for number, line in enumerate(text.split("\n"), 1):
            if line.strip():
                rows.append(json.loads(line))
                if not isinstance(rows[-1], dict):
                    raise QcError(f"{path}: line {number} holds no object; fetch it again")
    except UnicodeDecodeError as error:
        raise QcError(f"{path}: not readable ({error}); fetch it again") from None
    except json.JSONDecodeError as error:
        raise QcError(f"{path}: line {number} is not readable ({error}); fetch it again") from None
    return pd.DataFrame(rows, columns=None if rows else list(names))
