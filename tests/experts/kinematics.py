"""A world without physics: the tool goes where it is told, a gripped peg goes with it, and the fixture stops both."""

from dataclasses import dataclass

import numpy as np
from scipy.spatial.transform import Rotation

from experts.contract import Action, View
from experts.motion import TOOL_DOWN_XYZW, heading, wrap
from pipeline.tasks import Task
from randomization.draws import Draws

GRASP_ABOVE_BASE_M = 0.045
"""Tool centre above the peg's base when the fingers are on its shaft."""

FITS_WITHIN_RAD = 0.03
"""Angle to its hole within which a square peg goes in."""


@dataclass(frozen=True)
class Mishap:
    """What goes wrong, in every env that has it.

    Attributes:
        arm_stuck: the tool does not move.
        no_grip: the pads feel nothing and hold nothing.
        pads_feel: the pads report a touch, and hold nothing.
        lost_at_m: height of the tool at which the peg falls out of the hand.
        tip_rad: tilt that the peg takes when it is gripped.
        tip_slack: the peg keeps that tilt however the wrist leans.
        plugged: nothing gets below the mouth of the hole.
        drift_m: the gripped peg is this far aside from where the tool carries it, to and fro each step.
        fingers_stuck: they close and never open.
    """

    arm_stuck: bool = False
    no_grip: bool = False
    pads_feel: bool = False
    lost_at_m: float = np.inf
    tip_rad: float = 0.0
    tip_slack: bool = False
    plugged: bool = False
    drift_m: float = 0.0
    fingers_stuck: bool = False


class Bench:
    """N envs of a peg task.

    Attributes:
        tool, held, hole: (N, 3) tool centre, base point of the peg, root of the fixture.
    """

    def __init__(self, task: Task, draws: list[Draws], mishaps: list[Mishap] | None = None) -> None:
        n = len(draws)
        self.mishaps = mishaps or [Mishap()] * n
        self.bottom, self.mouth = task.geometry["base"], task.geometry["base"] + task.geometry["bore_depth"]
        starts = [draw.start for draw in draws]
        self.held = np.array([np.add(task.held_pos_m, (s.held_x_m, s.held_y_m, self.bottom)) for s in starts])
        self.hole = np.array([np.add(task.fixed_pos_m, (s.fixed_x_m, s.fixed_y_m, 0.0)) for s in starts])
        self.hole_quat = Rotation.from_rotvec([(0.0, 0.0, s.fixed_yaw_rad) for s in starts]).as_quat()
        self._square = task.family == "peg_square"
        self.tool = np.tile((0.42, 0.0, 0.30), (n, 1))
        self.tool_quat = np.tile(TOOL_DOWN_XYZW, (n, 1))
        self.held_quat = np.tile((0.0, 0.0, 0.0, 1.0), (n, 1))
        self.closed = np.zeros(n)
        self.gripped = np.zeros(n, bool)
        self.touched = np.zeros(n, bool)
        self._offset = np.zeros((n, 3))
        self._tilt = [Rotation.identity()] * n
        self._speed = np.zeros((n, 3))
        self._now = 0

    def view(self) -> View:
        """What an expert sees."""
        n = len(self.tool)
        return View(
            held_pos_m=self.held.copy(),
            held_quat_xyzw=self.held_quat.copy(),
            held_vel_m_s=self._speed.copy(),
            fixed_pos_m=self.hole.copy(),
            fixed_quat_xyzw=self.hole_quat.copy(),
            tool_pos_m=self.tool.copy(),
            tool_quat_xyzw=self.tool_quat.copy(),
            joint_pos_rad=np.zeros((n, 7)),
            joint_vel_rad_s=np.zeros((n, 7)),
            jacobian=np.zeros((n, 6, 7)),
            finger_closed=self.closed.copy(),
            wrist_wrench=np.zeros((n, 6)),
            pad_force_n=np.repeat(12.0 * self.touched[:, None], 2, 1),
            contact_force_n=np.zeros(n),
        )

    def step(self, action: Action) -> None:
        """Carry out one control step."""
        before = self.held.copy()
        self._now += 1
        for env, mishap in enumerate(self.mishaps):
            if not mishap.arm_stuck:
                self.tool[env], self.tool_quat[env] = action.tool_pos_m[env], action.tool_quat_xyzw[env]
            self._move_fingers(env, mishap, float(action.grip[env]))
            if self.gripped[env]:
                self._carry(env, mishap)
            elif self._over_hole(env) and self.held[env, 2] < self.mouth:
                self.held[env, 2] = self.bottom
                self.held_quat[env] = self.hole_quat[env]
        self._speed = (self.held - before) * 15.0

    def _move_fingers(self, env: int, mishap: Mishap, grip: float) -> None:
        wanted = max(grip, float(self.closed[env] > 0.6)) if mishap.fingers_stuck else grip
        self.closed[env] += np.clip(0.7 * wanted - self.closed[env], -0.08, 0.08)
        around = np.abs(self.tool[env] - self.held[env] - (0.0, 0.0, GRASP_ABOVE_BASE_M)).max() < 0.006
        pressed = self.closed[env] > 0.6
        self.touched[env] = pressed and ((around and not mishap.no_grip) or self.gripped[env])
        holds = bool(self.touched[env]) and not mishap.pads_feel and self.tool[env, 2] < mishap.lost_at_m
        if holds and not self.gripped[env]:
            self._offset[env] = self.held[env] - self.tool[env]
            self._tilt[env] = Rotation.from_rotvec((mishap.tip_rad, 0.0, 0.0))
        self.gripped[env] = holds

    def _over_hole(self, env: int) -> bool:
        return bool(np.linalg.norm(self.held[env, :2] - self.hole[env, :2]) < 0.4e-3)

    def _fits(self, env: int) -> bool:
        """Whether the peg is turned as its hole is; a square one fits at two angles."""
        turns = heading(np.stack([self.held_quat[env], self.hole_quat[env]]))
        return not self._square or abs(float(wrap(turns[:1] - turns[1:], np.pi)[0])) < FITS_WITHIN_RAD

    def _carry(self, env: int, mishap: Mishap) -> None:
        sway = mishap.drift_m * (1.0 if self._now % 2 else -1.0)
        wanted = self.tool[env] + self._offset[env] + (sway, 0.0, 0.0)
        near_fixture = np.abs(wanted[:2] - self.hole[env, :2]).max() < 0.02
        if near_fixture:
            inside = self._fits(env) and np.linalg.norm(wanted[:2] - self.hole[env, :2]) < 0.4e-3 and not mishap.plugged
            blocked = max(0.0, (self.bottom if inside else self.mouth) - wanted[2])
            wanted[2] += blocked
            self.tool[env, 2] += blocked
        self.held[env] = wanted
        lean = Rotation.from_quat(self.tool_quat[env]) * Rotation.from_quat(TOOL_DOWN_XYZW).inv()
        self.held_quat[env] = (self._tilt[env] if mishap.tip_slack else lean * self._tilt[env]).as_quat()
