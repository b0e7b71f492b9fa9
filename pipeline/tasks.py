"""The task catalogue: fourteen assemblies of the NIST task board as data.

Lengths in metres, angles in radians, env-local frame: robot base at the origin, tabletop at z = 0.
A part's root is its base point: the centre of its underside.
"""

import difflib
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from pipeline.errors import UserError

HOME_JOINTS_RAD = (0.0, -0.6283185307179586, 0.0, -2.5132741228718345, 0.0, 1.8849555921538759, 0.0)
"""DROID home pose (0, -0.2 pi, 0, -0.8 pi, 0, 0.6 pi, 0): the tool points straight down."""

HOME_TOLERANCE_RAD = 0.2
"""Largest L2 distance over the seven joints at which an episode may start."""

PART_DROP_M = 0.05
"""A held part this far below the tabletop has been dropped for good."""


@dataclass(frozen=True)
class Seat:
    """When a part counts as assembled; every condition must hold for ``hold_steps`` control steps in a row.

    Attributes:
        offset_m: seat target from the fixed part's root, in the fixed part's frame.
        max_xy_m: largest horizontal distance of the held part's base point from the target.
        max_gap_m: largest height of the base point above the target.
        min_gap_m: lowest height (nuts may sit lower than the target).
        max_speed_m_s: largest linear speed.
        max_penetration_m: deepest contact of held and fixed part over the whole episode, and of the held part with
            anything else that is rigid after the grasp.
        max_force_n: largest force between held and fixed part over the whole episode.
        top_speed_m_s: largest linear speed of the held part over the whole episode.
        max_finger_closed: most that the fingers may be closed: the part must have been let go.
        min_upright_cos: least cosine between the part's axis and the vertical.
        min_thread_turn_rad: yaw to accumulate while engaged on the bolt (nuts).
    """

    offset_m: tuple[float, float, float]
    max_xy_m: float = 0.0025
    max_gap_m: float = 0.003
    min_gap_m: float = -0.003
    max_speed_m_s: float = 0.05
    hold_steps: int = 3
    max_penetration_m: float = 0.0005
    max_force_n: float = 60.0
    top_speed_m_s: float = 3.0
    max_finger_closed: float = 0.5
    min_upright_cos: float = 0.9
    min_thread_turn_rad: float = 0.0


@dataclass(frozen=True)
class Score:
    """Scales of the dense score.

    Attributes:
        engage_gap_m: height above the seat below which a centred part is engaged.
        depth_m: height above the seat from which depth is paid.
        thread_turns: turns that fill the threading potential; 0 for tasks without a thread.
    """

    engage_gap_m: float
    depth_m: float
    thread_turns: float = 0.0


@dataclass(frozen=True)
class Task:
    """One assembly.

    Attributes:
        id: e.g. ``peg_round_8mm``.
        family: ``peg_round``, ``peg_square``, ``gear`` or ``nut``.
        size: nominal size as in the id: millimetres for pegs and nuts, a word for gears.
        instruction: language instruction of every episode.
        held_pos_m: nominal root of the held part's stand (of the part itself where there is no stand).
        fixed_pos_m: nominal root of the fixed part.
        geometry: dimensions that the part author reads, metres unless the name says otherwise.
        start_ranges: half-width of each start-pose axis.
        competence_ranges: low and high of each axis of the expert's motion.
        refinement: how many times finer than the engine's its solver steps are.
    """

    id: str
    family: str
    size: str
    instruction: str
    held_pos_m: tuple[float, float, float]
    fixed_pos_m: tuple[float, float, float]
    geometry: Mapping[str, float]
    seat: Seat
    score: Score
    start_ranges: Mapping[str, float]
    competence_ranges: Mapping[str, tuple[float, float]]
    timeout_s: float
    mass_kg: float
    friction: float = field(default=0.5)
    refinement: int = 1

    @property
    def has_stand(self) -> bool:
        """Whether the held part starts in a presentation stand."""
        return self.family.startswith("peg")


PEG_LENGTH_M = 0.050
BORE_DEPTH_M = 0.025
BASE_THICKNESS_M = 0.005

