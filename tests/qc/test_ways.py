"""A hand that is seldom turned otherwise, and rightly."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from qc.episodes import ACTION, EEF_QUAT, STATE
from qc.verdicts import assess
from qc.ways import ways_to_take_hold
from tests.qc.factories import make_task, with_frames


def turned(episode, degrees, axis="z"):
    """The hand is turned while it takes hold, and joint 7 with it."""
    share = np.clip(np.arange(episode.length) / 30, 0, 1) * np.deg2rad(degrees)
    frames = dict(episode.frames)
    rotation = Rotation.from_euler(axis, share[:, None]) * Rotation.from_quat(frames[EEF_QUAT].astype(np.float64))
    frames[EEF_QUAT] = rotation.as_quat()
    for name in (STATE, ACTION):
        frames[name] = frames[name] + share[:, None] * np.eye(8)[6]
    return with_frames(episode, frames)


def ways(episodes):
    return ways_to_take_hold(episodes, np.array([e.task for e in episodes], dtype=object))


@pytest.mark.parametrize("degrees", [80, 90, 180])
def test_hands_that_are_turned_make_a_group(degrees):
    episodes = [turned(e, degrees) if i in (3, 8, 17) else e for i, e in enumerate(make_task(40))]
    assert np.flatnonzero(ways(episodes) == 1).tolist() == [3, 8, 17]
    order = np.random.default_rng(0).permutation(40)
    np.testing.assert_array_equal(ways([episodes[i] for i in order]), ways(episodes)[order])


def test_one_alone_small_turns_and_turns_all_around_make_none():
    episodes = make_task(40)
    assert not ways([turned(e, 90) if i == 3 else e for i, e in enumerate(episodes)]).any()
    assert not ways([turned(e, 25) if i in (3, 8) else e for i, e in enumerate(episodes)]).any()
    assert not ways([turned(e, 9 * i) for i, e in enumerate(episodes)]).any()
    assert not ways([turned(e, 90, "x") if i in (3, 8) else e for i, e in enumerate(episodes)]).any()


@pytest.mark.parametrize("seed", range(3))
def test_a_few_that_turn_the_hand_are_kept_and_told(seed):
    episodes = make_task(60, seed=seed)
    before = assess(episodes).set_index("episode_id")["verdict"]
    chosen = [i for i in (4, 23, 41) if before[episodes[i].id] == "keep"]
    assert len(chosen) > 1
    for i in chosen:
        episodes[i] = turned(episodes[i], 90)
    after = assess(episodes).set_index("episode_id").loc[[episodes[i].id for i in chosen]]
    assert after["verdict"].tolist() == ["keep"] * len(chosen)
    assert after["explanation"].str.contains(f"{len(chosen)} of 60 take hold with the hand turned").all()


def test_a_hand_that_tilts_and_one_that_is_turned_alone_are_found():
    tilted = assess([turned(e, 40, "x") if i in (4, 23, 41) else e for i, e in enumerate(make_task(60))])
    alone = assess([turned(e, 90) if i == 4 else e for i, e in enumerate(make_task(60))])
    assert "keep" not in set(tilted.loc[[4, 23, 41], "verdict"])
    assert alone.loc[4, "verdict"] != "keep"
