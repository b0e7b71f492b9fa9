"""Every column of a recorded episode, in one table shared by the recorder, the store and the exporter."""

from dataclasses import dataclass

import numpy as np

FPS = 15
"""Control and recording rate, Hz."""

ARM_JOINTS = 7
POSE_XYZW = ("x_m", "y_m", "z_m", "qx", "qy", "qz", "qw")


@dataclass(frozen=True)
class Feature:
    """One column: row t holds what was measured before, commanded at, or earned by control step t.

    ``names`` are the dimensions, with units; quaternions are written out in storage order (xyzw).
    A feature without names is a scalar column. ``export`` is False for what only rendering needs.
    """

    key: str
    dtype: str
    names: tuple[str, ...] = ()
    export: bool = True

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of one row."""
        return (len(self.names),) if self.names else ()

    def check(self, values: np.ndarray, length: int) -> np.ndarray:
        """Return ``values`` in this column's type.

        Raises:
            ValueError: if the shape is wrong or a value is not finite.
        """
        array = np.ascontiguousarray(values, dtype=self.dtype)
        if array.shape != (length, *self.shape):
            raise ValueError(f"{self.key}: shape {array.shape}, expected {(length, *self.shape)}")
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            row = int(np.argwhere(~np.isfinite(array))[0][0])
            raise ValueError(f"{self.key}: not finite at row {row}")
        return array


def _joints(suffix: str) -> tuple[str, ...]:
    return tuple(f"joint_{i}_{suffix}" for i in range(1, ARM_JOINTS + 1))


FEATURES: tuple[Feature, ...] = (
    Feature("observation.state", "float32", (*_joints("rad"), "gripper_closed")),
    Feature("action", "float32", (*_joints("target_rad"), "gripper_closed_target")),
    Feature("observation.joint_vel", "float32", _joints("rad_s")),
    Feature("observation.eef_pos", "float32", POSE_XYZW[:3]),
    Feature("observation.eef_quat", "float32", POSE_XYZW[3:]),
    Feature("observation.wrist_wrench", "float32", ("fx_n", "fy_n", "fz_n", "tx_nm", "ty_nm", "tz_nm")),
    Feature("next.reward", "float32"),
    Feature("next.done", "bool"),
    Feature("next.success", "bool"),
    Feature("phase", "int64"),
    Feature("privileged.held_pose", "float32", POSE_XYZW),
    Feature("privileged.fixed_pose", "float32", POSE_XYZW),
    Feature("privileged.stand_pose", "float32", POSE_XYZW),
    Feature(
        "privileged.contact",
        "float32",
        ("fixture_force_n", "penetration_m", "left_pad_force_n", "right_pad_force_n"),
    ),
)
BY_KEY = {feature.key: feature for feature in FEATURES}


def body_feature(bodies: tuple[str, ...]) -> Feature:
    """Column of every moving body's pose, env-local metres and xyzw, flattened body by body."""
    names = tuple(f"{body}.{axis}" for body in bodies for axis in POSE_XYZW)
    return Feature("bodies", "float32", names, export=False)
