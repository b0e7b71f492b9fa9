"""Questions put to one simulator; run in a process of its own, it prints one JSON object of answers."""

import copy
import json
import os
import sys
from typing import Any

from pipeline.assets.cache import cache_dir

os.environ.setdefault("WARP_CACHE_PATH", str(cache_dir() / "warp"))
os.environ["CUDA_VISIBLE_DEVICES"] = ""

import mujoco
import numpy as np
import torch
from newton import ModelFlags

import experts.peg
from pipeline.engine import Engine
from pipeline.reasons import make_expert
from pipeline.schema import FPS
from pipeline.sim.cell import Cell, Observation, open_cell
from pipeline.sim.contacts import body_index
from pipeline.sim.native import _WARNINGS, NewtonNativeManager, speed_limit
from pipeline.sim.recorder import _Recorder, record
from pipeline.store import Episode
from pipeline.success import Judge
from pipeline.tasks import get_task
from randomization.draws import StartPose

TASK = get_task("peg_round_8mm")
ENVS = 4
NOMINAL = StartPose(0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
EVERYONE = list(range(ENVS))


def main(argv: list[str]) -> None:
    """Ask everything of one cell; of the task that is named, only about its contacts."""
    answers: dict[str, Any] = {}
    everything = (
        free_fall,
        contact_health,
        dropped_beside_the_hole,
        dropped_into_the_hole,
        contacts_missed,
        reset_of_one,
        model_change,
        ramming,
        divergence,
        speed_limits,
        fault_names,
    )
    with open_cell(get_task(argv[1]) if argv[1:] else TASK, ENVS, Engine(threads=2)) as cell:
        for question in (contacts_missed,) if argv[1:] else everything:
            cell.reset(EVERYONE, [NOMINAL] * ENVS)
            answers[question.__name__] = question(cell)
    print("\nANSWERS " + json.dumps(answers))


def _put(cell: Cell, offset: tuple[float, float, float]) -> Observation:
    """Start with the peg upright, its base at ``offset`` from the fixture's root."""
    for env_id in EVERYONE:
        pose = np.array([*np.add(TASK.fixed_pos_m, offset), 0.0, 0.0, 0.0, 1.0])
        cell._env.place(env_id, "held", pose)
    cell._env.reset(env_ids=None)
    return cell.observe()


def _idle(cell: Cell, steps: int) -> list[Observation]:
    """Hold the arm at home with the gripper open."""
    seen = [cell.observe()]
    home = torch.as_tensor(seen[0].view.joint_pos_rad, dtype=torch.float32)
    command = torch.cat([home, torch.zeros(ENVS, 2)], 1)
    for _ in range(steps):
        cell._env.step(command)
        seen.append(cell.observe())
    return seen


def _judged(seen: list[Observation]) -> list[bool]:
    judge = Judge(TASK, ENVS)
    view = seen[0].view
    judge.reset(np.arange(ENVS), view.held_pos_m, view.held_quat_xyzw)
    ever = np.zeros(ENVS, bool)
    for o in seen[1:]:
        o.judged_by(judge)
        ever |= judge.success
    return [bool(e) for e in ever]


def free_fall(cell: Cell) -> dict[str, float]:
    """Speed gained and height lost by a peg that nothing holds."""
    _put(cell, (0.0, 0.0, 0.30))
    seen = _idle(cell, 2)
    height = [float(o.view.held_pos_m[0, 2]) for o in seen]
    return {
        "speed_m_s": float(seen[-1].view.held_vel_m_s[0, 2]),
        "fallen_m": height[0] - height[-1],
        "seconds": 2 / FPS,
    }


def contact_health(cell: Cell) -> dict[str, dict[str, float]]:
    """Signals of a control step of a falling peg, of one that stands on the table, and of one in the hole."""
    found = {}
    for name, offset, steps in (
        ("falls", (0.0, 0.0, 0.3), 1),
        ("stands", (0.0, -0.04, 0.001), 5),
        ("in", (0, 0, 0.006), 5),
    ):
        _put(cell, offset)
        _idle(cell, steps - 1)
        cell._contacts.take(cell._solver)
        _idle(cell, 1)
        signals = cell._contacts.take(cell._solver)
        names = ("penetration_m", "stray_penetration_m", "pad_penetration_m", "held_speed_m_s", "contacts")
        found[name] = {key: float(getattr(signals, key)[0]) for key in names}
    return found


def dropped_beside_the_hole(cell: Cell) -> list[bool]:
    """A peg that stands on the table or on the fixture's face, let alone for two seconds."""
    successes = []
    for offset in ((0.0, -0.04, 0.001), (0.0, 0.012, 0.0305)):
        _put(cell, offset)
        successes += _judged(_idle(cell, 30))
    return successes


def dropped_into_the_hole(cell: Cell) -> list[bool]:
    """The same peg a centimetre above its seat: the judge can say yes."""
    _put(cell, (0.0, 0.0, 0.015))
    return _judged(_idle(cell, 30))


def contacts_missed(cell: Cell) -> dict[str, int]:
    """Contacts of a whole episode against those of a search without bounding volumes."""
    solver = NewtonNativeManager.solver()
    exhaustive = [copy.copy(solver.world(world)[0]) for world in EVERYONE]
    for model in exhaustive:
        model.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_MIDPHASE)
    expert = make_expert(cell.task, ENVS)
    recorder = _Recorder(cell, expert, Engine(threads=2), 1000, EVERYONE.copy(), {})
    found = {"states": 0, "contacts": 0, "states that differ": 0}
    while recorder.busy:
        recorder.advance()
        for world in EVERYONE:
            model, data = solver.world(world)
            ours, all_of_them = _contacts(model, data), _contacts(exhaustive[world], data)
            found["states"] += 1
            found["contacts"] += len(all_of_them)
            found["states that differ"] += ours != all_of_them
    cell.set_active([True] * ENVS)
    return found


