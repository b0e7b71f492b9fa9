"""Contact and wrist signals on the stock engine, read from MuJoCo Warp's arrays at the end of a control step."""

import mujoco_warp
import numpy as np
from newton.solvers import SolverMuJoCo

from pipeline.sim.contacts import Signals, body_index, wrench_in_frame


class WarpContacts:
    """Reads what :class:`~pipeline.sim.contacts.ContactProbe` reads on the native engine, once a control step.

    Args:
        solver: the running solver.
        held, fixed, pads, gripper: names of the bodies, as they end in the model.
    """

    def __init__(self, solver: SolverMuJoCo, held: str, fixed: str, pads: tuple[str, str], gripper: str) -> None:
        model = solver.mj_model
        self._held, self._fixed = (model.geom_bodyid == body_index(model, name) for name in (held, fixed))
        self._pads = tuple(model.geom_bodyid == body_index(model, pad) for pad in pads)
        self._gripper = body_index(model, gripper)
        self._root = int(model.body_rootid[self._gripper])

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
        first, second = geom.T
        joint = (self._held[first] & self._fixed[second]) | (self._fixed[first] & self._held[second])
        np.maximum.at(signals.penetration_m, world[joint], -dist[joint])
        sign = np.where(self._held[second], 1.0, -1.0)
        total = np.zeros((data.nworld, 3))
        on_held = sign[:, None] * np.einsum("nij,ni->nj", frame.reshape(-1, 3, 3), force)
        np.add.at(total, world[joint], on_held[joint])
        signals.fixture_force_n[:] = np.linalg.norm(total, axis=1)
        for side, pad in enumerate(self._pads):
            touching = pad[first] | pad[second]
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
        spatial, arm = (
            data.cfrc_int.numpy()[:, body],
            data.subtree_com.numpy()[:, self._root] - data.xpos.numpy()[:, body],
        )
        out[:] = wrench_in_frame(spatial, arm, data.xmat.numpy()[:, body].reshape(-1, 3, 3))


def overflows(solver: SolverMuJoCo) -> list[str | None]:
    """Per world, whether contacts or constraints were dropped for lack of room."""
    data = solver.mjw_data
    if int(data.nacon.numpy()[0]) > data.naconmax:
        return ["contact overflow"] * data.nworld
    return ["constraint overflow" if rows > data.njmax else None for rows in data.nefc.numpy()]
