"""LeRobot datasets of both versions, and what recorders and downloads do to them; threads are named at each case."""

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from qc.episodes import ACTION, EEF_POS, EEF_QUAT, STATE, TIME, find_layout
from qc.errors import QcError
from qc.readers.lerobot import read_lerobot
from qc.readers.source import find_source, read_source
from tests.qc.datasets import JOINTS, edit_info, write_dataset
from tests.qc.factories import make_episode, make_task, take, with_frames

EPISODES = [*make_task(4), *make_task(2, task="put the peg into the hole")]


@pytest.mark.parametrize("version", ["v3.0", "v2.1"])
@pytest.mark.parametrize("columns", [(STATE, ACTION), (STATE, ACTION, EEF_POS, EEF_QUAT), (ACTION,)])
def test_a_dataset_is_read_back_as_written(tmp_path, version, columns):
    found = read_source(find_source(str(write_dataset(tmp_path / "d", EPISODES, version=version, columns=columns))))
    assert [e.task for e in found.episodes] == [e.task for e in EPISODES]
    assert [e.index for e in found.episodes] == list(range(6))
    assert found.findings == ()
    for was, now in zip(EPISODES, found.episodes, strict=True):
        assert set(now.frames) == {*columns, TIME}
        for name in columns:
            np.testing.assert_array_equal(was.frames[name], now.frames[name])
        assert now.layout.grippers[ACTION] == (7,)
        assert (tmp_path / "d" / now.file).is_file()


def test_both_versions_and_any_number_of_files_give_the_same_episodes(tmp_path):
    ways = (("v3.0", 1), ("v3.0", 3), ("v2.1", 1))
    read = [
        read_lerobot(write_dataset(tmp_path / str(i), EPISODES, version=version, files=files))
        for i, (version, files) in enumerate(ways)
    ]
    hashes = [[e.content_hash for e in each.episodes] for each in read]
    assert hashes[0] == hashes[1] == hashes[2]
    assert len({e.file for e in read[1].episodes}) == 3


@pytest.mark.parametrize(
    "names",
    [
        [*JOINTS, "gripper.pos"],
        {"motors": [*JOINTS, "main_gripper"]},
        [[*JOINTS, "finger"]],
        None,
    ],
)
def test_a_gripper_is_known_by_its_name_or_by_how_it_moves(tmp_path, names):
    found = read_lerobot(write_dataset(tmp_path / "d", EPISODES, names=names))
    assert found.episodes[0].layout.grippers[ACTION] == (7,)
    assert found.episodes[0].layout.spans[ACTION] == ((0.0, 1.0),)


def test_a_gripper_has_its_travel_measured():
    rows = {ACTION: np.column_stack([np.linspace(-1, 1, 100), np.repeat([-100.0, 88.0], 50)])}
    layout = find_layout({ACTION: ("elbow", "gripper")}, rows)
    assert layout.arm(ACTION) == (0,)
    assert layout.spans[ACTION] == ((-100.0, 88.0),)


def test_a_recording_killed_before_it_was_finalized_is_refused(tmp_path):  # lerobot 2495
    root = write_dataset(tmp_path / "d", EPISODES)
    path = root / "data" / "chunk-000" / "file-000.parquet"
    path.write_bytes(path.read_bytes()[:-8])
    with pytest.raises(QcError, match=r"file-000.parquet: not finalized"):
        read_source(root)


def test_a_gap_in_the_indices_is_refused(tmp_path):  # axol 158
    root = write_dataset(tmp_path / "d", make_task(5))
    path = root / "meta" / "episodes" / "chunk-000" / "file-000.parquet"
    pd.read_parquet(path).assign(episode_index=[0, 1, 3, 4, 5]).to_parquet(path)
    data = root / "data" / "chunk-000" / "file-000.parquet"
    rows = pd.read_parquet(data)
    rows["episode_index"] += (rows["episode_index"] >= 2).astype(int)
    rows.to_parquet(data)
    with pytest.raises(QcError, match="episode index jumps over 2"):
        read_source(root)


def test_a_partial_download_is_refused_with_its_denominator(tmp_path):  # LIBERO 148
    root = write_dataset(tmp_path / "d", make_task(6), files=3)
    (root / "data" / "chunk-000" / "file-002.parquet").unlink()
    with pytest.raises(QcError, match="6 episodes declared, 6 described, 4 with rows; without rows: 4, 5"):
        read_source(root)


def test_stale_rows_of_a_larger_dataset_are_refused(tmp_path):
    root = write_dataset(tmp_path / "d", make_task(6))
    path = root / "meta" / "episodes" / "chunk-000" / "file-000.parquet"
    pd.read_parquet(path).iloc[:4].to_parquet(path)
    edit_info(root, total_episodes=4)
    with pytest.raises(QcError, match="6 with rows; not described: 4, 5"):
        read_source(root)


def test_twenty_episodes_saved_as_one_are_refused(tmp_path):  # strands 708
    episodes = make_task(20)
    merged = with_frames(episodes[0], {n: np.concatenate([e.frames[n] for e in episodes]) for n in episodes[0].frames})
    root = write_dataset(tmp_path / "d", [merged])
    edit_info(root, total_episodes=20)
    with pytest.raises(QcError, match="20 episodes declared, 1 described, 1 with rows"):
        read_source(root)


