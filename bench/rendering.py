"""Images per CPU-second of every renderer and setting. Run as ``python -m bench.rendering``.

Each renderer is measured in a process of its own, on the same poses of an episode, from both cameras.
"""

import json
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np

from pipeline.render.cameras import DEFAULT_CAMERAS
from pipeline.render.renderer import Renderer, choose_renderer
from pipeline.tasks import HOME_JOINTS_RAD, get_task

TASK = "peg_round_8mm"
ROUNDS, POSES = 3, 10
PARTS_M = {"fixed": (0.344, 0.039, 0.0), "stand": (0.396, -0.028, 0.0)}

WAYPOINTS_RAD = (
    (0.00, HOME_JOINTS_RAD),
    (0.20, (0.05, 0.07, -0.12, -2.74, 0.02, 2.81, -0.35)),
    (0.30, (0.05, 0.07, -0.12, -2.74, 0.02, 2.81, -0.35)),
    (0.50, (0.12, -0.39, -0.01, -2.87, -0.01, 2.48, -0.15)),
    (0.60, (0.12, -0.05, -0.01, -2.89, 0.00, 2.84, -0.15)),
    (0.85, (0.12, -0.05, -0.01, -2.89, 0.00, 2.84, -0.15)),
    (1.00, (0.12, -0.39, -0.01, -2.87, -0.01, 2.48, -0.15)),
)
"""Share of an episode and arm pose: home, at the stand, above the fixture, at it, above it again."""

HELD = (0.25, 0.85)
CLOSED_RAD, HELD_BELOW_BASE_M = 0.73, 0.19


def images_per_cpu_second(renderer: Renderer, poses: Sequence[Mapping[str, np.ndarray]]) -> float:
    """Best of three rounds over the poses, both cameras, in process CPU time."""
    renderer.render(poses[0], DEFAULT_CAMERAS)
    best = 0.0
    for _ in range(ROUNDS):
        start = time.process_time()
        for pose in poses:
            renderer.render(pose, DEFAULT_CAMERAS)
        best = max(best, len(poses) * len(DEFAULT_CAMERAS) / (time.process_time() - start))
    return best


def measure(name: str) -> dict[str, float]:
    """All settings of one renderer; the process must be in its environment."""
    from pipeline.render.look import PLAIN
    from pipeline.render.scene import build_scene

    scene, poses = build_scene(get_task(TASK), PLAIN), _poses()
    make: Any
    if name == "mujoco":
        from pipeline.render import mujoco_gl

        make = mujoco_gl.MujocoRenderer
    else:
        from pipeline.sim import newton_camera

        make = newton_camera.NewtonRenderer
    found = {}
    for (size, supersampling), shadows in product((("320x180", 1), ("640x360", 2)), (True, False)):
        renderer = make(scene, supersampling=supersampling, shadows=shadows)
        found[f"{size}, {'shadows' if shadows else 'no shadows'}"] = images_per_cpu_second(renderer, poses)
        renderer.close()
    return found


def _poses() -> list[Mapping[str, np.ndarray]]:
    """An episode in ten poses."""
    from pipeline.render.poses import link_poses

    upright = (0.0, 0.0, 0.0, 1.0)
    parts = {role: np.array([*place, *upright]) for role, place in PARTS_M.items()}
    shares, joints = zip(*WAYPOINTS_RAD, strict=True)
    poses: list[Mapping[str, np.ndarray]] = []
    for share in np.linspace(0.0, 1.0, POSES):
        arm = np.array([np.interp(share, shares, joint) for joint in zip(*joints, strict=True)])
        holds = HELD[0] <= share <= HELD[1]
        links = link_poses(arm, CLOSED_RAD if holds else 0.0)
        held = parts["stand" if share < HELD[0] else "fixed"]
        if holds:
            held = np.array([*(links["base"][:3] - (0.0, 0.0, HELD_BELOW_BASE_M)), *upright])
        poses.append({**links, **parts, "held": held})
    return poses


def main() -> None:
    """Measure every renderer that works here and print their ratios."""
    rates: dict[str, dict[str, float]] = {}
    for name in ("mujoco", "newton"):
        child = subprocess.run(
            [sys.executable, "-m", "bench.rendering", name],
            env=choose_renderer(name).environment(),
            capture_output=True,
            text=True,
            check=True,
        )
        rates[name] = json.loads(child.stdout.rpartition("RESULT ")[2])
    ratios = {setting: rate / rates["newton"][setting] for setting, rate in rates["mujoco"].items()}
    print("\nRESULT " + json.dumps({**rates, "mujoco / newton": ratios}))


if __name__ == "__main__":
    if len(sys.argv) > 1:
        print("\nRESULT " + json.dumps(measure(sys.argv[1])))
    else:
        main()
