"""Jitter, spikes, release, end pose and phases: what one number says against the task's others."""

from dataclasses import replace

import numpy as np
import pytest

from qc.episodes import ACTION, FIXED_POSE, HELD_POSE, STATE, Layout
from qc.filters.moments import EndPoseFilter, ReleaseFilter, release_row
from qc.filters.phases import PhasesFilter, phase_balance
from qc.filters.roughness import JitterFilter, SpikesFilter
from qc.inject import DEFECTS, Arm, Injector
from tests.qc.factories import change, freeze, in_units, make_episode, make_task, truncate, with_frames

BAD = [3, 11]
FEATURES = (JitterFilter, SpikesFilter, ReleaseFilter, EndPoseFilter)
EPISODES = make_task(30)


def with_parts(episode):
    """With the parts' poses: the held part under the tool, the fixed one where it is put down."""
    release = release_row(episode) or 0
    place = episode.frames["observation.eef_pos"][release]
    still = np.tile([0.0, 0.0, 0.0, 1.0], (episode.length, 1))
    fixed = np.column_stack([np.tile(place, (episode.length, 1)), still])
    held = np.column_stack([episode.frames["observation.eef_pos"], still])
    held[release:, :3] = place
    return with_frames(episode, {**episode.frames, HELD_POSE: held, FIXED_POSE: fixed})


def planted(defect, severity, episodes=EPISODES, seed=0):
    injector = Injector(Arm.learn(episodes), np.random.default_rng(seed))
    return change(episodes, BAD, lambda e: DEFECTS[defect].plant(injector, e, severity))


def flagged(filter_, episodes):
    return np.flatnonzero(filter_.fit(episodes).predict(episodes) == -1).tolist()


@pytest.mark.parametrize("kind", FEATURES)
def test_clean_tasks_raise_no_alarm(kind):
    for seed in range(4):
        assert flagged(kind(), make_task(40, seed=seed)) == []


@pytest.mark.parametrize(
    ("kind", "defect", "severity", "told"),
    [
        (JitterFilter, "jitter", 1.0, "trembles by"),
        (SpikesFilter, "spike", 50.0, "leaps out and back by"),
        (ReleaseFilter, "early release", 10.0, "lets go at frame"),
        (ReleaseFilter, "truncated", 40.0, "never lets go"),
    ],
)
def test_what_each_looks_for_is_found_and_told(kind, defect, severity, told):
    episodes = planted(defect, severity)
    filter_ = kind()
    assert flagged(filter_, episodes) == BAD
    assert told in filter_.explain(BAD[0]).sentence
    evidence = filter_.explain(BAD[0]).evidence
    assert evidence["z"] > evidence["cutoff"]


def test_an_end_pose_is_measured_from_the_fixed_part_where_that_is_known():
    episodes = planted("end pose off", 15.0, [with_parts(e) for e in EPISODES])
    filter_ = EndPoseFilter()
    assert flagged(filter_, episodes) == BAD
    assert "from the fixed part" in filter_.explain(BAD[0]).sentence
    assert flagged(EndPoseFilter(), planted("end pose off", 15.0)) == []  # hidden by where the goal is drawn


def test_waiting_at_the_end_is_no_late_end():
    episodes = change(EPISODES, BAD, lambda e: freeze(e, 40, e.length - 1))
    assert flagged(ReleaseFilter(), episodes) == []


def test_units_do_not_matter():
    for kind, defect, severity in ((JitterFilter, "jitter", 0.3), (ReleaseFilter, "early release", 10.0)):
        episodes = planted(defect, severity)
        other = [in_units(e, angle=180 / np.pi, length=1000.0) for e in episodes]
        mine, theirs = kind().fit(episodes), kind().fit(other)
        np.testing.assert_allclose(mine.score_samples(episodes), theirs.score_samples(other), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("kind", [*FEATURES, PhasesFilter])
def test_too_few_are_not_assessed(kind):
    filter_ = kind().fit(make_task(9))
    assert (filter_.predict(make_task(9)) == 0).all()
    assert "9 of 10 episodes" in filter_.explain(0).sentence


def test_without_a_gripper_no_release_is_assessed_and_the_rest_is():
    layout = Layout({STATE: tuple("abcdefg"), ACTION: tuple("abcdefg")})
    bare = [
        replace(e, layout=layout, frames={n: e.frames[n][:, :7] for n in (STATE, ACTION)}, phase_spans=())
        for e in EPISODES
    ]
    assert "nothing to measure" in ReleaseFilter().fit(bare).not_assessed_
    assert PhasesFilter().fit(bare).not_assessed_ == "no phases are recorded"
    for kind in (JitterFilter, SpikesFilter, EndPoseFilter):
        assert flagged(kind(), bare) == []


def test_a_missing_phase_is_told_and_one_more_is_none():
    spans = EPISODES[3].phase_spans
    without = replace(EPISODES[3], phase_spans=tuple(s for s in spans if s["phase"] != "insert"))
    more = replace(EPISODES[11], phase_spans=(*EPISODES[11].phase_spans, {"phase": "retry", "start": 0, "end": 9}))
    episodes = [*EPISODES[:3], without, *EPISODES[4:11], more, *EPISODES[12:]]
    filter_ = PhasesFilter()
    assert flagged(filter_, episodes) == [3]
    assert "never enters insert" in filter_.explain(3).sentence


def test_phases_are_counted_and_rare_ones_called_out():
    rare = replace(EPISODES[0], phase_spans=({"phase": "retract", "start": 0, "end": 20},))
    balance = {(r["task"], r["phase"]): r for r in phase_balance([*EPISODES[1:], rare]).to_dict("records")}
    assert balance["*", "retract"]["rare"]
    assert not balance["peg_round_8mm", "insert"]["rare"]
    assert balance["*", "insert"]["episodes"] == pytest.approx(29 / 30)
    assert sum(r["rows"] for (task, _), r in balance.items() if task == "*") < 1


def test_the_release_is_the_last_return_to_where_the_gripper_began():
    episode = make_episode(2)
    opens = int(np.flatnonzero(episode.frames[ACTION][:, 7] > 0.5)[-1]) + 1
    assert release_row(episode) == opens
    assert release_row(truncate(episode, 0.4)) is None
    inverted = with_frames(episode, {**episode.frames, ACTION: 1.0 - episode.frames[ACTION]})
    assert release_row(inverted) == opens
