"""``demomill qc`` on runs and datasets, and ``demomill review``."""

import json

import numpy as np
import pandas as pd
import pytest

from qc.episodes import ACTION, STATE
from qc.table import read_verdicts
from tests.pipeline.cli.test_bad_input import bad, snapshot
from tests.qc.datasets import edit_info, write_dataset
from tests.qc.factories import change, copy_of, freeze, make_task, take, with_frames, write_run
from tests.qc.readers.films import ramp, write_filmed


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


@pytest.mark.parametrize(
    "place", [".", "qc", "meta", "meta/episodes/chunk-000", "data/chunk-000", "data/new/er", "link", "../link/meta"]
)
def test_nothing_is_written_into_a_dataset(demomill, tmp_path, place):
    root = write_dataset(tmp_path / "dataset", make_task(2))
    (tmp_path / "link").symlink_to(root)
    before = snapshot(root)
    bad(demomill("qc", root, "--out", tmp_path / place if place == "link" else root / place), "lies in", "left alone")
    other = write_dataset(tmp_path / "other", make_task(2))
    bad(demomill("qc", other, "--out", tmp_path / place if place == "link" else root / place), "lies in", "left alone")
    assert snapshot(root) == before


def test_a_dataset_whose_folders_lie_elsewhere_is_left_alone_as_well(demomill, tmp_path):
    root = write_dataset(tmp_path / "dataset", make_task(2))
    (root / "data").rename(tmp_path / "disk")
    (root / "data").symlink_to(tmp_path / "disk")
    bad(demomill("qc", root, "--out", tmp_path / "disk" / "chunk-000"), "lies in", "left alone")


@pytest.mark.parametrize("place", [".", "episodes", "shards/new", "qc2"])
def test_within_a_run_only_its_qc_is_written(demomill, run, place):
    before = snapshot(run)
    bad(demomill("qc", run, "--out", run / place), "lies in", "leave --out out")
    assert snapshot(run) == before
    assert demomill("qc", run, "--out", run / "qc", "--no-report").code == 0
    assert demomill("qc", run, "--no-report").code == 0


@pytest.mark.parametrize(("out", "told"), [("", "--out"), (" ", "--out"), ("n" * 300, "file name too long")])
def test_a_name_that_no_folder_can_have(demomill, run, monkeypatch, tmp_path, out, told):
    monkeypatch.chdir(tmp_path)
    before = snapshot(tmp_path)
    bad(demomill("qc", run, "--out", out), told)
    bad(demomill("qc", run, "--decisions", "n" * 300), "no such file")
    bad(demomill("review", "list", "n" * 300), "no verdicts here")
    assert snapshot(tmp_path) == before


@pytest.mark.parametrize("leads_to", ["nothing", "link"])
def test_a_link_that_leads_nowhere_is_no_place(demomill, run, tmp_path, leads_to):
    (tmp_path / "link").symlink_to(tmp_path / leads_to)
    bad(demomill("qc", run, "--out", tmp_path / "link"), "is a link that leads nowhere")


@pytest.mark.parametrize("name", ["verdicts.parquet", "rounds.jsonl", "report.html", "decisions.toml"])
def test_a_folder_in_the_place_of_a_file(demomill, run, tmp_path, name):
    (tmp_path / "out" / name).mkdir(parents=True)
    bad(demomill("qc", run, "--out", tmp_path / "out"), name, "is a folder")
    assert [path.name for path in (tmp_path / "out").iterdir()] == [name]


def test_a_folder_holds_verdicts_on_one_source(demomill, tmp_path):
    one, other = (write_dataset(tmp_path / name, make_task(2, seed=i)) for i, name in enumerate("ab"))
    out = tmp_path / "out"
    assert demomill("qc", one, "--out", out, "--no-report").code == 0
    assert demomill("review", "drop", out, "episode_000001", "--why", "scrapes").code == 0
    before = snapshot(out)
    bad(demomill("qc", other, "--out", out, "--no-report"), f"holds verdicts on {one}", str(out / "verdicts.parquet"))
    assert snapshot(out) == before
    one.rename(tmp_path / "moved")
    bad(demomill("qc", tmp_path / "moved", "--out", out), "has only been moved, remove")
    (out / "verdicts.parquet").unlink()
    told = json.loads(demomill("qc", tmp_path / "moved", "--out", out, "--json", "--no-report").out)
    assert [row["verdict"] for row in told["verdicts"]] == ["keep", "drop"]


