from dataclasses import astuple, fields
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import kstest

from pipeline.store import canonical_json
from pipeline.tasks import CATALOGUE, Task
from randomization.draws import COMPETENCE, Draws, PegCompetence, StartPose, draw_episode
from randomization.seeds import episode_seed

EXPERT_TASKS = [task for task in CATALOGUE.values() if task.family in COMPETENCE]
seeds = st.integers(0, 2**63 - 1)


def draw(task: Task, seed: int) -> Draws:
    return draw_episode(seed, task.family, task.start_ranges, task.competence_ranges)


@cache
def many(task_id: str) -> list[Draws]:
    return [draw(CATALOGUE[task_id], episode_seed(5, task_id, attempt)) for attempt in range(1500)]


def test_known_values() -> None:
    first = draw(CATALOGUE["peg_round_8mm"], episode_seed(1000, "peg_round_8mm", 0))
    assert first.to_dict() == {
        "start": {
            "held_x_m": 0.0162359222718815,
            "held_y_m": -0.04530349036151187,
            "held_yaw_rad": 0.0,
            "fixed_x_m": 0.026774944260842416,
            "fixed_y_m": -0.04318420742509304,
            "fixed_yaw_rad": 0.0,
        },
        "competence": {
            "grasp_depth_m": -4.4381601255886246e-05,
            "grip_x_m": 1.3763199293063792e-05,
            "grip_y_m": -0.000316402693307182,
            "hover_height_m": 0.018280695418421145,
            "lift_height_m": -0.005804969571263206,
            "grasp_dwell_steps": 20,
            "grasp_roll_rad": 0.31278084536163964,
        },
    }


@given(seeds, st.sampled_from(EXPERT_TASKS))
def test_draws_are_values_within_their_ranges(seed: int, task: Task) -> None:
    drawn = draw(task, seed)
    assert drawn == draw(task, seed)
    for axis, half in (("held_x_m", "held_xy_m"), ("held_y_m", "held_xy_m"), ("fixed_yaw_rad", "fixed_yaw_rad")):
        assert abs(getattr(drawn.start, axis)) <= task.start_ranges[half]
    for axis, (low, high) in task.competence_ranges.items():
        assert low <= getattr(drawn.competence, axis) <= high
    assert isinstance(drawn.competence.grasp_dwell_steps, int)
    canonical_json(drawn.to_dict())


def test_draws_do_not_depend_on_what_was_drawn_before() -> None:
    task = CATALOGUE["peg_round_8mm"]
    forwards = many(task.id)[:20]
    backwards = [draw(task, episode_seed(5, task.id, attempt)) for attempt in reversed(range(20))]
    assert forwards == backwards[::-1]


def test_a_wider_start_leaves_the_competence_as_it_was() -> None:
    task = CATALOGUE["peg_round_8mm"]
    wider = {name: 2 * half for name, half in task.start_ranges.items()}
    a, b = (draw_episode(9, task.family, ranges, task.competence_ranges) for ranges in (task.start_ranges, wider))
    assert a.competence == b.competence
    assert b.start.held_x_m == 2 * a.start.held_x_m


@pytest.mark.parametrize("axis", [f.name for f in fields(StartPose)])
def test_start_axes_are_uniform(axis: str) -> None:
    ranges = {"held_xy_m": 0.05, "fixed_xy_m": 0.03, "held_yaw_rad": 0.2, "fixed_yaw_rad": 0.3}
    rngs = (np.random.default_rng(seed) for seed in range(2000))
    values = [getattr(StartPose.sample(rng, ranges), axis) for rng in rngs]
    half = ranges[axis if axis.endswith("yaw_rad") else axis[:-4] + "_xy_m"]
    assert kstest(values, "uniform", args=(-half, 2 * half)).pvalue > 0.001


@pytest.mark.parametrize("axis", [f.name for f in fields(PegCompetence) if f.type is not int])
def test_competence_axes_are_uniform(axis: str) -> None:
    task = CATALOGUE["peg_round_12mm"]
    low, high = task.competence_ranges[axis]
    values = [getattr(drawn.competence, axis) for drawn in many(task.id)]
    assert kstest(values, "uniform", args=(low, high - low)).pvalue > 0.001


def test_every_whole_dwell_is_drawn() -> None:
    dwells = {drawn.competence.grasp_dwell_steps for drawn in many("peg_round_12mm")}
    assert dwells == set(range(12, 29))


def test_no_two_axes_move_together() -> None:
    values: Any = [astuple(drawn.start)[:2] + astuple(drawn.competence) for drawn in many("peg_round_8mm")]
    correlation = np.corrcoef(np.array(values, float).T) - np.eye(len(values[0]))
    assert np.abs(correlation).max() < 0.1


def test_gears_never_start_inside_their_base() -> None:
    """Along y the shafts' line and the gear lie 140 mm apart, less what is drawn; the largest radii add up to 54 mm."""
    task = CATALOGUE["gear_large"]
    nearer = [drawn.start.held_y_m - drawn.start.fixed_y_m for drawn in many(task.id)]
    assert 0.080 < max(nearer) <= task.start_ranges["nearer_m"] < 0.140 - 0.054
    free = [
        draw_episode(seed, "gear", {**task.start_ranges, "nearer_m": 0.2}, task.competence_ranges)
        for seed in range(1500)
    ]
    assert max(drawn.start.held_y_m - drawn.start.fixed_y_m for drawn in free) > 0.086
