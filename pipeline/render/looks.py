"""Looks by name: ``plain``, the same for all, and presets that are drawn for each episode, ``varied-0`` and so on."""

import colorsys
import difflib
from collections.abc import Mapping

import numpy as np
from scipy.spatial.transform import Rotation

from pipeline.errors import UserError
from pipeline.render.cameras import EYES, FOVY_RAD, WRIST, Camera, looking_at
from pipeline.render.look import PLAIN, RGB, Grain, Look, Material, Sensor, Sun
from randomization.looks import PRESETS, Perturbation, draw_perturbation
from randomization.seeds import generator

BRIGHTEST = 0.92
"""Level of the brightest channel of the sunlit table above which lights are dimmed, as a camera's iris would."""

DARKEST = 0.46
"""Light in full shadow, times exposure, below which that from everywhere is raised; the plain look has 0.51."""

METALS = ("steel", "brass")
FILL_COSINE = float(-PLAIN.fill.direction[2] / np.linalg.norm(PLAIN.fill.direction))
HEADLIGHT = 0.15
"""What the lamp at the camera adds, at most."""

TUNGSTEN, SHADE = np.array([1.12, 1.0, 0.80]), np.array([0.90, 1.0, 1.14])
"""Colour of light at warmth 1 and -1, relative to the plain look's."""


def look_names(preset: str, looks_per_episode: int = 1) -> tuple[str, ...]:
    """Names of the looks of an episode in a preset.

    Raises:
        UserError: for an unknown preset, or several looks in one that does not vary.
    """
    known = (PLAIN.name, *PRESETS)
    if preset not in known:
        near = difflib.get_close_matches(preset, known, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else f"; there is: {', '.join(known)}"
        raise UserError(f"unknown look {preset!r}{hint}")
    if looks_per_episode < 1:
        raise UserError(f"looks per episode is {looks_per_episode}; it must be at least 1")
    if preset == PLAIN.name:
        if looks_per_episode > 1:
            raise UserError(f"the look {preset!r} does not vary: ask for one, or for {' or '.join(PRESETS)}")
        return (preset,)
    return tuple(f"{preset}-{number}" for number in range(looks_per_episode))


def look_of(name: str, seed: int) -> Look:
    """Look of an episode.

    Args:
        name: one of :func:`look_names`.
        seed: the episode's.
    """
    if name == PLAIN.name:
        return PLAIN
    preset, _, number = name.rpartition("-")
    return perturb(name, draw_perturbation(seed, preset, int(number)), seed)


def perturb(name: str, p: Perturbation, seed: int) -> Look:
    """The plain look with a perturbation; ``seed`` is that of textures and noise."""
    light = 1.0 + abs(p.warmth) * ((TUNGSTEN if p.warmth > 0 else SHADE) - 1.0)
    turn = Rotation.from_euler("z", p.sun_azimuth_rad)
    x, y, _ = PLAIN.key.direction
    sunk = np.array([x, y, 0.0]) / np.hypot(x, y) * np.cos(p.sun_elevation_rad) - (0, 0, np.sin(p.sun_elevation_rad))
    table_seed, metal_seed, plastic_seed = generator(seed, f"texture/{name}").integers(2**31, size=3).tolist()
    table = _table(p, table_seed)
    metal = _relief(p.metal_contrast, (p.metal_cells_y, p.metal_cells_x), metal_seed)
    plastic = _relief(p.plastic_contrast, (p.plastic_cells_y, p.plastic_cells_x), plastic_seed)
    key = np.array(PLAIN.key.rgb) * light * p.sun_gain
    fill = np.array(PLAIN.fill.rgb) * light * p.fill_gain
    plain = np.array(PLAIN.ambient)
    ambient = plain * light * max(p.ambient_gain, (DARKEST / p.exposure_gain - HEADLIGHT) / plain.mean())
    lit = ambient + key * np.sin(p.sun_elevation_rad) + fill * FILL_COSINE + HEADLIGHT
    dim = min(1.0, BRIGHTEST / float((lit * table.light).max() * max(p.exposure_gain, 1.0)))
    low, high = PLAIN.robot_range
    return Look(
        name=name,
        parts={
            part: _repainted(material, p, metal, p.metal_gain)
            if part in METALS
            else _repainted(material, p, plastic, p.part_gain, p.part_hue)
            for part, material in PLAIN.parts.items()
        },
        robot_range=(low * p.robot_gain, min(high * p.robot_gain, 1.0)),
        robot_specular=min(PLAIN.robot_specular * p.gloss_gain, 1.0),
        robot_shininess=PLAIN.robot_shininess,
        table=table,
        key=Sun(_vector(turn.apply(sunk)), _rgb(key * dim), PLAIN.key.specular),
        fill=Sun(_vector(turn.apply(PLAIN.fill.direction)), _rgb(fill * dim), 0.1),
        ambient=_rgb(ambient * dim),
        shadows=p.shade > 0,
        background=_rgb(np.full(3, p.background_value) * light),
        cameras=_cameras(p),
        sensor=Sensor(p.exposure_gain, p.noise_levels, int(generator(seed, f"sensor/{name}").integers(2**31))),
        draws=p,
    )


def _repainted(material: Material, p: Perturbation, grain: Grain, gain: float, turn: float = 0.0) -> Material:
    """A part's material with a texture; as bright on average as ``gain`` says."""
    hue, saturation, value = colorsys.rgb_to_hsv(*material.rgb)
    value = min(value * gain * 2 / (grain.dark[0] + grain.light[0]), 0.95)
    rgb = _rgb(np.array(colorsys.hsv_to_rgb((hue + turn) % 1.0, saturation, value)))
    return Material(rgb, min(material.specular * p.gloss_gain, 1.0), material.shininess, grain)


def _relief(contrast: float, cells: tuple[int, int], seed: int) -> Grain:
    return Grain((1.0 - contrast,) * 3, (1.0, 1.0, 1.0), cells, seed)


def _table(p: Perturbation, seed: int) -> Grain:
    values = np.clip(p.table_value + np.array([-0.5, 0.5]) * p.table_contrast, 0.03, 0.95)
    dark, light = (_rgb(np.array(colorsys.hsv_to_rgb(p.table_hue, p.table_saturation, v))) for v in values)
    return Grain(dark, light, (p.table_cells_x, p.table_cells_y), seed)


def _cameras(p: Perturbation) -> Mapping[str, Camera]:
    fovy = float(2 * np.arctan(np.tan(FOVY_RAD / 2) / p.focal_gain))
    shift, aim = np.array([p.eye_x_m, p.eye_y_m, p.eye_z_m]), np.array([p.aim_x_m, p.aim_y_m, 0.0])
    fixed = {
        name: looking_at(_vector(np.add(eye, shift)), _vector(np.add(target, aim)), fovy)
        for name, (eye, target) in EYES.items()
    }
    turned = Rotation.from_quat(WRIST.quat_xyzw) * Rotation.from_euler(
        "zxy", [p.mount_roll_rad, p.mount_pitch_rad, p.mount_yaw_rad]
    )
    x, y, z, w = turned.as_quat().tolist()
    mount = _vector(np.add(WRIST.pos_m, (p.mount_x_m, p.mount_y_m, p.mount_z_m)))
    return {**fixed, "wrist": Camera(WRIST.body, mount, (x, y, z, w), fovy)}


def _vector(values: np.ndarray) -> tuple[float, float, float]:
    x, y, z = np.asarray(values, float).tolist()
    return x, y, z


def _rgb(values: np.ndarray) -> RGB:
    return _vector(np.clip(values, 0.0, 1.0))
