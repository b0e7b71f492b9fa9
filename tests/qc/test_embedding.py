from dataclasses import replace

import numpy as np
import pytest

from qc.embedding import embed
from qc.episodes import ACTION, EEF_POS, EEF_QUAT, STATE, Layout
from qc.filters.mahalanobis import MahalanobisFilter
from tests.qc.factories import in_units, make_episode, make_task, take, with_frames


def test_columns_are_named_and_grouped():
    embedding = embed(make_task(3), points=8)
    assert embedding.matrix.shape == (3, len(embedding.columns))
    assert len(embedding.columns) == len(set(embedding.columns)) == len(embedding.groups) == len(embedding.resolution)
    assert "eef_position.z@0.57" in embedding.columns
    assert np.isfinite(embedding.matrix).all()


def test_resampling_keeps_the_ends_and_straight_lines():
    episode = make_episode()
    line = np.linspace(0.0, 1.0, episode.length)[:, None] * [1.0, 2.0, 3.0]
    embedding = embed([with_frames(episode, {**episode.frames, EEF_POS: line})], points=5)
    mine = embedding.matrix[0, embedding.groups == "eef_position"].reshape(5, 3)
    np.testing.assert_allclose(mine, np.linspace(0, 1, 5)[:, None] * [1, 2, 3], atol=1e-6)


def test_the_sign_of_a_quaternion_means_nothing():
    episode = make_episode()
    flip = np.where(np.arange(episode.length) % 2, -1.0, 1.0)[:, None]
    flipped = with_frames(episode, {**episode.frames, EEF_QUAT: episode.frames[EEF_QUAT] * flip})
    np.testing.assert_allclose(embed([episode]).matrix, embed([flipped]).matrix, atol=1e-6)


def test_without_phases_a_trajectory_depends_on_its_own_episode_alone():
    episodes = [replace(e, phase_spans=()) for e in make_task(5)]
    together = embed(episodes)
    motion = together.groups != "scalars"
    for i, episode in enumerate(episodes):
        np.testing.assert_array_equal(together.matrix[i, motion], embed([episode]).matrix[0, motion])


def test_with_phases_a_longer_dwell_shifts_nothing_that_follows():
    episodes = make_task(20)
    grasp = next(s for s in episodes[3].phase_spans if s["phase"] == "grasp")
    longer = take(episodes[3], np.sort(np.r_[np.arange(episodes[3].length), np.full(10, int(grasp["end"]) - 1)]))
    spans = [
        {
            **s,
            "start": s["start"] + 10 * (s["start"] >= grasp["end"]),
            "end": s["end"] + 10 * (s["end"] >= grasp["end"]),
        }
        for s in episodes[3].phase_spans
    ]
    with_phases = embed([*episodes, replace(longer, phase_spans=tuple(spans))])
    without = embed([replace(e, phase_spans=()) for e in [*episodes, longer]])
    path = with_phases.groups == "eef_position"
    moved = [np.abs(e.matrix[20, path] - e.matrix[3, path]).max() for e in (with_phases, without)]
    assert moved[0] < 0.2 * moved[1]


def test_a_dataset_without_tool_gripper_or_phases_embeds():
    layout = Layout({STATE: ("a", "b"), ACTION: ("a", "b")})
    bare = [
        replace(e, layout=layout, phase_spans=(), frames={n: e.frames[n][:, :2] for n in (STATE, ACTION)})
        for e in make_task(6)
    ]
    embedding = embed(bare)
    assert set(embedding.groups) == {"state_arm", "action_arm", "scalars"}
    assert np.isfinite(embedding.matrix).all()


def test_units_vanish_when_standardised():
    episodes = make_task(30)
    everyone, within = np.ones(30, dtype=bool), np.zeros(30)
    in_si = embed(episodes).standardise(within, everyone)
    others = embed([in_units(e, angle=180 / np.pi, length=1000.0) for e in episodes]).standardise(within, everyone)
    np.testing.assert_allclose(in_si, others, atol=2e-3)


def test_a_column_that_is_constant_but_for_rounding_makes_no_outlier():
    rng = np.random.default_rng(0)
    still = [with_frames(e, {**e.frames, STATE: e.frames[STATE] * [1, 1, 1, 1, 1, 1, 0, 1]}) for e in make_task(40)]

    def offset(episode, size):
        state = episode.frames[STATE].astype(np.float64)
        state[:, 6] += size
        return with_frames(episode, {**episode.frames, STATE: state})

    never_moves = embed([offset(e, 1e-6 * rng.standard_normal()) for e in still])
    assert not any(column.startswith("state_arm.joint_7") for column in never_moves.columns)
    hardly_moves = [offset(e, 1e-6 * rng.standard_normal(e.length)) for e in still]
    hardly_moves[-1] = offset(hardly_moves[-1], 1e-5)
    z = (embedding := embed(hardly_moves)).standardise(embedding.tasks, np.ones(40, dtype=bool))
    assert abs(z[-1, embedding.columns.index("state_arm.joint_7@0.52")]) < 3
    assert MahalanobisFilter(groups=embedding.groups).fit_predict(z)[-1] == 1


def test_rows_without_a_reference_are_not_a_number():
    embedding = embed(make_task(4))
    assert np.isnan(embedding.standardise(embedding.tasks, np.zeros(4, dtype=bool))).all()


@pytest.mark.parametrize("rows", [1, 2, 3])
def test_the_shortest_episodes_embed(rows):
    assert np.isfinite(embed([take(make_episode(), np.arange(rows))]).matrix).all()


def test_nothing_embeds_to_nothing():
    assert embed([]).matrix.shape[0] == 0
