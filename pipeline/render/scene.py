"""A task's cell as surfaces that follow the recorded bodies, for any renderer: no joints, no mass, no contact."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, lru_cache

import numpy as np
import trimesh
from scipy import ndimage

from pipeline.assets.parts import scene_parts
from pipeline.assets.robot_visuals import robot_visuals
from pipeline.render.cameras import SIZE, Size
from pipeline.render.look import TILE_M, Grain, Look, Material
from pipeline.tasks import Task, get_task

TABLE_REPEAT = (3, 4)

CREASE_RAD = 0.6
"""Edges sharper than this stay sharp; across blunter ones the shading is smooth."""

TEXTURE_PX = 512
_OCTAVES = 3


Shape = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Vertices, normals and faces of a :class:`Surface`."""


@dataclass(frozen=True)
class Surface:
    """A shaded mesh in its body's frame, metres.

    Attributes:
        vertices, normals: (V, 3) each.
        faces: (F, 3) int32.
    """

    vertices: np.ndarray
    normals: np.ndarray
    faces: np.ndarray
    material: Material

    def texture_places(self) -> np.ndarray:
        """Place in its texture of each corner of each face, (3 F, 2), in sides of a tile.

        Each face is seen from the axis that it faces most; the texture's height goes along z wherever it can.
        """
        corners = self.vertices[self.faces]
        facing = np.abs(np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])).argmax(axis=1)
        along = np.array([(1, 2), (0, 2), (0, 1)])[facing]
        return np.asarray(np.take_along_axis(corners, along[:, None], axis=2).reshape(-1, 2) / TILE_M)


@dataclass(frozen=True)
class Scene:
    """Everything that a renderer needs besides poses.

    Attributes:
        bodies: surfaces by recorded body.
        table: texture of the tabletop, (H, W, 3) uint8, laid :data:`TABLE_REPEAT` times along each side.
        look: for its lights.
        size: width and height of the pictures, pixels.
    """

    bodies: Mapping[str, tuple[Surface, ...]]
    table: np.ndarray
    look: Look
    size: Size = SIZE

    def grains(self) -> dict[Grain, np.ndarray]:
        """Textures of the parts, (H, W, 3) uint8, each once."""
        used = (surface.material.grain for surfaces in self.bodies.values() for surface in surfaces)
        return {grain: draw_grain(grain) for grain in dict.fromkeys(used) if grain is not None}


def build_scene(task: Task, look: Look, size: Size = SIZE) -> Scene:
    """Robot, parts and table of a task in a look, for pictures of a size."""
    bodies = {
        link: tuple(Surface(*shape, _robot_material(rgba, look)) for shape, rgba in meshes)
        for link, meshes in _robot_shapes().items()
    }
    for role, meshes in _part_shapes(task.id).items():
        bodies[role] = tuple(Surface(*shape, look.parts[material]) for shape, material in meshes)
    return Scene(bodies, draw_grain(look.table), look, size)


@cache
def _robot_shapes() -> dict[str, list[tuple[Shape, tuple[float, ...]]]]:
    return {
        link: [(_shade(mesh.vertices, mesh.faces), mesh.rgba) for mesh in meshes]
        for link, meshes in robot_visuals().items()
    }


@lru_cache(1)
def _part_shapes(task_id: str) -> dict[str, list[tuple[Shape, str]]]:
    return {
        role: [(_shade(mesh.vertices, mesh.faces), mesh.material) for mesh in part.visuals]
        for role, part in scene_parts(get_task(task_id)).items()
    }


def _robot_material(rgba: tuple[float, ...], look: Look) -> Material:
    low, high = look.robot_range
    r, g, b = (low + (high - low) * value for value in rgba[:3])
    return Material((r, g, b), look.robot_specular, look.robot_shininess)


def _shade(vertices: np.ndarray, faces: np.ndarray) -> Shape:
    mesh = trimesh.graph.smooth_shade(trimesh.Trimesh(vertices, faces), angle=CREASE_RAD)
    return np.asarray(mesh.vertices), np.asarray(mesh.vertex_normals), np.asarray(mesh.faces, np.int32)


def draw_grain(grain: Grain) -> np.ndarray:
    """Draw a tileable texture (TEXTURE_PX, TEXTURE_PX, 3) uint8: octaves of smoothed noise, each half as strong."""
    rng = np.random.default_rng(grain.seed)
    height = np.zeros((TEXTURE_PX, TEXTURE_PX))
    for octave in range(_OCTAVES):
        sigma = [TEXTURE_PX / cells / 2 ** (octave + 2) for cells in grain.cells]
        noise = ndimage.gaussian_filter(rng.standard_normal(height.shape), sigma, mode="wrap")
        height += noise / noise.std() / 2**octave
    blend = ((height - height.min()) / np.ptp(height))[..., None]
    return np.round(255 * (np.array(grain.dark) * (1 - blend) + np.array(grain.light) * blend)).astype(np.uint8)
