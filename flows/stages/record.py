"""Record attempts."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from flows.reporter import REPORTER
from pipeline.doctor import WORKER_GIB, memory_gib
from pipeline.engine import Engine, choose_engine
from pipeline.export.whole import require_replaceable
from pipeline.record import Recorded, Request
from pipeline.record import record as record_attempts
from pipeline.shards import Progress
from pipeline.store import Run, episode_id, explain_os_errors


def request(
    root: Path,
    tasks: Sequence[str],
    episodes: int,
    seed: int,
    *,
    num_envs: int = 16,
    device: str = "auto",
    workers: int | None = None,
    threads: int | None = None,
) -> Request:
    """A recording on this machine; as many workers as it has room for unless a number is given.

    Raises:
        UserError: for an option that cannot be met.
    """
    engine = choose_engine(device, threads)
    tasks = tuple(dict.fromkeys(tasks))
    if workers is None:
        workers = _room_for_workers(engine, len(tasks))
    return Request(root, tasks, episodes, seed, engine, num_envs, workers)


def require_usable(request: Request, dataset: Path) -> None:
    """Refuse folders that cannot take the run or its dataset before any work is done.

    Raises:
        UserError: if one of them cannot be written or holds something else.
    """
    require_replaceable(dataset.resolve(), request.root.resolve(), request.recipe)
    Run.open(request.root, request.recipe)
    with explain_os_errors(dataset):
        dataset.parent.mkdir(parents=True, exist_ok=True)


def record(request: Request) -> Recorded:
    """Record what is missing of a request and show the progress of each task."""
    reporter, failed = REPORTER.get(), Counter[str]()
    for task in request.tasks:
        folders = [
            request.root / "episodes" / task / episode_id(task, request.run_seed, attempt)
            for attempt in request.attempts
        ]
        there = sum(folder.is_dir() for folder in folders)
        reporter.begin(task, request.episodes, there)
        if there < request.episodes:
            reporter.advance(task, 0, "waiting for the simulator")

    def listen(event: Progress) -> None:
        if event.kind in ("note", "damaged", "hung"):
            reporter.say(event.text)
        failed[event.task] += event.outcome == "failure"
        steps = {"episode": 1, "hung": 1, "damaged": -1}.get(event.kind, 0)
        reporter.advance(event.task, steps, f"{failed[event.task]} failed")

    return record_attempts(request, listen)


def _room_for_workers(engine: Engine, tasks: int) -> int:
    if engine.device != "cpu":
        return 1
    return max(1, min(tasks, engine.threads, int(memory_gib() / WORKER_GIB)))