def _contacts(model: mujoco.MjModel, state: mujoco.MjData) -> list[tuple[int, int, float]]:
    data = mujoco.MjData(model)
    data.qpos[:] = state.qpos
    mujoco.mj_fwdPosition(model, data)
    pairs = zip(data.contact.geom.tolist(), data.contact.dist.tolist(), strict=True)
    return sorted((a, b, round(distance, 9)) for (a, b), distance in pairs)


def reset_of_one(cell: Cell) -> dict[str, bool]:
    """Whether envs go on as they would have when another one is reset among them."""
    finals = []
    for interrupts in (False, True):
        cell.reset(EVERYONE, [NOMINAL] * ENVS)
        _put(cell, (0.0, 0.0, 0.060))
        _idle(cell, 5)
        if interrupts:
            cell.reset([1], [StartPose(0.02, 0.01, 0.0, -0.03, 0.0, 0.0)])
        finals.append(_idle(cell, 5)[-1].body_poses)
    same = [bool((finals[0][i] == finals[1][i]).all()) for i in EVERYONE]
    return {"others": all(same[:1] + same[2:]), "itself": same[1]}


def model_change(cell: Cell) -> list[float]:
    """Pad friction in every world before and after a change of Newton's model."""
    solver = NewtonNativeManager.solver()
    values = []
    model, _ = solver.world(2)
    pad = next(g for g in range(model.ngeom) if "left_pad1" in model.geom(g).name)
    values.append(float(model.geom_friction[pad, 0]))
    friction = solver.model.shape_material_mu
    assert friction is not None
    kept = friction.numpy().copy()
    friction.assign(kept * 0.5)
    solver.notify_model_changed(ModelFlags.SHAPE_PROPERTIES)
    values += [float(solver.world(w)[0].geom_friction[pad, 0]) for w in EVERYONE]
    friction.assign(kept)
    solver.notify_model_changed(ModelFlags.SHAPE_PROPERTIES)
    values.append(float(model.geom_friction[pad, 0]))
    return values


def ramming(cell: Cell) -> list[dict[str, Any]]:
    """An expert that presses without yielding, and lets go only at the bottom."""
    kept = experts.peg.COMPLIANCE_M, experts.peg.DESCENT_STEP_M, experts.peg.RELEASE_GAP_M
    experts.peg.COMPLIANCE_M, experts.peg.DESCENT_STEP_M, experts.peg.RELEASE_GAP_M = 0.05, 0.01, 0.0003
    episodes: list[Episode] = []
    expert = make_expert(TASK, ENVS)
    record(cell, expert, Engine(threads=2), 1000, EVERYONE, episodes.append)
    experts.peg.COMPLIANCE_M, experts.peg.DESCENT_STEP_M, experts.peg.RELEASE_GAP_M = kept
    cell.set_active([True] * ENVS)
    return [{"outcome": e.outcome, "reason": e.reason, **e.contact} for e in episodes]


def divergence(cell: Cell) -> list[str | None]:
    """What is said of each world once one holds a speed that is not finite and another an absurd one."""
    joints = cell._robot.data.joint_vel.torch.clone()
    joints[1] = float("nan")
    joints[2] = 1e4
    cell._robot.write_joint_velocity_to_sim_index(velocity=joints)
    return cell.faults(_idle(cell, 1)[-1])


def speed_limits(cell: Cell) -> dict[str, float]:
    """Of a robot's joint, and of the peg's travel and spin."""
    model, _ = NewtonNativeManager.solver().world(0)
    limit = speed_limit(model)
    peg = int(model.body_dofadr[body_index(model, "held")])
    return {"joint": float(limit[0]), "travel": float(limit[peg]), "spin": float(limit[peg + 3])}


def fault_names(cell: Cell) -> list[str]:
    """What the engine can say of a world, and the cell of its bodies."""
    faults = [*_WARNINGS.values(), "not finite", "diverged", "left the cell"]
    return [fault.replace(" ", "_") for fault in faults]


if __name__ == "__main__":
    main(sys.argv)
