import re

import pytest

from pipeline.errors import UserError
from pipeline.tasks import CATALOGUE, HOME_JOINTS_RAD, Task, get_task
from randomization.draws import COMPETENCE

TASKS = list(CATALOGUE.values())
by_id = pytest.mark.parametrize("task", TASKS, ids=list(CATALOGUE))

INSTRUCTIONS = {
    "peg_round_4mm": "pick up the 4 mm round peg and insert it into the hole",
    "peg_round_8mm": "pick up the 8 mm round peg and insert it into the hole",
    "peg_round_12mm": "pick up the 12 mm round peg and insert it into the hole",
    "peg_round_16mm": "pick up the 16 mm round peg and insert it into the hole",
    "peg_square_4mm": "pick up the 4 mm square peg and insert it into the hole",
    "peg_square_8mm": "pick up the 8 mm square peg and insert it into the hole",
    "peg_square_12mm": "pick up the 12 mm square peg and insert it into the hole",
    "peg_square_16mm": "pick up the 16 mm square peg and insert it into the hole",
    "gear_small": "pick up the small gear and mesh it onto its shaft",
    "gear_medium": "pick up the medium gear and mesh it onto its shaft",
    "gear_large": "pick up the large gear and mesh it onto its shaft",
    "nut_M8": "pick up the M8 nut and thread it onto the bolt",
    "nut_M12": "pick up the M12 nut and thread it onto the bolt",
    "nut_M16": "pick up the M16 nut and thread it onto the bolt",
}


def test_catalogue_holds_the_fourteen_tasks_of_the_board_in_order() -> None:
    assert list(CATALOGUE) == list(INSTRUCTIONS)
    assert {task.family for task in TASKS} == {"peg_round", "peg_square", "gear", "nut"}


@by_id
def test_instruction(task: Task) -> None:
    assert task.instruction == INSTRUCTIONS[task.id]


@by_id
def test_success_rules(task: Task) -> None:
    seat = task.seat
    assert (seat.max_xy_m, seat.max_speed_m_s, seat.hold_steps) == (0.0025, 0.05, 3)
    assert (seat.max_penetration_m, seat.max_force_n, seat.top_speed_m_s) == (0.0005, 60.0, 3.0)
    assert seat.max_finger_closed < 0.8, "a part that is still gripped must not count"
    if task.family == "nut":
        assert seat.max_gap_m == pytest.approx(0.375 * task.geometry["pitch"])
        assert seat.min_gap_m == pytest.approx(-1.5 * task.geometry["pitch"])
        assert (seat.min_upright_cos, seat.min_thread_turn_rad) == (0.9, 0.3)
    else:
        assert seat.max_gap_m == 0.003


@by_id
def test_time_out_and_start_ranges(task: Task) -> None:
    assert task.timeout_s == {"peg": 40.0, "gear": 52.0, "nut": 120.0}[task.family.split("_")[0]]
    assert task.start_ranges["held_xy_m"] == (0.03 if task.family == "nut" else 0.05)
    assert task.start_ranges["fixed_xy_m"] == (0.0 if task.family == "nut" else 0.05)
    assert task.start_ranges["fixed_yaw_rad"] == (0.3 if task.family == "peg_square" else 0.0)
    assert all(low < high for low, high in task.competence_ranges.values())


@pytest.mark.parametrize("task", [t for t in TASKS if t.family.startswith("peg")], ids=lambda t: t.id)
def test_pegs_fit_their_bores_and_stand_proud(task: Task) -> None:
    g = task.geometry
    assert g["width"] == pytest.approx(float(re.findall(r"\d+", task.id)[0]) * 1e-3)
    assert 0.1e-3 <= g["clearance"] <= 0.5e-3
    assert g["length"] - g["bore_depth"] == pytest.approx(0.025), "shaft exposed for the fingers"
    assert task.seat.offset_m == (0.0, 0.0, g["base"])
    assert task.score.depth_m == g["bore_depth"] == task.score.engage_gap_m


@pytest.mark.parametrize("task", [t for t in TASKS if t.family == "gear"], ids=lambda t: t.id)
def test_gears_mesh_on_one_line(task: Task) -> None:
    """Neighbouring shafts are a sum of pitch radii apart, with a little backlash."""
    shafts = {t.size: (t.geometry["shaft_x"], t.geometry["module"] * t.geometry["teeth"] / 2) for t in TASKS[8:11]}
    for a, b in (("small", "medium"), ("medium", "large")):
        distance = abs(shafts[a][0] - shafts[b][0])
        assert 0 <= distance - (shafts[a][1] + shafts[b][1]) < 1e-3
    assert task.seat.offset_m[0] == task.geometry["shaft_x"]


@pytest.mark.parametrize("task", [t for t in TASKS if t.family == "nut"], ids=lambda t: t.id)
def test_nuts_seat_below_the_tip_of_their_bolt(task: Task) -> None:
    g = task.geometry
    assert task.seat.offset_m[2] == pytest.approx(g["head"] + g["shank"] - 1.5 * g["pitch"])
    assert g["height"] < g["shank"]


def test_home_is_the_droid_pose() -> None:
    assert pytest.approx((0, -0.2, 0, -0.8, 0, 0.6, 0)) == [q / 3.141592653589793 for q in HOME_JOINTS_RAD]


def test_every_competence_axis_has_a_range() -> None:
    for task in TASKS:
        if task.family in COMPETENCE:
            assert set(COMPETENCE[task.family].__dataclass_fields__) == set(task.competence_ranges)


@pytest.mark.parametrize(
    ("typed", "meant"), [("peg_rond_8mm", "peg_round_8mm"), ("gear_larg", "gear_large"), ("M12", "nut_M12")]
)
def test_unknown_task_names_the_nearest(typed: str, meant: str) -> None:
    with pytest.raises(UserError, match=f"{typed}.*{meant}"):
        get_task(typed)


@pytest.mark.parametrize("typed", ["", "zzz", "../../etc"])
def test_any_unknown_task_is_a_clear_error(typed: str) -> None:
    with pytest.raises(UserError, match="demomill tasks"):
        get_task(typed)
