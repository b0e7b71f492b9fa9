"""A LeRobot dataset of many episodes, made of few. Run as ``python -m bench.copies FOLDER``.

The episodes are recorded ones, each copied with its own small offset of the joints, and exported without videos into
``FOLDER/dataset``.
"""

import sys
from dataclasses import replace
from itertools import cycle, islice
from pathlib import Path

import numpy as np

from pipeline.engine import choose_engine
from pipeline.export import export
from pipeline.export.selection import Choice
from pipeline.record import Request, record, tasks_with_expert
from pipeline.store import Episode, Run, episode_id, read_episode

RECORDED_OF_EACH = 8
EPISODES = 1355
OFFSET_RAD = 0.02


def main() -> None:
    """Record, multiply, export."""
    place = Path(sys.argv[1])
    record(Request(place / "recorded", tuple(tasks_with_expert()), RECORDED_OF_EACH, 1, choose_engine("cpu")))
    _multiply(place / "recorded", place / "run")
    export(place / "run", place / "dataset", choice=Choice(cameras=()))


def _multiply(recorded: Path, root: Path) -> None:
    sources = [read_episode(folder) for folder in Run(recorded).folders()]
    run = Run.open(root, {"run_seed": 1})
    for attempt, episode in enumerate(islice(cycle(e for e in sources if e.outcome == "success"), EPISODES)):
        run.commit(_moved(episode, attempt))


def _moved(episode: Episode, attempt: int) -> Episode:
    rng = np.random.default_rng(attempt)
    frames = dict(episode.frames)
    for key in ("observation.state", "action"):
        frames[key] = frames[key].copy()
        frames[key][:, :7] += rng.normal(0.0, OFFSET_RAD, 7).astype(np.float32)
    return replace(episode, id=episode_id(episode.task, 1, attempt), attempt=attempt, frames=frames)


if __name__ == "__main__":
    main()
