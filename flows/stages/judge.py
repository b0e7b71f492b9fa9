"""Judge the episodes of a release, unless the same were judged by the same thresholds before."""

import json
from dataclasses import asdict
from pathlib import Path

from flows.stages.assess import assess, redraw
from flows.stages.files import RunFiles
from flows.stages.recipe import settings
from flows.stages.review import adopt
from pipeline import __version__
from pipeline.recipe import Recipe
from pipeline.store import Run, read_meta, write_atomically
from qc.table import read_verdicts


def judge(root: Path, recipe: Recipe) -> bool:
    """Write verdicts, accounts and report where they are not those of the run's episodes; returns whether it had to.

    Raises:
        QcError: if a decision does not fit, or the verdicts cannot be written.
        UserError: if there is no episode.
    """
    stamp = root / "qc" / "judged.json"
    adopt(root, recipe)
    hashes = sorted(read_meta(folder)["content_hash"] for folder in Run(root).folders())
    made_with = json.dumps({"demomill": __version__, "settings": asdict(settings(recipe))}, indent=2) + "\n"
    files = RunFiles(root)
    same_settings = files.verdicts.is_file() and stamp.is_file() and stamp.read_text() == made_with
    if same_settings and sorted(read_verdicts(files.verdicts)["content_hash"]) == hashes:
        redraw(root, settings(recipe))
        return False
    assess(root, settings=settings(recipe))
    write_atomically(stamp, made_with)
    return True
