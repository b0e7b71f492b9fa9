"""Check a task: are its data plausible, and do its parts stand still where they are put?"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import fields

import numpy as np
from scipy.spatial.transform import Rotation

from experts.contract import Action, View
from pipeline.checks.findings import finding
from pipeline.checks.process import in_own_process
from pipeline.engine import Engine
from pipeline.tasks import HOME_TOLERANCE_RAD, Task
from randomization.draws import COMPETENCE, draw_episode
from randomization.seeds import episode_seed

REACH_M = (0.20, 0.75)
"""Distance of a part from the robot's base, along the table, within which the tool points straight down."""

LARGEST_M = 0.5
"""No dimension of a part is larger."""

START_RANGES = ("held_xy_m", "held_yaw_rad", "fixed_xy_m", "fixed_yaw_rad")
OPTIONAL_RANGES = ("nearer_m",)

REST_S, MOVED_M, TILTED_RAD, PLACED_M = 1.0, 0.002, 0.05, 0.002
"""A part left alone for so long may move and tilt so far from where it was put, and be put so far off its draw."""


def check_task(task: Task, *, num_envs: int = 4, seed: int = 0) -> None:
    """Check a task's data, then its start in the simulator.

    Data: positions within reach over the whole start ranges, lengths in metres, angles in radians, tolerances in order,
    competence ranges for every axis that the family draws. In the simulator, for ``num_envs`` drawn starts: the arm is
    within 0.2 rad of home, the parts are where they were drawn, the held part stays there while nothing touches it, and
    it does not count as assembled.

    Args:
        task: it need not be in the catalogue; its family must have parts.
        num_envs: starts to try.
        seed: of the starts.

    Raises:
        CheckFailed: names the task, what was found, and what to do.
    """
    for found, remedy in _implausible(task):
        raise finding(task.id, found, remedy)
    in_own_process(_check_start, task, num_envs, seed)


def _implausible(task: Task) -> Iterator[tuple[str, str]]:
    """What is wrong with the data, and what to do."""
    for name in ("id", "family", "size", "instruction"):
        if not getattr(task, name).strip():
            yield f"{name} is empty", "name it"
    yield from _units(task)
    yield from _ranges(task)
    seat = task.seat
    if not 0 < seat.max_xy_m <= 0.01 or not seat.min_gap_m < seat.max_gap_m <= 0.01:
        yield f"the seat allows {seat.max_xy_m} m aside and {seat.max_gap_m} m in height", "give metres, at most 0.01"
    if seat.hold_steps < 1 or min(seat.max_penetration_m, seat.max_force_n, seat.top_speed_m_s) <= 0:
        yield "a limit of the seat is not positive", "hold_steps, max_penetration_m, max_force_n, top_speed_m_s count"
    for name, low, high in (("timeout_s", 1, 600), ("mass_kg", 1e-4, 2.0), ("friction", 0.0, 3.0)):
        if not low <= getattr(task, name) <= high:
            yield f"{name} is {getattr(task, name)}", f"give a value between {low} and {high}"


def _units(task: Task) -> Iterator[tuple[str, str]]:
    for name, values in (
        ("held_pos_m", task.held_pos_m),
        ("fixed_pos_m", task.fixed_pos_m),
        ("seat.offset_m", task.seat.offset_m),
    ):
        if len(values) != 3 or not all(math.isfinite(v) for v in values):
            yield f"{name} is {values}", "give three finite numbers"
        elif max(map(abs, values)) > 1.0:
            yield f"{name} is {values}", "give metres"
    for name, value in task.geometry.items():
        if not math.isfinite(value) or (isinstance(value, float) and abs(value) > LARGEST_M):
            yield f"geometry {name!r} is {value}", f"give metres, at most {LARGEST_M}; counts are whole numbers"


