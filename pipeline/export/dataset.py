"""Export, start to end."""

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq

from pipeline import __version__
from pipeline.export.card import card
from pipeline.export.files import write_data, write_videos
from pipeline.export.layout import CARD_PATH, EPISODES_PATH, MANIFEST_PATH, all_columns, info, video_key
from pipeline.export.metadata import write_episodes, write_json_files, write_tasks
from pipeline.export.selection import Choice, count_by_task, select
from pipeline.export.whole import replaced_whole, require_replaceable
from pipeline.store import Run
from pipeline.tasks import get_task


@dataclass(frozen=True)
class ExportSummary:
    """What an export wrote.

    Attributes:
        root: the dataset folder.
        episodes_by_task: number of episodes by task id, in catalogue order.
        frames: number of rows, and of pictures of each camera.
        size_bytes: size of all files.
    """

    root: Path
    episodes_by_task: Mapping[str, int]
    frames: int
    size_bytes: int

    @property
    def episodes(self) -> int:
        """Number of episodes."""
        return sum(self.episodes_by_task.values())


def export(
    run_root: Path | str, out: Path | str, verdicts: pd.DataFrame | None = None, choice: Choice | None = None
) -> ExportSummary:
    """Write the kept episodes of a run as one LeRobot v3.0 dataset, whole or not at all.

    Episodes are numbered in order of split, task, run seed, attempt and look. The same episodes, videos, verdicts and
    choice give the same bytes in every file.

    Args:
        run_root: a run folder.
        out: the dataset folder; a previous export there is replaced, anything else is refused.
        verdicts: one row an episode with ``episode_id``, ``task``, ``content_hash`` and ``verdict``; rows with verdict
            ``keep`` are exported. None exports every success.
        choice: cameras, looks, tasks, splits and columns; None takes the defaults. Without cameras no pictures are
            written and none need be rendered.

    Raises:
        UserError: if the verdicts do not fit the run, a task is empty or below its quota, a
            video is missing, has another length or frame rate than its episode or was encoded differently from the
            others, nothing is kept, or ``out`` cannot be written. Nothing is written then.
    """
    run, out, choice = Run(run_root), Path(out).resolve(), choice or Choice()
    require_replaceable(out, run.root.resolve(), run.recipe)
    kept = select(run, verdicts, choice)
    by_task = count_by_task(kept)
    tasks = [get_task(task) for task in by_task]
    columns = all_columns(choice.privileged)
    with replaced_whole(out) as root:
        rows, statistics = write_data(root, kept, columns, {task.id: index for index, task in enumerate(tasks)})
        videos = {}
        for camera in choice.cameras:
            video_rows, statistics[video_key(camera)], videos[camera] = write_videos(root, kept, camera)
            rows = [row | more for row, more in zip(rows, video_rows, strict=True)]
        frames = sum(episode.length for episode in kept)
        splits = Counter(episode.split for episode in kept)
        description = info(videos, columns, splits, frames=frames, tasks=len(tasks))
        write_episodes(root, kept, rows)
        write_tasks(root, tasks)
        manifest = {"demomill": __version__, "choice": choice.to_dict(), "run": run.recipe}
        write_json_files(root, description, statistics, manifest)
        (root / CARD_PATH).write_text(card(root))
        size = sum(path.stat().st_size for path in root.rglob("*") if path.is_file())
    return ExportSummary(root=out, episodes_by_task=by_task, frames=frames, size_bytes=size)


def is_current(run_root: Path, out: Path, verdicts: pd.DataFrame | None, choice: Choice) -> bool:
    """Whether ``out`` was exported by this version, of what would be exported now, and after the last rendering.

    Raises:
        UserError: as :func:`export` does.
    """
    path = out / MANIFEST_PATH
    if not path.is_file():
        return False
    manifest = json.loads(path.read_text())
    if manifest["demomill"] != __version__ or manifest.get("choice") != choice.to_dict():
        return False
    kept = select(Run(run_root), verdicts, choice)
    rendered = max((video.stat().st_mtime for episode in kept for video in episode.videos.values()), default=0.0)
    there = pq.read_table(out / EPISODES_PATH, columns=["content_hash", "verdict", "look"]).to_pylist()
    wanted = [
        {"content_hash": each.meta["content_hash"], "verdict": each.verdict, "look": each.shown_look} for each in kept
    ]
    return there == wanted and path.stat().st_mtime > rendered
