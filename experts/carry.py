"""What every assembly begins with: hover over the part, grasp it, prove the grasp, lift it, carry it over its seat.

After the grasp every target is a servo on the measured part (``tool + (where it belongs - where it is)``), never an
offset added to the part's position, which runs away when a grasp slips.
"""

from collections.abc import Mapping, Sequence

import numpy as np
from scipy.spatial.transform import Rotation

from experts.contract import Assembly, Handicap, View
from experts.motion import approach, tool_quat, turn, upright_error
from experts.phase_machine import Handler, Phase, PhaseMachine
from randomization.draws import Draws

FAST, SLOW = 0.014, 0.0008
"""Tool speeds in free space, m per control step."""

TURN_RAD = 0.05
"""Fastest turn of the wrist, rad per control step."""

HOVER_M = 0.080
"""Height of the first way point above the grasp."""

MICROLIFT_M = 0.005
"""Rise of the part that proves the grasp."""

LOST_RAD = np.deg2rad(30.0)
LEAN_LIMIT_RAD = np.deg2rad(20.0)
SLIP_M = 0.015
RETREAT_M = 0.120
"""Height above the seat to which the empty hand withdraws."""


class CarryingExpert(PhaseMachine):
    """Base of the experts: N envs of one assembly.

    Args:
        num_envs: N.
        assembly: what is put together.
        grasp_height_m: tool centre above the held part's root at the nominal grasp.
        entrance_m: height above the seat at which the held part's base meets the fixture.
        carry_height_m: height of the held part's base above the entrance while it is carried.
        handicap: what this expert is told wrongly or must not do, for negative controls.
    """

    pick_up = (
        Phase("hover", 90, "out_of_reach"),
        Phase("descend", 60, "out_of_reach"),
        Phase("grasp", 60, "missed_grasp"),
        Phase("microlift", 30, "missed_grasp"),
        Phase("lift", 60, "slipped_in_lift"),
        Phase("transport", 90, "slipped_in_transport"),
    )

    other_failures: tuple[str, ...] = ("tipped_in_hand",)

    retreat_step_m = FAST
    """Fastest motion of the empty hand as it withdraws, in one control step."""

    def __init__(
        self,
        num_envs: int,
        assembly: Assembly,
        grasp_height_m: float,
        entrance_m: float,
        carry_height_m: float,
        handicap: Handicap,
    ) -> None:
        super().__init__(num_envs)
        self._seat_offset = np.array(assembly.seat_offset_m)
        self._grasp_height, self._entrance, self._carry_height = grasp_height_m, entrance_m, carry_height_m
        self._handicap = handicap
        self._yaw, self._yaw_goal = np.zeros(num_envs), np.zeros(num_envs)
        self._lean = np.zeros((num_envs, 3))
        self._grasp = np.zeros((num_envs, 3))
        self._hover, self._lift = np.zeros(num_envs), np.zeros(num_envs)
        self._dwell = np.zeros(num_envs, int)
        self._held_from = np.zeros(num_envs)
        self._grip_offset = np.zeros(num_envs)

    def handlers(self) -> Mapping[str, Handler]:
        """Handler of every phase, by name."""
        return {name: getattr(self, f"_{name}_phase") for name in self.phases}

    def reset(self, view: View, draws: Sequence[Draws], env_ids: Sequence[int]) -> None:
        """Start an episode: fix the grasp from where the part stands and from the draws."""
        super().reset(view, draws, env_ids)
        ids = np.asarray(env_ids)
        self._yaw[ids], self._lean[ids] = 0.0, 0.0
        for env, draw in zip(env_ids, draws, strict=True):
            c = draw.competence
            yaw = self._grasp_yaw(view, env, draw)
            along = np.array([np.cos(yaw), np.sin(yaw), 0.0]) * c.grip_x_m
            across = np.array([-np.sin(yaw), np.cos(yaw), 0.0]) * c.grip_y_m
            height = np.array([0.0, 0.0, self._grasp_height + c.grasp_depth_m])
            self._grasp[env] = view.held_pos_m[env] + along + across + height
            self._yaw_goal[env] = yaw
            self._hover[env], self._lift[env] = HOVER_M + c.hover_height_m, self._carry_height + c.lift_height_m
            self._dwell[env] = c.grasp_dwell_steps

    def _grasp_yaw(self, view: View, env: int, draw: Draws) -> float:
        """Angle of the wrist about the vertical at which the part is grasped."""
        raise NotImplementedError

    def _seat(self, view: View, ids: np.ndarray) -> np.ndarray:
        """Where the held part's root belongs (n, 3), as far as the expert is told."""
        turned = Rotation.from_quat(view.fixed_quat_xyzw[ids]).apply(self._seat_offset)
        return view.fixed_pos_m[ids] + turned + (*self._handicap.seat_error_m, 0.0)

    def _aim(self, ids: np.ndarray) -> None:
        self._yaw[ids] = turn(self._yaw[ids], self._yaw_goal[ids], TURN_RAD)
        self.quat[ids] = tool_quat(self._yaw[ids], self._lean[ids])

    def _go(self, view: View, ids: np.ndarray, goal: np.ndarray, fastest: float = FAST) -> np.ndarray:
        """Command a step towards ``goal``; returns the measured distance that is left."""
        self._aim(ids)
        self.pos[ids] = approach(self.pos[ids], goal, fastest, SLOW)
        left: np.ndarray = np.linalg.norm(goal - view.tool_pos_m[ids], axis=1)
        return left

    def _hover_phase(self, view: View, ids: np.ndarray) -> np.ndarray:
        goal = self._grasp[ids].copy()
        goal[:, 2] += self._hover[ids]
        left = self._go(view, ids, goal)
        turned = np.abs(self._yaw_goal[ids] - self._yaw[ids]) < 1e-6
        return self.stay_or(ids, (left < 0.004) & turned)

    def _descend_phase(self, view: View, ids: np.ndarray) -> np.ndarray:
        left = self._go(view, ids, self._grasp[ids])
        self._held_from[ids] = view.held_pos_m[ids, 2]
        return self.stay_or(ids, left < 0.0015)

    def _grasp_phase(self, view: View, ids: np.ndarray) -> np.ndarray:
        self.grip[ids] = 1.0
        self._yield_sideways(view, ids)
        pressed = (view.pad_force_n[ids] > 2.0).all(1)
        return self.stay_or(ids, (self.steps_in_phase[ids] >= self._dwell[ids]) & pressed)

    def _yield_sideways(self, view: View, ids: np.ndarray) -> None:
        """Follow the fingers as they centre themselves on a part that cannot move."""
        sideways = self._grasp[ids, :2] - view.tool_pos_m[ids, :2]
        self.pos[ids, :2] = view.tool_pos_m[ids, :2] + np.clip(sideways, -0.0004, 0.0004)

    def _microlift_phase(self, view: View, ids: np.ndarray) -> np.ndarray:
        goal = self._grasp[ids].copy()
        goal[:, :2] = self.pos[ids, :2]
        goal[:, 2] += 2 * MICROLIFT_M
        self._go(view, ids, goal, fastest=0.002)
        return self.stay_or(ids, view.held_pos_m[ids, 2] - self._held_from[ids] > MICROLIFT_M)

    def _lift_phase(self, view: View, ids: np.ndarray) -> np.ndarray:
        entering = self.steps_in_phase[ids] == 0
        self._grip_offset[ids] = np.where(
            entering, view.tool_pos_m[ids, 2] - view.held_pos_m[ids, 2], self._grip_offset[ids]
        )
        clear = self._seat(view, ids)[:, 2] + self._entrance + self._lift[ids]
        goal = self.pos[ids].copy()
        goal[:, 2] = clear + self._grip_offset[ids]
        self._go(view, ids, goal)
        self._watch_grip(view, ids, "slipped_in_lift")
        return self.stay_or(ids, view.held_pos_m[ids, 2] > clear - 0.004)

    def _watch_grip(self, view: View, ids: np.ndarray, failure: str) -> None:
        slip = np.abs(view.tool_pos_m[ids, 2] - view.held_pos_m[ids, 2] - self._grip_offset[ids])
        self.fail(ids[slip > SLIP_M], failure)
        self.fail(ids[self._tilt(view, ids) > LOST_RAD], "tipped_in_hand")

    def _tilt(self, view: View, ids: np.ndarray) -> np.ndarray:
        tilt: np.ndarray = np.linalg.norm(upright_error(view.held_quat_xyzw[ids]), axis=1)
        return tilt

    def _off_seat(self, view: View, ids: np.ndarray) -> np.ndarray:
        """Held part's root from its seat (n, 3)."""
        return view.held_pos_m[ids] - self._seat(view, ids)

    def _servo_goal(self, view: View, ids: np.ndarray, height: np.ndarray | float) -> np.ndarray:
        """Tool goal that brings the measured part over its seat, its base ``height`` above the entrance."""
        off = self._off_seat(view, ids)
        off[:, 2] -= self._entrance + height
        return view.tool_pos_m[ids] - off

    def _transport_phase(self, view: View, ids: np.ndarray) -> np.ndarray:
        left = self._go(view, ids, self._servo_goal(view, ids, self._lift[ids]))
        self._watch_grip(view, ids, "slipped_in_transport")
        return self.stay_or(ids, left < 0.004)

    def _lean_back(self, view: View, ids: np.ndarray, gain: float) -> None:
        """Lean the wrist against the tilt of the part in the hand."""
        lean = self._lean[ids] + gain * upright_error(view.held_quat_xyzw[ids])
        size = np.linalg.norm(lean, axis=1, keepdims=True)
        self._lean[ids] = lean * np.minimum(1.0, LEAN_LIMIT_RAD / np.maximum(size, 1e-9))

    def _release_phase(self, view: View, ids: np.ndarray) -> np.ndarray:
        """Open the fingers where the hand is: it no longer presses."""
        self.pos[ids] = np.where(self.steps_in_phase[ids, None] == 0, view.tool_pos_m[ids], self.pos[ids])
        self._aim(ids)
        self.grip[ids] = 0.0
        return self.stay_or(ids, (view.finger_closed[ids] < 0.35) & (view.pad_force_n[ids] < 0.1).all(1))

    def _retreat_phase(self, view: View, ids: np.ndarray) -> np.ndarray:
        goal = self.pos[ids].copy()
        goal[:, 2] = self._seat(view, ids)[:, 2] + RETREAT_M
        left = self._go(view, ids, goal, fastest=self.retreat_step_m)
        return self.stay_or(ids, left < 0.006)
