"""Small vectorised motions: approach a goal at a bounded speed, turn about the vertical, measure tilt."""

import numpy as np
from scipy.spatial.transform import Rotation

TOOL_DOWN_XYZW = (1.0, 0.0, 0.0, 0.0)
"""Gripper base pointing straight down, fingers closing along the base frame's y axis."""


def approach(current: np.ndarray, goal: np.ndarray, fastest: float, slowest: float, ease: float = 0.25) -> np.ndarray:
    """One step of (n, 3) points towards their goals: ``ease`` of the distance, within the two speeds in m/step."""
    gap = goal - current
    distance = np.linalg.norm(gap, axis=1, keepdims=True)
    step = np.clip(ease * distance, slowest, fastest)
    return current + gap * np.minimum(1.0, step / np.maximum(distance, 1e-9))


def turn(current: np.ndarray, goal: np.ndarray, fastest: float) -> np.ndarray:
    """One step of angles (n,) towards their goals, at most ``fastest`` rad."""
    return current + np.clip(wrap(goal - current), -fastest, fastest)


def wrap(angle: np.ndarray, period: float = 2 * np.pi) -> np.ndarray:
    """Angle in [-period/2, period/2)."""
    return (angle + period / 2) % period - period / 2


def tool_quat(yaw: np.ndarray, lean: np.ndarray) -> np.ndarray:
    """Tool pointing down (n, 4) xyzw, turned by ``yaw`` (n,) and then leant by the rotation vector ``lean`` (n, 3)."""
    turned = np.stack([np.zeros_like(yaw), np.zeros_like(yaw), yaw], 1)
    return (Rotation.from_rotvec(lean) * Rotation.from_rotvec(turned) * Rotation.from_quat(TOOL_DOWN_XYZW)).as_quat()


def upright_error(quat_xyzw: np.ndarray) -> np.ndarray:
    """Rotation vector (n, 3), about a horizontal axis, that sets a part's z axis upright."""
    axis = Rotation.from_quat(quat_xyzw).as_matrix()[:, :, 2]
    cross = np.stack([axis[:, 1], -axis[:, 0], np.zeros(len(axis))], 1)
    sine = np.linalg.norm(cross, axis=1, keepdims=True)
    angle = np.arctan2(sine, axis[:, 2:3])
    return cross / np.maximum(sine, 1e-9) * angle


def heading(quat_xyzw: np.ndarray) -> np.ndarray:
    """Angle (n,) of a part's x axis about the vertical."""
    axis = Rotation.from_quat(quat_xyzw).as_matrix()[:, :, 0]
    return np.arctan2(axis[:, 1], axis[:, 0])
