"""What a run of the flow made: ``summary.json`` and a contact sheet in the run folder."""

import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from flows.stages.files import RunFiles
from pipeline.export.selection import KEEP
from pipeline.render.contact_sheet import contact_sheet
from pipeline.store import Run, read_meta, write_atomically
from pipeline.tasks import CATALOGUE

EPISODES_SHOWN = 2
"""Kept episodes of each task on the contact sheet."""


def finish(root: Path, dataset: Path, seconds: Mapping[str, float], new: Mapping[str, int]) -> dict[str, Any]:
    """Write the summary and the contact sheet, unless nothing is new since they were written.

    Args:
        seconds: wall time of each stage.
        new: what this call added, by stage.

    Returns:
        ``new``, ``seconds``; ``tasks``: of each task ``attempted, succeeded, failed`` (by reason), ``kept, dropped``
        (by reason), ``review``, ``not_assessed`` and ``frames`` of the kept episodes; and where to look:
        ``run, dataset, contact_sheet, picture``. ``new`` is not part of the file.
    """
    files = RunFiles(root)
    if any(new.values()) or not (files.summary.is_file() and files.contact_sheet.is_file()):
        table = files.read_verdicts()
        assert table is not None
        tasks = {task: _count(Run(root), rows) for task, rows in _by_task(table)}
        kept = table[table["verdict"] == KEEP].groupby("task", sort=False).head(EPISODES_SHOWN)
        contact_sheet(root, kept["episode_id"].to_list(), files.contact_sheet)
        places = {"run": root, "dataset": dataset, "contact_sheet": files.contact_sheet, "picture": files.picture}
        summary = {"seconds": dict(seconds), "tasks": tasks, **{name: str(path) for name, path in places.items()}}
        write_atomically(files.summary, json.dumps(summary, indent=2) + "\n")
    return {"new": dict(new), **json.loads(files.summary.read_text())}


def _by_task(table: pd.DataFrame) -> list[tuple[str, pd.DataFrame]]:
    return [(task, table[table["task"] == task]) for task in CATALOGUE if (table["task"] == task).any()]


def _count(run: Run, rows: pd.DataFrame) -> dict[str, Any]:
    """Count the verdicts on one task; each episode counts once."""
    verdict = Counter(rows["verdict"])
    metas = [read_meta(run.folder(row.task, row.episode_id)) for row in rows.itertuples() if row.verdict == KEEP]
    return {
        "attempted": len(rows),
        "succeeded": int((rows["outcome"] == "success").sum()),
        "failed": _by_reason(rows, "failed"),
        "kept": verdict[KEEP],
        "dropped": _by_reason(rows, "drop"),
        "review": verdict["review"],
        "not_assessed": verdict["not_assessed"],
        "frames": sum(meta["length"] for meta in metas),
    }


def _by_reason(rows: pd.DataFrame, verdict: str) -> dict[str, int]:
    return dict(Counter(rows.loc[rows["verdict"] == verdict, "reasons"].astype(str)).most_common())
