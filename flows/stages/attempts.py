"""Record the attempts that a release plans, as shards: each is a task of Prefect and a worker process of its own."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from prefect import flow, task
from prefect.cache_policies import NO_CACHE
from prefect.concurrency.sync import concurrency

from flows import reporter  # the module: Dask pickles what a flow names, and a context variable cannot be
from flows.stages.runners import in_this_process
from flows.stages.top_up import planned
from pipeline.errors import UserError
from pipeline.recipe import Recipe
from pipeline.record import Request, plan_shards
from pipeline.shards import Progress, record_shard
from pipeline.sim.worker import Shard

SHARD_SIZE = 128
"""Attempts of a shard at most: a worker takes some ten seconds to start, a hundred attempts some minutes."""


def missing(machine: Request, recipe: Recipe) -> list[Shard]:
    """Shards of the attempts that are planned and not recorded; the workers share the machine's threads.

    Args:
        machine: where and how to record; of which attempts, the run's plan says.

    Raises:
        UserError: if the folder cannot be used for this recipe.
    """
    shards = list[Shard]()
    for name, count in planned(machine.root, recipe).items():
        shards += plan_shards(replace(machine, tasks=(name,), episodes=count, workers=1), SHARD_SIZE)
    threads = max(1, machine.engine.threads // max(1, min(machine.workers, len(shards))))
    return [replace(shard, engine=replace(shard.engine, threads=threads)) for shard in shards]


@flow(name="record", persist_result=False)
def record_attempts(shards: list[str]) -> int:
    """Record shards, given as JSON, and show the progress of each task; returns how many episodes are new.

    Raises:
        UserError: if workers stopped early, naming every shard: the others go on first, what is committed stays.
    """
    watcher, wanted = reporter.REPORTER.get(), [Shard.from_json(shard) for shard in shards]
    _announce(wanted)
    futures = [record.submit(shard) for shard in shards]
    for future, shard in zip(futures, wanted, strict=True):
        future.wait()
        if not in_this_process():
            watcher.advance(shard.task, len(shard.attempts))
    results = [future.result(raise_on_failure=False) for future in futures]
    problems = [str(result) for result in results if isinstance(result, Exception | str)]
    if problems:
        raise UserError("; ".join(dict.fromkeys(problems)))
    return sum(result for result in results if isinstance(result, int))


@task(name="shard", cache_policy=NO_CACHE, persist_result=False)
def record(shard: str) -> int | str:
    """Record one shard; returns how many episodes are new, or what went wrong and what to do.

    On a GPU it waits for its turn, where Prefect has a global concurrency limit of the device's name, such as cuda:0.
    """
    watcher, failed = reporter.REPORTER.get(), Counter[str]()

    def listen(event: Progress) -> None:
        if event.kind in ("note", "damaged", "hung"):
            watcher.say(event.text)
        failed[event.task] += event.outcome == "failure"
        watcher.advance(event.task, event.kind in ("episode", "hung"), f"{failed[event.task]} failed")

    wanted = Shard.from_json(shard)
    with concurrency([] if wanted.engine.device == "cpu" else [wanted.engine.device]):
        report = record_shard(wanted, listen)
    return report.problem or report.new


def _announce(shards: Sequence[Shard]) -> None:
    totals = Counter[str]()
    for shard in shards:
        totals[shard.task] += len(shard.attempts)
    for name, total in totals.items():
        reporter.REPORTER.get().begin(name, total)
