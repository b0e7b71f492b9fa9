"""The stages of a run as plain functions, for the flow and for single commands; each can be repeated at no cost."""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from flows.reporter import REPORTER
from pipeline.doctor import WORKER_GIB, memory_gib
from pipeline.engine import Engine, choose_engine
from pipeline.errors import UserError
from pipeline.export import ExportSummary
from pipeline.export import export as export_run
from pipeline.export.selection import KEEP
from pipeline.record import Progress, Recorded, Request
from pipeline.record import record as record_attempts
from pipeline.render.episodes import Progress as Rendered
from pipeline.render.episodes import RenderSummary, render_run
from pipeline.store import Run, episode_id, explain_os_errors, read_meta, write_atomically
from qc.verdicts import read_verdicts


@dataclass(frozen=True)
class RunFiles:
    """What the stages add to a run folder."""

    root: Path

    @property
    def verdicts(self) -> Path:
        """Verdict of every episode."""
        return self.root / "qc" / "verdicts.csv"

    @property
    def accounting(self) -> Path:
        """Episodes counted by task, verdict and reason."""
        return self.root / "qc" / "accounting.json"

    @property
    def picture(self) -> Path:
        """Episodes in their first two principal components."""
        return self.root / "qc" / "pca.png"

    @property
    def summary(self) -> Path:
        """What ``demomill generate`` made."""
        return self.root / "summary.json"

    @property
    def contact_sheet(self) -> Path:
        """Some kept episodes of each task."""
        return self.root / "contact_sheet.png"


def request(
    root: Path,
    tasks: Sequence[str],
    episodes: int,
    seed: int,
    *,
    num_envs: int = 16,
    device: str = "auto",
    workers: int | None = None,
    threads: int | None = None,
) -> Request:
    """A recording on this machine; as many workers as it has room for unless a number is given.

    Raises:
        UserError: for an option that cannot be met.
    """
    engine = choose_engine(device, threads)
    tasks = tuple(dict.fromkeys(tasks))
    if workers is None:
        workers = _room_for_workers(engine, len(tasks))
    return Request(Path(root), tasks, episodes, seed, engine, num_envs, workers)


def record(request: Request) -> Recorded:
    """Record what is missing, with a line of progress a task."""
    reporter, failed = REPORTER.get(), Counter[str]()
    for task in request.tasks:
        folders = [
            request.root / "episodes" / task / episode_id(task, request.run_seed, attempt)
            for attempt in range(request.episodes)
        ]
        reporter.begin(task, request.episodes, sum(folder.is_dir() for folder in folders))

    def listen(event: Progress) -> None:
        if event.kind == "note":
            reporter.say(event.text)
            reporter.advance(event.task, -1)
            return
        failed[event.task] += event.outcome == "failure"
        reporter.advance(event.task, event.kind == "episode", f"{failed[event.task]} failed")

    return record_attempts(request, listen)


def assess(root: Path) -> dict[str, Any]:
    """Judge every episode and write verdicts, accounting and a picture into the run.

    Returns:
        The accounting, see :func:`qc.verdicts.accounting`.
    """
    from qc import verdicts
    from qc.embedding import embed
    from qc.episodes import read_run
    from qc.plots import plot_pca
    from qc.settings import Settings

    reporter, files = REPORTER.get(), RunFiles(root)
    found = read_run(root)
    for damaged in found.damaged:
        reporter.say(f"{damaged.id}: damaged, {damaged.why}; `demomill record` puts it aside and records it again")
    table = verdicts.assess(found.episodes, Settings())
    accounting = verdicts.accounting(table, found.damaged)
    with explain_os_errors(files.verdicts.parent):
        files.verdicts.parent.mkdir(exist_ok=True)
        verdicts.write_verdicts(files.verdicts, table)
        write_atomically(files.accounting, json.dumps(accounting, indent=2) + "\n")
        plot_pca(table, embed(found.episodes), files.picture)
    return accounting


def render(
    root: Path,
    episodes: Sequence[str] | None = None,
    *,
    everything: bool = False,
    look: str = "plain",
    renderer: str = "auto",
    workers: int | None = None,
) -> RenderSummary:
    """Render what is missing.

    Args:
        episodes: their ids; None means those that the verdicts keep, or all successes where there are none.
        everything: failures and dropped episodes as well.

    Raises:
        UserError: if there is nothing to render, an episode cannot be rendered, or the run cannot be used.
    """
    if not episodes:
        episodes = [folder.name for folder in Run(root).folders()] if everything else kept(root)
    if not episodes:
        raise UserError(f"{root}: no episode to render; record more, or give --all for failures as well")
    reporter = REPORTER.get()
    reporter.begin("render", len(set(episodes)))

    def listen(event: Rendered) -> None:
        if event.kind == "note":
            reporter.say(event.text)
        else:
            reporter.advance("render")

    summary = render_run(root, episodes, look=look, renderer=renderer, workers=workers, progress=listen)
    if summary.failed:
        episode, why = min(summary.failed.items())
        raise UserError(f"{len(summary.failed)} of {len(set(episodes))} episodes could not be rendered; {episode}: {why}")
    return summary


def kept(root: Path) -> list[str]:
    """Ids of the episodes that the run's verdicts keep; of all successes where it has no verdicts."""
    files = RunFiles(root)
    if files.verdicts.is_file():
        table = read_verdicts(files.verdicts)
        return [str(each) for each in table.loc[table["verdict"] == KEEP, "episode_id"]]
    metas = [read_meta(folder) for folder in Run(root).folders()]
    return [meta["id"] for meta in metas if meta["outcome"] == "success"]


def export(root: Path, out: Path, *, look: str = "plain") -> ExportSummary:
    """Build the dataset of the kept episodes."""
    verdicts = RunFiles(root).verdicts
    return export_run(root, out, read_verdicts(verdicts) if verdicts.is_file() else None, look=look)


def _room_for_workers(engine: Engine, tasks: int) -> int:
    if engine.device != "cpu":
        return 1
    return max(1, min(tasks, engine.threads, int(memory_gib() / WORKER_GIB)))
