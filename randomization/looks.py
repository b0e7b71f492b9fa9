"""Perturbation axes: how one physical episode is lit, coloured and filmed. They never touch what happens in it.

The ranges of the cameras stay close to how DROID's rigs are mounted: a camera that was put up by hand, within a few
centimetres and degrees of where it belongs, with a lens that is focused by hand.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from randomization.seeds import generator
from randomization.uniform import draw_uniform


@dataclass(frozen=True)
class Perturbation:
    """Draws of one look of one episode; gains multiply what the plain look has.

    Attributes:
        sun_azimuth_rad: turn of both lights about the vertical.
        sun_elevation_rad: of the light that casts shadows, above the horizon.
        sun_gain, fill_gain, ambient_gain: strengths of the lights; a look has a least ambient light besides.
        warmth: colour of the light, from -1 (shade) through 0 to 1 (tungsten).
        shade: shadows are cast where it is positive.
        table_hue, table_saturation, table_value: mean colour of the tabletop, HSV.
        table_contrast: difference of value between its darkest and brightest spots.
        table_cells_x, table_cells_y: how many features its texture has along either side: wood where they differ.
        part_hue: turn of the hue of coloured parts (fixtures, stands, boards), as a fraction of a circle.
        part_gain, metal_gain, robot_gain: brightness of coloured parts, of metal, and of the robot.
        metal_contrast, plastic_contrast: how much darker the darkest spots of metal and of other parts are.
        metal_cells_x, metal_cells_y, plastic_cells_x, plastic_cells_y: how many features their textures have along
            either side: brushed or turned metal and printed layers where they differ, cast or moulded where not.
        gloss_gain: strength of highlights.
        background_value: brightness of what lies behind the table.
        eye_x_m, eye_y_m, eye_z_m, aim_x_m, aim_y_m: shifts of a fixed camera, and of the point that it looks at.
        mount_x_m, mount_y_m, mount_z_m: shifts of the camera on the gripper.
        mount_roll_rad, mount_pitch_rad, mount_yaw_rad: turns of it about its own axes z, x and y.
        focal_gain: focal length.
        exposure_gain: brightness of the picture.
        noise_levels: standard deviation of the sensor's noise, of 255 levels.
    """

    sun_azimuth_rad: float
    sun_elevation_rad: float
    sun_gain: float
    fill_gain: float
    ambient_gain: float
    warmth: float
    shade: float
    table_hue: float
    table_saturation: float
    table_value: float
    table_contrast: float
    table_cells_x: int
    table_cells_y: int
    part_hue: float
    part_gain: float
    metal_gain: float
    robot_gain: float
    metal_contrast: float
    metal_cells_x: int
    metal_cells_y: int
    plastic_contrast: float
    plastic_cells_x: int
    plastic_cells_y: int
    gloss_gain: float
    background_value: float
    eye_x_m: float
    eye_y_m: float
    eye_z_m: float
    aim_x_m: float
    aim_y_m: float
    mount_x_m: float
    mount_y_m: float
    mount_z_m: float
    mount_roll_rad: float
    mount_pitch_rad: float
    mount_yaw_rad: float
    focal_gain: float
    exposure_gain: float
    noise_levels: float


Ranges = Mapping[str, tuple[float, float]]

_WORKSHOP: Ranges = MappingProxyType(
    {
        "sun_azimuth_rad": (-0.6, 0.6),
        "sun_elevation_rad": (0.75, 1.25),
        "sun_gain": (0.8, 1.15),
        "fill_gain": (0.6, 1.2),
        "ambient_gain": (0.8, 1.1),
        "warmth": (0.1, 0.6),
        "shade": (1.0, 1.0),
        "table_hue": (0.06, 0.10),
        "table_saturation": (0.25, 0.50),
        "table_value": (0.45, 0.72),
        "table_contrast": (0.08, 0.22),
        "table_cells_x": (2.0, 3.0),
        "table_cells_y": (14.0, 30.0),
        "part_hue": (-0.04, 0.04),
        "part_gain": (0.85, 1.15),
        "metal_gain": (0.85, 1.05),
        "robot_gain": (0.9, 1.05),
        "metal_contrast": (0.10, 0.30),
        "metal_cells_x": (1.0, 2.0),
        "metal_cells_y": (6.0, 16.0),
        "plastic_contrast": (0.05, 0.25),
        "plastic_cells_x": (1.0, 2.0),
        "plastic_cells_y": (6.0, 16.0),
        "gloss_gain": (0.6, 1.2),
        "background_value": (0.25, 0.55),
        "eye_x_m": (-0.01, 0.01),
        "eye_y_m": (-0.01, 0.01),
        "eye_z_m": (-0.01, 0.01),
        "aim_x_m": (-0.005, 0.005),
        "aim_y_m": (-0.005, 0.005),
        "mount_x_m": (-0.001, 0.001),
        "mount_y_m": (-0.001, 0.001),
        "mount_z_m": (-0.001, 0.001),
        "mount_roll_rad": (-0.01, 0.01),
        "mount_pitch_rad": (-0.01, 0.01),
        "mount_yaw_rad": (-0.01, 0.01),
        "focal_gain": (0.99, 1.01),
        "exposure_gain": (0.92, 1.08),
        "noise_levels": (0.5, 1.5),
    }
)

_VARIED: Ranges = MappingProxyType(
    {
        **_WORKSHOP,
        "sun_azimuth_rad": (-math.pi, math.pi),
        "sun_elevation_rad": (0.55, 1.45),
        "sun_gain": (0.65, 1.35),
        "fill_gain": (0.6, 1.6),
        "ambient_gain": (0.8, 1.25),
        "warmth": (-0.7, 0.9),
        "shade": (-0.25, 1.0),
        "table_hue": (0.0, 1.0),
        "table_saturation": (0.1, 0.45),
        "table_value": (0.25, 0.85),
        "table_contrast": (0.02, 0.30),
        "table_cells_x": (2.0, 40.0),
        "table_cells_y": (2.0, 40.0),
        "part_hue": (-0.5, 0.5),
        "part_gain": (0.75, 1.3),
        "metal_gain": (0.9, 1.1),
        "robot_gain": (0.75, 1.1),
        "metal_contrast": (0.0, 0.35),
        "metal_cells_x": (1.0, 16.0),
        "metal_cells_y": (1.0, 16.0),
        "plastic_contrast": (0.0, 0.5),
        "plastic_cells_x": (1.0, 16.0),
        "plastic_cells_y": (1.0, 16.0),
        "gloss_gain": (0.2, 1.5),
        "background_value": (0.1, 0.9),
        "eye_x_m": (-0.03, 0.03),
        "eye_y_m": (-0.05, 0.05),
        "eye_z_m": (-0.02, 0.05),
        "aim_x_m": (-0.01, 0.015),
        "aim_y_m": (-0.015, 0.015),
        "mount_x_m": (-0.003, 0.003),
        "mount_y_m": (-0.003, 0.003),
        "mount_z_m": (-0.003, 0.003),
        "mount_roll_rad": (-0.03, 0.03),
        "mount_pitch_rad": (-0.03, 0.03),
        "mount_yaw_rad": (-0.03, 0.03),
        "focal_gain": (0.98, 1.03),
        "exposure_gain": (0.75, 1.2),
        "noise_levels": (0.0, 3.0),
    }
)

PRESETS: Mapping[str, Ranges] = MappingProxyType({"workshop": _WORKSHOP, "varied": _VARIED})
"""Ranges of every axis by preset. The preset ``plain`` draws nothing."""


def draw_perturbation(seed: int, preset: str, number: int) -> Perturbation:
    """Draw a look of an episode from the episode's seed.

    Args:
        seed: from :func:`randomization.seeds.episode_seed`.
        preset: key of :data:`PRESETS`.
        number: which of the episode's looks in that preset.
    """
    return draw_uniform(Perturbation, generator(seed, f"look/{preset}/{number}"), PRESETS[preset])
