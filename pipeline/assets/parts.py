"""Parts authored from the dimension table of each task: convex pieces for contact, a clean mesh for pictures.

A part's root is the centre of its underside, +z up; lengths in metres.
"""

from collections.abc import Callable, Mapping, Sequence
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

TABLE_SIZE_M = (1.4, 1.8, 0.04)
TABLE_CENTRE_M = (0.35, 0.0, -0.02)

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
class Box:
    """Upright box centred on the z axis, from ``z0`` upwards; ``size`` (3,) along x, y, z."""

    size: tuple[float, float, float]
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

    colliders: tuple[Hull | Cylinder | Box, ...]
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


def _peg_parts(task: Task) -> dict[str, Part]:
    g = task.geometry
    square = task.family == "peg_square"
    block = _square_block if square else _round_block
    peg = _square_peg if square else _round_peg
    return {
        "held": peg(g, task.mass_kg, task.friction),
        "fixed": block(g, FIXTURE_HALF_WIDTH_M, g["clearance"], "fix", 0.3, task.friction),
        "stand": block(g, STAND_HALF_WIDTH_M, g["stand_clearance"], "stand", 0.15, STAND_FRICTION),
    }


AUTHORS: Mapping[str, Callable[[Task], dict[str, Part]]] = {"peg_round": _peg_parts, "peg_square": _peg_parts}


def _round_peg(g: Mapping[str, float], mass_kg: float, friction: float) -> Part:
    radius, length = g["width"] / 2, g["length"]
    edge = min(0.0006, radius / 4)
    outline = [(0.0, 0.0), (radius - edge, 0.0), (radius, edge), (radius, length - edge), (radius - edge, length)]
    visual = _lathe([*outline, (0.0, length)], "steel")
    return Part((Cylinder(radius, length, 0.0),), (visual,), mass_kg, friction)


def _square_peg(g: Mapping[str, float], mass_kg: float, friction: float) -> Part:
    half, length = np.array([g["width"], g["depth"]]) / 2, g["length"]
    edge = min(0.0006, float(half.min()) / 4)
    outline = ((length, edge), (length - edge, 0.0), (edge, 0.0), (0.0, edge))
    rings = [_rectangle(half * 1e-3, length), *(_rectangle(half - inset, z) for z, inset in outline)]
    visual = _skin([*rings, _rectangle(half * 1e-3, 0.0)], "steel")
    return Part((Box((g["width"], g["depth"], length), 0.0),), (visual,), mass_kg, friction)


def _round_block(
    g: Mapping[str, float], half_width: float, clearance: float, material: str, mass_kg: float, friction: float
) -> Part:
    """Square block with a blind round bore whose mouth is chamfered."""
    radius, base, top, chamfer = (g["width"] + clearance) / 2, g["base"], g["base"] + g["bore_depth"], g["chamfer"]
    walls = [_sector(radius, half_width, base, top, chamfer, k) for k in range(SECTORS)]
    angles = np.linspace(0, 2 * np.pi, SEGMENTS, endpoint=False)
    circle = np.stack([np.cos(angles), np.sin(angles)], 1)
    square = circle * (half_width / np.abs(circle).max(1, keepdims=True))
    bore = [
        np.c_[circle * r, np.full(SEGMENTS, z)]
        for r, z in ((radius * 1e-3, base), (radius, base), (radius, top - chamfer), (radius + chamfer, top))
    ]
    sides = [np.c_[square * s, np.full(SEGMENTS, z)] for s, z in ((1.0, top), (1.0, 0.0), (1e-3, 0.0))]
    return _block(half_width, base, walls, _skin([*bore, *sides], material), mass_kg, friction)


def _square_block(
    g: Mapping[str, float], half_width: float, clearance: float, material: str, mass_kg: float, friction: float
) -> Part:
    """Square block with a blind rectangular bore whose mouth is chamfered; four mitred walls."""
    base, top, chamfer = g["base"], g["base"] + g["bore_depth"], g["chamfer"]
    half, outer = (np.array([g["width"], g["depth"]]) + clearance) / 2, np.full(2, half_width)
    bore = [_rectangle(half, base), _rectangle(half, top - chamfer), _rectangle(half + chamfer, top)]
    shell = [*bore, _rectangle(outer, top), _rectangle(outer, base)]
    walls = [np.concatenate([ring[[k, (k + 1) % 4]] for ring in shell]) for k in range(4)]
    rings = [_rectangle(half * 1e-3, base), *bore, _rectangle(outer, top), _rectangle(outer, 0.0)]
    visual = _skin([*rings, _rectangle(outer * 1e-3, 0.0)], material)
    return _block(half_width, base, walls, visual, mass_kg, friction)


def _block(
    half_width: float, floor: float, walls: Sequence[np.ndarray], visual: Mesh, mass_kg: float, friction: float
) -> Part:
    base = _box_vertices(half_width, TABLE_GAP_M, floor)
    return Part((Hull(base), *map(Hull, walls)), (visual,), mass_kg, friction)


def _rectangle(half: np.ndarray, z: float) -> np.ndarray:
    """Corners (4, 3), counter-clockwise."""
    x, y = half
    return np.array([(x, -y, z), (x, y, z), (-x, y, z), (-x, -y, z)])


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


def _skin(rings: Sequence[np.ndarray], material: str) -> Mesh:
    """Surface between consecutive rings (k, 3) of a profile that goes up inside a bore and down outside."""
    count = len(rings[0])
    faces = []
    for lower, upper in pairwise(range(len(rings))):
        for k in range(count):
            a, b = lower * count + k, lower * count + (k + 1) % count
            c, d = upper * count + k, upper * count + (k + 1) % count
            faces += [(a, c, b), (b, c, d)]
    return Mesh(np.concatenate(rings), np.array(faces, np.int32), material)
