"""The checker of experts: it lets the peg's expert pass, and catches each planted defect by its message."""

from dataclasses import replace

import pytest

from experts.peg import PegExpert
from pipeline.checks import CheckFailed, check_expert
from pipeline.errors import UserError
from pipeline.tasks import get_task
from tests.pipeline.checks import planted

PEG = get_task("peg_round_8mm")


@pytest.mark.slow
def test_the_pegs_expert_passes() -> None:
    check_expert(PegExpert, PEG, episodes=2)


@pytest.mark.parametrize(
    ("defective", "found"),
    [
        (planted.NeverGivesUp, r"goes on in phase 'hover' beyond the time-out of 40 s; give every phase a time-out"),
        (planted.Dices, r"action.tool_pos_m differs at step 0, repeated"),
        (planted.MixesEnvs, r"action.tool_pos_m differs at step 0, asked for one env"),
        (planted.WritesToTheView, r"act writes to view.tool_pos_m; copy"),
        (planted.WritesAtReset, r"reset writes to view.held_pos_m"),
        (planted.ForgetsTheBatch, r"action.tool_pos_m has shape \(3,\) for 3 envs; return \(3, 3\)"),
        (planted.GripOfTwo, r"action.grip has shape \(3, 2\) for 3 envs; return \(3,\)"),
        (planted.AsksForNothing, r"action.tool_pos_m is not finite in env 1 at step 9, phase 'hover'"),
        (planted.Millimetres, r"more than 1.2 m from the robot's base in env 0 at step 0.*metres"),
        (planted.Unnormalised, r"tool_quat_xyzw has no unit norm"),
        (planted.OpensTooFar, r"grip is not between 0 and 1"),
        (planted.PhaseByName, r"action.phase is \[99 99 99\]; return whole numbers below 13"),
        (planted.UnlistedFailure, r"failure is 'oops' in env 0.*list every failure in `failures`"),
        (planted.NoNames, r"the expert's failures are \(\)"),
    ],
    ids=lambda value: value.__name__ if isinstance(value, type) else "",
)
def test_a_breach_of_the_contract_is_found_without_a_simulator(defective, found: str) -> None:
    with pytest.raises(CheckFailed, match=f"^peg_round_8mm: .*{found}"):
        check_expert(defective, PEG)


def test_what_it_raises_is_one_line_for_the_command_line() -> None:
    assert issubclass(CheckFailed, UserError)


@pytest.mark.sim
def test_a_seat_that_no_expert_can_reach() -> None:
    aside = replace(PEG, seat=replace(PEG.seat, offset_m=(0.012, 0.0, 0.005)))
    with pytest.raises(CheckFailed, match=r"^peg_round_8mm: none of 2 attempts succeeds \(.* in phase '.*'\)"):
        check_expert(PegExpert, aside, episodes=2)


@pytest.mark.slow
def test_dice_that_are_thrown_only_in_contact() -> None:
    with pytest.raises(CheckFailed, match=r"attempt 0 differs when repeated in another env"):
        check_expert(planted.DicesOncePressed, PEG, episodes=2)


@pytest.mark.slow
def test_a_control_that_succeeds() -> None:
    with pytest.raises(CheckFailed, match=r"2 of 2 attempts succeed although it was told .* 4 mm off; .*too kind"):
        check_expert(planted.IgnoresItsHandicap, PEG, episodes=2)
