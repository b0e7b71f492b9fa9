"""How physics is computed, as a value: recorded with every episode, and passed to worker processes."""

import ctypes
import os
from dataclasses import dataclass
from typing import Any

from pipeline.errors import UserError


@dataclass(frozen=True)
class Engine:
    """Physics settings.

    Attributes:
        device: ``cpu`` or a CUDA device such as ``cuda:0``.
        substeps: solver steps in one control step, times the task's own refinement.
        native: step CPU worlds with MuJoCo's C engine; otherwise stock MuJoCo Warp.
        threads: threads that step the worlds on a CPU; they do not change results.
    """

    device: str = "cpu"
    substeps: int = 24
    native: bool = True
    threads: int = 1

    def to_dict(self) -> dict[str, Any]:
        """What determines the physics."""
        return {"device": self.device, "substeps": self.substeps, "solver": "mujoco" if self.native else "mujoco_warp"}


def choose_engine(device: str = "auto", threads: int | None = None) -> Engine:
    """Engine for a device; ``auto`` takes the first CUDA device, else the CPU.

    Raises:
        UserError: for a device that this machine lacks.
    """
    cuda = cuda_devices()
    if device == "auto":
        device = "cuda:0" if cuda else "cpu"
    if device != "cpu" and device not in [f"cuda:{i}" for i in range(cuda)]:
        have = ", ".join(["cpu", *(f"cuda:{i}" for i in range(cuda))])
        raise UserError(f"device {device!r} is not on this machine; it has: {have}")
    return Engine(device=device, native=device == "cpu", threads=threads or os.cpu_count() or 1)


def cuda_devices() -> int:
    """Number of CUDA devices, asked of the driver itself so that torch need not be imported."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return 0
    count = ctypes.c_int(0)
    if driver.cuInit(0) or driver.cuDeviceGetCount(ctypes.byref(count)):
        return 0
    return count.value
