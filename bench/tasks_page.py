"""Write docs/tasks.md from the catalogue and what `demomill yield --json` measured (docs/yield.json).

Run it as ``python -m bench.tasks_page``; the pictures are made by ``demomill strips``.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pipeline.tasks import CATALOGUE, Task

DOCS = Path(__file__).parent.parent / "docs"

HEAD = """\
# The fourteen tasks

Success rates with Wilson 95 % intervals and core seconds an episode, from
`demomill yield --episodes 64 --seed 7000 --json` on the CPU engine; no expert was tuned on that seed. Strips show how
each phase ended, from the front and the wrist camera, and are made by `demomill strips`. A failure has one of the names
in `demomill tasks --json`.
"""


def page(measured: Mapping[str, Mapping[str, Any]]) -> str:
    """Text of the page; ``measured`` is the row of ``demomill yield --json`` by task."""
    lines = [HEAD, "| task | succeeded | 95 % interval | core s/episode |", "| --- | --- | --- | --- |"]
    lines += [_row(task, measured[task.id]) for task in CATALOGUE.values()]
    for task in CATALOGUE.values():
        lines += ["", f"## {task.id}", "", f"{task.instruction.capitalize()}.", ""]
        lines += [f"![{task.id}: how each phase ended](images/strips/{task.id}.png)"]
        lines += [f"[Clip](images/strips/{task.id}.gif)"]
    return "\n".join(lines) + "\n"


def _row(task: Task, rate: Mapping[str, Any]) -> str:
    interval = f"{rate['wilson_low']:.1%} to {rate['wilson_high']:.1%}"
    succeeded = f"{rate['succeeded']} of {rate['attempted']}"
    return f"| [`{task.id}`](#{task.id.lower()}) | {succeeded} | {interval} | {rate['seconds_per_episode']:.2f} |"


def measured() -> dict[str, Mapping[str, Any]]:
    """Rows of docs/yield.json by task."""
    rows = json.loads((DOCS / "yield.json").read_text())["tasks"]
    return {row["task"]: row for row in rows}


if __name__ == "__main__":
    (DOCS / "tasks.md").write_text(page(measured()))
