"""The robomimic file, read back with h5py and compared with the store."""

import json
from pathlib import Path

import h5py
import numpy as np
import pytest

from pipeline.errors import UserError
from pipeline.export import Choice
from pipeline.export.hdf5 import export_hdf5
from pipeline.store import Run, read_episode
from tests.pipeline.factories import CAMERAS, make_episode, read_paint, write_run

EPISODES = [make_episode("peg_round_8mm", n, length=14 + n) for n in range(5)]
HALF = Choice(cameras=CAMERAS, test_fraction=0.5)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return write_run(tmp_path_factory.mktemp("run"), [*EPISODES, make_episode(attempt=9, reason="no grasp")])


@pytest.fixture(scope="module")
def file(run: Run, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return export_hdf5(run.root, tmp_path_factory.mktemp("out") / "demos.hdf5", choice=HALF).root


def test_every_row_equals_the_store(run: Run, file: Path) -> None:
    with h5py.File(file) as opened:
        data = opened["data"]
        assert len(data) == 5
        assert data.attrs["total"] == sum(episode.length for episode in EPISODES)
        env_args = json.loads(data.attrs["env_args"])
        assert {"env_name", "type", "env_kwargs"} <= set(env_args)
        for name, demo in data.items():
            stored = read_episode(run.folder("peg_round_8mm", demo.attrs["episode_id"]))
            frames = stored.frames
            assert demo.attrs["num_samples"] == stored.length
            assert demo.attrs["seed"] == stored.seed
            assert json.loads(demo.attrs["draws"]) == stored.draws
            pairs = {"actions": "action", "rewards": "next.reward", "states": "bodies", "phases": "phase"}
            pairs |= {"dones": "next.done", "successes": "next.success"}
            pairs |= {f"obs/{key.partition('.')[2]}": key for key in frames if key.startswith(("obs", "priv"))}
            assert len(pairs) == 15
            for path, key in pairs.items():
                assert np.array_equal(demo[path][:], frames[key]), (name, path)
                names = json.loads(demo[path].attrs["names"])
                assert len(names) == (frames[key].shape[1] if frames[key].ndim > 1 else 0)
            assert demo["dones"].dtype == np.int64


def test_pictures_are_those_of_the_videos(file: Path) -> None:
    with h5py.File(file) as opened:
        for demo in opened["data"].values():
            number = [episode.id for episode in EPISODES].index(demo.attrs["episode_id"])
            for index, camera in enumerate(CAMERAS):
                pictures = demo[f"obs/{camera}_image"]
                assert pictures.shape == (demo.attrs["num_samples"], 32, 64, 3)
                for frame in range(len(pictures)):
                    assert read_paint(pictures[frame]) == (number, frame, index)


def test_filter_keys_part_the_demos_by_seed(file: Path) -> None:
    with h5py.File(file) as opened:
        keys = {name: [demo.decode() for demo in opened[f"mask/{name}"]] for name in ("train", "valid")}
        assert sorted(keys["train"] + keys["valid"]) == sorted(opened["data"])
        assert keys["train"]
        assert keys["valid"]
        for key, split in (("train", "train"), ("valid", "test")):
            assert {HALF.split(int(opened[f"data/{demo}"].attrs["seed"])) for demo in keys[key]} == {split}


def test_without_pictures_nothing_need_be_rendered(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", EPISODES[:2], cameras=())
    summary = export_hdf5(run.root, tmp_path / "demos.hdf5", choice=Choice(cameras=(), privileged=False))
    assert (summary.episodes, summary.frames) == (2, 29)
    assert summary.size_bytes == (tmp_path / "demos.hdf5").stat().st_size
    with h5py.File(summary.root) as opened:
        assert set(opened["data/demo_0/obs"]) == {"state", "joint_vel", "eef_pos", "eef_quat", "wrist_wrench"}
        assert len(opened["mask/valid"]) == 0
    with pytest.raises(UserError, match=r"plain\.front\.mp4 is missing"):
        export_hdf5(run.root, tmp_path / "more.hdf5", choice=Choice(cameras=CAMERAS))


def test_the_same_episodes_give_the_same_bytes_and_replace_an_earlier_file(run: Run, file: Path) -> None:
    before = file.read_bytes()
    export_hdf5(run.root, file, choice=HALF)
    assert file.read_bytes() == before
    assert list(file.parent.iterdir()) == [file]


def test_a_file_of_others_is_left_alone(run: Run, tmp_path: Path) -> None:
    other = tmp_path / "thesis.hdf5"
    other.write_text("years of work")
    with pytest.raises(UserError, match="exists and is not an earlier export"):
        export_hdf5(run.root, other)
    with h5py.File(tmp_path / "theirs.hdf5", "w") as opened:
        opened.attrs["author"] = "someone"
    with pytest.raises(UserError, match="exists and is not an earlier export"):
        export_hdf5(run.root, tmp_path / "theirs.hdf5")
    assert other.read_text() == "years of work"


def test_a_break_leaves_nothing_half_written(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError("file write failed: errno = 28, error message = 'No space left on device'")

    monkeypatch.setattr("pipeline.export.hdf5._write_demo", full)
    with pytest.raises(UserError, match="no space left"):
        export_hdf5(run.root, tmp_path / "demos.hdf5")
    assert not list(tmp_path.iterdir())
