import mujoco
import numpy as np
import pytest

from pipeline.assets.robot import ARM_JOINT_NAMES, source_mjcf
from pipeline.render.poses import link_poses

ARM = [f"link{i}" for i in range(8)]


@pytest.mark.parametrize("seed", range(3))
def test_arm_agrees_with_mujocos_own_kinematics(seed: int) -> None:
    model = mujoco.MjModel.from_xml_path(str(source_mjcf()))
    data = mujoco.MjData(model)
    angles = np.random.default_rng(seed).uniform(-1.0, 1.0, 7)
    for name, angle in zip(ARM_JOINT_NAMES, angles, strict=True):
        data.qpos[model.joint(name).qposadr[0]] = angle
    mujoco.mj_kinematics(model, data)
    poses = link_poses(angles, 0.0)
    for link in ARM:
        np.testing.assert_allclose(poses[link][:3], data.body(link).xpos, atol=1e-9)
        assert abs(poses[link][[6, 3, 4, 5]] @ data.body(link).xquat) == pytest.approx(1.0)


def test_closing_brings_the_pads_together_along_y_at_home() -> None:
    def gap(finger_rad: float) -> np.ndarray:
        poses = link_poses(np.zeros(7), finger_rad)
        return np.abs(poses["left_pad"][:3] - poses["right_pad"][:3])

    opened, closed = gap(0.0), gap(0.7)
    assert opened[1] == pytest.approx(0.0985, abs=0.002)
    assert closed[1] < 0.3 * opened[1]
    np.testing.assert_allclose(opened[[0, 2]], 0.0, atol=1e-6)
