"""Pictures by Newton's ray tracer, the one behind Isaac Lab's tiled camera; it needs no system library.

It shows the same meshes from the same cameras as the OpenGL renderer, without textures, highlights or
anti-aliasing, and more slowly on a CPU.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import newton
import numpy as np
import warp as wp
from newton.sensors import SensorTiledCamera
from PIL import Image

from pipeline.assets.parts import TABLE_CENTRE_M, TABLE_SIZE_M
from pipeline.render.cameras import Camera
from pipeline.render.scene import Scene, Surface

DEVICE = "cpu"


class NewtonRenderer:
    """Renders one scene.

    Args:
        scene: what to render.
        supersampling: pictures are rendered this many times wider and higher, then area-averaged.
        shadows: whether the key light casts shadows.
    """

    def __init__(self, scene: Scene, *, supersampling: int = 1, shadows: bool = True) -> None:
        self._supersampling = supersampling
        shadows = shadows and scene.look.shadows
        wp.config.quiet = True
        builder = newton.ModelBuilder(up_axis=newton.Axis.Z)
        self._index = {name: builder.add_body(label=name, is_kinematic=True) for name in scene.bodies}
        for name, surfaces in scene.bodies.items():
            for surface in surfaces:
                _add_surface(builder, self._index[name], surface)
        _add_table(builder, scene.table)
        self._model: Any = builder.finalize(device=DEVICE)
        self._state: Any = self._model.state()
        assert self._state.body_q is not None
        self._poses = self._state.body_q.numpy().copy()
        self._sensor: Any = SensorTiledCamera(
            self._model, default_render_config=SensorTiledCamera.RenderConfig(enable_shadows=shadows)
        )
        direction = np.array(scene.look.key.direction)
        utils: Any = self._sensor.utils
        utils.create_default_light(shadows, wp.vec3f((direction / np.linalg.norm(direction)).tolist()))
        size = tuple(side * supersampling for side in scene.size)
        self._cameras = scene.look.cameras
        self._rays = {
            fovy: utils.compute_camera_rays_pinhole(*size, camera_fovs=fovy)
            for fovy in {camera.fovy_rad for camera in self._cameras.values()}
        }
        self._picture = utils.create_color_image_output(*size)

    def render(self, body_poses: Mapping[str, np.ndarray], cameras: Sequence[str]) -> list[np.ndarray]:
        """Picture (height, width, 3) uint8 of each camera, for a pose (7,) of each body, metres and xyzw."""
        for name, pose in body_poses.items():
            self._poses[self._index[name]] = pose
        self._state.body_q.assign(self._poses)
        self._model.bvh_refit_shapes(self._state)
        return [self._shoot(self._cameras[camera], body_poses) for camera in cameras]

    def _shoot(self, camera: Camera, body_poses: Mapping[str, np.ndarray]) -> np.ndarray:
        pose = camera.world_pose(body_poses).tolist()
        transforms: Any = wp.array([[pose]], dtype=wp.transformf, device=DEVICE)
        self._sensor.update(self._state, transforms, self._rays[camera.fovy_rad], color_image=self._picture)
        packed = self._picture.numpy()[0, 0]
        rgb = packed.view(np.uint8).reshape(*packed.shape, 4)[..., :3]
        return np.asarray(Image.fromarray(np.ascontiguousarray(rgb)).reduce(self._supersampling))

    def close(self) -> None:
        """Nothing is held outside this object's memory."""


def _config() -> newton.ModelBuilder.ShapeConfig:
    return newton.ModelBuilder.ShapeConfig(density=0.0, has_shape_collision=False, has_particle_collision=False)


def _add_surface(builder: newton.ModelBuilder, body: int, surface: Surface) -> None:
    mesh = newton.Mesh(
        surface.vertices, surface.faces.reshape(-1), normals=surface.normals, compute_inertia=False, is_solid=False
    )
    builder.add_shape_mesh(body, mesh=mesh, cfg=_config(), color=surface.material.rgb)


def _add_table(builder: newton.ModelBuilder, texture: np.ndarray) -> None:
    frame = (TABLE_CENTRE_M, (0.0, 0.0, 0.0, 1.0))
    hx, hy, hz = (side / 2 for side in TABLE_SIZE_M)
    color = (texture.reshape(-1, 3).mean(0) / 255).tolist()
    builder.add_shape_box(-1, xform=frame, hx=hx, hy=hy, hz=hz, cfg=_config(), color=color)