def _ranges(task: Task) -> Iterator[tuple[str, str]]:
    if set(task.start_ranges) - set(OPTIONAL_RANGES) != set(START_RANGES) or min(task.start_ranges.values()) < 0:
        yield f"start ranges are {dict(task.start_ranges)}", f"give half-widths of {', '.join(START_RANGES)}"
        return
    for part in ("held", "fixed"):
        yaw, xy = task.start_ranges[f"{part}_yaw_rad"], task.start_ranges[f"{part}_xy_m"]
        if yaw > math.pi:
            yield f"{part}_yaw_rad is {yaw}", "give radians, at most pi"
        nominal = getattr(task, f"{part}_pos_m")
        away = [math.hypot(nominal[0] + i * xy, nominal[1] + j * xy) for i in (-1, 1) for j in (-1, 1)]
        if min(away) < REACH_M[0] or max(away) > REACH_M[1]:
            yield (
                f"{part}_xy_m of {xy} m starts the part {min(away):.2f} to {max(away):.2f} m from the robot's base",
                f"keep it between {REACH_M[0]} and {REACH_M[1]} m: narrow the range or move {part}_pos_m",
            )
    yield from _competence(task.family, task.competence_ranges)


def _competence(family: str, ranges: Mapping[str, tuple[float, float]]) -> Iterator[tuple[str, str]]:
    wanted = {field.name for field in fields(COMPETENCE[family])} if family in COMPETENCE else set(ranges)
    if wanted - set(ranges):
        yield f"competence ranges lack {', '.join(sorted(wanted - set(ranges)))}", "give a low and a high for each"
    for name, (low, high) in ranges.items():
        widest = {"_m": 0.1, "_rad": math.pi}.get(name[name.rfind("_") :], math.inf)
        if not (low <= high and max(abs(low), abs(high)) <= widest):
            yield (
                f"competence range {name} is {low} to {high}",
                "give the lower first, in the unit that the name ends with",
            )


def _check_start(task: Task, num_envs: int, seed: int) -> None:
    from pipeline.schema import FPS
    from pipeline.sim.cell import Observation, open_cell, start_poses
    from pipeline.success import Judge

    drawn = [
        draw_episode(episode_seed(seed, task.id, attempt), task.family, task.start_ranges, task.competence_ranges).start
        for attempt in range(num_envs)
    ]

    def rest(observation: Observation) -> Action:
        view, nobody = observation.view, np.zeros(num_envs, bool)
        nothing = np.full(num_envs, None, object)
        return Action(
            view.tool_pos_m, view.tool_quat_xyzw, np.zeros(num_envs), np.zeros(num_envs, int), nobody, nothing
        )

    with open_cell(task, num_envs, Engine(threads=1)) as cell:
        cell.reset(list(range(num_envs)), drawn)
        first = now = cell.observe()
        away = cell.home_distance_rad(first)
        if away.max() > HOME_TOLERANCE_RAD:
            raise finding(task.id, f"the arm starts {away.max():.2f} rad from home", "reset its joint targets as well")
        for part in ("held", "fixed"):
            put = np.array([start_poses(task, start)[part][:3] for start in drawn])
            off = np.linalg.norm(getattr(first.view, f"{part}_pos_m") - put, axis=1).max()
            if off > PLACED_M:
                raise finding(
                    task.id, f"the {part} part starts {off * 1e3:.1f} mm from its draw", "place it at its draw"
                )
        judge, action = Judge(task, num_envs), rest(first)
        judge.reset(np.arange(num_envs), first.view.held_pos_m, first.view.held_quat_xyzw)
        for _ in range(round(REST_S * FPS)):
            cell.step(action, now)
            now = cell.observe()
            now.judged_by(judge)
            if (trouble := [fault for fault in cell.faults(now) if fault]) or judge.success.any():
                found = f"the simulation reports {trouble[0]!r}" if trouble else "an untouched part counts as assembled"
                raise finding(task.id, f"{found} while nothing moves", "look at where the parts start, and the seat")
        _check_rest(task, first.view, now.view)


def _check_rest(task: Task, first: View, now: View) -> None:
    """A part may turn about its own axis: a round peg does in a stand without friction."""
    moved = np.linalg.norm(now.held_pos_m - first.held_pos_m, axis=1)
    was, is_ = (Rotation.from_quat(view.held_quat_xyzw).as_matrix()[:, :, 2] for view in (first, now))
    tilted = np.arccos(np.clip((was * is_).sum(1), -1.0, 1.0))
    if moved.max() > MOVED_M or tilted.max() > TILTED_RAD:
        found = (
            f"left alone for {REST_S:g} s the held part moved {moved.max() * 1e3:.1f} mm, tilted {tilted.max():.2f} rad"
        )
        raise finding(task.id, found, "start it at rest on something: see held_pos_m, start_ranges and the stand")
