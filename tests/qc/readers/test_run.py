import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipeline.store import Run
from qc.episodes import EEF_QUAT, FIXED_POSE, STATE
from qc.errors import QcError
from qc.folder import Folder
from qc.readers.run import read_run
from qc.verdicts import assess
from tests.pipeline.factories import make_episode as store_episode
from tests.qc.factories import TASK, make_episode, make_task, with_frames, write_run


def test_a_run_is_read_back_as_written(tmp_path):
    made = [*make_task(3), make_episode(7, outcome="failure", reason="grasp: part slipped")]
    found = read_run(write_run(tmp_path, reversed(made)))
    assert [e.id for e in found.episodes] == [e.id for e in made]
    assert not found.damaged
    for was, now in zip(made, found.episodes, strict=True):
        assert (was.task, was.outcome, was.reason, was.length, was.env_index) == (
            now.task,
            now.outcome,
            now.reason,
            now.length,
            now.env_index,
        )
        assert now.file == f"episodes/{was.task}/{was.id}/frames.parquet"
        for name, values in was.frames.items():
            np.testing.assert_array_equal(values, now.frames[name])


@pytest.mark.parametrize(
    ("damage", "why"),
    [
        (lambda folder: (folder / "frames.parquet").unlink(), "frames.parquet is missing"),
        (lambda folder: (folder / "episode.json").unlink(), "episode.json is missing"),
        (lambda folder: _drop(folder / "frames.parquet", "action"), "column action is missing"),
        (lambda folder: (folder / "episode.json").write_text("{"), "Expecting"),
        (lambda folder: (folder / "episode.json").write_text("[]"), "no object"),
        (lambda folder: (folder / "episode.json").write_text("{}"), "id is missing"),
        (lambda folder: _cut(folder / "frames.parquet", 8), ""),
        (lambda folder: _edit(folder, length=999), "999"),
        (lambda folder: _edit(folder, outcome="maybe"), "maybe"),
        (lambda folder: _edit(folder, id="another"), "another"),
        (lambda folder: _edit(folder, seed=-1), "content hash"),
        (lambda folder: _nudge(folder / "frames.parquet"), "content hash"),
        (lambda folder: (folder / "episode.json").write_bytes(b"\xff"), "decode"),
        (lambda folder: _edit(folder, phase_spans=[{"phase": "reach"}]), "phase_spans is no list of"),
        (lambda folder: _edit(folder, phase_spans=None), "phase_spans is no list of"),
        (lambda folder: _edit(folder, env_index="x"), "env_index is 'x', not a whole number"),
        (lambda folder: _edit(folder, attempt=None), "attempt is None, not a whole number"),
        (lambda folder: _edit(folder, reason=5), "reason is 5, not a text"),
        (lambda folder: _edit(folder, features=["action"]), ""),
        (lambda folder: _edit(folder, bodies=7), ""),
    ],
)
def test_a_damaged_folder_is_listed_and_stops_nothing(tmp_path, damage, why):
    made = make_task(3)
    write_run(tmp_path, made)
    damage(tmp_path / "episodes" / TASK / made[1].id)
    found = read_run(tmp_path)
    assert [e.id for e in found.episodes] == [made[0].id, made[2].id]
    assert [(d.id, d.task) for d in found.damaged] == [(made[1].id, TASK)]
    assert why in found.damaged[0].why
    assert found.damaged[0].why
    assert "\n" not in found.damaged[0].why


def test_numbers_that_are_none_and_empty_episodes_are_damage(tmp_path):
    bad, empty = make_episode(0), make_episode(1)
    state = bad.frames[STATE].copy()
    state[40, 3] = np.nan
    bad = with_frames(bad, {**bad.frames, STATE: state})
    empty = with_frames(empty, {name: values[:0] for name, values in empty.frames.items()})
    found = read_run(write_run(tmp_path, [bad, empty]))
    assert not found.episodes
    assert found.damaged[0].why == "observation.state is not finite at row 40"
    assert "0 rows" in found.damaged[1].why


def test_a_quaternion_that_is_no_rotation_is_damage(tmp_path):
    episode = make_episode()
    quaternions = episode.frames[EEF_QUAT].copy()
    quaternions[7] = 0.0
    found = read_run(write_run(tmp_path, [with_frames(episode, {**episode.frames, EEF_QUAT: quaternions})]))
    assert found.damaged[0].why == "observation.eef_quat is no rotation at row 7"


def test_attempts_that_hang_the_simulator_count_as_failed_and_stay_so_when_people_decide(tmp_path):
    write_run(tmp_path, make_task(12))
    note = Run(tmp_path).quarantine_seed(TASK, 1, 99, "two workers said nothing for 900 s")
    (folder := Folder(tmp_path / "qc")).save(assess(found := read_run(tmp_path)), found, {})
    folder.decide([found.episodes[0].id], "drop", "me", "a test")
    account = json.loads(folder.accounting.read_text())["tasks"][TASK]
    assert (account["generated"], account["failed"], account["kept"]) == (13, {"hung": 1}, 11)
    note.write_text("{")
    with pytest.raises(QcError, match=r"-00099\.json: not readable"):
        read_run(tmp_path)


@pytest.mark.parametrize("text", ["{", "[]", "\x00"])
def test_a_run_whose_own_description_is_damaged_is_told_and_judged(tmp_path, text):
    (write_run(tmp_path, make_task(3)) / "run.json").write_text(text)
    found = read_run(tmp_path)
    assert len(found.episodes) == 3
    assert [(f.kind, f.file, f.harmful) for f in found.findings] == [("run", "run.json", False)]
    assert "restore it" in found.findings[0].told


def test_no_run_is_a_clear_error(tmp_path):
    with pytest.raises(QcError, match=r"no run here \(run.json is missing\)"):
        read_run(tmp_path)


def _cut(path, size):
    path.write_bytes(path.read_bytes()[:-size])


def _drop(path, column):
    pq.write_table(pq.read_table(path).drop_columns([column]), path)


def _edit(folder, **changes):
    meta = json.loads((folder / "episode.json").read_text())
    (folder / "episode.json").write_text(json.dumps({**meta, **changes}))


def _nudge(path):
    table = pq.read_table(path)
    values = table["action"].combine_chunks().flatten().to_numpy().copy()
    values[100] = np.nextafter(values[100], np.float32(9.0))
    column = pa.FixedSizeListArray.from_arrays(pa.array(values), 8)
    pq.write_table(table.set_column(table.column_names.index("action"), "action", column), path)


def test_the_recorders_own_hash_is_recomputed(tmp_path):
    episode = store_episode("peg_round_8mm", 3)
    run = Run.open(tmp_path / "run", {"run_seed": 1})
    run.commit(episode)
    (found,) = read_run(run.root).episodes
    assert found.content_hash == episode.content_hash()
    assert FIXED_POSE in found.frames
