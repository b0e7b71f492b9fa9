"""Nuts: gripped by their flats, set down on the bolt, turned down its thread, let go.

A hand turns by no more than the wrist allows, and a nut fits between the fingers at six angles, so both are chosen
together, before the grasp: the nut comes down on the bolt where its thread is about to catch, with the wrist wound up
far enough to reach the seat in one stroke. Where that cannot be, or a stroke falls short, the fingers let go, unwind
and grip again, as the published scripted experts do after every stroke of 120 degrees.

Turning is coupled to the helix: the tool is commanded down with every step, and never further below where it is
measured than :data:`PRELOAD_M`, which bounds the thrust, nor turned further ahead of it than :data:`WIND_UP_RAD`, which
bounds the torque.
"""

from collections.abc import Sequence

import numpy as np

from experts.carry import CarryingExpert
from experts.contract import Assembly, Handicap, View
from experts.motion import heading, tool_quat, wrap
from experts.phase_machine import Phase
from randomization.draws import Draws, NutCompetence

PAD_REACH_M = 0.0178
"""The pads' lower edge below the tool centre, with the fingers closed on a nut."""

HALF_CLOSED, SWING_M = 0.5, 0.006
"""How far the fingers are closed when the hand begins to rise with their swing, and its rise for a whole closure."""

CARRY_HEIGHT_M = 0.030
ALIGN_M = 0.0015
"""Height of the nut above the bolt's tip while it is centred and turned to its start."""

SIXTH_RAD = np.pi / 3
WRIST_LIMIT_RAD = 2.8
"""Furthest that the hand is turned from the arm's plane: joint 7 ends at 2.9 rad."""

UNWOUND_RAD = 2.0
"""Furthest that the hand is turned from the arm's plane when it withdraws: as it rises, joint 7 turns on by up to
0.6 rad, and would come to its stop."""

START_RAD = 0.12
"""Heading of the nut against the bolt's when they meet: its thread then lies lowest, about to pass under the bolt's."""

STROKE_RAD = 5.4
"""Turn from there to the seat, with some to spare."""

DESCENT_M = 0.0003
PRELOAD_M = 0.0001
ASIDE_M = 0.00015
WIND_UP_RAD = 0.14
TOUCH_N = 1.5

CAUGHT = 0.08
SEATED = 0.12
SEATED_AT_LEAST = 0.25
"""In pitches: descent that proves that the thread has caught; height above the seat at which turning ends, and at which
it may end where the wrist's range does."""

CENTRED_M = 0.00025
LINED_UP_RAD = 0.03
CROSSED_RAD = np.deg2rad(6.0)
STALL_STEPS = 8
REGRASPS = 6
HOLD_STEPS = 12
PRESS_STEPS = 60


