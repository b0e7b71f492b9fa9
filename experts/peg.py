"""Pegs: carried over the hole, aligned, inserted compliantly, let go so that they seat.

Strategy after the published scripted experts of the NIST task board: descent is commanded at most a millimetre below
the measured tool, and depth is frozen while the peg is off-centre. A square peg is clocked as well: from the lift on
the wrist follows the measured angle between peg and hole, and depth waits for it at the mouth.
"""

from collections.abc import Sequence

import numpy as np

from experts.carry import CarryingExpert
from experts.contract import Assembly, Handicap, View
from experts.motion import heading, wrap
from experts.phase_machine import Phase
from randomization.draws import Draws, PegCompetence

GRASP_HEIGHT_M = 0.045
CARRY_HEIGHT_M = 0.055

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
STALL_STEPS = 18
STALL_M = 0.0003
RETRIES = 3
HOLD_STEPS = 12

CLOCKED_RAD = 0.01
MISCLOCKED_RAD = 0.02
"""Angle between a square peg and its hole at which it is lowered to the mouth, and above which it waits there."""

CLOCK_RAD = 0.015
"""Fastest turn while a square peg is clocked, rad per control step."""


class PegExpert(CarryingExpert):
    """Expert for pegs in N envs.

    Args:
        num_envs: N.
        assembly: peg and hole.
        handicap: without its skill a square peg is not clocked.
        square: whether the peg fits at two angles only.
    """

    table = (
        *CarryingExpert.pick_up,
        Phase("straighten", 60, "tipped_in_hand"),
        Phase("align", 90, "never_centred"),
        Phase("insert", 150, "jammed_at_mouth"),
        Phase("retract", 40, "jammed_at_mouth"),
        Phase("release", 30, "stuck_to_fingers"),
        Phase("retreat", 40, "stuck_to_fingers"),
        Phase("hold", 60, "not_seated"),
    )

    def __init__(
        self, num_envs: int, assembly: Assembly, handicap: Handicap | None = None, *, square: bool = False
    ) -> None:
        handicap = handicap or Handicap()
        mouth = assembly.geometry["bore_depth"]
        super().__init__(num_envs, assembly, GRASP_HEIGHT_M, mouth, CARRY_HEIGHT_M, handicap)
        self._clocks = square and not handicap.skill_off
        self._lowest, self._stalled = np.zeros(num_envs), np.zeros(num_envs, int)
        self._retries = np.zeros(num_envs, int)

    def reset(self, view: View, draws: Sequence[Draws], env_ids: Sequence[int]) -> None:
        """Start an episode."""
        super().reset(view, draws, env_ids)
        ids = np.asarray(env_ids)
        self._stalled[ids], self._retries[ids] = 0, 0

    def _grasp_yaw(self, view: View, env: int, draw: Draws) -> float:
        assert isinstance(draw.competence, PegCompetence)
        return draw.competence.grasp_roll_rad

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

    def _descend_phase(self, view: View, ids: np.ndarray) -> np.ndarray:
        if self._clocks:
            self._yaw_goal[ids] = wrap(heading(view.held_quat_xyzw[ids]), np.pi)
        return super()._descend_phase(view, ids)

    def _transport_phase(self, view: View, ids: np.ndarray) -> np.ndarray:
        self._clock(view, ids)
        return super()._transport_phase(view, ids)

    def _straighten_phase(self, view: View, ids: np.ndarray) -> np.ndarray:
        self._lean_back(view, ids, 0.15)
        self._go(view, ids, self._servo_goal(view, ids, self._lift[ids]), fastest=0.004)
        self._watch_grip(view, ids, "slipped_in_transport")
        return self.stay_or(ids, self._tilt(view, ids) < UPRIGHT_RAD)

    def _align_phase(self, view: View, ids: np.ndarray) -> np.ndarray:
        self._lean_back(view, ids, 0.05)
        self._clock(view, ids)
        self._go(view, ids, self._servo_goal(view, ids, ALIGN_M), fastest=0.006)
        self._watch_grip(view, ids, "slipped_in_transport")
        off = self._off_seat(view, ids)
        low = np.abs(off[:, 2] - self._entrance - ALIGN_M) < 0.0015
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
        off = self._off_seat(view, ids)
        aside = np.linalg.norm(off[:, :2], axis=1)
        misfit = (aside > OFF_CENTRE_M) | (np.abs(self._misclocked(view, ids)) > MISCLOCKED_RAD)
        waiting = (off[:, 2] > self._entrance) & misfit
        self.pos[ids, :2] -= 0.08 * np.clip(off[:, :2], -0.0005, 0.0005)
        lower = np.maximum(self.pos[ids, 2] - DESCENT_STEP_M, view.tool_pos_m[ids, 2] - COMPLIANCE_M)
        self.pos[ids, 2] = np.where(waiting, self.pos[ids, 2], lower)
        sunk = off[:, 2] < self._lowest[ids] - STALL_M
        self._lowest[ids] = np.where(sunk, off[:, 2], self._lowest[ids])
        self._stalled[ids] = np.where(sunk, 0, self._stalled[ids] + 1)
        seated = off[:, 2] < RELEASE_GAP_M
        stuck = ~seated & (self._stalled[ids] > STALL_STEPS)
        self._retries[ids] += stuck
        self.fail(ids[self._retries[ids] > RETRIES], "jammed_at_mouth")
        return np.where(stuck, self.index("retract"), self.stay_or(ids, seated, to="release"))

    def _retract_phase(self, view: View, ids: np.ndarray) -> np.ndarray:
        self._go(view, ids, self._servo_goal(view, ids, 2 * ALIGN_M), fastest=0.003)
        clear = self._off_seat(view, ids)[:, 2] > self._entrance + ALIGN_M
        return self.stay_or(ids, clear, to="align")

    def _hold_phase(self, view: View, ids: np.ndarray) -> np.ndarray:
        """Stay until the peg has been at rest for a while: the recorder judges whether it is seated."""
        self._aim(ids)
        return self.stay_or(ids, self.steps_in_phase[ids] >= HOLD_STEPS)
