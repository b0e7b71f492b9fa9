"""What the cell looks like: surfaces, lights and background as one frozen value.

The same poses can be rendered in any look. Colours are display (sRGB) values from 0 to 1.
"""

import difflib
from collections.abc import Mapping
from dataclasses import dataclass

from pipeline.errors import UserError

RGB = tuple[float, float, float]


@dataclass(frozen=True)
class Material:
    """How a surface reflects light.

    Attributes:
        rgb: diffuse colour; multiplied with the texture if there is one.
        specular: strength of highlights, 0 to 1.
        shininess: how tight they are, 0 to 1.
    """

    rgb: RGB
    specular: float = 0.2
    shininess: float = 0.3


@dataclass(frozen=True)
class Grain:
    """A texture drawn as smooth noise between two colours.

    Attributes:
        dark, light: the two ends.
        cells: size of the noise's coarsest features, as their number along the texture's (height, width).
        seed: of the draw.
    """

    dark: RGB
    light: RGB
    cells: tuple[int, int]
    seed: int


@dataclass(frozen=True)
class Sun:
    """A directional light; ``direction`` is where it shines to, in the env's frame."""

    direction: tuple[float, float, float]
    rgb: RGB
    specular: float


@dataclass(frozen=True)
class Look:
    """A complete look.

    Attributes:
        parts: materials by the names that the parts' meshes carry.
        robot_range: darkest and brightest albedo of the robot, to which its source colours 0 and 1 are mapped.
        robot_specular, robot_shininess: highlights of the robot.
        table, wall, floor: textures; their highlights are off.
        key: the light that casts shadows.
        fill: a second light without shadows, from the other side.
        ambient: light from everywhere.
    """

    name: str
    parts: Mapping[str, Material]
    robot_range: tuple[float, float]
    robot_specular: float
    robot_shininess: float
    table: Grain
    wall: Grain
    floor: Grain
    key: Sun
    fill: Sun
    ambient: RGB


PLAIN = Look(
    name="plain",
    parts={
        "steel": Material((0.72, 0.73, 0.76), specular=0.9, shininess=0.7),
        "fix": Material((0.16, 0.36, 0.66), specular=0.3, shininess=0.4),
        "stand": Material((0.27, 0.28, 0.30), specular=0.2, shininess=0.3),
    },
    robot_range=(0.10, 0.93),
    robot_specular=0.4,
    robot_shininess=0.4,
    table=Grain((0.66, 0.64, 0.60), (0.79, 0.77, 0.73), cells=(24, 24), seed=1),
    wall=Grain((0.74, 0.76, 0.78), (0.84, 0.85, 0.86), cells=(3, 3), seed=2),
    floor=Grain((0.36, 0.37, 0.38), (0.46, 0.46, 0.46), cells=(12, 12), seed=3),
    key=Sun((-0.45, 0.45, -1.1), (0.46, 0.46, 0.45), specular=0.4),
    fill=Sun((0.1, -0.8, -0.6), (0.18, 0.19, 0.21), specular=0.05),
    ambient=(0.32, 0.32, 0.33),
)

LOOKS: Mapping[str, Look] = {PLAIN.name: PLAIN}


def get_look(name: str) -> Look:
    """Look by name.

    Raises:
        UserError: for a name that is not in :data:`LOOKS`.
    """
    if name in LOOKS:
        return LOOKS[name]
    near = difflib.get_close_matches(name, LOOKS, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else f"; there is: {', '.join(LOOKS)}"
    raise UserError(f"unknown look {name!r}{hint}")
