"""Gears of module 2 with involute teeth, and the base with three shafts on which two of them stand already.

A gear is a toothed disc with a boss on it, by which it is held, and a through bore. Neighbouring shafts are half a
millimetre further apart than the pitch circles touch, as on the published board; the teeth are thicker by what leaves
the wanted backlash there.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import trimesh
from scipy.spatial import ConvexHull

from pipeline.assets.shapes import TABLE_GAP_M, Cylinder, Hull, Mesh, Part, lathe, skin
from pipeline.tasks import CATALOGUE, Task

FACETS = 4
"""Flat faces of each sector around the boss: between flat pads a coarser polygon rolls onto its nearest face."""

SECTORS = 12
"""Convex sectors around a bore; the inscribed circle of their inner faces has the bore's radius."""

PRESSURE_ANGLE_RAD = np.deg2rad(20.0)
FLANK_POINTS = 5
"""Points along an involute: their chords leave it by less than 0.03 mm."""

ROOT_SPREAD = 0.15
"""A tooth's foot is wider than its flank at the base circle by this share of half the space between feet."""

PLATE_HALF_WIDTH_M = 0.020
PLATE_OVERHANG_M = 0.014
SHAFT_FRICTION = 0.3
"""Of acetal on steel."""

BASE_MASS_KG = 0.8
GRIP_IMPEDANCE = (0.99, 0.999)
"""Of contacts with the pads: in softer ones a gripped gear turns and slides by some 0.5 mm/s."""

BASE_IMPEDANCE = (0.995, 0.9995)
"""Of contacts with the base: in softer ones the small gear's 6 g sink in by 0.35 mm under a force of 20 N."""


@dataclass(frozen=True)
class Tooth:
    """Right half of a tooth in polar coordinates about the gear's axis, from its foot to its tip.

    Attributes:
        radius: (k,) metres.
        half_angle: (k,) from the tooth's middle, rad; decreasing.
        foot_radius: of the circle between the teeth.
        tip_radius: of the circle around them.
    """

    radius: np.ndarray
    half_angle: np.ndarray

    @property
    def foot_radius(self) -> float:
        """See the class."""
        return float(self.radius[0])

    @property
    def tip_radius(self) -> float:
        """See the class."""
        return float(self.radius[-1])

    def inset(self, by: float) -> "Tooth":
        """The same tooth with its flanks and its tip moved inwards."""
        radius = np.minimum(self.radius, self.tip_radius - by)
        half_angle = np.interp(radius, self.radius, self.half_angle) - by / radius
        return Tooth(radius, half_angle)

    def outline(self) -> np.ndarray:
        """Corners (2k, 2) in the plane, counter-clockwise, the tooth pointing along +x."""
        radius = np.concatenate([self.radius, self.radius[::-1]])
        angle = np.concatenate([-self.half_angle, self.half_angle[::-1]])
        return np.stack([radius * np.cos(angle), radius * np.sin(angle)], 1)


def gear_parts(task: Task) -> dict[str, Part]:
    """Held gear of a task, and the base with the other two."""
    held = _gear(task.geometry)
    pieces = (*_sectors(task.geometry), *_tooth_hulls(task.geometry))
    return {
        "held": Part(pieces, (held,), task.mass_kg, task.friction, grip_impedance=GRIP_IMPEDANCE),
        "fixed": _base(task),
    }


def tooth_of(g: Mapping[str, float]) -> Tooth:
    """Involute tooth of a gear, thickened to leave ``backlash`` at the shafts' distance."""
    module, teeth = g["module"], g["teeth"]
    pitch_radius = module * teeth / 2
    base_radius = pitch_radius * np.cos(PRESSURE_ANGLE_RAD)
    flank = np.linspace(base_radius, pitch_radius + module, FLANK_POINTS)
    thickness = np.pi * module / 2 + g["thickening"]
    middle = thickness / (2 * pitch_radius) + _involute(PRESSURE_ANGLE_RAD)
    angle: np.ndarray = middle - _involute(np.arccos(base_radius / flank))
    foot = angle[0] + ROOT_SPREAD * (np.pi / teeth - angle[0])
    return Tooth(np.r_[pitch_radius - 1.25 * module, flank], np.r_[foot, angle])


