import numpy as np
import pytest

from pipeline.assets.parts import AUTHORS
from pipeline.render.look import PLAIN, TILE_M, Grain
from pipeline.render.looks import look_of
from pipeline.render.scene import TEXTURE_PX, Surface, build_scene, draw_grain
from pipeline.tasks import CATALOGUE, get_task


@pytest.mark.parametrize("task_id", [task.id for task in map(get_task, CATALOGUE) if task.family in AUTHORS])
def test_every_authored_task_can_be_drawn(task_id: str) -> None:
    scene = build_scene(get_task(task_id), PLAIN)
    assert {"held", "fixed", "base", "link7"} <= set(scene.bodies)
    for surface in (surface for surfaces in scene.bodies.values() for surface in surfaces):
        assert surface.normals.shape == surface.vertices.shape
        np.testing.assert_allclose(np.linalg.norm(surface.normals, axis=1), 1.0, atol=1e-6)
        assert surface.faces.max() < len(surface.vertices)


def test_a_texture_lies_undistorted_on_every_face_that_an_axis_sees() -> None:
    square = np.array([(0, 0, 0), (TILE_M, 0, 0), (TILE_M, 0, TILE_M), (0, 0, TILE_M)], float)
    wall = Surface(square, square, np.array([(0, 1, 2), (0, 2, 3)], np.int32), PLAIN.parts["fix"])
    np.testing.assert_allclose(wall.texture_places(), [(0, 0), (1, 0), (1, 1), (0, 0), (1, 1), (0, 1)])
    for surface in build_scene(get_task("nut_M16"), look_of("varied-0", 5)).bodies["held"]:
        corners, places = surface.vertices[surface.faces], surface.texture_places().reshape(-1, 3, 2)
        real = np.linalg.norm(np.diff(corners, axis=1), axis=2)
        laid = np.linalg.norm(np.diff(places, axis=1), axis=2) * TILE_M
        assert (laid <= real + 1e-9).all()
        assert laid.sum() > 0.8 * real.sum()


def test_grain_stays_between_its_colours_and_tiles() -> None:
    grain = Grain((0.2, 0.3, 0.4), (0.6, 0.6, 0.6), cells=(8, 8), seed=5)
    texture = draw_grain(grain)
    assert texture.shape == (TEXTURE_PX, TEXTURE_PX, 3)
    np.testing.assert_allclose(texture.min((0, 1)), (51, 76, 102), atol=1)
    np.testing.assert_allclose(texture.max((0, 1)), 153, atol=1)
    inner = np.abs(np.diff(texture[..., 0].astype(float), axis=0)).mean()
    seam = np.abs(texture[0, :, 0].astype(float) - texture[-1, :, 0]).mean()
    assert seam < 3 * inner
    np.testing.assert_array_equal(texture, draw_grain(grain))
