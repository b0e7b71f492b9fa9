"""The contract between experts and envs: what an expert may see, and what it may ask for."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from randomization.draws import Draws


@dataclass(frozen=True)
class Assembly:
    """What an expert knows of its task beforehand.

    Attributes:
        geometry: dimensions of the parts, metres unless the name says otherwise.
        seat_offset_m: where the held part's root belongs, from the fixed part's root and in its frame.
    """

    geometry: Mapping[str, float]
    seat_offset_m: tuple[float, float, float]


@dataclass(frozen=True)
class Handicap:
    """What an expert is told wrongly or must not do: controls that must not succeed.

    Attributes:
        seat_error_m: (2,) added to where it is told that the seat is.
        skill_off: without what its family needs: square pegs are not clocked, gears are pressed half a tooth pitch off
            and not searched, nuts are pressed and not turned.
        wrong_way: nuts are turned against their thread.
    """

    seat_error_m: tuple[float, float] = (0.0, 0.0)
    skill_off: bool = False
    wrong_way: bool = False


@dataclass(frozen=True)
class View:
    """Privileged state of N envs before an action; positions relative to the env's robot base, quaternions xyzw.

    Attributes:
        held_pos_m: (N, 3) root of the held part, the centre of its underside.
        held_quat_xyzw: (N, 4).
        held_vel_m_s: (N, 3) linear velocity of the held part's root.
        fixed_pos_m: (N, 3) root of the fixed part.
        fixed_quat_xyzw: (N, 4).
        tool_pos_m: (N, 3) tool centre, between the open fingertips.
        tool_quat_xyzw: (N, 4) gripper base, +z the approach axis.
        joint_pos_rad: (N, 7) arm joints.
        joint_vel_rad_s: (N, 7).
        jacobian: (N, 6, 7) of the tool centre, linear rows first, base frame.
        finger_closed: (N,) 0 open to 1 closed.
        wrist_wrench: (N, 6) force N and torque N m that the arm exerts on the gripper, gripper frame.
        pad_force_n: (N, 2) normal force on the left and right pads.
        contact_force_n: (N,) force between held and fixed part.
    """

    held_pos_m: np.ndarray
    held_quat_xyzw: np.ndarray
    held_vel_m_s: np.ndarray
    fixed_pos_m: np.ndarray
    fixed_quat_xyzw: np.ndarray
    tool_pos_m: np.ndarray
    tool_quat_xyzw: np.ndarray
    joint_pos_rad: np.ndarray
    joint_vel_rad_s: np.ndarray
    jacobian: np.ndarray
    finger_closed: np.ndarray
    wrist_wrench: np.ndarray
    pad_force_n: np.ndarray
    contact_force_n: np.ndarray

    @property
    def num_envs(self) -> int:
        """Number of envs, N."""
        return len(self.tool_pos_m)


@dataclass(frozen=True)
class Action:
    """What an expert asks of N envs for one control step.

    Attributes:
        tool_pos_m: (N, 3) tool centre wanted.
        tool_quat_xyzw: (N, 4) gripper base orientation wanted.
        grip: (N,) 0 open, 1 closed.
        phase: (N,) index into the expert's ``phases``.
        done: (N,) the expert has nothing left to do.
        failure: (N,) named failure where it has given up, else None.
    """

    tool_pos_m: np.ndarray
    tool_quat_xyzw: np.ndarray
    grip: np.ndarray
    phase: np.ndarray
    done: np.ndarray
    failure: np.ndarray


class Expert(Protocol):
    """A scripted policy over N envs; it reads only the :class:`View` and this episode's draws.

    Attributes:
        phases: names behind :attr:`Action.phase`.
        failures: every name that :attr:`Action.failure` can have.
    """

    phases: tuple[str, ...]
    failures: tuple[str, ...]

    def reset(self, view: View, draws: Sequence[Draws], env_ids: Sequence[int]) -> None:
        """Start an episode in these envs, one draw each."""

    def act(self, view: View) -> Action:
        """Decide the next control step of every env."""
