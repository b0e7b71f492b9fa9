"""Hex bolts standing on a board, and the nuts that belong on them, with threads of the ISO metric profile.

For contact a thread is a row of convex segments along its helix. Both threads start blunt at heading 0 (+x), cut flush
with the end of the bolt and the face of the nut: a nut set down on the bolt comes to rest at most a pitch below its
tip, wherever it is turned to, and only turning along the helix takes it further.
"""

from collections.abc import Mapping, Sequence

import numpy as np
from scipy.spatial import ConvexHull

from pipeline.assets.shapes import SEGMENTS, TABLE_GAP_M, Box, Cylinder, Hull, Mesh, Part, skin
from pipeline.tasks import BOARD_SIZE_M, BOARD_TOP_M, Task

PIECES_PER_TURN = 16
OVERLAP = 1.02
"""Angle that a segment spans, of its share of a turn: neighbours overlap, so that no edge can catch between them."""

BOLT_TURNS = 6.0
"""Turns of thread on the shank, counted from its tip; below them it is as thick as the thread."""

NUT_TURNS = 1.5
"""Turns of the nut's thread that can be touched, from its lower face: as many as are on the bolt when it is seated."""

START = 0.03
"""Where the middle of either thread starts, in pitches from the end of the bolt and from the face of the nut."""

TIP_CHAMFER = 0.3
"""Height of the 45 degree chamfer of the bolt's core and of the countersink of the nut, in pitches."""

BOLT_FRICTION = 0.2

IMPEDANCE = (0.999, 0.9999)
"""Of the bolt's contacts: MuJoCo's softness goes with a body's own mass, and a nut of a few grams bears a whole arm."""

CREST_BOLT, CREST_NUT = 0.0625, 0.125
"""Half the width of the crests, in pitches (ISO 68-1)."""

DEPTH_BOLT, DEPTH_NUT = 0.6134, 0.5413
"""Height of the threads, in pitches."""

FLANK = np.tan(np.deg2rad(30.0))

FLATS_RAD = np.arange(6) * np.pi / 3
"""Headings of the normals of the nut's and the bolt head's flats."""

BOLT_MASS_KG = 1.0
COUNTERSINK = 0.25

RINGS_PER_TURN = 12
"""Rings of the visible thread in one pitch."""


def nut_parts(task: Task, left_handed: bool = False) -> dict[str, Part]:
    """Nut, and bolt on its board; ``left_handed`` winds the bolt's thread the other way."""
    g = task.geometry
    return {"held": _nut(g, task.mass_kg, task.friction), "fixed": _bolt(g, left_handed)}


