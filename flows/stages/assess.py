"""Judge episodes."""

import json
from pathlib import Path
from typing import Any

from flows.reporter import REPORTER
from flows.stages.files import RunFiles
from pipeline.store import explain_os_errors, write_atomically
from qc.embedding import embed
from qc.episodes import read_run
from qc.plots import plot_pca
from qc.settings import Settings
from qc.verdicts import accounting, write_verdicts
from qc.verdicts import assess as judge


def assess(root: Path) -> dict[str, Any]:
    """Judge every episode of a run and write verdicts, accounting and a picture into it.

    Returns:
        The accounting, see :func:`qc.verdicts.accounting`.

    Raises:
        QcError: if ``root`` holds no run.
        UserError: if it cannot be written.
    """
    reporter, files, found = REPORTER.get(), RunFiles(root), read_run(root)
    for damaged in found.damaged:
        reporter.say(f"{damaged.id}: damaged ({damaged.why}); recording again puts it aside and replaces it")
    table = judge(found.episodes, Settings())
    counted = accounting(table, found.damaged)
    with explain_os_errors(files.verdicts.parent):
        files.verdicts.parent.mkdir(exist_ok=True)
        write_verdicts(files.verdicts, table)
        write_atomically(files.accounting, json.dumps(counted, indent=2) + "\n")
        plot_pca(table, embed(found.episodes), files.picture)
    return counted
