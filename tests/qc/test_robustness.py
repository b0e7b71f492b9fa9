"""What must not change a verdict: units, order, hash seed, threads, rounds, and a second way to do the task."""

import hashlib
import os
import subprocess
import sys

import numpy as np
import pytest

from qc.episodes import ACTION, STATE
from qc.filters.length import LengthFilter
from qc.readers.source import read_source
from qc.verdicts import assess
from tests.qc.datasets import write_dataset
from tests.qc.factories import change, freeze, jitter, make_task, release_early, truncate, with_frames

MIDDLE = 85


def flawed():
    episodes = change(make_task(40), [5], lambda e: freeze(e, 25, MIDDLE))
    episodes = change(episodes, [9], lambda e: truncate(e, 0.6))
    episodes = change(episodes, [17], lambda e: jitter(e, 2e-3))
    return change(episodes, [23], lambda e: release_early(e, 20))


def verdicts(table):
    return list(zip(table["verdict"], table["reasons"].map(tuple), strict=True))


@pytest.mark.parametrize("unit", ["degrees", "-100 to 100"])
def test_a_dataset_in_other_units_gets_the_same_verdicts(tmp_path, unit):  # lerobot 4650
    episodes = flawed()
    rows = np.concatenate([e.frames[STATE] for e in episodes])
    low, high = rows.min(axis=0), rows.max(axis=0)

    def scaled(values):
        if unit == "degrees":
            return values * np.array([180 / np.pi] * 7 + [1.0])
        return 200 * (values - low) / (high - low) - 100

    other = [with_frames(e, {n: scaled(e.frames[n].astype(np.float64)) for n in (STATE, ACTION)}) for e in episodes]
    mine, theirs = (
        assess(read_source(write_dataset(tmp_path / name, given)))
        for name, given in (("radians", episodes), ("other", other))
    )
    assert verdicts(mine) == verdicts(theirs)
    assert mine.loc[mine["verdict"] != "keep", "episode_index"].tolist() == [5, 9, 17, 23]


def test_hash_seed_and_threads_do_not_matter():
    code = (
        "import hashlib; from qc.verdicts import assess; from tests.qc.test_robustness import flawed\n"
        "t = assess(flawed())[['episode_id', 'verdict', 'reasons', 'length_score', 'idle_score']]\n"
        "print(hashlib.sha256(t.to_json().encode()).hexdigest())"
    )
    environment = {**os.environ, "PYTHONHASHSEED": "1", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    table = assess(flawed())[["episode_id", "verdict", "reasons", "length_score", "idle_score"]]
    assert done.stdout.strip() == hashlib.sha256(table.to_json().encode()).hexdigest()


@pytest.mark.parametrize("order", ["tasks", "episodes"])
def test_order_of_tasks_and_of_episodes_does_not_matter(tmp_path, order):
    other = [jitter(e, 1e-3) if i == 8 else e for i, e in enumerate(make_task(35, task="peg_round_4mm"))]
    given = [*flawed(), *other]
    if order == "tasks":
        turned = [*other, *flawed()]
    else:
        turned = [given[i] for i in np.random.default_rng(0).permutation(len(given))]
    mine, theirs = assess(given), assess(turned)
    assert mine["episode_id"].tolist() == theirs["episode_id"].tolist()
    assert verdicts(mine) == verdicts(theirs)
    assert (mine["verdict"] != "keep").sum() >= 5
    scores = [c for c in mine.columns if c.endswith("_score")]
    np.testing.assert_allclose(mine[scores], theirs[scores], rtol=1e-6, atol=1e-9)
    roots = [write_dataset(tmp_path / name, of) for name, of in (("given", given), ("turned", turned))]
    tables = [assess(read_source(root)).set_index("content_hash") for root in roots]
    assert tables[0]["verdict"].to_dict() == tables[1]["verdict"].to_dict()


def test_a_healthy_minority_is_not_dropped():  # lerobot 2936
    def other_way(episode):
        swing = np.sin(np.linspace(0, np.pi, episode.length)) * 0.3
        frames = dict(episode.frames)
        for name, columns in (("observation.state", 8), ("action", 8), ("observation.eef_pos", 3)):
            frames[name] = frames[name] + swing[:, None] * np.eye(columns)[0]
        return with_frames(episode, frames)

    for seed in range(3):
        minority = range(0, 60, 5)
        table = assess(change(make_task(60, seed=seed), minority, other_way))
        assert "drop" not in set(table.loc[list(minority), "verdict"])
        assert (table.drop(list(minority))["verdict"] == "keep").mean() > 0.97


def test_six_rounds_of_dropping_what_is_flagged_eat_little_of_clean_data():
    dropped = []
    for seed in range(3):
        episodes = make_task(60, seed=seed)
        for _ in range(6):
            keep = set(assess(episodes).query("verdict == 'keep'")["episode_id"])
            episodes = [e for e in episodes if e.id in keep]
        dropped.append(60 - len(episodes))
    assert sum(dropped) <= 0.025 * 180


def test_one_flawed_length_does_not_hide_in_another():
    assert LengthFilter().fit_predict([300 + i % 7 for i in range(30)] + [12, 900]).tolist()[-2:] == [-1, -1]
