"""The flow ``nightly-qc``: judge a run that grows from day to day, and show what has become of it."""

from pathlib import Path
from typing import Annotated

from prefect import flow
from pydantic import Field

from flows.artifacts import show_accounts
from flows.runlog import followed
from flows.stages.held import held
from flows.stages.judge import judge
from flows.stages.recipe import load


@flow(name="nightly-qc", persist_result=False)
def nightly_qc(
    recipe: Annotated[str, Field(description="Path of the recipe whose thresholds apply.")],
    out: Annotated[str, Field(description="Run folder.")],
) -> bool:
    """Judge what a run holds by now; returns whether anything was new.

    Raises:
        UserError: for bad input, if there is no episode, or while a release is at work there.
    """
    wanted, root = load(recipe), Path(out)
    with held(root), followed():
        new = judge(root, wanted)
        show_accounts(root, wanted)
    return new
