"""Which episodes go into a dataset, in which order, and whether all that they need is there."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from pipeline.errors import UserError
from pipeline.store import Run, read_meta
from pipeline.tasks import CATALOGUE, Task, get_task

KEEP = "keep"
NOT_ASSESSED = "not assessed"

_VERDICT_COLUMNS = ("episode_id", "task", "content_hash", "verdict")


@dataclass(frozen=True)
class Kept:
    """An episode to export.

    Attributes:
        meta: content of its ``episode.json``.
        verdict: what quality control said of it.
        videos: one file a camera.
    """

    folder: Path
    meta: Mapping[str, Any]
    task: Task
    verdict: str
    videos: Mapping[str, Path]

    @property
    def length(self) -> int:
        """Number of rows."""
        return int(self.meta["length"])


def select(run: Run, verdicts: pd.DataFrame | None, cameras: Sequence[str], look: str) -> list[Kept]:
    """Episodes to export, in order of task (as in the catalogue), run seed and attempt.

    Args:
        verdicts: one row an episode with ``episode_id``, ``task``, ``content_hash`` and ``verdict``, of which those
            with verdict ``keep`` are taken; None takes every success of the run.

    Raises:
        UserError: if the verdicts do not fit the run, a video is missing, or nothing is left to export.
    """
    found = _successes(run) if verdicts is None else _keepers(run, verdicts)
    kept = [
        Kept(
            folder=folder,
            meta=meta,
            task=get_task(meta["task"]),
            verdict=verdict,
            videos={camera: folder / f"{look}.{camera}.mp4" for camera in cameras},
        )
        for folder, meta, verdict in found
    ]
    if not kept:
        told = "no successful episode in it" if verdicts is None else f"none of the {len(verdicts)} verdicts is keep"
        raise UserError(f"{run.root}: nothing to export, {told}; record more episodes with `demomill record`")
    _require_videos(kept, run)
    rank = {task: n for n, task in enumerate(CATALOGUE)}
    return sorted(kept, key=lambda e: (rank[e.task.id], e.meta["run_seed"], e.meta["attempt"]))


_Found = tuple[Path, Mapping[str, Any], str]


def _successes(run: Run) -> Iterator[_Found]:
    for folder in run.folders():
        meta = read_meta(folder)
        if meta["outcome"] == "success":
            yield folder, meta, NOT_ASSESSED


def _keepers(run: Run, verdicts: pd.DataFrame) -> Iterator[_Found]:
    absent = [name for name in _VERDICT_COLUMNS if name not in verdicts]
    if absent:
        raise UserError(f"verdicts: column {', '.join(absent)} is missing; make them with `demomill qc`")
    twice = verdicts.loc[verdicts["episode_id"].duplicated(), "episode_id"]
    if len(twice):
        raise UserError(f"{twice.iloc[0]}: has more than one verdict; make them again with `demomill qc`")
    for row in verdicts.loc[verdicts["verdict"] == KEEP, list(_VERDICT_COLUMNS)].itertuples(index=False):
        folder = run.folder(str(row.task), str(row.episode_id))
        if not folder.is_dir():
            raise UserError(f"{row.episode_id}: kept by the verdicts but not in {run.root}; run `demomill qc` again")
        meta = read_meta(folder)
        if meta["content_hash"] != row.content_hash:
            raise UserError(
                f"{row.episode_id}: its verdict was given to other content ({row.content_hash}, "
                f"now {meta['content_hash']}); run `demomill qc` again"
            )
        yield folder, meta, str(row.verdict)


def _require_videos(kept: Sequence[Kept], run: Run) -> None:
    missing = [video for episode in kept for video in episode.videos.values() if not video.is_file()]
    if missing:
        raise UserError(
            f"{missing[0].parent.name}: {missing[0].name} is missing ({len(missing)} videos in all); "
            f"run `demomill render` on {run.root}, then export again"
        )
