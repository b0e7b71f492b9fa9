"""Requests, resuming and failing workers, with a worker that hands in ready-made episodes."""

from collections.abc import Callable
from pathlib import Path

import pytest

from experts.contract import Handicap
from pipeline.engine import Engine
from pipeline.errors import UserError
from pipeline.faults import Fault
from pipeline.record import MAX_SEED, Recorded, Request, record, success_by_task
from pipeline.shards import Progress
from pipeline.sim.worker import Shard
from pipeline.store import Run, read_episode
from tests.pipeline.conftest import TASKS


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pipeline.store.LOCK_PATIENCE_S", 0.1)


def hashes(recorded: Recorded) -> list[str]:
    return [episode["content_hash"] for episode in recorded.to_dict()["episodes"]]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"tasks": ("peg_rond_8mm",)}, "did you mean 'peg_round_8mm'"),
        ({"tasks": ()}, "no task given"),
        ({"episodes": 0}, "--episodes is 0"),
        ({"episodes": -3}, "--episodes is -3"),
        ({"num_envs": 0}, "--num-envs is 0"),
        ({"workers": 0}, "--workers is 0"),
        ({"run_seed": -1}, "--seed is -1"),
        ({"run_seed": MAX_SEED + 1}, "--seed is"),
    ],
    ids=str,
)
def test_bad_requests_are_refused_before_anything_is_written(
    request_of: Callable[..., Request], tmp_path: Path, changes: dict[str, object], message: str
) -> None:
    with pytest.raises(UserError, match=message):
        request_of(**changes)
    assert not (tmp_path / "run").exists()


def test_a_recipe_holds_what_episodes_depend_on_and_nothing_else(request_of: Callable[..., Request]) -> None:
    recipe = request_of().recipe
    for free in ({"num_envs": 3}, {"workers": 2}, {"episodes": 9}, {"tasks": ("peg_round_16mm",)}):
        assert request_of(**free).recipe == recipe
    assert request_of(engine=Engine(threads=7)).recipe == recipe
    for bound in (
        {"run_seed": 4},
        {"engine": Engine(substeps=12)},
        {"fault": Fault(pad_friction=0.0)},
        {"handicap": Handicap(seat_error_m=(0.004, 0.0))},
    ):
        assert request_of(**bound).recipe != recipe


@pytest.mark.usefixtures("fake_worker")
def test_every_attempt_is_recorded_once_in_order(request_of: Callable[..., Request]) -> None:
    heard: list[Progress] = []
    recorded = record(request_of(), heard.append)
    summary = recorded.to_dict()
    assert recorded.new == summary["attempted"] == 10
    assert (summary["succeeded"], summary["success_rate"]) == (8, 0.8)
    assert summary["by_reason"] == {"missed_grasp": 2}
    assert [episode["id"] for episode in summary["episodes"]] == [
        f"{task}-s3-{attempt:05d}" for task in TASKS for attempt in range(5)
    ]
    assert [event.kind for event in heard].count("episode") == 10
    assert recorded.seconds_per_episode == dict.fromkeys(TASKS, 0.4)
    assert success_by_task(recorded.episodes)["peg_round_4mm"] == {"success": 4, "missed_grasp": 1}


@pytest.mark.usefixtures("fake_worker")
def test_the_same_command_again_does_nothing(request_of: Callable[..., Request]) -> None:
    first = record(request_of())
    heard: list[Progress] = []
    again = record(request_of(), heard.append)
    assert again.new == 0
    assert heard == []
    assert hashes(again) == hashes(first)


@pytest.mark.usefixtures("fake_worker")
def test_a_larger_request_only_adds(request_of: Callable[..., Request]) -> None:
    first = record(request_of())
    more = record(request_of(episodes=7))
    assert more.new == 4
    assert set(hashes(first)) < set(hashes(more))