@pytest.mark.parametrize("apart", [{"task": "another"}, {"outcome": "failure"}, {}])
def test_a_person_decides_about_one_of_two_that_move_alike(demomill, tmp_path, apart):
    given = make_task(3)
    given.append(copy_of(given[1], 3, **apart))
    root, out = write_dataset(tmp_path / "dataset", given), tmp_path / "out"
    meta = root / "meta" / "episodes" / "chunk-000" / "file-000.parquet"
    pd.read_parquet(meta).assign(outcome=[e.outcome for e in given]).to_parquet(meta)

    def verdicts():
        return read_verdicts(out / "verdicts.parquet")["verdict"].tolist()

    assert demomill("qc", root, "--out", out, "--no-report").code == 0
    assert verdicts() == ["keep", "review" if apart else "keep", "keep", "review" if "task" in apart else "drop"]
    assert demomill("review", "keep", out, "episode_000001", "--why", "right", "--who", "ada").code == 0
    assert demomill("review", "drop", out, "episode_000003", "--why", "wrong", "--who", "ada").code == 0
    assert verdicts() == ["keep", "keep", "keep", "drop"]
    assert demomill("qc", root, "--out", out, "--no-report").code == 0
    assert verdicts() == ["keep", "keep", "keep", "drop"]


def test_decisions_from_elsewhere_are_taken_over_and_none_is_lost(demomill, run, tmp_path):
    def drop(out, number):
        return demomill("review", "drop", out, make_task(12)[number].id, "--why", "x", "--who", "ada")

    one, other = tmp_path / "one", tmp_path / "other"
    assert demomill("qc", run, "--out", one, "--no-report").code == 0
    assert drop(one, 1).code == 0
    judge = ("qc", run, "--out", other, "--no-report", "--decisions", one / "decisions.toml")
    assert demomill(*judge).code == 0
    assert drop(other, 2).code == 0
    table = read_verdicts(other / "verdicts.parquet")
    assert table.loc[table["decided_by"] == "ada", "episode_id"].tolist() == [e.id for e in make_task(12)[1:3]]
    before = snapshot(other)
    bad(demomill(*judge), str(one / "decisions.toml"), str(other / "decisions.toml"), "lacks 1 of these")
    assert snapshot(other) == before
    assert drop(one, 2).code == 0
    assert drop(one, 5).code == 0
    assert demomill(*judge).code == 0
    assert (other / "decisions.toml").read_bytes() == (one / "decisions.toml").read_bytes()


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
        ([take(e, np.arange(1 + i)) for i, e in enumerate(make_task(3))], (STATE, ACTION), {"drop", "not_assessed"}),
        ([with_frames(e, {**e.frames, STATE: e.frames[STATE] * np.nan}) for e in make_task(12)], (STATE,), {"drop"}),
    ],
)
def test_the_least_that_a_dataset_may_hold_is_judged(demomill, tmp_path, given, columns, verdicts):
    root = write_dataset(tmp_path / "dataset", given, columns=columns)
    answer = demomill("qc", root, "--out", tmp_path / "out", "--no-report", "--json")
    assert answer.code == 0, answer.err
    assert {row["verdict"] for row in json.loads(answer.out)["verdicts"]} <= verdicts
    assert len(answer.err.splitlines()) <= 11


@pytest.mark.parametrize(("version", "dropped"), [("v3.0", [0, 1, 2]), ("v2.1", [1])])
def test_298_frames_for_300_rows_are_dropped_if_videos_are_looked_at(demomill, tmp_path, version, dropped):
    given = [take(e, np.arange(100)) for e in make_task(3)]  # lerobot 4462
    shades = [ramp(e, i) for i, e in enumerate(given)]
    shades[1] = shades[1][:-2]
    root, out = write_filmed(tmp_path / "dataset", given, shades, version), tmp_path / "out"
    answer = demomill("qc", root, "--out", out, "--videos", "--no-report")
    assert answer.code == 0, answer.err
    table = read_verdicts(out / "verdicts.parquet")
    assert table.index[table["verdict"] == "drop"].tolist() == dropped
    told = "300 rows of 3 episodes, but the video has 298 frames" if version == "v3.0" else "100 rows of 1 episodes"
    for i in dropped:
        assert table["reasons"][i] == ["integrity"]
        assert f"episode_{i:06d}" in table["explanation"][i]
        assert told in table["explanation"][i]


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
    told = (f"{run}/qc/decisions.toml: abc", "no episode here", "remove its entry from this file")
    bad(demomill("qc", run), *told)
    bad(demomill("review", "drop", run, make_task(1)[0].id, "--why", "x"), *told)
    assert snapshot(run) == before
    (run / "qc" / "verdicts.parquet").unlink()
    bad(demomill("qc", run), *told)
    bad(demomill("review", "list", run / "episodes"), "no verdicts here")
