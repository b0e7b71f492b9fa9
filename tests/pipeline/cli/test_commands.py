import json
import re
import subprocess
import sys
import time
from dataclasses import replace

import pytest

from experts import EXPERTS
from pipeline import shards
from pipeline.doctor import CHECKS
from pipeline.store import episode_id
from pipeline.tasks import CATALOGUE
from randomization.draws import COMPETENCE
from tests.flows.fake_worker import fake_worker
from tests.pipeline.factories import make_episode, write_run

COMMANDS = (
    "tasks",
    "record",
    "yield",
    "check",
    "qc",
    "review",
    "render",
    "strips",
    "export",
    "verify",
    "generate",
    "doctor",
)
HEAVY = ("torch", "isaaclab", "lerobot", "prefect", "pandas", "mujoco", "trimesh", "matplotlib")


@pytest.mark.parametrize("command", COMMANDS)
def test_help_shows_an_example_that_parses(demomill, command):
    from typer.main import get_group

    from pipeline.cli.app import app

    answer = demomill(command, "--help")
    assert answer.code == 0
    example = re.sub(r"\s+", " ", answer.out[answer.out.index("Example: ") :]).split()
    assert example[1:3] == ["demomill", command]
    get_group(app).commands[command].make_context(command, example[3:])


def test_help_lists_every_command(demomill):
    answer = demomill()
    assert answer.code == 0
    assert answer.out == demomill("--help").out
    assert all(f"  {command} " in answer.out for command in COMMANDS)


def test_help_imports_nothing_heavy_and_is_quick():
    script = (
        "import sys\n"
        "from pipeline.cli import run\n"
        "assert run(['--help']) == 0\n"
        f"print([name for name in {HEAVY} if name in sys.modules], file=sys.stderr)\n"
    )
    start = time.process_time()
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stderr.strip() == "[]"
    assert time.process_time() - start < 1.0


def test_tasks(demomill):
    listed = json.loads(demomill("tasks", "--json").out)["tasks"]
    assert [task["id"] for task in listed] == list(CATALOGUE)
    assert {task["family"] for task in listed if task["has_expert"]} == set(EXPERTS)
    reasons = {task["id"]: task["failure_reasons"] for task in listed}
    assert {"missed_grasp", "jammed_at_mouth", "dropped", "diverged"} <= set(reasons["peg_round_8mm"])
    rows = demomill("tasks").out.splitlines()
    for task in CATALOGUE.values():
        (row,) = [line for line in rows if line.split()[:1] == [task.id]]
        assert task.instruction in row
        assert row.rstrip().endswith("yes" if task.family in EXPERTS else "not yet")


def test_record_prints_one_json_object(demomill, no_simulator, tmp_path):
    command = ("record", "--task", "peg_round_8mm", "--episodes", "8", "--seed", "5", "--out", tmp_path, "--json")
    answer = demomill(*command)
    assert answer.code == 0
    assert "peg_round_8mm: 8/8" in answer.err
    assert "noise of a library" in answer.err
    result = json.loads(answer.out)
    assert (result["attempted"], result["succeeded"], result["success_rate"]) == (8, 6, 0.75)
    assert result["by_reason"] == {"dropped": 2}
    assert result["new"] == 8
    assert [episode["id"] for episode in result["episodes"]] == [episode_id("peg_round_8mm", 5, n) for n in range(8)]
    keys = {"id", "task", "seed", "env_index", "outcome", "reason", "length", "content_hash"}
    assert all(keys <= episode.keys() for episode in result["episodes"])

    again = json.loads(demomill(*command).out)
    assert again == {**result, "new": 0}


def test_record_says_that_nothing_is_left_to_do(demomill, no_simulator, tmp_path):
    command = ("record", "--task", "peg_round_8mm", "--task", "peg_round_8mm", "--episodes", "4", "--out", tmp_path)
    first = demomill(*command)
    assert "4 new" in first.out
    assert re.search(r"peg_round_8mm +4 +3 +75\.0% +dropped 1", first.out)
    assert "nothing to do: all 4 episodes are there" in demomill(*command).out


