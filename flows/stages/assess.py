"""Judge episodes."""

from pathlib import Path
from typing import Any

import pandas as pd

from flows.reporter import REPORTER
from pipeline.errors import UserError
from pipeline.tasks import CATALOGUE
from qc.embedding import Embedding, embed
from qc.episodes import EpisodeSet
from qc.files import is_file
from qc.folder import Folder
from qc.readers.run import is_run
from qc.readers.source import find_source, read_source
from qc.settings import Settings
from qc.table import read_verdicts, to_json
from qc.verdicts import assess as judge

SHOWN = 10
"""Findings that are told while it works; all are written."""


def assess(
    source: Path | str,
    out: Path | None = None,
    decisions: Path | None = None,
    *,
    settings: Settings | None = None,
    videos: bool = False,
    report: bool = True,
) -> dict[str, Any]:
    """Judge every episode of a run or a dataset and write verdicts, accounts and a report.

    Args:
        source: run folder, folder of a LeRobot dataset, or its name on the Hub.
        out: where to write; ``qc`` in a run folder by default. It remembers what was judged, and takes nothing else.
        decisions: what people decided; ``decisions.toml`` in ``out`` by default, which is replaced by it.
        settings: thresholds; None takes the defaults.
        videos: compare videos with rows as well.
        report: write the report and a picture as well, which takes longer than the verdicts.

    Returns:
        ``tasks``: the account of each, as in :class:`qc.table.Account`; ``damaged``: folders that could not be read;
        ``diversity`` of each task, as in :class:`qc.diversity.Diversity`; ``findings``: what is wrong with files and
        rows; ``verdicts``: the rows of the table.

    Raises:
        QcError: if nothing can be read there, a decision does not fit or would be lost, or nothing can be written.
        UserError: if there is no episode, no place to write, or no file ``decisions``.
    """
    reporter, folder = REPORTER.get(), find_source(str(source), videos=videos)
    if out is None and not is_run(folder):
        raise UserError(f"{source}: say with --out where verdicts and report go; the dataset itself is left alone")
    if decisions is not None and not is_file(decisions):
        raise UserError(f"--decisions {decisions}: no such file; `demomill review` writes one, or leave the option out")
    files, fetched = Folder(out or folder / "qc"), folder != Path(source).expanduser()
    origin = f"hf://datasets/{source}" if fetched else files.origin(folder)
    files.require_place(folder, origin)
    decided = files.decided(decisions)
    found = read_source(folder, videos=videos)
    for damaged in found.damaged:
        reporter.say(f"{damaged.id}: damaged ({damaged.why}); recording again puts it aside and replaces it")
    for finding in found.findings[:SHOWN]:
        reporter.say(str(finding))
    if len(found.findings) > SHOWN:
        reporter.say(f"{len(found.findings) - SHOWN} more findings are in {files.accounting}")
    if not found.episodes:
        raise UserError(f"{source}: no readable episode to assess; record some with `demomill record`")
    settings = settings or Settings()
    embedding = _embed(found, settings)
    table = judge(found, settings, embedding, decided)
    counted = files.save(table, found, decided, tuple(CATALOGUE), origin)
    if report:
        _draw(files, str(source) if fetched else folder.resolve().name, table, found, embedding, counted)
    return {**counted, "verdicts": to_json(table)}


def redraw(root: Path, settings: Settings) -> None:
    """Make report and picture of a run again where a decision has removed them; raises QcError where it cannot."""
    files = Folder(root / "qc")
    if not (files.report.is_file() and files.picture.is_file()):
        found, table = read_source(root), read_verdicts(files.verdicts)
        _draw(files, root.resolve().name, table, found, _embed(found, settings), files.read_accounts())


def _embed(found: EpisodeSet, settings: Settings) -> Embedding:
    return embed([episode for episode in found.episodes if episode.sound], settings.points)


def _draw(
    files: Folder, name: str, table: pd.DataFrame, found: EpisodeSet, embedding: Embedding, counted: dict[str, Any]
) -> None:
    from qc.plots import plot_pca
    from qc.report.page import write_report

    plot_pca(table, embedding, files.picture, tuple(counted["tasks"]))
    write_report(files.report, name, table, found, embedding, counted)
