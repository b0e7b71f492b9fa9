"""Every episode of a dataset can be decided about, whatever else moves as it does."""

import pandas as pd
import pytest

from qc.readers.lerobot import read_lerobot
from tests.qc.datasets import write_dataset
from tests.qc.factories import copy_of, make_task

TWINS = {"task": {"task": "another"}, "outcome": {"outcome": "failure"}, "nothing": {}}


def hashes(root, episodes, recorded=()):
    write_dataset(root, episodes)
    path = root / "meta" / "episodes" / "chunk-000" / "file-000.parquet"
    told = pd.read_parquet(path).assign(outcome=[e.outcome for e in episodes])
    (told.assign(content_hash=list(recorded)) if recorded else told).to_parquet(path)
    return [e.content_hash for e in read_lerobot(root).episodes]


@pytest.mark.parametrize("apart", TWINS)
def test_episodes_that_move_alike_are_told_apart_in_any_order(tmp_path, apart):
    episodes = make_task(3)
    episodes.append(copy_of(episodes[1], 3, **TWINS[apart]))
    found = hashes(tmp_path / "a", episodes)
    assert len(set(found)) == 4
    assert found[:3] == hashes(tmp_path / "alone", episodes[:3])
    turned = hashes(tmp_path / "b", episodes[::-1])[::-1]
    assert sorted(turned) == sorted(found)
    assert turned == found or apart == "nothing"  # which of two that are alike is the copy, nobody can say


def test_what_the_recorder_wrote_is_the_identity_unless_it_stands_for_different_episodes(tmp_path):
    episodes = make_task(3)
    episodes.append(copy_of(episodes[0], 3))
    own = hashes(tmp_path / "own", episodes)
    assert hashes(tmp_path / "told", episodes, ["a", "b", None, "d"]) == ["a", "b", own[2], "d"]
    assert hashes(tmp_path / "same", episodes, ["a", "b", "c", "a"])[:3] == ["a", "b", "c"]
    assert len(set(hashes(tmp_path / "same twice", episodes, ["a", "b", "c", "a"]))) == 4
    assert hashes(tmp_path / "edited", episodes, ["a", "b", "b", "d"]) == ["a", own[1], own[2], "d"]
