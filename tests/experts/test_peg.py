"""The peg expert in a world without physics: its phases and their exits, and the names of its failures."""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from experts import EXPERTS
from experts.carry import FAST, LEAN_LIMIT_RAD
from experts.contract import Action, Assembly, Expert, Handicap, View
from experts.motion import upright_error
from experts.peg import COMPLIANCE_M, HOLD_STEPS, OFF_CENTRE_M, PegExpert
from pipeline.tasks import Task, get_task
from randomization.draws import Draws, PegCompetence, draw_episode
from randomization.seeds import episode_seed
from tests.experts.kinematics import Bench, Mishap

TASK, SQUARE = get_task("peg_round_8mm"), get_task("peg_square_8mm")
LONGEST_STEPS = int(TASK.timeout_s * 15)

Watch = Callable[[View, Action], None]


def draws(*attempts: int, task: Task = TASK) -> list[Draws]:
    seeds = [episode_seed(1, task.id, attempt) for attempt in attempts]
    return [draw_episode(seed, task.family, task.start_ranges, task.competence_ranges) for seed in seeds]


def grasp_roll(drawn: Draws) -> float:
    assert isinstance(drawn.competence, PegCompetence)
    return drawn.competence.grasp_roll_rad


def expert(num_envs: int, handicap: Handicap = Handicap(), task: Task = TASK) -> Expert:
    return EXPERTS[task.family](num_envs, Assembly(task.geometry, task.seat.offset_m), handicap)


@dataclass
class Tape:
    """One env's attempt: its phase at each step, and how it ended."""

    phases: list[str] = field(default_factory=list)
    failure: str | None = None
    done: bool = False

    @property
    def visited(self) -> list[str]:
        """Phases in order, each run of one phase once."""
        return [p for i, p in enumerate(self.phases) if i == 0 or p != self.phases[i - 1]]


def play(bench: Bench, actor: Expert, drawn: list[Draws], watch: Watch | None = None) -> list[Tape]:
    """Run every env until its expert is done."""
    tapes = [Tape() for _ in drawn]
    actor.reset(bench.view(), drawn, range(len(drawn)))
    for _ in range(LONGEST_STEPS):
        view = bench.view()
        action = actor.act(view)
        if watch is not None:
            watch(view, action)
        bench.step(action)
        for env, tape in enumerate(tapes):
            if not tape.done:
                tape.phases.append(actor.phases[action.phase[env]])
                tape.done, tape.failure = bool(action.done[env]), action.failure[env]
        if all(tape.done for tape in tapes):
            return tapes
    raise AssertionError(f"not done after {LONGEST_STEPS} steps: {[tape.visited for tape in tapes]}")


def attempt(mishap: Mishap, number: int = 0) -> Tape:
    drawn = draws(number)
    return play(Bench(TASK, drawn, [mishap]), expert(1), drawn)[0]


def test_an_undisturbed_attempt_seats_the_peg_and_lets_it_go() -> None:
    drawn = draws(*range(8))
    bench = Bench(TASK, drawn)
    for tape in play(bench, expert(8), drawn):
        assert tape.failure is None
        assert tape.visited == [
            *("hover", "descend", "grasp", "microlift", "lift", "transport", "straighten"),
            *("align", "insert", "release", "retreat", "hold"),
        ]
        assert tape.phases.count("hold") == HOLD_STEPS + 1
    seats = bench.hole + (0.0, 0.0, bench.bottom)
    assert np.abs(bench.held - seats).max() < 0.5e-3
    assert (bench.closed < 0.35).all()
    assert (bench.tool[:, 2] > bench.hole[:, 2] + 0.1).all(), "the hand is out of the way"


def test_attempts_differ_in_length_and_path() -> None:
    drawn = draws(*range(8))
    lengths = {len(tape.phases) for tape in play(Bench(TASK, drawn), expert(8), drawn)}
    assert len(lengths) >= 5


