"""Data files of LeRobot datasets whose columns are not what ``meta/info.json`` says."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from qc.episodes import ACTION, STATE, TIME
from qc.errors import QcError
from qc.readers.source import read_source
from tests.qc.datasets import edit_info, write_dataset
from tests.qc.factories import make_task
from tests.qc.readers.films import EPISODES

MADE = make_task(4)
ROW = MADE[0].length + 70
"""In the data file; frame 70 of episode 1."""


def rewrite(path, name, make):
    """The column made anew from its values, as a list with one entry a row."""
    table = pq.read_table(path)
    column = make(table[name].to_pylist())
    pq.write_table(table.set_column(table.column_names.index(name), name, column), path)


def data_of(root, number=0):
    return root / "data" / "chunk-000" / f"file-{number:03d}.parquet"


def at_row(value, kind):
    """One entry replaced: the whole of it, or what ``value`` makes of it."""

    def make(values):
        values[ROW] = value(values[ROW]) if callable(value) else value
        return pa.array(values, kind)

    return make


VECTORS = pa.list_(pa.float32())


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda v: pa.array([x[:6] for x in v], pa.list_(pa.float32(), 6)), "row 0 holds 6 numbers, not 8"),
        (lambda v: pa.array([[*x, 0.0] for x in v], VECTORS), "row 0 holds 9 numbers, not 8"),
        (lambda v: pa.array([x[0] for x in v], pa.float32()), "row 0 holds 1 numbers, not 8"),
        (at_row(lambda x: x[:5], VECTORS), f"row {ROW} holds 5 numbers, not 8 .*episode_index 1, frame_index 70"),
        (lambda v: pa.array(["x"] * len(v)), "holds string, not numbers"),
    ],
)
def test_a_column_of_another_size_is_refused_with_both_sizes(tmp_path, make, told):
    root = write_dataset(tmp_path / "d", MADE)
    rewrite(data_of(root), STATE, make)
    with pytest.raises(QcError, match=rf"file-000\.parquet: observation\.state:? {told}.*; write .* or fetch it again"):
        read_source(root)


def test_of_files_that_differ_the_one_that_is_wrong_is_named(tmp_path):
    root = write_dataset(tmp_path / "d", MADE, files=2)
    rewrite(data_of(root, 1), ACTION, lambda v: pa.array([x[:6] for x in v], VECTORS))
    with pytest.raises(QcError, match=r"file-001\.parquet: action: row 0 holds 6 .*\(episode_index 2, frame_index 0\)"):
        read_source(root)


@pytest.mark.parametrize(
    ("name", "kind", "finding", "told"),
    [
        (STATE, VECTORS, "not_finite", "joint_1.pos: 8 numbers are NaN"),
        (STATE, pa.list_(pa.float32(), 8), "not_finite", "joint_1.pos: 8 numbers are NaN"),
        (TIME, pa.float32(), "not_finite", "timestamp: 1 numbers are NaN"),
        ("frame_index", pa.int64(), "indices", "frame_index is missing at row 70"),
        ("task_index", pa.int64(), "tasks", "task_index is missing in a row"),
    ],
)
def test_a_row_without_a_value_is_the_fault_of_its_episode(tmp_path, name, kind, finding, told):
    root = write_dataset(tmp_path / "d", MADE)
    rewrite(data_of(root), name, at_row(None, kind))
    (found,) = read_source(root).findings
    assert (found.kind, found.episode, found.harmful) == (finding, "episode_000001", True)
    assert told in found.told
    assert found.frame in (70, None)


@pytest.mark.parametrize(
    ("name", "make", "told"),
    [
        ("episode_index", at_row(None, pa.int64()), f"row {ROW} has no episode_index"),
        ("index", at_row(None, pa.int64()), "index is missing in episode 1"),
        ("episode_index", lambda v: pa.array(map(str, v)), "episode_index holds string, not numbers"),
        ("frame_index", lambda v: pa.array(np.array(v) + 0.5), "frame_index holds numbers that are not whole"),
    ],
)
def test_a_dataset_without_positions_is_refused(tmp_path, name, make, told):
    root = write_dataset(tmp_path / "d", MADE)
    rewrite(data_of(root), name, make)
    with pytest.raises(QcError, match=rf"file-000\.parquet: {told}"):
        read_source(root)


@pytest.mark.parametrize(("phase", "spans"), [([0, 1], 2), (["a", "b"], 0)])
def test_a_phase_is_ours_if_it_counts_the_names_that_the_episode_tells(tmp_path, phase, spans):
    root = write_dataset(tmp_path / "d", MADE)
    table = pq.read_table(data_of(root))
    column = pa.array([phase[frame >= 60] for frame in table["frame_index"].to_pylist()])
    pq.write_table(table.append_column("phase", column), data_of(root))
    assert all(e.phase_spans == () for e in read_source(root).episodes)
    path = root / EPISODES
    told = pd.Series([["reach", "hold"]] * 3 + [None], dtype=object)
    pd.read_parquet(path).assign(phases=told).to_parquet(path)
    found = read_source(root)
    assert [len(e.phase_spans) for e in found.episodes] == [spans] * 3 + [0]
    assert found.findings == ()


@pytest.mark.parametrize("version", ["v3.0", "v2.1"])
@pytest.mark.parametrize(
    ("spoil", "told"),
    [
        (lambda path: path.write_bytes(path.read_bytes()[:-8]), "not finalized"),
        (lambda path: path.write_bytes(b""), "is empty; fetch it again, or record its episodes again"),
    ],
)
def test_of_a_killed_recording_the_file_is_named_and_nothing_else(tmp_path, version, spoil, told):  # lerobot 2495
    root = write_dataset(tmp_path / "d", MADE, version=version)
    edit_info(root, total_episodes=40)
    path = max(root.glob("data/*/*.parquet"))
    spoil(path)
    with pytest.raises(QcError, match=rf"{path.name}: {told}") as refused:
        read_source(root)
    assert "Also" not in str(refused.value)


def test_episodes_that_were_not_finalized_are_refused(tmp_path):
    path = write_dataset(tmp_path / "d", MADE) / EPISODES
    path.write_bytes(path.read_bytes()[:-8])
    with pytest.raises(QcError, match=r"meta/episodes/chunk-000/file-000\.parquet: not finalized"):
        read_source(tmp_path / "d")


def test_a_partial_download_of_one_file_an_episode_is_refused_with_its_denominator(tmp_path):
    root = write_dataset(tmp_path / "d", MADE, version="v2.1")
    (root / "data" / "chunk-000" / "episode_000002.parquet").unlink()
    with pytest.raises(
        QcError, match="4 episodes declared, 4 described, 3 with rows; without rows: 2; fetch the whole"
    ):
        read_source(root)


def test_a_gap_is_named_even_if_the_episode_is_declared(tmp_path):  # axol 158
    root = write_dataset(tmp_path / "d", MADE)
    edit_info(root, total_episodes=5)
    for path in (root / EPISODES, data_of(root)):
        table = pd.read_parquet(path)
        table["episode_index"] += (table["episode_index"] >= 2).astype(int)
        table.to_parquet(path)
    with pytest.raises(QcError, match=r"jumps over 2: .*5 episodes declared, 4 described"):
        read_source(root)


@pytest.mark.parametrize("spoil", [lambda index: 0 * index, lambda index: index + (index > 200)])
def test_an_index_that_does_not_count_the_rows_is_refused(tmp_path, spoil):
    root = write_dataset(tmp_path / "d", MADE)
    rewrite(data_of(root), "index", lambda v: pa.array(spoil(np.array(v))))
    with pytest.raises(QcError, match=r"index is \d+ in episode \d, at row \d+ of the dataset: .*number them again"):
        read_source(root)


def test_episodes_that_begin_elsewhere_than_told_are_refused(tmp_path):
    root = write_dataset(tmp_path / "d", MADE)
    starts = np.cumsum([0, *(e.length for e in MADE[:-1])])
    told = pd.read_parquet(root / EPISODES)
    told.assign(dataset_from_index=starts).to_parquet(root / EPISODES)
    assert read_source(root).findings == ()
    told.assign(dataset_from_index=starts[[0, 2, 1, 3]]).to_parquet(root / EPISODES)
    with pytest.raises(QcError, match="dataset_from_index of episode 1 is"):
        read_source(root)


def test_files_that_were_swapped_are_refused(tmp_path):
    root = write_dataset(tmp_path / "d", MADE, version="v2.1")
    first, second = (root / "data" / "chunk-000" / f"episode_{i:06d}.parquet" for i in (1, 2))
    first.rename(held := root / "held")
    second.rename(first)
    held.rename(second)
    with pytest.raises(QcError, match=r"episode_000001\.parquet: holds episode 2, where readers look for 1"):
        read_source(root)