class NutExpert(CarryingExpert):
    """Expert for nuts in N envs.

    Args:
        num_envs: N.
        assembly: nut and bolt.
        handicap: without its skill a nut is pressed and not turned; turned the wrong way, against its thread.
            Either goes through with it and lets go: it is not the expert that notices.
    """

    table = (
        *CarryingExpert.pick_up,
        Phase("align", 120, "never_centred"),
        Phase("engage", 60, "never_caught"),
        Phase("search", 150, "never_caught"),
        Phase("thread", 150, "jammed"),
        Phase("loosen", 30, "stuck_to_fingers"),
        Phase("unwind", 120, "out_of_reach"),
        Phase("regrasp", 60, "missed_grasp"),
        Phase("release", 30, "stuck_to_fingers"),
        Phase("retreat", 40, "stuck_to_fingers"),
        Phase("hold", 60, "not_seated"),
    )

    retreat_step_m = 0.005
    """A stroke leaves the elbow near a singularity, past which the joints can follow no faster."""

    other_failures = (*CarryingExpert.other_failures, "cross_threaded")

    def __init__(self, num_envs: int, assembly: Assembly, handicap: Handicap | None = None) -> None:
        handicap = handicap or Handicap()
        self._pitch, height = assembly.geometry["pitch"], assembly.geometry["height"]
        rise = SWING_M * (closed_on(assembly.geometry["flats"]) - HALF_CLOSED)
        grasp = PAD_REACH_M + height / 4 - rise
        super().__init__(num_envs, assembly, grasp, 1.5 * self._pitch, CARRY_HEIGHT_M, handicap)
        self._blind = handicap.skill_off or handicap.wrong_way
        self._sense = 0.0 if handicap.skill_off else 1.0 if handicap.wrong_way else -1.0
        self._rate, self._start = np.zeros(num_envs), np.zeros(num_envs)
        self._from_m, self._turned = np.zeros(num_envs), np.zeros(num_envs)
        self._heading, self._still = np.zeros(num_envs), np.zeros(num_envs, int)
        self._regrasps = np.zeros(num_envs, int)

    def reset(self, view: View, draws: Sequence[Draws], env_ids: Sequence[int]) -> None:
        """Start an episode."""
        super().reset(view, draws, env_ids)
        self._regrasps[np.asarray(env_ids)] = 0

    def _grasp_yaw(self, view: View, env: int, draw: Draws) -> float:
        """Choose the flats by where the stroke is to begin, and plan that beginning."""
        assert isinstance(draw.competence, NutCompetence)
        self._rate[env] = draw.competence.turn_rate_rad_per_step
        one = np.array([env])
        nut = float(heading(view.held_quat_xyzw[one])[0])
        turn = float(wrap(self._start_heading(view, one) - nut)[0])
        grasp, self._start[env] = plan_stroke(nut, turn, self._sense, float(azimuth(view.fixed_pos_m[one])[0]))
        return grasp + draw.competence.grasp_roll_rad

    def _start_heading(self, view: View, ids: np.ndarray) -> np.ndarray:
        return heading(view.fixed_quat_xyzw[ids]) + START_RAD

    def _aim(self, ids: np.ndarray) -> None:
        """Turn the hand at this episode's rate, never the short way round: the wrist has ends."""
        self._yaw[ids] += np.clip(self._yaw_goal[ids] - self._yaw[ids], -self._rate[ids], self._rate[ids])
        self.quat[ids] = tool_quat(self._yaw[ids], self._lean[ids])

    def _yield_sideways(self, view: View, ids: np.ndarray) -> None:
        """Rise as the fingers close, and yield upwards too: they swing down, and would press the nut onto the board."""
        super()._yield_sideways(view, ids)
        rise = SWING_M * np.maximum(view.finger_closed[ids] - HALF_CLOSED, 0.0)
        upwards = self._grasp[ids, 2] + rise - view.tool_pos_m[ids, 2]
        most = np.where((view.pad_force_n[ids] > 2.0).any(1), PRELOAD_M, 0.001)
        self.pos[ids, 2] = view.tool_pos_m[ids, 2] + np.clip(upwards, -most, most)

    def _transport_phase(self, view: View, ids: np.ndarray) -> np.ndarray:
        self._yaw_goal[ids] = self._start[ids]
        return super()._transport_phase(view, ids)

    def _align_phase(self, view: View, ids: np.ndarray) -> np.ndarray:
        arrived = np.abs(self._yaw_goal[ids] - self._yaw[ids]) < LINED_UP_RAD
        error = wrap(self._start_heading(view, ids) - heading(view.held_quat_xyzw[ids]))
        self._yaw_goal[ids] += np.where(arrived, 0.3 * np.clip(error, -0.2, 0.2), 0.0)
        self._lean_back(view, ids, 0.05)
        self._go(view, ids, self._servo_goal(view, ids, ALIGN_M), fastest=0.006)
        self._watch_grip(view, ids, "slipped_in_transport")
        off = self._off_seat(view, ids)
        ready = np.abs(off[:, 2] - self._entrance - ALIGN_M) < 0.0010
        ready &= (np.linalg.norm(off[:, :2], axis=1) < CENTRED_M) & (np.abs(error) < LINED_UP_RAD)
        ready &= np.linalg.norm(view.held_vel_m_s[ids], axis=1) < 0.01
        self._still[ids] = 0
        return self.stay_or(ids, ready)

    def _engage_phase(self, view: View, ids: np.ndarray) -> np.ndarray:
        """Lower the nut onto the bolt until it rests there."""
        off = self._press(view, ids)
        self._watch_thread(view, ids)
        resting = (view.contact_force_n[ids] > TOUCH_N) & (off[:, 2] < self._entrance + 0.0005)
        self._still[ids] = np.where(resting, self._still[ids] + 1, 0)
        self._mark(view, ids)
        return self.stay_or(ids, self._still[ids] >= 3)

    def _search_phase(self, view: View, ids: np.ndarray) -> np.ndarray:
        """Turn under preload until the nut sinks: its first flank has caught."""
        off = self._turn_down(view, ids)
        self._watch_thread(view, ids)
        caught = self._from_m[ids] - off[:, 2] > CAUGHT * self._pitch
        if self._blind:
            caught = self.steps_in_phase[ids] >= PRESS_STEPS // 3
        else:
            self.fail(ids[~caught & (self._turned[ids] > 2.2 * np.pi)], "never_caught")
        return self.stay_or(ids, caught)

    def _thread_phase(self, view: View, ids: np.ndarray) -> np.ndarray:
        """Turn the nut down its thread until it is seated or the wrist's range ends."""
        off = self._turn_down(view, ids)
        self._watch_thread(view, ids)
        gap = off[:, 2] / self._pitch
        ended = self._room(view, ids) < 0.02
        seated = gap < np.where(ended, SEATED_AT_LEAST, SEATED)
        if self._blind:
            seated = ended if self._sense else self.steps_in_phase[ids] >= PRESS_STEPS
        following = self.stay_or(ids, seated, to="release")
        return np.where(~seated & ended, self.index("loosen"), following)

    def _loosen_phase(self, view: View, ids: np.ndarray) -> np.ndarray:
        starting = self.steps_in_phase[ids] == 0
        self._regrasps[ids] += starting
        self.fail(ids[self._regrasps[ids] > REGRASPS], "not_seated")
        following = super()._release_phase(view, ids)
        sixths = np.floor((WRIST_LIMIT_RAD + azimuth(view.tool_pos_m[ids]) - self._yaw[ids]) / SIXTH_RAD)
        self._yaw_goal[ids] = np.where(
            following == self.phase[ids], self._yaw[ids], self._yaw[ids] + sixths * SIXTH_RAD
        )
        return following

    def _unwind_phase(self, view: View, ids: np.ndarray) -> np.ndarray:
        """Turn the open hand back by whole sixths, over the nut."""
        goal = view.held_pos_m[ids] + (0.0, 0.0, 1.0) * self._grip_offset[ids, None]
        left = self._go(view, ids, goal, fastest=0.002)
        turned = np.abs(wrap(self._yaw_goal[ids] - heading(view.tool_quat_xyzw[ids]))) < LINED_UP_RAD
        return self.stay_or(ids, (left < 0.001) & turned)

    def _regrasp_phase(self, view: View, ids: np.ndarray) -> np.ndarray:
        self.grip[ids] = 1.0
        self._aim(ids)
        pressed = (view.pad_force_n[ids] > 2.0).all(1) & (self.steps_in_phase[ids] >= self._dwell[ids])
        self._mark(view, ids)
        return self.stay_or(ids, pressed, to="thread")

    def _release_phase(self, view: View, ids: np.ndarray) -> np.ndarray:
        self._yaw_goal[ids] = self._yaw[ids]
        return super()._release_phase(view, ids)

    def _retreat_phase(self, view: View, ids: np.ndarray) -> np.ndarray:
        """Withdraw, the wrist turned back from the end of its range."""
        arm = azimuth(view.tool_pos_m[ids])
        self._yaw_goal[ids] = arm + np.clip(self._yaw[ids] - arm, -UNWOUND_RAD, UNWOUND_RAD)
        return super()._retreat_phase(view, ids)

    def _hold_phase(self, view: View, ids: np.ndarray) -> np.ndarray:
        """Stay until the nut has been at rest for a while: the recorder judges whether it is seated."""
        self._aim(ids)
        return self.stay_or(ids, self.steps_in_phase[ids] >= HOLD_STEPS)

    def _press(self, view: View, ids: np.ndarray) -> np.ndarray:
        """Sink compliantly, eased onto the bolt's axis; returns the nut's root from its seat (n, 3)."""
        self._aim(ids)
        off = self._off_seat(view, ids)
        tool = view.tool_pos_m[ids]
        aside = self.pos[ids, :2] - 0.25 * np.clip(off[:, :2], -0.0005, 0.0005) - tool[:, :2]
        self.pos[ids, :2] = tool[:, :2] + np.clip(aside, -ASIDE_M, ASIDE_M)
        free = view.contact_force_n[ids] < TOUCH_N
        self.pos[ids, 2] = tool[:, 2] - np.where(free, DESCENT_M, PRELOAD_M)
        return off

    def _turn_down(self, view: View, ids: np.ndarray) -> np.ndarray:
        """Press and turn; returns the nut's root from its seat (n, 3)."""
        ahead = wrap(self._yaw[ids] - heading(view.tool_quat_xyzw[ids]))
        step = np.minimum(self._room(view, ids), WIND_UP_RAD - self._sense * ahead)
        step = np.clip(step, 0.0, self._rate[ids])
        self._yaw_goal[ids] = self._yaw[ids] + self._sense * step
        now = heading(view.held_quat_xyzw[ids])
        self._turned[ids] += self._sense * wrap(now - self._heading[ids])
        self._heading[ids] = now
        return self._press(view, ids)

    def _room(self, view: View, ids: np.ndarray) -> np.ndarray:
        """Angle (n,) that the wrist can still turn along the stroke."""
        room: np.ndarray = WRIST_LIMIT_RAD - self._sense * (self._yaw[ids] - azimuth(view.fixed_pos_m[ids]))
        return room

    def _mark(self, view: View, ids: np.ndarray) -> None:
        """Remember where a stroke begins."""
        self._from_m[ids] = self._off_seat(view, ids)[:, 2]
        self._heading[ids], self._turned[ids] = heading(view.held_quat_xyzw[ids]), 0.0

    def _watch_thread(self, view: View, ids: np.ndarray) -> None:
        if not self._blind:
            self.fail(ids[self._tilt(view, ids) > CROSSED_RAD], "cross_threaded")


