"""The real worker, killed at random moments and stopped in its tracks: the same episodes, each made once."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from pipeline.engine import Engine
from pipeline.record import Request, plan_shards, record
from pipeline.shards import Progress, record_shard
from pipeline.store import Run, read_episode
from pipeline.watch import State
from tests.killing import family, kill_at_random, wait_until_gone

pytestmark = [pytest.mark.sim, pytest.mark.slow]

ROOT = Path(__file__).resolve().parents[3]
TASK, EPISODES = "peg_round_8mm", 8
KILLS = 3

RECORD = """
import sys
from pathlib import Path
from pipeline.errors import UserError
from pipeline.record import record
from tests.pipeline.sim.test_kills import request_in
try:
    record(request_in(Path(sys.argv[1])))
except UserError as error:
    sys.exit(str(error))
"""


def request_in(root: Path) -> Request:
    return Request(root, (TASK,), EPISODES, run_seed=1000, engine=Engine(threads=2), num_envs=4)


def content(root: Path) -> dict[str, str]:
    return {folder.name: read_episode(folder).content_hash() for folder in Run(root).folders()}


def stamps(root: Path) -> dict[str, int]:
    return {path.parent.name: path.stat().st_mtime_ns for path in root.glob("episodes/*/*/episode.json")}


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, str], float]:
    """What is recorded when nothing is in the way, and the seconds that it takes."""
    root, began = tmp_path_factory.mktemp("undisturbed") / "run", time.monotonic()
    record(request_in(root))
    return content(root), time.monotonic() - began


def test_killed_at_random_moments_it_records_the_same(
    undisturbed: tuple[dict[str, str], float], tmp_path: Path
) -> None:
    (expected, whole_s), rng = undisturbed, np.random.default_rng(KILLS)
    root, kills = tmp_path / "run", 0
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    while kills < KILLS:
        before = stamps(root)
        process = subprocess.Popen(
            [sys.executable, "-c", RECORD, str(root)], env=environment, stderr=subprocess.DEVNULL
        )
        code = kill_at_random(process, rng, whole_s)
        wait_until_gone(str(root))
        assert before.items() <= stamps(root).items()
        if code is None:
            assert content(root) == expected
            root = tmp_path / f"run{kills}"
        else:
            kills += 1
    before = stamps(root)
    record(request_in(root))
    assert before.items() <= stamps(root).items()
    assert content(root) == expected
    assert not list(root.glob(".staging-*"))
    assert not (root / "quarantine").exists()


def test_a_simulator_that_is_stuck_is_killed_and_its_attempts_are_tried_alone(
    undisturbed: tuple[dict[str, str], float], tmp_path: Path
) -> None:
    root, heard = tmp_path / "run", list[Progress]()

    def listen(event: Progress) -> None:
        heard.append(event)
        if len(heard) == 2:
            for pid in family(os.getpid())[1:]:
                if b"pipeline.sim.worker" in Path(f"/proc/{pid}/cmdline").read_bytes():
                    os.kill(pid, signal.SIGSTOP)

    (shard,) = plan_shards(request_in(root))
    report = record_shard(shard, listen, silence_s=60.0)
    assert (report.state, report.new, report.hung) == (State.DONE, EPISODES, ())
    assert [event for event in heard if event.kind == "note"]
    assert content(root) == undisturbed[0]
