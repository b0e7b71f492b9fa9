"""Which episodes go into a dataset, in which order, and whether all that they need is there."""

import hashlib
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from pipeline.errors import UserError
from pipeline.export.sources import require_videos
from pipeline.render.cameras import DEFAULT_CAMERAS, require_cameras
from pipeline.store import Run, read_meta
from pipeline.tasks import CATALOGUE, Task, get_task
from randomization.looks import PRESETS

KEEP = "keep"
NOT_ASSESSED = "not assessed"
TRAIN = "train"
TEST = "test"

_VERDICT_COLUMNS = ("episode_id", "task", "content_hash", "verdict")


@dataclass(frozen=True)
class Choice:
    """What of a run goes into a dataset, and how.

    Attributes:
        cameras: names of the cameras; none for a dataset without pictures.
        looks: which renderings; each kept motion is exported once in every look.
        tasks: task ids; None takes every task that was recorded.
        quota: least number of kept motions, by task id.
        test_fraction: part of the seeds, from 0 to 1, whose episodes form the split ``test``.
        privileged: whether the columns ``privileged.*`` are exported.
    """

    cameras: tuple[str, ...] = DEFAULT_CAMERAS
    looks: tuple[str, ...] = ("plain",)
    tasks: tuple[str, ...] | None = None
    quota: Mapping[str, int] = field(default_factory=dict)
    test_fraction: float = 0.0
    privileged: bool = True

    def __post_init__(self) -> None:
        if not 0.0 <= self.test_fraction < 1.0:
            raise UserError(f"--test-fraction is {self.test_fraction:g}; it must be at least 0 and less than 1")
        for name in ("cameras", "looks"):
            values = getattr(self, name)
            if len(set(values)) < len(values):
                raise UserError(f"{name} are {', '.join(values)}; give each once")
        if not self.looks:
            raise UserError("no look is chosen; give at least one")
        if not self.cameras and len(self.looks) > 1:
            raise UserError(f"looks are {', '.join(self.looks)}, but without pictures they are all alike; give one")
        for look in self.looks:
            if look in PRESETS:
                raise UserError(
                    f"the look {look!r} is drawn for each episode; give --look {look}-0, {look}-1 and so on"
                )
        require_cameras(self.cameras)
        for task in (*(self.tasks or ()), *self.quota):
            get_task(task)

    def to_dict(self) -> dict[str, Any]:
        """For the manifest: what decides which columns and episodes there are, and their order."""
        made = {name: value for name, value in asdict(self).items() if name not in ("quota", "tasks")}
        return made | {"cameras": list(self.cameras), "looks": list(self.looks)}

    def split(self, seed: int) -> str:
        """Split of every episode with this seed, whatever its look and whatever else is exported."""
        digest = hashlib.sha256(f"split/{seed}".encode()).digest()
        return TEST if int.from_bytes(digest[:8], "little") < self.test_fraction * 2**64 else TRAIN


@dataclass(frozen=True)
class Kept:
    """An episode to export.

    Attributes:
        meta: content of its ``episode.json``.
        verdict: what quality control said of it.
        look: name of its rendering.
        split: ``train`` or ``test``.
        videos: one file a camera.
    """

    folder: Path
    meta: Mapping[str, Any]
    task: Task
    verdict: str
    look: str
    split: str
    videos: Mapping[str, Path]

    @property
    def length(self) -> int:
        """Number of rows."""
        return int(self.meta["length"])

    @property
    def shown_look(self) -> str | None:
        """Its look, if there are pictures of it."""
        return self.look if self.videos else None


def select(run: Run, verdicts: pd.DataFrame | None, choice: Choice) -> list[Kept]:
    """Episodes to export, in order of split, task (as in the catalogue), run seed, attempt and look.

    Args:
        verdicts: one row an episode with ``episode_id``, ``task``, ``content_hash`` and ``verdict``, of which those
            with verdict ``keep`` are taken; None takes every success of the run.

    Raises:
        UserError: if the verdicts do not fit the run, a task is empty or below its quota, a
            video is missing or unlike the others, or nothing is left to export.
    """
    found = list(_successes(run) if verdicts is None else _keepers(run, verdicts))
    found = [each for each in found if choice.tasks is None or each.meta["task"] in choice.tasks]
    if not found:
        told = "no successful episode in it" if verdicts is None else f"none of the {len(verdicts)} verdicts is keep"
        raise UserError(f"{run.root}: nothing to export, {told}; record more episodes with `demomill record`")
    _require_enough(found, run, choice)
    kept = [
        Kept(
            folder=each.folder,
            meta=each.meta,
            task=get_task(each.meta["task"]),
            verdict=each.verdict,
            look=look,
            split=choice.split(int(each.meta["seed"])),
            videos={camera: each.folder / f"{look}.{camera}.mp4" for camera in choice.cameras},
        )
        for each in found
        for look in choice.looks
    ]
    if not any(episode.split == TRAIN for episode in kept):
        raise UserError(
            f"{run.root}: all {len(found)} seeds fall into the split test; give a smaller --test-fraction than "
            f"{choice.test_fraction:g}, or record more"
        )
    require_videos([(episode.folder, episode.length, episode.videos) for episode in kept], run.root)
    rank = {task: n for n, task in enumerate(CATALOGUE)}
    return sorted(
        kept,
        key=lambda e: (e.split == TEST, rank[e.task.id], e.meta["run_seed"], e.meta["attempt"], e.look),
    )


@dataclass(frozen=True)
class _Found:
    folder: Path
    meta: Mapping[str, Any]
    verdict: str


def _successes(run: Run) -> Iterator[_Found]:
    for folder in run.folders():
        meta = read_meta(folder)
        if meta["outcome"] == "success":
            yield _Found(folder, meta, NOT_ASSESSED)


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
        yield _Found(folder, meta, str(row.verdict))


def _require_enough(found: Sequence[_Found], run: Run, choice: Choice) -> None:
    """No task without an episode, none below its quota."""
    attempted = Counter(folder.parent.name for folder in run.folders())
    kept = Counter(str(each.meta["task"]) for each in found)
    for task in dict.fromkeys((*(choice.tasks or attempted), *choice.quota)):
        least = max(1, choice.quota.get(task, 1))
        if kept[task] < least:
            more = math.ceil(1.1 * attempted[task] * least / max(1, kept[task])) or least
            raise UserError(
                f"{task}: {kept[task]} of its {attempted[task]} attempts kept, {least} needed; run `demomill record "
                f"--task {task} --episodes {more} --out {run.root}` with the run's other options, then `demomill qc` "
                "and `demomill render`, or choose other tasks with --task"
            )


def count_by_task(kept: Sequence[Kept]) -> dict[str, int]:
    """Episodes of each task, in the order of the catalogue."""
    counted = Counter(episode.task.id for episode in kept)
    return {task: counted[task] for task in CATALOGUE if counted[task]}
