"""Which OpenGL library a rendering process can use. MuJoCo reads its choice once, on import, so it is made outside."""

import os
import subprocess
import sys
from typing import Final

from pipeline.errors import UserError

BACKENDS: Final = ("egl", "osmesa")
INSTALL: Final = "apt-get install -y libegl1 libopengl0 libgl1-mesa-dri"

_PROBE = """
import mujoco
context = mujoco.GLContext(8, 8)
context.make_current()
mujoco.MjrContext(mujoco.MjModel.from_xml_string("<mujoco/>"), mujoco.mjtFontScale.mjFONTSCALE_50)
context.free()
"""


def find_backend() -> str:
    """Name of a backend that works here: ``MUJOCO_GL`` if it is set, else EGL, else OSMesa.

    Raises:
        UserError: if there is none; gives the command that installs one.
    """
    asked = os.environ.get("MUJOCO_GL")
    for backend in (asked,) if asked else BACKENDS:
        probe = [sys.executable, "-c", _PROBE]
        if not subprocess.run(probe, env=environment(backend), capture_output=True, check=False).returncode:
            return backend
    if asked:
        raise UserError(f"MUJOCO_GL={asked} does not work here; unset it, or on Debian run: {INSTALL}")
    raise UserError(f"no OpenGL library for off-screen rendering; on Debian run: {INSTALL}")


def environment(backend: str) -> dict[str, str]:
    """Environment of a process that renders: the backend, and Mesa without threads of its own."""
    return {**os.environ, "MUJOCO_GL": backend, "LP_NUM_THREADS": "0"}
