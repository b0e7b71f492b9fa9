"""Whatever a user gets wrong is one line on standard error and exit code 2, and costs no data."""

import errno
import json
from pathlib import Path

import pytest

from pipeline import store
from pipeline.checks.findings import finding
from pipeline.engine import Engine
from pipeline.record import Request
from pipeline.store import Run
from randomization.draws import COMPETENCE
from tests.pipeline.cli.conftest import Answer
from tests.pipeline.factories import make_episode, write_run

PEG = ("--task", "peg_round_8mm")


def bad(answer: Answer, *words: str) -> None:
    assert answer.code == 2
    for word in words:
        assert word in answer.complaint


def no_space(*_: object, **__: object) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


def snapshot(root: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(root)): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file() and path.name != ".lock"
    }


@pytest.mark.parametrize("command", ["record", "generate"])
def test_unknown_task_names_the_nearest(demomill, tmp_path, command):
    bad(demomill(command, "--task", "peg_round_8m", "--out", tmp_path / "run"), "'peg_round_8m'", "'peg_round_8mm'")
    assert not (tmp_path / "run").exists()


def test_unknown_task_cannot_be_checked(demomill):
    bad(demomill("check", "peg_round_8m"), "did you mean 'peg_round_8mm'")


def test_a_failed_check_is_one_line(demomill, monkeypatch):
    def failing(*_: object, **__: object) -> None:
        raise finding("peg_round_8mm", "the arm starts 0.30 rad from home", "reset its joint targets as well")

    monkeypatch.setattr("pipeline.checks.check_task", failing)
    bad(demomill("check", "peg_round_8mm"), "peg_round_8mm: the arm starts 0.30 rad from home; reset")


@pytest.mark.parametrize("command", ["record", "generate"])
def test_task_without_an_expert(demomill, monkeypatch, tmp_path, command):
    monkeypatch.delitem(COMPETENCE, "nut")
    bad(demomill(command, "--task", "nut_M8", "--out", tmp_path / "run"), "nut_M8", "no expert yet")


def test_bad_input_of_yield_leaves_nothing_behind(demomill, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    bad(demomill("yield", "--task", "peg_round_8m"), "'peg_round_8mm'")
    bad(demomill("yield", *PEG, "--episodes", "0"), "--episodes is 0")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("option", "value", "word"),
    [
        ("--episodes", "0", "--episodes is 0"),
        ("--episodes", "-3", "--episodes is -3"),
        ("--num-envs", "0", "--num-envs is 0"),
        ("--workers", "0", "--workers is 0"),
        ("--seed", "-1", "--seed is -1"),
        ("--device", "cuda:99", "it has: cpu"),
        ("--episodes", "many", "'--episodes'"),
        ("--threads", "0", "'--threads'"),
    ],
)
def test_option_out_of_range(demomill, tmp_path, option, value, word):
    bad(demomill("record", *PEG, "--out", tmp_path / "run", option, value), word)
    assert not (tmp_path / "run").exists()


def test_unknown_command_and_missing_option(demomill):
    bad(demomill("recrod"), "recrod", "'record'")
    bad(demomill("record", *PEG), "--out")
    bad(demomill("qc"), "SOURCE")


@pytest.mark.parametrize("command", ["record", "generate"])
def test_folder_of_another_run(demomill, tmp_path, command):
    request = Request(tmp_path, ("peg_round_8mm",), 4, 1000, Engine())
    Run.open(tmp_path, request.recipe).commit(make_episode())
    before = snapshot(tmp_path)
    answer = demomill(command, *PEG, "--seed", "7", "--device", "cpu", "--out", tmp_path)
    bad(answer, str(tmp_path), "run_seed is 1000 there, 7 here")
    assert snapshot(tmp_path) == before


@pytest.mark.parametrize("command", ["record", "generate"])
def test_folder_with_other_files(demomill, tmp_path, command):
    (tmp_path / "thesis.tex").write_text("years of work")
    bad(demomill(command, *PEG, "--out", tmp_path), str(tmp_path), "not a run folder")
    assert snapshot(tmp_path) == {"thesis.tex": b"years of work"}


@pytest.mark.parametrize("command", ["record", "generate"])
def test_unwritable_folder(demomill, tmp_path, command):
    (tmp_path / "file").write_text("")
    out = tmp_path / "file" / "run"
    bad(demomill(command, *PEG, "--out", out), str(out), "cannot be written")


