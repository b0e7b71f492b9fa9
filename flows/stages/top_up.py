"""How many attempts of each task a release needs, until enough of them are kept."""

import json
import math
from collections.abc import Mapping
from pathlib import Path

from flows.stages.files import RunFiles
from pipeline.errors import UserError
from pipeline.recipe import Recipe
from pipeline.store import write_atomically

SPARE = 0.05
"""Attempts beyond the quota at first: about as many as fail or are dropped."""

MOST = 3
"""Attempts for one of the quota; a task that needs more has a fault that attempts do not mend."""

LEAST_RATE = 0.2
"""Part of the attempts that is expected to be kept, at least."""


def attempts_file(root: Path) -> Path:
    """Where a run says how many attempts of each task are to be recorded."""
    return root / "attempts.json"


def first_attempts(quota: int) -> int:
    """Attempts of the first round."""
    return math.ceil(quota * (1 + SPARE))


def planned(root: Path, recipe: Recipe) -> dict[str, int]:
    """Attempts of each task: as planned when the run was last at work, else for a first round.

    They are on disk before they are recorded: a killed run that goes on judges the same episodes as an undisturbed one.
    """
    path = attempts_file(root)
    before = json.loads(path.read_text()) if path.is_file() else {}
    wanted = {task: max(first_attempts(quota), before.get(task, 0)) for task, quota in recipe.quotas.items()}
    if wanted != before:
        write_atomically(path, json.dumps(wanted, indent=2) + "\n")
    return wanted


def top_up(root: Path, recipe: Recipe, kept: Mapping[str, int]) -> bool:
    """Plan more attempts of the tasks that lack kept episodes.

    Args:
        kept: kept episodes of each task, of all attempts planned so far.

    Returns:
        Whether more are to be recorded; False if every quota is met, or no task that lacks episodes may have more.
    """
    attempts = planned(root, recipe)
    wanted = {task: _more(quota, attempts[task], kept.get(task, 0)) for task, quota in recipe.quotas.items()}
    if wanted == attempts:
        return False
    write_atomically(attempts_file(root), json.dumps(wanted, indent=2) + "\n")
    return True


def require_quotas(root: Path, recipe: Recipe, kept: Mapping[str, int]) -> None:
    """Refuse a run in which a task keeps less than its quota.

    Raises:
        UserError: naming every such task, what became of its attempts, and what to do.
    """
    attempts, accounts = planned(root, recipe), json.loads(RunFiles(root).accounting.read_text())["tasks"]
    short = []
    for task, quota in recipe.quotas.items():
        if kept.get(task, 0) < quota:
            lost = [f"{n} {why}" for end in ("failed", "dropped", "review") for why, n in accounts[task][end].items()]
            told = f"{kept.get(task, 0)} of {quota} kept after {attempts[task]} attempts"
            short.append(f"{task}: {told} ({', '.join(lost)})")
    if short:
        raise UserError(
            f"the yield has collapsed: {'; '.join(short)}. No more than {MOST} attempts for one of the quota are made. "
            f"What is recorded is kept; see {root / 'qc' / 'report.html'}, decide with `demomill review`, mend the "
            "task's expert, or lower its quota in the recipe, then run the same command again"
        )


def _more(quota: int, attempts: int, kept: int) -> int:
    if kept >= quota:
        return attempts
    rate = max(kept / attempts, LEAST_RATE)
    return max(attempts, min(attempts + math.ceil((quota - kept) / rate), MOST * quota))
