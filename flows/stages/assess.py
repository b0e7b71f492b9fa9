"""Judge episodes."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from flows.reporter import REPORTER
from flows.stages.files import RunFiles
from pipeline.errors import UserError
from pipeline.store import explain_os_errors, write_atomically
from pipeline.tasks import CATALOGUE
from qc.diversity import diversity
from qc.embedding import embed
from qc.plots import plot_pca
from qc.readers.run import read_run
from qc.settings import Settings
from qc.table import accounting, write_verdicts
from qc.verdicts import assess as judge


def assess(root: Path) -> dict[str, Any]:
    """Judge every episode of a run and write verdicts, accounting and a picture into it.

    Returns:
        ``tasks``: the account of each, as in :class:`qc.table.Account`; ``damaged``: folders that could not be read;
        ``diversity`` of each task, as in :class:`qc.diversity.Diversity`.

    Raises:
        QcError: if ``root`` holds no run, or the verdicts cannot be written.
        UserError: if there is no episode, or the rest cannot be written.
    """
    reporter, files, found = REPORTER.get(), RunFiles(root), read_run(root)
    for damaged in found.damaged:
        reporter.say(f"{damaged.id}: damaged ({damaged.why}); recording again puts it aside and replaces it")
    if not found.episodes:
        raise UserError(f"{root}: no readable episode to assess; record some with `demomill record`")
    embedding = embed(found.episodes)
    table = judge(found, Settings(), embedding)
    accounts, spread = accounting(table, found.damaged), diversity(found.episodes)
    known = [task for task in CATALOGUE if task in accounts]
    counted = {
        "tasks": {task: asdict(accounts[task]) for task in known},
        "damaged": [asdict(damaged) for damaged in found.damaged],
        "diversity": {task: asdict(spread[task]) for task in known if task in spread},
    }
    with explain_os_errors(files.verdicts.parent):
        files.verdicts.parent.mkdir(exist_ok=True)
        write_verdicts(files.verdicts, table)
        write_atomically(files.accounting, json.dumps(counted, indent=2) + "\n")
        plot_pca(table, embedding, files.picture)
    return counted
