"""One simulator a process: checks that simulate run in a process of their own."""

import os
import tempfile
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path

from pipeline.assets.cache import cache_dir
from pipeline.checks.findings import finding
from pipeline.process import die_with_parent
from pipeline.tasks import Task


def in_own_process[T](job: Callable[..., T], task: Task, *arguments: object) -> T:
    """Call ``job(task, *arguments)`` in a new process on the CPU; what libraries print there goes to a log.

    Args:
        job: a function that another process can import, as are functions among the arguments.

    Raises:
        CheckFailed: if the process dies, or the job raises it.
    """
    plain = replace(
        task,
        geometry=dict(task.geometry),
        start_ranges=dict(task.start_ranges),
        competence_ranges=dict(task.competence_ranges),
    )
    log = Path(tempfile.gettempdir(), f"demomill-check-{task.id}-{os.getpid()}.log")
    try:
        with ProcessPoolExecutor(1, get_context("spawn"), _begin, (log, os.getpid())) as pool:
            return pool.submit(job, plain, *arguments).result()
    except BrokenProcessPool:
        shown = log.read_text(errors="replace").strip()[-200:]
        raise finding(
            task.id, f"the simulator stopped without a word after {shown!r}", "run it under a debugger"
        ) from None
    finally:
        log.unlink(missing_ok=True)


def _begin(log: Path, parent: int) -> None:
    die_with_parent(parent)
    sink = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(sink, 1)
    os.dup2(sink, 2)
    os.environ.setdefault("WARP_CACHE_PATH", str(cache_dir() / "warp"))
    os.environ["CUDA_VISIBLE_DEVICES"] = ""
