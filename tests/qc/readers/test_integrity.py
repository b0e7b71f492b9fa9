"""Rows and labels of LeRobot datasets that can be read and are wrong: which episodes are not fit for training."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from qc.episodes import ACTION, STATE
from qc.readers.source import read_source
from qc.verdicts import assess
from tests.qc.datasets import write_dataset
from tests.qc.factories import change, make_episode, make_task, take, with_frames
from tests.qc.readers.films import EPISODES
from tests.qc.readers.test_lerobot_columns import data_of, rewrite


def harmful(found):
    return sorted({(f.kind, f.episode) for f in found.findings if f.harmful})


def zeroed(*dims, columns=(STATE, ACTION)):
    mask = np.ones(8)
    mask[list(dims)] = 0.0
    return lambda e: with_frames(e, {n: v * mask if n in columns else v for n, v in e.frames.items()})


def spoilt(value, row=40, dim=3):
    def spoil(episode):
        state = episode.frames[STATE].copy()
        state[row, dim] = value
        return with_frames(episode, {**episode.frames, STATE: state})

    return spoil


@pytest.mark.parametrize("version", ["v3.0", "v2.1"])
@pytest.mark.parametrize(("rows", "kept"), [(0, False), (1, False), (2, False), (3, True)])
def test_an_episode_too_short_to_move_is_not_kept(tmp_path, version, rows, kept):
    given = [*make_task(4), take(make_episode(4), np.arange(rows))]
    found = read_source(write_dataset(tmp_path / "d", given, version=version))
    assert [f.told for f in found.findings if f.kind == "short"] == (
        [] if kept else [f"has {rows} rows, and no motion can be judged in fewer than 3"]
    )
    table = assess(found)
    assert table["verdict"].tolist() == ["keep"] * 4 + ["keep" if kept else "drop"]
    assert table["length"].tolist() == [e.length for e in given]


@pytest.mark.parametrize("count", [2, 5, 40])
@pytest.mark.parametrize("value", [1e30, -3e38])
def test_a_number_beyond_reason_is_found_among_few_episodes(tmp_path, count, value):
    found = read_source(write_dataset(tmp_path / "d", change(make_task(count), [1], spoilt(value))))
    (finding,) = found.findings
    assert (finding.kind, finding.episode, finding.frame) == ("size", "episode_000001", 40)
    assert f"joint_4.pos is {value:g}" in finding.told
    assert not found.episodes[1].sound


def test_numbers_within_reason_are_no_finding(tmp_path):
    """Another unit for all, a dimension that hardly any episode moves, and a spike are left to the filters."""
    far = [with_frames(e, {**e.frames, STATE: e.frames[STATE] * 1e20}) for e in make_task(5)]
    assert read_source(write_dataset(tmp_path / "far", far)).findings == ()
    noise = [with_frames(e, {**e.frames, ACTION: e.frames[ACTION] * ([1e-9] + [1] * 7)}) for e in make_task(5)]
    noise[2] = make_episode(2)
    noise[3] = spoilt(50.0)(noise[3])
    assert read_source(write_dataset(tmp_path / "noise", noise)).findings == ()


@pytest.mark.parametrize(("count", "hit"), [(4, [1]), (12, [0, 4, 8]), (3, [2])])
def test_dimensions_filled_with_zeros_are_found_if_most_of_the_task_move_there(tmp_path, count, hit):  # leisaac 165
    found = read_source(write_dataset(tmp_path / "d", change(make_task(count), hit, zeroed(6, 7))))
    assert harmful(found) == [("undriven", f"episode_{i:06d}") for i in hit]
    assert any("joint_7.pos is 0 in every row, but hardly ever in the other episodes" in f.told for f in found.findings)


@pytest.mark.parametrize(
    "given",
    [
        change(make_task(12), range(6), zeroed(6)),  # as many without
        change(make_task(12), range(3), zeroed(7)),  # open fingers, which are 0 in many rows of all
        [*map(zeroed(6), make_task(3, task="one arm")), *make_task(9)],  # another task
    ],
)
def test_zeros_that_may_belong_are_no_fault(tmp_path, given):
    assert harmful(read_source(write_dataset(tmp_path / "d", given))) == []


@pytest.mark.parametrize(
    ("spoil", "told"),
    [
        (lambda tasks: np.where(np.arange(len(tasks)) == 30, 1, tasks), "changes from 0 to 1 at row 30"),
        (lambda tasks: np.where(np.arange(len(tasks)) < 50, 99, tasks), "task_index is 99, which no task has"),
    ],
)
def test_a_task_that_cannot_be_told_is_the_fault_of_its_episode(tmp_path, spoil, told):
    root = write_dataset(tmp_path / "d", [*make_task(3), *make_task(2, task="other")])
    rewrite(data_of(root), "task_index", lambda v: pa.array(spoil(np.array(v))))
    found = read_source(root)
    assert harmful(found) == [("tasks", "episode_000000")]
    assert told in found.findings[0].told
    assert [e.sound for e in found.episodes] == [False, True, True, True, True]


def test_an_episode_may_change_its_task_if_it_says_so(tmp_path):
    episodes = [*make_task(3, task="reach"), *make_task(2, task="hold")]
    root = write_dataset(tmp_path / "d", episodes)
    rewrite(data_of(root), "task_index", lambda v: pa.array([0] * 50 + [1] * 20 + v[70:]))
    pd.read_parquet(root / EPISODES).assign(
        tasks=pd.Series([["reach", "hold"], ["reach"], ["reach"], ["hold"], ["hold"]], dtype=object)
    ).to_parquet(root / EPISODES)
    assert harmful(read_source(root)) == []


@pytest.mark.parametrize("outcomes", [["maybe", "success"], ["success", "SUCCESS"]])
def test_an_outcome_that_is_neither_is_no_success(tmp_path, outcomes):
    root = write_dataset(tmp_path / "d", make_task(4))
    told = pd.Series([*outcomes, "failure", None], dtype=object)
    pd.read_parquet(root / EPISODES).assign(outcome=told).to_parquet(root / EPISODES)
    found = read_source(root)
    wrong = outcomes.index(next(o for o in outcomes if o != "success"))
    assert harmful(found) == [("outcome", f"episode_{wrong:06d}")]
    assert f"outcome is {outcomes[wrong]!r}; correct it to success or failure" in found.findings[0].told
    assert [e.outcome for e in found.episodes][2:] == ["failure", "success"]
