"""The ``meta`` folder of a dataset: tasks, episodes with their provenance, statistics."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from pipeline.export.digests import seal
from pipeline.export.files import EpisodeRow
from pipeline.export.layout import EPISODES_PATH, INFO_PATH, MANIFEST_PATH, STATS_PATH, TASKS_PATH
from pipeline.export.selection import Kept
from pipeline.export.statistics import Statistics
from pipeline.store import canonical_json
from pipeline.tasks import Task

AS_STORED = ("length", "run_seed", "attempt", "seed", "env_index", "outcome", "reason", "content_hash", "phases")
AS_JSON = ("draws", "versions", "engine")
"""What ``meta/episodes`` takes over from ``episode.json``, as it is and as JSON text."""

_PROVENANCE = pa.schema(
    {
        "episode_index": pa.int64(),
        "length": pa.int64(),
        "tasks": pa.list_(pa.string()),
        "meta/episodes/chunk_index": pa.int64(),
        "meta/episodes/file_index": pa.int64(),
        "episode_id": pa.string(),
        "task_id": pa.string(),
        "run_seed": pa.int64(),
        "attempt": pa.int64(),
        "seed": pa.int64(),
        "env_index": pa.int64(),
        "outcome": pa.string(),
        "reason": pa.string(),
        "verdict": pa.string(),
        "content_hash": pa.string(),
        "look": pa.string(),
        "split": pa.string(),
        "phases": pa.list_(pa.string()),
        "draws": pa.string(),
        "versions": pa.string(),
        "engine": pa.string(),
        "rendering": pa.string(),
    }
)
"""LeRobot's own columns that speak of no file, then ours; the last four are JSON text.

``look`` is null where there are no pictures, ``rendering`` where nothing tells how they were made.
"""


def write_episodes(root: Path, kept: Sequence[Kept], files: Sequence[EpisodeRow]) -> None:
    """Write ``meta/episodes``: of each episode what it is, where it lies and its statistics.

    Args:
        files: of each episode, the columns that say where it lies and its statistics.
    """
    rows = [_provenance(episode, number) for number, episode in enumerate(kept)]
    columns = {field.name: pa.array([row[field.name] for row in rows], field.type) for field in _PROVENANCE}
    columns |= {name: pa.array([row[name] for row in files]) for name in files[0]}
    path = root / EPISODES_PATH
    path.parent.mkdir(parents=True)
    pq.write_table(pa.table(columns), path, compression="snappy")


def write_tasks(root: Path, tasks: Sequence[Task]) -> None:
    """Write ``meta/tasks.parquet``; a task's index is its place in ``tasks``."""
    index = pd.Index([task.instruction for task in tasks], name="task")
    pd.DataFrame({"task_index": range(len(tasks))}, index=index).to_parquet(root / TASKS_PATH)


def write_json_files(
    root: Path, info: Mapping[str, Any], statistics: Mapping[str, Statistics], manifest: Mapping[str, Any]
) -> None:
    """Write ``info.json``, ``stats.json`` and at last our manifest, with the hashes of all other files."""
    plain = {key: {name: value.tolist() for name, value in each.items()} for key, each in statistics.items()}
    _write_json(root / INFO_PATH, info)
    _write_json(root / STATS_PATH, plain)
    _write_json(root / MANIFEST_PATH, {**manifest, "files": seal(root)})


def _write_json(path: Path, content: Mapping[str, Any]) -> None:
    path.write_text(json.dumps(content, indent=4) + "\n")


def _provenance(episode: Kept, number: int) -> dict[str, Any]:
    meta = episode.meta
    return {
        "episode_index": number,
        "tasks": [episode.task.instruction],
        "meta/episodes/chunk_index": 0,
        "meta/episodes/file_index": 0,
        "episode_id": meta["id"],
        "task_id": episode.task.id,
        "verdict": episode.verdict,
        "look": episode.shown_look,
        "split": episode.split,
        "rendering": _rendering(episode),
        **{name: meta[name] for name in AS_STORED},
        **{name: canonical_json(meta[name]) for name in AS_JSON},
    }


def _rendering(episode: Kept) -> str | None:
    """How its pictures were made: renderer, cameras and every value of the look."""
    sidecar = episode.folder / f"{episode.look}.json"
    if not episode.videos or not sidecar.is_file():
        return None
    return canonical_json(json.loads(sidecar.read_text())["settings"])
