import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from experts.motion import TOOL_DOWN_XYZW, approach, tool_quat, turn, upright_error, wrap

angles = st.floats(-20.0, 20.0)
points = st.tuples(*(st.floats(-1.0, 1.0) for _ in range(3)))


@given(points, points)
def test_approach_gets_nearer_within_its_speeds_and_never_overshoots(start: tuple[float], goal: tuple[float]) -> None:
    here, there = np.array([start]), np.array([goal])
    moved = approach(here, there, fastest=0.014, slowest=0.0008)
    before, after = np.linalg.norm(there - here), np.linalg.norm(there - moved)
    step = np.linalg.norm(moved - here)
    assert step <= 0.014 + 1e-12
    assert after == pytest.approx(before - step, abs=1e-9), "straight at the goal"
    assert step >= np.minimum(before, 0.0008) - 1e-12


def test_approach_arrives() -> None:
    here, there = np.zeros((1, 3)), np.array([[0.1, -0.05, 0.02]])
    for _ in range(60):
        here = approach(here, there, fastest=0.014, slowest=0.0008)
    assert np.array_equal(here, there) or np.abs(here - there).max() < 1e-12


@given(angles, st.sampled_from([np.pi, 2 * np.pi, 0.3]))
def test_wrap_keeps_the_angle_and_bounds_it(angle: float, period: float) -> None:
    wrapped = float(wrap(np.array([angle]), period)[0])
    assert -period / 2 <= wrapped <= period / 2
    assert np.cos(2 * np.pi / period * (angle - wrapped)) == pytest.approx(1.0, abs=1e-6)


def test_turn_takes_the_short_way_round() -> None:
    assert turn(np.array([3.1]), np.array([-3.1]), 0.05)[0] == pytest.approx(3.15)
    assert turn(np.array([0.0]), np.array([0.01]), 0.05)[0] == pytest.approx(0.01)


@given(angles)
def test_the_tool_points_down_at_every_yaw(yaw: float) -> None:
    down = Rotation.from_quat(tool_quat(np.array([yaw]), np.zeros((1, 3)))).as_matrix()[0]
    assert down[:, 2] == pytest.approx((0, 0, -1), abs=1e-9)
    assert down[:, 0] == pytest.approx((np.cos(yaw), np.sin(yaw), 0), abs=1e-9)


def test_the_tool_leans_about_the_worlds_axes() -> None:
    leant = Rotation.from_quat(tool_quat(np.array([0.7]), np.array([[0.1, 0.0, 0.0]])))
    straight = Rotation.from_quat(tool_quat(np.array([0.7]), np.zeros((1, 3))))
    assert (leant * straight.inv()).as_rotvec()[0] == pytest.approx((0.1, 0.0, 0.0))
    assert tool_quat(np.zeros(1), np.zeros((1, 3)))[0] == pytest.approx(TOOL_DOWN_XYZW)


@given(st.floats(-3.0, 3.0), st.floats(0.001, 3.0), angles)
def test_upright_error_sets_a_part_upright(direction: float, tilt: float, yaw: float) -> None:
    axis = np.array([np.cos(direction), np.sin(direction), 0.0])
    part = Rotation.from_rotvec(tilt * axis) * Rotation.from_euler("z", yaw)
    error = upright_error(part.as_quat()[None])
    assert np.linalg.norm(error) == pytest.approx(tilt, abs=1e-6)
    assert (Rotation.from_rotvec(error[0]) * part).as_matrix()[2, 2] == pytest.approx(1.0, abs=1e-9)


def test_an_upright_part_has_no_error() -> None:
    assert not upright_error(np.array([[0.0, 0.0, 0.3826834, 0.9238795]])).any()
