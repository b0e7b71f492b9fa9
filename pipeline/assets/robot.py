"""The DROID robot as data: Franka Panda and full-linkage Robotiq 2F-85, read from the installed gym-hil package.

Masses, inertias, joint axes and limits are the source model's. MuJoCo conventions here: quaternions are wxyz.
"""

from dataclasses import dataclass
from functools import cache
from importlib.metadata import distribution
from pathlib import Path

import mujoco
import numpy as np

ARM_JOINT_NAMES = tuple(f"joint{i}" for i in range(1, 8))
DRIVER_JOINT_NAMES = ("right_driver_joint", "left_driver_joint")
PAD_BODIES = ("left_pad", "right_pad")
GRIPPER_BASE = "base"
SOURCE_PACKAGE = "gym-hil"

LINKAGE_ARMATURE = 1e-3
"""Rotor inertia given to the 2F-85's passive joints, kg m2: without it the light linkage limits the time step."""

MOUNT_YAW_RAD = np.pi / 4
"""Turn of the gripper about the flange against the source model, which mounts it as Franka's hand is mounted:
DROID's fingers close along the robot's y axis at its home pose, where joint 7 is zero."""

_MASSLESS_FRAMES = ("attachment",)
_MOUNT = "base_mount"


@dataclass(frozen=True)
class Collider:
    """A convex collider in its body's frame: a box by half sizes, or the hull of some vertices."""

    name: str
    pos: np.ndarray
    quat_wxyz: np.ndarray
    half_size: np.ndarray | None = None
    vertices: np.ndarray | None = None
    faces: np.ndarray | None = None


@dataclass(frozen=True)
class Joint:
    """A hinge; ``pos`` and ``axis`` (``X`` or ``Z``) are in the child body's frame, range in radians."""

    name: str
    pos: np.ndarray
    axis: str
    range_rad: tuple[float, float]
    armature: float
    damping: float
    stiffness: float
    springref_rad: float
    limit_solref: tuple[float, ...]
    limit_solimp: tuple[float, ...]


@dataclass(frozen=True)
class Body:
    """A link; pose relative to its parent, in the model's zero configuration."""

    name: str
    parent: str | None
    pos: np.ndarray
    quat_wxyz: np.ndarray
    mass: float
    com: np.ndarray
    inertia: np.ndarray
    inertia_quat_wxyz: np.ndarray
    joint: Joint | None
    colliders: tuple[Collider, ...]


@dataclass(frozen=True)
class Connect:
    """A loop closure: the point ``anchor`` of ``body1`` coincides with ``anchor2`` of ``body2``."""

    body1: str
    body2: str
    anchor: np.ndarray
    anchor2: np.ndarray
    solref: tuple[float, ...]
    solimp: tuple[float, ...]


