"""What is judged once stays known: in the datasets made of it, and in the report when people decide."""

from pathlib import Path

import pandas as pd
import pytest

from flows.stages.assess import assess
from flows.stages.export import choose, export
from flows.stages.judge import judge
from pipeline.recipe import read_recipe
from pipeline.store import Run
from qc.embedding import Embedding
from qc.folder import Folder
from qc.table import read_verdicts
from tests.pipeline.factories import make_episode, write_run

EPISODES = [make_episode(attempt=n, length=40) for n in range(4)]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return write_run(tmp_path / "run", EPISODES)


def test_a_decision_about_a_run_holds_for_the_dataset_made_of_it(run: Run, tmp_path: Path) -> None:
    assess(run.root, report=False)
    made, judged = Folder(run.root / "qc"), Folder(tmp_path / "judged")
    made.decide([EPISODES[2].id], "keep", "ada", "slow but right")
    export(run.root, tmp_path / "dataset", choose(run.root, cameras=()))
    assess(tmp_path / "dataset", judged.root, made.decisions, report=False)
    rows = read_verdicts(judged.verdicts).set_index("episode_id")
    assert rows.loc[EPISODES[2].id, "decided_why"] == "slow but right"
    assert set(rows["content_hash"]) <= {episode.content_hash() for episode in EPISODES}


def test_a_release_makes_the_report_again_that_a_decision_removed(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def draw(table: pd.DataFrame, _: Embedding, path: Path, *__: object) -> None:
        path.write_text(",".join(table["verdict"]))

    def write(path: Path, _: str, table: pd.DataFrame, *__: object) -> None:
        path.write_text(",".join(table["decided_why"]))

    monkeypatch.setattr("qc.plots.plot_pca", draw)  # the pictures themselves take seconds
    monkeypatch.setattr("qc.report.page.write_report", write)
    (path := tmp_path / "recipe.toml").write_text("seed = 0\n[quotas]\npeg_round_8mm = 2\n")
    recipe, files = read_recipe(path), Folder(run.root / "qc")
    assert judge(run.root, recipe)
    files.decide([EPISODES[1].id], "drop", "ada", "scrapes the rim")
    ruled = files.verdicts.read_bytes()
    assert not judge(run.root, recipe)
    assert files.verdicts.read_bytes() == ruled
    assert files.picture.read_text().split(",")[1] == "drop"
    assert files.report.read_text() == ",scrapes the rim,,"
