"""The form in which a person decides on doubtful episodes, in Prefect's UI."""

from pathlib import Path
from typing import Any

from prefect.input import RunInput
from pydantic import Field, create_model

from flows.reporter import REPORTER
from flows.stages.files import RunFiles
from qc.errors import QcError
from qc.folder import Folder


class Answer(RunInput):
    """Who resumes without filling it in goes on with the verdicts as they stand."""

    keep: list[str] = Field([], description="Episodes to keep, whatever the filters say.")
    drop: list[str] = Field([], description="Episodes to drop.")
    who: str = Field("", description="Your name.")
    why: str = Field("", description="The reason, for whoever reads the list next.")


def make_form(root: Path, doubtful: list[str], refused: str) -> type[Answer]:
    """The form for these episodes.

    Args:
        doubtful: ids; no others can be chosen.
        refused: why the answer before this one was not accepted, if there was one.
    """
    table = RunFiles(root).read_verdicts()
    assert table is not None
    rows = table[table["episode_id"].isin(doubtful)].sort_values("episode_id")
    lines = [
        *([f"**Not accepted: {refused}**\n"] if refused else []),
        f"{len(doubtful)} episodes of `{root}` wait for a decision. Choose which to keep and which to drop, and say",
        "who decides and why. What you leave out is not released. `demomill review` does the same.\n",
        *(f"- `{row.episode_id}`: {row.explanation}" for row in rows.itertuples()),
        f"\nReport: `{Folder(root / 'qc').report}`",
    ]
    named: Any = {"items": {"type": "string", "enum": doubtful}}
    fields: Any = {
        name: (list[str], Field([], description=Answer.model_fields[name].description, json_schema_extra=named))
        for name in ("keep", "drop")
    }
    return create_model("Review", __base__=Answer, **fields).with_initial_data(description="\n".join(lines))


def write_answer(root: Path, answer: Answer) -> None:
    """Write the decisions.

    Raises:
        QcError: if one cannot be, or an episode is to be kept and to be dropped.
    """
    if both := set(answer.keep) & set(answer.drop):
        raise QcError(f"{', '.join(sorted(both))}: to be kept and to be dropped; choose one")
    for verdict, episodes in (("keep", answer.keep), ("drop", answer.drop)):
        if episodes:
            Folder(root / "qc").decide(episodes, verdict, answer.who, answer.why)
            REPORTER.get().say(f"review: {answer.who} decides to {verdict} {', '.join(episodes)}: {answer.why}")
