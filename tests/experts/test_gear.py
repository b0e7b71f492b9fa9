"""The gear expert in a world without physics: a shaft for a centred gear only, and teeth that mesh at an angle."""

from dataclasses import dataclass

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from experts.contract import Action, Expert, Handicap, View
from experts.gear import COMPLIANCE_M, CROWDED_M, GRASP_HEIGHT_M, RETRIES, SWEEP_PITCHES, GearExpert
from experts.motion import TOOL_DOWN_XYZW, heading, wrap
from pipeline.reasons import make_expert
from pipeline.tasks import Task, get_task
from randomization.draws import Draws, GearCompetence, draw_episode
from randomization.seeds import episode_seed

TASK = get_task("gear_medium")
SIZES = [get_task(f"gear_{size}") for size in ("small", "medium", "large")]
MESHES_WITHIN_PITCHES = 0.05
STIFFNESS_N_M = 15000.0


@dataclass(frozen=True)
class Mishap:
    """What goes wrong.

    Attributes:
        no_grip: the pads feel nothing and hold nothing.
        lost_at_m: height of the tool at which the gear falls out of the hand.
        plugged: the gear does not get past the shaft's end.
        blunt: the teeth mesh at no angle.
        shallow_m: height above the seat below which it does not go.
        lags_pitches: so much the gear stays behind the wrist while it rests on teeth.
        fingers_stuck: they close and never open.
    """

    no_grip: bool = False
    lost_at_m: float = np.inf
    plugged: bool = False
    blunt: bool = False
    shallow_m: float = 0.0
    lags_pitches: float = 0.0
    fingers_stuck: bool = False


class Bench:
    """One env."""

    def __init__(self, task: Task, drawn: Draws, mishap: Mishap | None = None) -> None:
        self.g, self.mishap, start = task.geometry, mishap or Mishap(), drawn.start
        self.pitch = 2 * np.pi / self.g["teeth"]
        self.held = np.add(task.held_pos_m, (start.held_x_m, start.held_y_m, 0.0))
        self.base = np.add(task.fixed_pos_m, (start.fixed_x_m, start.fixed_y_m, 0.0))
        self.seat = self.base + task.seat.offset_m
        self.yaw, self.tool, self.tool_quat = start.held_yaw_rad, np.array([0.42, 0.0, 0.30]), np.array(TOOL_DOWN_XYZW)
        self.closed, self.gripped, self.force = 0.0, False, 0.0
        self._offset, self._turn = np.zeros(3), 0.0

    @property
    def off_phase(self) -> float:
        """Angle of the gear from where it meshes, in pitches."""
        return float(wrap(np.array([self.yaw - self.g["phase_rad"]]), self.pitch)[0]) / self.pitch

    def view(self) -> View:
        """What the expert sees."""
        return View(
            held_pos_m=self.held[None].copy(),
            held_quat_xyzw=Rotation.from_rotvec([(0.0, 0.0, self.yaw)]).as_quat(),
            held_vel_m_s=np.zeros((1, 3)),
            fixed_pos_m=self.base[None],
            fixed_quat_xyzw=np.array([[0.0, 0.0, 0.0, 1.0]]),
            tool_pos_m=self.tool[None].copy(),
            tool_quat_xyzw=self.tool_quat[None].copy(),
            joint_pos_rad=np.zeros((1, 7)),
            joint_vel_rad_s=np.zeros((1, 7)),
            jacobian=np.zeros((1, 6, 7)),
            finger_closed=np.array([self.closed]),
            wrist_wrench=np.zeros((1, 6)),
            pad_force_n=np.full((1, 2), 30.0 * self.gripped),
            contact_force_n=np.array([self.force]),
        )

    def step(self, action: Action) -> None:
        """Carry out one control step."""
        self.tool, self.tool_quat = action.tool_pos_m[0].copy(), action.tool_quat_xyzw[0].copy()
        grip = max(float(action.grip[0]), float(self.closed > 0.5)) if self.mishap.fingers_stuck else action.grip[0]
        self.closed += float(np.clip(0.7 * grip - self.closed, -0.08, 0.08))
        around = np.abs(self.tool - self.held - (0.0, 0.0, GRASP_HEIGHT_M)).max() < 0.006 or self.gripped
        holds = around and self.closed > 0.6 and not self.mishap.no_grip and self.tool[2] < self.mishap.lost_at_m
        wrist = float(heading(self.tool_quat[None])[0])
        if holds and not self.gripped:
            self._offset, self._turn = self.held - self.tool, self.yaw - wrist
        self.gripped, self.force = holds, 0.0
        if holds:
            self._carry(self.tool + self._offset, self._turn + wrist)

    def _carry(self, wanted: np.ndarray, yaw: float) -> None:
        clash = self.seat[2] + self.g["face_width"] - self.g["relief"]
        among = bool(self.held[2] < clash - 1e-6)
        behind = self.mishap.lags_pitches * self.pitch * (self.held[2] <= clash)
        if not among:
            self.yaw += float(np.sign(yaw - self.yaw)) * max(0.0, abs(yaw - self.yaw) - behind)
        floor = 0.0
        if np.abs(wanted[:2] - self.seat[:2]).max() < 0.03:
            centred = np.linalg.norm(wanted[:2] - self.seat[:2]) < 0.3e-3 and not self.mishap.plugged
            meshes = abs(self.off_phase) < MESHES_WITHIN_PITCHES and not self.mishap.blunt
            floor = self.seat[2] + self.mishap.shallow_m if meshes or among else clash
            floor = floor if centred else self.seat[2] + self.g["shaft_height"]
        blocked = max(0.0, floor - wanted[2])
        self.force = STIFFNESS_N_M * blocked
        self.tool[2] += blocked
        self.held = wanted + (0.0, 0.0, blocked)