@pytest.mark.parametrize("command", ["qc", "render", "export"])
def test_folder_without_a_run(demomill, tmp_path, command):
    more = ("--out", tmp_path / "dataset") if command == "export" else ()
    bad(demomill(command, tmp_path / "nothing", *more), "no run here", "demomill record")


@pytest.mark.parametrize("command", ["qc", "render", "export"])
def test_run_without_an_episode(demomill, tmp_path, command):
    Run.open(tmp_path / "run", {"run_seed": 1})
    more = ("--out", tmp_path / "dataset") if command == "export" else ()
    bad(demomill(command, tmp_path / "run", *more), "demomill record")


def test_nothing_to_show(demomill, tmp_path):
    write_run(tmp_path / "run", [make_episode(reason="dropped")], cameras=())
    bad(demomill("strips", tmp_path / "run", "--out", tmp_path / "pictures"), "no successful episode")
    bad(demomill("strips", tmp_path / "nothing", "--out", tmp_path / "pictures"), "no run here")
    assert not (tmp_path / "pictures").exists()


def test_damaged_run_description(demomill, tmp_path):
    (tmp_path / "run.json").write_text("{")
    bad(demomill("record", *PEG, "--out", tmp_path), "run.json")


def test_no_space_left(demomill, tmp_path, monkeypatch):
    monkeypatch.setattr(store, "write_atomically", no_space)
    bad(demomill("record", *PEG, "--out", tmp_path / "run"), "no space left", "same command")


def test_no_space_left_for_verdicts(demomill, tmp_path, monkeypatch):
    write_run(tmp_path, [make_episode(attempt=n) for n in range(3)], cameras=())
    before = snapshot(tmp_path)
    monkeypatch.setattr(Path, "write_text", no_space)
    bad(demomill("qc", tmp_path), "no space left")
    assert before.items() <= snapshot(tmp_path).items()


def test_damaged_episode_is_reported_and_left_alone(demomill, tmp_path):
    run = write_run(tmp_path, [make_episode(attempt=n) for n in range(4)])
    broken = run.folders()[1] / "frames.parquet"
    broken.write_bytes(broken.read_bytes()[:100])
    answer = demomill("qc", tmp_path, "--json")
    assert answer.code == 0
    assert broken.parent.name in answer.err
    assert broken.parent.name in [each["id"] for each in json.loads(answer.out)["damaged"]]
    assert len(broken.read_bytes()) == 100


def test_damaged_episode_stops_the_export(demomill, tmp_path):
    run = write_run(tmp_path / "run", [make_episode(attempt=n) for n in range(4)])
    (run.folders()[1] / "episode.json").write_text("{}")
    bad(demomill("export", run.root, "--out", tmp_path / "dataset"), run.folders()[1].name)
    assert not (tmp_path / "dataset").exists()


def test_unknown_episode(demomill, tmp_path):
    write_run(tmp_path, [make_episode()])
    bad(demomill("render", tmp_path, "--episode", "peg_round_8mm-s7-00001"), "peg_round_8mm-s7-00001")


def test_missing_gl_library(demomill, tmp_path, monkeypatch):
    from pipeline.render import opengl

    write_run(tmp_path, [make_episode()])
    monkeypatch.setattr(opengl, "BACKENDS", ())
    monkeypatch.delenv("MUJOCO_GL", raising=False)
    bad(demomill("render", tmp_path, "--renderer", "mujoco"), "OpenGL", "apt-get install")


def test_dataset_folder_with_other_files(demomill, tmp_path):
    write_run(tmp_path / "run", [make_episode()])
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "cat.jpg").write_bytes(b"cat")
    bad(demomill("export", tmp_path / "run", "--out", tmp_path / "photos"), "photos")
    bad(demomill("generate", *PEG, "--out", tmp_path / "new", "--dataset", tmp_path / "photos"), "photos")
    assert snapshot(tmp_path / "photos") == {"cat.jpg": b"cat"}


def test_unforeseen_error_is_one_line_and_a_log(demomill, tmp_path, monkeypatch):
    from pipeline import record

    def broken(*_: object) -> None:
        raise KeyError("bug")

    monkeypatch.setenv("DEMOMILL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(record, "get_task", broken)
    answer = demomill("record", *PEG, "--out", tmp_path / "run")
    assert answer.code == 1
    assert "KeyError" in answer.complaint
    log = Path(answer.complaint.rpartition("details are in ")[2])
    assert "Traceback" in log.read_text()


def test_verify_needs_a_dataset(demomill, tmp_path):
    bad(demomill("verify", tmp_path), str(tmp_path), "no LeRobot dataset here", "demomill export")
