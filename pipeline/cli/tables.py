"""Tables for people."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from rich import box
from rich.table import Table

from pipeline.doctor import Report


def table(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> Table:
    """A plain table; columns of numbers are set to the right."""
    made = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for number, name in enumerate(columns):
        numeric = all(isinstance(row[number], int | float) for row in rows)
        made.add_column(name, justify="right" if numeric else "left", overflow="fold")
    for row in rows:
        made.add_row(*map(str, row))
    return made


def counts(by_name: Mapping[str, int]) -> str:
    """E.g. ``jammed 2, dropped 1``, the most frequent first."""
    return ", ".join(f"{name} {n}" for name, n in Counter(by_name).most_common() if n)


def task_table(tasks: Sequence[Mapping[str, Any]]) -> Table:
    """The catalogue, from the dictionaries of ``demomill tasks --json``."""
    return table(
        ("task", "family", "instruction", "time-out", "seat", "expert"),
        [
            (
                task["id"],
                task["family"],
                task["instruction"],
                f"{task['timeout_s']:.0f} s",
                _seat(task["seat"]),
                "yes" if task["has_expert"] else "not yet",
            )
            for task in tasks
        ],
    )


def recorded_table(outcomes: Mapping[str, Counter[str]]) -> Table:
    """Attempts by task, from their outcomes: ``success`` or the failure's reason."""
    rows = []
    for task, by_outcome in outcomes.items():
        attempted, succeeded = by_outcome.total(), by_outcome["success"]
        failures = {reason: count for reason, count in by_outcome.items() if reason != "success"}
        rows.append((task, attempted, succeeded, f"{succeeded / attempted:.1%}", counts(failures)))
    return table(("task", "attempted", "succeeded", "rate", "failures by reason"), rows)


def report_table(report: Report) -> Table:
    """What ``demomill doctor`` found."""
    return table(
        ("check", "", "found", "remedy"), [(each.name, each.level, each.found, each.remedy) for each in report.checks]
    )


def _seat(seat: Mapping[str, float]) -> str:
    parts = [f"{seat['max_xy_m'] * 1e3:.1f} mm aside", f"{_mm(seat['min_gap_m'])} to {_mm(seat['max_gap_m'])} mm high"]
    if seat["min_thread_turn_rad"]:
        parts.append(f"{seat['min_thread_turn_rad']:.1f} rad threaded")
    return ", ".join(parts)


def _mm(length_m: float) -> str:
    return f"{length_m * 1e3:+.1f}"
