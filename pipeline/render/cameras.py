"""The two cameras of the cell, with DROID's intrinsics: a fixed one and one on the gripper."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from scipy.spatial.transform import Rotation

WIDTH_PX, HEIGHT_PX = 320, 180
FOCAL_MM = 2.8
APERTURE_MM = (5.376, 3.024)
FOVY_RAD = float(2 * np.arctan(APERTURE_MM[1] / 2 / FOCAL_MM))
"""Vertical field of view, 56.7 degrees; pixels are square, so that the horizontal one is 87.7 degrees."""


@dataclass(frozen=True)
class Camera:
    """A pinhole camera that looks down its -z axis with +y up (OpenGL).

    Attributes:
        body: recorded body that it is fixed to, or None for the env's frame.
        pos_m: position in that frame.
        quat_xyzw: orientation in that frame.
    """

    body: str | None
    pos_m: tuple[float, float, float]
    quat_xyzw: tuple[float, float, float, float]

    def world_pose(self, body_poses: Mapping[str, np.ndarray]) -> np.ndarray:
        """Pose (7,) in the env's frame, metres and xyzw, where each body's pose is given likewise."""
        if self.body is None:
            return np.array([*self.pos_m, *self.quat_xyzw])
        parent = body_poses[self.body]
        turn = Rotation.from_quat(parent[3:])
        return np.concatenate(
            [parent[:3] + turn.apply(self.pos_m), (turn * Rotation.from_quat(self.quat_xyzw)).as_quat()]
        )


def _looking_at(eye: tuple[float, float, float], target: tuple[float, float, float]) -> Camera:
    backward = np.subtract(eye, target) / np.linalg.norm(np.subtract(eye, target))
    right = np.cross((0.0, 0.0, 1.0), backward)
    right /= np.linalg.norm(right)
    turn = Rotation.from_matrix(np.stack([right, np.cross(backward, right), backward], axis=1))
    x, y, z, w = turn.as_quat().tolist()
    return Camera(None, eye, (x, y, z, w))


CAMERAS: Mapping[str, Camera] = {
    "front": _looking_at(eye=(0.55, 0.0, 0.30), target=(0.37, 0.0, 0.03)),
    "wrist": Camera("base", (0.074, -0.031, 0.011), (0.6921, 0.7042, 0.1138, 0.1103)),
}
"""By name. The wrist camera stands where DROID's left stereo lens does, in the frame of the 2F-85's ``base``: +z is
the approach axis, the fingers close along y."""
