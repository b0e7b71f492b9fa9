"""Build the dataset."""

import json
from pathlib import Path

import pyarrow.parquet as pq

from flows.reporter import REPORTER
from flows.stages.files import RunFiles
from pipeline import __version__
from pipeline.export import ExportSummary
from pipeline.export import export as export_run
from pipeline.export.layout import EPISODES_PATH, MANIFEST_PATH
from pipeline.export.selection import select
from pipeline.render.cameras import CAMERAS
from pipeline.store import Run


def export(root: Path, out: Path, *, look: str = "plain") -> ExportSummary:
    """Build the dataset of the episodes that a run's verdicts keep, or of all successes where it has none."""
    reporter = REPORTER.get()
    reporter.begin("export", 1)
    summary = export_run(root, out, RunFiles(root).read_verdicts(), cameras=tuple(CAMERAS), look=look)
    reporter.advance("export")
    return summary


def is_current(root: Path, out: Path, *, look: str = "plain") -> bool:
    """Whether a dataset was built by this version, from the episodes that are kept now and after their last rendering.

    Raises:
        UserError: if a kept episode is not rendered or the verdicts do not fit the run.
    """
    manifest = out / MANIFEST_PATH
    if not manifest.is_file() or json.loads(manifest.read_text())["demomill"] != __version__:
        return False
    kept = select(Run(root), RunFiles(root).read_verdicts(), tuple(CAMERAS), look)
    rendered = max(video.stat().st_mtime for episode in kept for video in episode.videos.values())
    there = pq.read_table(out / EPISODES_PATH, columns=["content_hash", "verdict", "look"]).to_pylist()
    wanted = [
        {"content_hash": episode.meta["content_hash"], "verdict": episode.verdict, "look": look} for episode in kept
    ]
    return there == wanted and manifest.stat().st_mtime > rendered


def refresh(root: Path, out: Path) -> int:
    """Build the dataset unless it is current; returns the number of episodes exported."""
    return 0 if is_current(root, out) else export(root, out).episodes
