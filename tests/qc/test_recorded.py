"""Recorded demonstrations of every family are healthy, and are found to be."""

from collections.abc import Sequence

import pytest

from pipeline.engine import choose_engine
from pipeline.record import Request, record
from qc.diversity import PASS, diversity
from qc.episodes import Episode
from qc.filters.idle import IdleFilter
from qc.filters.near_duplicates import NearDuplicatesFilter
from qc.readers.run import read_run
from qc.verdicts import assess

TASKS = ("peg_round_8mm", "peg_square_12mm", "gear_medium", "nut_M12")
ROUNDS = 6

pytestmark = [pytest.mark.sim, pytest.mark.slow]


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Sequence[Episode]:
    run = tmp_path_factory.mktemp("recorded") / "run"
    record(Request(run, TASKS, 48, 9000, choose_engine("cpu")))
    return [e for e in read_run(run).episodes if e.succeeded]


def test_six_rounds_without_a_decision_eat_little(recorded: Sequence[Episode]) -> None:
    kept = list(recorded)
    for _ in range(ROUNDS):
        good = set(assess(kept).query("verdict == 'keep'")["episode_id"])
        kept = [e for e in kept if e.id in good]
    assert len(recorded) - len(kept) <= 0.025 * len(recorded)


def test_randomisation_reaches_the_motion(recorded: Sequence[Episode]) -> None:
    found = diversity(recorded)
    assert {task: each.verdict for task, each in found.items()} == dict.fromkeys(TASKS, PASS)


@pytest.mark.parametrize("task", TASKS)
def test_none_is_a_copy_and_no_grip_is_idle(recorded: Sequence[Episode], task: str) -> None:
    episodes = [e for e in recorded if e.task == task]
    assert len(episodes) > 40
    assert (NearDuplicatesFilter().fit_predict(episodes) == 1).all()
    streaks = zip(episodes, IdleFilter().fit(episodes).streaks_, strict=True)
    during = {e.phase_at(s.start) for e, found in streaks for s in found if s.where != "end"}
    assert not during & {"grasp", "release"}
