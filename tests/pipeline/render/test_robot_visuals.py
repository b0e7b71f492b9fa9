from pathlib import Path

import numpy as np
import pytest

from pipeline.assets import robot_visuals as module
from pipeline.assets.robot import load_robot
from pipeline.assets.robot_visuals import VisualMesh, robot_visuals, source_visuals

MOST_FACES = 18_000
MOST_OFF_M = 0.002


def corners(meshes: tuple[VisualMesh, ...]) -> np.ndarray:
    seen = np.concatenate([mesh.vertices[np.unique(mesh.faces)] for mesh in meshes])
    return np.array([seen.min(0), seen.max(0)])


def test_every_link_is_drawn_within_its_budget_and_bounds() -> None:
    source, drawn = source_visuals(), robot_visuals()
    assert set(drawn) == set(load_robot().names)
    assert sum(len(mesh.faces) for meshes in drawn.values() for mesh in meshes) <= MOST_FACES
    for link, meshes in drawn.items():
        assert [mesh.rgba for mesh in meshes] == [mesh.rgba for mesh in source[link]]
        np.testing.assert_allclose(corners(meshes), corners(source[link]), atol=MOST_OFF_M, err_msg=link)
        for mesh in meshes:
            assert mesh.faces.min() >= 0
            assert mesh.faces.max() < len(mesh.vertices)


def test_a_damaged_cache_is_built_again_with_its_licence_beside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DEMOMILL_CACHE", str(tmp_path))
    small = VisualMesh(np.eye(3), np.array([[0, 1, 2]], np.int32), (0.1, 0.2, 0.3, 1.0))
    monkeypatch.setattr(module, "_decimated", lambda: {"link0": (small, small), "base": (small,)})
    robot_visuals.cache_clear()
    try:
        built = robot_visuals()
        assert {link: len(meshes) for link, meshes in built.items()} == {"link0": 2, "base": 1}
        np.testing.assert_array_equal(built["base"][0].faces, small.faces)
        (path,) = tmp_path.glob("visuals/*/robot.npz")
        assert "Apache" in (path.parent / "LICENSE").read_text()
        whole = path.read_bytes()
        path.write_bytes(whole[: len(whole) // 2])
        robot_visuals.cache_clear()
        assert robot_visuals().keys() == built.keys()
        assert path.read_bytes() == whole
    finally:
        robot_visuals.cache_clear()
