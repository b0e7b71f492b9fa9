import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from pipeline.assets.robot import GRIPPER_BASE
from pipeline.render.cameras import APERTURE_MM, CAMERAS, FOCAL_MM, FOVY_RAD, HEIGHT_PX, WIDTH_PX
from pipeline.render.poses import link_poses
from pipeline.tasks import HOME_JOINTS_RAD

PINCH_M = 0.145


def pixel(camera: str, point_m: np.ndarray, poses: dict[str, np.ndarray]) -> np.ndarray:
    """Column and row of a point, counted from the picture's top left corner."""
    pose = CAMERAS[camera].world_pose(poses)
    x, y, z = Rotation.from_quat(pose[3:]).inv().apply(point_m - pose[:3])
    assert z < 0, "behind the camera"
    focal_px = HEIGHT_PX / 2 / np.tan(FOVY_RAD / 2)
    return np.array([WIDTH_PX / 2 - focal_px * x / z, HEIGHT_PX / 2 + focal_px * y / z])


def inside(point_px: np.ndarray) -> bool:
    return bool((point_px >= 0).all() and (point_px < (WIDTH_PX, HEIGHT_PX)).all())


def in_frame(pose: np.ndarray, offset_m: tuple[float, float, float]) -> np.ndarray:
    return np.asarray(pose[:3] + Rotation.from_quat(pose[3:]).apply(offset_m))


def test_intrinsics_are_droids() -> None:
    assert pytest.approx(APERTURE_MM[0] / APERTURE_MM[1]) == WIDTH_PX / HEIGHT_PX
    assert 2 * FOCAL_MM * np.tan(FOVY_RAD / 2) == pytest.approx(APERTURE_MM[1])
    assert np.rad2deg(FOVY_RAD) == pytest.approx(57, abs=0.5)


def test_the_wrist_camera_rides_on_the_gripper() -> None:
    assert CAMERAS["wrist"].body == GRIPPER_BASE
    assert CAMERAS["front"].body is None


def test_the_front_camera_looks_at_the_middle_of_the_scene_upright() -> None:
    np.testing.assert_allclose(pixel("front", np.array([0.37, 0.0, 0.03]), {}), (WIDTH_PX / 2, HEIGHT_PX / 2), atol=0.1)
    higher = pixel("front", np.array([0.37, 0.0, 0.08]), {})
    assert higher[1] < HEIGHT_PX / 2
    left = pixel("front", np.array([0.37, -0.07, 0.0]), {})
    assert left[0] < WIDTH_PX / 2 < pixel("front", np.array([0.37, 0.07, 0.0]), {})[0]


@pytest.mark.parametrize("finger_rad", [0.0, 0.4, 0.75])
def test_both_fingers_enter_the_wrist_picture_from_below_with_the_part_between(finger_rad: float) -> None:
    poses = dict(link_poses(np.array(HOME_JOINTS_RAD), finger_rad))
    tips = [pixel("wrist", poses[f"{side}_pad"][:3], poses) for side in ("left", "right")]
    roots = [pixel("wrist", in_frame(poses["base"], (0.0, y, 0.06)), poses) for y in (-0.03, 0.03)]
    pinch = pixel("wrist", in_frame(poses["base"], (0.0, 0.0, PINCH_M)), poses)
    assert all(map(inside, tips))
    assert all(tip[1] > HEIGHT_PX / 2 for tip in tips)
    assert all(root[1] > HEIGHT_PX for root in roots)
    assert inside(pinch)
    left, right = sorted(tip[0] for tip in tips)
    assert left < pinch[0] < right
