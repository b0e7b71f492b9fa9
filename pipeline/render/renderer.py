"""The choice of renderer, and what one must do. No graphics or simulator library is imported before one is made."""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from pipeline.assets.cache import cache_dir
from pipeline.errors import UserError
from pipeline.render import opengl

if TYPE_CHECKING:
    from pipeline.render.scene import Scene

RENDERERS = ("auto", "mujoco", "newton")


class Renderer(Protocol):
    """Renders one scene from poses."""

    def render(self, body_poses: Mapping[str, np.ndarray], cameras: Sequence[str]) -> list[np.ndarray]:
        """Picture (height, width, 3) uint8 of each camera, for a pose (7,) of each body, metres and xyzw."""

    def close(self) -> None:
        """Give back what the renderer holds."""


@dataclass(frozen=True)
class Choice:
    """A renderer that works on this machine.

    Attributes:
        name: ``mujoco`` or ``newton``.
        backend: OpenGL backend, or None.
        note: what the user should know of the choice, or None.
    """

    name: str
    backend: str | None = None
    note: str | None = None

    def environment(self) -> dict[str, str]:
        """Environment that a process needs before it makes this renderer."""
        if self.backend is None:
            inherited = {name: value for name, value in os.environ.items() if name != "MUJOCO_GL"}
            return {"WARP_CACHE_PATH": str(cache_dir() / "warp"), **inherited, "CUDA_VISIBLE_DEVICES": ""}
        return opengl.environment(self.backend)


def choose_renderer(name: str = "auto") -> Choice:
    """Renderer by name; ``auto`` takes MuJoCo's, else Newton's camera, which needs no system library.

    Raises:
        UserError: for an unknown name, for ``rtx``, which is not built, or if ``mujoco`` is asked for and OpenGL is
            missing.
    """
    if name == "rtx":
        raise UserError(
            "--renderer rtx: this version cannot draw with Isaac Sim or ovrtx, whether installed or not (see "
            "docs/decisions/0014-no-rtx-renderer.md); take mujoco, which also runs on a graphics card, or newton"
        )
    if name not in RENDERERS:
        raise UserError(f"unknown renderer {name!r}; there is: {', '.join(RENDERERS)}")
    if name == "newton":
        return Choice("newton")
    try:
        return Choice("mujoco", opengl.find_backend())
    except UserError as error:
        if name == "mujoco":
            raise
        return Choice("newton", note=f"rendering with the slower Newton camera: {error}")


@contextmanager
def open_renderer(choice: Choice, scene: "Scene") -> Iterator[Renderer]:
    """Make a renderer of a scene, in a process that was started in the choice's environment."""
    renderer: Renderer
    if choice.name == "mujoco":
        from pipeline.render.mujoco_gl import MujocoRenderer

        renderer = MujocoRenderer(scene)
    else:
        from pipeline.sim.newton_camera import NewtonRenderer

        renderer = NewtonRenderer(scene)
    try:
        yield renderer
    finally:
        renderer.close()
