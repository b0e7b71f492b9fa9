"""Export, start to end."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from pipeline import __version__
from pipeline.export.card import card
from pipeline.export.files import write_data, write_videos
from pipeline.export.layout import CARD_PATH, info, video_key
from pipeline.export.metadata import write_episodes, write_json_files, write_tasks
from pipeline.export.publish import replaced_whole, require_replaceable
from pipeline.export.selection import select
from pipeline.store import Run


@dataclass(frozen=True)
class ExportSummary:
    """What an export wrote.

    Attributes:
        root: the dataset folder.
        episodes_by_task: number of episodes by task id, in catalogue order.
        frames: number of rows, and of pictures a camera.
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
    run_root: Path | str,
    out: Path | str,
    verdicts: pd.DataFrame | None = None,
    *,
    cameras: Sequence[str] = ("front", "wrist"),
    look: str = "plain",
) -> ExportSummary:
    """Write the kept episodes of a run as one LeRobot v3.0 dataset, whole or not at all.

    Episodes are numbered in order of task, run seed and attempt. The same episodes, videos and verdicts give the
    same bytes in every file.

    Args:
        run_root: a run folder whose kept episodes are rendered.
        out: the dataset folder; a previous export there is replaced, anything else is refused.
        verdicts: one row an episode with ``episode_id``, ``task``, ``content_hash`` and ``verdict``; rows with verdict
            ``keep`` are exported. None exports every success.
        cameras: names of the cameras to export.
        look: which rendering of them.

    Raises:
        UserError: if the verdicts do not fit the run, a video is missing, has another length than its episode or was
            encoded differently from the others, nothing is kept, or ``out`` cannot be written.
    """
    run, out = Run(run_root), Path(out).resolve()
    require_replaceable(out, run.root.resolve(), run.recipe)
    kept = select(run, verdicts, cameras, look)
    tasks = list({episode.task.id: episode.task for episode in kept}.values())
    with replaced_whole(out) as root:
        rows, statistics = write_data(root, kept, {task.id: index for index, task in enumerate(tasks)})
        videos = {}
        for camera in cameras:
            video_rows, statistics[video_key(camera)], videos[camera] = write_videos(root, kept, camera)
            rows = [row | more for row, more in zip(rows, video_rows, strict=True)]
        frames = sum(episode.length for episode in kept)
        description = info(videos, episodes=len(kept), frames=frames, tasks=len(tasks))
        write_episodes(root, kept, look, rows)
        write_tasks(root, tasks)
        write_json_files(root, description, statistics, {"demomill": __version__, "look": look, "run": run.recipe})
        (root / CARD_PATH).write_text(card(kept, tasks, description, look))
        size = sum(path.stat().st_size for path in root.rglob("*") if path.is_file())
    by_task = {task.id: sum(episode.task.id == task.id for episode in kept) for task in tasks}
    return ExportSummary(root=out, episodes_by_task=by_task, frames=frames, size_bytes=size)
