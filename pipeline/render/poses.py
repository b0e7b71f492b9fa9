"""Poses of the robot's links from joint angles, where there is no recording to take them from."""

from collections.abc import Mapping

import mujoco
import numpy as np

from pipeline.assets.robot import ARM_JOINT_NAMES, load_robot, multiply, rotate


def link_poses(arm_rad: np.ndarray, finger_rad: float) -> Mapping[str, np.ndarray]:
    """Pose (7,) of every link, robot base frame, metres and xyzw, by forward kinematics.

    Args:
        arm_rad: (7,) joint angles.
        finger_rad: angle of the drivers, 0 open to pi/4 closed; the linkage follows as a parallelogram.
    """
    angles = dict(zip(ARM_JOINT_NAMES, arm_rad, strict=True))
    for side in ("left", "right"):
        angles |= {f"{side}_driver_joint": finger_rad, f"{side}_spring_link_joint": finger_rad}
        angles[f"{side}_follower_joint"] = -finger_rad
    poses: dict[str, np.ndarray] = {}
    for body in load_robot().bodies:
        pos, quat = body.pos.copy(), body.quat_wxyz / np.linalg.norm(body.quat_wxyz)
        if body.joint is not None:
            pos, quat = _turn(pos, quat, body.joint.pos, body.joint.axis, angles.get(body.joint.name, 0.0))
        if body.parent is not None:
            parent = poses[body.parent]
            pos, quat = parent[:3] + rotate(parent[3:], pos), multiply(parent[3:], quat)
        poses[body.name] = np.concatenate([pos, quat])
    return {name: pose[[0, 1, 2, 4, 5, 6, 3]] for name, pose in poses.items()}


def _turn(
    pos: np.ndarray, quat_wxyz: np.ndarray, anchor: np.ndarray, axis: str, angle_rad: float
) -> tuple[np.ndarray, np.ndarray]:
    """Turn a frame about an axis through ``anchor``, both given in that frame."""
    half = np.zeros(4)
    mujoco.mju_axisAngle2Quat(half, np.eye(3)["XYZ".index(axis)], angle_rad)
    turned = multiply(quat_wxyz, half)
    return pos + rotate(quat_wxyz, anchor) - rotate(turned, anchor), turned
