"""Where output goes: results on standard output; progress, notes and the noise of libraries on standard error."""

import json
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, redirect_stdout
from typing import Any

from rich.console import Console, RenderableType
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from flows.reporter import REPORTER

PIPE_COLUMNS = 160
"""Width of a table that no terminal limits."""

LINES = 10
"""Lines of progress for a piece of work where standard error is no terminal."""


def show(result: Mapping[str, Any], as_json: bool, *parts: RenderableType) -> None:
    """Print a result: one JSON object, or tables and lines for people."""
    if as_json:
        print(json.dumps(result, indent=2, allow_nan=False))
        return
    console = _console()
    for part in parts:
        console.print(part, markup=False, highlight=False, soft_wrap=isinstance(part, str))


@contextmanager
def working() -> Iterator[None]:
    """Show the stages' progress on standard error, and send there whatever libraries print."""
    with _standard_output_on_standard_error(), _Bars() as bars:
        token = REPORTER.set(bars)
        try:
            yield
        finally:
            REPORTER.reset(token)


class _Bars:
    """A bar for each piece of work; a line now and then where standard error is no terminal."""

    def __init__(self) -> None:
        self._console = _console(stderr=True)
        self._live = self._console.is_terminal
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.fields[note]}"),
            console=self._console,
            disable=not self._live,
        )
        self._ids: dict[str, TaskID] = {}

    def __enter__(self) -> "_Bars":
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def begin(self, name: str, total: int, done: int = 0) -> None:
        self._ids[name] = self._progress.add_task(name, total=total, completed=done, note="")

    def advance(self, name: str, steps: int = 1, note: str = "") -> None:
        self._progress.update(self._ids[name], advance=steps, note=note)
        if self._live:
            return
        work = self._progress.tasks[self._ids[name]]
        done, total = int(work.completed), int(work.total or 0)
        if done == total or done * LINES // total > (done - steps) * LINES // total:
            self.say(f"{name}: {done}/{total}{', ' * bool(note)}{note}")

    def say(self, text: str) -> None:
        self._console.print(text, markup=False, highlight=False, soft_wrap=True)


def _console(stderr: bool = False) -> Console:
    console = Console(stderr=stderr)
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = PIPE_COLUMNS
    return console


@contextmanager
def _standard_output_on_standard_error() -> Iterator[None]:
    sys.stdout.flush()
    kept = os.dup(1)
    os.dup2(2, 1)
    try:
        with redirect_stdout(sys.stderr):
            yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)