@settings(max_examples=15)
@given(st.integers(0, 10**6), st.integers(1, 4))
def test_an_attempt_does_not_depend_on_the_other_envs(first: int, num_envs: int) -> None:
    drawn = draws(*range(first, first + num_envs))
    together = play(Bench(TASK, drawn), expert(num_envs), drawn)
    alone = play(Bench(TASK, drawn[-1:]), expert(1), drawn[-1:])
    assert together[-1] == alone[0]


@pytest.mark.parametrize(
    ("mishap", "failure", "phase"),
    [
        (Mishap(arm_stuck=True), "out_of_reach", "hover"),
        (Mishap(no_grip=True), "missed_grasp", "grasp"),
        (Mishap(pads_feel=True), "missed_grasp", "microlift"),
        (Mishap(lost_at_m=0.09), "slipped_in_lift", "lift"),
        (Mishap(tip_rad=np.deg2rad(40)), "tipped_in_hand", "lift"),
        (Mishap(tip_rad=np.deg2rad(10), tip_slack=True), "tipped_in_hand", "straighten"),
        (Mishap(drift_m=0.001), "never_centred", "align"),
        (Mishap(plugged=True), "jammed_at_mouth", "insert"),
        (Mishap(fingers_stuck=True), "stuck_to_fingers", "release"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_failures_carry_their_phase_and_reason(mishap: Mishap, failure: str, phase: str) -> None:
    tape = attempt(mishap)
    assert (tape.failure, tape.visited[-1]) == (failure, phase)


@pytest.mark.parametrize("mishap", [Mishap(lost_at_m=0.09), Mishap(tip_rad=np.deg2rad(40))], ids=["slipped", "tipped"])
def test_a_lost_peg_is_noticed_long_before_the_time_out(mishap: Mishap) -> None:
    assert attempt(mishap).phases.count("lift") < 15


def test_a_peg_lost_on_the_way_is_a_slip_in_transport() -> None:
    drawn = draws(0)
    bench = Bench(TASK, drawn)

    def lose(view: View, action: Action) -> None:
        if abs(bench.tool[0, 1] - bench.hole[0, 1]) < 0.02:
            bench.mishaps = [Mishap(lost_at_m=0.0)]

    tape = play(bench, expert(1), drawn, lose)[0]
    assert (tape.failure, tape.visited[-1]) == ("slipped_in_transport", "transport")


def test_a_jam_is_retried_before_it_is_given_up() -> None:
    assert attempt(Mishap(plugged=True)).visited.count("retract") == 3


@pytest.mark.parametrize("error", [(0.004, 0.0), (0.0, -0.004)])
def test_told_the_wrong_hole_it_does_not_seat(error: tuple[float, float]) -> None:
    drawn = draws(0)
    bench = Bench(TASK, drawn)
    tape = play(bench, expert(1, Handicap(seat_error_m=error)), drawn)[0]
    assert tape.failure == "jammed_at_mouth"
    assert bench.held[0, 2] >= bench.mouth


@pytest.mark.parametrize("degrees", [3, -8, 15])
def test_a_tipped_peg_is_straightened_before_it_is_inserted(degrees: float) -> None:
    drawn = draws(0)
    bench = Bench(TASK, drawn, [Mishap(tip_rad=np.deg2rad(degrees))])
    tilts = []

    def watch(view: View, action: Action) -> None:
        if bench.gripped[0] and bench.held[0, 2] < bench.mouth and abs(bench.held[0, 1] - bench.hole[0, 1]) < 0.001:
            tilts.append(np.linalg.norm(upright_error(bench.held_quat)[0]))

    tape = play(bench, expert(1), drawn, watch)[0]
    assert tape.failure is None
    assert tape.phases.count("straighten") > 1
    assert max(tilts) < np.deg2rad(2)


def test_the_wrist_never_leans_further_than_its_limit() -> None:
    def watch(view: View, action: Action) -> None:
        lean = np.arccos(np.clip(-Rotation.from_quat(action.tool_quat_xyzw[0]).as_matrix()[2, 2], -1, 1))
        assert lean < LEAN_LIMIT_RAD + 1e-6

    drawn = draws(0)
    play(Bench(TASK, drawn, [Mishap(tip_rad=np.deg2rad(29), tip_slack=True)]), expert(1), drawn, watch)


@pytest.mark.parametrize("mishap", [Mishap(), Mishap(plugged=True)], ids=["free", "plugged"])
def test_pressing_is_bounded_and_motion_is_slow(mishap: Mishap) -> None:
    """A step is short everywhere, and while inserting the command stays within a millimetre below the tool."""
    actor = expert(1)
    last: dict[str, np.ndarray] = {}

    def watch(view: View, action: Action) -> None:
        target, tool = action.tool_pos_m[0], view.tool_pos_m[0]
        if "target" in last:
            assert np.linalg.norm(target - last["target"]) < FAST + 1e-9
        if actor.phases[action.phase[0]] == "insert":
            assert tool[2] - target[2] <= COMPLIANCE_M + 1e-9
        last["target"] = target

    drawn = draws(0)
    play(Bench(TASK, drawn, [mishap]), actor, drawn, watch)


def test_depth_is_frozen_while_the_peg_is_off_centre() -> None:
    """The fixture is knocked aside as the peg comes down: nothing is pressed onto its rim."""
    drawn, actor = draws(0), expert(1)
    bench = Bench(TASK, drawn)
    heights: list[float] = []

    def watch(view: View, action: Action) -> None:
        if actor.phases[action.phase[0]] == "insert" and not heights:
            bench.hole[0, 0] += 0.002
        off = view.held_pos_m[0] - view.fixed_pos_m[0]
        if heights and np.linalg.norm(off[:2]) > OFF_CENTRE_M and actor.phases[action.phase[0]] == "insert":
            assert action.tool_pos_m[0, 2] >= heights[-1] - 1e-9
        if heights or actor.phases[action.phase[0]] == "insert":
            heights.append(float(action.tool_pos_m[0, 2]))

    tape = play(bench, actor, drawn, watch)[0]
    assert tape.failure is None, "it is aligned again"
    assert "retract" in tape.visited


@pytest.mark.parametrize(("clocks", "failure"), [(True, None), (False, "jammed_at_mouth")])
def test_a_square_peg_is_turned_as_its_hole_is(clocks: bool, failure: str | None) -> None:
    drawn = [d for d in draws(*range(12), task=SQUARE) if abs(d.start.fixed_yaw_rad - grasp_roll(d)) > 0.1]
    assert len(drawn) > 3
    actor = expert(len(drawn), Handicap(skill_off=not clocks), SQUARE)
    bench = Bench(SQUARE, drawn)
    tapes = play(bench, actor, drawn)
    assert {tape.failure for tape in tapes} == {failure}
    if clocks:
        np.testing.assert_allclose(bench.held[:, 2], bench.bottom)


def test_one_envs_mishap_is_its_own() -> None:
    drawn = draws(0, 1, 2)
    tapes = play(Bench(TASK, drawn, [Mishap(), Mishap(no_grip=True), Mishap()]), expert(3), drawn)
    assert [tape.failure for tape in tapes] == [None, "missed_grasp", None]


def test_an_env_starts_again_while_others_go_on() -> None:
    drawn = draws(0, 1)
    bench, actor = Bench(TASK, drawn, [Mishap(no_grip=True), Mishap()]), expert(2)
    actor.reset(bench.view(), drawn, range(2))
    failure = None
    while failure is None:
        action = actor.act(bench.view())
        failure = action.failure[0]
        bench.step(action)
    other = actor.phases[action.phase[1]]
    actor.reset(bench.view(), drawn[:1], [0])
    again = actor.act(bench.view())
    assert (actor.phases[again.phase[0]], again.failure[0], again.done[0]) == ("hover", None, False)
    assert actor.phases[again.phase[1]] == other


def test_every_phase_has_a_time_out_that_names_a_failure() -> None:
    assert len({phase.name for phase in PegExpert.table}) == len(PegExpert.table)
    for phase in PegExpert.table:
        assert 0 < phase.timeout_steps < LONGEST_STEPS
        assert phase.failure
        assert phase.failure == phase.failure.lower()
