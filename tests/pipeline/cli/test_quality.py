"""``demomill qc`` on runs and datasets, and ``demomill review``."""

import json

import numpy as np
import pytest

from qc.episodes import ACTION, STATE
from qc.table import read_verdicts
from tests.pipeline.cli.test_bad_input import bad, snapshot
from tests.qc.datasets import edit_info, write_dataset
from tests.qc.factories import change, freeze, make_task, take, with_frames, write_run


def episodes():
    return change(make_task(12), [3], lambda e: freeze(e, 30, 85))


@pytest.fixture
def run(tmp_path):
    return write_run(tmp_path / "run", episodes())


@pytest.mark.parametrize("version", ["v3.0", "v2.1"])
def test_a_dataset_is_judged_and_left_alone(demomill, tmp_path, version):
    root = write_dataset(tmp_path / "dataset", episodes(), version=version)
    before = snapshot(root)
    answer = demomill("qc", root, "--out", tmp_path / "out", "--json")
    assert answer.code == 0, answer.err
    result = json.loads(answer.out)
    assert result["tasks"]["peg_round_8mm"]["dropped"] == {"idle": 1}
    assert [v["verdict"] for v in result["verdicts"]].count("drop") == 1
    assert result["verdicts"][3]["reasons"][0] == "idle"
    assert "rows 84 to" in result["verdicts"][3]["explanation"]
    assert read_verdicts(tmp_path / "out" / "verdicts.parquet")["episode_index"].tolist() == list(range(12))
    assert snapshot(root) == before


def test_a_dataset_needs_a_place_for_the_verdicts(demomill, tmp_path):
    root = write_dataset(tmp_path / "dataset", episodes())
    bad(demomill("qc", root), "--out")
    edit_info(root, total_episodes=99)
    bad(demomill("qc", root, "--out", tmp_path / "out"), "99 episodes declared, 12 described")
    assert not (tmp_path / "out").exists()
    (tmp_path / "file").write_text("mine")
    bad(demomill("qc", root, "--out", tmp_path / "file" / "out"), str(tmp_path / "file"), "is a file")


def test_decisions_that_are_not_there_are_no_decisions(demomill, run, tmp_path):
    before = snapshot(run)
    bad(demomill("qc", run, "--decisions", tmp_path / "kept.toml"), "kept.toml", "no such file")
    assert snapshot(run) == before


@pytest.mark.parametrize(
    ("given", "columns", "verdicts"),
    [
        (make_task(1), (STATE, ACTION), {"keep"}),
        (make_task(12), (ACTION,), {"keep"}),
        (make_task(12), (STATE,), {"keep"}),
        ([take(e, np.arange(1 + i)) for i, e in enumerate(make_task(3))], (STATE, ACTION), {"keep", "not_assessed"}),
        ([with_frames(e, {**e.frames, STATE: e.frames[STATE] * np.nan}) for e in make_task(12)], (STATE,), {"drop"}),
    ],
)
def test_the_least_that_a_dataset_may_hold_is_judged(demomill, tmp_path, given, columns, verdicts):
    root = write_dataset(tmp_path / "dataset", given, columns=columns)
    answer = demomill("qc", root, "--out", tmp_path / "out", "--no-report", "--json")
    assert answer.code == 0, answer.err
    assert {row["verdict"] for row in json.loads(answer.out)["verdicts"]} <= verdicts
    assert len(answer.err.splitlines()) <= 11


def test_people_decide(demomill, run):
    assert demomill("qc", run).code == 0
    listed = json.loads(demomill("review", "list", run, "--json").out)["episodes"]
    assert [row["verdict"] for row in listed] == ["drop"]
    name = listed[0]["episode_id"]
    assert name in demomill("review", "list", run).out
    assert demomill("review", "keep", run, name, "--why", "waits for a person", "--who", "ada").code == 0
    assert "ada: waits for a person" in demomill("review", "list", run).out
    assert json.loads(demomill("qc", run, "--json").out)["tasks"]["peg_round_8mm"]["kept"] == 12
    assert demomill("review", "undo", run, listed[0]["content_hash"][:10]).code == 0
    assert json.loads(demomill("review", "drop", run, name, "--why", "no", "--json").out)["verdict"] == "drop"


def test_a_mistake_changes_no_byte(demomill, run):
    assert demomill("qc", run).code == 0
    judged = snapshot(run)
    bad(demomill("review", "keep", run, "nobody", "--why", "x"), "nobody", "review list")
    bad(demomill("review", "undo", run, "nobody"), "nobody")
    assert snapshot(run) == judged
    (run / "qc" / "decisions.toml").write_text(
        '[[decision]]\ncontent_hash = "abc"\nverdict = "keep"\nwho = "a"\nwhy = "b"\n'
    )
    before = snapshot(run)
    bad(demomill("qc", run), "abc", "no episode here")
    assert snapshot(run) == before
    bad(demomill("review", "list", run / "episodes"), "no verdicts here")