SQUARE_DEPTH_MM = {4: 3, 8: 7, 12: 8, 16: 10}
"""Second side of the rectangular section, by the first: what makes it fit at two angles only."""

BOARD_TOP_M = 0.009
BOARD_SIZE_M = (0.30, 0.30)
"""Board that the bolt stands on in its middle, and the nut lies on."""

THREAD_REFINEMENT = {8: 3, 12: 2, 16: 2}
"""The lighter a nut, the smaller the solver steps on which its thread holds: pulled with 5 N, one of 32 nuts M8 is
flung off at 48 steps a control step, and none of M12 and M16; at 72 none of M8."""

NUT_FLATS_MM = {8: 13, 12: 18, 16: 24}

_COMMON_COMPETENCE = {
    "grasp_depth_m": (-0.0025, 0.0025),
    "hover_height_m": (0.0, 0.030),
    "lift_height_m": (-0.010, 0.020),
    "grasp_dwell_steps": (12.0, 28.0),
}


def _peg(section: str, size_mm: int) -> Task:
    square = section == "square"
    roll = 0.10 if square else 0.35
    return Task(
        id=f"peg_{section}_{size_mm}mm",
        family=f"peg_{section}",
        size=f"{size_mm}mm",
        instruction=f"pick up the {size_mm} mm {section} peg and insert it into the hole",
        held_pos_m=(0.37, -0.07, 0.0),
        fixed_pos_m=(0.37, 0.07, 0.0),
        geometry=MappingProxyType(
            {
                "width": size_mm * 1e-3,
                "depth": (SQUARE_DEPTH_MM[size_mm] if square else size_mm) * 1e-3,
                "length": PEG_LENGTH_M,
                "bore_depth": BORE_DEPTH_M,
                "base": BASE_THICKNESS_M,
                "clearance": 0.2e-3,
                "chamfer": 0.3e-3 if square else 1.0e-3,
                "stand_clearance": 0.5e-3,
            }
        ),
        seat=Seat(offset_m=(0.0, 0.0, BASE_THICKNESS_M)),
        score=Score(engage_gap_m=0.025, depth_m=BORE_DEPTH_M),
        start_ranges=MappingProxyType(
            {"held_xy_m": 0.05, "fixed_xy_m": 0.05, "fixed_yaw_rad": 0.3 if square else 0.0, "held_yaw_rad": 0.0}
        ),
        competence_ranges=MappingProxyType(
            {
                **_COMMON_COMPETENCE,
                "grasp_roll_rad": (-roll, roll),
                "grip_x_m": (-0.001, 0.001),
                "grip_y_m": (-0.001, 0.001),
            }
        ),
        timeout_s=40.0,
        mass_kg=0.019,
    )


def _gear(size: str, teeth: int, mass_kg: float, shaft_x_m: float, boss_radius_m: float, phase_rad: float) -> Task:
    return Task(
        id=f"gear_{size}",
        family="gear",
        size=size,
        instruction=f"pick up the {size} gear and mesh it onto its shaft",
        held_pos_m=(0.37, -0.07, 0.0),
        fixed_pos_m=(0.37, 0.07, 0.0),
        geometry=MappingProxyType(
            {
                "module": 2e-3,
                "teeth": teeth,
                "height": 0.025,
                "face_width": 0.010,
                "relief": 0.3e-3,
                "boss_radius": boss_radius_m,
                "thickening": 0.09e-3,
                "tooth_chamfer": 0.5e-3,
                "clearance": 0.2e-3,
                "bore_chamfer": 0.5e-3,
                "shaft_x": shaft_x_m,
                "phase_rad": phase_rad,
                "shaft_radius": 0.005,
                "shaft_height": 0.020,
                "shaft_chamfer": 1.0e-3,
                "base": BASE_THICKNESS_M,
            }
        ),
        seat=Seat(offset_m=(shaft_x_m, 0.0, BASE_THICKNESS_M)),
        score=Score(engage_gap_m=0.020, depth_m=0.020),
        start_ranges=MappingProxyType(
            {
                "held_xy_m": 0.05,
                "fixed_xy_m": 0.05,
                "fixed_yaw_rad": 0.0,
                "held_yaw_rad": math.pi / teeth,
                "nearer_m": 0.083,
            }
        ),
        competence_ranges=MappingProxyType(
            {
                **_COMMON_COMPETENCE,
                "tooth_pitch_fraction": (-0.5, 0.5),
                "grip_x_m": (-0.001, 0.001),
                "grip_y_m": (-0.001, 0.001),
                "wiggle_period_steps": (42.0, 54.0),
                "wiggle_sign": (-1.0, 1.0),
            }
        ),
        timeout_s=52.0,
        mass_kg=mass_kg,
        friction=1.0,
    )


