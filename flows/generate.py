"""The flow ``generate``: record, assess, render, export. It orders the stages and times them; they do the work."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from prefect import flow, task
from prefect.cache_policies import NO_CACHE

from flows.stages.assess import assess
from flows.stages.export import refresh
from flows.stages.record import record, request
from flows.stages.render import render
from flows.summary import finish


@flow(name="generate", persist_result=False)
def generate(
    out: str,
    dataset: str,
    tasks: list[str],
    episodes: int,
    seed: int,
    num_envs: int = 16,
    device: str = "auto",
    workers: int | None = None,
) -> dict[str, Any]:
    """Make a dataset, or complete one; every stage does only what is missing.

    Args:
        out: run folder.
        dataset: folder of the LeRobot dataset.
        episodes: attempts of each task.
        workers: worker processes that record; None means as many as there is room for.

    Returns:
        The run's summary, see :func:`flows.summary.finish`.

    Raises:
        UserError: for bad input, or if a stage cannot go on; what is done is kept.
    """
    root, target, seconds = Path(out), Path(dataset), dict[str, float]()

    def run[T](name: str, stage: Callable[..., T], *arguments: object) -> T:
        start = time.perf_counter()
        result = task(name=name, cache_policy=NO_CACHE, persist_result=False)(stage)(*arguments)
        seconds[name] = round(time.perf_counter() - start, 1)
        return result

    wanted = request(root, tasks, episodes, seed, num_envs=num_envs, device=device, workers=workers)
    recorded = run("record", record, wanted)
    run("assess", assess, root)
    rendered = run("render", render, root)
    exported = run("export", refresh, root, target)
    new = {"recorded": recorded.new, "rendered": len(rendered.rendered), "exported": exported}
    return finish(root, target, seconds, new)
