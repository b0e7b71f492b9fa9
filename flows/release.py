"""The flow ``release``: from a recipe to datasets that hold its quotas, and onto the Hub. The stages do the work."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

from prefect import flow, task
from prefect.cache_policies import NO_CACHE
from pydantic import Field

from flows.artifacts import show_accounts, show_plan, show_release
from flows.runlog import followed
from flows.stages import datasets, quota
from flows.stages.account import seconds_before, timed, write_account
from flows.stages.ask import ask
from flows.stages.attempts import missing, record_attempts
from flows.stages.draw import draw
from flows.stages.held import held
from flows.stages.judge import judge
from flows.stages.recipe import load
from flows.stages.record import request
from flows.stages.review import Review, require_decided
from flows.stages.runners import Runner, task_runner
from flows.stages.top_up import require_quotas, top_up
from pipeline.store import Run


@flow(name="release", persist_result=False)
def release(
    recipe: Annotated[str, Field(description="Path of the recipe, a TOML file.")],
    out: Annotated[str, Field(description="Run folder; made if it is missing, completed if it is there.")],
    pictures_per_task: Annotated[
        int | None, Field(description="Episodes of each task that are rendered, instead of the recipe's; 0 means all.")
    ] = None,
    review: Annotated[
        Review,
        Field(description="Doubtful episodes: wait (stop, run again later), pause (ask in Prefect's UI), or go on."),
    ] = "wait",
    review_hours: Annotated[float, Field(gt=0, description="How long a pause waits; then the release goes on.")] = 24.0,
    publish: Annotated[bool, Field(description="Publish where the recipe says.")] = False,
    num_envs: Annotated[int, Field(ge=1, description="Parallel envs of a worker; do not change the episodes.")] = 16,
    device: Annotated[str, Field(description="auto, cpu or a CUDA device such as cuda:0.")] = "auto",
    workers: Annotated[int | None, Field(description="Worker processes that record; none: as many as fit.")] = None,
    runner: Annotated[Runner, Field(description="What runs the shards.")] = "threads",
) -> dict[str, Any]:
    """Make a release, or complete one; every stage does only what is missing.

    Returns:
        What it came to, see :func:`flows.stages.account.write_account`.

    Raises:
        UserError: for bad input, if a stage cannot go on, or if episodes wait for a decision; what is done is kept.
    """
    wanted, root = load(recipe, pictures_per_task), Path(out)
    machine = request(root, [*wanted.quotas], 1, wanted.seed, num_envs=num_envs, device=device, workers=workers)
    Run.open(root, machine.recipe)
    with held(root), followed():
        show_plan(wanted)
        seconds, state, published = seconds_before(root), "incomplete", list[dict[str, Any]]()
        asked = set[str]()

        def run[T](name: str, stage: Callable[..., T], *arguments: object) -> T:
            with timed(seconds, name):
                return task(name=name, cache_policy=NO_CACHE, persist_result=False)(stage)(*arguments)

        try:
            while True:
                if shards := [shard.to_json() for shard in missing(machine, wanted)]:
                    with timed(seconds, "record"):
                        record_attempts.with_options(task_runner=task_runner(runner, machine.workers))(shards)
                run("assess", judge, root, wanted)
                show_accounts(root, wanted)
                if review == "pause":
                    ask(root, wanted, review_hours, asked)
                require_decided(root, wanted, review)
                if not run("top up", top_up, root, wanted, quota.count(root, wanted)):
                    break
            require_quotas(root, wanted, quota.count(root, wanted))
            run("render", datasets.render_release, root, wanted)
            run("export", datasets.export_release, root, wanted)
            run("draw", draw, root, wanted)
            state = "exported"
            if publish:
                published = run("publish", datasets.publish_release, root, wanted)
                state = "published"
        finally:
            account = write_account(root, wanted, state, seconds, published)
        show_release(root, account)
    return account