def _involute(angle: np.ndarray | float) -> np.ndarray:
    return np.asarray(np.tan(angle) - angle)


def _heights(g: Mapping[str, float]) -> tuple[float, float, float, float]:
    """Of the teeth: underside, end of its chamfer, start of the upper chamfer, top."""
    low, high, chamfer = g["relief"], g["face_width"], g["tooth_chamfer"]
    return low, low + chamfer, high - chamfer, high


def _tooth_hulls(
    g: Mapping[str, float], phase_rad: float = 0.0, xy: tuple[float, float] = (0.0, 0.0), z0: float = 0.0
) -> tuple[Hull, ...]:
    """One convex piece a tooth, with the spoke that joins it to the boss; chamfered at both faces."""
    tooth = tooth_of(g)
    full, small = tooth.outline(), tooth.inset(g["tooth_chamfer"]).outline()
    reach = g["boss_radius"] * np.cos(np.pi / (FACETS * SECTORS))
    half_width = 0.9 * abs(small[0, 1])
    spoke = np.array([(reach, -half_width), (reach, half_width)])
    low, low_end, high_start, high = _heights(g)
    rings = [(small, low), (full, low_end), (full, high_start), (small, high)]
    if reach < tooth.foot_radius - 1e-4:
        rings += [(spoke, low), (spoke, high)]
    points = np.concatenate([np.c_[ring, np.full(len(ring), z)] for ring, z in rings])
    points = points[ConvexHull(points).vertices]
    hulls = []
    for angle in phase_rad + 2 * np.pi * np.arange(g["teeth"]) / g["teeth"]:
        c, s = np.cos(angle), np.sin(angle)
        turned = points @ np.array([[c, s, 0.0], [-s, c, 0.0], [0.0, 0.0, 1.0]])
        hulls.append(Hull(turned + (*xy, z0)))
    return tuple(hulls)


def _sectors(g: Mapping[str, float]) -> tuple[Hull, ...]:
    """Bore and boss, over the whole height; the bore's mouths are chamfered."""
    bore, height, chamfer = g["shaft_radius"] + g["clearance"] / 2, g["height"], g["bore_chamfer"]
    inner, outer = bore / np.cos(np.pi / SECTORS), g["boss_radius"]
    hulls = []
    for k in range(SECTORS):
        points = []
        for side in np.linspace(-1.0, 1.0, FACETS + 1):
            angle = 2 * np.pi * (k + side / 2) / SECTORS
            profile = [(outer, 0.0), (outer, height)]
            if abs(side) == 1.0:
                profile += [(inner + chamfer, 0.0), (inner, chamfer), (inner, height - chamfer)]
                profile += [(inner + chamfer, height)]
            points += [(r * np.cos(angle), r * np.sin(angle), z) for r, z in profile]
        hulls.append(Hull(np.array(points)))
    return tuple(hulls)


def _gear(
    g: Mapping[str, float],
    phase_rad: float = 0.0,
    xy: tuple[float, float] = (0.0, 0.0),
    z0: float = 0.0,
    material: str = "brass",
) -> Mesh:
    """Skin of a gear: rings of equal count, the points of each at the angles of the teeth's outline."""
    tooth, turns = tooth_of(g), phase_rad + 2 * np.pi * np.arange(g["teeth"]) / g["teeth"]
    angles = np.concatenate([-tooth.half_angle, tooth.half_angle[::-1]])
    angles = (turns[:, None] + angles).ravel()

    def ring(radius: float | np.ndarray, z: float, at: np.ndarray = angles) -> np.ndarray:
        return np.stack([radius * np.cos(at), radius * np.sin(at), np.full(len(at), z)], 1) + (*xy, z0)

    def toothed(shape: Tooth, z: float) -> np.ndarray:
        radius = np.concatenate([shape.radius, shape.radius[::-1]])
        at = np.concatenate([-shape.half_angle, shape.half_angle[::-1]])
        return ring(np.tile(radius, len(turns)), z, (turns[:, None] + at).ravel())

    bore, boss, height, edge = g["shaft_radius"] + g["clearance"] / 2, g["boss_radius"], g["height"], g["bore_chamfer"]
    low, low_end, high_start, high = _heights(g)
    small = tooth.inset(g["tooth_chamfer"])
    rings = [
        ring(bore + edge, 0.0),
        ring(bore, edge),
        ring(bore, height - edge),
        ring(bore + edge, height),
        ring(boss - edge / 2, height),
        ring(boss, height - edge / 2),
        ring(boss, high),
        toothed(small, high),
        toothed(tooth, high_start),
        toothed(tooth, low_end),
        toothed(small, low),
        ring(boss, low),
        ring(boss, 0.0),
        ring(bore + edge, 0.0),
    ]
    return skin(rings, material)


