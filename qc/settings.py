"""Thresholds of quality control, all in one place."""

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Self

from qc.errors import QcError

_CHOICES = {"within": ("task", "family")}
_BELOW_ONE = (
    "false_alarm",
    "length_floor",
    "idle_speed",
    "idle_share",
    "minority_share",
    "copies_share",
    "copy_distance",
)


@dataclass(frozen=True)
class Settings:
    """Thresholds; see the filter that takes each.

    Attributes:
        false_alarm: probability that a filter flags anything in a clean task.
        seed: of the Monte Carlo cutoffs.
        points: instants at which trajectories are compared.
        within: what embedded episodes are compared with: the same ``task`` or ``family``.
        idle_rows: shortest idle streak.
        idle_speed: part of the top speed below which a joint stands still.
        idle_share: if more of a task is idle than this, the rule may be wrong and its episodes are for review.
        minority_share: if a filter finds more of a task unusual than this, that may be another good way to do it, and
            its episodes are for review.
        copies_share: if more of a task are near duplicates than this, its motion may not be recorded, and they are for
            review.
        copy_distance: largest difference between near duplicates.
        feature_min_episodes: fewer in a task are not assessed for jitter, spikes, release, end pose and phases.
        excused_before: rows before a change of the gripper's command in which a wait belongs to it.
        excused_after: rows after the fingers' last motion.
        length_min_episodes: fewer in a task are not assessed for length.
        length_floor: least deviation of length, as a part of the median.
        components: principal components wanted.
        distance_min_episodes: fewer are not assessed by Mahalanobis distance and neighbours.
    """

    false_alarm: float = 0.02
    seed: int = 0
    points: int = 32
    within: str = "task"
    idle_rows: int = 15
    idle_speed: float = 0.005
    idle_share: float = 0.5
    excused_before: int = 5
    excused_after: int = 12
    minority_share: float = 0.1
    copies_share: float = 0.5
    copy_distance: float = 0.005
    feature_min_episodes: int = 10
    length_min_episodes: int = 10
    length_floor: float = 0.03
    components: int = 9
    distance_min_episodes: int = 30

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if field.type is float and isinstance(value, int) and not isinstance(value, bool):
                object.__setattr__(self, field.name, value := float(value))
            if type(value) is not field.type:
                raise QcError(f"{field.name} = {value!r}: give a {getattr(field.type, '__name__', field.type)}")
            if field.name in _CHOICES:
                if value not in _CHOICES[field.name]:
                    raise QcError(f"{field.name} = {value!r}: give one of {', '.join(_CHOICES[field.name])}")
            elif field.name in _BELOW_ONE:
                if not 0 < value < 1:
                    raise QcError(f"{field.name} = {value!r}: give a number between 0 and 1")
            elif value < (0 if field.name in ("seed", "excused_before", "excused_after") else 2):
                raise QcError(f"{field.name} = {value!r}: too small")

    @classmethod
    def from_table(cls, table: Mapping[str, Any]) -> Self:
        """Settings from a table of a TOML file; what it does not name keeps its default.

        Raises:
            QcError: if a name is unknown or a value is of the wrong type or out of range.
        """
        known = [field.name for field in fields(cls)]
        for name in table:
            if name not in known:
                near = difflib.get_close_matches(name, known, n=1, cutoff=0.0)[0]
                raise QcError(f"unknown setting {name!r} of quality control; did you mean {near!r}?")
        return cls(**table)
