"""What a release came to, in ``release.json`` of the run folder."""

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from flows.stages import quota
from flows.stages.datasets import products
from flows.stages.files import RunFiles
from flows.stages.top_up import planned
from pipeline import __version__
from pipeline.export.layout import INFO_PATH
from pipeline.manifest import write_manifest
from pipeline.recipe import Recipe
from pipeline.store import write_atomically


def release_file(root: Path) -> Path:
    """Where it is written."""
    return root / "release.json"


@contextmanager
def timed(seconds: dict[str, float], stage: str) -> Iterator[None]:
    """Add the wall time of what happens within to that of a stage, also if it fails."""
    start = time.perf_counter()
    try:
        yield
    finally:
        seconds[stage] = seconds.get(stage, 0.0) + time.perf_counter() - start


def seconds_before(root: Path) -> dict[str, float]:
    """Wall time of each stage in the calls before this one."""
    path = release_file(root)
    return dict(json.loads(path.read_text())["seconds"]) if path.is_file() else {}


def write_account(
    root: Path,
    recipe: Recipe,
    state: str,
    seconds: Mapping[str, float],
    published: Sequence[Mapping[str, Any]] = (),
) -> dict[str, Any]:
    """Say how far the release is, also after a stage that failed, and write the run's manifest.

    Returns:
        What is written: ``state``; ``recipe``: verbatim, and as resolved; ``seconds`` of each stage in all calls; by
        task ``quota, planned`` (attempts), ``generated, kept, released, pictured, dropped, review, failed`` (by reason)
        ``, not_assessed, damaged``; ``datasets``; ``published``.
    """
    files, tasks = RunFiles(root), {}
    attempts = planned(root, recipe)
    accounts = json.loads(files.accounting.read_text())["tasks"] if files.accounting.is_file() else {}
    judged = files.verdicts.is_file()
    shipped = list(quota.chosen(root, recipe)["task"]) if judged else []
    shown = list(quota.pictured(root, recipe)["task"]) if judged else []
    for task, wanted in recipe.quotas.items():
        made = {"released": shipped.count(task), "pictured": shown.count(task)}
        tasks[task] = {"quota": wanted, "planned": attempts[task], **accounts.get(task, {}), **made}
    datasets = [_dataset(each.folder) for each in products(root, recipe)] if judged else []
    account = {
        "demomill": __version__,
        "state": state,
        "recipe": {"file": recipe.path.name, "text": recipe.text, "resolved": recipe.to_dict()},
        "seconds": {stage: round(spent, 1) for stage, spent in seconds.items()},
        "tasks": tasks,
        "datasets": [each for each in datasets if each],
        "published": list(published),
    }
    write_atomically(release_file(root), json.dumps(account, indent=2) + "\n")
    write_manifest(root, recipe.to_dict(), recipe.text)
    return account


def _dataset(folder: Path) -> dict[str, Any]:
    if not (folder / INFO_PATH).is_file():
        return {}
    info = json.loads((folder / INFO_PATH).read_text())
    return {"folder": folder.name, "episodes": info["total_episodes"], "frames": info["total_frames"]}