def _base(task: Task) -> Part:
    """Plate with the free shaft, and the gears that stand on the other two."""
    g = task.geometry
    base, xs = g["base"], [each.geometry["shaft_x"] for each in GEARS]
    left, right = min(xs) - PLATE_OVERHANG_M, max(xs) + PLATE_OVERHANG_M
    sides = (-PLATE_HALF_WIDTH_M, PLATE_HALF_WIDTH_M)
    slab = np.array([(x, y, z) for x in (left, right) for y in sides for z in (TABLE_GAP_M, base)])
    plate = trimesh.creation.box(bounds=((left, -PLATE_HALF_WIDTH_M, 0.0), (right, PLATE_HALF_WIDTH_M, base)))
    visuals = [Mesh(np.asarray(plate.vertices), np.asarray(plate.faces, np.int32), "fix")]
    colliders: list[Hull | Cylinder] = [Hull(slab), *_shaft(g)]
    for each in GEARS:
        partner = each.geometry
        x = partner["shaft_x"]
        visuals.append(_shaft_mesh(partner))
        if each.id == task.id:
            continue
        phase, xy = partner["phase_rad"], (x, 0.0)
        foot = tooth_of(partner).foot_radius
        colliders += [
            Cylinder(foot, partner["face_width"] - partner["relief"], base + partner["relief"], xy),
            Cylinder(partner["boss_radius"], partner["height"], base, xy),
            *_tooth_hulls(partner, phase, xy, base),
        ]
        visuals.append(_gear(partner, phase, xy, base, "acetal"))
    return Part(tuple(colliders), tuple(visuals), BASE_MASS_KG, SHAFT_FRICTION, BASE_IMPEDANCE)


def _shaft_outline(g: Mapping[str, float]) -> list[tuple[float, float]]:
    radius, top, chamfer = g["shaft_radius"], g["base"] + g["shaft_height"], g["shaft_chamfer"]
    return [(radius, g["base"]), (radius, top - chamfer), (radius - chamfer, top)]


def _shaft(g: Mapping[str, float]) -> tuple[Hull | Cylinder, ...]:
    (radius, z0), (_, z1), (tip, top) = _shaft_outline(g)
    angles = 2 * np.pi * np.arange(2 * SECTORS) / (2 * SECTORS)
    circle = np.stack([np.cos(angles), np.sin(angles)], 1)
    cone = [np.c_[circle * r + (g["shaft_x"], 0.0), np.full(len(circle), z)] for r, z in ((radius, z1), (tip, top))]
    return Cylinder(radius, z1 - z0, z0, (g["shaft_x"], 0.0)), Hull(np.concatenate(cone))


def _shaft_mesh(g: Mapping[str, float]) -> Mesh:
    outline = _shaft_outline(g)
    mesh = lathe([(0.0, outline[0][1]), *outline, (0.0, outline[-1][1])], "steel")
    return Mesh(mesh.vertices + (g["shaft_x"], 0.0, 0.0), mesh.faces, mesh.material)


GEARS = tuple(task for task in CATALOGUE.values() if task.family == "gear")
"""The three gears of the board."""
