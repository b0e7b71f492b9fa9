"""Gears: carried over their shaft, threaded onto it, turned to and fro on their neighbours' teeth until they drop in.

The gear arrives a drawn part of a tooth pitch away from where it meshes. Under a gentle preload the wrist sweeps until
the gear is measured to have dropped between the teeth; there the wrist's angle is locked, and the gear pressed home.
"""

from collections.abc import Sequence

import numpy as np

from experts.carry import CarryingExpert
from experts.contract import Assembly, Handicap, View
from experts.motion import heading, wrap
from experts.phase_machine import Phase
from randomization.draws import Draws, GearCompetence

GRASP_HEIGHT_M = 0.0325
CARRY_HEIGHT_M = 0.040

CROWDED_M = 0.080
"""Distance of gear and base across the shafts below which the open fingers, closing along it, would meet a boss: the
gear is then gripped along the shafts."""

ALIGN_M = 0.005
"""Height of the gear's underside above the shaft's end while it is centred."""

DESCENT_STEP_M = 0.0014
COMPLIANCE_M = 0.0010
"""The tool is never commanded further below where it is."""

PRELOAD_N, SEATING_N = 16.0, 40.0
"""Force between gear and base at which it is not commanded below at all, in search of the teeth and among them."""

ONSET_M, DROP_M = 0.0003, 0.0010
"""Depth of the whole rim below the neighbours' teeth at which the gear begins to drop, and at which it has meshed: one
that clashes leans, but the rim above the clash stays up."""

SEATED_GAP_M = 0.0005
CENTRED_M = 0.00025
UPRIGHT_RAD = np.deg2rad(0.8)
PHASED_RAD = 0.01
PHASE_RAD = 0.03
"""Fastest turn while the gear is brought to the angle at which it arrives, rad per control step."""

SWEEP_PITCHES = 0.65
"""Furthest turn from that angle in search of the teeth, to either side, in tooth pitches: half a pitch, and what the
gear stays behind the wrist."""

SWEEPS = 2
"""Periods to and fro without a drop after which the gear is lifted, and the search begun once more."""

PAUSE_STEPS = 8
"""Control steps without sinking further after which the sweep goes on."""

STALL_STEPS = 18
STALL_M = 0.0003
RETRIES = 1
HOLD_STEPS = 12


