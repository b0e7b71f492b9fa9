"""What the stages add to a run folder, and which episodes it keeps."""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from flows.reporter import REPORTER
from pipeline.export.selection import KEEP
from pipeline.store import Run, read_meta


@dataclass(frozen=True)
class RunFiles:
    """Places in a run folder, and what they say."""

    root: Path

    @property
    def verdicts(self) -> Path:
        """Verdict of every episode."""
        return self.root / "qc" / "verdicts.parquet"

    @property
    def accounting(self) -> Path:
        """Episodes counted by task, verdict and reason."""
        return self.root / "qc" / "accounting.json"

    @property
    def picture(self) -> Path:
        """Episodes in their first two principal components."""
        return self.root / "qc" / "pca.png"

    @property
    def contact_sheet(self) -> Path:
        """Some kept episodes of each task."""
        return self.root / "contact_sheet.png"

    @property
    def strips(self) -> Path:
        """Folder with a phase strip and a clip of each task."""
        return self.root / "strips"

    @property
    def summary(self) -> Path:
        """What ``demomill generate`` made."""
        return self.root / "summary.json"

    def read_verdicts(self) -> pd.DataFrame | None:
        """Table of verdicts with people's decisions in force, or None before the first assessment.

        Raises:
            QcError: if either cannot be read, or a decision is of no episode that was judged.
        """
        if not self.verdicts.is_file():
            return None
        from qc.decisions import apply_decisions, read_decisions
        from qc.folder import Folder
        from qc.table import read_verdicts

        return apply_decisions(read_verdicts(self.verdicts), read_decisions(Folder(self.root / "qc").decisions))

    def kept(self) -> list[dict[str, Any]]:
        """``episode.json`` of the episodes that the verdicts keep; of all successes where there are no verdicts.

        Raises:
            UserError: if there is no run, or one of its episodes is damaged.
        """
        run, table = Run(self.root), self.read_verdicts()
        if table is None:
            return [meta for meta in map(read_meta, run.folders()) if meta["outcome"] == "success"]
        rows = table[table["verdict"] == KEEP]
        return [read_meta(run.folder(*names)) for names in zip(rows["task"], rows["episode_id"], strict=True)]


@contextmanager
def kept_or_temporary(out: Path | None) -> Iterator[Path]:
    """``out``, or without it a temporary run folder that is removed unless a recording in it breaks off."""
    if out is not None:
        yield out
        return
    root = Path(tempfile.mkdtemp(prefix="demomill-"))
    try:
        yield root
    except BaseException:
        if any(root.glob("episodes/*/*")):
            REPORTER.get().say(f"what was recorded is in {root}: give --out {root} to go on from there")
        else:
            shutil.rmtree(root)
        raise
    shutil.rmtree(root)
