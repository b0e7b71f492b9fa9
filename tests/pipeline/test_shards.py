"""Shards are locked, watched and accounted for: hung seeds, crashes, and two writers."""

import json
import multiprocessing
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from pipeline.errors import UserError
from pipeline.locks import lock_attempts
from pipeline.record import Request, plan_shards, record
from pipeline.shards import Progress, record_shard
from pipeline.store import Run, read_meta
from pipeline.watch import State
from pipeline.yields import task_yields

TASK = "peg_round_8mm"
SILENCE_S = 1.0

pytestmark = pytest.mark.usefixtures("fake_worker")


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pipeline.store.LOCK_PATIENCE_S", 0.1)


def content(root: Path) -> dict[str, str]:
    return {folder.name: read_meta(folder)["content_hash"] for folder in Run(root).folders()}


def test_shards_cover_what_is_missing_and_nothing_else(request_of: Callable[..., Request], tmp_path: Path) -> None:
    request = request_of(episodes=5)
    assert [(s.task, s.attempts) for s in plan_shards(request, size=2)][:3] == [
        (TASK, (0, 1)),
        (TASK, (2, 3)),
        (TASK, (4,)),
    ]
    record_shard(plan_shards(request, size=2)[1])
    Run(tmp_path / "run").quarantine_seed(TASK, 3, 4, "for a test")
    assert [s.attempts for s in plan_shards(replace(request, tasks=(TASK,)), size=2)] == [(0, 1)]


def test_a_single_attempt_equals_that_of_the_whole_run(request_of: Callable[..., Request], tmp_path: Path) -> None:
    record(request_of())
    alone = record(request_of(root=tmp_path / "alone", tasks=(TASK,), episodes=1, first_attempt=3))
    assert [meta["attempt"] for meta in alone.episodes] == [3]
    assert content(tmp_path / "alone").items() < content(tmp_path / "run").items()


def test_a_seed_that_hangs_twice_is_put_aside_and_the_others_are_kept(
    request_of: Callable[..., Request], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("FAKE_HANG", "2")
    request = request_of(tasks=(TASK,), num_envs=2)
    heard: list[Progress] = []
    (shard,) = plan_shards(request)
    report = record_shard(shard, heard.append, SILENCE_S)
    assert (report.state, report.new, report.hung) == (State.DONE, 4, (2,))
    assert [event.kind for event in heard].count("hung") == 1
    note = json.loads((tmp_path / "run/quarantine/seeds" / f"{TASK}-s3-00002.json").read_text())
    assert (note["attempt"], note["reason"]) == (2, "hung")
    assert plan_shards(request) == []
    recorded = record(request)
    summary = recorded.to_dict()
    assert (summary["attempted"], summary["new"]) == (5, 0)
    assert summary["by_reason"] == {"missed_grasp": 1, "hung": 1}
    assert summary["succeeded"] + sum(summary["by_reason"].values()) == summary["attempted"]
    (measured,) = task_yields(recorded)
    assert (measured.attempted, measured.by_reason["hung"]) == (5, 1)
    monkeypatch.delenv("FAKE_HANG")
    (tmp_path / "run/quarantine/seeds" / f"{TASK}-s3-00002.json").unlink()
    assert record(request).new == 1


@pytest.mark.parametrize(
    ("environment", "state", "advice"),
    [
        ({"FAKE_CRASH_AFTER": "1"}, State.OUT_OF_MEMORY, "fewer --num-envs or --workers"),
        ({"FAKE_CRASH_AFTER": "1", "FAKE_SIGNAL": "11"}, State.CRASHED, "exit code -11"),
        ({"FAKE_START": "crash"}, State.NOT_STARTED, "demomill doctor"),
        ({"FAKE_START": "hang"}, State.NOT_STARTED, "said nothing for 1 s"),
        ({"FAKE_ERROR": "too hot"}, State.REFUSED, "too hot"),
    ],
    ids=str,
)
def test_a_shard_ends_in_a_named_state_that_says_what_to_do(
    request_of: Callable[..., Request],
    monkeypatch: pytest.MonkeyPatch,
    environment: dict[str, str],
    state: State,
    advice: str,
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    (shard,) = plan_shards(request_of(tasks=(TASK,)))
    report = record_shard(shard, silence_s=SILENCE_S)
    assert report.state is state
    assert advice in report.problem
    assert report.hung == ()
    for name in environment:
        monkeypatch.delenv(name)
    assert record_shard(shard).new == 5 - report.new


def test_other_shards_go_on_and_each_problem_is_named(
    request_of: Callable[..., Request], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("FAKE_CRASH_AFTER", "4")
    with pytest.raises(UserError) as problem:
        record(request_of())
    assert [line.split(",")[0] for line in str(problem.value).splitlines()] == ["peg_round_8mm", "peg_round_4mm"]
    assert len(Run(tmp_path / "run").folders()) == 8


def test_two_processes_never_record_the_same_attempt(request_of: Callable[..., Request], tmp_path: Path) -> None:
    request = request_of(tasks=(TASK,))
    (whole,) = plan_shards(request)
    with lock_attempts(tmp_path / "run", TASK, (4,)):
        with pytest.raises(UserError, match=f"recording attempt 4 of {TASK}"):
            record_shard(whole)
        assert record_shard(replace(whole, attempts=(0, 1))).new == 2
    with lock_attempts(tmp_path / "run", "peg_round_4mm", (0,)):
        assert record_shard(whole).new == 3
    assert record_shard(whole).new == 0


def test_shards_are_recorded_by_processes_that_the_caller_did_not_start(
    request_of: Callable[..., Request], tmp_path: Path
) -> None:
    shards = plan_shards(request_of(), size=2)
    with ProcessPoolExecutor(2, multiprocessing.get_context("fork")) as pool:
        reports = list(pool.map(record_shard, shards))
    assert {report.state for report in reports} == {State.DONE}
    assert sum(report.new for report in reports) == 10
    record(request_of(root=tmp_path / "other"))
    assert content(tmp_path / "run") == content(tmp_path / "other")
