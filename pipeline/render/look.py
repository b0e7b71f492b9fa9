"""What the cell looks like: surfaces, lights, cameras and sensor as one frozen value.

The same poses can be rendered in any look. Colours are display (sRGB) values from 0 to 1.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from pipeline.render.cameras import CAMERAS, Camera
from randomization.looks import Perturbation

RGB = tuple[float, float, float]

TILE_M = 0.04
"""Side of one tile of a part's texture."""


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
class Material:
    """How a surface reflects light.

    Attributes:
        rgb: diffuse colour; multiplied with the texture if there is one.
        specular: strength of highlights, 0 to 1.
        shininess: how tight they are, 0 to 1.
        grain: its texture, laid over the surface with a side of :data:`TILE_M`.
    """

    rgb: RGB
    specular: float = 0.2
    shininess: float = 0.3
    grain: Grain | None = None


@dataclass(frozen=True)
class Sun:
    """A directional light; ``direction`` is where it shines to, in the env's frame."""

    direction: tuple[float, float, float]
    rgb: RGB
    specular: float


@dataclass(frozen=True)
class Sensor:
    """What a camera does with light: ``gain`` times it, and noise of ``noise_levels`` of 255, drawn from ``seed``."""

    gain: float = 1.0
    noise_levels: float = 0.0
    seed: int = 0


@dataclass(frozen=True)
class Look:
    """A complete look.

    Attributes:
        parts: materials by the names that the parts' meshes carry.
        robot_range: darkest and brightest albedo of the robot, to which its source colours 0 and 1 are mapped.
        robot_specular, robot_shininess: highlights of the robot.
        table: its texture; the table is matt.
        key: the light that casts shadows, if ``shadows``.
        fill: a second light without shadows, from the other side.
        ambient: light from everywhere.
        background: colour behind the table.
        cameras: by name.
        sensor: of every camera.
        draws: what it was made from, if it was drawn.
    """

    name: str
    parts: Mapping[str, Material]
    robot_range: tuple[float, float]
    robot_specular: float
    robot_shininess: float
    table: Grain
    key: Sun
    fill: Sun
    ambient: RGB
    shadows: bool
    background: RGB
    cameras: Mapping[str, Camera]
    sensor: Sensor
    draws: Perturbation | None = None


PLAIN = Look(
    name="plain",
    parts={
        "steel": Material((0.80, 0.81, 0.84), specular=0.8, shininess=0.6),
        "brass": Material((0.78, 0.62, 0.26), specular=0.7, shininess=0.5),
        "board": Material((0.56, 0.58, 0.60), specular=0.2, shininess=0.3),
        "fix": Material((0.13, 0.38, 0.72), specular=0.2, shininess=0.3),
        "acetal": Material((0.86, 0.85, 0.81), specular=0.2, shininess=0.3),
        "stand": Material((0.30, 0.31, 0.33), specular=0.2, shininess=0.3),
    },
    robot_range=(0.19, 0.86),
    robot_specular=0.5,
    robot_shininess=0.5,
    table=Grain((0.66, 0.645, 0.615), (0.75, 0.735, 0.705), cells=(12, 12), seed=1),
    key=Sun((-0.65, 0.25, -0.95), (0.48, 0.47, 0.45), specular=0.5),
    fill=Sun((0.35, -0.6, -0.6), (0.20, 0.21, 0.23), specular=0.1),
    ambient=(0.36, 0.36, 0.37),
    shadows=True,
    background=(0.62, 0.66, 0.70),
    cameras=CAMERAS,
    sensor=Sensor(),
)
