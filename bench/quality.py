"""Seconds that quality control takes for 1,000 episodes. Run as ``python -m bench.quality``.

The episodes are recorded ones, four to a task in equal parts, each copied with its own small noise in the joints.
"""

import json
import tempfile
import time
from dataclasses import replace
from itertools import cycle, islice
from pathlib import Path

import numpy as np

from pipeline.engine import choose_engine
from pipeline.record import Request, record
from pipeline.store import Episode, Run, episode_id, read_episode
from qc.readers.run import read_run
from qc.settings import Settings
from qc.verdicts import assess

TASKS = ("peg_round_4mm", "peg_round_8mm", "peg_round_12mm", "peg_round_16mm")
RECORDED_OF_EACH = 16
EPISODES = 1000
NOISE_RAD = 0.002


def main() -> None:
    """Record, multiply, assess."""
    with tempfile.TemporaryDirectory() as scratch:
        recorded = Path(scratch) / "recorded"
        record(Request(recorded, TASKS, RECORDED_OF_EACH, 1, choose_engine("cpu")))
        sources = [read_episode(folder) for folder in Run(recorded).folders()]
        run = Run.open(Path(scratch) / "many", {"run_seed": 1})
        for attempt, episode in enumerate(islice(cycle(sources), EPISODES)):
            run.commit(_noisy(episode, attempt))
        start = time.perf_counter()
        episodes = read_run(run.root)
        read = time.perf_counter() - start
        assess(episodes, Settings())
        total = time.perf_counter() - start
    print(
        "\nRESULT "
        + json.dumps({"read_s": read, "assess_s": total - read, "total_s": total, "episodes": len(episodes)})
    )


def _noisy(episode: Episode, attempt: int) -> Episode:
    rng = np.random.default_rng(attempt)
    frames = dict(episode.frames)
    for key in ("observation.state", "action"):
        frames[key] = frames[key].copy()
        frames[key][:, :7] += rng.normal(0.0, NOISE_RAD, 7).astype(np.float32)
    return replace(episode, id=episode_id(episode.task, 1, attempt), attempt=attempt, frames=frames)


if __name__ == "__main__":
    main()
