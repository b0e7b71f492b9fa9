"""Core seconds that an episode of a task takes, and where they go. Run as ``python -m bench.episodes TASK [ENVS]``.

One thread steps all envs, so that the shares add up; starting the simulator is not counted.
"""

import json
import os
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from typing import Any

from pipeline.assets.cache import cache_dir

os.environ.setdefault("WARP_CACHE_PATH", str(cache_dir() / "warp"))
os.environ["CUDA_VISIBLE_DEVICES"] = ""

import mujoco
import pandas as pd  # noqa: F401 - PyArrow imports it with its first array, which takes as long as an episode

from pipeline.engine import Engine
from pipeline.reasons import make_expert
from pipeline.sim.cell import open_cell
from pipeline.sim.native import NewtonNativeManager
from pipeline.sim.recorder import record
from pipeline.store import Episode, Run
from pipeline.tasks import get_task

EPISODES = {"nut": 2}
"""Attempts by family; 4 of the others."""

RUN_SEED = 1

REST = "Isaac Lab and the recorder"


def measure(task_id: str, num_envs: int | None = None) -> dict[str, Any]:
    """Core seconds an episode, attempts that succeeded, and the share of each part; each env makes one attempt."""
    task = get_task(task_id)
    attempts, engine = num_envs or EPISODES.get(task.family, 4), Engine(threads=1)
    spent: defaultdict[str, float] = defaultdict(float)
    episodes: list[Episode] = []

    def timed(part: str, work: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            start = time.thread_time()
            try:
                return work(*arguments, **options)
            finally:
                spent[part] += time.thread_time() - start

        return call

    with open_cell(task, attempts, engine) as cell, tempfile.TemporaryDirectory() as scratch:
        run, expert, solver = Run.open(scratch, {}), make_expert(task, attempts), NewtonNativeManager.solver()

        def store(episode: Episode) -> None:
            episodes.append(episode)
            run.commit(episode)

        mujoco.mj_step = timed("mj_step", mujoco.mj_step)
        assert solver.probe is not None
        solver.probe = timed("contact probe", solver.probe)
        cell._servo.command = timed("servo", cell._servo.command)  # type: ignore[method-assign]
        cell.observe = timed("observe", cell.observe)  # type: ignore[method-assign]
        expert.act = timed("expert", expert.act)  # type: ignore[method-assign]
        start = time.process_time()
        record(cell, expert, engine, RUN_SEED, range(attempts), timed("store", store))
        total = time.process_time() - start
    shares = {part: seconds / total for part, seconds in spent.items()}
    return {
        "seconds": total / attempts,
        "attempts": attempts,
        "succeeded": sum(episode.outcome == "success" for episode in episodes),
        "shares": {**shares, REST: 1.0 - sum(shares.values())},
    }


if __name__ == "__main__":
    print("\nRESULT " + json.dumps(measure(sys.argv[1], *map(int, sys.argv[2:]))))
