"""Build the dataset."""

from collections.abc import Sequence
from pathlib import Path

from flows.reporter import REPORTER
from flows.stages.files import RunFiles
from pipeline.export import Choice, ExportSummary
from pipeline.export import export as export_run
from pipeline.export import is_current as is_current_export
from pipeline.export.hdf5 import export_hdf5
from pipeline.render.cameras import DEFAULT_CAMERAS
from pipeline.store import Run


def choose(
    root: Path,
    tasks: Sequence[str] | None = None,
    looks: Sequence[str] | None = None,
    quota: int = 1,
    *,
    test_fraction: float = 0.0,
    privileged: bool = True,
    cameras: Sequence[str] = DEFAULT_CAMERAS,
) -> Choice:
    """What to export of a run, from the options of a command.

    Args:
        quota: least number of kept episodes of each task.
        cameras: none for a dataset without pictures, which need not be rendered.

    Raises:
        UserError: if an option makes no sense or the run cannot be read.
    """
    recorded = dict.fromkeys(folder.parent.name for folder in Run(root).folders())
    return Choice(
        cameras=tuple(cameras),
        looks=tuple(looks or ("plain",)),
        tasks=tuple(tasks) if tasks else None,
        quota=dict.fromkeys(tasks or recorded, quota) if quota > 1 else {},
        test_fraction=test_fraction,
        privileged=privileged,
    )


def export(root: Path, out: Path, choice: Choice | None = None, *, hdf5: bool = False) -> ExportSummary:
    """Build the dataset of the episodes that a run's verdicts keep, or of all successes where it has none.

    Args:
        hdf5: make ``out`` one HDF5 file in robomimic's layout instead of a LeRobot dataset folder.
    """
    reporter = REPORTER.get()
    reporter.begin("export", 1)
    build = export_hdf5 if hdf5 else export_run
    summary = build(root, out, RunFiles(root).read_verdicts(), choice or Choice(cameras=DEFAULT_CAMERAS))
    reporter.advance("export")
    return summary


def is_current(root: Path, out: Path) -> bool:
    """Whether a dataset was built by this version, from the episodes that are kept now and after their last rendering.

    Raises:
        UserError: if a kept episode is not rendered or the verdicts do not fit the run.
    """
    return is_current_export(root, out, RunFiles(root).read_verdicts(), Choice(cameras=DEFAULT_CAMERAS))


def refresh(root: Path, out: Path) -> int:
    """Build the dataset unless it is current; returns the number of episodes exported."""
    return 0 if is_current(root, out) else export(root, out).episodes
