"""What a card says of quality control: how many episodes came to what end, and its pictures."""

import io
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipeline.errors import UserError
from pipeline.export.card import table
from pipeline.export.layout import MANIFEST_PATH
from pipeline.release.files import CARD_FOLDER, File
from pipeline.store import Run

Accounts = Mapping[str, Mapping[str, Any]]
"""By task: ``generated``, ``kept``, ``not_assessed``; by reason: ``dropped``, ``review``, ``failed``."""

_ENDS = {
    "kept": "#0072B2",
    "dropped": "#D55E00",
    "review": "#E69F00",
    "failed": "#CC79A7",
    "not_assessed": "#999999",
}
_CHART = f"{CARD_FOLDER}/accounting.png"
_PICTURES = {
    "contact_sheet.png": "Some of the episodes",
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
    pictures: tuple[File, ...] = ()

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
        accounts = json.loads(accounting.read_text())["tasks"]
        found = {run / name: caption for name, caption in _PICTURES.items() if (run / name).is_file()}
        pictures = [File(f"{CARD_FOLDER}/{path.name}", path) for path in found]
        shown = [f"![{caption}]({CARD_FOLDER}/{path.name})" for path, caption in found.items()]
        text = [_HEADING, f"![What the attempts came to]({_CHART})", _table(accounts), *shown]
        return cls(("\n\n".join(text),), (File(_CHART, draw_accounts(accounts)), *pictures))


_HEADING = """\
## Quality control

Every attempt is counted: generated = kept + dropped + under review + failed + not assessed. Nothing but what was kept
is in this dataset, once in every look; filters and people give the reasons."""


def draw_accounts(accounts: Accounts) -> bytes:
    """A PNG with a bar for each task: what its attempts came to. The same accounts give the same bytes."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 1 + 0.3 * len(accounts)), layout="constrained")
    axes, tasks = figure.subplots(), list(accounts)
    left = [0] * len(tasks)
    for end, colour in _ENDS.items():
        counts = [_count(accounts[task][end]) for task in tasks]
        axes.barh(tasks, counts, left=left, color=colour, label=end.replace("_", " "))
        left = [a + b for a, b in zip(left, counts, strict=True)]
    axes.invert_yaxis()
    axes.set_xlabel("attempts")
    figure.legend(loc="outside upper center", ncols=len(_ENDS), frameon=False)
    picture = io.BytesIO()
    figure.savefig(picture, format="png", dpi=100, metadata={"Software": None})
    return picture.getvalue()


def _table(accounts: Accounts) -> str:
    rows = [
        (
            task,
            account["generated"],
            account["kept"],
            *(_reasons(account[end]) for end in ("dropped", "review", "failed")),
            account["not_assessed"],
        )
        for task, account in accounts.items()
    ]
    return table(("task", "generated", "kept", "dropped", "review", "failed", "not assessed"), rows)


def _count(value: int | Mapping[str, int]) -> int:
    return value if isinstance(value, int) else sum(value.values())


def _reasons(counts: Mapping[str, int]) -> str:
    named = ", ".join(f"{reason} {count}" for reason, count in sorted(counts.items()))
    return f"{_count(counts)} ({named})" if counts else "0"
