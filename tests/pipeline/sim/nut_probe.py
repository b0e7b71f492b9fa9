"""Questions put to one simulator about a nut and its bolt; it prints one JSON object. ``python -m ... nut_M12``."""

import json
import os
import sys
from collections.abc import Callable
from typing import Any

from pipeline.assets.cache import cache_dir

os.environ.setdefault("WARP_CACHE_PATH", str(cache_dir() / "warp"))
os.environ["CUDA_VISIBLE_DEVICES"] = ""

import numpy as np
import torch

from pipeline.engine import Engine
from pipeline.reasons import make_expert
from pipeline.sim.cell import Cell, Observation, open_cell
from pipeline.sim.contacts import body_index
from pipeline.sim.recorder import record
from pipeline.store import Episode
from pipeline.success import Judge
from pipeline.tasks import Task, get_task

ENVS = 32
EVERYONE = list(range(ENVS))
TORQUE_NM = {"nut_M8": 0.004, "nut_M12": 0.008, "nut_M16": 0.014}

OIL_N_S_M, GUIDE_N_M_S, SPIN_RAD_S = 20.0, 5.0, 4.0

ON_TIP = 0.46
"""Height above the tip, in pitches, from which the helix goes down at heading 0."""

Force = Callable[[int], tuple[float, float]]
"""Force along and torque about the vertical, N and N m, at a control step."""


def main(task: Task) -> None:
    """Ask everything of one cell."""
    with open_cell(task, ENVS, Engine(threads=2)) as cell:
        answers = {
            "pulled with 5 N": pulled(cell),
            "turned by hand": turned(cell, -1.0, np.linspace(0.6, 1.4, ENVS)),
            "turned the wrong way": turned(cell, 1.0, np.zeros(ENVS), steps=130),
            "pushed with 20 N": pushed(cell),
        }
    print("\nANSWERS " + json.dumps(answers))


def _put(cell: Cell, threaded: np.ndarray) -> None:
    """Set the nut down upright: on the tip where ``threaded`` (N,) is 0, else so many turns down the thread."""
    g = cell.task.geometry
    tip = np.add(cell.task.fixed_pos_m, (0.0, 0.0, g["head"] + g["shank"]))
    for env_id, turns in enumerate(threaded):
        height = g["pitch"] * (ON_TIP - turns) if turns else 0.0002
        yaw = -2 * np.pi * (turns or env_id / ENVS)
        cell._env.place(env_id, "held", np.array([*(tip + (0, 0, height)), 0.0, 0.0, np.sin(yaw / 2), np.cos(yaw / 2)]))
    cell._env.reset(env_ids=None)


def _immerse(cell: Cell, ram_kg: float = 0.0) -> None:
    """Let the nut move as in thick oil and upright, as a hand guides it; ``ram_kg`` moves up and down with it.

    A bounded torque then turns the nut slowly, and a push has the inertia of what pushes. A force of 20 N on a free nut
    of 5 g is 400 times its weight, and rattles it through any thread at these time steps.
    """
    first = int(cell._solver.world(0)[0].body_dofadr[body_index(cell._solver.world(0)[0], "held")])
    for env_id in EVERYONE:
        model, _ = cell._solver.world(env_id)
        model.dof_damping[first : first + 3] = OIL_N_S_M
        model.dof_damping[first + 3 : first + 5] = GUIDE_N_M_S
        model.dof_damping[first + 5] = TORQUE_NM[cell.task.id] / SPIN_RAD_S
        model.dof_armature[first : first + 3] = ram_kg


