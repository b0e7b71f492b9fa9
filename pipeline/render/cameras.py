"""The cameras of the cell, with DROID's intrinsics: fixed ones and one on the gripper."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from scipy.spatial.transform import Rotation

from pipeline.errors import UserError

Size = tuple[int, int]
"""Width and height, pixels."""

SIZES: Mapping[str, Size] = {"320x180": (320, 180), "640x360": (640, 360)}
"""Sizes of pictures that can be stored; both have the cameras' aspect."""

SIZE = WIDTH_PX, HEIGHT_PX = SIZES["320x180"]
FOCAL_MM = 2.8
APERTURE_MM = (5.376, 3.024)
Vector = tuple[float, float, float]

FOVY_RAD = float(2 * np.arctan(APERTURE_MM[1] / 2 / FOCAL_MM))
"""Vertical field of view, 56.7 degrees; pixels are square, so that the horizontal one is 87.7 degrees."""


@dataclass(frozen=True)
class Camera:
    """A pinhole camera that looks down its -z axis with +y up (OpenGL).

    Attributes:
        body: recorded body that it is fixed to, or None for the env's frame.
        pos_m: position in that frame.
        quat_xyzw: orientation in that frame.
        fovy_rad: vertical field of view.
    """

    body: str | None
    pos_m: tuple[float, float, float]
    quat_xyzw: tuple[float, float, float, float]
    fovy_rad: float = FOVY_RAD

    def world_pose(self, body_poses: Mapping[str, np.ndarray]) -> np.ndarray:
        """Pose (7,) in the env's frame, metres and xyzw, where each body's pose is given likewise."""
        if self.body is None:
            return np.array([*self.pos_m, *self.quat_xyzw])
        parent = body_poses[self.body]
        turn = Rotation.from_quat(parent[3:])
        return np.concatenate(
            [parent[:3] + turn.apply(self.pos_m), (turn * Rotation.from_quat(self.quat_xyzw)).as_quat()]
        )


def looking_at(eye: Vector, target: Vector, fovy_rad: float = FOVY_RAD) -> Camera:
    """Fixed camera at ``eye`` with ``target`` in the middle of its upright picture, metres."""
    backward = np.subtract(eye, target) / np.linalg.norm(np.subtract(eye, target))
    right = np.cross((0.0, 0.0, 1.0), backward)
    right /= np.linalg.norm(right)
    turn = Rotation.from_matrix(np.stack([right, np.cross(backward, right), backward], axis=1))
    x, y, z, w = turn.as_quat().tolist()
    return Camera(None, eye, (x, y, z, w), fovy_rad)


EYES: Mapping[str, tuple[Vector, Vector]] = {
    "front": ((0.55, 0.0, 0.30), (0.37, 0.0, 0.03)),
    "front_close": ((0.50, 0.0, 0.17), (0.37, 0.0, 0.03)),
    "exterior_1": ((0.30, 0.62, 0.45), (0.36, 0.0, 0.10)),
    "exterior_2": ((0.30, -0.62, 0.45), (0.36, 0.0, 0.10)),
}
"""Where each fixed camera stands and what it looks at. DROID's exterior cameras stand left and right of the robot."""

WRIST = Camera("base", (0.074, -0.031, 0.011), (0.6921, 0.7042, 0.1138, 0.1103))
"""Stands where DROID's left stereo lens does, in the frame of the 2F-85's ``base``: +z is the approach axis, the
fingers close along y."""

CAMERAS: Mapping[str, Camera] = {
    **{name: looking_at(*stand) for name, stand in EYES.items()},
    "wrist": WRIST,
}
"""By name, in the plain look."""

DEFAULT_CAMERAS = ("front", "wrist")


def size_of(text: str) -> Size:
    """Size by name, such as ``640x360``.

    Raises:
        UserError: for one that is not in :data:`SIZES`.
    """
    if text not in SIZES:
        raise UserError(f"size {text!r}: pictures are stored as {' or '.join(SIZES)}")
    return SIZES[text]


def require_cameras(names: Iterable[str]) -> None:
    """Accept names of cameras.

    Raises:
        UserError: for one that is not in :data:`CAMERAS`.
    """
    if unknown := [name for name in names if name not in CAMERAS]:
        raise UserError(f"unknown camera {unknown[0]!r}; there is: {', '.join(CAMERAS)}")
