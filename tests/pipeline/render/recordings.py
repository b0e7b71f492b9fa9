"""Short episodes whose robot moves: the links' poses follow from the joint angles by forward kinematics."""

from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from pipeline.errors import UserError
from pipeline.render.opengl import find_backend
from pipeline.render.poses import link_poses
from pipeline.store import Episode, Run
from tests.pipeline.factories import make_episode

PARTS = ("held", "fixed", "stand")
FINGER_RANGE_RAD = np.pi / 4


def robot_episode(task_id: str = "peg_round_8mm", attempt: int = 0, length: int = 12) -> Episode:
    """An episode as :func:`make_episode` makes it, with the bodies of the real robot."""
    episode = make_episode(task_id, attempt, length=length)
    poses = [
        {
            **link_poses(state[:7].astype(float), float(state[7]) * FINGER_RANGE_RAD),
            **{part: episode.frames[f"privileged.{part}_pose"][row].astype(float) for part in PARTS},
        }
        for row, state in enumerate(episode.frames["observation.state"])
    ]
    bodies = tuple(poses[0])
    rows = np.stack([np.concatenate([pose[body] for body in bodies]) for pose in poses])
    return replace(episode, bodies=bodies, frames={**episode.frames, "bodies": rows.astype(np.float32)})


def poses_of(episode: Episode, row: int) -> dict[str, np.ndarray]:
    """Pose of each body in one row."""
    values = episode.frames["bodies"][row].reshape(-1, 7).astype(float)
    return dict(zip(episode.bodies, values, strict=True))


def write_robot_run(root: Path, count: int, length: int = 12) -> Run:
    """A run folder of such episodes, without videos."""
    run = Run.open(root, {"run_seed": 7})
    for attempt in range(count):
        run.commit(robot_episode(attempt=attempt, length=length))
    return run


@cache
def opengl_missing() -> str | None:
    """Why pictures cannot be rendered by OpenGL here, or None."""
    try:
        find_backend()
    except UserError as error:
        return str(error)
    return None


needs_opengl = pytest.mark.skipif(opengl_missing() is not None, reason=f"no OpenGL: {opengl_missing()}")
