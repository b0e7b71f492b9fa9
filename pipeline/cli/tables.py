"""Tables for people."""

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from pathlib import Path
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
        made.add_column(name, justify="right" if numeric and rows else "left", no_wrap=number == 0)
    for row in rows:
        made.add_row(*map(str, row))
    return made


def counts(by_name: Mapping[str, int]) -> str:
    """E.g. ``jammed 2, dropped 1``, the most frequent first; ``0`` for none."""
    return ", ".join(f"{name} {n}" for name, n in Counter(by_name).most_common() if n) or "0"


def task_table(tasks: Sequence[Mapping[str, Any]]) -> Table:
    """The catalogue by family, from the dictionaries of ``demomill tasks --json``."""
    made = table(("task", "instruction", "time-out", "seat", "expert"), [])
    for family, members in groupby(tasks, key=itemgetter("family")):
        made.add_section()
        made.add_row(f"{family}:")
        for task in members:
            expert = "yes" if task["has_expert"] else "not yet"
            made.add_row(task["id"], task["instruction"], f"{task['timeout_s']:.0f} s", _seat(task["seat"]), expert)
    return made


def recorded_table(outcomes: Mapping[str, Counter[str]]) -> Table:
    """Attempts by task, from their outcomes: ``success`` or the failure's reason."""
    rows = []
    for task, by_outcome in outcomes.items():
        attempted, succeeded = by_outcome.total(), by_outcome["success"]
        failures = {reason: count for reason, count in by_outcome.items() if reason != "success"}
        rows.append((task, attempted, succeeded, f"{succeeded / attempted:.1%}", counts(failures)))
    return table(("task", "attempted", "succeeded", "rate", "failures by reason"), rows)


def yield_table(yields: Sequence[Mapping[str, Any]]) -> Table:
    """Success rates with their intervals, from the dictionaries of ``demomill yield --json``."""
    rows = []
    for each in yields:
        interval = f"{each['wilson_low']:.1%} to {each['wilson_high']:.1%}"
        seconds = each["seconds_per_episode"]
        envs = {i: f"{env['succeeded']}/{env['attempted']}" for i, env in each["by_env_index"].items()}
        lossy = ", ".join(
            f"{i}: {envs[i]}" for i, env in each["by_env_index"].items() if env["succeeded"] < env["attempted"]
        )
        rows.append(
            (
                each["task"],
                f"{each['succeeded']} of {each['attempted']}",
                f"{each['success_rate']:.1%}",
                interval,
                "-" if seconds is None else f"{seconds:.2f}",
                counts(each["by_reason"]),
                lossy or "none",
            )
        )
    columns = ("task", "succeeded", "rate", "95 % interval", "core s/episode", "failures by reason", "envs that failed")
    return table(columns, rows)


def account_table(accounts: Mapping[str, Mapping[str, Any]]) -> Table:
    """What became of the episodes of each task; columns without an entry are left out, except the usual ones."""
    rows = [{"task": task, **account} for task, account in accounts.items()]
    usual = ("task", "generated", "attempted", "succeeded", "failed", "kept", "dropped", "frames")
    columns = [name for name in rows[0] if name in usual or any(row[name] for row in rows)] if rows else ["task"]
    cells = [
        [value if isinstance(value := row[name], int | str) else counts(value) for name in columns] for row in rows
    ]
    return table([name.replace("_", " ") for name in columns], cells)


def diversity_parts(found: Mapping[str, Mapping[str, Any]]) -> list[RenderableType]:
    """How much the episodes of each task differ, each figure with its floor, and what to do about it."""
    rows = []
    for task, each in found.items():
        figures = {name: _figure(each["measured"].get(name), floor) for name, floor in each["floors"].items()}
        rows.append((task, each["verdict"], *figures.values()))
    columns = ("diversity", "verdict", "held start, m", "length, rows", "path, m", "nearest path, m")
    return [table(columns, rows), *(f"{task}: {each['advice']}" for task, each in found.items() if each["advice"])]


