import numpy as np
import pytest

from qc.episodes import STATE
from qc.filters.near_duplicates import NearDuplicatesFilter
from qc.inject import Arm, Injector, take
from tests.qc.factories import copy_of, make_episode, make_task, truncate, with_frames


def injector(seed=0):
    return Injector(Arm(np.zeros((3, 7))), np.random.default_rng(seed))


def found(episodes):
    return np.flatnonzero(NearDuplicatesFilter().fit(episodes).predict(episodes) == -1).tolist()


@pytest.mark.parametrize("noise", [0.0, 1e-5, 1e-4, 3e-4])
def test_a_copy_with_noise_is_found_and_the_first_stays(noise):
    copy = copy_of(injector().noisy_copy(make_episode(4), noise), 99)
    assert found([*make_task(20), copy]) == [20]
    assert found([copy, *make_task(20)]) == [0]


@pytest.mark.parametrize("rows", [1, 5, 20, 40])
@pytest.mark.parametrize("seed", range(3))
def test_a_trimmed_copy_is_found_whatever_end_was_cut(rows, seed):
    episodes = [*make_task(20), copy_of(injector(seed).trimmed_copy(make_episode(4), rows), 99)]
    filter_ = NearDuplicatesFilter().fit(episodes)
    assert np.flatnonzero(filter_.predict(episodes) == -1).tolist() == [20]
    assert f"moves as {make_episode(4).id} does" in filter_.explain(20).sentence


def test_a_shifted_copy_is_found_with_its_lag():
    wait = take(make_episode(4), np.r_[np.zeros(9, int), np.arange(make_episode(4).length)])
    episodes = [*make_task(20), copy_of(wait, 99)]
    filter_ = NearDuplicatesFilter().fit(episodes)
    assert np.flatnonzero(filter_.predict(episodes) == -1).tolist() == [4]
    assert filter_.explain(4).evidence == {"original": episodes[20].id, "difference": 0.0, "lag": 9}


def test_distinct_episodes_are_no_copies_of_each_other():
    for seed in range(5):
        assert found(make_task(150, seed=seed)) == []


def test_a_part_is_a_copy_and_two_parts_with_little_in_common_are_none():
    whole, first = make_episode(4), copy_of(truncate(make_episode(4), 0.55), 98)
    second = copy_of(take(whole, np.arange(int(whole.length * 0.45), whole.length)), 99)
    assert found([*make_task(20), first]) == [20]
    assert found([*make_task(4), first, second]) == []


def test_what_is_no_reference_is_no_original():
    episodes = [*make_task(5), copy_of(make_episode(4), 99)]
    reference = np.array([True] * 4 + [False, True])
    assert (NearDuplicatesFilter().fit(episodes, reference=reference).predict(episodes) == 1).all()


@pytest.mark.parametrize("count", [0, 1])
def test_one_episode_is_like_no_other(count):
    assert found(make_task(count)) == []


def test_where_the_state_is_not_recorded_commands_tell_copies_apart():
    def blind(episode):
        return with_frames(episode, {**episode.frames, STATE: np.zeros_like(episode.frames[STATE])})

    episodes = [blind(e) for e in make_task(20)]
    assert found([*episodes, blind(copy_of(injector().noisy_copy(make_episode(4), 1e-5), 99))]) == [20]


def test_where_no_joint_moves_there_is_nothing_to_compare():
    still = [with_frames(e, {n: np.repeat(v[:1], len(v), axis=0) for n, v in e.frames.items()}) for e in make_task(5)]
    filter_ = NearDuplicatesFilter().fit(still)
    assert (filter_.predict(still) == 0).all()
    assert filter_.explain(0).sentence == "not assessed: no joint moves in any episode of the task"
