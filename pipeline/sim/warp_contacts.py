"""Contact and wrist signals on the stock engine, read from MuJoCo Warp's arrays at the end of a control step."""

import mujoco_warp
import numpy as np
from newton.solvers import SolverMuJoCo

from pipeline.sim.contacts import (
    FIXED,
    HELD,
    PADS,
    PAIRS,
    Signals,
    body_index,
    parts_of_geoms,
    penetrations,
    wrench_in_frame,
)


class WarpContacts:
    """Reads what :class:`~pipeline.sim.contacts.ContactProbe` reads on the native engine, once a control step.

    Args:
        solver: the running solver.
        held, fixed, pads, gripper: names of the bodies, as they end in the model.
    """

    def __init__(self, solver: SolverMuJoCo, held: str, fixed: str, pads: tuple[str, str], gripper: str) -> None:
        model = solver.mj_model
        self._part = parts_of_geoms(model, held, fixed, pads)
        self._held_dof = int(model.body_dofadr[body_index(model, held)])
        self._gripper = body_index(model, gripper)
        self._root = int(model.body_rootid[self._gripper])

    def clear(self, worlds: np.ndarray) -> None:
        """Forget what was read in some worlds: nothing is kept between control steps."""

    def faults(self, solver: SolverMuJoCo) -> list[str | None]:
        """Per world, whether contacts or constraints were dropped for lack of room, else None."""
        data = solver.mjw_data
        if int(data.nacon.numpy()[0]) > data.naconmax:
            return ["contact overflow"] * data.nworld
        return ["constraint overflow" if rows > data.njmax else None for rows in data.nefc.numpy()]

    def take(self, solver: SolverMuJoCo) -> Signals:
        """Signals of the last solver step."""
        data = solver.mjw_data
        signals = Signals.silent(data.nworld)
        count = min(int(data.nacon.numpy()[0]), data.naconmax)
        contact = data.contact
        geom, world, dist, address, frame = (
            getattr(contact, name).numpy()[:count] for name in ("geom", "worldid", "dist", "efc_address", "frame")
        )
        force = self._forces(data.efc.force.numpy(), world, address)
        parts = self._part[geom]
        meeting = parts[:, 0] | parts[:, 1]
        joint = meeting == HELD | FIXED
        deepest = np.zeros((data.nworld, PAIRS))
        np.maximum.at(deepest, (world, meeting), -dist)
        for name, depth in penetrations(deepest).items():
            getattr(signals, name)[:] = depth
        velocity = data.qvel.numpy()[:, self._held_dof : self._held_dof + 3]
        signals.held_speed_m_s[:] = np.linalg.norm(velocity, axis=1)
        signals.contacts[:] = np.bincount(world, minlength=data.nworld)
        sign = np.where(parts[:, 1] == HELD, 1.0, -1.0)
        total = np.zeros((data.nworld, 3))
        on_held = sign[:, None] * np.einsum("nij,ni->nj", frame.reshape(-1, 3, 3), force)
        np.add.at(total, world[joint], on_held[joint])
        signals.fixture_force_n[:] = np.linalg.norm(total, axis=1)
        for side, pad in enumerate(PADS):
            touching = (meeting & pad) > 0
            np.add.at(signals.pad_force_n[:, side], world[touching], force[touching, 0])
        self._wrench(solver, signals.wrist_wrench)
        return signals

    def _forces(self, efc_force: np.ndarray, world: np.ndarray, address: np.ndarray) -> np.ndarray:
        """Normal and two tangential forces (n, 3) of each contact; zero where it is not in the constraints."""
        rows = address[:, :3]
        return np.where(rows >= 0, efc_force[world[:, None], np.maximum(rows, 0)], 0.0)

    def _wrench(self, solver: SolverMuJoCo, out: np.ndarray) -> None:
        model, data, body = solver.mjw_model, solver.mjw_data, self._gripper
        mujoco_warp.rne_postconstraint(model, data)
        spatial = data.cfrc_int.numpy()[:, body]
        arm = data.subtree_com.numpy()[:, self._root] - data.xpos.numpy()[:, body]
        out[:] = wrench_in_frame(spatial, arm, data.xmat.numpy()[:, body].reshape(-1, 3, 3))