def _nut(size_mm: int, head_m: float, shank_m: float, pitch_m: float, height_m: float, mass_kg: float) -> Task:
    roll = 0.06 if size_mm == 8 else 0.12
    grip = 0.00025 if size_mm == 8 else 0.0005
    depth = min(0.0025, height_m / 4 - 0.0007)
    return Task(
        id=f"nut_M{size_mm}",
        family="nut",
        size=f"M{size_mm}",
        instruction=f"pick up the M{size_mm} nut and thread it onto the bolt",
        held_pos_m=(0.30, 0.10, BOARD_TOP_M),
        fixed_pos_m=(0.37, 0.0, BOARD_TOP_M),
        geometry=MappingProxyType(
            {
                "major": size_mm * 1e-3,
                "pitch": pitch_m,
                "clearance": 0.1 * pitch_m,
                "head": head_m,
                "shank": shank_m,
                "height": height_m,
                "flats": NUT_FLATS_MM[size_mm] * 1e-3,
            }
        ),
        seat=Seat(
            offset_m=(0.0, 0.0, head_m + shank_m - 1.5 * pitch_m),
            max_gap_m=0.375 * pitch_m,
            min_gap_m=-1.5 * pitch_m,
            min_thread_turn_rad=0.3,
        ),
        score=Score(engage_gap_m=0.010, depth_m=0.025, thread_turns=1.5),
        start_ranges=MappingProxyType(
            {"held_xy_m": 0.03, "fixed_xy_m": 0.0, "fixed_yaw_rad": 0.0, "held_yaw_rad": 0.0}
        ),
        competence_ranges=MappingProxyType(
            {
                **_COMMON_COMPETENCE,
                "grasp_depth_m": (-depth, depth),
                "grasp_roll_rad": (-roll, roll),
                "grip_x_m": (-grip, grip),
                "grip_y_m": (-grip, grip),
                "turn_rate_rad_per_step": (0.055, 0.09),
            }
        ),
        timeout_s=120.0,
        mass_kg=mass_kg,
        friction=1.0,
        refinement=THREAD_REFINEMENT[size_mm],
    )


_ALL = (
    *(_peg("round", mm) for mm in (4, 8, 12, 16)),
    *(_peg("square", mm) for mm in (4, 8, 12, 16)),
    _gear("small", 10, 0.006, 0.05075, 0.0074, math.pi / 10),
    _gear("medium", 20, 0.012, 0.02025, 0.010, 0.0),
    _gear("large", 30, 0.025, -0.03025, 0.012, math.pi / 30),
    _nut(8, 0.008, 0.018, 1.25e-3, 0.0065, 0.005),
    _nut(12, 0.012, 0.020, 1.75e-3, 0.010, 0.016),
    _nut(16, 0.010, 0.025, 2.0e-3, 0.013, 0.033),
)

CATALOGUE: Mapping[str, Task] = MappingProxyType({task.id: task for task in _ALL})
"""Every task by id, in catalogue order."""


def get_task(task_id: str) -> Task:
    """Look a task up.

    Raises:
        UserError: if there is none of that name; the message offers the nearest.
    """
    try:
        return CATALOGUE[task_id]
    except KeyError:
        near = difflib.get_close_matches(task_id, CATALOGUE, n=1, cutoff=0.0)
        raise UserError(f"unknown task {task_id!r}; did you mean {near[0]!r}? `demomill tasks` lists all") from None
