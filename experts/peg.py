"""Pegs: grasp in the stand, carry, align over the hole, insert compliantly, let go so that it seats.

Strategy after the published scripted experts of the NIST task board: after the grasp every target is a servo on
the measured peg (``tool + (hole - peg)``), descent is commanded at most a millimetre below the measured tool, and
depth is frozen while the peg is off-centre. A square peg is clocked as well: from the lift on the wrist follows the
measured angle between peg and hole, and depth waits for it at the mouth.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from experts.contract import View
from experts.motion import approach, heading, tool_quat, turn, upright_error, wrap
from experts.phase_machine import Handler, Phase, PhaseMachine
from randomization.draws import Draws

FAST, SLOW = 0.014, 0.0008
"""Tool speeds in free space, m per control step."""

GRASP_HEIGHT_M = 0.050
"""Tool centre above the stand's root at the nominal grasp."""

HOVER_M = 0.080
TRANSPORT_M = 0.055
"""Height of the peg's base above the hole's mouth while carried."""

ALIGN_M = 0.005
"""Height of the peg's base above the mouth while it is centred."""

DESCENT_STEP_M = 0.0014
COMPLIANCE_M = 0.0010
"""The tool is never commanded further below where it is: this bounds the pressing force."""

RELEASE_GAP_M = 0.0012
"""Height above the seat at which the peg is let go: it falls the rest, slowly enough to land softly."""

CENTRED_M = 0.00025
OFF_CENTRE_M = 0.0005
UPRIGHT_RAD = np.deg2rad(0.8)
TIPPED_RAD = np.deg2rad(2.0)
LOST_RAD = np.deg2rad(30.0)
LEAN_LIMIT_RAD = np.deg2rad(20.0)
SLIP_M = 0.015
STALL_STEPS = 18
STALL_M = 0.0003
RETRIES = 3
RETREAT_M = 0.070
HOLD_STEPS = 12


CLOCKED_RAD = 0.01
MISCLOCKED_RAD = 0.02
"""Angle between a square peg and its hole at which it is lowered to the mouth, and above which it waits there."""

TURN_RAD = 0.05
"""Fastest turn of the wrist, rad per control step."""

CLOCK_RAD = 0.015
"""Fastest turn while a square peg is clocked."""


