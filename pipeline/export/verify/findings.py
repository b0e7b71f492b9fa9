"""What a verification found."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Finding:
    """Something in a dataset that is not as it should be.

    Attributes:
        file: path within the dataset.
        where: episode and row within that file, in words; empty if it is the file as a whole.
        problem: what is wrong, with the values.
    """

    file: str
    where: str
    problem: str

    def __str__(self) -> str:
        return f"{self.file}{', ' * bool(self.where)}{self.where}: {self.problem}"


@dataclass(frozen=True)
class Report:
    """Result of a verification.

    Attributes:
        root: the dataset folder.
        findings: by name of the check, in the order of the checks; a check that found nothing is there too.
        skipped: by name of the check, why it was not made.
        seconds: by name of the check.
    """

    root: Path
    episodes: int
    frames: int
    findings: Mapping[str, tuple[Finding, ...]]
    skipped: Mapping[str, str] = field(default_factory=dict)
    seconds: Mapping[str, float] = field(default_factory=dict)

    @property
    def passed(self) -> bool:
        """Whether nothing was found."""
        return not any(self.findings.values())

    def all_findings(self) -> list[Finding]:
        """Every finding, in order."""
        return [finding for found in self.findings.values() for finding in found]

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "dataset": str(self.root),
            "passed": self.passed,
            "episodes": self.episodes,
            "frames": self.frames,
            "checks": {
                name: {"seconds": self.seconds.get(name), "findings": [asdict(each) for each in found]}
                for name, found in self.findings.items()
            },
            "skipped": dict(self.skipped),
        }
