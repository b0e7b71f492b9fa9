"""Both renderers, each in a process of its own: this one may have imported MuJoCo with another OpenGL library."""

import subprocess
import sys

import numpy as np
import pytest

from pipeline.errors import UserError
from pipeline.render.opengl import INSTALL
from pipeline.render.renderer import choose_renderer
from tests.pipeline.render.recordings import needs_opengl

PARTS = ("held", "fixed", "stand")
PADS = ("left_pad", "right_pad")

_SHOOT = """
import sys
from dataclasses import replace
from pathlib import Path
import numpy as np
from pipeline.render.cameras import CAMERAS, SIZES, looking_at
from pipeline.render.checks import BadVideo, check_depiction
from pipeline.render.look import PLAIN, Grain
from pipeline.render.renderer import Choice, open_renderer
from pipeline.render.scene import build_scene
from pipeline.tasks import get_task
from tests.pipeline.render.recordings import poses_of, robot_episode

episode = robot_episode()
scene = build_scene(get_task(episode.task), PLAIN)
poses, away = poses_of(episode, 0), np.array([0.0, 0.0, -1.0, 0.0, 0.0, 0.0, 1.0])
cameras = ("front", "wrist")

def check(camera, shown):
    check_depiction(Path("a.mp4"), lambda poses: renderer.render(poses, (camera,))[0], poses, 0, poses, shown)

with open_renderer(Choice(sys.argv[1], sys.argv[2] or None), scene) as renderer:
    found = {"whole": renderer.render(poses, cameras)}
    for body in ("held", "fixed", "stand", "left_pad", "right_pad"):
        found[body] = renderer.render({**poses, body: away}, cameras)
    found["again"] = renderer.render(poses, cameras)
    for camera, shown in zip(cameras, found["whole"]):
        check(camera, shown)
aside = replace(PLAIN, cameras={**CAMERAS, "front": looking_at((0.55, 0.0, 0.3), (2.0, 0.0, 0.0))})
with open_renderer(Choice(sys.argv[1], sys.argv[2] or None), build_scene(get_task(episode.task), aside)) as renderer:
    try:
        check("front", renderer.render(poses, ("front",))[0])
    except BadVideo as refused:
        found["refusal"] = str(refused)
with open_renderer(Choice(sys.argv[1], sys.argv[2] or None), replace(scene, size=SIZES["640x360"])) as renderer:
    found["large"] = renderer.render(poses, cameras)
if sys.argv[1] == "mujoco":
    grain = Grain((0.0,) * 3, (1.0,) * 3, (8, 8), 1)
    look = replace(PLAIN, parts={name: replace(part, grain=grain) for name, part in PLAIN.parts.items()})
    with open_renderer(Choice(sys.argv[1], sys.argv[2]), build_scene(get_task(episode.task), look)) as renderer:
        found["grained"] = renderer.render(poses, cameras)
np.savez(sys.argv[3], **found)
"""


@pytest.fixture(scope="module", params=[pytest.param("mujoco", marks=needs_opengl), "newton"])
def pictures(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, np.ndarray]:
    """Of the start, whole and without one body each: (front and wrist, 180, 320, 3)."""
    choice, path = choose_renderer(request.param), tmp_path_factory.mktemp(request.param) / "pictures.npz"
    command = [sys.executable, "-c", _SHOOT, choice.name, choice.backend or "", str(path)]
    subprocess.run(command, env=choice.environment(), check=True)
    with np.load(path) as arrays:
        return dict(arrays)


def changed(before: np.ndarray, after: np.ndarray) -> np.ndarray:
    """Where two pictures differ, (H, W) bool."""
    return np.asarray(np.abs(np.subtract(before, after, dtype=np.int16)).max(-1) > 12)


def test_pictures_are_well_exposed_and_repeatable(pictures: dict[str, np.ndarray]) -> None:
    whole = pictures["whole"]
    assert whole.shape == (2, 180, 320, 3)
    assert whole.dtype == np.uint8
    np.testing.assert_array_equal(whole, pictures["again"])
    for picture in whole:
        assert 80 < picture.mean() < 200
        assert picture.std() > 15
        assert (picture.min(-1) > 250).mean() < 0.02


def test_a_camera_that_looks_past_the_parts_is_refused_and_no_other(pictures: dict[str, np.ndarray]) -> None:
    assert "frame 0 does not show the held part" in str(pictures["refusal"])


def test_a_larger_picture_shows_the_same(pictures: dict[str, np.ndarray]) -> None:
    assert pictures["large"].shape == (2, 360, 640, 3)
    small = pictures["large"].reshape(2, 180, 2, 320, 2, 3).mean((2, 4))
    assert np.abs(small - pictures["whole"]).mean() < 4


def test_textures_of_parts_are_seen(pictures: dict[str, np.ndarray]) -> None:
    if "grained" not in pictures:
        pytest.skip("Newton's camera shows no textures")
    for before, after in zip(pictures["whole"], pictures["grained"], strict=True):
        seen = changed(before, after)
        assert 100 < seen.sum() < 0.2 * seen.size


@pytest.mark.parametrize("part", PARTS)
def test_every_part_is_seen_by_both_cameras(pictures: dict[str, np.ndarray], part: str) -> None:
    for before, after in zip(pictures["whole"], pictures[part], strict=True):
        assert changed(before, after).sum() > 15


def test_the_wrist_camera_sees_both_pads_in_its_lower_half(pictures: dict[str, np.ndarray]) -> None:
    columns = []
    for pad in PADS:
        seen = changed(pictures["whole"][1], pictures[pad][1])
        assert seen[90:].sum() > 100
        columns.append(np.nonzero(seen[90:])[1].mean())
    assert abs(columns[0] - columns[1]) > 40


def test_a_broken_library_is_named_with_its_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MUJOCO_GL", "nonsense")
    with pytest.raises(UserError, match="MUJOCO_GL=nonsense") as caught:
        choose_renderer("mujoco")
    assert INSTALL in str(caught.value)
    fallback = choose_renderer("auto")
    assert fallback.name == "newton"
    assert INSTALL in (fallback.note or "")


@pytest.mark.parametrize(
    ("name", "message"),
    [("opengl", "unknown renderer 'opengl'; there is: auto, mujoco"), ("rtx", "cannot draw with Isaac")],
)
def test_a_renderer_that_is_not_there_is_refused(name: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        choose_renderer(name)
