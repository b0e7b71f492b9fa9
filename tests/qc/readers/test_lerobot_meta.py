"""Metadata of LeRobot datasets that are not what they should be: refused with the file, the value and what to do."""

import json
import os
import tempfile
from contextlib import contextmanager
from pathlib import Path

import pandas as pd
import pytest

from qc.episodes import STATE
from qc.errors import QcError
from qc.readers.source import find_source, read_source
from tests.qc.datasets import edit_info, write_dataset
from tests.qc.factories import make_task
from tests.qc.readers.films import EPISODES

MADE = make_task(4)
TASKS = "meta/tasks.parquet"


def feature(root, name, **changes):
    features = json.loads((root / "meta" / "info.json").read_text())["features"]
    edit_info(root, features={**features, name: {**features[name], **changes} if changes else None})


def table(path, change):
    change(pd.read_parquet(path)).to_parquet(path)


@pytest.mark.parametrize(
    ("key", "value", "told"),
    [
        ("fps", 0, "fps is 0"),
        ("fps", float("nan"), "fps is nan"),
        ("fps", -15, "fps is -15"),
        ("fps", 1e9, "fps is 1000000000"),
        ("fps", "x", "fps is 'x'"),
        ("fps", None, "fps is missing"),
        ("features", {}, "features is {}"),
        ("features", [], r"features is \[\]"),
        ("features", None, "features is missing"),
        ("total_episodes", "12", "total_episodes is '12'"),
        ("total_frames", -1, "total_frames is -1"),
        ("chunks_size", 0, "chunks_size is 0"),
        ("video_path", 7, "video_path is 7"),
    ],
)
def test_a_value_that_cannot_be_is_named(tmp_path, key, value, told):
    root = write_dataset(tmp_path / "d", MADE)
    edit_info(root, **{key: value})
    with pytest.raises(QcError, match=rf"info\.json: {told}.*, and should be .*; correct it, or fetch"):
        read_source(root)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({}, "observation.state is missing or null"),
        ({"shape": "8"}, "observation.state, shape is '8'"),
        ({"shape": None}, "observation.state, shape is missing"),
        ({"dtype": None}, "observation.state is {'dtype': None"),
    ],
)
def test_a_feature_that_cannot_be_is_named(tmp_path, changes, told):
    root = write_dataset(tmp_path / "d", MADE)
    feature(root, STATE, **changes)
    with pytest.raises(QcError, match=rf"info\.json: features, {told}"):
        read_source(root)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda t: t.drop(columns="length"), "column length is missing"),
        (lambda t: t.drop(columns="episode_index"), "column episode_index is missing"),
        (lambda t: t.assign(length=[None, 3, 3, 3]), "length is missing in row 0"),
        (lambda t: t.assign(length=-2), "length is -2 in row 0"),
        (lambda t: t.assign(episode_index=[0, 1, None, 3]), "episode_index is missing in row 2"),
        (lambda t: pd.concat([t, t.iloc[[3]]]), "episode 3 is described twice"),
        (lambda t: t.assign(episode_id="same"), "two episodes have the episode_id 'same'"),
    ],
)
def test_an_episode_described_wrongly_is_refused(tmp_path, change, told):
    root = write_dataset(tmp_path / "d", MADE)
    table(root / EPISODES, change)
    with pytest.raises(QcError, match=f"meta/episodes: {told}.*; .*fetch it again"):
        read_source(root)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('{"episode_index": 0,\n', "line 1 is not readable"),
        ('{"episode_index": 0, "length": 3}\n[1, 2]\n', "line 2 holds no object"),
        ('{"episode_index": 0}\n', "column length is missing"),
        (b"\xff\n", "not readable"),
        (None, "it is missing"),
    ],
)
def test_lines_that_describe_no_episode_are_refused(tmp_path, text, told):
    path = write_dataset(tmp_path / "d", MADE, version="v2.1") / "meta" / "episodes.jsonl"
    path.unlink()
    if text is not None:
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(QcError, match=rf"episodes\.jsonl: {told}.*; fetch"):
        read_source(tmp_path / "d")


@pytest.mark.parametrize(
    ("spoil", "told"),
    [
        (Path.unlink, r"it is missing; fetch meta/"),
        (lambda path: table(path, lambda t: t.rename(columns={"task_index": "x"})), "column task_index is missing"),
        (lambda path: path.write_bytes(path.read_bytes()[:-8]), "not finalized"),
        (lambda path: path.write_bytes(b""), "is empty"),
    ],
)
def test_tasks_that_cannot_be_read_are_refused(tmp_path, spoil, told):
    spoil(write_dataset(tmp_path / "d", MADE) / TASKS)
    with pytest.raises(QcError, match=rf"tasks\.parquet: {told}"):
        read_source(tmp_path / "d")


def test_tasks_out_of_order_are_refused(tmp_path):
    root = write_dataset(tmp_path / "d", [*make_task(2), *make_task(2, task="other")])
    table(root / TASKS, lambda t: t.iloc[::-1])
    with pytest.raises(QcError, match=r"tasks\.parquet: task_index is 1, 0: readers look tasks up by position"):
        read_source(root)


@contextmanager
def nobody(place):
    """Whoever may not read what only its owner may."""
    uid = os.geteuid()
    if uid == 0:
        place.chmod(0o755)
        os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(uid)


@pytest.mark.parametrize(
    ("closed", "told"),
    [
        ("d", r"d/[\w./]+: cannot be read \(Permission denied\); see to its permissions"),
        ("d/meta", r"info\.json: cannot be read \(Permission denied\)"),
        ("d/meta/info.json", r"info\.json: cannot be read \(Permission denied\)"),
        (f"d/{TASKS}", r"tasks\.parquet: may not be read"),
        ("d/data", "d/data: cannot be read"),
        ("d/data/chunk-000", "chunk-000: cannot be read"),
        ("d/data/chunk-000/file-000.parquet", r"file-000\.parquet: may not be read"),
    ],
)
def test_what_may_not_be_read_is_named(closed, told):
    with tempfile.TemporaryDirectory(dir="/tmp") as made:  # pytest's own folder is closed to others
        place = Path(made)
        path = write_dataset(place / "d", MADE).parent / closed
        mode = path.stat().st_mode
        path.chmod(0)
        try:
            with nobody(place), pytest.raises(QcError, match=told):
                read_source(find_source(str(place / "d")))
        finally:
            path.chmod(mode)
