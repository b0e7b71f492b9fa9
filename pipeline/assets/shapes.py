"""What parts are made of: convex pieces for contact and clean meshes for pictures, in metres, +z up."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import trimesh

SEGMENTS = 48
"""Faces around a visual surface of revolution."""

TABLE_GAP_M = 0.0005
"""Blocks keep this far off the table: a contact between two bodies that never move would carry huge forces."""

Profile = list[tuple[float, float]]


@dataclass(frozen=True)
class Mesh:
    """Triangles in the part's frame with a material name; faces wind counter-clockwise seen from outside."""

    vertices: np.ndarray
    faces: np.ndarray
    material: str


@dataclass(frozen=True)
class Hull:
    """Convex hull of ``vertices`` (n, 3)."""

    vertices: np.ndarray


@dataclass(frozen=True)
class Cylinder:
    """Upright cylinder from ``z0`` upwards, about an axis through ``xy``."""

    radius: float
    height: float
    z0: float
    xy: tuple[float, float] = (0.0, 0.0)


@dataclass(frozen=True)
class Box:
    """Upright box from ``z0`` upwards; ``size`` (3,) along its own axes, ``yaw_rad`` turned, ``centre`` in x and y."""

    size: tuple[float, float, float]
    z0: float
    centre: tuple[float, float] = (0.0, 0.0)
    yaw_rad: float = 0.0


@dataclass(frozen=True)
class Part:
    """A rigid part.

    Attributes:
        colliders: convex pieces.
        visuals: what a camera sees.
        mass_kg: mass; inertia follows from the shape at even density.
        friction: sliding friction that this part brings into a contact.
        impedance: of contacts with this part as a fixture, MuJoCo's ``solimp`` at first touch and at depth: how nearly
            rigid they are. The lighter the other part, the softer they get.
        grip_impedance: the same of contacts with the gripper's pads. In soft ones a light part creeps under load.
    """

    colliders: tuple[Hull | Cylinder | Box, ...]
    visuals: tuple[Mesh, ...]
    mass_kg: float
    friction: float
    impedance: tuple[float, float] = (0.99, 0.999)
    grip_impedance: tuple[float, float] = (0.95, 0.99)


def box_vertices(half_width: float, z0: float, z1: float) -> np.ndarray:
    """Corners (8, 3) of an upright box about the z axis."""
    return np.array([(x, y, z) for x in (-half_width, half_width) for y in (-half_width, half_width) for z in (z0, z1)])


def lathe(profile: Profile, material: str) -> Mesh:
    """Solid of revolution about the z axis from its outline of (radius, height), upwards on the outside."""
    solid = trimesh.creation.revolve(np.array(profile), sections=SEGMENTS)
    return Mesh(np.asarray(solid.vertices), np.asarray(solid.faces, np.int32), material)


def skin(rings: Sequence[np.ndarray], material: str) -> Mesh:
    """Surface between consecutive rings (k, 3) of a profile that goes up inside a bore and down outside."""
    count = len(rings[0])
    faces = []
    for lower, upper in pairwise(range(len(rings))):
        for k in range(count):
            a, b = lower * count + k, lower * count + (k + 1) % count
            c, d = upper * count + k, upper * count + (k + 1) % count
            faces += [(a, c, b), (b, c, d)]
    return Mesh(np.concatenate(rings), np.array(faces, np.int32), material)
