"""What a camera sees of the robot: the source model's visual meshes, decimated to a face budget and cached.

Colours are the source model's. Mass and inertia never come from here.
"""

import hashlib
import os
import shutil
import tempfile
import threading
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import distribution
from pathlib import Path

import fast_simplification
import mujoco
import numpy as np
import trimesh

from pipeline.assets.cache import cache_dir
from pipeline.assets.robot import SOURCE_PACKAGE, source_licences, source_mjcf
from pipeline.store import canonical_json

LINK_FACES = {"link0": 1100, "link5": 700, "link6": 1100, "link7": 900, "base_mount": 800, "base": 2800}
"""Largest number of faces of the links that are near a camera or finely shaped."""

OTHER_FACES = 350
"""Largest number of faces of any other link."""

WELD_M = 0.0004
"""Grid on which vertices are welded where screw holes and slivers stop the edge collapse above the budget."""

COLLAPSE_SCALE = 1000.0
"""The edge collapse has absolute error thresholds that suit a mesh in millimetres."""

_COLLAPSING = threading.Lock()
"""The edge collapse keeps its mesh in global variables."""

_VISUAL_GROUP = 2
_FEWEST_FACES = 200


@dataclass(frozen=True)
class VisualMesh:
    """Triangles in a link's frame.

    Attributes:
        vertices: (V, 3) metres, float64.
        faces: (F, 3) int32, counter-clockwise seen from outside.
        rgba: display colour, 0 to 1.
    """

    vertices: np.ndarray
    faces: np.ndarray
    rgba: tuple[float, ...]


@cache
def robot_visuals() -> Mapping[str, tuple[VisualMesh, ...]]:
    """Meshes of every link that has any, one a colour; built on first use, then read from the cache folder."""
    version = distribution(SOURCE_PACKAGE).version
    tool = distribution("fast-simplification").version
    settings = canonical_json([LINK_FACES, OTHER_FACES, _FEWEST_FACES, WELD_M, COLLAPSE_SCALE, tool])
    key = f"{SOURCE_PACKAGE}-{version}-{hashlib.sha256(settings.encode()).hexdigest()[:16]}"
    folder = cache_dir() / "visuals" / key
    try:
        return _load(folder / "robot.npz")
    except FileNotFoundError:
        pass
    except (OSError, ValueError, KeyError, zipfile.BadZipFile):
        shutil.rmtree(folder)
    _save(folder, _decimated())
    return _load(folder / "robot.npz")


def source_visuals() -> Mapping[str, tuple[VisualMesh, ...]]:
    """The source model's own visual meshes by link, one a colour."""
    model = mujoco.MjModel.from_xml_path(str(source_mjcf()))
    found: dict[tuple[str, tuple[float, ...]], list[trimesh.Trimesh]] = {}
    for geom in np.flatnonzero((model.geom_group == _VISUAL_GROUP) & (model.geom_type == mujoco.mjtGeom.mjGEOM_MESH)):
        material = int(model.geom_matid[geom])
        rgba = model.mat_rgba[material] if material >= 0 else model.geom_rgba[geom]
        key = (model.body(int(model.geom_bodyid[geom])).name, tuple(rgba.round(3).tolist()))
        found.setdefault(key, []).append(_mesh_in_body(model, int(geom)))
    visuals: dict[str, tuple[VisualMesh, ...]] = {}
    for (body, rgba), meshes in found.items():
        starts = np.cumsum([0, *(len(mesh.vertices) for mesh in meshes[:-1])])
        vertices = np.concatenate([mesh.vertices for mesh in meshes])
        faces = np.concatenate([mesh.faces + start for mesh, start in zip(meshes, starts, strict=True)])
        mesh = VisualMesh(vertices, np.asarray(faces, np.int32), rgba)
        visuals[body] = (*visuals.get(body, ()), mesh)
    return visuals


