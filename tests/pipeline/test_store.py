"""The episode store: whole or not at all, verified when read, safe against kills, full disks and second writers."""

import errno
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipeline.errors import DamagedEpisode, UserError
from pipeline.schema import BY_KEY, FEATURES
from pipeline.store import Episode, Run, canonical_json, episode_id, is_sound, read_episode, read_meta, write_atomically
from tests.pipeline.factories import make_episode

RECIPE = {"run_seed": 7, "engine": {"device": "cpu"}}


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pipeline.store.LOCK_PATIENCE_S", 0.1)


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return Run.open(tmp_path / "run", RECIPE)


def files(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_an_episode_reads_back_as_it_was(run: Run) -> None:
    episode = make_episode(length=40)
    folder = run.commit(episode)
    assert files(folder) == {"episode.json", "frames.parquet"}
    back = read_episode(folder)
    assert back.content_hash() == episode.content_hash()
    for name in Episode.__dataclass_fields__:
        if name != "frames":
            assert canonical_json(getattr(back, name)) == canonical_json(getattr(episode, name))
    for feature in episode.features:
        column = back.frames[feature.key]
        assert column.dtype == feature.dtype
        assert column.shape == (40, *feature.shape)
        assert np.array_equal(column, episode.frames[feature.key])


def test_the_same_episode_gives_the_same_files(tmp_path: Path) -> None:
    first, second = (Run.open(tmp_path / name, RECIPE).commit(make_episode()) for name in "ab")
    for name in ("episode.json", "frames.parquet"):
        assert (first / name).read_bytes() == (second / name).read_bytes()


def test_the_content_hash_sees_every_column_at_every_end() -> None:
    episode = make_episode()
    digest = episode.content_hash()
    for feature in episode.features:
        for where in (0, -1):
            changed = episode.frames[feature.key].copy()
            flat = changed.reshape(-1)
            flat[where] = ~flat[where] if feature.dtype == "bool" else flat[where] + 1
            other = replace(episode, frames={**episode.frames, feature.key: changed})
            assert other.content_hash() != digest, f"{feature.key}[{where}]"


@pytest.mark.parametrize(
    "change",
    [{"seed": 1}, {"draws": {"start": {}}}, {"outcome": "failure"}, {"reason": "dropped"}, {"task": "peg_round_4mm"}],
    ids=str,
)
def test_the_content_hash_sees_what_produced_the_rows(change: dict[str, Any]) -> None:
    assert replace(make_episode(), **change).content_hash() != make_episode().content_hash()


def test_the_content_hash_does_not_see_who_recorded_it_or_when() -> None:
    changed = replace(make_episode(), env_index=9, versions={"demomill": "9"}, engine={"device": "cuda:0"})
    assert changed.content_hash() == make_episode().content_hash()


def test_the_content_hash_holds_across_processes() -> None:
    """Python's own hash is salted by process; ours must not be."""
    code = "from tests.pipeline.factories import make_episode; print(make_episode().content_hash())"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out.strip() == make_episode().content_hash()


@pytest.mark.parametrize(
    ("key", "spoil", "message"),
    [
        ("action", lambda a: a[:-1], "shape"),
        ("action", lambda a: a[:, :7], "shape"),
        ("next.reward", lambda a: np.where(np.arange(len(a)) == 4, np.nan, a), "not finite at row 4"),
    ],
    ids=["row missing", "joint missing", "NaN"],
)
def test_spoilt_rows_are_not_committed(
    run: Run, key: str, spoil: Callable[[np.ndarray], np.ndarray], message: str
) -> None:
    episode = make_episode()
    with pytest.raises(ValueError, match=message):
        run.commit(replace(episode, frames={**episode.frames, key: spoil(episode.frames[key])}))
    assert run.folders() == []
    assert files(run.root) <= {"run.json", "episodes"}


def test_folders_come_in_order_of_task_and_attempt(run: Run) -> None:
    for task in ("peg_round_8mm", "peg_round_12mm"):
        for attempt in (11, 2, 0):
            run.commit(make_episode(task, attempt))
    assert [f.name.rsplit("-", 1)[1] for f in run.folders("peg_round_8mm")] == ["00000", "00002", "00011"]
    assert [f.parent.name for f in run.folders()] == ["peg_round_12mm"] * 3 + ["peg_round_8mm"] * 3


def test_a_committed_episode_is_never_overwritten(run: Run) -> None:
    folder = run.commit(make_episode(length=30))
    before = (folder / "frames.parquet").read_bytes()
    run.commit(make_episode(length=31))
    assert (folder / "frames.parquet").read_bytes() == before
    assert not list(run.root.glob(".staging-*"))


COMMIT_UNTIL_KILLED = """
import os, signal, sys
from itertools import count
from pathlib import Path
from pipeline.store import Run
from tests.pipeline.factories import make_episode

FILE_EVENTS = {"open", "os.mkdir", "os.rename", "os.chmod", "os.listdir", "os.scandir", "os.rmdir", "os.remove"}
make_episode().content_hash()
for last in count(1):
    root = Path(sys.argv[1], str(last))
    Run.open(root, {"run_seed": 7}).commit(make_episode(attempt=0))
    child = os.fork()
    if child == 0:
        left = last

        def kill(event, arguments):
            global left
            left -= event in FILE_EVENTS
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)

        sys.addaudithook(kill)
        Run(root).commit(make_episode(attempt=1))
        os._exit(0)
    if os.waitpid(child, 0)[1] == 0:
        break
print(last)
"""


def test_a_kill_at_any_file_operation_leaves_whole_episodes(tmp_path: Path) -> None:
    """A process dies at its first file operation while it commits, the next one at its second, and so on."""
    command = [sys.executable, "-c", COMMIT_UNTIL_KILLED, str(tmp_path)]
    operations = int(subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout)
    assert operations > 5
    found = []
    for last in range(1, operations + 1):
        run = Run(tmp_path / str(last))
        found.append([read_episode(folder).attempt for folder in run.folders()])
        with run.lock():
            for attempt in (0, 1):
                run.clear_staging(episode_id("peg_round_8mm", 7, attempt))
        assert files(run.root) == {"run.json", "episodes", ".lock"}
    assert found[0] == [0]
    assert found[-1] == [0, 1]
    assert all(attempts in ([0], [0, 1]) for attempts in found)


@pytest.mark.parametrize(
    ("name", "spoil"),
    [
        ("frames.parquet", lambda p: p.write_bytes(p.read_bytes()[:-20])),
        ("frames.parquet", lambda p: p.write_bytes(b"")),
        ("frames.parquet", lambda p: p.unlink()),
        ("episode.json", lambda p: p.unlink()),
        ("episode.json", lambda p: p.write_text(p.read_text()[:-30])),
        ("episode.json", lambda p: p.write_text("[]")),
        ("episode.json", lambda p: p.write_text(p.read_text().replace('"seed"', '"sead"'))),
        ("episode.json", lambda p: p.write_text(p.read_text().replace('"success"', '"failure"'))),
    ],
    ids=["cut short", "empty", "no rows", "no meta", "half JSON", "not an object", "field lost", "outcome edited"],
)
def test_damage_is_found_and_named(run: Run, name: str, spoil: Callable[[Path], object]) -> None:
    folder = run.commit(make_episode())
    spoil(folder / name)
    with pytest.raises(DamagedEpisode, match=folder.name):
        read_episode(folder)


def test_a_changed_value_is_found(run: Run) -> None:
    folder = run.commit(make_episode())
    table = pq.read_table(folder / "frames.parquet")
    phase = table.column_names.index("phase")
    changed = table.set_column(phase, table.schema.field(phase), [table["phase"].to_numpy() * 0])
    pq.write_table(changed, folder / "frames.parquet")
    with pytest.raises(DamagedEpisode, match="content hash"):
        read_episode(folder)


def test_a_lost_column_is_found(run: Run) -> None:
    folder = run.commit(make_episode())
    pq.write_table(pq.read_table(folder / "frames.parquet").drop_columns(["action"]), folder / "frames.parquet")
    with pytest.raises(DamagedEpisode, match="action"):
        read_episode(folder)


def test_read_meta_alone(run: Run) -> None:
    episode = make_episode()
    meta = read_meta(run.commit(episode))
    assert meta["id"] == episode.id
    assert meta["content_hash"] == episode.content_hash()
    assert [f["key"] for f in meta["features"]] == [f.key for f in FEATURES]


def test_quarantine_keeps_every_damaged_folder(run: Run) -> None:
    for expected in ("", ".1", ".2"):
        folder = run.commit(make_episode())
        moved = run.quarantine(folder)
        assert moved.name == folder.name + expected
        assert not folder.exists()
    assert len(list((run.root / "quarantine").iterdir())) == 3


def test_a_second_writer_is_refused(run: Run) -> None:
    with run.lock(), pytest.raises(UserError, match="another demomill process"), Run(run.root).lock():
        pass
    with run.lock():
        pass


HOLD_THE_LOCK = """
import sys, time
from pipeline.store import Run

with Run(sys.argv[1]).lock():
    print("held", flush=True)
    time.sleep(60)
"""


def test_the_lock_is_free_after_a_kill(run: Run) -> None:
    with subprocess.Popen([sys.executable, "-c", HOLD_THE_LOCK, str(run.root)], stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        with pytest.raises(UserError, match="another demomill process"), run.lock():
            pass
        holder.send_signal(signal.SIGKILL)
    with run.lock():
        pass


def test_the_same_recipe_opens_the_run_again(run: Run) -> None:
    run.commit(make_episode())
    assert len(Run.open(run.root, RECIPE).folders()) == 1


@pytest.mark.parametrize(
    ("recipe", "message"),
    [
        ({**RECIPE, "run_seed": 8}, r"run_seed is 7 there, 8 here"),
        ({**RECIPE, "engine": {"device": "cuda:0"}}, "engine is"),
        ({"run_seed": 7}, "engine is"),
        ({**RECIPE, "fault": {}}, "fault is None there"),
    ],
    ids=["seed", "engine", "less", "more"],
)
def test_another_recipe_is_refused(run: Run, recipe: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        Run.open(run.root, recipe)
    assert Run(run.root).recipe == RECIPE


def test_a_folder_with_other_files_is_refused(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("precious")
    with pytest.raises(UserError, match="not a run folder"):
        Run.open(tmp_path, RECIPE)
    with pytest.raises(UserError, match="not a run folder"):
        Run.open(tmp_path / "thesis.tex", RECIPE)
    assert files(tmp_path) == {"thesis.tex"}


def test_no_run_is_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="demomill record"):
        Run(tmp_path / "nothing")


@pytest.mark.parametrize("text", ["", "{", "{}", "[]", '{"recipe"'])
def test_an_unreadable_run_description_is_a_clear_error(tmp_path: Path, text: str) -> None:
    (tmp_path / "run.json").write_text(text)
    with pytest.raises(UserError, match="not readable as a run"):
        Run(tmp_path)


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk_is_a_clear_error_and_leaves_nothing_half_written(
    run: Run, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    kept = run.commit(make_episode(attempt=0))

    def full(table: object, path: Path, **options: object) -> None:
        path.write_bytes(b"PAR1 half of a")
        raise OSError(number, os.strerror(number))

    with monkeypatch.context() as patch:
        patch.setattr(pq, "write_table", full)
        with pytest.raises(UserError, match="no space left"):
            run.commit(make_episode(attempt=1))
    assert run.folders() == [kept]
    assert not list(run.root.glob(".staging-*"))
    run.commit(make_episode(attempt=1))
    assert len(run.folders()) == 2


def test_a_refused_write_is_a_clear_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*args: object, **options: object) -> None:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr(Path, "mkdir", refused)
    with pytest.raises(UserError, match="cannot be written"):
        Run.open(tmp_path / "new", RECIPE)


def test_a_run_without_write_permission_is_a_clear_error(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    with pytest.raises(UserError, match="permission denied"):
        Run.open(run.root, RECIPE)


def test_a_folder_below_a_file_is_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="cannot be written"):
        Run.open(tmp_path / "file" / "run", RECIPE)


def test_canonical_json_knows_no_order_and_no_nan() -> None:
    assert canonical_json({"b": 0.1, "a": [1, 2]}) == canonical_json({"a": (1, 2), "b": 0.1}) == '{"a":[1,2],"b":0.1}'
    with pytest.raises(ValueError, match="Out of range"):
        canonical_json({"a": float("nan")})


def test_write_atomically_replaces_the_whole_text(tmp_path: Path) -> None:
    path = tmp_path / "recipe.json"
    write_atomically(path, "a long first text")
    write_atomically(path, "second")
    assert path.read_text() == "second"
    assert files(tmp_path) == {"recipe.json"}


def test_schema_keys_are_unique_and_episode_json_names_them(run: Run) -> None:
    assert len(BY_KEY) == len(FEATURES)
    meta = json.loads((run.commit(make_episode()) / "episode.json").read_text())
    names = {feature["key"]: feature["names"] for feature in meta["features"]}
    assert names["observation.eef_quat"] == ["qx", "qy", "qz", "qw"]
    assert len(names["action"]) == len(names["observation.state"]) == 8


def test_too_little_memory_does_not_make_a_sound_episode_look_damaged(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = run.commit(make_episode(attempt=0))

    def exhausted(*_: object, **options: object) -> None:
        raise pa.ArrowMemoryError("malloc of size 64 failed")

    monkeypatch.setattr(pq, "read_table", exhausted)
    with pytest.raises(MemoryError):
        is_sound(folder)
