"""LeRobot datasets of synthetic episodes, as recorders write them."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from qc.episodes import ACTION, STATE, Episode

JOINTS = tuple(f"joint_{i}.pos" for i in range(1, 8))


def write_dataset(
    root: Path,
    episodes: Sequence[Episode],
    *,
    version: str = "v3.0",
    fps: float = 15.0,
    columns: Sequence[str] = (STATE, ACTION),
    names: Any = (*JOINTS, "gripper.pos"),
    files: int = 1,
) -> Path:
    """A dataset without videos, in the layout of its version; v3.0 in ``files`` data files."""
    tasks = list(dict.fromkeys(e.task for e in episodes))
    features = {
        name: {"dtype": "float32", "shape": [episodes[0].frames[name].shape[1]], "names": names} for name in columns
    }
    for name in ("timestamp", "frame_index", "episode_index", "index", "task_index"):
        features[name] = {"dtype": "float32" if name == "timestamp" else "int64", "shape": [1], "names": None}
    v3 = version == "v3.0"
    info = {
        "codebase_version": version,
        "fps": fps,
        "total_episodes": len(episodes),
        "total_frames": sum(e.length for e in episodes),
        "total_tasks": len(tasks),
        "features": features,
        "data_path": "data/chunk-{chunk_index:03d}/file-{file_index:03d}.parquet",
        "video_path": None,
    }
    (root / "meta").mkdir(parents=True)
    (root / "data" / "chunk-000").mkdir(parents=True)
    (root / "meta" / "info.json").write_text(json.dumps(info))
    first, tables = 0, []
    for index, episode in enumerate(episodes):
        tables.append(_table(episode, index, first, tasks.index(episode.task), fps, columns))
        first += episode.length
    told = [{"episode_index": i, "length": e.length, "tasks": [e.task]} for i, e in enumerate(episodes)]
    if v3:
        for number, some in enumerate(np.array_split(np.arange(len(episodes)), files)):
            path = root / "data" / "chunk-000" / f"file-{number:03d}.parquet"
            pq.write_table(pa.concat_tables([tables[i] for i in some]), path)
        (root / "meta" / "episodes" / "chunk-000").mkdir(parents=True)
        pd.DataFrame(told).to_parquet(root / "meta" / "episodes" / "chunk-000" / "file-000.parquet")
        pd.DataFrame({"task_index": range(len(tasks))}, index=pd.Index(tasks, name="task")).to_parquet(
            root / "meta" / "tasks.parquet"
        )
    else:
        for i, table in enumerate(tables):
            pq.write_table(table, root / "data" / "chunk-000" / f"episode_{i:06d}.parquet")
        _lines(root / "meta" / "episodes.jsonl", told)
        _lines(root / "meta" / "tasks.jsonl", [{"task_index": i, "task": task} for i, task in enumerate(tasks)])
    return root


def _table(episode: Episode, index: int, first: int, task: int, fps: float, columns: Sequence[str]) -> pa.Table:
    rows = np.arange(episode.length)
    arrays: dict[str, Any] = {
        name: pa.FixedSizeListArray.from_arrays(
            pa.array(episode.frames[name].ravel(), pa.float32()), episode.frames[name].shape[1]
        )
        for name in columns
    }
    arrays["timestamp"] = pa.array(episode.frames.get("timestamp", rows / fps), pa.float32())
    arrays |= {
        "frame_index": pa.array(rows),
        "episode_index": pa.array(np.full(len(rows), index)),
        "index": pa.array(rows + first),
        "task_index": pa.array(np.full(len(rows), task)),
    }
    return pa.table(arrays)


def _lines(path: Path, rows: Sequence[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def edit_info(root: Path, **changes: Any) -> None:
    path = root / "meta" / "info.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))
