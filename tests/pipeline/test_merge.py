"""Several runs of one recipe become one: nothing lost, nothing twice, and no conflict is settled in silence."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from pipeline.cli import run as demomill
from pipeline.errors import DamagedEpisode, UserError
from pipeline.locks import lock_attempts
from pipeline.merge import merge_runs
from pipeline.store import Run, read_meta
from qc.decisions import Decision, read_decisions, write_decisions
from tests.pipeline.factories import make_episode

TASK = "peg_round_8mm"


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pipeline.store.LOCK_PATIENCE_S", 0.1)


def make_run(root: Path, attempts: range, **recipe: object) -> Run:
    run = Run.open(root, {"run_seed": 7, **recipe})
    for attempt in attempts:
        folder = run.commit(make_episode(TASK, attempt, length=12))
        (folder / "plain.front.mp4").write_bytes(f"{root.name} {attempt}".encode())
    return run


def files(root: Path) -> dict[str, bytes]:
    return {str(p.relative_to(root)): p.read_bytes() for p in root.rglob("*") if p.is_file()}


def visible(root: Path) -> dict[str, bytes]:
    return {name: content for name, content in files(root).items() if not name.startswith(".")}


def test_runs_that_overlap_become_one(tmp_path: Path) -> None:
    first, second = make_run(tmp_path / "a", range(3)), make_run(tmp_path / "b", range(2, 5))
    first.note_shard({"task": TASK, "attempts": [0, 1, 2]})
    second.note_shard({"task": TASK, "attempts": [2, 3, 4]})
    before = files(first.root), files(second.root)
    told: list[tuple[int, int]] = []
    merged = merge_runs([first.root, second.root], tmp_path / "out", lambda done, total: told.append((done, total)))
    out = Run(tmp_path / "out")
    assert [folder.name for folder in out.folders()] == list(merged.new) == [f"{TASK}-s7-{n:05d}" for n in range(5)]
    assert merged.episodes == {folder.name: read_meta(folder)["content_hash"] for folder in out.folders()}
    assert told == [(n, 5) for n in range(1, 6)]
    for name, content in visible(first.root).items():
        assert name == "shards.jsonl" or visible(out.root)[name] == content
    assert (out.folder(TASK, f"{TASK}-s7-00002") / "plain.front.mp4").read_bytes() == b"a 2"
    assert out.shard_reports() == [*first.shard_reports(), *second.shard_reports()]
    assert (files(first.root), files(second.root)) == before
    whole = visible(out.root)
    assert merge_runs([first.root, second.root], out.root).new == ()
    assert visible(out.root) == whole


def test_a_merge_that_was_killed_goes_on(tmp_path: Path) -> None:
    source = make_run(tmp_path / "a", range(4))

    def stop(done: int, total: int) -> None:
        if done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        merge_runs([source.root], tmp_path / "out", stop)
    leftover = tmp_path / "out" / f".staging-{TASK}-s7-00003-abc"
    leftover.mkdir()
    assert len(merge_runs([source.root], tmp_path / "out").new) == 2
    assert not leftover.exists()
    assert visible(tmp_path / "out") == visible(source.root)


def test_two_episodes_of_one_attempt_are_refused_before_anything_is_written(tmp_path: Path) -> None:
    first, second = make_run(tmp_path / "a", range(3)), make_run(tmp_path / "b", range(3, 4))
    other = second.commit(replace(make_episode(TASK, 1, length=12), reason="dropped", outcome="failure"))
    with pytest.raises(UserError, match=f"{other}: is not the episode in .*/a/.*00001"):
        merge_runs([first.root, second.root], tmp_path / "out")
    assert not (tmp_path / "out").exists()
    before = visible(first.root)
    with pytest.raises(UserError, match="is not the episode in"):
        merge_runs([second.root], first.root)
    assert visible(first.root) == before


def test_what_cannot_be_merged_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    first, other = make_run(tmp_path / "a", range(1)), make_run(tmp_path / "b", range(1), engine="another")
    with pytest.raises(UserError, match="engine is None there, 'another' here"):
        merge_runs([first.root, other.root], tmp_path / "out")
    with pytest.raises(UserError, match="is --out itself"):
        merge_runs([first.root], first.root)
    with pytest.raises(UserError, match=r"run\.json is missing"):
        merge_runs([first.root, tmp_path], tmp_path / "out")
    damaged = make_run(tmp_path / "c", range(2))
    (damaged.folder(TASK, f"{TASK}-s7-00001") / "frames.parquet").write_bytes(b"PAR1")
    with pytest.raises(DamagedEpisode, match="00001: damaged episode"):
        merge_runs([damaged.root], tmp_path / "out")
    misplaced = make_run(tmp_path / "d", range(1))
    misplaced.folder(TASK, f"{TASK}-s7-00000").rename(misplaced.folder(TASK, f"{TASK}-s7-00009"))
    with pytest.raises(DamagedEpisode, match=f"00009: holds {TASK}-s7-00000"):
        merge_runs([misplaced.root], tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_an_attempt_that_is_being_recorded_is_not_merged(tmp_path: Path) -> None:
    source, target = make_run(tmp_path / "a", range(2)), make_run(tmp_path / "out", range(0))
    with lock_attempts(target.root, TASK, (1,)), pytest.raises(UserError, match=f"recording attempt 1 of {TASK}"):
        merge_runs([source.root], target.root)
    assert target.folders() == []


def test_an_attempt_that_hung_somewhere_and_was_recorded_elsewhere_is_recorded(tmp_path: Path) -> None:
    first, second = make_run(tmp_path / "a", range(2)), make_run(tmp_path / "b", range(2, 3))
    first.quarantine_seed(TASK, 7, 2, "silent")
    second.quarantine_seed(TASK, 7, 3, "silent")
    merged = merge_runs([first.root, second.root], tmp_path / "out")
    assert merged.hung == (f"{TASK}-s7-00003",)
    assert list(Run(tmp_path / "out").hung()) == [f"{TASK}-s7-00003"]
    assert merge_runs([second.root], first.root).hung == (f"{TASK}-s7-00003",)
    assert list(first.hung()) == [f"{TASK}-s7-00003"]


def test_a_note_of_another_attempt_than_its_name_says_is_refused(tmp_path: Path) -> None:
    run = make_run(tmp_path / "a", range(1))
    note = run.quarantine_seed(TASK, 7, 3, "silent")
    note.write_text(json.dumps({**json.loads(note.read_text()), "task": "../../elsewhere"}))
    with pytest.raises(UserError, match="another attempt than its name says"):
        merge_runs([run.root], tmp_path / "out")


def test_links_are_not_followed(tmp_path: Path) -> None:
    source = make_run(tmp_path / "a", range(1))
    (tmp_path / "secret").write_text("of the machine")
    (source.folders()[0] / "varied.front.mp4").symlink_to(tmp_path / "secret")
    merge_runs([source.root], tmp_path / "out")
    copied = {path.name for path in Run(tmp_path / "out").folders()[0].iterdir()}
    assert copied == {"episode.json", "frames.parquet", "plain.front.mp4"}


def decide(run: Run, content_hash: str, verdict: str) -> None:
    (run.root / "qc").mkdir(exist_ok=True)
    decision = Decision(content_hash, verdict, run.root.name, "because")
    write_decisions(run.root / "qc" / "decisions.toml", {content_hash: decision})


def test_decisions_of_people_come_along(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    runs = [make_run(tmp_path / name, attempts) for name, attempts in (("a", range(2)), ("b", range(1, 3)))]
    hashes = [make_episode(TASK, n, length=12).content_hash() for n in range(3)]
    decide(runs[0], hashes[0], "drop")
    decide(runs[1], hashes[1], "keep")
    command = ["merge", *(str(run.root) for run in runs), "--out", str(tmp_path / "out")]
    assert demomill([*command, "--json"]) == 0
    assert len(json.loads(capfd.readouterr().out)["new"]) == 3
    decided = read_decisions(tmp_path / "out" / "qc" / "decisions.toml")
    assert {hash_: each.verdict for hash_, each in decided.items()} == {hashes[0]: "drop", hashes[1]: "keep"}
    decide(runs[0], hashes[1], "drop")
    shutil.rmtree(tmp_path / "out")
    assert demomill(command) == 2
    told = capfd.readouterr().err
    assert "b decided to keep" in told
    assert "agree on one" in told
    assert not (tmp_path / "out").exists()