def _drive(cell: Cell, steps: int, force: Force) -> list[Observation]:
    """Push and turn the nut in every env, the arm standing where it is."""
    part, seen = cell._env.scene["held"], [cell.observe()]
    arm = torch.as_tensor(seen[0].view.joint_pos_rad, dtype=torch.float32)
    command = torch.cat([arm, torch.zeros(ENVS, 2)], 1)
    for step in range(steps):
        along, about = force(step)
        forces, torques = torch.zeros(ENVS, 1, 3), torch.zeros(ENVS, 1, 3)
        forces[..., 2], torques[..., 2] = along, about
        part.permanent_wrench_composer.set_forces_and_torques_index(forces=forces, torques=torques, is_global=True)
        cell._env.step(command)
        cell._signals = cell._contacts.take(cell._solver)
        seen.append(cell.observe())
    return seen


def _turns(seen: list[Observation]) -> np.ndarray:
    """Turn about the vertical since the start, (T, N) in turns."""
    quat = np.stack([o.view.held_quat_xyzw for o in seen])
    yaw = 2 * np.arctan2(quat[..., 2], quat[..., 3])
    return np.unwrap(yaw, axis=0) / (2 * np.pi)


def _height_m(seen: list[Observation]) -> np.ndarray:
    return np.stack([o.view.held_pos_m[:, 2] for o in seen])


def _successes(cell: Cell, seen: list[Observation]) -> int:
    judge, view = Judge(cell.task, ENVS), seen[0].view
    judge.reset(np.arange(ENVS), view.held_pos_m, view.held_quat_xyzw)
    ever = np.zeros(ENVS, bool)
    for o in seen[1:]:
        v, s = o.view, o.signals
        judge.update(
            v.held_pos_m,
            v.held_quat_xyzw,
            v.fixed_pos_m,
            v.fixed_quat_xyzw,
            o.held_speed_m_s,
            v.tool_pos_m,
            v.finger_closed,
            s.penetration_m,
            s.stray_penetration_m,
            s.fixture_force_n,
            s.held_speed_m_s,
        )
        ever |= judge.success
    return int(ever.sum())


def turned(cell: Cell, sense: float, threaded: np.ndarray, steps: int = 100) -> dict[str, Any]:
    """Turned by a bounded torque under 1 N: the descent in pitches per turn."""
    _put(cell, threaded)
    _immerse(cell)
    torque, pitch = TORQUE_NM[cell.task.id], cell.task.geometry["pitch"]
    seen = _drive(cell, steps, lambda step: (-min(1.0, step / 15), sense * torque * (step > 20)))
    turns, height = _turns(seen)[30:], _height_m(seen)[30:] / pitch
    advance = [float(np.polyfit(turns[:, i], height[:, i], 1)[0]) for i in EVERYONE]
    return {"turns": np.ptp(turns, axis=0).tolist(), "pitches per turn": advance, "successes": _successes(cell, seen)}


def pushed(cell: Cell) -> dict[str, Any]:
    """Pushed straight down at any angle by a ram of 1 kg, the force growing slowly to 20 N."""
    _put(cell, np.zeros(ENVS))
    _immerse(cell, ram_kg=1.0)
    seen = _drive(cell, 110, lambda step: (-min(20.0, step / 4), 0.0))
    tip = cell.task.fixed_pos_m[2] + cell.task.geometry["head"] + cell.task.geometry["shank"]
    below = (tip - _height_m(seen)[-1]) / cell.task.geometry["pitch"]
    return {"successes": _successes(cell, seen), "pitches below the tip": below.tolist()}


def pulled(cell: Cell) -> dict[str, float]:
    """Threaded on by the robot, then pulled upwards with 5 N."""
    episodes: list[Episode] = []
    cell.set_active([True] * ENVS)
    record(cell, make_expert(cell.task, ENVS), Engine(threads=2), 1000, EVERYONE, episodes.append)
    won = [e.env_index for e in episodes if e.outcome == "success"]
    cell.set_active([True] * ENVS)
    seen = _drive(cell, 30, lambda step: (min(5.0, step / 2), 0.0))
    lift = (_height_m(seen)[-1] - _height_m(seen)[0]) / cell.task.geometry["pitch"]
    return {"threaded": len(won), "highest lift in pitches": float(lift[won].max())}


if __name__ == "__main__":
    main(get_task(sys.argv[1]))
