"""Record attempts into a run folder by worker processes: one simulator each, killed and resumed at any moment."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from experts.contract import Handicap
from pipeline.engine import Engine
from pipeline.errors import UserError
from pipeline.faults import Fault
from pipeline.shards import Listener, ShardReport, record_shard
from pipeline.sim.worker import Shard
from pipeline.store import Run, episode_id, is_sound, read_meta
from pipeline.tasks import CATALOGUE, get_task
from randomization.draws import COMPETENCE

MAX_SEED = 2**63 - 1

SHARD_SIZE = 64
"""Attempts of a shard: many enough that the start of its simulator, some ten seconds, matters little."""


def tasks_with_expert() -> tuple[str, ...]:
    """Ids of the tasks that can be recorded, in catalogue order."""
    return tuple(task.id for task in CATALOGUE.values() if task.family in COMPETENCE)


@dataclass(frozen=True)
class Request:
    """What to record.

    Attributes:
        root: run folder; made if it is missing.
        tasks: task ids.
        episodes: attempts of each task.
        first_attempt: number of the first of them.
        run_seed: with task and attempt it fixes every draw.
        num_envs: parallel envs of a worker; does not change the episodes.
        workers: worker processes at a time, each with one task.
        fault, handicap: of negative controls.
    """

    root: Path
    tasks: tuple[str, ...]
    episodes: int
    run_seed: int
    engine: Engine
    num_envs: int = 16
    workers: int = 1
    fault: Fault = Fault()
    handicap: Handicap = Handicap()
    first_attempt: int = 0

    def __post_init__(self) -> None:
        for task in self.tasks:
            if get_task(task).family not in COMPETENCE:
                raise UserError(f"task {task!r} has no expert yet; `demomill tasks` shows which have one")
        for name, value in (("--episodes", self.episodes), ("--num-envs", self.num_envs), ("--workers", self.workers)):
            if value < 1:
                raise UserError(f"{name} is {value}; it must be at least 1")
        if self.first_attempt < 0:
            raise UserError(f"--attempt is {self.first_attempt}; attempts are numbered from 0")
        if not 0 <= self.run_seed <= MAX_SEED:
            raise UserError(f"--seed is {self.run_seed}; it must be between 0 and {MAX_SEED}")
        if not self.tasks:
            raise UserError("no task given; `demomill tasks` lists them")

    @property
    def attempts(self) -> range:
        """Numbers of the attempts of each task."""
        return range(self.first_attempt, self.first_attempt + self.episodes)

    @property
    def recipe(self) -> dict[str, Any]:
        """What every episode of a run folder has in common."""
        return {
            "run_seed": self.run_seed,
            "engine": self.engine.to_dict(),
            "fault": asdict(self.fault),
            "handicap": {**asdict(self.handicap), "seat_error_m": list(self.handicap.seat_error_m)},
        }


@dataclass(frozen=True)
class Recorded:
    """Every episode that the request asked for.

    Attributes:
        episodes: their ``episode.json``, in order of task and attempt.
        new: how many were recorded by this call.
        seconds_per_episode: of each task of which some were: core seconds of the worker, without its start.
        hung: attempts without an episode, because they hang the simulator: notes of :meth:`pipeline.store.Run.hung`.
    """

    episodes: tuple[dict[str, Any], ...]
    new: int
    seconds_per_episode: Mapping[str, float]
    hung: tuple[Mapping[str, Any], ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Summary as printed by ``demomill record --json``."""
        attempted = len(self.episodes) + len(self.hung)
        wins = sum(meta["outcome"] == "success" for meta in self.episodes)
        keys = ("id", "task", "seed", "env_index", "outcome", "reason", "failed_phase", "length", "content_hash")
        return {
            "attempted": attempted,
            "succeeded": wins,
            "success_rate": wins / attempted,
            "by_reason": dict(Counter(meta["reason"] for meta in (*self.episodes, *self.hung) if meta["reason"])),
            "new": self.new,
            "episodes": [{key: meta[key] for key in keys} for meta in self.episodes],
        }


def plan_shards(request: Request, size: int = SHARD_SIZE) -> list[Shard]:
    """Cut what is missing of a request into shards for :func:`pipeline.shards.record_shard`.

    Damaged attempts count as missing, those that hang the simulator do not. Nothing is written but the run's
    description, so that it may be called at any time.

    Args:
        request: what to record.
        size: attempts of a shard at most.

    Raises:
        UserError: if the folder cannot be used for this request.
    """
    run = Run.open(request.root, request.recipe)
    hung, shards = run.hung(), []
    for task in request.tasks:
        names = {attempt: episode_id(task, request.run_seed, attempt) for attempt in request.attempts}
        missing = [n for n, name in names.items() if name not in hung and not is_sound(run.folder(task, name))]
        for start in range(0, len(missing), size):
            attempts = tuple(missing[start : start + size])
            shards.append(
                Shard(
                    root=str(run.root),
                    task=task,
                    run_seed=request.run_seed,
                    attempts=attempts,
                    num_envs=min(request.num_envs, len(attempts)),
                    engine=request.engine,
                    fault=request.fault,
                    handicap=request.handicap,
                )
            )
    threads = max(1, request.engine.threads // max(1, min(request.workers, len(shards))))
    return [replace(shard, engine=replace(shard.engine, threads=threads)) for shard in shards]


def record(request: Request, listen: Listener = lambda _: None) -> Recorded:
    """Record what is missing of a request and return all of it.

    Args:
        request: what to record.
        listen: called from worker threads as episodes are committed.

    Raises:
        UserError: if the folder cannot be used, or workers stopped early: the others go on first, and what is
            committed stays.
    """
    run = Run.open(request.root, request.recipe)
    with run.lock():
        shards = plan_shards(request)
        with ThreadPoolExecutor(request.workers) as pool:
            futures = [pool.submit(record_shard, shard, listen) for shard in shards]
            reports, problems = [], []
            try:
                for future in futures:
                    try:
                        reports.append(future.result())
                    except UserError as error:
                        problems.append(str(error))
            finally:
                pool.shutdown(wait=False, cancel_futures=True)
    problems += [report.problem for report in reports if report.problem]
    if problems:
        raise UserError("\n".join(dict.fromkeys(problems)))
    return gather(request, reports)


def gather(request: Request, reports: Sequence[ShardReport]) -> Recorded:
    """All episodes of a request whose shards have been recorded."""
    run = Run(request.root)
    hung, metas = run.hung(), []
    for task in request.tasks:
        names = [episode_id(task, request.run_seed, attempt) for attempt in request.attempts]
        metas += [read_meta(run.folder(task, name)) for name in names if name not in hung]
    new, spent = Counter[str](), defaultdict[str, float](float)
    for report in reports:
        new[report.task] += report.new
        spent[report.task] += report.core_seconds
    mine = (note for note in hung.values() if note["task"] in request.tasks and note["attempt"] in request.attempts)
    each = {task: spent[task] / count for task, count in new.items() if count}
    return Recorded(tuple(metas), sum(new.values()), each, tuple(mine))


def success_by_task(attempts: Iterable[Mapping[str, Any]]) -> dict[str, Counter[str]]:
    """Count outcomes by task: ``success`` or the failure's reason."""
    counts: dict[str, Counter[str]] = {}
    for meta in attempts:
        counts.setdefault(meta["task"], Counter())[meta["reason"] or "success"] += 1
    return counts
