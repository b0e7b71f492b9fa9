"""Pictures by MuJoCo's OpenGL renderer, on a graphics card or, through Mesa, on a CPU."""

from collections.abc import Mapping, Sequence

import mujoco
import numpy as np
from PIL import Image

from pipeline.assets.parts import TABLE_CENTRE_M, TABLE_SIZE_M
from pipeline.render.cameras import Camera
from pipeline.render.look import Grain
from pipeline.render.scene import TABLE_REPEAT, Scene, Surface

SUPERSAMPLING = 2
"""Pictures are rendered this many times wider and higher, then area-averaged."""

SHADOW_MAP_PX = 1024
SHADOW_EXTENT_M = 0.9
"""Half-width of what the shadow map covers: what the cameras see, and the arm above it."""


class MujocoRenderer:
    """Renders one scene; close it after use.

    The process must have been started in :func:`pipeline.render.opengl.environment`.

    Args:
        scene: what to render.
        supersampling: see :data:`SUPERSAMPLING`.
        shadows: whether the key light casts shadows.
    """

    def __init__(self, scene: Scene, *, supersampling: int = SUPERSAMPLING, shadows: bool = True) -> None:
        self._supersampling = supersampling
        self._model = build_model(scene, supersampling, shadows)
        self._data = mujoco.MjData(self._model)
        self._mocap = {name: int(self._model.body(name).mocapid[0]) for name in scene.bodies}
        width, height = (side * supersampling for side in scene.size)
        self._renderer = mujoco.Renderer(self._model, height, width)
        self._picture = np.empty((height, width, 3), np.uint8)

    def render(self, body_poses: Mapping[str, np.ndarray], cameras: Sequence[str]) -> list[np.ndarray]:
        """Picture (height, width, 3) uint8 of each camera, for a pose (7,) of each body, metres and xyzw."""
        for name, pose in body_poses.items():
            self._data.mocap_pos[self._mocap[name]] = pose[:3]
            self._data.mocap_quat[self._mocap[name]] = pose[[6, 3, 4, 5]]
        mujoco.mj_kinematics(self._model, self._data)
        mujoco.mj_camlight(self._model, self._data)
        return [self._shoot(camera) for camera in cameras]

    def _shoot(self, camera: str) -> np.ndarray:
        self._renderer.update_scene(self._data, camera=camera)
        self._renderer.render(out=self._picture)
        if self._supersampling == 1:
            return self._picture.copy()
        return np.asarray(Image.fromarray(self._picture).reduce(self._supersampling))

    def close(self) -> None:
        """Free the OpenGL context; EGL does not survive being left to the garbage collector."""
        self._renderer.close()


def build_model(scene: Scene, supersampling: int = SUPERSAMPLING, shadows: bool = True) -> mujoco.MjModel:
    """Compile a model in which every body of the scene is a mocap body."""
    spec = mujoco.MjSpec()
    spec.compiler.degree = False
    names = {grain: f"grain_{n}" for n, grain in enumerate(scene.grains())}
    for grain, texture in scene.grains().items():
        _add_texture(spec, names[grain], texture)
    for name, surfaces in scene.bodies.items():
        body = spec.worldbody.add_body(name=name, mocap=True)
        for i, surface in enumerate(surfaces):
            _add_surface(spec, body, f"{name}_{i}", surface, names)
    _add_table(spec, scene.table)
    for name, camera in scene.look.cameras.items():
        _add_camera(spec, name, camera)
    _add_lights(spec, scene, shadows and scene.look.shadows)
    spec.add_texture(
        name="background",
        type=mujoco.mjtTexture.mjTEXTURE_SKYBOX,
        builtin=mujoco.mjtBuiltin.mjBUILTIN_FLAT,
        rgb1=scene.look.background,
        rgb2=scene.look.background,
        width=8,
        height=48,
    )
    quality, size = spec.visual.quality, spec.visual.global_
    quality.offsamples, quality.shadowsize = 0, SHADOW_MAP_PX
    size.offwidth, size.offheight = (side * supersampling for side in scene.size)
    spec.stat.extent, spec.stat.center = 1.0, (0.4, 0.0, 0.15)
    spec.visual.map.znear, spec.visual.map.zfar, spec.visual.map.shadowclip = 0.01, 12.0, SHADOW_EXTENT_M
    return spec.compile()


