"""Nuts: threads that carry and resist, recorded attempts, and controls that must not succeed."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from experts.contract import Handicap
from pipeline.engine import Engine
from pipeline.faults import Fault
from pipeline.record import Recorded, Request, record

pytestmark = [pytest.mark.sim, pytest.mark.slow]

NUTS = ("nut_M8", "nut_M12", "nut_M16")
by_nut = pytest.mark.parametrize("task", NUTS)


def _record(root: Path, task: str, episodes: int, num_envs: int = 16, threads: int = 2, **more: Any) -> Recorded:
    return record(Request(root, (task,), episodes, 1000, Engine(threads=threads), num_envs=num_envs, **more))


@by_nut
def test_a_thread_carries_its_nut_and_nothing_else_does(task: str) -> None:
    command = [sys.executable, "-m", "tests.pipeline.sim.nut_probe", task]
    probe = subprocess.run(command, check=False, capture_output=True, text=True, timeout=600)
    lines = [line for line in probe.stdout.splitlines() if line.startswith("ANSWERS ")]
    assert lines, probe.stderr[-3000:]
    found = json.loads(lines[-1].removeprefix("ANSWERS "))
    turned, wrong = found["turned by hand"], found["turned the wrong way"]
    assert min(turned["turns"]) > 2
    np.testing.assert_allclose(turned["pitches per turn"], 1.0, atol=0.02)
    assert turned["successes"] == 32, "the judge can say yes"
    assert min(wrong["turns"]) > 2
    assert wrong["successes"] == 0
    assert found["pushed with 20 N"]["successes"] == 0
    assert max(found["pushed with 20 N"]["pitches below the tip"]) < 1.1, "it stays where the thread begins"
    assert found["pulled with 5 N"]["threaded"] >= 29
    assert found["pulled with 5 N"]["highest lift in pitches"] < 0.5


@by_nut
def test_success_rate_and_what_it_costs_the_parts(tmp_path: Path, task: str) -> None:
    recorded = _record(tmp_path / "run", task, 64)
    assert recorded.to_dict()["success_rate"] >= 0.9
    for meta in recorded.episodes:
        if meta["outcome"] == "success":
            assert 0 < meta["contact"]["max_penetration_m"] < 0.0005
            assert 0 < meta["contact"]["max_fixture_force_n"] < 60.0
            assert meta["contact"]["max_held_speed_m_s"] < 3.0


@by_nut
@pytest.mark.parametrize(
    "control",
    [
        {"handicap": Handicap(skill_off=True)},
        {"handicap": Handicap(wrong_way=True)},
        {"fault": Fault(left_handed=True)},
        {"fault": Fault(pad_friction=0.0)},
        {"handicap": Handicap(seat_error_m=(0.004, 0.0))},
    ],
    ids=["pressed-not-turned", "turned-the-wrong-way", "left-handed-bolt", "frictionless-pads", "bolt-told-4-mm-off"],
)
def test_negative_controls_never_succeed(tmp_path: Path, task: str, control: dict[str, Any]) -> None:
    assert _record(tmp_path / "run", task, 32, **control).to_dict()["succeeded"] == 0


def test_sixteen_four_and_one_env_record_the_same(tmp_path: Path) -> None:
    hashes = [
        {m["id"]: m["content_hash"] for m in _record(tmp_path / str(envs), "nut_M12", 8, envs, threads).episodes}
        for envs, threads in ((8, 2), (4, 1), (1, 2))
    ]
    assert hashes[0] == hashes[1] == hashes[2]
