"""The flow ``generate``: record, assess, render, export. It orders the stages and times them; they do the work."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from prefect import flow, task
from prefect.cache_policies import NO_CACHE

from flows import stages
from flows.summary import finish

record, assess, render, export = (
    task(stage, cache_policy=NO_CACHE, persist_result=False)
    for stage in (stages.record, stages.assess, stages.render, stages.export)
)


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
    root, seconds = Path(out), dict[str, float]()

    def timed[T](stage: Callable[..., T], *arguments: object) -> T:
        start = time.perf_counter()
        result = stage(*arguments)
        seconds[stage.name] = round(time.perf_counter() - start, 1)
        return result

    request = stages.request(root, tasks, episodes, seed, num_envs=num_envs, device=device, workers=workers)
    recorded = timed(record, request)
    timed(assess, root)
    rendered = timed(render, root)
    exported = timed(export, root, Path(dataset))
    new = {"recorded": recorded.new, "rendered": len(rendered.rendered), "exported": exported}
    return finish(root, Path(dataset), seconds, new)