def _mesh_in_body(model: mujoco.MjModel, geom: int) -> trimesh.Trimesh:
    mesh = int(model.geom_dataid[geom])
    vertex, face = int(model.mesh_vertadr[mesh]), int(model.mesh_faceadr[mesh])
    rotation = np.zeros(9)
    mujoco.mju_quat2Mat(rotation, model.geom_quat[geom])
    vertices = model.mesh_vert[vertex : vertex + int(model.mesh_vertnum[mesh])] @ rotation.reshape(3, 3).T
    faces = model.mesh_face[face : face + int(model.mesh_facenum[mesh])]
    return trimesh.Trimesh(vertices + model.geom_pos[geom], faces, process=False)


def _decimated() -> Mapping[str, tuple[VisualMesh, ...]]:
    """Share each link's budget among its colours by their number of faces."""
    visuals = {}
    for body, meshes in source_visuals().items():
        share = LINK_FACES.get(body, OTHER_FACES) / sum(len(mesh.faces) for mesh in meshes)
        visuals[body] = tuple(_decimate(mesh, max(_FEWEST_FACES, int(share * len(mesh.faces)))) for mesh in meshes)
    return visuals


def _decimate(mesh: VisualMesh, faces: int) -> VisualMesh:
    """Collapse edges by quadric error (Garland and Heckbert 1997)."""
    vertices, triangles = _collapse(mesh.vertices, mesh.faces, faces)
    if len(triangles) > faces:
        vertices, triangles = _collapse(np.round(mesh.vertices / WELD_M) * WELD_M, mesh.faces, faces)
    return VisualMesh(vertices, triangles, mesh.rgba)


def _collapse(vertices: np.ndarray, faces: np.ndarray, target: int) -> tuple[np.ndarray, np.ndarray]:
    mesh = trimesh.Trimesh(vertices, faces, process=False)
    mesh.merge_vertices(merge_norm=True, merge_tex=True)
    mesh.update_faces(mesh.nondegenerate_faces(height=1e-9) & mesh.unique_faces())
    mesh.remove_unreferenced_vertices()
    vertices, faces = np.asarray(mesh.vertices), np.asarray(mesh.faces, np.int32)
    if target < len(faces):
        scaled = (vertices * COLLAPSE_SCALE).astype(np.float32)
        with _COLLAPSING:
            scaled, faces = fast_simplification.simplify(scaled, faces, target_count=target, agg=7)
        vertices = scaled.astype(np.float64) / COLLAPSE_SCALE
    return vertices, np.asarray(faces, np.int32)


def _save(folder: Path, visuals: Mapping[str, tuple[VisualMesh, ...]]) -> None:
    """Write a staging folder and rename it; another process may have been faster."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    staging = Path(tempfile.mkdtemp(prefix=".robot-", dir=folder.parent))
    try:
        arrays = {
            f"{body}/{i}/{name}": np.asarray(getattr(mesh, name))
            for body, meshes in visuals.items()
            for i, mesh in enumerate(meshes)
            for name in VisualMesh.__dataclass_fields__
        }
        np.savez_compressed(staging / "robot.npz", allow_pickle=False, **arrays)
        for name, text in source_licences().items():
            (staging / name).write_text(text)
        staging.chmod(0o755)
        try:
            os.rename(staging, folder)  # noqa: PTH104
        except OSError:
            if not folder.exists():
                raise
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def _load(path: Path) -> Mapping[str, tuple[VisualMesh, ...]]:
    with path.open("rb") as handle, np.load(handle, allow_pickle=False) as arrays:
        visuals: dict[str, tuple[VisualMesh, ...]] = {}
        for key in (name.removesuffix("/rgba") for name in arrays.files if name.endswith("/rgba")):
            body = key.split("/")[0]
            rgba = tuple(arrays[f"{key}/rgba"].tolist())
            mesh = VisualMesh(arrays[f"{key}/vertices"], arrays[f"{key}/faces"], rgba)
            visuals[body] = (*visuals.get(body, ()), mesh)
    if not visuals:
        raise ValueError(f"{path}: empty")
    return visuals
