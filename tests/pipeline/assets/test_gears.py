import numpy as np
import pytest
import trimesh

from pipeline.assets.gears import GEARS
from pipeline.assets.parts import scene_parts
from pipeline.assets.shapes import Cylinder, Hull, Part
from pipeline.faults import Fault
from pipeline.tasks import Task
from tests.pipeline.assets.test_parts import free_radius, hulls, solid

by_gear = pytest.mark.parametrize("task", GEARS, ids=lambda task: task.id)
BACKLASH_M = 0.3e-3


def rim(part: Part, height: float) -> np.ndarray:
    """Points (n, 3) closely along the outlines of all pieces in a horizontal section."""
    along = np.linspace(0.0, 1.0, 13)[:, None, None]
    edges = []
    for hull in hulls(part):
        section = trimesh.convex.convex_hull(hull.points).section((0.0, 0.0, 1.0), (0.0, 0.0, height))
        assert section is not None
        corners = section.vertices[:, :2]
        order = corners[np.argsort(np.arctan2(*(corners - corners.mean(0)).T[::-1]))]
        edges.append((order + (np.roll(order, -1, 0) - order) * along).reshape(-1, 2))
    points = np.concatenate(edges)
    return np.c_[points, np.full(len(points), height)]


class Mesh:
    """A task's two parts, the held one seated and turned at will."""

    def __init__(self, task: Task) -> None:
        parts = scene_parts(task)
        self._g, self._rim = task.geometry, rim(parts["held"], 0.005)
        self._fixed = [hull.equations for hull in hulls(parts["fixed"])]

    def overlap(self, turned_rad: float) -> float:
        """Deepest reach, m, of the held gear into the base when it is turned from where it meshes."""
        angle = self._g["phase_rad"] + turned_rad
        c, s = np.cos(angle), np.sin(angle)
        points = self._rim @ np.array([[c, s, 0.0], [-s, c, 0.0], [0.0, 0.0, 1.0]])
        points = points[np.linalg.norm(points[:, :2], axis=1) > self._g["boss_radius"] + 1e-3]
        points += (self._g["shaft_x"], 0.0, self._g["base"])
        points = points[np.abs(points[:, 1]) < 0.008]
        depth = [-(e[:, :3] @ points.T + e[:, 3:]).max(0) for e in self._fixed]
        return float(max(0.0, np.max(depth)))


@by_gear
def test_a_gear_meshes_at_its_angle_with_little_backlash(task: Task) -> None:
    mesh, pitch_radius = Mesh(task), task.geometry["module"] * task.geometry["teeth"] / 2
    free = [arc for arc in np.linspace(-0.2e-3, 0.2e-3, 17) if mesh.overlap(float(arc) / pitch_radius) < 1e-7]
    assert min(free) < 0 < max(free)
    assert 0.1e-3 < max(free) - min(free) < BACKLASH_M


@by_gear
def test_half_a_pitch_off_teeth_meet_teeth(task: Task) -> None:
    pitch = 2 * np.pi / task.geometry["teeth"]
    mesh = Mesh(task)
    assert mesh.overlap(pitch / 2) > 0.5e-3
    assert mesh.overlap(pitch) < 1e-7, "it meshes again a tooth further on"


@by_gear
def test_there_is_a_piece_for_every_tooth_and_all_reach_the_tip_circle(task: Task) -> None:
    g = task.geometry
    tip = g["module"] * (g["teeth"] / 2 + 1)
    reach = [np.linalg.norm(hull.points[:, :2], axis=1).max() for hull in hulls(scene_parts(task)["held"])]
    assert sum(r == pytest.approx(tip, rel=1e-3) for r in reach) == g["teeth"]


@by_gear
def test_the_bore_goes_through_and_fits_the_shaft(task: Task) -> None:
    g, held = task.geometry, scene_parts(task)["held"]
    for height in np.linspace(g["bore_chamfer"], g["height"] - g["bore_chamfer"], 7):
        assert free_radius(held, float(height)) == pytest.approx(g["shaft_radius"] + g["clearance"] / 2, rel=1e-6)
    shaft = next(piece for piece in scene_parts(task)["fixed"].colliders if isinstance(piece, Cylinder))
    assert (shaft.radius, shaft.xy) == (g["shaft_radius"], (g["shaft_x"], 0.0))
    assert free_radius(held, 0.010) - shaft.radius == pytest.approx(0.1e-3, rel=1e-3)


@by_gear
def test_a_narrowed_bore_no_longer_lets_the_shaft_in(task: Task) -> None:
    held = scene_parts(task, Fault(bore_narrowing_m=0.4e-3))["held"]
    assert free_radius(held, 0.010) < task.geometry["shaft_radius"]


@by_gear
def test_leads_are_short(task: Task) -> None:
    g = task.geometry
    assert g["clearance"] <= 0.3e-3
    assert max(g["tooth_chamfer"], g["bore_chamfer"], g["shaft_chamfer"]) <= 1.0e-3


@by_gear
def test_a_gear_lies_on_its_hub(task: Task) -> None:
    lowest = [hull.points[:, 2].min() for hull in hulls(scene_parts(task)["held"])]
    assert min(lowest) == 0.0
    assert sum(z > 0 for z in lowest) == task.geometry["teeth"], "the teeth stay off what it lies on"


@by_gear
def test_pictures_show_watertight_gears_as_high_as_the_colliders(task: Task) -> None:
    g, parts = task.geometry, scene_parts(task)
    for role, part in parts.items():
        for visual in part.visuals:
            mesh = trimesh.Trimesh(visual.vertices, visual.faces, process=False)
            mesh.merge_vertices()
            assert mesh.is_watertight, (role, visual.material)
            assert mesh.is_winding_consistent
            assert mesh.volume > 0, "a negative volume is inside out"
    shown = solid(parts["held"])
    pieces = np.concatenate([piece.vertices for piece in parts["held"].colliders if isinstance(piece, Hull)])
    assert np.ptp(shown.vertices[:, 2]) == pytest.approx(g["height"]) == pytest.approx(np.ptp(pieces[:, 2]))
    assert np.abs(shown.vertices[:, :2]).max() == pytest.approx(np.abs(pieces[:, :2]).max(), rel=1e-6)


@by_gear
def test_shown_and_felt_flanks_agree(task: Task) -> None:
    parts, g = scene_parts(task), task.geometry
    section = solid(parts["held"]).section((0.0, 0.0, 1.0), (0.0, 0.0, 0.005))
    assert section is not None
    above_foot = np.linalg.norm(section.vertices[:, :2], axis=1) > g["module"] * (g["teeth"] / 2 - 1.25)
    outline = section.vertices[above_foot]
    depth = [-(h.equations[:, :3] @ outline.T + h.equations[:, 3:]).max(0) for h in hulls(parts["held"])]
    assert len(outline) > 8 * g["teeth"]
    assert np.max(depth, axis=0) == pytest.approx(0.0, abs=0.02e-3)


@by_gear
def test_mass_and_friction(task: Task) -> None:
    parts = scene_parts(task)
    assert set(parts) == {"held", "fixed"}
    assert parts["held"].mass_kg == {"small": 0.006, "medium": 0.012, "large": 0.025}[task.size]
    assert parts["held"].friction == 1.0
