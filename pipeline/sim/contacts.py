"""Contact and wrist signals of every world, read from MuJoCo's own contact solution."""

from dataclasses import dataclass

import mujoco
import numpy as np

from pipeline.sim.native import NativeWorlds

HELD, FIXED, PADS = 1, 2, (4, 8)
"""Bits by which :func:`parts_of_geoms` tells the parts of interest."""


@dataclass(frozen=True)
class Signals:
    """Worst of one control step, per world.

    Attributes:
        penetration_m: (N,) deepest overlap of held and fixed part.
        fixture_force_n: (N,) largest norm of the total force between them.
        pad_force_n: (N, 2) largest normal force on the left and right pads.
        wrist_wrench: (N, 6) force and torque of the arm on the gripper at the last probe, gripper frame.
    """

    penetration_m: np.ndarray
    fixture_force_n: np.ndarray
    pad_force_n: np.ndarray
    wrist_wrench: np.ndarray

    @classmethod
    def silent(cls, worlds: int) -> "Signals":
        """No contact anywhere."""
        return cls(np.zeros(worlds), np.zeros(worlds), np.zeros((worlds, 2)), np.zeros((worlds, 6)))

    def clear(self, worlds: np.ndarray) -> None:
        """Forget the signals of some worlds, whose episodes start anew."""
        for array in (self.penetration_m, self.fixture_force_n, self.pad_force_n, self.wrist_wrench):
            array[worlds] = 0.0


def body_index(model: mujoco.MjModel, name: str) -> int:
    """Body of an asset, by the last part of the name that Newton gives it.

    Raises:
        ValueError: unless there is exactly one.
    """
    found = [b for b in range(model.nbody) if model.body(b).name.endswith(f"_{name}")]
    if len(found) != 1:
        raise ValueError(f"{len(found)} bodies are named {name!r} in the compiled model, expected one")
    return found[0]


def parts_of_geoms(model: mujoco.MjModel, held: str, fixed: str, pads: tuple[str, str]) -> np.ndarray:
    """Bit of the part to which each geom belongs, (ngeom,); 0 for other bodies."""
    part = np.zeros(model.ngeom, np.int8)
    for bit, body in ((HELD, held), (FIXED, fixed), *zip(PADS, pads, strict=True)):
        part[model.geom_bodyid == body_index(model, body)] = bit
    return part


class ContactProbe:
    """Reads contacts while :class:`~pipeline.sim.native.NativeWorlds` steps.

    Args:
        engine: the solver; the probe installs itself there.
        held, fixed, pads, gripper: names of the bodies, as they end in the model.
    """

    def __init__(self, engine: NativeWorlds, held: str, fixed: str, pads: tuple[str, str], gripper: str) -> None:
        model, _ = engine.world(0)
        worlds = engine.mjw_data.nworld
        self._part = parts_of_geoms(model, held, fixed, pads)
        self._gripper = body_index(model, gripper)
        self._root = int(model.body_rootid[self._gripper])
        self._penetration = np.zeros(worlds)
        self._force = np.zeros(worlds)
        self._pad_force = np.zeros((worlds, 2))
        engine.probe = self

    def __call__(self, world: int, model: mujoco.MjModel, data: mujoco.MjData) -> None:
        """Read one world."""
        contact = data.contact
        parts = self._part[contact.geom]
        meeting = parts[:, 0] | parts[:, 1]
        if not meeting.any():
            return
        address = contact.efc_address
        normal = np.where(address >= 0, data.efc_force[address], 0.0)
        for side, pad in enumerate(PADS):
            pressed = float(normal[(meeting & pad) > 0].sum())
            self._pad_force[world, side] = max(self._pad_force[world, side], pressed)
        seated = np.flatnonzero(meeting == HELD | FIXED)
        if seated.size:
            self._penetration[world] = max(self._penetration[world], -float(contact.dist[seated].min()))
            active = seated[address[seated] >= 0]
            force = data.efc_force[address[active, None] + np.arange(3)]
            sign = np.where(parts[active, 1] == HELD, 1.0, -1.0)
            total = np.einsum("n,nij,ni->j", sign, contact.frame[active].reshape(-1, 3, 3), force)
            self._force[world] = max(self._force[world], float(np.linalg.norm(total)))

    def clear(self, worlds: np.ndarray) -> None:
        """Forget what was read in some worlds, whose episodes start anew."""
        for array in (self._penetration, self._force, self._pad_force):
            array[worlds] = 0.0

    def faults(self, engine: NativeWorlds) -> list[str | None]:
        """What went wrong in each world since its last reset, or None."""
        return list(engine.faults)

    def take(self, engine: NativeWorlds) -> Signals:
        """Signals since the last call; starts the next interval."""
        signals = Signals(self._penetration.copy(), self._force.copy(), self._pad_force.copy(), self._wrench(engine))
        for array in (self._penetration, self._force, self._pad_force):
            array[:] = 0.0
        return signals

    def _wrench(self, engine: NativeWorlds) -> np.ndarray:
        """Force and torque (N, 6) of the arm on the gripper, about its origin and in its frame, as of the last step."""
        body, root = self._gripper, self._root
        worlds = [engine.world(world) for world in range(len(self._force))]
        for model, data in worlds:
            mujoco.mj_rnePostConstraint(model, data)
        spatial = np.stack([data.cfrc_int[body] for _, data in worlds])
        arm = np.stack([data.subtree_com[root] - data.xpos[body] for _, data in worlds])
        rotation = np.stack([data.xmat[body] for _, data in worlds]).reshape(-1, 3, 3)
        return wrench_in_frame(spatial, arm, rotation)


def wrench_in_frame(spatial: np.ndarray, arm: np.ndarray, rotation: np.ndarray) -> np.ndarray:
    """Move MuJoCo's spatial forces to a body's own frame.

    Args:
        spatial: (N, 6) torque and force, world axes, about the centre of mass of the kinematic tree.
        arm: (N, 3) from the body's origin to that centre.
        rotation: (N, 3, 3) of the body in the world.

    Returns:
        (N, 6) force N and torque N m.
    """
    torque, force = spatial[:, :3] + np.cross(arm, spatial[:, 3:]), spatial[:, 3:]
    return np.einsum("nki,nij->nkj", np.stack([force, torque], 1), rotation).reshape(-1, 6)