def closed_on(width_m: float) -> float:
    """How far the fingers are closed on something that wide, 0 to 1 (measured on the 2F-85)."""
    return 0.993 - 10.9 * width_m


def azimuth(pos_m: np.ndarray) -> np.ndarray:
    """Angle (n,) of the arm's plane when the tool is at positions (n, 3): joint 7 is this less the hand's yaw."""
    return np.arctan2(pos_m[:, 1], pos_m[:, 0])


def plan_stroke(nut: float, turn: float, sense: float, arm: float) -> tuple[float, float]:
    """Hand's yaw at the grasp and where the stroke begins, rad.

    Args:
        nut: heading of the nut where it lies; any sixth of a turn from it is square on flats.
        turn: from there to its heading at the beginning of the stroke, give or take whole turns.
        sense: -1 for a stroke clockwise seen from above, 1 for the other way, 0 for none.
        arm: azimuth of the bolt.

    Returns:
        The pair with the least turning of the wrist from which a whole stroke can be made, or else as much of one as
        can be had.
    """
    best, least = (0.0, 0.0), np.inf
    for sixths in range(-6, 7):
        grasp = nut + (sixths + 0.5) * SIXTH_RAD
        for start in (grasp + turn, grasp + turn + 2 * np.pi, grasp + turn - 2 * np.pi):
            if max(abs(grasp - arm), abs(start - arm)) > WRIST_LIMIT_RAD:
                continue
            short = max(0.0, STROKE_RAD * abs(sense) - (WRIST_LIMIT_RAD - sense * (start - arm)))
            effort = abs(grasp) + abs(start - grasp) + 100 * short
            if effort < least:
                best, least = (grasp, start), effort
    return best
