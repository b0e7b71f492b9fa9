"""A worker without a simulator: it commits made-up episodes, every third of which fails."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np

from pipeline.record import Listener, Progress
from pipeline.render.look import PLAIN
from pipeline.render.scene import build_scene
from pipeline.sim.worker import Shard
from pipeline.store import Episode, Run
from pipeline.tasks import get_task
from tests.pipeline.factories import make_episode

ATTEMPTS_A_FAILURE = 3

ROWS = 15


def fake_worker(make: Callable[..., Episode], dies_after: int | None = None) -> Callable[[Shard, int, Listener], float]:
    """Stand-in for :func:`pipeline.record.run_shard`.

    Args:
        make: takes what :func:`tests.pipeline.factories.make_episode` takes.
        dies_after: raise an interrupt in place of the next episode after so many.
    """

    def run_shard(shard: Shard, lock: int, listen: Listener) -> float:
        print("noise of a library")
        listen(Progress("ready", shard.task))
        for number, attempt in enumerate(shard.attempts):
            if number == dies_after:
                raise KeyboardInterrupt
            reason = "dropped" if attempt % ATTEMPTS_A_FAILURE == ATTEMPTS_A_FAILURE - 1 else None
            episode = make(shard.task, attempt, run_seed=shard.run_seed, reason=reason)
            Run(Path(shard.root)).commit(episode)
            listen(Progress("episode", shard.task, episode.reason or "", episode.outcome))
        return 1.5 * len(shard.attempts)

    return run_shard


def renderable(*arguments: object, **options: object) -> Episode:
    """A short episode with a pose for everything that is drawn; the robot's links all lie at the tool."""
    episode = make_episode(*arguments, length=ROWS, **options)  # type: ignore[arg-type]
    poses = dict(zip(episode.bodies, np.split(episode.frames["bodies"], len(episode.bodies), axis=1), strict=True))
    bodies = _drawn(episode.task)
    tool = poses["panda_hand"]
    rows = np.hstack([poses.get(name, tool) for name in bodies])
    return replace(episode, bodies=bodies, frames={**episode.frames, "bodies": rows})


@cache
def _drawn(task: str) -> tuple[str, ...]:
    return tuple(build_scene(get_task(task), PLAIN).bodies)
