import numpy as np

from qc.episodes import STATE, motion_hash
from qc.filters.duplicates import DuplicatesFilter
from tests.qc.factories import copy_of, make_episode, make_task, truncate


def test_copies_are_found_and_the_first_in_order_of_id_stays():
    episodes = [copy_of(make_episode(4), 9), *make_task(6), copy_of(make_episode(4), 8)]
    found = DuplicatesFilter().fit(episodes)
    assert found.predict(episodes).tolist() == [-1, 1, 1, 1, 1, 1, 1, -1]
    assert found.score_samples(episodes).tolist() == [-2, 0, 0, 0, 0, 0, 0, -1]
    assert episodes[5].id in found.explain(0).sentence
    assert found.explain(7).evidence["equal"] == [episodes[5].id, episodes[0].id]


def test_identity_is_motion_not_name_time_or_outcome():
    episode = make_episode()
    assert motion_hash(episode.frames) == motion_hash(copy_of(episode, 5, outcome="failure").frames)
    state = episode.frames[STATE].copy()
    state[50, 2] = np.nextafter(state[50, 2], np.float32(9.0))
    assert motion_hash(episode.frames) != motion_hash({**episode.frames, STATE: state})
    assert motion_hash(episode.frames) != motion_hash(truncate(episode, 0.9).frames)


def test_both_zeros_are_zero():
    episode = make_episode()
    negative = {**episode.frames, STATE: np.where(episode.frames[STATE] == 0, -0.0, episode.frames[STATE])}
    assert motion_hash(episode.frames) == motion_hash(negative)


def test_equal_motion_with_another_label_is_a_conflict_and_no_duplicate():
    first = make_episode(0)
    failed = copy_of(first, 1, outcome="failure", reason="insert: jammed")
    retold = copy_of(make_episode(2), 3, task="peg_round_4mm")
    episodes = [first, failed, make_episode(2), retold, make_episode(4)]
    found = DuplicatesFilter().fit(episodes)
    assert found.conflicts(episodes).tolist() == [True, True, True, True, False]
    assert (found.predict(episodes) == 1).all()
    assert "failure" in found.explain(0).sentence


def test_episodes_seen_later_are_compared_with_those_fitted():
    found = DuplicatesFilter().fit(make_task(3))
    assert found.predict([copy_of(make_episode(1), 7), make_episode(8)]).tolist() == [-1, 1]