def test_a_length_that_does_not_fit_is_refused(tmp_path):
    root = write_dataset(tmp_path / "d", make_task(3))
    path = root / "meta" / "episodes" / "chunk-000" / "file-000.parquet"
    pd.read_parquet(path).assign(length=lambda t: t["length"] + (t["episode_index"] == 1)).to_parquet(path)
    with pytest.raises(QcError, match=r"episode 1 has \d+ rows, its metadata say"):
        read_source(root)


def test_numbers_that_are_none_are_found_with_file_and_frame(tmp_path):
    bad = make_episode(2)
    state = bad.frames[STATE].copy()
    state[40:43, 3] = np.nan
    episodes = [*make_task(2), with_frames(bad, {**bad.frames, STATE: state})]
    found = read_source(write_dataset(tmp_path / "d", episodes))
    (finding,) = found.findings
    assert (finding.kind, finding.episode, finding.frame) == ("not_finite", "episode_000002", 40)
    assert finding.file == "data/chunk-000/file-000.parquet"
    assert "joint_4.pos: 3 numbers" in finding.told
    assert [e.sound for e in found.episodes] == [True, True, False]


@pytest.mark.parametrize(("jump", "told"), [(0.5, "a gap in time, the first of 0.567 s"), (-0.2, "goes back by")])
def test_time_that_jumps_is_found_with_its_frame(tmp_path, jump, told):
    episodes = make_task(3)
    time = np.arange(episodes[1].length) / 15.0
    time[60:] += jump
    episodes[1] = with_frames(episodes[1], {**episodes[1].frames, TIME: time})
    found = read_source(write_dataset(tmp_path / "d", episodes))
    (finding,) = found.findings
    assert (finding.kind, finding.episode, finding.frame) == ("timestamps", "episode_000001", 60)
    assert told in finding.told


@pytest.mark.parametrize(("fps", "right"), [(29.97, True), (23.976, True), (30.0, False)])
def test_fps_may_be_a_fraction_but_must_fit_the_timestamps(tmp_path, fps, right):  # strands 1666
    root = write_dataset(tmp_path / "d", make_task(3), fps=fps)
    if not right:
        edit_info(root, fps=25)
    assert [f.kind for f in read_source(root).findings] == ([] if right else ["fps"])


def test_dimensions_that_nothing_drives_are_told(tmp_path):  # strands 651, leisaac 165
    everywhere = [
        with_frames(e, {**e.frames, STATE: e.frames[STATE] * [1, 1, 0, 1, 1, 1, 1, 1]}) for e in make_task(12)
    ]
    last = everywhere[-1]
    everywhere[-1] = with_frames(last, {**last.frames, ACTION: last.frames[ACTION] * [1, 1, 1, 1, 1, 0, 1, 1]})
    found = read_source(write_dataset(tmp_path / "d", everywhere))
    told = {(f.kind, f.episode, f.harmful) for f in found.findings}
    assert told == {("undriven", "", False), ("undriven", "episode_000011", True)}
    assert any("joint_3.pos is 0 in every row" in f.told for f in found.findings)


def test_counters_that_do_not_start_again_are_found(tmp_path):
    root = write_dataset(tmp_path / "d", make_task(3))
    path = root / "data" / "chunk-000" / "file-000.parquet"
    rows = pd.read_parquet(path)
    rows["frame_index"] = rows["index"]
    rows.to_parquet(path)
    kinds = [(f.kind, f.episode, f.frame) for f in read_source(root).findings]
    assert kinds == [("indices", "episode_000001", 0), ("indices", "episode_000002", 0)]


def test_one_row_is_an_episode_too(tmp_path):
    found = read_source(write_dataset(tmp_path / "d", [take(make_episode(), np.arange(1)), make_episode(1)]))
    assert found.episodes[0].length == 1


def test_what_is_no_dataset_is_a_clear_error(tmp_path):
    with pytest.raises(QcError, match="neither a run folder"):
        find_source(str(tmp_path))
    with pytest.raises(QcError, match="no run here, nor a dataset, nor is it a name on the Hub"):
        find_source(str(tmp_path / "none"))
    root = write_dataset(tmp_path / "d", make_task(2))
    edit_info(root, codebase_version="v1.6")
    with pytest.raises(QcError, match=r"version v1\.6; convert"):
        read_source(root)
    (root / "meta" / "info.json").write_text("{")
    with pytest.raises(QcError, match="not readable"):
        read_source(root)
    (tmp_path / "e" / "meta").mkdir(parents=True)
    path = write_dataset(tmp_path / "f", make_task(2)) / "data" / "chunk-000" / "file-000.parquet"
    pq.write_table(pq.read_table(path).drop_columns([ACTION]), path)
    with pytest.raises(QcError, match=r"file-000.parquet: column action is missing"):
        read_source(path.parents[2])


def test_a_name_on_the_hub_is_fetched_without_its_videos(tmp_path, monkeypatch):
    root = write_dataset(tmp_path / "d", make_task(2))
    asked: dict[str, object] = {}

    def fetch(name, **options):
        asked.update(options, name=name)
        return str(root)

    monkeypatch.setattr("huggingface_hub.snapshot_download", fetch)
    assert find_source("someone/something") == root
    assert (asked["name"], asked["repo_type"]) == ("someone/something", "dataset")
    assert asked["allow_patterns"] == ["meta/**", "data/**"]
    find_source("someone/something", videos=True)
    assert asked["allow_patterns"] == ["meta/**", "data/**", "videos/**"]
