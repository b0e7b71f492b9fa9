"""Pegs, and the blocks with a blind bore that they start in and belong in."""

from collections.abc import Mapping, Sequence

import numpy as np

from pipeline.assets.shapes import (
    SEGMENTS,
    TABLE_GAP_M,
    Cylinder,
    Hull,
    Mesh,
    Part,
    box_vertices,
    lathe,
    skin,
)
from pipeline.tasks import Task

SECTORS = 16
"""Convex sectors around a round bore; the inscribed circle of their inner faces has the bore's radius."""

FIXTURE_HALF_WIDTH_M = 0.020
STAND_HALF_WIDTH_M = 0.015
STAND_FRICTION = 0.01


def peg_parts(task: Task) -> dict[str, Part]:
    """Peg, hole and stand of a task."""
    g = task.geometry
    square = task.family == "peg_square"
    block = _square_block if square else _round_block
    peg = _square_peg if square else _round_peg
    return {
        "held": peg(g, task.mass_kg, task.friction),
        "fixed": block(g, FIXTURE_HALF_WIDTH_M, g["clearance"], "fix", 0.3, task.friction),
        "stand": block(g, STAND_HALF_WIDTH_M, g["stand_clearance"], "stand", 0.15, STAND_FRICTION),
    }


def _round_peg(g: Mapping[str, float], mass_kg: float, friction: float) -> Part:
    radius, length = g["width"] / 2, g["length"]
    edge = min(0.0006, radius / 4)
    outline = [(0.0, 0.0), (radius - edge, 0.0), (radius, edge), (radius, length - edge), (radius - edge, length)]
    visual = lathe([*outline, (0.0, length)], "steel")
    return Part((Cylinder(radius, length, 0.0),), (visual,), mass_kg, friction)


def _square_peg(g: Mapping[str, float], mass_kg: float, friction: float) -> Part:
    """A hull, not a box: of two boxes that are slightly askew MuJoCo reports one contact point, on which they pivot."""
    half, length = np.array([g["width"], g["depth"]]) / 2, g["length"]
    edge = min(0.0006, float(half.min()) / 4)
    outline = ((length, edge), (length - edge, 0.0), (edge, 0.0), (0.0, edge))
    rings = [_rectangle(half * 1e-3, length), *(_rectangle(half - inset, z) for z, inset in outline)]
    visual = skin([*rings, _rectangle(half * 1e-3, 0.0)], "steel")
    corners = np.concatenate([_rectangle(half, 0.0), _rectangle(half, length)])
    return Part((Hull(corners),), (visual,), mass_kg, friction)


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
    return _block(half_width, base, walls, skin([*bore, *sides], material), mass_kg, friction)


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
    visual = skin([*rings, _rectangle(outer * 1e-3, 0.0)], material)
    return _block(half_width, base, walls, visual, mass_kg, friction)


def _block(
    half_width: float, floor: float, walls: Sequence[np.ndarray], visual: Mesh, mass_kg: float, friction: float
) -> Part:
    base = box_vertices(half_width, TABLE_GAP_M, floor)
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
