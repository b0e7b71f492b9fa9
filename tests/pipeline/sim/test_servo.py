"""Joint commands of tool targets, without a simulator."""

import numpy as np
import pytest

from pipeline.sim.servo import MAX_JOINT_STEP_RAD, Servo

pytestmark = pytest.mark.slow  # importing Isaac Lab's controllers takes ten seconds

POSE = np.array([[0.4, 0.0, 0.3]]), np.array([[1.0, 0.0, 0.0, 0.0]])


def step(jacobian: np.ndarray, up_m: float) -> np.ndarray:
    """Change (7,) of the joint commands, for a tool told to rise."""
    position, quaternion = POSE
    command, _ = Servo(1, "cpu").command(
        position + [0.0, 0.0, up_m], quaternion, np.zeros(1), position, quaternion, jacobian[None], np.zeros((1, 7))
    )
    return command[0, :7]


@pytest.fixture
def jacobian() -> np.ndarray:
    """Of an arm whose first and third joint hardly move the tool, as near a singularity."""
    found = np.zeros((6, 7))
    found[2, [0, 1, 2]] = 0.02, 0.05, -0.02
    found[[0, 1, 3, 4, 5], [3, 4, 5, 6, 1]] = 0.3, 0.3, 1.0, 1.0, 0.5
    return found


def test_a_small_way_is_commanded_whole(jacobian: np.ndarray) -> None:
    small = step(jacobian, 1e-4)
    assert 0 < np.abs(small).max() < MAX_JOINT_STEP_RAD
    assert step(jacobian, 2e-4) == pytest.approx(2 * small, rel=1e-3)


def test_a_step_that_is_too_long_is_shortened_and_not_bent(jacobian: np.ndarray) -> None:
    small, long = step(jacobian, 1e-4), step(jacobian, 1.0)
    assert np.abs(long).max() == pytest.approx(MAX_JOINT_STEP_RAD)
    assert long / np.linalg.norm(long) == pytest.approx(small / np.linalg.norm(small), abs=1e-4)
