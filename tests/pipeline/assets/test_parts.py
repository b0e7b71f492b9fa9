from functools import reduce
from itertools import pairwise

import numpy as np
import pytest
import trimesh
from scipy.spatial import ConvexHull

from pipeline.assets.parts import scene_parts
from pipeline.assets.shapes import Cylinder, Hull, Part
from pipeline.faults import Fault
from pipeline.tasks import CATALOGUE, Task

AUTHORED = list(CATALOGUE.values())
ROUND = [task for task in AUTHORED if task.family == "peg_round"]
SQUARE = [task for task in AUTHORED if task.family == "peg_square"]
PEGS = [*ROUND, *SQUARE]
by_task = pytest.mark.parametrize("task", AUTHORED, ids=lambda task: task.id)
by_peg = pytest.mark.parametrize("task", PEGS, ids=lambda task: task.id)
by_round = pytest.mark.parametrize("task", ROUND, ids=lambda task: task.id)
by_square = pytest.mark.parametrize("task", SQUARE, ids=lambda task: task.id)


def hulls(part: Part) -> list[ConvexHull]:
    return [ConvexHull(piece.vertices) for piece in part.colliders if isinstance(piece, Hull)]


def free_radius(part: Part, height: float) -> float:
    """Radius of the largest upright cylinder about the part's axis that no collider reaches at this height."""
    angles = np.linspace(0, 2 * np.pi, 720, endpoint=False)
    rays = np.stack([np.cos(angles), np.sin(angles), np.zeros(720)], 1)
    nearest = np.inf
    for hull in hulls(part):
        normal, offset = hull.equations[:, :3], hull.equations[:, 3]
        along, start = rays @ normal.T, normal @ (0.0, 0.0, height) + offset
        with np.errstate(divide="ignore", invalid="ignore"):
            hits = -start / along
        enters = np.where(along < -1e-12, hits, -np.inf).max(1)
        leaves = np.where(along > 1e-12, hits, np.inf).min(1)
        misses = ((np.abs(along) <= 1e-12) & (start > 0)).any(1) | (enters > leaves) | (leaves < 0)
        nearest = min(nearest, np.where(misses, np.inf, np.maximum(enters, 0.0)).min())
    return float(nearest)


def solid(part: Part) -> trimesh.Trimesh:
    mesh = trimesh.util.concatenate([trimesh.Trimesh(m.vertices, m.faces, process=False) for m in part.visuals])
    assert isinstance(mesh, trimesh.Trimesh)
    return mesh


@by_round
@pytest.mark.parametrize(("role", "clearance"), [("fixed", "clearance"), ("stand", "stand_clearance")])
def test_the_bore_is_open_from_mouth_to_bottom(task: Task, role: str, clearance: str) -> None:
    g, part = task.geometry, scene_parts(task)[role]
    wanted = g["width"] / 2 + g[clearance] / 2
    for depth in np.linspace(0.0005, g["bore_depth"] - g["chamfer"], 12):
        assert free_radius(part, g["base"] + depth) == pytest.approx(wanted, rel=1e-6)
    assert free_radius(part, g["base"] - 0.001) == 0.0, "it has a bottom"
    mouth = free_radius(part, g["base"] + g["bore_depth"] - 1e-6)
    assert mouth == pytest.approx(wanted + g["chamfer"], rel=0.03), "the mouth is chamfered"


@by_round
def test_the_peg_fits_with_clearance_all_round(task: Task) -> None:
    held = scene_parts(task)["held"].colliders
    assert held == (Cylinder(task.geometry["width"] / 2, task.geometry["length"], 0.0),)
    play = free_radius(scene_parts(task)["fixed"], 0.020) - held[0].radius
    assert play == pytest.approx(0.1e-3, rel=1e-4)


@by_round
def test_a_narrowed_bore_no_longer_lets_the_peg_in(task: Task) -> None:
    fault = Fault(bore_narrowing_m=0.4e-3)
    assert free_radius(scene_parts(task, fault)["fixed"], 0.020) < task.geometry["width"] / 2
    assert free_radius(scene_parts(task, fault)["stand"], 0.020) > task.geometry["width"] / 2, "the stand is as it was"


@by_round
def test_sectors_close_the_ring_without_overlap(task: Task) -> None:
    """Around the bore, in a plane, their areas add up to that of the block without the bore."""
    g, part = task.geometry, scene_parts(task)["fixed"]
    walls = hulls(part)[1:]
    sides = 16
    radius, half = g["width"] / 2 + g["clearance"] / 2, 0.020
    polygon = sides * radius**2 * np.tan(np.pi / sides)
    prism = (g["bore_depth"] - g["chamfer"]) * (4 * half**2 - polygon)
    wide = (radius + g["chamfer"] * np.cos(np.pi / sides)) ** 2 * sides * np.tan(np.pi / sides)
    cone = g["chamfer"] * (4 * half**2 - (polygon + wide + np.sqrt(polygon * wide)) / 3)
    assert reduce(lambda total, hull: total + hull.volume, walls, 0.0) == pytest.approx(prism + cone, rel=1e-6)


def reached(part: Part, points: np.ndarray) -> np.ndarray:
    """Which of the points (n, 3) lie inside a collider."""
    return np.any([(hull.equations[:, :3] @ points.T + hull.equations[:, 3:] < 1e-9).all(0) for hull in hulls(part)], 0)


