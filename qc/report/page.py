"""Puts the report together."""

import html
import json
import os
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any

import pandas as pd

from qc.drawing import FLAGGED
from qc.embedding import Embedding
from qc.episodes import EpisodeSet
from qc.errors import QcError
from qc.figures import distance_figure, length_figure
from qc.filters.phases import phase_balance
from qc.rates import rates
from qc.report import tables
from qc.report.cards import cards
from qc.report.images import image
from qc.report.plane import map_data, map_section
from qc.trajectories import overlay_figure

_TASKS = 24
_OPEN = 3
_DPI = 110


def write_report(
    path: Path | str,
    title: str,
    table: pd.DataFrame,
    found: EpisodeSet,
    embedding: Embedding,
    counted: Mapping[str, Any],
) -> None:
    """Write the report as one HTML page with everything in it; tasks stand in the order of the accounts.

    Args:
        title: what was judged.
        table: verdicts.
        embedding: of the sound episodes of ``found``, in order.
        counted: accounts, as in :meth:`qc.folder.Folder.save`.

    Raises:
        QcError: if it cannot be written.
    """
    order = list(counted["tasks"])
    place = {task: i for i, task in enumerate(order)}
    table = table.sort_values("task", key=lambda tasks: tasks.map(place), kind="stable", ignore_index=True)
    data = map_data(table, embedding, order)
    page = Template(files("qc.report").joinpath("page.html").read_text("utf-8")).substitute(
        title=html.escape(title),
        summary=html.escape(tables.summary(counted["tasks"])),
        body=_body(table, found, embedding, counted, map_section(data)),
        data=json.dumps(data, allow_nan=False).replace("<", "\\u003c"),
    )
    path = Path(path)
    staging = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        staging.write_text(page, encoding="utf-8")
        staging.replace(path)
    except OSError as error:
        raise QcError(f"{path}: cannot be written ({error.strerror}); choose another folder") from None
    finally:
        staging.unlink(missing_ok=True)


def _body(table: pd.DataFrame, found: EpisodeSet, embedding: Embedding, counted: Mapping[str, Any], mapped: str) -> str:
    order = list(counted["tasks"])
    parts = [
        ("Accounts", tables.accounts(counted["tasks"])),
        ("Decisions of people", tables.decisions(table)),
        ("Diversity of the successes", tables.spread(counted["diversity"])),
        ("Map", mapped),
        ("Flagged episodes", cards(table, found, embedding)),
        ("Worst of each filter", tables.worst(table)),
        ("Lengths, kept beside flagged", _lengths(table, order)),
        ("Mahalanobis distances", _distances(table, order)),
        ("Trajectories", _trajectories(table, found, order)),
        ("Phases", tables.phases(phase_balance(e for e in found.episodes if e.succeeded), order)),
        ("Rates by env", tables.rates(rates(table))),
        ("Files and rows", tables.findings(counted)),
    ]
    return "\n".join(f"<h2>{heading}</h2>\n{content}" for heading, content in parts if content)


def _lengths(table: pd.DataFrame, order: Sequence[str]) -> str:
    there = [task for task in order if ((table["task"] == task) & (table["outcome"] == "success")).any()]
    if not there:
        return tables.note("No episode succeeded.")
    figure = length_figure(table[table["task"].isin(there[:_TASKS])], order)
    return image(figure, _DPI, "figure", "lengths by task") + _first(there)


def _distances(table: pd.DataFrame, order: Sequence[str]) -> str:
    if not table["mahalanobis_score"].notna().any():
        return tables.note("Not assessed: no task has enough episodes.")
    return image(distance_figure(table, order=order), _DPI, "figure", "distances measured against those expected")


def _trajectories(table: pd.DataFrame, found: EpisodeSet, order: Sequence[str]) -> str:
    there = [task for task in order if any(e.task == task and e.succeeded and e.sound for e in found.episodes)]
    if not there:
        return tables.note("No episode succeeded with rows that can be trusted.")
    seen = table[table["verdict"].isin(FLAGGED) & (table["outcome"] == "success")]
    flagged = seen["task"].value_counts()
    opened = [task for task in there if task in flagged.index][:_OPEN] or there[:1]
    parts = []
    for task in there[:_TASKS]:
        count = int(flagged.get(task, 0))
        drawn = image(overlay_figure(found.episodes, table, task), _DPI, "figure", task)
        parts.append(tables.folded(f"{task}: {count} flagged" if count else task, drawn, opened=task in opened))
    return "".join(parts) + _first(there)


def _first(tasks: Sequence[str]) -> str:
    return tables.note(f"The first {_TASKS} of {len(tasks)} tasks.") if len(tasks) > _TASKS else ""
