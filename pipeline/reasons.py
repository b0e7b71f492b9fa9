"""Why an attempt can fail: a closed set of names for each task, so that they can be counted and compared."""

from experts import EXPERTS
from experts.contract import Assembly, Expert, Handicap
from pipeline.tasks import Task

LIMITS = ("penetration_over_limit", "force_over_limit", "speed_over_limit")
"""The part reached its seat, but a limit of :class:`pipeline.tasks.Seat` was broken on the way."""

JUDGED = ("dropped", "not_seated", "time_out", *LIMITS)
"""Found by the recorder in any task, whatever its expert; the episode names the phase in which it happened."""

PHYSICS = (
    "not_finite",
    "diverged",
    "left_the_cell",
    "contact_overflow",
    "constraint_overflow",
    "singular_inertia",
    "bad_position",
    "bad_velocity",
    "bad_acceleration",
)
"""The simulation cannot be trusted: what the engine's warnings and the checks after each control step are called."""


def make_expert(task: Task, num_envs: int, handicap: Handicap | None = None) -> Expert:
    """The expert of a task's family.

    Raises:
        KeyError: if it has none.
    """
    return EXPERTS[task.family](num_envs, Assembly(task.geometry, task.seat.offset_m), handicap or Handicap())


def failure_reasons(expert: Expert | None) -> tuple[str, ...]:
    """Every reason that an episode of this expert can have; without an expert, what any episode can have."""
    named = () if expert is None else expert.failures
    return tuple(dict.fromkeys((*named, *JUDGED, *PHYSICS)))
