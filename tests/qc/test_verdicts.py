from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from qc.embedding import embed
from qc.episodes import ACTION, STATE, EpisodeSet, Layout
from qc.errors import QcError
from qc.inject import take
from qc.settings import Settings
from qc.table import COLUMNS, MEASURED
from qc.verdicts import assess
from tests.qc.factories import (
    change,
    copy_of,
    freeze,
    in_units,
    jitter,
    make_episode,
    make_task,
    release_early,
    truncate,
    with_frames,
)

MIDDLE = 85


def verdicts(table: pd.DataFrame) -> dict[str, tuple[str, str]]:
    judged = table[table["verdict"] != "keep"]
    pairs = zip(judged["verdict"], judged["reasons"].map(",".join), strict=True)
    return dict(zip(judged["episode_id"], pairs, strict=True))


def test_clean_episodes_are_kept():
    tables = [assess(make_task(60, seed=seed)) for seed in range(20)]
    assert all((table["verdict"] == "keep").mean() >= 0.95 for table in tables)
    assert np.mean([(table["verdict"] == "keep").mean() for table in tables]) > 0.985
    assert not any("idle" in reasons for table in tables for reasons in table["reasons"])


@pytest.mark.parametrize(
    ("defect", "reason"),
    [
        (lambda e: jitter(e, 1e-3), "mahalanobis"),
        (lambda e: jitter(e, 3e-3), "mahalanobis"),
        (lambda e: release_early(e, 20), "mahalanobis"),
        (lambda e: release_early(e, 30), "mahalanobis"),
        (lambda e: truncate(e, 0.9), "mahalanobis"),
        (lambda e: truncate(e, 0.7), "length"),
        (lambda e: truncate(e, 0.3), "length"),
        (lambda e: freeze(e, 15, MIDDLE), "idle"),
        (lambda e: freeze(e, 40, MIDDLE), "idle"),
        (lambda e: freeze(e, 20, 0), "idle"),
    ],
)
def test_planted_defects_are_dropped(defect, reason):
    bad = [3, 20, 41]
    table = assess(change(make_task(60), bad, defect))
    assert (table.loc[bad, "verdict"] == "drop").all()
    assert all(reason in reasons for reasons in table.loc[bad, "reasons"])
    assert (table.loc[bad, "explanation"].str.len() > 20).all()
    assert (table["verdict"] != "keep").sum() <= len(bad) + 2


def test_the_table_has_its_columns_and_one_row_an_episode_in_order_of_id():
    episodes = make_task(12)
    table = assess(EpisodeSet(tuple(reversed(episodes))))
    assert tuple(table.columns) == COLUMNS
    assert table["episode_id"].tolist() == [e.id for e in episodes]
    assert table["content_hash"].tolist() == [e.content_hash for e in episodes]


def test_failures_keep_their_reason_and_are_not_assessed_further():
    failed = make_episode(99, outcome="failure", reason="insert: jammed")
    table = assess([*make_task(40), failed])
    row = table.iloc[-1]
    assert (row["verdict"], row["reasons"], row["failure"]) == ("drop", ["outcome"], "insert: jammed")
    assert np.isnan(row["length_score"])
    without = assess(make_task(40))
    pd.testing.assert_frame_equal(table.iloc[:-1], without)


def test_duplicates_are_dropped_and_conflicts_are_for_people():
    clean = make_task(40)
    copied, failed = copy_of(clean[1], 60), copy_of(clean[2], 61, outcome="failure", reason="insert: jammed")
    other = copy_of(clean[3], 62, task="peg_round_4mm")
    judged = verdicts(assess([*clean, copied, failed, other]))
    assert judged[copied.id] == ("drop", "duplicates")
    assert judged[clean[2].id] == judged[clean[3].id] == judged[other.id] == ("review", "duplicates")
    assert judged[failed.id] == ("drop", "outcome")
    assert clean[1].id not in judged


def test_a_run_of_a_few_episodes_is_kept_and_says_what_could_not_be_assessed():
    table = assess(make_task(8))
    assert (table["verdict"] == "keep").all()
    assert all(set(MEASURED) - set(by) == {"duplicates", "near_duplicates", "idle"} for by in table["not_assessed_by"])
    assert table["length_score"].isna().all()
    assert (
        table["explanation"]
        .str.contains(
            "not assessed by length, jitter, spikes, release, end_pose, phases (8 of 10 episodes needed)", regex=False
        )
        .all()
    )


def test_without_idle_there_is_no_keeping():
    table = assess([take(e, np.arange(1)) for e in make_task(5)])
    assert (table["verdict"] == "not_assessed").all()


