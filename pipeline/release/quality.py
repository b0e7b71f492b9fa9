"""What a card says of quality control: how many episodes came to what end, and its pictures."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipeline.errors import UserError
from pipeline.export.card import table
from pipeline.export.layout import MANIFEST_PATH
from pipeline.release.files import CARD_FOLDER
from pipeline.store import Run

_PICTURES = {
    "contact_sheet.png": "Some of the episodes: first, middle and last picture",
    "qc/pca.png": "Every episode in the first two principal components of its features",
}


@dataclass(frozen=True)
class Quality:
    """Parts of a card that a run tells.

    Attributes:
        sections: of the card's text.
        pictures: that it shows.
    """

    sections: tuple[str, ...] = ()
    pictures: tuple[Path, ...] = ()

    @classmethod
    def of(cls, run: Path, dataset: Path) -> "Quality":
        """What a run folder tells about a dataset that was exported from it.

        Raises:
            UserError: if the dataset was made from another run, or quality control did not assess the run.
        """
        manifest = json.loads((dataset / MANIFEST_PATH).read_text()) if (dataset / MANIFEST_PATH).is_file() else {}
        if manifest.get("run") != json.loads(json.dumps(Run(run).recipe)):
            raise UserError(f"{run}: {dataset} was exported from another run; give that one with --run")
        accounting = run / "qc" / "accounting.json"
        if not accounting.is_file():
            raise UserError(f"{run}: quality control did not assess it; run `demomill qc {run}`, or leave --run out")
        pictures = tuple(run / name for name in _PICTURES if (run / name).is_file())
        shown = [f"![{_PICTURES[path.relative_to(run).as_posix()]}]({CARD_FOLDER}/{path.name})" for path in pictures]
        text = [_HEADING, _accounts(json.loads(accounting.read_text())["tasks"]), *shown]
        return cls(("\n\n".join(text),), pictures)


_HEADING = """\
## Quality control

Every attempt is counted: generated = kept + dropped + under review + failed + not assessed. Nothing but what was kept
is in this dataset, once in every look; filters and people give the reasons."""


def _accounts(tasks: Mapping[str, Mapping[str, Any]]) -> str:
    rows = [
        (
            task,
            account["generated"],
            account["kept"],
            *(_reasons(account[end]) for end in ("dropped", "review", "failed")),
            account["not_assessed"],
        )
        for task, account in tasks.items()
    ]
    return table(("task", "generated", "kept", "dropped", "review", "failed", "not assessed"), rows)


def _reasons(counts: Mapping[str, int]) -> str:
    named = ", ".join(f"{reason} {count}" for reason, count in sorted(counts.items()))
    return f"{sum(counts.values())} ({named})" if counts else "0"
