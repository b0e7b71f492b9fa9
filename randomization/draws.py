"""Every value drawn for an episode: where it starts, and the axes of competence that a policy should learn."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from randomization.seeds import generator
from randomization.uniform import draw_uniform


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
        """Uniform in +-``ranges`` (``held_xy_m``, ``held_yaw_rad``, ``fixed_xy_m``, ``fixed_yaw_rad``).

        Where ``ranges`` has ``nearer_m``, all are drawn anew until the parts come at most that much nearer along y.
        """
        half = [
            ranges[k] for k in ("held_xy_m", "held_xy_m", "held_yaw_rad", "fixed_xy_m", "fixed_xy_m", "fixed_yaw_rad")
        ]
        while True:
            drawn = cls(*(float(u * h) for u, h in zip(rng.uniform(-1.0, 1.0, 6), half, strict=True)))
            if drawn.held_y_m - drawn.fixed_y_m <= ranges.get("nearer_m", np.inf):
                return drawn


@dataclass(frozen=True)
class Competence:
    """How this episode's expert moves: what every family has in common.

    Attributes:
        grasp_depth_m: height of the grasp, from the nominal one.
        grip_x_m, grip_y_m: where the fingers close, from the part's axis, along and across the wrist.
        hover_height_m: added to the height of the first way point.
        lift_height_m: added to the height of transport.
        grasp_dwell_steps: control steps that the fingers are given to close.
    """

    grasp_depth_m: float
    grip_x_m: float
    grip_y_m: float
    hover_height_m: float
    lift_height_m: float
    grasp_dwell_steps: int


@dataclass(frozen=True)
class PegCompetence(Competence):
    """Of a peg expert.

    Attributes:
        grasp_roll_rad: wrist angle about the approach axis, from the nearest upright grasp.
    """

    grasp_roll_rad: float


@dataclass(frozen=True)
class GearCompetence(Competence):
    """Of a gear expert.

    Attributes:
        tooth_pitch_fraction: wrist angle of the grasp, from the nearest upright one, in tooth pitches.
        wiggle_period_steps: control steps of one sweep to and fro in search of the teeth.
        wiggle_sign: which way it sweeps first: the sign counts.
    """

    tooth_pitch_fraction: float
    wiggle_period_steps: float
    wiggle_sign: float


@dataclass(frozen=True)
class NutCompetence(Competence):
    """Of a nut expert.

    Attributes:
        grasp_roll_rad: wrist angle about the approach axis, from square on the flats.
        turn_rate_rad_per_step: speed of a stroke.
    """

    grasp_roll_rad: float
    turn_rate_rad_per_step: float


@dataclass(frozen=True)
class Draws:
    """All draws of one episode."""

    start: StartPose
    competence: Competence

    def to_dict(self) -> dict[str, Any]:
        """Plain nested dictionary, as stored with the episode."""
        return asdict(self)


COMPETENCE: Mapping[str, type[Competence]] = {
    "peg_round": PegCompetence,
    "peg_square": PegCompetence,
    "gear": GearCompetence,
    "nut": NutCompetence,
}
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
        competence=draw_uniform(COMPETENCE[family], generator(seed, "competence"), competence_ranges),
    )
