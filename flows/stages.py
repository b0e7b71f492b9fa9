"""The stages of a run as plain functions, for the flow and for single commands; each can be repeated at no cost."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from flows.reporter import REPORTER
from pipeline.doctor import WORKER_GIB, memory_gib
from pipeline.engine import Engine, choose_engine
from pipeline.record import Progress, Recorded, Request
from pipeline.record import record as record_attempts
from pipeline.store import episode_id


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
    return Request(Path(root), tasks, episodes, seed, engine, num_envs, workers)


def record(request: Request) -> Recorded:
    """Record what is missing, with a line of progress a task."""
    reporter, failed = REPORTER.get(), Counter[str]()
    for task in request.tasks:
        folders = [
            request.root / "episodes" / task / episode_id(task, request.run_seed, attempt)
            for attempt in range(request.episodes)
        ]
        there = sum(folder.is_dir() for folder in folders)
        if there < request.episodes:
            reporter.begin(task, request.episodes, there)

    def listen(event: Progress) -> None:
        if event.kind == "note":
            reporter.say(event.text)
            return
        failed[event.task] += event.outcome == "failure"
        reporter.advance(event.task, event.kind == "episode", f"{failed[event.task]} failed")

    return record_attempts(request, listen)


def _room_for_workers(engine: Engine, tasks: int) -> int:
    if engine.device != "cpu":
        return 1
    return max(1, min(tasks, engine.threads, int(memory_gib() / WORKER_GIB)))
