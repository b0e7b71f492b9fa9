"""Contact and wrist signals of every world, read from MuJoCo's own contact solution."""

import math
from dataclasses import dataclass, fields

import mujoco
import numpy as np

from pipeline.sim.native import NativeWorlds

HELD, FIXED, PADS = 1, 2, (4, 8)
"""Bits by which :func:`parts_of_geoms` tells the parts of interest; a contact is known by the bits of both sides."""

PAIRS = 16
"""Contacts are of one of so many kinds."""

ON_PADS = np.array([[bool(pair & pad) for pair in range(PAIRS)] for pad in PADS], float)
"""Which kinds of contact press on the left and the right pad, (2, PAIRS)."""


@dataclass(frozen=True)
class Signals:
    """Worst of one control step, per world.

    Attributes:
        penetration_m: (N,) deepest overlap of held and fixed part.
        stray_penetration_m: (N,) deepest overlap of the held part with anything else that is rigid: its stand, the
            table, links of the robot.
        pad_penetration_m: (N,) deepest overlap of the held part with a pad, which is rubber and gives way.
        fixture_force_n: (N,) largest norm of the total force between held and fixed part.
        pad_force_n: (N, 2) largest normal force on the left and right pads.
        held_speed_m_s: (N,) largest linear speed of the held part.
        contacts: (N,) largest number of contacts.
        wrist_wrench: (N, 6) force and torque of the arm on the gripper at the last probe, gripper frame.
    """

    penetration_m: np.ndarray
    stray_penetration_m: np.ndarray
    pad_penetration_m: np.ndarray
    fixture_force_n: np.ndarray
    pad_force_n: np.ndarray
    held_speed_m_s: np.ndarray
    contacts: np.ndarray
    wrist_wrench: np.ndarray

    @classmethod
    def silent(cls, worlds: int) -> "Signals":
        """No contact anywhere."""
        size = {"pad_force_n": (worlds, 2), "wrist_wrench": (worlds, 6)}
        return cls(**{field.name: np.zeros(size.get(field.name, worlds)) for field in fields(cls)})

    def clear(self, worlds: np.ndarray) -> None:
        """Forget the signals of some worlds, whose episodes start anew."""
        for field in fields(self):
            getattr(self, field.name)[worlds] = 0.0


def penetrations(deepest_m: np.ndarray) -> dict[str, np.ndarray]:
    """Of :class:`Signals`, from the deepest overlap (N, PAIRS) of every kind of contact."""
    return {
        "penetration_m": deepest_m[:, HELD | FIXED].copy(),
        "stray_penetration_m": deepest_m[:, HELD].copy(),
        "pad_penetration_m": deepest_m[:, [HELD | pad for pad in PADS]].max(1),
    }


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
        self._deepest, self._pad_force = np.zeros((worlds, PAIRS)), np.zeros((worlds, 2))
        self._force, self._speed, self._contacts = [0.0] * worlds, [0.0] * worlds, [0] * worlds
        first = int(model.body_dofadr[body_index(model, held)])
        self._velocity = [engine.world(world)[1].qvel[first : first + 3] for world in range(worlds)]
        engine.probe = self

    def __call__(self, world: int, model: mujoco.MjModel, data: mujoco.MjData) -> None:
        """Read one world."""
        self._speed[world] = max(self._speed[world], math.hypot(*self._velocity[world].tolist()))
        self._contacts[world] = max(self._contacts[world], data.ncon)
        contact = data.contact
        parts = self._part[contact.geom]
        meeting = parts[:, 0] | parts[:, 1]
        if not meeting.any():
            return
        np.maximum.at(self._deepest[world], meeting, -contact.dist)
        address = contact.efc_address
        normal = np.where(address >= 0, data.efc_force[address], 0.0)
        pressed = ON_PADS @ np.bincount(meeting, normal, PAIRS)
        np.maximum(self._pad_force[world], pressed, out=self._pad_force[world])
        seated = np.flatnonzero(meeting == HELD | FIXED)
        if seated.size:
            active = seated[address[seated] >= 0]
            force = data.efc_force[address[active, None] + np.arange(3)]
            sign = np.where(parts[active, 1] == HELD, 1.0, -1.0)
            total = np.einsum("n,nij,ni->j", sign, contact.frame[active].reshape(-1, 3, 3), force)
            self._force[world] = max(self._force[world], math.hypot(*total.tolist()))

    def clear(self, worlds: np.ndarray) -> None:
        """Forget what was read in some worlds, whose episodes start anew."""
        self._deepest[worlds], self._pad_force[worlds] = 0.0, 0.0
        for world in worlds.tolist():
            self._force[world], self._speed[world], self._contacts[world] = 0.0, 0.0, 0

    def faults(self, engine: NativeWorlds) -> list[str | None]:
        """What went wrong in each world since its last reset, or None."""
        return list(engine.faults)

    def take(self, engine: NativeWorlds) -> Signals:
        """Signals since the last call; starts the next interval."""
        signals = Signals(
            **penetrations(self._deepest),
            fixture_force_n=np.array(self._force),
            pad_force_n=self._pad_force.copy(),
            held_speed_m_s=np.array(self._speed),
            contacts=np.array(self._contacts, float),
            wrist_wrench=self._wrench(engine),
        )
        self.clear(np.arange(len(self._deepest)))
        return signals

    def _wrench(self, engine: NativeWorlds) -> np.ndarray:
        """Force and torque (N, 6) of the arm on the gripper, about its origin and in its frame, as of the last step."""
        body, root = self._gripper, self._root
        worlds = [engine.world(world) for world in range(len(self._deepest))]
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
