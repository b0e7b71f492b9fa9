"""Deliberate faults of the physics: controls that must not succeed."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Fault:
    """A deliberate change of the physics, for negative controls.

    Attributes:
        bore_narrowing_m: taken off the bore's width.
        pad_friction: replaces the rubber pads' friction.
        left_handed: the bolt's thread winds the other way.
        fixed_yaw_rad: replaces the drawn angle of the fixed part.
    """

    bore_narrowing_m: float = 0.0
    pad_friction: float | None = None
    left_handed: bool = False
    fixed_yaw_rad: float | None = None
