"""Every value drawn for an episode: where it starts, and the axes of competence that a policy should learn."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np

from randomization.seeds import generator


@dataclass(frozen=True)
class StartPose:
    """Offsets of the parts from their nominal poses, env-local metres and radians about +z."""

    held_x_m: float
    held_y_m: float
    held_yaw_rad: float
    fixed_x_m: float
    fixed_y_m: float
    fixed_yaw_rad: float

    @classmethod
    def sample(cls, rng: np.random.Generator, ranges: Mapping[str, float]) -> "StartPose":
        """Uniform in +-``ranges`` (``held_xy_m``, ``held_yaw_rad``, ``fixed_xy_m``, ``fixed_yaw_rad``)."""
        unit = rng.uniform(-1.0, 1.0, 6)
        half = [
            ranges[k] for k in ("held_xy_m", "held_xy_m", "held_yaw_rad", "fixed_xy_m", "fixed_xy_m", "fixed_yaw_rad")
        ]
        return cls(*(float(u * h) for u, h in zip(unit, half, strict=True)))


@dataclass(frozen=True)
class PegCompetence:
    """How this episode's peg expert moves.

    Attributes:
        grasp_roll_rad: wrist angle about the approach axis, from the nearest upright grasp.
        grasp_depth_m: height of the grasp along the shaft, from the nominal one.
        grip_x_m, grip_y_m: where the fingers close, from the shaft's axis.
        hover_height_m: added to the height of the first way point.
        lift_height_m: added to the height of transport.
        grasp_dwell_steps: control steps that the fingers are given to close.
    """

    grasp_roll_rad: float
    grasp_depth_m: float
    grip_x_m: float
    grip_y_m: float
    hover_height_m: float
    lift_height_m: float
    grasp_dwell_steps: int

    @classmethod
    def sample(cls, rng: np.random.Generator, ranges: Mapping[str, tuple[float, float]]) -> "PegCompetence":
        """Uniform in ``ranges``, axis by axis in the order of the fields."""
        drawn = {f.name: float(rng.uniform(*ranges[f.name])) for f in fields(cls)}
        return cls(**{**drawn, "grasp_dwell_steps": round(drawn["grasp_dwell_steps"])})  # type: ignore[arg-type]


@dataclass(frozen=True)
class Draws:
    """All draws of one episode."""

    start: StartPose
    competence: PegCompetence

    def to_dict(self) -> dict[str, Any]:
        """Plain nested dictionary, as stored with the episode."""
        return asdict(self)


COMPETENCE = {"peg_round": PegCompetence, "peg_square": PegCompetence}
"""Competence axes of each family that has an expert."""


def draw_episode(
    seed: int,
    family: str,
    start_ranges: Mapping[str, float],
    competence_ranges: Mapping[str, tuple[float, float]],
) -> Draws:
    """Draw an episode from its seed.

    Args:
        seed: from :func:`randomization.seeds.episode_seed`.
        family: key of :data:`COMPETENCE`.
        start_ranges: half-widths of the start pose's axes.
        competence_ranges: low and high of each competence axis.
    """
    return Draws(
        start=StartPose.sample(generator(seed, "start"), start_ranges),
        competence=COMPETENCE[family].sample(generator(seed, "competence"), competence_ranges),
    )
