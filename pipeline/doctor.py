"""What this machine can do for demomill, what it lacks, and the remedy."""

import os
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass
from importlib import metadata
from typing import Any, Literal

from packaging.requirements import Requirement

from pipeline.assets.cache import cache_dir
from pipeline.engine import choose_engine, cuda_devices
from pipeline.errors import UserError

WORKER_GIB = 4.0
"""Memory of a worker with 16 envs."""

FREE_GIB = 2.0
"""Assets, compiled kernels and a few hundred rendered episodes."""

GIB = 2**30

Level = Literal["ok", "limited", "missing"]


@dataclass(frozen=True)
class Check:
    """One finding.

    Attributes:
        level: ``ok``; ``limited`` if demomill runs all the same; ``missing`` if it cannot.
        found: what is there, for people.
        value: the same for machines.
        remedy: what to do about it, or empty.
    """

    name: str
    level: Level
    found: str
    value: Any
    remedy: str = ""


@dataclass(frozen=True)
class Report:
    """All findings."""

    checks: tuple[Check, ...]

    @property
    def can_run(self) -> bool:
        """Whether nothing is missing."""
        return all(check.level != "missing" for check in self.checks)

    def to_dict(self) -> dict[str, Any]:
        """``can_run``, and the findings by name."""
        found = {check.name: {k: v for k, v in asdict(check).items() if k != "name"} for check in self.checks}
        return {"can_run": self.can_run, "checks": found}


def diagnose() -> Report:
    """Look at everything that a run needs; takes a few seconds, because OpenGL is tried."""
    return Report(tuple(check() for check in CHECKS))


def check_cores() -> Check:
    """CPU cores that this process may use."""
    cores = len(os.sched_getaffinity(0))
    return Check("cpu cores", "ok", str(cores), cores)


def check_memory() -> Check:
    """Physical memory."""
    memory = memory_gib()
    enough = memory >= WORKER_GIB
    remedy = "" if enough else f"a worker with 16 envs takes up to {WORKER_GIB:.0f} GiB: give --num-envs 4"
    return Check("memory", "ok" if enough else "limited", f"{memory:.1f} GiB", round(memory, 2), remedy)


def memory_gib() -> float:
    """Physical memory in GiB."""
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / GIB


def check_device() -> Check:
    """Where physics will run with ``--device auto``."""
    devices = ["cpu", *(f"cuda:{i}" for i in range(cuda_devices()))]
    engine = choose_engine()
    solver = "MuJoCo's C engine" if engine.native else "MuJoCo Warp"
    found = f"{engine.device}, stepped by {solver}; this machine has {', '.join(devices)}"
    return Check("physics device", "ok", found, {"auto": engine.device, "devices": devices})


def check_renderer() -> Check:
    """How pictures will be drawn; the OpenGL back ends are tried in a process of their own."""
    from pipeline.render.opengl import find_backend

    try:
        backend = find_backend()
    except UserError as error:
        found = "Isaac Lab's Newton camera, which is slower and needs no OpenGL"
        return Check("renderer", "limited", found, "newton", str(error))
    return Check("renderer", "ok", f"MuJoCo with OpenGL ({backend})", f"mujoco-{backend}")


def check_encoder() -> Check:
    """Whether PyAV can write H.264."""
    try:
        import av

        av.codec.Codec("libx264", "w")
    except (ImportError, ValueError) as error:
        remedy = "install PyAV's own wheel: uv sync --reinstall-package av"
        return Check("video encoder", "missing", f"no H.264 encoder ({error})", None, remedy)
    return Check("video encoder", "ok", f"libx264 of PyAV {av.__version__}", "libx264")


def check_packages() -> Check:
    """Versions of the packages that demomill asks for."""
    try:
        wanted = [Requirement(line) for line in metadata.requires("demomill") or ()]
    except metadata.PackageNotFoundError:
        return Check("packages", "missing", "demomill itself is not installed", {}, "run `uv sync` in its folder")
    versions = {each.name: _version(each.name) for each in wanted}
    wrong = [
        f"{each.name} {versions[each.name] or 'is absent'} (wanted {each.specifier})"
        for each in wanted
        if versions[each.name] is None or not each.specifier.contains(str(versions[each.name]), prereleases=True)
    ]
    if wrong:
        return Check("packages", "missing", ", ".join(wrong), versions, "run `uv sync` in demomill's folder")
    shown = ", ".join(f"{name} {versions[name]}" for name in ("isaaclab", "newton", "mujoco", "lerobot", "prefect"))
    return Check("packages", "ok", f"demomill {_version('demomill')}; {shown}", versions)


def check_cache() -> Check:
    """Whether the cache folder can be written, and the free space there."""
    folder = cache_dir()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            free = shutil.disk_usage(folder).free / GIB
    except OSError as error:
        remedy = "make it writable, or set DEMOMILL_CACHE to a folder that is"
        return Check("cache", "missing", f"{folder}: cannot be written ({error.strerror})", None, remedy)
    enough = free >= FREE_GIB
    remedy = "" if enough else f"free some space: a run needs about {FREE_GIB:.0f} GiB"
    value = {"path": str(folder), "free_gib": round(free, 2)}
    return Check("cache", "ok" if enough else "limited", f"{folder}, {free:.1f} GiB free", value, remedy)


CHECKS: tuple[Callable[[], Check], ...] = (
    check_cores,
    check_memory,
    check_device,
    check_renderer,
    check_encoder,
    check_packages,
    check_cache,
)


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None
