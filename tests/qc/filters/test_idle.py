from dataclasses import replace

import numpy as np
import pytest

from qc.episodes import ACTION, EEF_POS, STATE
from qc.filters.idle import IdleFilter
from tests.qc.factories import change, freeze, in_units, make_episode, make_task, with_frames

MIDDLE = 85  # in transport


@pytest.mark.parametrize("rows", [15, 17, 20, 30, 40, 60])
def test_a_frozen_stretch_is_found_with_its_rows(rows):
    episodes = change(make_task(20), [3], lambda e: freeze(e, rows, MIDDLE))
    idle = IdleFilter().fit(episodes)
    assert np.flatnonzero(idle.predict(episodes) == -1).tolist() == [3]
    (streak,) = [s for s in idle.streaks_[3] if s.where != "end"]
    assert streak.where == "middle"
    assert streak.start <= MIDDLE < streak.end
    assert rows <= streak.rows <= rows + 4
    assert f"rows {streak.start} to {streak.end - 1}" in idle.explain(3).sentence


@pytest.mark.parametrize("rows", [2, 5, 10])
def test_a_short_pause_is_none(rows):
    episodes = change(make_task(20), [3], lambda e: freeze(e, rows, MIDDLE))
    assert (IdleFilter().fit_predict(episodes) == 1).all()


def test_clean_episodes_with_gripper_dwells_are_never_idle():
    for seed in range(10):
        assert (IdleFilter().fit_predict(make_task(40, seed=seed)) == 1).all()


@pytest.mark.parametrize(("where", "verdict"), [("start", -1), ("end", 1)])
def test_idle_at_the_start_is_harmful_and_at_the_end_only_reported(where, verdict):
    def pad(episode):
        return freeze(episode, 20, 0 if where == "start" else episode.length - 1)

    episodes = change(make_task(20), [3], pad)
    idle = IdleFilter().fit(episodes)
    assert idle.predict(episodes)[3] == verdict
    assert [s.where for s in idle.streaks_[3]] == [where]
    assert f"at the {where}" in idle.explain(3).sentence


def test_a_few_that_idle_at_the_end_are_no_excuse_for_each_other():
    episodes = change(make_task(40), [3, 9, 20, 31], lambda e: freeze(e, 40, e.length - 1))
    idle = IdleFilter().fit(episodes)
    assert [i for i, found in enumerate(idle.streaks_) if any(s.where == "end" for s in found)] == [3, 9, 20, 31]


def test_waiting_on_in_the_grasp_is_idle_in_the_end():
    grasp = next(s for s in make_episode(3).phase_spans if s["phase"] == "grasp")
    for rows, verdict in ((8, 1), (60, -1)):
        episodes = make_task(20)
        episodes[3] = freeze(episodes[3], rows, int(grasp["end"]) - 1)
        assert IdleFilter().fit_predict(episodes)[3] == verdict


def with_pauses(episode, number, rows=40):
    """A phase in which the arm waits by design, and what its time does to the phases."""
    carried = next(s for s in episode.phase_spans if s["phase"] == "transport")
    at, pause = (int(carried["start"]) + int(carried["end"])) // 2, rows + number % 8
    spans = [
        {**s, **{edge: s[edge] + (pause if s[edge] > at else 0) for edge in ("start", "end")}}
        for s in episode.phase_spans
    ]
    whole = next(s for s in spans if s["start"] <= at < s["end"])
    cut = [s for s in spans if s is not whole]
    parts = [
        {"phase": whole["phase"], "start": whole["start"], "end": at},
        {"phase": "settle", "start": at, "end": at + pause},
        {"phase": whole["phase"], "start": at + pause, "end": whole["end"]},
    ]
    ordered = sorted([*cut, *parts], key=lambda s: int(s["start"]))
    return replace(freeze(episode, pause + 1, at), phase_spans=tuple(ordered))


def test_a_phase_of_waiting_is_part_of_the_work_and_too_long_a_wait_is_none():
    episodes = [with_pauses(e, i) for i, e in enumerate(make_task(20))]
    assert (IdleFilter().fit_predict(episodes) == 1).all()
    episodes[5] = with_pauses(make_episode(5), 0, rows=80)
    idle = IdleFilter().fit(episodes)
    assert np.flatnonzero(idle.predict(episodes) == -1).tolist() == [5]
    assert "during settle" in idle.explain(5).sentence


def test_units_do_not_matter():
    episodes = change(make_task(20), [3, 5], lambda e: freeze(e, 18, MIDDLE))
    degrees = [in_units(e, angle=180 / np.pi) for e in episodes]
    np.testing.assert_array_equal(
        IdleFilter().fit(episodes).score_samples(episodes), IdleFilter().fit(degrees).score_samples(degrees)
    )


@pytest.mark.parametrize("noise", [1e-4, 1e-3])
def test_a_freeze_is_found_under_sensor_noise_and_a_slow_press_is_none(noise):
    def shake(episode, number):
        rng = np.random.default_rng(number)
        shaken = episode.frames[STATE] + noise * rng.standard_normal((episode.length, 8))
        return with_frames(episode, {**episode.frames, STATE: shaken})

    episodes = change(make_task(20), [3], lambda e: freeze(e, 20, MIDDLE))
    episodes = [shake(e, i) for i, e in enumerate(episodes)]
    assert np.flatnonzero(IdleFilter().fit_predict(episodes) == -1).tolist() == [3]


def test_a_command_that_moves_is_not_idle_even_if_nothing_is_measured_to():
    episode = freeze(make_episode(3), 30, MIDDLE)
    action = episode.frames[ACTION].copy()
    action[:, 0] += 0.003 * np.arange(len(action))
    episodes = [*make_task(10), with_frames(episode, {**episode.frames, ACTION: action})]
    assert (IdleFilter().fit_predict(episodes) == 1).all()


def test_a_task_in_which_no_joint_moves_is_idle_all_through():
    def still(episode):
        frames = {name: np.repeat(v[:1], len(v), axis=0) for name, v in episode.frames.items()}
        return with_frames(episode, {**frames, EEF_POS: episode.frames[EEF_POS]})

    episodes = [still(e) for e in make_task(5)]
    assert (IdleFilter().fit_predict(episodes) == -1).all()


def test_without_an_episode_to_learn_from_it_is_not_assessed():
    episodes = make_task(5)
    idle = IdleFilter().fit(episodes, reference=np.zeros(5, dtype=bool))
    assert (idle.predict(episodes) == 0).all()
    assert np.isnan(idle.score_samples(episodes)).all()
    assert idle.explain(0).sentence.startswith("not assessed")
