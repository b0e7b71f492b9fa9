"""A LeRobot dataset of many episodes, made of few. Run as ``python -m bench.copies FOLDER``.

The episodes are recorded ones, each copied with its own small offset of the joints, and exported without videos into
``FOLDER/dataset``.
"""

import sys
from collections import Counter
from dataclasses import replace
from itertools import cycle, islice
from pathlib import Path

import numpy as np

from pipeline.engine import choose_engine
from pipeline.export.files import write_data
from pipeline.export.layout import all_columns, info
from pipeline.export.metadata import write_episodes, write_json_files, write_tasks
from pipeline.export.selection import Choice, count_by_task, select
from pipeline.record import Request, record
from pipeline.store import Episode, Run, episode_id, read_episode
from pipeline.tasks import get_task

TASKS = ("peg_round_4mm", "peg_round_8mm", "peg_round_12mm", "peg_round_16mm")
RECORDED_OF_EACH = 16
EPISODES = 1355
OFFSET_RAD = 0.002


def main() -> None:
    """Record, multiply, export."""
    place = Path(sys.argv[1])
    record(Request(place / "recorded", TASKS, RECORDED_OF_EACH, 1, choose_engine("cpu")))
    _export(_multiply(place / "recorded", place / "run"), place / "dataset")


def _multiply(recorded: Path, root: Path) -> Run:
    sources = [read_episode(folder) for folder in Run(recorded).folders()]
    run = Run.open(root, {"run_seed": 1})
    for attempt, episode in enumerate(islice(cycle(e for e in sources if e.outcome == "success"), EPISODES)):
        run.commit(_moved(episode, attempt))
    return run


def _moved(episode: Episode, attempt: int) -> Episode:
    rng = np.random.default_rng(attempt)
    frames = dict(episode.frames)
    for key in ("observation.state", "action"):
        frames[key] = frames[key].copy()
        frames[key][:, :7] += rng.normal(0.0, OFFSET_RAD, 7).astype(np.float32)
    return replace(episode, id=episode_id(episode.task, 1, attempt), attempt=attempt, frames=frames)


def _export(run: Run, root: Path) -> None:
    """Write the run as a dataset without cameras."""
    kept, columns = select(run, None, Choice(cameras=())), all_columns()
    tasks = [get_task(task) for task in count_by_task(kept)]
    root.mkdir()
    files, statistics = write_data(root, kept, columns, {task.id: index for index, task in enumerate(tasks)})
    rows = sum(episode.length for episode in kept)
    write_episodes(root, kept, files)
    write_tasks(root, tasks)
    description = info({}, columns, Counter(e.split for e in kept), frames=rows, tasks=len(tasks))
    write_json_files(root, description, statistics, {})


if __name__ == "__main__":
    main()