@dataclass
class Tape:
    """How an attempt went: phases in order, each run of one once, how often each, and the failure."""

    visited: list[str]
    counts: dict[str, int]
    failure: str | None
    bench: Bench
    actions: list[tuple[str, View, Action]]


def draws(number: int, task: Task = TASK) -> Draws:
    seed = episode_seed(1, task.id, number)
    return draw_episode(seed, task.family, task.start_ranges, task.competence_ranges)


def fraction(drawn: Draws) -> float:
    assert isinstance(drawn.competence, GearCompetence)
    return drawn.competence.tooth_pitch_fraction


def play(drawn: Draws, mishap: Mishap | None = None, handicap: Handicap | None = None, task: Task = TASK) -> Tape:
    bench, actor = Bench(task, drawn, mishap), make_expert(task, 1, handicap)
    actor.reset(bench.view(), [drawn], [0])
    tape = Tape([], {}, None, bench, [])
    for _ in range(round(task.timeout_s * 15)):
        view = bench.view()
        action = actor.act(view)
        phase = actor.phases[action.phase[0]]
        tape.actions.append((phase, view, action))
        tape.counts[phase] = tape.counts.get(phase, 0) + 1
        if tape.visited[-1:] != [phase]:
            tape.visited.append(phase)
        if action.done[0]:
            tape.failure = action.failure[0]
            return tape
        bench.step(action)
    raise AssertionError(f"not done: {tape.visited}")


@pytest.mark.parametrize("task", SIZES, ids=lambda task: task.id)
@pytest.mark.parametrize("number", range(4))
def test_an_undisturbed_attempt_seats_the_gear_and_lets_it_go(task: Task, number: int) -> None:
    tape = play(draws(number, task), task=task)
    assert tape.failure is None
    assert tape.visited == [phase.name for phase in GearExpert.table if phase.name != "back_off"]
    assert np.linalg.norm(tape.bench.held - tape.bench.seat) < 0.7e-3
    assert abs(tape.bench.off_phase) < MESHES_WITHIN_PITCHES
    assert tape.bench.tool[2] > tape.bench.seat[2] + 0.1, "the hand is out of the way"


@pytest.mark.parametrize("number", range(6))
def test_it_arrives_off_its_mesh_as_drawn_and_searches(number: int) -> None:
    drawn = draws(number)
    tape = play(drawn)
    arrived = next(view for phase, view, _ in tape.actions if phase == "thread")
    angle = heading(arrived.held_quat_xyzw)[0] - TASK.geometry["phase_rad"]
    assert wrap(np.array([angle / tape.bench.pitch - fraction(drawn)]), 1.0)[0] == pytest.approx(0.0, abs=0.04)
    if abs(fraction(drawn)) > 2 * MESHES_WITHIN_PITCHES:
        assert tape.counts["mesh"] > 3


