import numpy as np
import pytest

from pipeline.assets.parts import AUTHORS
from pipeline.render.look import PLAIN, Grain
from pipeline.render.scene import TEXTURE_PX, build_scene, draw_grain
from pipeline.tasks import CATALOGUE, get_task


@pytest.mark.parametrize("task_id", [task.id for task in map(get_task, CATALOGUE) if task.family in AUTHORS])
def test_every_authored_task_can_be_drawn(task_id: str) -> None:
    scene = build_scene(get_task(task_id), PLAIN)
    assert {"held", "fixed", "base", "link7"} <= set(scene.bodies)
    for surface in (surface for surfaces in scene.bodies.values() for surface in surfaces):
        assert surface.normals.shape == surface.vertices.shape
        np.testing.assert_allclose(np.linalg.norm(surface.normals, axis=1), 1.0, atol=1e-6)
        assert surface.faces.max() < len(surface.vertices)


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