def summary_parts(summary: Mapping[str, Any]) -> list[RenderableType]:
    """What ``demomill generate`` made, how long each stage took, and where to look."""
    stages = summary["seconds"]
    new = ", ".join(f"{count} {name}" for name, count in summary["new"].items() if count)
    return [
        account_table(summary["tasks"]),
        table([f"{stage} s" for stage in stages], [list(stages.values())]),
        f"new: {new}" if new else "nothing to do: all of it was recorded, assessed, rendered and exported before",
        *(f"{name.replace('_', ' ')}: {summary[name]}" for name in ("dataset", "contact_sheet", "strips", "picture")),
    ]


def release_parts(made: Mapping[str, Any], out: Path) -> list[RenderableType]:
    """What ``demomill release`` came to, how long each stage took in all, and where to look."""
    columns = ("quota", "generated", "kept", "released", "pictured")
    reasons = ("dropped", "review", "failed")
    rows = [
        (task, *(each[name] for name in columns), *(counts(each[name]) for name in reasons))
        for task, each in made["tasks"].items()
    ]
    datasets = [
        f"{out / each['folder']}: {each['episodes']} episodes, {each['frames']} frames" for each in made["datasets"]
    ]
    links = [f"{each['url']}: {each['tag']} is commit {each['commit']}" for each in made["published"]]
    stages = made["seconds"]
    return [
        table(("task", *columns, *reasons), rows),
        table([f"{stage} s" for stage in stages], [list(stages.values())]),
        *datasets,
        *(links or ["not published; --publish does"]),
        f"report: {out / 'qc' / 'report.html'}",
    ]


def verification_parts(result: Mapping[str, Any], findings: Sequence[str]) -> list[RenderableType]:
    """What ``demomill verify`` checked, from the dictionary of its ``--json``, and found, in words."""
    rows: list[Sequence[object]] = [
        (name, len(each["findings"]), f"{each['seconds']:.1f}") for name, each in result["checks"].items()
    ]
    rows += [(name, "skipped", "-") for name in result["skipped"]]
    verdict = "passed" if result["passed"] else f"FAILED, {len(findings)} findings"
    return [
        table(("check", "findings", "s"), rows),
        *(f"{name}: skipped, {why}" for name, why in result["skipped"].items()),
        *findings,
        f"{result['dataset']}: {verdict}; {result['episodes']} episodes, {result['frames']} frames",
    ]


def report_table(report: Report) -> Table:
    """What ``demomill doctor`` found."""
    return table(
        ("check", "", "found", "remedy"), [(each.name, each.level, each.found, each.remedy) for each in report.checks]
    )


def _figure(value: float | None, floor: float) -> str:
    return "-" if value is None else f"{value:.3g} (least {floor:.3g})"


def _seat(seat: Mapping[str, float]) -> str:
    parts = [f"{seat['max_xy_m'] * 1e3:.1f} mm aside", f"{_mm(seat['min_gap_m'])} to {_mm(seat['max_gap_m'])} mm high"]
    if seat["min_thread_turn_rad"]:
        parts.append(f"{seat['min_thread_turn_rad']:.1f} rad threaded")
    return ", ".join(parts)


def _mm(length_m: float) -> str:
    return f"{length_m * 1e3:+.1f}"


def publication_parts(result: dict[str, Any]) -> list[RenderableType]:
    """What was published, or after a dry run what would be, with the card."""
    plan, url, tag = result["plan"], result["url"], result["tag"]
    if result["changed"]:
        done = f"{result['files']} files verified, {result['uploaded_bytes'] / 1e6:.1f} MB uploaded"
        return [f"{url}: {tag} is commit {result['commit']}; {done}"]
    if result["commit"]:
        return [f"{url}: nothing to do, {tag} is this dataset, at commit {result['commit']}"]
    kinds = (("new", plan["new"]), ("changed", plan["changed"]), ("stale, deleted", plan["stale"]))
    rows = [(kind, path) for kind, paths in (*kinds, ("left alone", plan["left_alone"])) for path in paths]
    seen = "private" if plan["private"] else "public"
    made = f"{'a new' if plan['creates_repository'] else 'the'} {seen} repository"
    sizes = f"{plan['upload_bytes'] / 1e6:.1f} of {plan['size_bytes'] / 1e6:.1f} MB to upload"
    return [plan["card"], table(("change", "file"), rows), f"{url}: {made}; {sizes}; nothing was changed (dry run)"]