def rectangle(half: np.ndarray, heights: np.ndarray) -> np.ndarray:
    """Points (n, 3) around the rim of a rectangle at each height."""
    t = np.linspace(-1, 1, 41)
    rim = np.concatenate([np.c_[t, side] for side in (np.full(41, -1), np.full(41, 1))])
    rim = np.concatenate([rim, rim[:, ::-1]]) * half
    return np.concatenate([np.c_[rim, np.full(len(rim), z)] for z in heights])


@by_square
@pytest.mark.parametrize(("role", "clearance"), [("fixed", "clearance"), ("stand", "stand_clearance")])
def test_a_square_bore_is_as_wide_as_the_peg_and_its_clearance(task: Task, role: str, clearance: str) -> None:
    g, part = task.geometry, scene_parts(task)[role]
    half = np.array([g["width"], g["depth"]]) / 2 + g[clearance] / 2
    heights = g["base"] + np.linspace(0.0005, g["bore_depth"] - g["chamfer"], 9)
    assert not reached(part, rectangle(half - 1e-6, heights)).any()
    assert reached(part, rectangle(half + 1e-6, heights[:-1])).all()
    assert reached(part, np.array([[0.0, 0.0, g["base"] - 0.001]])).all(), "it has a bottom"
    mouth = np.array([g["base"] + g["bore_depth"] - 1e-7])
    assert not reached(part, rectangle(half + g["chamfer"] - 1e-6, mouth)).any(), "the mouth is chamfered"


@by_square
def test_a_square_peg_fits_at_two_angles_only(task: Task) -> None:
    g, part = task.geometry, scene_parts(task)["fixed"]
    (peg,) = scene_parts(task)["held"].colliders
    assert isinstance(peg, Hull), "a box would meet the pads, boxes as well, in one point"
    assert len(peg.vertices) == 8
    assert np.ptp(peg.vertices, axis=0) == pytest.approx([g["width"], g["depth"], g["length"]])
    assert peg.vertices.min(0) == pytest.approx([-g["width"] / 2, -g["depth"] / 2, 0.0])
    corners = rectangle(np.array([g["width"], g["depth"]]) / 2, np.array([0.020]))
    for degrees, fits in ((0, True), (180, True), (90, False), (10, False)):
        turned = corners @ trimesh.transformations.rotation_matrix(np.deg2rad(degrees), (0, 0, 1))[:3, :3].T
        assert reached(part, turned).any() != fits, degrees


@by_square
def test_a_narrowed_square_bore_no_longer_lets_the_peg_in(task: Task) -> None:
    g, part = task.geometry, scene_parts(task, Fault(bore_narrowing_m=0.4e-3))["fixed"]
    assert reached(part, rectangle(np.array([g["width"], g["depth"]]) / 2, np.array([0.020]))).all()


@by_task
def test_every_collider_is_convex_and_stays_off_the_table(task: Task) -> None:
    for role, part in scene_parts(task).items():
        for piece in part.colliders:
            if isinstance(piece, Hull):
                assert len(ConvexHull(piece.vertices).vertices) == len(piece.vertices), "no vertex lies inside"
                height = piece.vertices[:, 2].min() + (task.fixed_pos_m[2] if role == "fixed" else 0.0)
                assert role == "held" or height >= 0.0005 - 1e-12, role


@by_peg
def test_pictures_show_solids_with_outward_faces(task: Task) -> None:
    g, parts = task.geometry, scene_parts(task)
    top = g["base"] + g["bore_depth"]
    section = np.pi * (g["width"] / 2) ** 2 if task.family == "peg_round" else g["width"] * g["depth"]
    bore = section * g["bore_depth"]
    wanted = {
        "held": section * g["length"],
        "fixed": 0.040**2 * top - bore,
        "stand": 0.030**2 * top - bore,
    }
    for role, part in parts.items():
        mesh = solid(part)
        mesh.merge_vertices()
        assert mesh.is_winding_consistent, role
        assert mesh.volume == pytest.approx(wanted[role], rel=0.05), f"{role}: a negative volume is inside out"
        assert mesh.face_normals[np.argmax(mesh.triangles_center[:, 2])][2] > 0.99, role
        assert mesh.face_normals[np.argmin(mesh.triangles_center[:, 2])][2] < -0.99, role


@by_round
def test_the_bore_can_be_seen_and_shown_wall_and_collider_agree(task: Task) -> None:
    g = task.geometry
    for role, clearance in (("fixed", "clearance"), ("stand", "stand_clearance")):
        vertices = solid(scene_parts(task)[role]).vertices
        radii = np.linalg.norm(vertices[:, :2], axis=1)
        wall = radii[(radii > g["width"] / 2 * 0.5) & (vertices[:, 2] < g["base"] + 1e-9) & (vertices[:, 2] > 1e-9)]
        assert wall == pytest.approx(g["width"] / 2 + g[clearance] / 2, rel=1e-9), role


@by_peg
def test_masses_and_friction(task: Task) -> None:
    parts = scene_parts(task)
    assert set(parts) == {"held", "fixed", "stand"}
    assert parts["held"].mass_kg == 0.019
    assert parts["held"].friction == 0.5
    assert parts["stand"].friction == 0.01


def test_bigger_tasks_have_bigger_pegs() -> None:
    for family in (ROUND, SQUARE):
        volumes = [solid(scene_parts(task)["held"]).volume for task in family]
        for smaller, larger in pairwise(volumes):
            assert larger > smaller
