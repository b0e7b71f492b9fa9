"""What the stages add to a run folder, and what its verdicts say."""

from dataclasses import dataclass
from pathlib import Path

import pandas as pd


@dataclass(frozen=True)
class RunFiles:
    """Places in a run folder."""

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
    def contact_sheet(self) -> Path:
        """Some kept episodes of each task."""
        return self.root / "contact_sheet.png"

    @property
    def summary(self) -> Path:
        """What ``demomill generate`` made."""
        return self.root / "summary.json"

    def read_verdicts(self) -> pd.DataFrame | None:
        """Table of verdicts, or None before the first assessment."""
        if not self.verdicts.is_file():
            return None
        from qc.verdicts import read_verdicts

        return read_verdicts(self.verdicts)
