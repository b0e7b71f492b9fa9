from collections.abc import Mapping

import numpy as np
import pytest

from experts.contract import View
from experts.phase_machine import Handler, Phase, PhaseMachine
from pipeline.tasks import get_task
from randomization.draws import draw_episode
from tests.experts.kinematics import Bench

TASK = get_task("peg_round_8mm")
DRAW = draw_episode(3, TASK.family, TASK.start_ranges, TASK.competence_ranges)


class Traffic(PhaseMachine):
    """Three phases whose exits a test opens by hand."""

    table = (Phase("red", 4, "waited_too_long"), Phase("amber", 3, "amber_stuck"), Phase("green", 9, "asleep"))

    def __init__(self, num_envs: int) -> None:
        self.open = np.zeros((3, num_envs), bool)
        self.calls: list[tuple[str, tuple[int, ...]]] = []
        super().__init__(num_envs)

    def handlers(self) -> Mapping[str, Handler]:
        return {name: self._handler(number) for number, name in enumerate(self.phases)}

    def _handler(self, number: int) -> Handler:
        def handle(view: View, ids: np.ndarray) -> np.ndarray:
            self.calls.append((self.phases[number], tuple(ids.tolist())))
            return self.stay_or(ids, self.open[number, ids])

        return handle


@pytest.fixture
def view() -> View:
    return Bench(TASK, [DRAW] * 3).view()


@pytest.fixture
def machine(view: View) -> Traffic:
    machine = Traffic(3)
    machine.reset(view, [DRAW] * 3, range(3))
    return machine


def test_a_phase_ends_when_its_exit_is_measured(machine: Traffic, view: View) -> None:
    machine.open[0, 1] = True
    assert machine.act(view).phase.tolist() == [0, 0, 0], (
        "the step in which the exit is seen still belongs to the phase"
    )
    assert machine.act(view).phase.tolist() == [0, 1, 0]
    assert machine.steps_in_phase.tolist() == [2, 1, 2]


def test_only_the_envs_of_a_phase_are_handled(machine: Traffic, view: View) -> None:
    machine.open[0, 1] = True
    machine.act(view)
    machine.calls.clear()
    machine.act(view)
    assert machine.calls == [("red", (0, 2)), ("amber", (1,))]


def test_a_time_out_names_its_failure_and_ends_the_attempt(machine: Traffic, view: View) -> None:
    for _ in range(3):
        assert not machine.act(view).done.any()
    action = machine.act(view)
    assert action.failure.tolist() == ["waited_too_long"] * 3
    assert action.done.all()


def test_the_clock_starts_again_with_each_phase(machine: Traffic, view: View) -> None:
    machine.act(view)
    machine.act(view)
    machine.open[0] = True
    machine.act(view)
    for _ in range(2):
        assert not machine.act(view).done.any()
    assert machine.act(view).failure.tolist() == ["amber_stuck"] * 3


def test_leaving_in_the_last_step_is_in_time(machine: Traffic, view: View) -> None:
    for _ in range(3):
        machine.act(view)
    machine.open[0] = True
    assert not machine.act(view).done.any()


def test_after_the_last_phase_it_is_done_without_a_failure(machine: Traffic, view: View) -> None:
    machine.open[:] = True
    for _ in range(2):
        assert not machine.act(view).done.any()
    action = machine.act(view)
    assert action.done.all()
    assert action.phase.tolist() == [2, 2, 2]
    assert action.failure.tolist() == [None] * 3


def test_the_first_failure_stands(machine: Traffic, view: View) -> None:
    machine.fail(np.array([1]), "first")
    machine.fail(np.array([1]), "second")
    assert machine.act(view).failure.tolist() == [None, "first", None]


def test_reset_touches_only_its_envs(machine: Traffic, view: View) -> None:
    machine.open[0] = True
    machine.act(view)
    machine.fail(np.array([0, 1]), "lost")
    machine.grip[:] = 1.0
    machine.reset(view, [DRAW], [1])
    action = machine.act(view)
    assert action.phase.tolist() == [1, 0, 1]
    assert action.failure.tolist() == ["lost", None, None]
    assert action.grip.tolist() == [1.0, 0.0, 1.0]
    assert np.array_equal(action.tool_pos_m[1], view.tool_pos_m[1])


def test_an_action_is_a_copy(machine: Traffic, view: View) -> None:
    action = machine.act(view)
    kept = action.tool_pos_m.copy()
    machine.pos += 1.0
    assert np.array_equal(action.tool_pos_m, kept)


def test_without_handlers_there_is_no_machine() -> None:
    class Empty(PhaseMachine):
        table = (Phase("only", 1, "never"),)

    with pytest.raises(NotImplementedError):
        Empty(1)
