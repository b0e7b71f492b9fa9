"""What a run of the flow made: ``summary.json``, a contact sheet, and strips and clips in the run folder."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from flows.stages.files import RunFiles
from flows.stages.strips import draw_strips
from pipeline.render.contact_sheet import contact_sheet
from pipeline.store import write_atomically

EPISODES_SHOWN = 2
"""Kept episodes of each task on the contact sheet."""


def finish(root: Path, dataset: Path, seconds: Mapping[str, float], new: Mapping[str, int]) -> dict[str, Any]:
    """Write the summary and the pictures, unless nothing is new since they were written.

    Args:
        seconds: wall time of each stage.
        new: what this call added, by stage.

    Returns:
        ``new``, ``seconds``; ``tasks``: of each task ``attempted, succeeded, failed`` (by reason), ``kept, dropped``
        (by reason), ``review``, ``not_assessed`` and ``frames`` of the kept episodes; and where to look:
        ``run, dataset, contact_sheet, picture, strips``. ``new`` is not part of the file.
    """
    files = RunFiles(root)
    if any(new.values()) or not (files.summary.is_file() and files.contact_sheet.is_file()):
        accounts = json.loads(files.accounting.read_text())["tasks"]
        chosen = files.kept()
        kept = {task: [meta for meta in chosen if meta["task"] == task] for task in accounts}
        tasks = {task: _count(account, kept[task]) for task, account in accounts.items()}
        shown = [meta["id"] for metas in kept.values() for meta in metas[:EPISODES_SHOWN]]
        contact_sheet(root, shown, files.contact_sheet)
        draw_strips(root, chosen, files.strips)
        places = {"run": root, "dataset": dataset, "contact_sheet": files.contact_sheet, "picture": files.picture}
        places["strips"] = files.strips
        summary = {"seconds": dict(seconds), "tasks": tasks, **{name: str(path) for name, path in places.items()}}
        write_atomically(files.summary, json.dumps(summary, indent=2) + "\n")
    return {"new": dict(new), **json.loads(files.summary.read_text())}


def _count(account: Mapping[str, Any], kept: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The account of a task in the words of the summary, with what the kept episodes add up to."""
    same = ("failed", "kept", "dropped", "review", "not_assessed", "damaged")
    return {
        "attempted": account["generated"],
        "succeeded": account["generated"] - sum(account["failed"].values()) - account["damaged"],
        **{name: account[name] for name in same},
        "frames": sum(meta["length"] for meta in kept),
    }
