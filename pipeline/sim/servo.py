"""From tool targets to joint commands: Isaac Lab's differential-IK controller and a slew-limited gripper."""

import numpy as np
import torch
from isaaclab.controllers import DifferentialIKController, DifferentialIKControllerCfg

from pipeline.schema import FPS
from pipeline.sim.env import GRIPPER_CLOSED_RAD

FINGER_SPEED_RAD_S = 1.0
"""Fastest that the finger command moves, rad/s."""

DAMPING = 0.01
MAX_JOINT_STEP_RAD = 0.15
"""Largest change of a joint command from the measured joint in one control step; a longer one is shortened as a whole,
so that near a singularity the tool slows down and does not leave its way."""


class Servo:
    """Turns tool poses and a 0/1 grip into the 8-D command (7 joint targets in rad, grip) of every env."""

    def __init__(self, num_envs: int, device: str) -> None:
        cfg = DifferentialIKControllerCfg(
            command_type="pose", use_relative_mode=False, ik_method="dls", ik_params={"lambda_val": DAMPING}
        )
        self._ik = DifferentialIKController(cfg, num_envs, device)
        self._device = device
        self._fingers = np.zeros(num_envs)

    def reset(self, env_ids: np.ndarray) -> None:
        """Open the finger command of these envs."""
        self._fingers[env_ids] = 0.0

    def command(
        self,
        target_pos_m: np.ndarray,
        target_quat_xyzw: np.ndarray,
        grip: np.ndarray,
        tool_pos_m: np.ndarray,
        tool_quat_xyzw: np.ndarray,
        jacobian: np.ndarray,
        joint_pos_rad: np.ndarray,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Solve one control step.

        Args:
            target_pos_m: (N, 3) tool centre wanted, base frame.
            target_quat_xyzw: (N, 4) gripper base orientation wanted.
            grip: (N,) 0 open, 1 closed.
            tool_pos_m, tool_quat_xyzw, jacobian, joint_pos_rad: as measured, see :class:`experts.contract.View`.

        Returns:
            command (N, 8) in the recorded contract, and finger targets (N,) in rad, slew-limited.
        """
        pos, quat = self._tensor(tool_pos_m), self._tensor(tool_quat_xyzw)
        self._ik.set_command(torch.cat([self._tensor(target_pos_m), self._tensor(target_quat_xyzw)], 1), pos, quat)
        joints = self._tensor(joint_pos_rad)
        wanted = self._ik.compute(pos, quat, self._tensor(jacobian), joints).cpu().numpy()
        step = wanted - joint_pos_rad
        step /= np.maximum(1.0, np.abs(step).max(axis=1, keepdims=True) / MAX_JOINT_STEP_RAD)
        limit = FINGER_SPEED_RAD_S / FPS
        self._fingers += np.clip(grip * GRIPPER_CLOSED_RAD - self._fingers, -limit, limit)
        command = np.concatenate([joint_pos_rad + step, grip[:, None]], 1).astype(np.float32)
        return command, self._fingers.astype(np.float32)

    def _tensor(self, array: np.ndarray) -> torch.Tensor:
        return torch.as_tensor(array, dtype=torch.float32, device=self._device)