def _add_texture(spec: mujoco.MjSpec, name: str, texture: np.ndarray) -> None:
    height, width, channels = texture.shape
    image = spec.add_texture(
        name=name, type=mujoco.mjtTexture.mjTEXTURE_2D, width=width, height=height, nchannel=channels
    )
    image.data = texture.tobytes()


def _show_texture(material: mujoco.MjsMaterial, name: str) -> None:
    textures = [""] * int(mujoco.mjtTextureRole.mjNTEXROLE)
    textures[int(mujoco.mjtTextureRole.mjTEXROLE_RGB)] = name
    material.textures = textures


def _add_surface(
    spec: mujoco.MjSpec, body: mujoco.MjsBody, name: str, surface: Surface, grains: Mapping[Grain, str]
) -> None:
    mesh = spec.add_mesh(name=name, inertia=mujoco.mjtMeshInertia.mjMESH_INERTIA_SHELL)
    mesh.uservert, mesh.usernormal = surface.vertices.reshape(-1), surface.normals.reshape(-1)
    mesh.userface = mesh.userfacenormal = surface.faces.reshape(-1)
    look = surface.material
    material = spec.add_material(name=name, rgba=(*look.rgb, 1.0), specular=look.specular, shininess=look.shininess)
    if look.grain is not None:
        places = surface.texture_places()
        mesh.usertexcoord, mesh.userfacetexcoord = places.reshape(-1), np.arange(len(places), dtype=np.int32)
        _show_texture(material, grains[look.grain])
    body.add_geom(type=mujoco.mjtGeom.mjGEOM_MESH, meshname=name, material=name, contype=0, conaffinity=0, mass=0.0)


def _add_table(spec: mujoco.MjSpec, texture: np.ndarray) -> None:
    _add_texture(spec, "table", texture)
    material = spec.add_material(name="table", specular=0.0, shininess=0.0, texrepeat=TABLE_REPEAT)
    _show_texture(material, "table")
    spec.worldbody.add_geom(
        type=mujoco.mjtGeom.mjGEOM_BOX,
        pos=TABLE_CENTRE_M,
        size=np.array(TABLE_SIZE_M) / 2,
        material="table",
        contype=0,
        conaffinity=0,
    )


def _add_camera(spec: mujoco.MjSpec, name: str, camera: Camera) -> None:
    parent = spec.worldbody if camera.body is None else spec.body(camera.body)
    x, y, z, w = camera.quat_xyzw
    parent.add_camera(name=name, pos=camera.pos_m, quat=(w, x, y, z), fovy=float(np.rad2deg(camera.fovy_rad)))


def _add_lights(spec: mujoco.MjSpec, scene: Scene, shadows: bool) -> None:
    look = scene.look
    for name, sun in (("key", look.key), ("fill", look.fill)):
        spec.worldbody.add_light(
            name=name,
            type=mujoco.mjtLightType.mjLIGHT_DIRECTIONAL,
            pos=np.array((0.4, 0.0, 0.1)) - 1.2 * np.array(sun.direction) / np.linalg.norm(sun.direction),
            dir=sun.direction,
            diffuse=sun.rgb,
            specular=[sun.specular] * 3,
            ambient=(0.0, 0.0, 0.0),
            castshadow=shadows and name == "key",
        )
    head = spec.visual.headlight
    head.ambient, head.diffuse, head.specular = look.ambient, (0.15, 0.15, 0.15), (0.1, 0.1, 0.1)
