"""What a LeRobot dataset says of itself: ``meta/info.json``, its episodes and its tasks."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from qc.errors import QcError

_NUMBERS = ("float32", "float64", "float16", "int64", "int32", "int16", "int8", "uint8", "bool")
_OURS = ("episode_id", "task_id", "outcome", "reason", "env_index", "phases", "content_hash")


def is_lerobot(root: Path) -> bool:
    """Whether a folder is a LeRobot dataset's."""
    return (root / "meta" / "info.json").is_file()


@dataclass(frozen=True)
class Meta:
    """Metadata of a dataset.

    Attributes:
        version: (major, minor).
        features: name to ``dtype``, ``shape`` and ``names``.
        episodes: by ``episode_index``; ``length``, ``tasks``, places of videos, and what this project adds.
        tasks: text of each task by its index.
    """

    root: Path
    version: tuple[int, int]
    fps: float
    features: Mapping[str, Mapping[str, Any]]
    declared_episodes: int
    declared_frames: int
    episodes: pd.DataFrame
    tasks: Mapping[int, str]
    video_path: str

    def vectors(self) -> list[str]:
        """Features that are vectors of numbers."""
        return [name for name, f in self.features.items() if f.get("dtype") in _NUMBERS and len(f.get("shape", ())) < 2]

    def size(self, name: str) -> int:
        """Numbers in a row of a feature; 0 if there is no such feature."""
        return int(np.prod(self.features[name].get("shape") or [1])) if name in self.vectors() else 0

    def names(self, parts: Sequence[str]) -> tuple[str, ...]:
        """Names of the dimensions of features set side by side."""
        found: list[str] = []
        for part in parts:
            names, size = _flat(self.features[part].get("names")), self.size(part)
            found += names if len(names) == size else [f"{part.rpartition('.')[2]}_{i}" for i in range(size)]
        return tuple(found)

    def task_of(self, told: Mapping[Any, Any], columns: Mapping[str, np.ndarray], span: slice) -> str:
        """Task of an episode, by its rows or else by its metadata."""
        if "task_index" in columns:
            index = int(columns["task_index"][span][0])
            if index in self.tasks:
                return self.tasks[index]
        named = told.get("tasks")
        return str(named[0]) if named is not None and len(named) else "task"

    def videos(self, ids: Sequence[str]) -> dict[str, dict[str, tuple[str, float, float]]]:
        """File, first and last second of each episode's video, by camera and episode id; ``ids`` in order of index."""
        places: dict[str, dict[str, tuple[str, float, float]]] = {}
        for key in (name for name, f in self.features.items() if f.get("dtype") == "video"):
            mine = places.setdefault(key.rpartition(".")[2], {})
            for id_, (index, told) in zip(ids, self.episodes.iterrows(), strict=False):
                path, start, end = self._video(key, int(str(index)), told)
                if path.is_file():
                    mine[id_] = (str(path), start, end)
        return {camera: mine for camera, mine in places.items() if mine}

    def _video(self, key: str, index: int, told: pd.Series) -> tuple[Path, float, float]:
        if self.version >= (3, 0):
            chunk, file = int(told[f"videos/{key}/chunk_index"]), int(told[f"videos/{key}/file_index"])
            start, end = float(told[f"videos/{key}/from_timestamp"]), float(told[f"videos/{key}/to_timestamp"])
            return self.root / self.video_path.format(video_key=key, chunk_index=chunk, file_index=file), start, end
        place = self.video_path.format(video_key=key, episode_chunk=index // 1000, episode_index=index)
        return self.root / place, 0.0, float(told["length"]) / self.fps


def read_meta(root: Path) -> Meta:
    """Read the metadata of a dataset folder.

    Raises:
        QcError: if there is none, it does not parse, or its version is not known.
    """
    if not is_lerobot(root):
        raise QcError(f"{root}: no LeRobot dataset here (meta/info.json is missing)")
    path = root / "meta" / "info.json"
    try:
        info = json.loads(path.read_bytes())
        version = tuple(int(part) for part in str(info["codebase_version"]).lstrip("v").split(".")[:2])
        fps, features = float(info["fps"]), info["features"]
        declared = int(info["total_episodes"]), int(info["total_frames"])
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise QcError(f"{path}: not readable ({type(error).__name__}: {error}); fetch it again") from None
    if version not in ((3, 0), (2, 1), (2, 0)):
        raise QcError(f"{path}: LeRobot version {info['codebase_version']}; convert the dataset to v3.0")
    try:
        episodes, tasks = _read_v3(root) if version >= (3, 0) else _read_v2(root)
    except (OSError, ValueError, KeyError, pa.ArrowException) as error:
        raise QcError(f"{root / 'meta'}: episodes or tasks not readable ({' '.join(str(error).split())}); "
                      "if the recording was killed, finalize it") from None  # fmt: skip
    return Meta(
        root, (version[0], version[1]), fps, features, *declared, episodes, tasks, str(info.get("video_path") or "")
    )


def _read_v3(root: Path) -> tuple[pd.DataFrame, dict[int, str]]:
    files = sorted(root.glob("meta/episodes/*/*.parquet"))
    if not files:
        raise FileNotFoundError("meta/episodes is missing")
    read = []
    for file in files:
        reader = pq.ParquetFile(file)
        names = [n for n in reader.schema_arrow.names
                 if n in ("episode_index", "length", "tasks", *_OURS) or n.startswith("videos/")]  # fmt: skip
        read.append(reader.read(columns=names).to_pandas())
    tasks = pd.read_parquet(root / "meta" / "tasks.parquet")
    if "task" in tasks:
        tasks = tasks.set_index("task")
    named = {int(index): str(text) for text, index in tasks["task_index"].items()}
    return pd.concat(read, ignore_index=True).set_index("episode_index", drop=False).sort_index(), named


def _read_v2(root: Path) -> tuple[pd.DataFrame, dict[int, str]]:
    episodes = pd.DataFrame(_lines(root / "meta" / "episodes.jsonl"))
    tasks = {int(row["task_index"]): str(row["task"]) for row in _lines(root / "meta" / "tasks.jsonl")}
    return episodes.set_index("episode_index", drop=False).sort_index(), tasks


def _lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


def _flat(names: Any) -> list[str]:
    """Names of dimensions, which datasets write as a list, or as lists in lists or dictionaries."""
    if isinstance(names, Mapping):
        return [name for value in names.values() for name in _flat(value)]
    if isinstance(names, list | tuple):
        return [name for value in names for name in _flat(value)]
    return [str(names)] if isinstance(names, str) else []
