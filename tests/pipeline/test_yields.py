"""Yields of recordings that a test states."""

import pytest

from pipeline.record import Recorded
from pipeline.yields import task_yields


def meta(task: str, env_index: int, reason: str | None = None) -> dict[str, object]:
    return {"task": task, "env_index": env_index, "reason": reason, "outcome": "failure" if reason else "success"}


def test_a_perfect_yield_is_not_certain() -> None:
    (found,) = task_yields(Recorded(tuple(meta("a", n % 4) for n in range(64)), 64, {"a": 1.25}))
    assert found.success_rate == 1.0
    assert found.wilson_low == pytest.approx(0.9434, abs=1e-4)
    assert found.wilson_high == 1.0
    assert found.seconds_per_episode == 1.25


def test_failures_are_counted_by_reason_and_by_env() -> None:
    metas = [meta("a", 0), meta("a", 0, "dropped"), meta("a", 2, "jammed"), meta("a", 2, "jammed"), meta("b", 1)]
    found, other = task_yields(Recorded(tuple(metas), 0, {}))
    assert list(found.by_reason.items()) == [("jammed", 2), ("dropped", 1)]
    assert found.by_env_index == {0: {"attempted": 2, "succeeded": 1}, 2: {"attempted": 2, "succeeded": 0}}
    assert (other.task, other.attempted, other.by_reason, other.seconds_per_episode) == ("b", 1, {}, None)
