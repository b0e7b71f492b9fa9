"""Planted defects are what they say, and nothing else."""

import numpy as np
import pytest

from qc.detection import CLUSTER, detection_curves
from qc.episodes import ACTION, EEF_POS, STATE, TIME
from qc.filters.moments import release_row
from qc.inject import DEFECTS, Arm, Injector
from qc.integrity import check_episodes
from tests.qc.factories import make_task, with_frames

EPISODES = make_task(30)


def plant(name, severity, episode=EPISODES[4]):
    return DEFECTS[name].plant(Injector(Arm.learn(EPISODES), np.random.default_rng(1)), episode, severity)


@pytest.mark.parametrize("name", DEFECTS)
def test_a_planted_episode_is_consistent_and_its_original_untouched(name):
    before = {k: v.copy() for k, v in EPISODES[4].frames.items()}
    bad = plant(name, DEFECTS[name].moderate)
    assert DEFECTS[name].moderate in DEFECTS[name].severities
    assert all(len(values) == bad.length for values in bad.frames.values())
    assert all(0 <= s["start"] < s["end"] <= bad.length for s in bad.phase_spans)
    assert bad.content_hash != EPISODES[4].content_hash
    for key, values in before.items():
        np.testing.assert_array_equal(values, EPISODES[4].frames[key])


def test_an_early_release_is_early_by_so_many_rows_and_moves_its_phases():
    bad = plant("early release", 10)
    assert release_row(bad) == (release_row(EPISODES[4]) or 0) - 10
    assert next(s for s in bad.phase_spans if s["phase"] == "release")["start"] == release_row(bad)
    np.testing.assert_array_equal(bad.frames[EEF_POS], EPISODES[4].frames[EEF_POS])


def test_an_end_pose_is_off_by_so_much_and_joints_follow():
    bad = plant("end pose off", 15)
    off = np.linalg.norm(bad.frames[EEF_POS] - EPISODES[4].frames[EEF_POS], axis=1)
    assert off[-1] == pytest.approx(0.015, abs=1e-6)
    assert off[0] == 0
    assert np.abs(bad.frames[STATE][-1, :7] - EPISODES[4].frames[STATE][-1, :7]).max() > 0.005


def test_still_rows_are_as_many_as_asked_for():
    for name in ("idle at the start", "idle in the middle", "idle at the end"):
        bad = plant(name, 30)
        assert bad.length == EPISODES[4].length + 30
        assert np.count_nonzero((np.diff(bad.frames[ACTION], axis=0) == 0).all(axis=1)) >= 30


def test_a_hole_in_time_and_a_number_that_is_none_are_found_by_their_rows():
    time = np.arange(EPISODES[4].length, dtype=np.float32) / 15
    timed = with_frames(EPISODES[4], {**EPISODES[4].frames, TIME: time})
    (holed,) = check_episodes([plant("gap in time", 0.5, timed)], 15.0)
    assert [f.kind for f in holed.findings] == ["timestamps"]
    (bad,) = check_episodes([plant("not a number", 1)], 15.0)
    assert [f.kind for f in bad.findings] == ["not_finite"]


def test_curves_count_what_is_found_and_what_is_not():
    curves = detection_curves(EPISODES, ["early release", CLUSTER], trials=1)
    release = curves[curves["defect"] == "early release"]
    assert release["found"].tolist()[-3:] == [4, 4, 4]
    assert release["found"].iloc[0] == 0
    assert release.loc[release["moderate"], "severity"].tolist() == [10]
    assert (release["healthy"] == 26).all()
    assert curves["false"].sum() <= 4
    assert set(curves["severity"][curves["defect"] == CLUSTER]) == {5, 10, 15}
