"""A worker without a simulator: it commits made-up episodes, every third of which fails."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from pipeline.render.look import PLAIN
from pipeline.render.scene import build_scene
from pipeline.sim.worker import Shard
from pipeline.store import Episode, Run
from pipeline.tasks import get_task
from pipeline.watch import State, Watched
from tests.pipeline.factories import make_episode

ATTEMPTS_A_FAILURE = 3

ROWS = 15

AWAY = (0.0, 0.0, -9.0, 0.0, 0.0, 0.0, 1.0)

OVER = (0.3, 1.0, 0.0, 0.0, 0.0)
"""Height and orientation of a gripper whose camera sees both parts."""


def fake_worker(make: Callable[..., Episode], dies_after: int | None = None) -> Callable[..., Watched]:
    """Stand-in for :func:`pipeline.watch.watch`.

    Args:
        make: takes what :func:`tests.pipeline.factories.make_episode` takes.
        dies_after: raise an interrupt in place of the next episode after so many.
    """

    def watch(
        shard: Shard, lock: int, log: Path, listen: Callable[[dict[str, Any]], None], silence_s: float
    ) -> Watched:
        print("noise of a library")
        listen({"event": "ready"})
        for number, attempt in enumerate(shard.attempts):
            if number == dies_after:
                raise KeyboardInterrupt
            reason = "dropped" if attempt % ATTEMPTS_A_FAILURE == ATTEMPTS_A_FAILURE - 1 else None
            episode = make(shard.task, attempt, run_seed=shard.run_seed, reason=reason)
            Run(Path(shard.root)).commit(episode)
            listen({"event": "episode", "reason": episode.reason, "outcome": episode.outcome})
        return Watched(State.DONE, shard.attempts, (), 1.5 * len(shard.attempts))

    return watch


def renderable(*arguments: object, **options: object) -> Episode:
    """A short episode with a pose for everything that is drawn: the gripper hangs over the parts, the arm is away."""
    episode = make_episode(*arguments, length=ROWS, **options)  # type: ignore[arg-type]
    poses = dict(zip(episode.bodies, np.split(episode.frames["bodies"], len(episode.bodies), axis=1), strict=True))
    bodies = _drawn(episode.task)
    poses["base"] = np.tile((*(poses["held"][0, :2] + poses["fixed"][0, :2]) / 2, *OVER), (ROWS, 1))
    rows = np.hstack([poses.get(name, np.tile(AWAY, (ROWS, 1))) for name in bodies]).astype(np.float32)
    return replace(episode, bodies=bodies, frames={**episode.frames, "bodies": rows})


@cache
def _drawn(task: str) -> tuple[str, ...]:
    return tuple(build_scene(get_task(task), PLAIN).bodies)
