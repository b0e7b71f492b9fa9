"""Tables for people."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from rich import box
from rich.console import RenderableType
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


def summary_parts(summary: Mapping[str, Any]) -> list[RenderableType]:
    """What ``demomill generate`` made, how long each stage took, and where to look."""
    columns = ("task", "attempted", "succeeded", "failed", "kept", "dropped", "review", "not assessed", "frames")
    rows = [
        [task, *(_cell(counted[name.replace(" ", "_")]) for name in columns[1:])]
        for task, counted in summary["tasks"].items()
    ]
    stages = summary["seconds"]
    new = ", ".join(f"{count} {name}" for name, count in summary["new"].items() if count)
    return [
        table(columns, rows),
        table([f"{stage} s" for stage in stages], [list(stages.values())]),
        f"new: {new}" if new else "nothing to do: all episodes are recorded, assessed, rendered and exported",
        *(f"{name.replace('_', ' ')}: {summary[name]}" for name in ("dataset", "contact_sheet", "picture")),
    ]


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


def _cell(value: int | Mapping[str, int]) -> int | str:
    return value if isinstance(value, int) else counts(value)
