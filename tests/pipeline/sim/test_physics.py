"""Physics that can say no: gravity, judging, isolation of worlds, faults. One simulator answers all questions."""

import json
import subprocess
import sys
from typing import Any

import pytest

from pipeline.reasons import PHYSICS

pytestmark = pytest.mark.sim


@pytest.fixture(scope="module")
def answers() -> dict[str, Any]:
    """What :mod:`tests.pipeline.sim.physics_probe` found."""
    return ask()


def ask(*task: str) -> dict[str, Any]:
    """Run the probe in a process of its own."""
    command = [sys.executable, "-m", "tests.pipeline.sim.physics_probe", *task]
    probe = subprocess.run(command, check=False, capture_output=True, text=True, timeout=400)
    lines = [line for line in probe.stdout.splitlines() if line.startswith("ANSWERS ")]
    assert lines, probe.stderr[-3000:]
    found: dict[str, Any] = json.loads(lines[-1].removeprefix("ANSWERS "))
    return found


def test_a_free_part_falls_at_earth_gravity(answers: dict[str, Any]) -> None:
    fall = answers["free_fall"]
    assert fall["speed_m_s"] == pytest.approx(-9.81 * fall["seconds"], rel=1e-3)
    assert fall["fallen_m"] == pytest.approx(9.81 * fall["seconds"] ** 2 / 2, rel=0.05)


def test_contact_health_tells_what_the_part_meets(answers: dict[str, Any]) -> None:
    falls, stands, inside = (answers["contact_health"][name] for name in ("falls", "stands", "in"))
    assert falls["held_speed_m_s"] == pytest.approx(9.81 / 15, rel=1e-3)
    assert falls["penetration_m"] == falls["stray_penetration_m"] == falls["contacts"] == 0.0
    assert stands["stray_penetration_m"] > 0.0
    assert stands["penetration_m"] == 0.0
    assert inside["penetration_m"] > 0.0
    assert inside["stray_penetration_m"] == 0.0
    assert min(stands["contacts"], inside["contacts"]) >= 1
    assert stands["pad_penetration_m"] == inside["pad_penetration_m"] == 0.0


def test_a_part_dropped_beside_the_hole_is_a_failure(answers: dict[str, Any]) -> None:
    assert not any(answers["dropped_beside_the_hole"])
    assert all(answers["dropped_into_the_hole"])


def test_ramming_seats_the_peg_but_does_not_pass(answers: dict[str, Any]) -> None:
    for episode in answers["ramming"]:
        assert episode["outcome"] == "failure"
        assert episode["max_fixture_force_n"] > 60.0
        assert episode["score"] < 1.0
    assert {"penetration_over_limit", "force_over_limit"} & {episode["reason"] for episode in answers["ramming"]}


def test_no_contact_is_missed(answers: dict[str, Any]) -> None:
    found = answers["contacts_missed"]
    assert found["states"] > 600
    assert found["contacts"] > found["states"]
    assert found["states that differ"] == 0


def test_every_fault_is_a_named_reason(answers: dict[str, Any]) -> None:
    assert sorted(answers["fault_names"]) == sorted(PHYSICS)


def test_no_contact_of_many_convex_pieces_is_missed() -> None:
    """A gear has 22, about a centre of mass whose frame Newton turns."""
    found = ask("gear_small")["contacts_missed"]
    assert found["contacts"] > found["states"] > 600
    assert found["states that differ"] == 0


def test_only_a_free_parts_spin_may_be_fast(answers: dict[str, Any]) -> None:
    assert answers["speed_limits"] == {"joint": 100.0, "travel": 100.0, "spin": 5000.0}


def test_resetting_one_env_leaves_the_others_bit_identical(answers: dict[str, Any]) -> None:
    assert answers["reset_of_one"] == {"others": True, "itself": False}


def test_a_model_change_reaches_every_world(answers: dict[str, Any]) -> None:
    before, *during, after = answers["model_change"]
    assert before == after == pytest.approx(1.3)
    assert during == pytest.approx([0.65] * len(during))


def test_a_diverged_world_is_reported_alone(answers: dict[str, Any]) -> None:
    healthy, not_finite, too_fast, also_healthy = answers["divergence"]
    assert healthy is None
    assert also_healthy is None
    assert not_finite
    assert too_fast