class PegExpert(PhaseMachine):
    """Expert for pegs in N envs.

    Args:
        num_envs: N.
        bore_bottom_m, bore_mouth_m: heights of the seat and the mouth above the fixed part's root.
        hole_error_m: (2,) told wrongly about where the hole is, for negative controls.
        clocks: whether the peg is square, so that it fits at two angles only.
    """

    table = (
        Phase("hover", 90, "out_of_reach"),
        Phase("descend", 60, "out_of_reach"),
        Phase("grasp", 60, "missed_grasp"),
        Phase("microlift", 30, "missed_grasp"),
        Phase("lift", 60, "slipped_in_lift"),
        Phase("transport", 90, "slipped_in_transport"),
        Phase("straighten", 60, "tipped_in_hand"),
        Phase("align", 90, "never_centred"),
        Phase("insert", 150, "jammed_at_mouth"),
        Phase("retract", 40, "jammed_at_mouth"),
        Phase("release", 30, "stuck_to_fingers"),
        Phase("retreat", 40, "stuck_to_fingers"),
        Phase("hold", 60, "not_seated"),
    )

    def __init__(
        self,
        num_envs: int,
        bore_bottom_m: float,
        bore_mouth_m: float,
        hole_error_m: tuple[float, float] = (0.0, 0.0),
        clocks: bool = False,
    ) -> None:
        super().__init__(num_envs)
        self._clocks = clocks
        self._bottom, self._mouth = bore_bottom_m, bore_mouth_m
        self._hole_error = np.array([*hole_error_m, 0.0])
        self._yaw, self._yaw_goal = np.zeros(num_envs), np.zeros(num_envs)
        self._lean = np.zeros((num_envs, 3))
        self._grasp = np.zeros((num_envs, 3))
        self._hover, self._lift = np.zeros(num_envs), np.zeros(num_envs)
        self._dwell = np.zeros(num_envs, int)
        self._held_from = np.zeros(num_envs)
        self._grip_offset = np.zeros(num_envs)
        self._lowest, self._stalled = np.zeros(num_envs), np.zeros(num_envs, int)
        self._retries = np.zeros(num_envs, int)

    def handlers(self) -> Mapping[str, Handler]:
        """Handler of every phase, by name."""
        return {name: getattr(self, f"_{name}_phase") for name in self.phases}

    def reset(self, view: View, draws: Sequence[Draws], env_ids: Sequence[int]) -> None:
        """Start an episode: fix the grasp from where the peg stands and from the draws."""
        super().reset(view, draws, env_ids)
        for env, draw in zip(env_ids, draws, strict=True):
            c = draw.competence
            roll = c.grasp_roll_rad
            along = np.array([np.cos(roll), np.sin(roll), 0.0]) * c.grip_x_m
            across = np.array([-np.sin(roll), np.cos(roll), 0.0]) * c.grip_y_m
            height = np.array([0.0, 0.0, GRASP_HEIGHT_M - self._bottom + c.grasp_depth_m])
            self._grasp[env] = view.held_pos_m[env] + along + across + height
            self._yaw_goal[env] = roll
            self._hover[env], self._lift[env] = HOVER_M + c.hover_height_m, TRANSPORT_M + c.lift_height_m
            self._dwell[env] = c.grasp_dwell_steps
        ids = np.asarray(env_ids)
        self._yaw[ids], self._lean[ids] = 0.0, 0.0
        self._stalled[ids], self._retries[ids] = 0, 0

    def _hole(self, view: View, ids: np.ndarray) -> np.ndarray:
        return view.fixed_pos_m[ids] + self._hole_error

    def _misclocked(self, view: View, ids: np.ndarray) -> np.ndarray:
        """Angle (n,) by which the peg must turn about the vertical to fit the hole; the nearer of two."""
        if not self._clocks:
            return np.zeros(len(ids))
        return wrap(heading(view.fixed_quat_xyzw[ids]) - heading(view.held_quat_xyzw[ids]), np.pi)

    def _clock(self, view: View, ids: np.ndarray) -> None:
        """Turn the wrist by what the peg is measured to be off."""
        if self._clocks:
            self._yaw[ids] += np.clip(0.5 * self._misclocked(view, ids), -CLOCK_RAD, CLOCK_RAD)
            self._yaw_goal[ids] = self._yaw[ids]

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
        if self._clocks:
            self._yaw_goal[ids] = wrap(heading(view.held_quat_xyzw[ids]), np.pi)
        left = self._go(view, ids, self._grasp[ids])
        self._held_from[ids] = view.held_pos_m[ids, 2]
        return self.stay_or(ids, left < 0.0015)

    def _grasp_phase(self, view: View, ids: np.ndarray) -> np.ndarray:
        self.grip[ids] = 1.0
        self._yield_sideways(view, ids)
        pressed = (view.pad_force_n[ids] > 2.0).all(1)
        return self.stay_or(ids, (self.steps_in_phase[ids] >= self._dwell[ids]) & pressed)

    def _yield_sideways(self, view: View, ids: np.ndarray) -> None:
        """Follow the fingers as they centre themselves on a shaft that cannot move."""
        sideways = self._grasp[ids, :2] - view.tool_pos_m[ids, :2]
        self.pos[ids, :2] = view.tool_pos_m[ids, :2] + np.clip(sideways, -0.0004, 0.0004)

    def _microlift_phase(self, view: View, ids: np.ndarray) -> np.ndarray:
        goal = self._grasp[ids].copy()
        goal[:, :2] = self.pos[ids, :2]
        goal[:, 2] += 0.010
        self._go(view, ids, goal, fastest=0.002)
        return self.stay_or(ids, view.held_pos_m[ids, 2] - self._held_from[ids] > 0.005)

    def _lift_phase(self, view: View, ids: np.ndarray) -> np.ndarray:
        entering = self.steps_in_phase[ids] == 0
        self._grip_offset[ids] = np.where(
            entering, view.tool_pos_m[ids, 2] - view.held_pos_m[ids, 2], self._grip_offset[ids]
        )
        clear = self._hole(view, ids)[:, 2] + self._mouth + self._lift[ids]
        goal = self.pos[ids].copy()
        goal[:, 2] = clear + self._grip_offset[ids]
        self._go(view, ids, goal)
        self._watch_grip(view, ids, "slipped_in_lift")
        return self.stay_or(ids, view.held_pos_m[ids, 2] > clear - 0.004)

    def _watch_grip(self, view: View, ids: np.ndarray, failure: str) -> None:
        slip = np.abs(view.tool_pos_m[ids, 2] - view.held_pos_m[ids, 2] - self._grip_offset[ids])
        tilt = np.linalg.norm(upright_error(view.held_quat_xyzw[ids]), axis=1)
        self.fail(ids[slip > SLIP_M], failure)
        self.fail(ids[tilt > LOST_RAD], "tipped_in_hand")

    def _servo_goal(self, view: View, ids: np.ndarray, height: np.ndarray | float) -> np.ndarray:
        """Tool goal that brings the measured peg over the hole with its base ``height`` above the mouth."""
        wanted = self._hole(view, ids)
        wanted[:, 2] += self._mouth + height
        return view.tool_pos_m[ids] + (wanted - view.held_pos_m[ids])

    def _transport_phase(self, view: View, ids: np.ndarray) -> np.ndarray:
        self._clock(view, ids)
        left = self._go(view, ids, self._servo_goal(view, ids, self._lift[ids]))
        self._watch_grip(view, ids, "slipped_in_transport")
        return self.stay_or(ids, left < 0.004)

    def _tilt(self, view: View, ids: np.ndarray) -> np.ndarray:
        tilt: np.ndarray = np.linalg.norm(upright_error(view.held_quat_xyzw[ids]), axis=1)
        return tilt

    def _straighten_phase(self, view: View, ids: np.ndarray) -> np.ndarray:
        """Lean the wrist against the tilt of the peg in the hand."""
        self._lean_back(view, ids, 0.15)
        self._go(view, ids, self._servo_goal(view, ids, self._lift[ids]), fastest=0.004)
        self._watch_grip(view, ids, "slipped_in_transport")
        return self.stay_or(ids, self._tilt(view, ids) < UPRIGHT_RAD)

    def _lean_back(self, view: View, ids: np.ndarray, gain: float) -> None:
        lean = self._lean[ids] + gain * upright_error(view.held_quat_xyzw[ids])
        size = np.linalg.norm(lean, axis=1, keepdims=True)
        self._lean[ids] = lean * np.minimum(1.0, LEAN_LIMIT_RAD / np.maximum(size, 1e-9))

    def _align_phase(self, view: View, ids: np.ndarray) -> np.ndarray:
        self._lean_back(view, ids, 0.05)
        self._clock(view, ids)
        self._go(view, ids, self._servo_goal(view, ids, ALIGN_M), fastest=0.006)
        self._watch_grip(view, ids, "slipped_in_transport")
        off = view.held_pos_m[ids] - self._hole(view, ids)
        low = np.abs(off[:, 2] - self._mouth - ALIGN_M) < 0.0015
        still = np.linalg.norm(view.held_vel_m_s[ids], axis=1) < 0.01
        tilt = self._tilt(view, ids)
        ready = low & still & (np.abs(self._misclocked(view, ids)) < CLOCKED_RAD)
        ready &= (np.linalg.norm(off[:, :2], axis=1) < CENTRED_M) & (tilt < TIPPED_RAD)
        self._lowest[ids], self._stalled[ids] = off[:, 2], 0
        following = self.stay_or(ids, ready)
        return np.where(tilt > 3 * TIPPED_RAD, self.index("straighten"), following)

    def _insert_phase(self, view: View, ids: np.ndarray) -> np.ndarray:
        """Sink towards the seat; sideways the peg is eased to the centre, and waits there while off-centre."""
        self._clock(view, ids)
        self._aim(ids)
        off = view.held_pos_m[ids] - self._hole(view, ids)
        aside = np.linalg.norm(off[:, :2], axis=1)
        misfit = (aside > OFF_CENTRE_M) | (np.abs(self._misclocked(view, ids)) > MISCLOCKED_RAD)
        waiting = (off[:, 2] > self._mouth) & misfit
        self.pos[ids, :2] -= 0.08 * np.clip(off[:, :2], -0.0005, 0.0005)
        lower = np.maximum(self.pos[ids, 2] - DESCENT_STEP_M, view.tool_pos_m[ids, 2] - COMPLIANCE_M)
        self.pos[ids, 2] = np.where(waiting, self.pos[ids, 2], lower)
        sunk = off[:, 2] < self._lowest[ids] - STALL_M
        self._lowest[ids] = np.where(sunk, off[:, 2], self._lowest[ids])
        self._stalled[ids] = np.where(sunk, 0, self._stalled[ids] + 1)
        seated = off[:, 2] - self._bottom < RELEASE_GAP_M
        stuck = ~seated & (self._stalled[ids] > STALL_STEPS)
        self._retries[ids] += stuck
        self.fail(ids[self._retries[ids] > RETRIES], "jammed_at_mouth")
        return np.where(stuck, self.index("retract"), self.stay_or(ids, seated, to="release"))

    def _retract_phase(self, view: View, ids: np.ndarray) -> np.ndarray:
        goal = self._servo_goal(view, ids, 2 * ALIGN_M)
        self._go(view, ids, goal, fastest=0.003)
        clear = view.held_pos_m[ids, 2] - self._hole(view, ids)[:, 2] > self._mouth + ALIGN_M
        return self.stay_or(ids, clear, to="align")

    def _release_phase(self, view: View, ids: np.ndarray) -> np.ndarray:
        self._aim(ids)
        self.grip[ids] = 0.0
        return self.stay_or(ids, (view.finger_closed[ids] < 0.35) & (view.pad_force_n[ids] < 0.1).all(1))

    def _retreat_phase(self, view: View, ids: np.ndarray) -> np.ndarray:
        goal = self.pos[ids].copy()
        goal[:, 2] = self._hole(view, ids)[:, 2] + GRASP_HEIGHT_M + RETREAT_M
        left = self._go(view, ids, goal)
        return self.stay_or(ids, left < 0.006)

    def _hold_phase(self, view: View, ids: np.ndarray) -> np.ndarray:
        """Stay until the peg has been at rest for a while: the recorder judges whether it is seated."""
        self._aim(ids)
        return self.stay_or(ids, self.steps_in_phase[ids] >= HOLD_STEPS)
