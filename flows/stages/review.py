"""People's part: decisions that come with a recipe, and episodes that wait for a decision."""

from pathlib import Path
from typing import Literal

from flows.reporter import REPORTER
from flows.stages.files import RunFiles
from pipeline.errors import UserError
from pipeline.recipe import Recipe
from pipeline.store import Run, read_meta
from qc.decisions import read_decisions, write_decisions
from qc.folder import Folder
from qc.table import REVIEW, read_verdicts

Review = Literal["wait", "pause", "go-on"]


def adopt(root: Path, recipe: Recipe) -> None:
    """Take over the keep-list's decisions about episodes that were not judged yet; the run's own decisions win.

    Raises:
        QcError: if one of the files cannot be read.
    """
    if recipe.decisions is None:
        return
    files, folder = RunFiles(root), Folder(root / "qc")
    judged = set(read_verdicts(files.verdicts)["content_hash"]) if files.verdicts.is_file() else set()
    fresh = {read_meta(path)["content_hash"] for path in Run(root).folders()} - judged
    listed, own = read_decisions(recipe.decisions), read_decisions(folder.decisions)
    merged = {**{hash_: listed[hash_] for hash_ in sorted(fresh & listed.keys())}, **own}
    if merged != own:
        folder.root.mkdir(exist_ok=True)
        write_decisions(folder.decisions, merged)
        REPORTER.get().say(f"{recipe.decisions}: {len(merged) - len(own)} decisions apply to this run")


def waiting(root: Path, recipe: Recipe) -> list[str]:
    """Ids of the recipe's episodes about which a person should decide."""
    table = RunFiles(root).read_verdicts()
    assert table is not None
    rows = table[(table["verdict"] == REVIEW) & table["task"].isin(list(recipe.quotas))]
    return sorted(rows["episode_id"])


def require_decided(root: Path, recipe: Recipe, review: Review) -> None:
    """Stop where a person should decide, unless told to go on.

    Raises:
        UserError: if episodes wait; it says what to do.
    """
    if not (doubtful := waiting(root, recipe)):
        return
    told = f"review: {len(doubtful)} episodes wait"
    if review == "wait":
        raise UserError(
            f"{told}; see `demomill review list {root}`, decide with `demomill review keep` or `drop`, then run the "
            "same command again, or give --review go-on to go on without them"
        )
    REPORTER.get().say(f"{told}; going on without them, with the verdicts as they stand")
