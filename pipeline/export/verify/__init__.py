"""Proof that a dataset is what it says, and what was recorded."""

import time
from collections.abc import Callable, Iterable
from itertools import islice
from pathlib import Path

from pipeline.export.verify import files, numbers, pictures, rows
from pipeline.export.verify.findings import Finding, Report
from pipeline.export.verify.reading import Reader, VideoOf, alone
from pipeline.export.verify.source import source_of
from pipeline.export.verify.tree import Tree

__all__ = ["Finding", "Report", "verify"]

MOST_FINDINGS = 20
"""Of one check; a broken file tends to break every row."""

_ALL = ("hashes", "places", "counts", "rows", "videos", "statistics", "LeRobot")


def verify(dataset: Path | str, run: Path | str | None = None, progress: Callable[[str], object] = str) -> Report:
    """Verify a LeRobot v3.0 dataset: of itself, through LeRobot's reader, and against the run it was made from.

    Args:
        dataset: the dataset folder; anyone's, though only ours has hashes to compare with.
        run: the run folder that it was exported from.
        progress: told the name of each check before it is made.

    Returns:
        Everything that was found, at most :data:`MOST_FINDINGS` of each check. Checks that build on a file that
        cannot be read are skipped and named.

    Raises:
        UserError: if there is no such dataset, or the run is not the one it was made from.
    """
    tree = Tree(Path(dataset).resolve())
    source = source_of(Path(run), tree) if run is not None else None
    log = _Log(progress)
    if log.check("footers", lambda: files.check_footers(tree)):
        return log.report(tree, "a file cannot be read")
    if tree.ours:
        log.check("hashes", lambda: files.check_hashes(tree))
    else:
        log.skipped["hashes"] = "the dataset has no manifest of demomill"
    if log.check("places", lambda: files.check_places(tree)):
        return log.report(tree, "files are missing or too many")
    log.check("counts", lambda: files.check_counts(tree))
    log.check("rows", lambda: rows.check_rows(tree))
    log.check("videos", lambda: pictures.check_videos(tree))
    if not tree.is_aligned():
        return log.report(tree, "rows cannot be assigned to episodes")
    log.check("statistics", lambda: numbers.check_statistics(tree))
    if tree.ours:
        log.check("picture statistics", lambda: numbers.check_picture_statistics(tree))
    if source is not None:
        log.check("rows of the run", source.check_rows)
        log.check("packets of the run", source.check_packets)
    _read_back(tree, None if source is None else source.video, log)
    return log.report(tree)


def _read_back(tree: Tree, video_of: VideoOf | None, log: "_Log") -> None:
    with alone():
        reader = Reader(tree, video_of)
        log.check("LeRobot, windows", reader.check_windows)
        log.check("LeRobot, single rows", reader.check_rows_alone)
        log.check("LeRobot, chosen episodes", reader.check_choice)
        if why := reader.why_not_streamed():
            log.skipped["LeRobot, stream"] = why
        else:
            log.check("LeRobot, stream", reader.check_stream)


class _Log:
    """Makes checks one by one and keeps what they find; a check that breaks off has found something, too."""

    def __init__(self, progress: Callable[[str], object]) -> None:
        self._progress = progress
        self._findings: dict[str, tuple[Finding, ...]] = {}
        self._seconds: dict[str, float] = {}
        self.skipped: dict[str, str] = {}

    def check(self, name: str, make: Callable[[], Iterable[Finding]]) -> bool:
        """Make one check; returns whether it found anything."""
        self._progress(name)
        start, found = time.perf_counter(), list[Finding]()
        try:
            found.extend(islice(make(), MOST_FINDINGS))
        except Exception as error:
            # Damage has no limits: whatever a reader stumbles over is a fault of the file, not of the command.
            found.append(Finding(".", name, f"cannot be read ({type(error).__name__}: {' '.join(str(error).split())})"))
        self._findings[name], self._seconds[name] = tuple(found), round(time.perf_counter() - start, 3)
        return bool(found)

    def report(self, tree: Tree, why: str = "") -> Report:
        """The report; ``why`` says for what reason nothing more was checked."""
        if why:
            self.skipped |= {name: why for name in _ALL if name not in self._findings}
        whole = not self._findings.get("footers")
        return Report(
            root=tree.root,
            episodes=len(tree.members) if whole else int(tree.info.get("total_episodes", 0)),
            frames=sum(member.length for member in tree.members) if whole else int(tree.info.get("total_frames", 0)),
            findings=self._findings,
            skipped=self.skipped,
            seconds=self._seconds,
        )
