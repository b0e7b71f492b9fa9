"""What a recipe plans, and what it will cost on this machine, from a small sample of it."""

import tempfile
from pathlib import Path

from flows.stages.record import record, request
from flows.stages.render import render
from flows.stages.top_up import first_attempts
from pipeline.recipe import Recipe
from pipeline.tasks import get_task

SAMPLE = 2
"""Episodes of one task of each family."""


def plan(recipe: Recipe) -> dict[str, dict[str, int]]:
    """By task: ``episodes`` in the release, ``attempts`` of the first round, ``videos`` of one episode and camera."""
    most, looks = recipe.pictures.episodes_per_task, len(recipe.pictures.look_names) * len(recipe.pictures.cameras)
    return {
        task: {
            "episodes": quota,
            "attempts": first_attempts(quota),
            "videos": looks * (min(most, quota) if most else quota),
        }
        for task, quota in recipe.quotas.items()
    }


def estimate(recipe: Recipe) -> dict[str, float]:
    """Record and render a sample in a temporary folder; returns expected wall seconds, ``record`` and ``render``.

    The start of workers and quality control are not counted; both are small beside the rest at a release's size.

    Raises:
        UserError: if the sample cannot be recorded or rendered.
    """
    planned, family = plan(recipe), {task: get_task(task).family for task in recipe.quotas}
    sampled = {family[task]: task for task in recipe.quotas}
    with tempfile.TemporaryDirectory(prefix="demomill-") as folder:
        root = Path(folder) / "run"
        wanted = request(root, [*sampled.values()], SAMPLE, recipe.seed)
        recorded = record(wanted)
        episodes = [meta["id"] for meta in recorded.episodes]
        seconds = 0.0
        for look in recipe.pictures.looks:
            summary = render(
                root, episodes, look=look.name, looks_per_episode=look.per_episode, cameras=recipe.pictures.cameras
            )
            seconds += summary.seconds
        per_row = seconds / sum(meta["length"] for meta in recorded.episodes)
    each = {kind: recorded.seconds_per_episode[task] for kind, task in sampled.items()}
    lengths = {meta["task"]: meta["length"] for meta in recorded.episodes}
    shown = recipe.pictures.episodes_per_task
    rows = sum(
        lengths[sampled[family[task]]] * (min(shown, quota) if shown else quota)
        for task, quota in recipe.quotas.items()
    )
    core = sum(each[family[task]] * planned[task]["attempts"] for task in recipe.quotas)
    return {"record": round(core / max(1, wanted.engine.threads), 1), "render": round(rows * per_row, 1)}