def _bolt(g: Mapping[str, float], left_handed: bool) -> Part:
    pitch, tip = g["pitch"], g["head"] + g["shank"]
    major = (g["major"] - g["clearance"]) / 2
    core, chamfer, sleeve = major - DEPTH_BOLT * pitch, TIP_CHAMFER * pitch, tip - BOLT_TURNS * pitch
    root = core - 0.2 * pitch
    thread = _helix(
        [(root, CREST_BOLT * pitch + (major - root) * FLANK), (major, CREST_BOLT * pitch)],
        pitch,
        tip - START * pitch,
        -np.arange(int((BOLT_TURNS - 0.5) * PIECES_PER_TURN)),
    )
    thread = [_cut(piece, (0.0, 0.0, 1.0), tip) for piece in thread]
    thread = [_cut(piece, _outward(piece) + (0.0, 0.0, 1.0), tip + core) for piece in thread]
    circle = _circle(SEGMENTS // 2)
    nose = [np.c_[r * circle, np.full(len(circle), z)] for r, z in ((core, tip - chamfer), (core - chamfer, tip))]
    colliders: tuple[Hull | Cylinder | Box, ...] = (
        Box((*BOARD_SIZE_M, BOARD_TOP_M - TABLE_GAP_M), TABLE_GAP_M - BOARD_TOP_M),
        Hull(_prism(g["flats"] / 2, 0.0, g["head"])),
        Cylinder(major, sleeve - g["head"], g["head"]),
        Cylinder(core, tip - chamfer - sleeve, sleeve),
        Hull(np.concatenate(nose)),
        *(Hull(_mirror(piece) if left_handed else piece) for piece in thread),
    )
    visuals = (_board_visual(), _bolt_visual(g, left_handed))
    return Part(colliders, visuals, BOLT_MASS_KG, BOLT_FRICTION, IMPEDANCE)


def _nut(g: Mapping[str, float], mass_kg: float, friction: float) -> Part:
    pitch, height, flats, major = g["pitch"], g["height"], g["flats"], g["major"] / 2
    crest, root = major - DEPTH_NUT * pitch, major + 0.3 * pitch
    chord = 1 / np.cos(np.pi / PIECES_PER_TURN)
    thread = _helix(
        [(crest * chord, CREST_NUT * pitch), (root * chord, CREST_NUT * pitch + (root - crest) * FLANK)],
        pitch,
        START * pitch,
        np.arange(int(NUT_TURNS * PIECES_PER_TURN)),
    )
    hole = major + 0.2 * pitch
    wall = flats / 2 - hole
    sides = [
        Box((wall, flats / np.sqrt(3), height), 0.0, _polar(hole + wall / 2, angle), float(angle))
        for angle in FLATS_RAD
    ]
    pieces = [Hull(_cut(piece, (0.0, 0.0, -1.0), 0.0)) for piece in thread]
    return Part((*sides, *pieces), (_nut_visual(g),), mass_kg, friction)


def _helix(profile: Sequence[tuple[float, float]], pitch: float, start: float, steps: np.ndarray) -> list[np.ndarray]:
    """Right-handed row of convex segments (8, 3).

    Args:
        profile: radius and half width of the ridge at its root and its crest.
        pitch: rise in one turn.
        start: height of the ridge's middle where it starts, at heading 0.
        steps: number of each segment along the helix, upwards positive; segment 0 starts (or ends) at heading 0.
    """
    share = 2 * np.pi / PIECES_PER_TURN
    direction = 1.0 if steps[-1] >= 0 else -1.0
    pieces = []
    for step in steps:
        middle = share * (step + direction / 2)
        ends = middle + np.array([-0.5, 0.5]) * share * OVERLAP
        pieces.append(
            np.array(
                [
                    (r * np.cos(a), r * np.sin(a), start + pitch * a / (2 * np.pi) + side * half)
                    for a in ends
                    for r, half in profile
                    for side in (-1.0, 1.0)
                ]
            )
        )
    return pieces


def _cut(points: np.ndarray, normal: Sequence[float] | np.ndarray, offset: float) -> np.ndarray:
    """Corners of the part of a convex hull where ``normal @ x <= offset``."""
    beyond = points @ np.asarray(normal) - offset
    kept, lost = points[beyond <= 0], points[beyond > 0]
    below, above = beyond[beyond <= 0], beyond[beyond > 0]
    crossings = [
        p + (q - p) * (-b / (a - b)) for p, b in zip(kept, below, strict=True) for q, a in zip(lost, above, strict=True)
    ]
    points = np.concatenate([kept, *([crossings] if crossings else [])])
    return points[np.sort(ConvexHull(points).vertices)]


def _outward(points: np.ndarray) -> np.ndarray:
    """Horizontal unit vector (3,) from the axis to the middle of some points."""
    middle = points.mean(0) * (1.0, 1.0, 0.0)
    return middle / np.linalg.norm(middle)


def _mirror(points: np.ndarray) -> np.ndarray:
    return points * (1.0, -1.0, 1.0)


def _polar(radius: float, angle: float) -> tuple[float, float]:
    return float(radius * np.cos(angle)), float(radius * np.sin(angle))


def _circle(sides: int) -> np.ndarray:
    angles = np.linspace(0, 2 * np.pi, sides, endpoint=False)
    return np.stack([np.cos(angles), np.sin(angles)], 1)


def _prism(apothem: float, z0: float, z1: float) -> np.ndarray:
    """Corners (12, 3) of an upright hexagonal prism with the flats at :data:`FLATS_RAD`."""
    corners = apothem / np.cos(np.pi / 6) * np.stack([np.cos(FLATS_RAD + np.pi / 6), np.sin(FLATS_RAD + np.pi / 6)], 1)
    return np.concatenate([np.c_[corners, np.full(6, z)] for z in (z0, z1)])


def _hexagon(apothem: float) -> np.ndarray:
    """Radius (SEGMENTS,) of a hexagon with the flats at :data:`FLATS_RAD`, at the headings of a visual's rings."""
    angles = np.linspace(0, 2 * np.pi, SEGMENTS, endpoint=False)
    off = (angles - FLATS_RAD[0] + np.pi / 6) % (np.pi / 3) - np.pi / 6
    radius: np.ndarray = apothem / np.cos(off)
    return radius


def _ridge(turns: np.ndarray, crest: float, depth: float) -> np.ndarray:
    """Height of a thread above its root, in pitches: ``turns`` is the axial distance from its middle, in pitches."""
    away = np.abs((turns + 0.5) % 1.0 - 0.5)
    return np.clip(depth - (away - crest) / FLANK, 0.0, depth)


def _bolt_visual(g: Mapping[str, float], left_handed: bool) -> Mesh:
    pitch, head, tip = g["pitch"], g["head"], g["head"] + g["shank"]
    major = (g["major"] - g["clearance"]) / 2
    core, sleeve = major - DEPTH_BOLT * pitch, tip - BOLT_TURNS * pitch
    angles = np.linspace(0, 2 * np.pi, SEGMENTS, endpoint=False)
    flats = _hexagon(g["flats"] / 2)
    bevelled = np.minimum(flats, 1.04 * g["flats"] / 2)
    round_ = np.ones(SEGMENTS)
    rings = [(1e-3 * round_, 0.0), (flats, 0.0), (flats, head - 0.1 * head), (bevelled, head), (major * round_, head)]
    for z in np.linspace(sleeve, tip, int(BOLT_TURNS * RINGS_PER_TURN) + 1):
        turns = (z - tip) / pitch + START - angles / (2 * np.pi) * (-1.0 if left_handed else 1.0)
        radius = core + pitch * _ridge(turns, CREST_BOLT, DEPTH_BOLT)
        radius = np.where(z - sleeve < 0.25 * pitch, major, radius)
        rings.append((np.minimum(radius, core + (tip - z)), float(z)))
    rings.append((1e-3 * round_, tip))
    return _turned(rings[::-1], "steel")


def _nut_visual(g: Mapping[str, float]) -> Mesh:
    pitch, height, major = g["pitch"], g["height"], g["major"] / 2
    crest, root = major - DEPTH_NUT * pitch, major
    angles = np.linspace(0, 2 * np.pi, SEGMENTS, endpoint=False)
    rings = []
    for z in np.linspace(0.0, height, round(height / pitch * RINGS_PER_TURN) + 1):
        turns = z / pitch - START - angles / (2 * np.pi)
        radius = root - pitch * _ridge(turns, CREST_NUT, DEPTH_NUT)
        countersink = crest + max(0.0, COUNTERSINK * pitch - min(z, height - z))
        rings.append((np.maximum(radius, countersink), float(z)))
    flats = _hexagon(g["flats"] / 2)
    bevelled, bevel = np.minimum(flats, 1.04 * g["flats"] / 2), 0.08 * height
    rings += [(bevelled, height), (flats, height - bevel), (flats, bevel), (bevelled, 0.0), rings[0]]
    return _turned(rings, "brass")


def _board_visual() -> Mesh:
    x, y = np.array(BOARD_SIZE_M) / 2
    corners = np.array([(x, -y), (x, y), (-x, y), (-x, -y)])
    levels = ((1e-3, 0.0), (1.0, 0.0), (1.0, TABLE_GAP_M - BOARD_TOP_M), (1e-3, TABLE_GAP_M - BOARD_TOP_M))
    return skin([np.c_[corners * scale, np.full(4, z)] for scale, z in levels], "board")


def _turned(rings: Sequence[tuple[np.ndarray, float]], material: str) -> Mesh:
    circle = _circle(SEGMENTS)
    return skin([np.c_[circle * radius[:, None], np.full(SEGMENTS, z)] for radius, z in rings], material)