class GearExpert(CarryingExpert):
    """Expert for gears in N envs.

    Args:
        num_envs: N.
        assembly: gear and base.
        handicap: without its skill the gear arrives half a pitch off and is not turned.
    """

    table = (
        *CarryingExpert.pick_up,
        Phase("align", 120, "never_centred"),
        Phase("thread", 120, "jammed_on_shaft"),
        Phase("mesh", 180, "tooth_clash"),
        Phase("seat", 90, "not_seated"),
        Phase("back_off", 40, "tooth_clash"),
        Phase("release", 30, "stuck_to_fingers"),
        Phase("retreat", 40, "stuck_to_fingers"),
        Phase("hold", 60, "not_seated"),
    )

    def __init__(self, num_envs: int, assembly: Assembly, handicap: Handicap | None = None) -> None:
        handicap = handicap or Handicap()
        g = assembly.geometry
        super().__init__(num_envs, assembly, GRASP_HEIGHT_M, g["shaft_height"], CARRY_HEIGHT_M, handicap)
        self._pitch, self._phase_rad = 2 * np.pi / g["teeth"], g["phase_rad"]
        self._clash, self._rim = g["face_width"] - g["relief"], g["module"] * (g["teeth"] / 2 + 1)
        self._searches = not handicap.skill_off
        self._arrival, self._period, self._sign = np.zeros(num_envs), np.zeros(num_envs), np.zeros(num_envs)
        self._felt_n = np.zeros(num_envs)
        self._lowest, self._stalled = np.zeros(num_envs), np.zeros(num_envs, int)
        self._retries = np.zeros(num_envs, int)
        self._swept_about, self._swept = np.zeros(num_envs), np.zeros(num_envs)

    def reset(self, view: View, draws: Sequence[Draws], env_ids: Sequence[int]) -> None:
        """Start an episode."""
        super().reset(view, draws, env_ids)
        ids = np.asarray(env_ids)
        self._retries[ids], self._stalled[ids], self._felt_n[ids] = 0, 0, 0.0
        for env, draw in zip(env_ids, draws, strict=True):
            assert isinstance(draw.competence, GearCompetence)
            fraction = draw.competence.tooth_pitch_fraction if self._searches else 0.5
            self._arrival[env] = fraction * self._pitch
            self._period[env] = draw.competence.wiggle_period_steps
            self._sign[env] = np.copysign(1.0, draw.competence.wiggle_sign)

    def _grasp_yaw(self, view: View, env: int, draw: Draws) -> float:
        assert isinstance(draw.competence, GearCompetence)
        crowded = view.fixed_pos_m[env, 1] - view.held_pos_m[env, 1] < CROWDED_M
        return draw.competence.tooth_pitch_fraction * self._pitch + (np.pi / 2 if crowded else 0.0)

    def _out_of_phase(self, view: View, ids: np.ndarray) -> np.ndarray:
        """Angle (n,) by which the gear must turn to arrive as drawn; the nearest."""
        wanted = heading(view.fixed_quat_xyzw[ids]) + self._phase_rad + self._arrival[ids]
        return wrap(wanted - heading(view.held_quat_xyzw[ids]), self._pitch)

    def _transport_phase(self, view: View, ids: np.ndarray) -> np.ndarray:
        entering = self.steps_in_phase[ids] == 0
        arriving = wrap(self._yaw[ids] + self._out_of_phase(view, ids), self._pitch)
        self._yaw_goal[ids] = np.where(entering, arriving, self._yaw_goal[ids])
        turned = np.abs(wrap(self._yaw_goal[ids] - self._yaw[ids])) < 1e-6
        return np.where(turned, super()._transport_phase(view, ids), self.phase[ids])

    def _align_phase(self, view: View, ids: np.ndarray) -> np.ndarray:
        self._lean_back(view, ids, 0.1)
        astray = self._out_of_phase(view, ids)
        self._yaw[ids] += np.clip(0.5 * astray, -PHASE_RAD, PHASE_RAD)
        self._yaw_goal[ids] = self._yaw[ids]
        self._go(view, ids, self._servo_goal(view, ids, ALIGN_M), fastest=0.006)
        self._watch_grip(view, ids, "slipped_in_transport")
        off = self._off_seat(view, ids)
        low = np.abs(off[:, 2] - self._entrance - ALIGN_M) < 0.0015
        still = np.linalg.norm(view.held_vel_m_s[ids], axis=1) < 0.01
        ready = low & still & (np.abs(astray) < PHASED_RAD) & (self._tilt(view, ids) < UPRIGHT_RAD)
        ready &= np.linalg.norm(off[:, :2], axis=1) < CENTRED_M
        self._lowest[ids], self._stalled[ids] = off[:, 2], 0
        return self.stay_or(ids, ready)

    def _press(self, view: View, ids: np.ndarray, most_n: float) -> np.ndarray:
        """Sink, the more gently the more it resists, eased to the shaft's axis.

        Returns:
            height (n,) of the highest point of the rim above the seat.
        """
        self._aim(ids)
        off = self._off_seat(view, ids)
        self.pos[ids, :2] -= 0.08 * np.clip(off[:, :2], -0.0005, 0.0005)
        self._felt_n[ids] += 0.5 * (view.contact_force_n[ids] - self._felt_n[ids])
        depth = COMPLIANCE_M * np.clip(1.0 - self._felt_n[ids] / most_n, -0.5, 1.0)
        self.pos[ids, 2] = np.maximum(self.pos[ids, 2] - DESCENT_STEP_M, view.tool_pos_m[ids, 2] - depth)
        height: np.ndarray = off[:, 2] + self._rim * np.sin(self._tilt(view, ids))
        sunk = height < self._lowest[ids] - STALL_M
        self._lowest[ids] = np.where(sunk, height, self._lowest[ids])
        self._stalled[ids] = np.where(sunk, 0, self._stalled[ids] + 1)
        return height

    def _thread_phase(self, view: View, ids: np.ndarray) -> np.ndarray:
        height = self._press(view, ids, PRELOAD_N)
        self.fail(ids[(self._stalled[ids] > STALL_STEPS) & (height > self._clash + DROP_M)], "jammed_on_shaft")
        self._swept_about[ids], self._swept[ids] = self._yaw[ids], 0.0
        return self.stay_or(ids, self._off_seat(view, ids)[:, 2] < self._clash + 0.0004)

    def _mesh_phase(self, view: View, ids: np.ndarray) -> np.ndarray:
        """Sweep to and fro, pausing while the gear sinks between the teeth; give up after two periods."""
        height = self._press(view, ids, PRELOAD_N)
        dropped = height < self._clash - DROP_M
        sinking = (height < self._clash - ONSET_M) & (self._stalled[ids] < PAUSE_STEPS)
        self._swept[ids] += ~sinking
        turns = self._swept[ids] / self._period[ids]
        swing = 1.0 - np.abs(4 * ((turns + 0.25) % 1.0) - 2.0)
        sweep = self._sign[ids] * SWEEP_PITCHES * self._pitch * swing * self._searches
        yaw = np.where(sinking, self._wrist_yaw(view, ids), self._swept_about[ids] + sweep)
        self._yaw[ids] = self._yaw_goal[ids] = yaw
        lost = ~dropped & (turns > SWEEPS)
        self._give_up(ids[lost], "tooth_clash")
        self._stalled[ids] = np.where(dropped, 0, self._stalled[ids])
        return np.where(lost, self.index("back_off"), self.stay_or(ids, dropped))

    def _give_up(self, ids: np.ndarray, failure: str) -> None:
        """Count a retry; fail after the last."""
        self._retries[ids] += 1
        self.fail(ids[self._retries[ids] > RETRIES], failure)

    def _wrist_yaw(self, view: View, ids: np.ndarray) -> np.ndarray:
        """Measured angle (n,) of the wrist, in the commands' sense."""
        return self._yaw[ids] + wrap(heading(view.tool_quat_xyzw[ids]) - heading(self.quat[ids]))

    def _seat_phase(self, view: View, ids: np.ndarray) -> np.ndarray:
        height = self._press(view, ids, SEATING_N)
        stuck = self._stalled[ids] > STALL_STEPS
        self._give_up(ids[stuck], "not_seated")
        return np.where(stuck, self.index("back_off"), self.stay_or(ids, height < SEATED_GAP_M, to="release"))

    def _back_off_phase(self, view: View, ids: np.ndarray) -> np.ndarray:
        """Lift the gear off the shaft, to be brought upright and over it once more."""
        goal = self.pos[ids].copy()
        goal[:, 2] = self._servo_goal(view, ids, ALIGN_M)[:, 2]
        self._go(view, ids, goal, fastest=0.006)
        return self.stay_or(ids, self._off_seat(view, ids)[:, 2] > self._entrance + ALIGN_M / 2, to="align")

    def _hold_phase(self, view: View, ids: np.ndarray) -> np.ndarray:
        """Stay until the gear has been at rest for a while: the recorder judges whether it is seated."""
        self._aim(ids)
        return self.stay_or(ids, self.steps_in_phase[ids] >= HOLD_STEPS)