def test_record_repeats_a_damaged_episode_and_keeps_the_pieces(demomill, no_simulator, tmp_path):
    command = ("record", "--task", "peg_round_8mm", "--episodes", "4", "--out", tmp_path, "--json")
    before = json.loads(demomill(*command).out)
    broken = tmp_path / "episodes" / "peg_round_8mm" / before["episodes"][2]["id"]
    (broken / "frames.parquet").write_bytes(b"PAR1")
    answer = demomill(*command)
    assert f"{broken.name}: damaged" in answer.err
    assert json.loads(answer.out) == {**before, "new": 1}
    assert (tmp_path / "quarantine" / broken.name / "frames.parquet").read_bytes() == b"PAR1"


YIELD = ("yield", "--task", "peg_round_8mm", "--episodes", "8", "--seed", "5")


def test_yield_prints_rates_with_intervals_and_leaves_nothing_behind(demomill, no_simulator, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    (found,) = json.loads(demomill(*YIELD, "--json").out)["tasks"]
    assert found == {
        "task": "peg_round_8mm",
        "attempted": 8,
        "succeeded": 6,
        "success_rate": 0.75,
        "wilson_low": pytest.approx(0.4093, abs=1e-4),
        "wilson_high": pytest.approx(0.9285, abs=1e-4),
        "by_reason": {"dropped": 2},
        "by_env_index": {"0": {"attempted": 8, "succeeded": 6}},
        "seconds_per_episode": 1.5,
    }
    assert list(tmp_path.iterdir()) == []
    table = demomill(*YIELD).out
    assert re.search(r"peg_round_8mm +6 of 8 +75\.0% +40\.9% to 92\.9% +1\.50 +dropped 2 +0: 6/8", table)


def test_yield_with_a_run_folder_goes_on_from_it(demomill, no_simulator, tmp_path):
    first = json.loads(demomill(*YIELD, "--out", tmp_path, "--json").out)["tasks"]
    again = json.loads(demomill(*YIELD, "--out", tmp_path, "--json").out)["tasks"]
    assert again == [{**first[0], "seconds_per_episode": None}]
    (more,) = json.loads(demomill(*YIELD[:-3], "9", *YIELD[-2:], "--out", tmp_path, "--json").out)["tasks"]
    assert (more["attempted"], more["seconds_per_episode"]) == (9, 1.5)


def test_yield_measures_every_task_with_an_expert(demomill, no_simulator, tmp_path):
    found = json.loads(demomill("yield", "--episodes", "1", "--out", tmp_path, "--json").out)["tasks"]
    assert [each["task"] for each in found] == [task.id for task in CATALOGUE.values() if task.family in COMPETENCE]


def test_interrupted_yield_keeps_what_it_has(demomill, monkeypatch, tmp_path):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr(shards, "watch", fake_worker(make_episode, dies_after=2))
    answer = demomill(*YIELD)
    assert answer.code == 130
    (root,) = tmp_path.iterdir()
    assert f"--out {root}" in answer.err
    monkeypatch.setattr(shards, "watch", fake_worker(make_episode))
    assert json.loads(demomill(*YIELD, "--out", root, "--json").out)["tasks"][0]["attempted"] == 8


def test_qc_says_whether_the_episodes_differ(demomill, tmp_path):
    varied = [make_episode(attempt=n, length=30 + 2 * (n % 5)) for n in range(10)]
    template = [replace(varied[0], id=episode_id("gear_small", 7, n), task="gear_small", attempt=n) for n in range(10)]
    write_run(tmp_path, [*varied, *template], cameras=())
    found = json.loads(demomill("qc", tmp_path, "--json").out)["diversity"]
    assert {task: each["verdict"] for task, each in found.items()} == {"peg_round_8mm": "pass", "gear_small": "fail"}
    assert found["gear_small"]["measured"]["length_rows"] == 0.0
    assert "widen the task's start ranges" in demomill("qc", tmp_path).out


@pytest.mark.parametrize(("task", "has_expert"), [("peg_round_8mm", True), ("nut_M8", False)])
def test_check_passes_on_what_it_is_given(demomill, monkeypatch, task, has_expert):
    calls = []
    monkeypatch.setattr("experts.EXPERTS", {family: make for family, make in EXPERTS.items() if family != "nut"})
    monkeypatch.setattr("pipeline.checks.check_task", lambda *given, **options: calls.append((given, options)))
    monkeypatch.setattr("pipeline.checks.check_expert", lambda *given, **options: calls.append((given, options)))
    answer = demomill("check", task, "--episodes", "2", "--seed", "3", "--json")
    assert json.loads(answer.out) == {"task": task, "passed": True, "has_expert": has_expert}
    assert calls[0] == ((CATALOGUE[task],), {"num_envs": 2, "seed": 3})
    assert len(calls) == 1 + has_expert
    assert ("pass" if has_expert else "no expert yet") in demomill("check", task).out


def test_strips_show_the_success_of_median_length_of_each_task(demomill, monkeypatch, tmp_path):
    asked = []
    monkeypatch.setattr("flows.stages.strips.render", lambda _, ids, look: asked.extend(ids))
    episodes = [make_episode(attempt=n, length=20 + 4 * n, reason="dropped" if n == 4 else None) for n in range(5)]
    write_run(tmp_path / "run", [*episodes, make_episode("gear_small", reason="dropped")])
    answer = demomill("strips", tmp_path / "run", "--out", tmp_path / "pictures", "--json")
    drawn = json.loads(answer.out)["tasks"]
    assert [each["episode"] for each in drawn.values()] == asked == [episode_id("peg_round_8mm", 7, 2)]
    assert {path.name for path in (tmp_path / "pictures").iterdir()} == {"peg_round_8mm.png", "peg_round_8mm.gif"}


def test_interrupted_command_says_that_it_can_go_on(demomill, monkeypatch, tmp_path):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(shards, "watch", interrupted)
    answer = demomill("record", "--task", "peg_round_8mm", "--out", tmp_path / "run")
    assert answer.code == 130
    assert "same command" in answer.err.splitlines()[-1]


def test_doctor(demomill, monkeypatch):
    answer = demomill("doctor", "--json")
    report = json.loads(answer.out)
    assert answer.code == (0 if report["can_run"] else 1)
    assert len(report["checks"]) == len(CHECKS)
    assert report["checks"]["packages"]["value"]["isaaclab"]


def test_doctor_exits_with_1_and_a_remedy_if_something_is_missing(demomill, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("DEMOMILL_CACHE", str(tmp_path / "file" / "cache"))
    answer = demomill("doctor")
    assert answer.code == 1
    assert "DEMOMILL_CACHE" in answer.out


def test_one_attempt_is_recorded_and_the_manifest_notices_changes(demomill, no_simulator, tmp_path):
    command = ("record", "--task", "peg_round_8mm", "--attempt", "4", "--out", tmp_path, "--json")
    assert [each["id"] for each in json.loads(demomill(*command).out)["episodes"]] == [
        episode_id("peg_round_8mm", 0, 4)
    ]
    refused = demomill("record", "--task", "peg_round_8mm", "--attempt", "-1", "--out", tmp_path / "other")
    assert (refused.code, "--attempt is -1" in refused.err) == (2, True)
    assert demomill("manifest", tmp_path).code == 0
    assert demomill("manifest", tmp_path, "--check").code == 0
    (tmp_path / "run.json").write_text((tmp_path / "run.json").read_text() + " ")
    answer = demomill("manifest", tmp_path, "--check")
    assert (answer.code, "run.json: holds other bytes" in answer.out) == (1, True)
