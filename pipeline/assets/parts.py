"""Parts authored from the dimension table of each task: convex pieces for contact, a clean mesh for pictures.

A part's root is the centre of its underside, +z up; lengths in metres.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import trimesh

from pipeline.faults import Fault
from pipeline.tasks import Task

SECTORS = 16
"""Convex sectors around a round bore; the inscribed circle of their inner faces has the bore's radius."""

SEGMENTS = 48
"""Faces around a visual surface of revolution."""

TABLE_GAP_M = 0.0005
"""Blocks keep this far off the table: a contact between two bodies that never move would carry huge forces."""

FIXTURE_HALF_WIDTH_M = 0.020
STAND_HALF_WIDTH_M = 0.015
STAND_FRICTION = 0.01

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
    """Upright cylinder about the z axis, from ``z0`` upwards."""

    radius: float
    height: float
    z0: float


@dataclass(frozen=True)
class Part:
    """A rigid part.

    Attributes:
        colliders: convex pieces.
        visuals: what a camera sees.
        mass_kg: mass; inertia follows from the shape at even density.
        friction: sliding friction that this part brings into a contact.
    """

    colliders: tuple[Hull | Cylinder, ...]
    visuals: tuple[Mesh, ...]
    mass_kg: float
    friction: float


def scene_parts(task: Task, fault: Fault | None = None) -> Mapping[str, Part]:
    """Parts of a task by role: ``held``, ``fixed`` and, where there is one, ``stand``.

    Raises:
        NotImplementedError: for a family whose parts are not authored yet.
    """
    if task.family not in AUTHORS:
        raise NotImplementedError(f"{task.id}: no parts for the {task.family} family yet")
    narrowing = fault.bore_narrowing_m if fault else 0.0
    if narrowing:
        geometry = {**task.geometry, "clearance": task.geometry["clearance"] - narrowing}
        task = replace(task, geometry=geometry)
    return AUTHORS[task.family](task)


def _round_peg(task: Task) -> dict[str, Part]:
    g = task.geometry
    radius = g["width"] / 2
    return {
        "held": _peg(radius, g["length"], task.mass_kg, task.friction),
        "fixed": _block(
            FIXTURE_HALF_WIDTH_M, radius + g["clearance"] / 2, g, material="fix", mass_kg=0.3, friction=task.friction
        ),
        "stand": _block(
            STAND_HALF_WIDTH_M,
            radius + g["stand_clearance"] / 2,
            g,
            material="stand",
            mass_kg=0.15,
            friction=STAND_FRICTION,
        ),
    }


AUTHORS: Mapping[str, Callable[[Task], dict[str, Part]]] = {"peg_round": _round_peg}


def _peg(radius: float, length: float, mass_kg: float, friction: float) -> Part:
    edge = min(0.0006, radius / 4)
    outline = [(0.0, 0.0), (radius - edge, 0.0), (radius, edge), (radius, length - edge), (radius - edge, length)]
    return Part(
        colliders=(Cylinder(radius, length, 0.0),),
        visuals=(_lathe([*outline, (0.0, length)], "steel"),),
        mass_kg=mass_kg,
        friction=friction,
    )


def _block(
    half_width: float, bore_radius: float, g: Mapping[str, float], material: str, mass_kg: float, friction: float
) -> Part:
    """Square block with a blind round bore whose mouth is chamfered."""
    top, chamfer = g["base"] + g["bore_depth"], g["chamfer"]
    base = _box_vertices(half_width, TABLE_GAP_M, g["base"])
    walls = [_sector(bore_radius, half_width, g["base"], top, chamfer, k) for k in range(SECTORS)]
    return Part(
        colliders=(Hull(base), *(Hull(w) for w in walls)),
        visuals=(_block_visual(bore_radius, half_width, g["base"], top, chamfer, material),),
        mass_kg=mass_kg,
        friction=friction,
    )


def _sector(radius: float, half_width: float, z0: float, z1: float, chamfer: float, index: int) -> np.ndarray:
    """One wedge of a block's wall, (10, 3) or with a corner (12, 3): tangent to the bore, chamfered at the top."""
    corner = 1 / np.cos(np.pi / SECTORS)
    points = []
    for angle in (2 * np.pi * (index - 0.5) / SECTORS, 2 * np.pi * (index + 0.5) / SECTORS):
        direction = np.array([np.cos(angle), np.sin(angle)])
        outer = half_width / np.max(np.abs(direction))
        inner = radius * corner
        for r, z in ((inner, z0), (inner, z1 - chamfer), (inner + chamfer, z1), (outer, z1), (outer, z0)):
            points.append((*(r * direction), z))
    if index % (SECTORS // 4) == SECTORS // 8:
        middle = 2 * np.pi * index / SECTORS
        points += [(*(half_width * np.sign([np.cos(middle), np.sin(middle)])), z) for z in (z0, z1)]
    return np.array(points)


def _box_vertices(half_width: float, z0: float, z1: float) -> np.ndarray:
    return np.array([(x, y, z) for x in (-half_width, half_width) for y in (-half_width, half_width) for z in (z0, z1)])


def _lathe(profile: Profile, material: str) -> Mesh:
    solid = trimesh.creation.revolve(np.array(profile), sections=SEGMENTS)
    return Mesh(np.asarray(solid.vertices), np.asarray(solid.faces, np.int32), material)


def _block_visual(radius: float, half_width: float, floor: float, top: float, chamfer: float, material: str) -> Mesh:
    """Rings of equal angle: bore floor, bore wall, chamfer, top face, sides and underside."""
    angles = np.linspace(0, 2 * np.pi, SEGMENTS, endpoint=False)
    circle = np.stack([np.cos(angles), np.sin(angles)], 1)
    square = circle * (half_width / np.abs(circle).max(1, keepdims=True))
    rings = [
        np.c_[circle * r, np.full(SEGMENTS, z)]
        for r, z in ((radius * 1e-3, floor), (radius, floor), (radius, top - chamfer), (radius + chamfer, top))
    ]
    rings += [np.c_[square * s, np.full(SEGMENTS, z)] for s, z in ((1.0, top), (1.0, 0.0), (1e-3, 0.0))]
    faces = []
    for lower, upper in pairwise(range(len(rings))):
        for k in range(SEGMENTS):
            a, b = lower * SEGMENTS + k, lower * SEGMENTS + (k + 1) % SEGMENTS
            c, d = upper * SEGMENTS + k, upper * SEGMENTS + (k + 1) % SEGMENTS
            faces += [(a, c, b), (b, c, d)]
    return Mesh(np.concatenate(rings), np.array(faces, np.int32), material)