@dataclass(frozen=True)
class Robot:
    """Links in topological order, loop closures, and the pair of joints (follower, leader) that move as one."""

    bodies: tuple[Body, ...]
    connects: tuple[Connect, ...]
    mimic: tuple[str, str]
    source: str

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all links."""
        return tuple(body.name for body in self.bodies)


def source_mjcf() -> Path:
    """Path of the source model; the package itself is never imported."""
    return Path(str(distribution(SOURCE_PACKAGE).locate_file("gym_hil/assets/panda.xml")))


def source_licences() -> dict[str, str]:
    """Licence texts that the package ships, by file name."""
    files = distribution(SOURCE_PACKAGE).files or []
    return {f.name: f.read_text() for f in files if "licen" in f.name.lower() and f.suffix in ("", ".txt", ".md")}


@cache
def load_robot() -> Robot:
    """Read and compile the source model."""
    model = mujoco.MjModel.from_xml_path(str(source_mjcf()))
    return Robot(
        bodies=tuple(_body(model, i) for i in range(1, model.nbody) if model.body(i).name not in _MASSLESS_FRAMES),
        connects=tuple(_connects(model)),
        mimic=("left_driver_joint", "right_driver_joint"),
        source=f"{SOURCE_PACKAGE} {distribution(SOURCE_PACKAGE).version}",
    )


def _body(model: mujoco.MjModel, index: int) -> Body:
    name, parent = model.body(index).name, int(model.body_parentid[index])
    pos, quat = model.body_pos[index].copy(), model.body_quat[index].copy()
    if name == _MOUNT:
        quat = multiply(np.array([np.cos(MOUNT_YAW_RAD / 2), 0.0, 0.0, np.sin(MOUNT_YAW_RAD / 2)]), quat)
    while parent and model.body(parent).name in _MASSLESS_FRAMES:
        pos = model.body_pos[parent] + rotate(model.body_quat[parent], pos)
        quat = multiply(model.body_quat[parent], quat)
        parent = int(model.body_parentid[parent])
    return Body(
        name=name,
        parent=model.body(parent).name if parent else None,
        pos=pos,
        quat_wxyz=quat,
        mass=float(model.body_mass[index]),
        com=model.body_ipos[index].copy(),
        inertia=model.body_inertia[index].copy(),
        inertia_quat_wxyz=model.body_iquat[index].copy(),
        joint=_joint(model, int(model.body_jntadr[index])) if model.body_jntnum[index] else None,
        colliders=tuple(_collider(model, g) for g in range(model.ngeom) if _collides(model, g, index)),
    )


def _joint(model: mujoco.MjModel, index: int) -> Joint:
    dof, name = int(model.jnt_dofadr[index]), model.joint(index).name
    axis = {(1.0, 0.0, 0.0): "X", (0.0, 0.0, 1.0): "Z"}[tuple(model.jnt_axis[index])]
    passive = name not in ARM_JOINT_NAMES and name not in DRIVER_JOINT_NAMES
    return Joint(
        name=name,
        pos=model.jnt_pos[index].copy(),
        axis=axis,
        range_rad=(float(model.jnt_range[index][0]), float(model.jnt_range[index][1])),
        armature=LINKAGE_ARMATURE if passive else float(model.dof_armature[dof]),
        damping=float(model.dof_damping[dof]),
        stiffness=float(model.jnt_stiffness[index]),
        springref_rad=float(model.qpos_spring[model.jnt_qposadr[index]]),
        limit_solref=tuple(map(float, model.jnt_solref[index])),
        limit_solimp=tuple(map(float, model.jnt_solimp[index])),
    )


def _collides(model: mujoco.MjModel, geom: int, body: int) -> bool:
    return int(model.geom_bodyid[geom]) == body and bool(model.geom_contype[geom] or model.geom_conaffinity[geom])


def _collider(model: mujoco.MjModel, geom: int) -> Collider:
    name = model.geom(geom).name or f"collider_{geom}"
    pos, quat = model.geom_pos[geom].copy(), model.geom_quat[geom].copy()
    if model.geom_type[geom] == mujoco.mjtGeom.mjGEOM_BOX:
        return Collider(name, pos, quat, half_size=model.geom_size[geom].copy())
    mesh = int(model.geom_dataid[geom])
    vertex, face = int(model.mesh_vertadr[mesh]), int(model.mesh_faceadr[mesh])
    return Collider(
        name,
        pos,
        quat,
        vertices=model.mesh_vert[vertex : vertex + int(model.mesh_vertnum[mesh])].copy(),
        faces=model.mesh_face[face : face + int(model.mesh_facenum[mesh])].copy(),
    )


def _connects(model: mujoco.MjModel) -> list[Connect]:
    rows = np.flatnonzero(model.eq_type == mujoco.mjtEq.mjEQ_CONNECT)
    return [
        Connect(
            body1=model.body(int(model.eq_obj1id[i])).name,
            body2=model.body(int(model.eq_obj2id[i])).name,
            anchor=model.eq_data[i, 0:3].copy(),
            anchor2=model.eq_data[i, 3:6].copy(),
            solref=tuple(map(float, model.eq_solref[i])),
            solimp=tuple(map(float, model.eq_solimp[i])),
        )
        for i in rows
    ]


def rotate(quat_wxyz: np.ndarray, vector: np.ndarray) -> np.ndarray:
    """Turn a vector (3,) by a unit quaternion (4,) wxyz."""
    out = np.zeros(3)
    mujoco.mju_rotVecQuat(out, vector, quat_wxyz)
    return out


def multiply(a_wxyz: np.ndarray, b_wxyz: np.ndarray) -> np.ndarray:
    """Product (4,) wxyz of two quaternions: first ``b``, then ``a``."""
    out = np.zeros(4)
    mujoco.mju_mulQuat(out, a_wxyz, b_wxyz)
    return out
