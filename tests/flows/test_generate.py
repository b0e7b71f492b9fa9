"""The whole way of the data, with made-up episodes in place of the simulator's."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from flows.server import prefect_server
from pipeline import shards
from pipeline.cli import run
from pipeline.errors import UserError
from tests.flows.fake_worker import ROWS, fake_worker, renderable

TASKS = ("peg_round_8mm", "peg_round_16mm")
EPISODES = 3


@pytest.fixture(scope="module", autouse=True)
def server():
    """One server for all tests: it takes seconds to start."""
    with prefect_server():
        from prefect.settings import PREFECT_API_URL

        url = PREFECT_API_URL.value()
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("PREFECT_API_URL", url)
            yield


def command(out: Path) -> list[str]:
    tasks = [word for task in TASKS for word in ("--task", task)]
    return ["generate", *tasks, "--episodes", str(EPISODES), "--device", "cpu", "--seed", "3", "--out", str(out)]


def bytes_of(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def stamps(root: Path) -> dict[str, int]:
    return {str(path): path.stat().st_mtime_ns for path in root.rglob("*.*") if path.is_file()}


@pytest.fixture(scope="module")
def made(tmp_path_factory, server):
    """A run that was interrupted while it recorded, then went on to the end."""
    out = tmp_path_factory.mktemp("generate") / "run"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shards, "watch", fake_worker(renderable, dies_after=2))
        assert run(command(out)) == 130
        assert 0 < len(list(out.glob("episodes/*/*"))) < len(TASKS) * EPISODES
        patch.setattr(shards, "watch", fake_worker(renderable))
        assert run(command(out)) == 0
    return out


def test_summary_adds_up(made):
    summary = json.loads((made / "summary.json").read_text())
    assert list(summary["tasks"]) == list(TASKS)
    assert list(summary["seconds"]) == ["record", "assess", "render", "export"]
    for counted in summary["tasks"].values():
        assert (counted["attempted"], counted["succeeded"]) == (EPISODES, EPISODES - 1)
        assert counted["failed"] == {"dropped": 1}
        by_reason = sum(sum(counted[name].values()) for name in ("failed", "dropped", "review"))
        assert counted["kept"] + by_reason + counted["not_assessed"] == EPISODES
        assert counted["frames"] == ROWS * counted["kept"]
    assert (made / "contact_sheet.png").is_file()
    assert {path.suffix for path in (made / "strips").iterdir()} == {".png", ".gif"}
    assert (made / "qc" / "pca.png").is_file()


def test_dataset_holds_the_kept_episodes(made):
    tasks = json.loads((made / "summary.json").read_text())["tasks"]
    info = json.loads((made / "dataset" / "meta" / "info.json").read_text())
    assert info["total_episodes"] == sum(counted["kept"] for counted in tasks.values()) > 0
    assert info["total_frames"] == sum(counted["frames"] for counted in tasks.values())
    assert sorted(path.name for path in (made / "dataset" / "videos").iterdir()) == [
        "observation.images.front",
        "observation.images.wrist",
    ]


def test_second_run_does_nothing_and_says_so(made, monkeypatch, capfd):
    def must_not_record(*_: object) -> None:
        raise AssertionError("there is nothing to record")

    before = stamps(made / "episodes"), stamps(made / "dataset"), (made / "summary.json").stat().st_mtime_ns
    monkeypatch.setattr(shards, "watch", must_not_record)
    assert run(command(made)) == 0
    assert "nothing to do" in capfd.readouterr().out
    assert before == (stamps(made / "episodes"), stamps(made / "dataset"), (made / "summary.json").stat().st_mtime_ns)


def test_json_is_one_object(made, capfd):
    assert run([*command(made), "--json"]) == 0
    result = json.loads(capfd.readouterr().out)
    assert result["new"] == {"recorded": 0, "rendered": 0, "exported": 0}
    assert result["dataset"] == str(made / "dataset")


def test_lost_video_is_rendered_and_exported_again(made):
    before = bytes_of(made / "dataset")
    video = next(made.glob("episodes/*/*/plain.front.mp4"))
    video.unlink()
    assert run(command(made)) == 0
    assert video.is_file()
    assert bytes_of(made / "dataset") == before


def test_stage_that_fails_is_one_line(made, tmp_path, monkeypatch, capfd):
    def full(*_: object) -> None:
        raise UserError("no space left")

    monkeypatch.setattr(shards, "watch", full)
    assert run(command(tmp_path / "run")) == 2
    assert capfd.readouterr().err.splitlines()[-1] == "demomill: no space left"


def test_server_dies_with_a_killed_client(tmp_path):
    script = "from flows.server import prefect_server\nwith prefect_server(): print('up', flush=True); input()"
    environment = {name: value for name, value in os.environ.items() if name != "PREFECT_API_URL"}
    client = subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    )
    assert client.stdout is not None
    assert client.stdout.readline() == "up\n"
    children = Path(f"/proc/{client.pid}/task/{client.pid}/children").read_text().split()
    assert children
    client.send_signal(signal.SIGKILL)
    client.wait()
    deadline = time.monotonic() + 10
    while any(Path(f"/proc/{child}").exists() for child in children):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_a_process_that_had_servers_ends_at_once():
    script = """
from flows.server import prefect_server
for _ in range(2):
    with prefect_server():
        from prefect import flow, task
        @task
        def step(): pass
        @flow
        def steps():
            for _ in range(5): step()
        steps()
"""
    environment = {name: value for name, value in os.environ.items() if name != "PREFECT_API_URL"}
    subprocess.run([sys.executable, "-c", script], env=environment, check=True, timeout=90, capture_output=True)


def test_prefect_keeps_to_its_own_home():
    from prefect.settings import PREFECT_HOME, PREFECT_SERVER_ANALYTICS_ENABLED

    assert Path.home() / ".prefect" != PREFECT_HOME.value()
    assert not PREFECT_SERVER_ANALYTICS_ENABLED.value()
