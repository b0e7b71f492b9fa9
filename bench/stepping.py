"""Control steps a second, in contact. Run as ``python -m bench.stepping native|stock STATE.npz``.

``native`` records until the pegs are in the hands, saves that state, measures the recording loop, the env's step
and bare ``mj_step`` of the same worlds; ``stock`` puts Isaac Lab's own MuJoCo Warp stepping into the saved state.
"""

import json
import os
import resource
import sys
import time
from concurrent.futures import ThreadPoolExecutor

from pipeline.assets.cache import cache_dir

os.environ.setdefault("WARP_CACHE_PATH", str(cache_dir() / "warp"))
os.environ["CUDA_VISIBLE_DEVICES"] = ""

import mujoco
import numpy as np
import torch

from pipeline.engine import Engine
from pipeline.reasons import make_expert
from pipeline.sim.cell import Cell, open_cell
from pipeline.sim.native import NewtonNativeManager
from pipeline.sim.recorder import _Recorder
from pipeline.tasks import get_task

NUM_ENVS = 16
STEPS_TO_GRASP = 75
ROUNDS, STEPS = 5, 20
STOCK_STEPS = 6


def native(path: str) -> dict[str, float]:
    """Best of five rounds of each, interleaved."""
    engine, task = Engine(threads=os.cpu_count() or 1), get_task("peg_round_8mm")
    with open_cell(task, NUM_ENVS, engine) as cell:
        expert = make_expert(task, NUM_ENVS)
        recorder = _Recorder(cell, expert, engine, 1, list(range(4 * NUM_ENVS)), {})
        for _ in range(STEPS_TO_GRASP):
            recorder.advance()
        action = _save(cell, path)
        solver = NewtonNativeManager.solver()
        contacts = float(np.mean([solver.world(w)[1].ncon for w in range(NUM_ENVS)]))
        state = [(d.qpos.copy(), d.qvel.copy()) for _, d in map(solver.world, range(NUM_ENVS))]
        rates: dict[str, list[float]] = {"step": [], "bare": [], "loop": []}
        with ThreadPoolExecutor(engine.threads) as pool:
            for _ in range(ROUNDS):
                rates["step"].append(_rate(STEPS, lambda: cell._env.step(action)))
                for (_, data), (qpos, qvel) in zip(map(solver.world, range(NUM_ENVS)), state, strict=True):
                    data.qpos[:], data.qvel[:] = qpos, qvel
                rates["bare"].append(_rate(STEPS, lambda: list(pool.map(_bare, map(solver.world, range(NUM_ENVS))))))
            for _ in range(ROUNDS):
                rates["loop"].append(_rate(STEPS, recorder.advance))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024**2
    return {**{name: max(values) for name, values in rates.items()}, "contacts": contacts, "peak_memory_gb": peak}


def _bare(world: tuple[mujoco.MjModel, mujoco.MjData]) -> None:
    mujoco.mj_step(*world, nstep=Engine().substeps)


def _rate(steps: int, step: object) -> float:
    start = time.perf_counter()
    for _ in range(steps):
        step()  # type: ignore[operator]
    return steps * NUM_ENVS / (time.perf_counter() - start)


def _save(cell: Cell, path: str) -> torch.Tensor:
    """Joints, part poses and the standing command; returns the command."""
    robot = cell._robot.data
    parts = {role: cell._env.scene[role].data.root_link_pose_w.torch.numpy() for role in cell._roles}
    joints = robot.joint_pos.torch
    action = torch.cat([joints[:, cell._arm], torch.full((NUM_ENVS, 2), 0.8)], 1)
    np.savez(path, joints=joints.numpy(), action=action.numpy(), **parts)
    return action


def stock(path: str) -> dict[str, float]:
    """Isaac Lab's own stepping of the same scene in the same state, with the same substeps."""
    saved = np.load(path)
    with open_cell(get_task("peg_round_8mm"), NUM_ENVS, Engine(native=False)) as cell:
        action = torch.as_tensor(saved["action"])
        cell._robot.write_joint_position_to_sim_index(position=torch.as_tensor(saved["joints"]))
        for role in cell._roles:
            cell._env.scene[role].write_root_pose_to_sim_index(root_pose=torch.as_tensor(saved[role]))
        cell._env.step(action)
        return {"step": _rate(STOCK_STEPS, lambda: cell._env.step(action))}


if __name__ == "__main__":
    result = {"native": native, "stock": stock}[sys.argv[1]](sys.argv[2])
    print("\nRESULT " + json.dumps(result))
