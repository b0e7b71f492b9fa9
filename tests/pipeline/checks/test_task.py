"""The checker of tasks: the catalogue passes, and each implausible figure is named."""

from dataclasses import replace
from typing import Any

import pytest

from pipeline.checks import CheckFailed, check_task
from pipeline.checks import task as checker
from pipeline.tasks import CATALOGUE, Task, get_task

PEG = get_task("peg_round_8mm")


@pytest.mark.parametrize("task", CATALOGUE.values(), ids=list(CATALOGUE))
def test_the_data_of_every_task_are_plausible(task: Task) -> None:
    assert list(checker._implausible(task)) == []


@pytest.mark.sim
def test_the_peg_passes() -> None:
    check_task(PEG, num_envs=2)


def ranges(**changes: float) -> dict[str, Any]:
    return {"start_ranges": {**PEG.start_ranges, **changes}}


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        ({"instruction": " "}, "instruction is empty"),
        ({"held_pos_m": (370.0, -70.0, 0.0)}, r"held_pos_m is \(370.0, -70.0, 0.0\); give metres"),
        ({"fixed_pos_m": (0.37, 0.07)}, "fixed_pos_m is .*; give three finite numbers"),
        ({"seat": replace(PEG.seat, offset_m=(0.0, float("nan"), 0.0))}, "seat.offset_m is .*three finite numbers"),
        ({"geometry": {**PEG.geometry, "width": 8.0}}, "geometry 'width' is 8.0; give metres"),
        (ranges(held_xy_m=0.6), r"held_xy_m of 0.6 m starts the part .* m from the robot's base; keep it between"),
        (ranges(fixed_yaw_rad=17.0), "fixed_yaw_rad is 17.0; give radians"),
        ({"start_ranges": {"held_xy_m": 0.05}}, "start ranges are .*half-widths of held_xy_m, held_yaw_rad"),
        ({"competence_ranges": {}}, "competence ranges lack grasp_depth_m, .*; give a low and a high for each"),
        (
            {"competence_ranges": {**PEG.competence_ranges, "grasp_roll_rad": (-20.0, 20.0)}},
            "competence range grasp_roll_rad is -20.0 to 20.0",
        ),
        (
            {"competence_ranges": {**PEG.competence_ranges, "grip_x_m": (0.001, -0.001)}},
            "competence range grip_x_m is 0.001 to -0.001; give the lower first",
        ),
        ({"seat": replace(PEG.seat, max_xy_m=2.5)}, "the seat allows 2.5 m aside"),
        ({"seat": replace(PEG.seat, hold_steps=0)}, "a limit of the seat is not positive"),
        ({"timeout_s": 40_000.0}, "timeout_s is 40000.0"),
        ({"mass_kg": 19.0}, "mass_kg is 19.0"),
    ],
    ids=lambda value: value.split(";")[0] if isinstance(value, str) else "",
)
def test_implausible_data_are_found_without_a_simulator(changes: dict[str, Any], found: str) -> None:
    with pytest.raises(CheckFailed, match=f"^peg_round_8mm: {found}"):
        check_task(replace(PEG, **changes))


@pytest.mark.sim
def test_parts_that_start_inside_each_other() -> None:
    x, y, z = PEG.fixed_pos_m
    inside = replace(PEG, held_pos_m=(x + 0.012, y, z), start_ranges=dict.fromkeys(PEG.start_ranges, 0.0))
    with pytest.raises(CheckFailed, match=r"^peg_round_8mm: .*(left the cell|moved .* mm).*start"):
        check_task(inside, num_envs=2)
