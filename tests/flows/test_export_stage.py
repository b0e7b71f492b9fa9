"""What people decided is in force when a dataset is built."""

from pathlib import Path

import pytest

from flows.stages.assess import assess
from flows.stages.export import export
from pipeline.store import Run
from qc.decisions import Decision, write_decisions
from qc.errors import QcError
from tests.pipeline.factories import make_episode, write_run

EPISODES = [make_episode(attempt=n, length=40) for n in range(4)]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    made = write_run(tmp_path / "run", EPISODES)
    assess(made.root, report=False)
    return made


def decide(run: Run, content_hash: str, verdict: str) -> None:
    decision = Decision(content_hash, verdict, "me", "because")
    write_decisions(run.root / "qc" / "decisions.toml", {content_hash: decision})


def test_a_decision_since_the_verdicts_counts(run: Run, tmp_path: Path) -> None:
    before = export(run.root, tmp_path / "out").episodes
    decide(run, EPISODES[0].content_hash(), "drop")
    assert export(run.root, tmp_path / "out").episodes == before - 1


def test_a_decision_about_an_episode_that_is_gone_stops_it_before_it_writes(run: Run, tmp_path: Path) -> None:
    decide(run, "0" * 64, "keep")
    with pytest.raises(QcError, match="no episode here has this content hash"):
        export(run.root, tmp_path / "out")
    assert not (tmp_path / "out").exists()
