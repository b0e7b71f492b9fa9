import numpy as np
import pytest
import trimesh
from scipy.spatial import ConvexHull

from pipeline.assets.parts import scene_parts
from pipeline.assets.shapes import Box, Cylinder, Hull, Part
from pipeline.faults import Fault
from pipeline.tasks import CATALOGUE, Task
from tests.pipeline.assets.test_parts import solid

NUTS = [task for task in CATALOGUE.values() if task.family == "nut"]
by_nut = pytest.mark.parametrize("task", NUTS, ids=lambda task: task.id)


def ridges(part: Part) -> list[np.ndarray]:
    """Corners of the pieces of the thread."""
    return [piece.vertices for piece in part.colliders if isinstance(piece, Hull) and len(piece.vertices) < 12]


def overlap_m(task: Task, height_m: float, turn_rad: float, left_handed: bool = False) -> float:
    """Deepest reach of corners and edges of the nut's thread into the bolt's, the nut standing where it is put."""
    parts = scene_parts(task, Fault(left_handed=left_handed))
    bolt = [ConvexHull(piece).equations for piece in ridges(parts["fixed"])]
    c, s = np.cos(turn_rad), np.sin(turn_rad)
    along = np.linspace(0.0, 1.0, 9)[:, None]
    deepest = 0.0
    for piece in ridges(parts["held"]):
        corners = piece @ np.array([[c, s, 0.0], [-s, c, 0.0], [0.0, 0.0, 1.0]]) + (0.0, 0.0, height_m)
        faces = ConvexHull(corners).simplices
        edges = np.unique(
            np.sort(np.concatenate([faces[:, [0, 1]], faces[:, [1, 2]], faces[:, [0, 2]]]), axis=1), axis=0
        )
        points = np.concatenate([corners[a] + (corners[b] - corners[a]) * along for a, b in edges])
        for equations in bolt:
            inside = -(equations[:, :3] @ points.T + equations[:, 3:]).max(0)
            deepest = max(deepest, float(inside.max()))
    return deepest


def free_height_m(task: Task, turn_rad: float, left_handed: bool = False) -> float | None:
    """Middle of the heights within one pitch of the seat at which the nut's thread is clear of the bolt's."""
    seat, pitch = task.seat.offset_m[2], task.geometry["pitch"]
    heights = seat + np.linspace(-0.5, 0.5, 41)[:-1] * pitch
    free = [h for h in heights if overlap_m(task, float(h), turn_rad, left_handed) < 1e-6]
    phase = np.exp(2j * np.pi * (np.array(free) - seat) / pitch)
    return seat + float(np.angle(phase.sum())) / (2 * np.pi) * pitch if free else None


@by_nut
def test_the_thread_lets_the_nut_through_along_its_helix_alone(task: Task) -> None:
    pitch = task.geometry["pitch"]
    heights = [free_height_m(task, turn) for turn in np.linspace(0, 2 * np.pi, 5)]
    assert None not in heights, "there is clearance at every angle"
    rise = np.diff(np.array(heights, float)) / pitch
    np.testing.assert_allclose((rise + 0.5) % 1.0 - 0.5, 0.25, atol=0.04, err_msg="one pitch a turn, right-handed")


@by_nut
def test_a_straight_push_meets_the_thread(task: Task) -> None:
    seat, pitch = task.seat.offset_m[2], task.geometry["pitch"]
    assert max(overlap_m(task, seat + part * pitch, 0.0) for part in (0.0, 0.25, 0.5, 0.75)) > 0.1 * pitch


@by_nut
def test_a_left_handed_bolt_lets_the_nut_through_nowhere(task: Task) -> None:
    assert all(free_height_m(task, turn, left_handed=True) is None for turn in (0.0, 1.5, 3.0))


@by_nut
def test_dimensions_are_the_catalogues(task: Task) -> None:
    g, parts = task.geometry, scene_parts(task)
    nut, (_, bolt) = solid(parts["held"]), parts["fixed"].visuals
    assert nut.extents[2] == pytest.approx(g["height"])
    assert nut.extents[:2].min() == pytest.approx(g["flats"], rel=0.02)
    assert bolt.vertices[:, 2].max() == pytest.approx(g["head"] + g["shank"])
    shank = bolt.vertices[bolt.vertices[:, 2] > g["head"] * 1.2]
    assert 2 * np.linalg.norm(shank[:, :2], axis=1).max() == pytest.approx(g["major"] - g["clearance"], rel=0.02)


@by_nut
def test_what_is_shown_is_solid_with_outward_faces(task: Task) -> None:
    for part in scene_parts(task).values():
        for shown in part.visuals:
            mesh = trimesh.Trimesh(shown.vertices, shown.faces)
            mesh.merge_vertices()
            assert mesh.is_winding_consistent
            assert mesh.volume > 0, f"{shown.material}: a negative volume is inside out"


@by_nut
def test_flats_are_flat_for_the_pads(task: Task) -> None:
    held = scene_parts(task)["held"]
    sides = [piece for piece in held.colliders if isinstance(piece, Box)]
    assert len(sides) == 6
    for side in sides:
        assert np.hypot(*side.centre) + side.size[0] / 2 == pytest.approx(task.geometry["flats"] / 2)
    assert not any(isinstance(piece, Cylinder) for piece in held.colliders)
    assert held.mass_kg == task.mass_kg
