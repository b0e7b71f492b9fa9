"""Tables of the report, as HTML."""

import html
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pandas as pd

from qc.diversity import FAIL
from qc.table import MEASURED

_LISTED = 50
_WORST = 3
_OPEN = 16


def table_html(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table; columns that hold nothing but numbers stand to the right."""
    rows = list(rows)
    right = [bool(rows) and all(isinstance(row[i], int | float) for row in rows) for i in range(len(columns))]
    kinds = [' class="n"' if numbers else "" for numbers in right]
    head = "".join(f"<th{kind}>{html.escape(c)}</th>" for c, kind in zip(columns, kinds, strict=True))
    body = "".join(
        "<tr>" + "".join(f"<td{k}>{html.escape(str(v))}</td>" for v, k in zip(row, kinds, strict=True)) + "</tr>"
        for row in rows
    )  # fmt: skip
    return f'<div class="scroll"><table><tr>{head}</tr>{body}</table></div>'


def note(text: str) -> str:
    """A remark, escaped."""
    return f'<p class="note">{html.escape(text)}</p>'


def folded(summary: str, content: str, *, opened: bool = False) -> str:
    """What is shown when asked for."""
    return f"<details{' open' if opened else ''}><summary>{html.escape(summary)}</summary>{content}</details>"


def accounts(tasks: Mapping[str, Mapping[str, Any]]) -> str:
    """Account of each task."""
    rows = []
    for task, account in tasks.items():
        cells = [value if isinstance(value, int) else ", ".join(f"{k} {n}" for k, n in value.items()) or 0
                 for value in account.values()]  # fmt: skip
        rows.append((task, *cells))
    names = [name.replace("_", " ") for name in next(iter(tasks.values()))] if tasks else []
    return table_html(("task", *names), rows)


def summary(tasks: Mapping[str, Mapping[str, Any]]) -> str:
    """The accounts of all tasks in a sentence."""
    totals: dict[str, int] = {}
    for account in tasks.values():
        for name, value in account.items():
            totals[name] = totals.get(name, 0) + (value if isinstance(value, int) else sum(value.values()))
    generated = totals.pop("generated", 0)
    parts = [f"{n} {'for ' * (name == 'review')}{name.replace('_', ' ')}" for name, n in totals.items() if n]
    of = f"{len(tasks)} task{'s' * (len(tasks) != 1)}"
    return f"{generated} episode{'s' * (generated != 1)} of {of}: {', '.join(parts) or 'none'}."


def spread(tasks: Mapping[str, Mapping[str, Any]]) -> str:
    """How much the successes of each task differ, beside the least that they should."""
    floors = next(iter(tasks.values()))["floors"] if tasks else {}
    columns = [
        f"{', '.join(name.replace('_', ' ').rsplit(' ', 1))} (least {least:g})" for name, least in floors.items()
    ]
    rows = [
        (task, of["verdict"], of["episodes"], *(_short(of["measured"].get(name)) for name in floors), of["advice"])
        for task, of in tasks.items()
    ]
    verdicts = Counter(of["verdict"] for of in tasks.values())
    told = ", ".join(f"{n} {verdict}" for verdict, n in verdicts.items())
    full = table_html(("task", "verdict", "episodes", *columns, "advice"), rows)
    return folded(f"{told}.", full, opened=FAIL in verdicts or len(rows) <= _OPEN) if rows else note("No episode.")


def _short(value: float | None) -> float | str:
    return "-" if value is None else float(f"{value:.3g}")


def worst(table: pd.DataFrame) -> str:
    """Lowest scores of each filter."""
    rows = []
    for name in MEASURED:
        scores = table[f"{name}_score"]
        for i in scores[scores < 0].nsmallest(_WORST).index:
            row = table.loc[i]
            numbers = [float(f"{row[f'{name}_{of}']:.4g}") for of in ("score", "cutoff")]
            rows.append((name.replace("_", " "), row["episode_id"], *numbers, row["verdict"].replace("_", " ")))
    if not rows:
        return note("No filter found anything to rank: there are too few episodes, or none differs from the others.")
    return table_html(("filter", "episode", "score", "cutoff", "verdict"), rows)


def decisions(table: pd.DataFrame) -> str:
    """What people decided, and what the filters had said."""
    decided = table[table["decided_by"] != ""]
    columns = ["episode_id", "task", "verdict", "judged", "decided_by", "decided_why"]
    names = ("episode", "task", "decided", "the filters say", "who", "why")
    return table_html(names, decided[columns].itertuples(index=False)) if len(decided) else ""


def phases(balance: pd.DataFrame, order: Sequence[str]) -> str:
    """Rare phases, and all of them when asked for.

    Args:
        balance: from :func:`qc.filters.phases.phase_balance`.
        order: of tasks.
    """
    if not len(balance):
        return note("Not recorded.")
    of_tasks = balance[balance["task"] != "*"]
    rows = []
    for phase, mine in of_tasks[of_tasks["rare"]].groupby("phase"):
        there = int((of_tasks["phase"] == phase).sum())
        rows.append((phase, f"{len(mine)} of {there}", _percent(mine["episodes"]), _percent(mine["rows"])))
    names = ("phase", "rare in so many of the tasks that have it", "episodes that enter it, %", "part of the rows, %")
    told = note(
        "A phase is rare in a task if fewer than 10 % of the task's successes enter it, or if it makes up less than "
        "2.5 % of their rows: there a policy learns least. Two numbers are the least and the most of those tasks."
    )
    rare = told + table_html(names, rows) if rows else note("No phase is rare in any task.")
    place = {task: i for i, task in enumerate((*order, "*"))}
    every = balance.sort_values("task", key=lambda tasks: tasks.map(place), kind="stable")
    listed = [
        ("all tasks" if row.task == "*" else row.task, row.phase, f"{row.episodes:.1%}", f"{row.rows:.2%}",
         "yes" if row.rare else "")
        for row in every.itertuples()
    ]  # fmt: skip
    full = table_html(("task", "phase", "episodes that enter it", "part of the rows", "rare"), listed)
    return rare + folded(f"All phases of {len(order)} tasks", full)


def _percent(shares: pd.Series) -> str:
    low, high = (f"{100 * share:.1f}" for share in (shares.min(), shares.max()))
    return low if low == high else f"{low} to {high}"


def rates(found: pd.DataFrame) -> str:
    """Part that is kept, by env and file.

    Args:
        found: from :func:`qc.rates.rates`.
    """
    if not len(found):
        return note("Neither the env nor a data file of more than one episode is recorded.")
    listed = [(row.by, row.which, row.episodes, f"{row.kept:.1%}", "yes" if row.doubtful else "")
              for row in found.itertuples()]  # fmt: skip
    full = table_html(("by", "which", "episodes", "kept", "fewer than chance allows"), listed)
    doubtful = [row for row in listed if row[-1]]
    told = f"{len(doubtful)} of {len(listed)} yield fewer than chance allows (1 %, corrected for their number)"
    return folded(f"{told}.", full, opened=bool(doubtful))


def findings(counted: Mapping[str, Any]) -> str:
    """What is wrong with files and rows."""
    damaged = [(d["id"], "", "", d["why"]) for d in counted["damaged"]]
    found = [
        (f["episode"], f["file"], "" if f["frame"] is None else f["frame"], f["told"]) for f in counted["findings"]
    ]
    rows = [*damaged, *found]
    if not rows:
        return note("Nothing is wrong with them.")
    more = note(f"{len(rows) - _LISTED} more in accounting.json.") if len(rows) > _LISTED else ""
    return table_html(("episode", "file", "frame", "what"), rows[:_LISTED]) + more