@pytest.mark.parametrize("commanded", [0.0, 3e-5], ids=["held", "deltas below 1e-4"])
@pytest.mark.parametrize("apart", [0.0, 1e-3], ids=["one pose", "a pose each"])
def test_a_task_in_which_only_the_gripper_moves_is_not_emptied(commanded, apart):
    """As in LIBERO's issue 120, where a filter of idle rows left nothing of such tasks."""

    def still(episode):
        frames = {name: np.repeat(values[:1], len(values), axis=0) for name, values in episode.frames.items()}
        for column in (STATE, ACTION):
            frames[column][:, 7] = episode.frames[column][:, 7]
            frames[column][:, :7] += apart * float(episode.id[-2:])
        rng = np.random.default_rng(int(episode.id[-2:]))
        frames[ACTION][:, :7] += rng.normal(0.0, commanded, (episode.length, 7))
        return with_frames(episode, frames)

    table = assess([*(still(e) for e in make_task(20)), *make_task(20, task="peg_round_4mm")])
    mine = table["task"] == "peg_round_8mm"
    assert (table["verdict"] == "keep").all()
    assert table.loc[mine, "explanation"].str.contains("no joint moves").all() == (commanded == 0.0)


def test_two_episodes_run_together_cost_their_parts_nothing():
    def joined(first, second):
        frames = {n: np.concatenate([v, second.frames[n]]) for n, v in first.frames.items()}
        return replace(with_frames(first, frames), id=make_episode(99).id, length=first.length + second.length)

    episodes = make_task(20)
    assert verdicts(assess([*episodes, joined(*episodes[:2])])) == {make_episode(99).id: ("drop", "length,spikes")}


@pytest.mark.parametrize("rows", [1, 2, 3])
def test_many_episodes_of_hardly_a_row_are_judged(rows):
    assert len(assess([take(e, np.arange(rows)) for e in make_task(40)])) == 40


def test_an_arm_without_joints_is_judged():
    def gripper(episode):
        layout = Layout(dict.fromkeys((STATE, ACTION), ("gripper",)), dict.fromkeys((STATE, ACTION), (0,)),
                        dict.fromkeys((STATE, ACTION), ((0.0, 1.0),)))  # fmt: skip
        return replace(episode, frames={c: episode.frames[c][:, 7:] for c in (STATE, ACTION)}, layout=layout)

    assert "drop" not in set(assess([gripper(e) for e in make_task(12)])["verdict"])


def test_a_rule_that_would_empty_a_task_asks_instead():
    idle = [replace(freeze(e, 30, MIDDLE), phase_spans=()) for e in make_task(20)]
    table = assess([*idle, *make_task(20, task="peg_round_4mm")])
    mine = table["task"] == "peg_round_8mm"
    assert (table.loc[mine, "verdict"] == "review").all()
    assert table.loc[mine, "explanation"].str.contains("warning: 20 of 20").all()
    assert (table.loc[~mine, "verdict"] == "keep").all()


def test_two_equally_common_ways_to_do_a_task_both_stay():
    def other_way(episode):
        swing = np.sin(np.linspace(0, np.pi, episode.length)) * 0.3
        frames = dict(episode.frames)
        for name, columns in (("observation.state", 8), ("action", 8), ("observation.eef_pos", 3)):
            frames[name] = frames[name] + swing[:, None] * np.eye(columns)[0]
        return with_frames(episode, frames)

    table = assess(change(make_task(60), range(0, 60, 2), other_way))
    assert (table["verdict"] == "keep").sum() >= 57


def test_units_do_not_matter():
    episodes = change(make_task(40), [5], lambda e: freeze(e, 25, MIDDLE))
    episodes = change(episodes, [9], lambda e: truncate(e, 0.6))
    episodes = change(episodes, [17], lambda e: jitter(e, 2e-3))
    si = assess(episodes)
    other = assess([in_units(e, angle=180 / np.pi, length=1000.0) for e in episodes])
    assert verdicts(si) == verdicts(other)
    assert len(verdicts(si)) >= 3
    np.testing.assert_allclose(si["mahalanobis_score"], other["mahalanobis_score"], rtol=0.05)


def test_order_does_not_matter():
    episodes = change(make_task(40), [5], lambda e: freeze(e, 25, MIDDLE))
    shuffled = [episodes[i] for i in np.random.default_rng(0).permutation(40)]
    pd.testing.assert_frame_equal(assess(episodes), assess(shuffled), rtol=1e-6)


def test_sizes_of_a_family_can_be_compared_together():
    episodes = [e for size in (4, 8, 12) for e in make_task(15, task=f"peg_round_{size}mm")]
    alone = assess(episodes)
    together = assess(episodes, Settings(within="family"))
    assert all(by == ["mahalanobis", "neighbours"] for by in alone["not_assessed_by"])
    assert all(by == [] for by in together["not_assessed_by"])
    assert (together["verdict"] == "keep").mean() > 0.9


def test_the_same_episodes_give_the_same_verdicts_from_an_embedding_made_before():
    episodes = make_task(35)
    pd.testing.assert_frame_equal(assess(episodes), assess(episodes, embedding=embed(episodes)))
    with pytest.raises(QcError, match="embedding is of other episodes"):
        assess(episodes, embedding=embed(episodes[1:]))


def test_an_id_given_twice_is_refused():
    with pytest.raises(QcError, match="more than one episode has this id"):
        assess([make_episode(0), make_episode(0)])


def test_nothing_gives_an_empty_table():
    table = assess([])
    assert len(table) == 0
    assert tuple(table.columns) == COLUMNS