@pytest.mark.usefixtures("fake_worker")
@pytest.mark.parametrize("crash_after", [0, 1, 4])
def test_a_killed_worker_loses_nothing_and_the_next_run_goes_on(
    request_of: Callable[..., Request], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, crash_after: int
) -> None:
    monkeypatch.setenv("FAKE_CRASH_AFTER", str(crash_after))
    with pytest.raises(UserError, match=rf"after {crash_after} of 5 episodes, which are kept; see .*\.log"):
        record(request_of(tasks=("peg_round_8mm",)))
    assert len(Run(tmp_path / "run").folders()) == crash_after
    monkeypatch.delenv("FAKE_CRASH_AFTER")
    resumed = record(request_of(tasks=("peg_round_8mm",)))
    assert resumed.new == 5 - crash_after
    whole = record(request_of(root=tmp_path / "other", tasks=("peg_round_8mm",)))
    assert hashes(resumed) == hashes(whole)


@pytest.mark.usefixtures("fake_worker")
def test_a_workers_own_message_reaches_the_user(
    request_of: Callable[..., Request], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_ERROR", "no space left")
    with pytest.raises(UserError, match=r"^no space left$"):
        record(request_of())


@pytest.mark.usefixtures("fake_worker")
def test_a_damaged_episode_is_put_aside_and_recorded_again(request_of: Callable[..., Request], tmp_path: Path) -> None:
    first = record(request_of())
    folder = Run(tmp_path / "run").folders("peg_round_8mm")[2]
    (folder / "frames.parquet").write_bytes(b"PAR1")
    heard: list[Progress] = []
    again = record(request_of(), heard.append)
    assert again.new == 1
    assert hashes(again) == hashes(first)
    assert [event.kind for event in heard if event.text] == ["damaged"]
    assert folder.name in heard[0].text
    assert (tmp_path / "run" / "quarantine" / folder.name / "frames.parquet").read_bytes() == b"PAR1"
    read_episode(folder)


@pytest.mark.usefixtures("fake_worker")
def test_another_runs_folder_is_refused_and_left_alone(request_of: Callable[..., Request]) -> None:
    first = record(request_of())
    with pytest.raises(UserError, match="run_seed is 3 there, 4 here"):
        record(request_of(run_seed=4))
    assert hashes(record(request_of())) == hashes(first)


@pytest.mark.usefixtures("fake_worker")
def test_a_second_writer_is_refused(request_of: Callable[..., Request]) -> None:
    request = request_of()
    with Run.open(request.root, request.recipe).lock(), pytest.raises(UserError, match="another demomill process"):
        record(request)


@pytest.mark.usefixtures("fake_worker")
def test_leftovers_of_a_killed_writer_are_removed(request_of: Callable[..., Request], tmp_path: Path) -> None:
    run = Run.open(tmp_path / "run", request_of().recipe)
    (run.root / ".staging-peg_round_8mm-s3-00002-abc").mkdir()
    (run.root / ".staging-peg_round_8mm-s3-00002-abc" / "frames.parquet").write_bytes(b"half")
    record(request_of())
    assert not list(run.root.glob(".staging-*"))


@pytest.mark.usefixtures("fake_worker")
def test_workers_at_a_time_do_not_change_the_episodes(request_of: Callable[..., Request], tmp_path: Path) -> None:
    one, two = record(request_of()), record(request_of(root=tmp_path / "two", workers=2))
    assert hashes(one) == hashes(two)


@pytest.mark.usefixtures("fake_worker")
def test_what_a_worker_prints_is_kept_in_its_log(
    request_of: Callable[..., Request], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    record(request_of())
    assert "simulating peg_round_4mm" in (tmp_path / "run" / "logs" / "peg_round_4mm-00000.log").read_text()
    assert capfd.readouterr() == ("", "")


def test_a_shard_survives_the_command_line() -> None:
    fault, handicap = Fault(0.0004, 0.1), Handicap((0.004, 0.0), wrong_way=True)
    shard = Shard("run", "nut_M8", MAX_SEED, (0, 4), 2, Engine("cuda:0", 12, False, 3), fault, handicap)
    assert Shard.from_json(shard.to_json()) == shard


@pytest.mark.usefixtures("fake_worker")
def test_no_descriptor_is_left_open(request_of: Callable[..., Request]) -> None:
    record(request_of())
    before = set(Path("/proc/self/fd").iterdir())
    record(request_of(episodes=6))
    assert set(Path("/proc/self/fd").iterdir()) == before
