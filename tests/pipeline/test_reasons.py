"""The set of failure reasons is closed: nothing names a failure that is not in it."""

import ast
import inspect
import sys
from collections.abc import Iterator

import pytest

from pipeline.reasons import JUDGED, LIMITS, PHYSICS, failure_reasons, make_expert
from pipeline.record import tasks_with_expert
from pipeline.success import Judge
from pipeline.tasks import get_task


def named_by(expert: object) -> Iterator[str]:
    """Names of failures in the code of an expert and of what it inherits: arguments of ``fail`` and ``_watch_grip``."""
    for module in {each.__module__ for each in type(expert).__mro__ if each.__module__.startswith("experts.")}:
        for node in ast.walk(ast.parse(inspect.getsource(sys.modules[module]))):
            match node:
                case ast.Call(func=ast.Attribute(attr="fail" | "_watch_grip"), args=arguments):
                    yield from (a.value for a in arguments if isinstance(a, ast.Constant) and isinstance(a.value, str))


@pytest.mark.parametrize("task", tasks_with_expert())
def test_an_expert_lists_every_failure_that_it_names(task: str) -> None:
    expert = make_expert(get_task(task), 1)
    named = set(named_by(expert))
    assert len(named) > 3
    assert named <= set(expert.failures)


@pytest.mark.parametrize("task", tasks_with_expert())
def test_reasons_are_few_and_named_alike(task: str) -> None:
    reasons = failure_reasons(make_expert(get_task(task), 1))
    assert len(set(reasons)) == len(reasons) < 40
    assert all(reason.isidentifier() and reason.islower() for reason in reasons)
    assert {*JUDGED, *PHYSICS} <= set(reasons)


def test_limits_are_those_of_the_judge() -> None:
    named = {
        c.value
        for c in ast.walk(ast.parse(inspect.getsource(sys.modules[Judge.__module__])))
        if isinstance(c, ast.Constant)
    }
    assert {name for name in named if str(name).endswith("_over_limit")} == set(LIMITS)


def test_without_an_expert_only_what_any_task_can_have() -> None:
    assert failure_reasons(None) == (*JUDGED, *PHYSICS)