@pytest.mark.parametrize(
    ("mishap", "failure", "phase"),
    [
        (Mishap(no_grip=True), "missed_grasp", "grasp"),
        (Mishap(lost_at_m=0.08), "slipped_in_lift", "lift"),
        (Mishap(plugged=True), "jammed_on_shaft", "thread"),
        (Mishap(blunt=True), "tooth_clash", "mesh"),
        (Mishap(shallow_m=0.004), "not_seated", "seat"),
        (Mishap(fingers_stuck=True), "stuck_to_fingers", "release"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_failures_carry_their_phase_and_reason(mishap: Mishap, failure: str, phase: str) -> None:
    tape = play(draws(0), mishap)
    assert (tape.failure, tape.visited[-1]) == (failure, phase)


@pytest.mark.parametrize("mishap", [Mishap(blunt=True), Mishap(shallow_m=0.004)], ids=["blunt", "shallow"])
def test_the_gear_is_lifted_and_meshed_again_before_it_is_given_up(mishap: Mishap) -> None:
    tape = play(draws(0), mishap)
    assert tape.visited.count("back_off") == RETRIES
    assert tape.visited.count("mesh") == RETRIES + 1


@pytest.mark.parametrize("number", range(4))
def test_a_gear_that_stays_behind_the_wrist_is_found_too(number: int) -> None:
    assert play(draws(number), Mishap(lags_pitches=0.1)).failure is None


def test_the_sweep_goes_the_drawn_way_first_and_never_beyond_its_reach() -> None:
    for number in range(6):
        drawn = draws(number)
        assert isinstance(drawn.competence, GearCompetence)
        tape = play(drawn, Mishap(blunt=True))
        yaws = [heading(action.tool_quat_xyzw)[0] for phase, _, action in tape.actions if phase == "mesh"]
        swept = (np.array(yaws) - yaws[0]) / tape.bench.pitch
        assert np.sign(swept[5]) == np.sign(drawn.competence.wiggle_sign)
        assert 0.5 < np.abs(swept).max() < SWEEP_PITCHES + 0.06


@pytest.mark.parametrize("task", SIZES, ids=lambda task: task.id)
def test_without_its_skill_it_arrives_half_a_pitch_off_and_does_not_turn(task: Task) -> None:
    tape = play(draws(0, task), handicap=Handicap(skill_off=True), task=task)
    assert tape.failure == "tooth_clash"
    yaws = [heading(action.tool_quat_xyzw)[0] for phase, _, action in tape.actions if phase == "mesh"]
    assert np.ptp(yaws) < 0.01
    assert abs(tape.bench.off_phase) == pytest.approx(0.5, abs=0.04)


def test_pressing_is_bounded_and_gentle() -> None:
    for phase, view, action in play(draws(0), Mishap(blunt=True)).actions:
        if phase in ("thread", "mesh", "seat"):
            assert view.tool_pos_m[0, 2] - action.tool_pos_m[0, 2] <= COMPLIANCE_M + 1e-9
            assert view.contact_force_n[0] < 20.0


def test_near_the_base_the_fingers_close_along_the_shafts() -> None:
    """The open fingers would meet a boss; on the way the wrist turns back."""
    seen = set()
    for number in range(150):
        drawn = draws(number)
        apart = 0.14 + drawn.start.fixed_y_m - drawn.start.held_y_m
        if (apart < CROWDED_M) in seen:
            continue
        seen.add(apart < CROWDED_M)
        tape = play(drawn)
        assert tape.failure is None
        grasp = next(action for phase, _, action in tape.actions if phase == "grasp")
        release = next(action for phase, _, action in tape.actions if phase == "release")
        assert (abs(heading(grasp.tool_quat_xyzw)[0]) > 1.3) == (apart < CROWDED_M)
        assert abs(heading(release.tool_quat_xyzw)[0]) < 1.2 * tape.bench.pitch
    assert seen == {True, False}


def test_an_attempt_does_not_depend_on_the_other_envs() -> None:
    views = [Bench(TASK, draws(number)).view() for number in (0, 1)]
    both = View(**{name: np.concatenate([getattr(v, name) for v in views]) for name in vars(views[0])})
    together: Expert = make_expert(TASK, 2)
    together.reset(both, [draws(0), draws(1)], [0, 1])
    alone = make_expert(TASK, 1)
    alone.reset(views[1], [draws(1)], [0])
    for _ in range(5):
        pair, single = together.act(both), alone.act(views[1])
        np.testing.assert_array_equal(pair.tool_pos_m[1], single.tool_pos_m[0])
        np.testing.assert_array_equal(pair.tool_quat_xyzw[1], single.tool_quat_xyzw[0])
