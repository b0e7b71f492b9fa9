"""Check an expert: does it keep its contract, is it repeatable, can it succeed, and does it fail where it must?"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from experts.contract import Action, Assembly, Expert, Handicap, View
from pipeline.checks.findings import finding
from pipeline.checks.process import in_own_process
from pipeline.checks.witness import Witness
from pipeline.engine import Engine
from pipeline.faults import Fault
from pipeline.schema import FPS
from pipeline.tasks import HOME_JOINTS_RAD, Task
from randomization.draws import draw_episode
from randomization.seeds import episode_seed

Factory = Callable[[int, Assembly, Handicap], Expert]

SEAT_ERROR_M = 0.004
BORE_NARROWING_M = 0.0004

HOME_TOOL_M = (0.43, 0.0, 0.37)
"""About where the tool centre is while the arm is at home."""


@dataclass(frozen=True)
class Attempt:
    """What became of an attempt: its number, content hash, outcome, named reason, phase of failure, rows."""

    number: int
    content: str
    outcome: str
    reason: str | None
    phase: str | None
    length: int


def check_expert(factory: Factory, task: Task, *, episodes: int = 4, seed: int = 0) -> None:
    """Check an expert at a task: on a view that never changes, then in the simulator.

    1. It keeps its contract (:mod:`experts.contract`): shapes, finite targets in metres, unit quaternions, listed
       phases and failures, and it does not write to the view.
    2. The same view gives the same action, whatever the number of envs.
    3. Where nothing moves it gives up, with a named failure, before the task's time-out.
    4. In the simulator some attempt succeeds, and none is longer than the time-out.
    5. The same seeds in half as many envs give the same episodes, by their content hashes.
    6. Nothing succeeds with frictionless pads, with the seat told 4 mm off, or (where there is a bore) with the bore
       0.4 mm narrower.

    Args:
        factory: called as ``factory(num_envs, assembly, handicap)``, as those of :data:`experts.EXPERTS`; another
            process must be able to import it, so it is no lambda.
        task: its family must have competence axes and parts.
        episodes: attempts of each kind, as many envs at a time.
        seed: of the attempts.

    Raises:
        CheckFailed: names the task, what was found, and what to do.
    """
    _check_alone(factory, task, seed)
    first, told_off = in_own_process(
        _attempt, task, factory, episodes, episodes, seed, Fault(), (Handicap(), _TOLD_OFF)
    )
    _check_success(task, first)
    (again,) = in_own_process(_attempt, task, factory, max(1, episodes // 2), episodes, seed, Fault(), (Handicap(),))
    _check_repeatable(task, first, again)
    _check_fails(task, told_off, f"although it was told that the seat is {SEAT_ERROR_M * 1e3:g} mm off")
    for fault, control in _faults(task):
        (attempts,) = in_own_process(_attempt, task, factory, episodes, episodes, seed, fault, (Handicap(),))
        _check_fails(task, attempts, control)


_TOLD_OFF = Handicap(seat_error_m=(SEAT_ERROR_M, 0.0))


def _faults(task: Task) -> list[tuple[Fault, str]]:
    faults = [(Fault(pad_friction=0.0), "with frictionless pads")]
    if "clearance" in task.geometry:
        narrow = Fault(bore_narrowing_m=BORE_NARROWING_M)
        faults.append((narrow, f"with a bore {BORE_NARROWING_M * 1e3:g} mm narrower"))
    return faults


def _attempt(
    task: Task,
    factory: Factory,
    num_envs: int,
    episodes: int,
    seed: int,
    fault: Fault,
    handicaps: Sequence[Handicap],
) -> list[list[Attempt]]:
    """Record attempts in one simulator, once for each handicap."""
    from pipeline.sim.cell import open_cell
    from pipeline.sim.recorder import record
    from pipeline.store import Episode

    engine, made = Engine(threads=1), []
    with open_cell(task, num_envs, engine, fault) as cell:
        for handicap in handicaps:
            found: list[Episode] = []
            expert = Witness(task.id, factory(num_envs, _assembly(task), handicap), num_envs)
            record(cell, expert, engine, seed, range(episodes), found.append)
            made.append(
                [
                    Attempt(e.attempt, e.content_hash(), e.outcome, e.reason, e.failed_phase, e.length)
                    for e in sorted(found, key=lambda e: e.attempt)
                ]
            )
    return made


def _check_success(task: Task, attempts: Sequence[Attempt]) -> None:
    longest = max(attempt.length for attempt in attempts)
    if longest > round(task.timeout_s * FPS):
        raise finding(task.id, f"an attempt took {longest} steps", f"end it within {task.timeout_s:g} s")
    if all(attempt.outcome != "success" for attempt in attempts):
        why = ", ".join(sorted({f"{attempt.reason} in phase {attempt.phase!r}" for attempt in attempts}))
        raise finding(task.id, f"none of {len(attempts)} attempts succeeds ({why})", "compare the seat with the parts")


def _check_repeatable(task: Task, first: Sequence[Attempt], again: Sequence[Attempt]) -> None:
    for one, other in zip(first, again, strict=True):
        if one.content != other.content:
            raise finding(
                task.id,
                f"attempt {one.number} differs when repeated in another env ({one.length} and {other.length} rows)",
                "draw from the episode's draws alone, and keep envs apart",
            )


def _check_fails(task: Task, attempts: Sequence[Attempt], control: str) -> None:
    wins = sum(attempt.outcome == "success" for attempt in attempts)
    if wins:
        found = f"{wins} of {len(attempts)} attempts succeed {control}"
        raise finding(task.id, found, "the geometry or the seat's tolerances are too kind: find which")


def _check_alone(factory: Factory, task: Task, seed: int) -> None:
    """Without a simulator: several envs, each alone, and a repetition see the same view for as long as the time-out."""
    envs, limit = 3, round(task.timeout_s * FPS)
    draws = [
        draw_episode(episode_seed(seed, task.id, number), task.family, task.start_ranges, task.competence_ranges)
        for number in range(envs)
    ]
    view = _still_view(task, envs)
    together, again = (Witness(task.id, factory(envs, _assembly(task), Handicap()), envs) for _ in range(2))
    single = Witness(task.id, factory(1, _assembly(task), Handicap()), 1)
    for expert in (together, again):
        expert.reset(view, draws, range(envs))
    single.reset(_still_view(task, 1), draws[:1], [0])
    over = np.zeros(envs, bool)
    for step in range(limit):
        action = together.act(view)
        for other, whose in ((again.act(view), "repeated"), (single.act(_still_view(task, 1)), "asked for one env")):
            _check_same(task, action, other, f"at step {step}, {whose}")
        over |= action.done | np.array([failure is not None for failure in action.failure])
        if over.all():
            break
    if not over.all():
        phase = together.phases[int(action.phase[int(np.argmin(over))])]
        raise finding(
            task.id,
            f"where nothing moves the expert goes on in phase {phase!r} beyond the time-out of {task.timeout_s:g} s",
            "give every phase a time-out that names its failure",
        )


def _check_same(task: Task, action: Action, other: Action, when: str) -> None:
    for name in ("tool_pos_m", "tool_quat_xyzw", "grip", "phase"):
        theirs = getattr(other, name)
        if not np.array_equal(getattr(action, name)[: len(theirs)], theirs):
            raise finding(task.id, f"action.{name} differs {when}", "draw from the episode's draws alone, env by env")


def _still_view(task: Task, envs: int) -> View:
    """The arm at home, the parts at their nominal poses, nothing touched."""

    def tile(*values: float) -> np.ndarray:
        return np.tile(np.array(values, float), (envs, 1))

    return View(
        held_pos_m=tile(*task.held_pos_m),
        held_quat_xyzw=tile(0, 0, 0, 1),
        held_vel_m_s=tile(0, 0, 0),
        fixed_pos_m=tile(*task.fixed_pos_m),
        fixed_quat_xyzw=tile(0, 0, 0, 1),
        tool_pos_m=tile(*HOME_TOOL_M),
        tool_quat_xyzw=tile(1, 0, 0, 0),
        joint_pos_rad=tile(*HOME_JOINTS_RAD),
        joint_vel_rad_s=tile(*[0] * 7),
        jacobian=np.zeros((envs, 6, 7)),
        finger_closed=np.zeros(envs),
        wrist_wrench=tile(*[0] * 6),
        pad_force_n=tile(0, 0),
        contact_force_n=np.zeros(envs),
    )


def _assembly(task: Task) -> Assembly:
    return Assembly(task.geometry, task.seat.offset_m)
