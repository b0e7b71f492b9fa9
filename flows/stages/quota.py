"""Which of the kept episodes a release takes."""

from pathlib import Path

import pandas as pd

from flows.stages.files import RunFiles
from pipeline.export.selection import KEEP
from pipeline.recipe import Recipe


def kept(root: Path, recipe: Recipe) -> pd.DataFrame:
    """Verdicts of the recipe's kept episodes, in order of task and attempt."""
    table = RunFiles(root).read_verdicts()
    assert table is not None
    rows = table[(table["verdict"] == KEEP) & table["task"].isin(list(recipe.quotas))]
    return rows.sort_values(["task", "episode_id"], ignore_index=True)


def count(root: Path, recipe: Recipe) -> dict[str, int]:
    """Kept episodes of each of the recipe's tasks."""
    counted = kept(root, recipe)["task"].value_counts()
    return {task: int(counted.get(task, 0)) for task in recipe.quotas}


def chosen(root: Path, recipe: Recipe) -> pd.DataFrame:
    """The release: of each task as many as its quota, lowest attempts first, however many were kept."""
    rows = kept(root, recipe)
    return rows[_place(rows) < rows["task"].map(recipe.quotas)]


def pictured(root: Path, recipe: Recipe) -> pd.DataFrame:
    """Those of the release that are rendered."""
    rows, most = chosen(root, recipe), recipe.pictures.episodes_per_task
    return rows[_place(rows) < most] if most else rows


def _place(rows: pd.DataFrame) -> pd.Series:
    return rows.groupby("task").cumcount()
