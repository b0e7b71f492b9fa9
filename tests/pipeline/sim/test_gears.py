"""Recorded attempts at gears: repeatability, success rates, and controls that must not succeed."""

from pathlib import Path
from typing import Any

import pytest

from experts.contract import Handicap
from pipeline.engine import Engine
from pipeline.faults import Fault
from pipeline.record import Recorded, Request, record

pytestmark = [pytest.mark.sim, pytest.mark.slow]

GEARS = ("gear_small", "gear_medium", "gear_large")
by_gear = pytest.mark.parametrize("task", GEARS)


def _record(root: Path, task: str, episodes: int, num_envs: int = 16, threads: int = 2, **more: Any) -> Recorded:
    return record(Request(root, (task,), episodes, 1000, Engine(threads=threads), num_envs=num_envs, **more))


@by_gear
def test_success_rate_and_what_it_costs_the_parts(tmp_path: Path, task: str) -> None:
    recorded = _record(tmp_path / "run", task, 64)
    assert recorded.to_dict()["success_rate"] >= 0.95
    for meta in recorded.episodes:
        if meta["outcome"] == "success":
            assert 0 < meta["contact"]["max_penetration_m"] < 0.0005
            assert 0 < meta["contact"]["max_fixture_force_n"] < 60.0
            assert meta["contact"]["max_held_speed_m_s"] < 3.0


@by_gear
@pytest.mark.parametrize(
    ("control", "reason"),
    [
        ({"handicap": Handicap(skill_off=True)}, "tooth_clash"),
        ({"handicap": Handicap(seat_error_m=(0.004, 0.0))}, "jammed_on_shaft"),
        ({"fault": Fault(bore_narrowing_m=0.0004)}, "jammed_on_shaft"),
        ({"fault": Fault(pad_friction=0.0)}, "missed_grasp"),
    ],
    ids=["half-a-pitch-off-and-not-searched", "shaft-told-4-mm-off", "narrow-bore", "frictionless-pads"],
)
def test_negative_controls_never_succeed(tmp_path: Path, task: str, control: dict[str, Any], reason: str) -> None:
    failed = _record(tmp_path / "run", task, 32, **control).to_dict()
    assert failed["succeeded"] == 0
    assert failed["by_reason"][reason] >= 16, "they get as far as the control lets them"


def test_sixteen_four_and_one_env_record_the_same(tmp_path: Path) -> None:
    hashes = [
        {m["id"]: m["content_hash"] for m in _record(tmp_path / str(envs), "gear_small", 16, envs, threads).episodes}
        for envs, threads in ((16, 2), (4, 1), (1, 2))
    ]
    assert hashes[0] == hashes[1] == hashes[2]
