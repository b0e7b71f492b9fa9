"""The robot against the model that it is read from."""

import mujoco
import numpy as np
import pytest

from pipeline.assets.robot import (
    ARM_JOINT_NAMES,
    DRIVER_JOINT_NAMES,
    GRIPPER_BASE,
    PAD_BODIES,
    Robot,
    load_robot,
    source_licences,
    source_mjcf,
)
from pipeline.tasks import HOME_JOINTS_RAD


@pytest.fixture(scope="module")
def robot() -> Robot:
    return load_robot()


@pytest.fixture(scope="module")
def source() -> mujoco.MjModel:
    return mujoco.MjModel.from_xml_path(str(source_mjcf()))


def test_mass_and_inertia_of_every_link_are_the_source_models(robot: Robot, source: mujoco.MjModel) -> None:
    for body in robot.bodies:
        original = source.body(body.name)
        assert body.mass == original.mass[0], body.name
        assert np.array_equal(body.com, original.ipos)
        assert np.array_equal(body.inertia, original.inertia)
        assert np.array_equal(body.inertia_quat_wxyz, original.iquat)
        assert body.mass > 0
        assert body.inertia.max() <= body.inertia.sum() - body.inertia.max() + 1e-12, "moments of a real solid"


def test_no_mass_is_lost(robot: Robot, source: mujoco.MjModel) -> None:
    assert sum(body.mass for body in robot.bodies) == pytest.approx(source.body_mass.sum(), rel=1e-12)
    arm = sum(body.mass for body in robot.bodies if body.name.startswith("link"))
    assert arm == pytest.approx(16.69, abs=0.01), "the published identification of the Panda's links"
    assert 0.8 < sum(body.mass for body in robot.bodies) - arm < 1.1, "a 2F-85 weighs about 0.9 kg"


def test_joints(robot: Robot, source: mujoco.MjModel) -> None:
    joints = {body.joint.name: body.joint for body in robot.bodies if body.joint}
    assert set(ARM_JOINT_NAMES) | set(DRIVER_JOINT_NAMES) <= set(joints)
    assert len(joints) == source.njnt == 7 + 8
    for name, joint in joints.items():
        assert joint.range_rad == tuple(source.joint(name).range)
    for name, angle in zip(ARM_JOINT_NAMES, HOME_JOINTS_RAD, strict=True):
        low, high = joints[name].range_rad
        assert low < angle < high, f"{name}: home is within its limits"


def test_links_come_after_their_parents(robot: Robot) -> None:
    seen: set[str] = set()
    for body in robot.bodies:
        assert body.parent is None or body.parent in seen
        seen.add(body.name)
    assert {*PAD_BODIES, GRIPPER_BASE} <= set(robot.names) == seen
    assert [body.name for body in robot.bodies if body.parent is None] == ["link0"]


def test_the_linkage_is_closed_on_both_sides(robot: Robot) -> None:
    assert len(robot.connects) == 2
    for connect in robot.connects:
        assert {connect.body1, connect.body2} <= set(robot.names)
        assert np.linalg.norm(connect.anchor) < 0.1
    assert set(robot.mimic) == set(DRIVER_JOINT_NAMES)


def home_frames(robot: Robot) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Position and rotation matrix of every link at the home pose, by plain forward kinematics."""
    frames: dict[str, tuple[np.ndarray, np.ndarray]] = {}
    home = dict(zip(ARM_JOINT_NAMES, HOME_JOINTS_RAD, strict=True))
    for body in robot.bodies:
        at, turn = frames[body.parent] if body.parent else (np.zeros(3), np.eye(3))
        local = np.zeros(9)
        mujoco.mju_quat2Mat(local, body.quat_wxyz)
        at, turn = at + turn @ body.pos, turn @ local.reshape(3, 3)
        if body.joint and body.joint.name in home:
            angle = home[body.joint.name]
            c, s = np.cos(angle), np.sin(angle)
            assert body.joint.axis == "Z"
            assert not body.joint.pos.any()
            turn = turn @ np.array([[c, -s, 0], [s, c, 0], [0, 0, 1]])
        frames[body.name] = at, turn
    return frames


def test_at_home_the_tool_points_straight_down_over_the_table(robot: Robot) -> None:
    at, turn = home_frames(robot)[GRIPPER_BASE]
    assert turn[:, 2] == pytest.approx((0.0, 0.0, -1.0), abs=1e-6)
    assert at[1] == pytest.approx(0.0, abs=1e-3)
    assert 0.2 < at[0] < 0.6
    assert 0.2 < at[2] < 0.7


def test_the_fingers_close_along_the_robots_y_axis(robot: Robot) -> None:
    frames = home_frames(robot)
    across = frames["left_pad"][0] - frames["right_pad"][0]
    assert abs(across[1]) > 0.03
    assert np.abs(across[[0, 2]]).max() < 1e-3


def test_every_collider_is_a_box_or_a_hull(robot: Robot) -> None:
    for body in robot.bodies:
        for collider in body.colliders:
            assert (collider.half_size is None) != (collider.vertices is None), collider.name
    pads = [body for body in robot.bodies if body.name in PAD_BODIES]
    assert all(any(c.half_size is not None for c in pad.colliders) for pad in pads)


def test_the_sources_licence_comes_with_it() -> None:
    assert "Apache License" in source_licences()["LICENSE"]
