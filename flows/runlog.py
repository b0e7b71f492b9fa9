"""Progress where no terminal shows it: lines in the flow run's log, and an artifact for each piece of work."""

import contextlib
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from typing import cast
from uuid import UUID

import httpx
from prefect.artifacts import create_progress_artifact, update_progress_artifact
from prefect.logging import get_run_logger

from flows.artifacts import key_of
from flows.reporter import REPORTER, Silent

PARTS = 20
"""Lines and updates of a piece of work, at most: each is a call to the server."""


@contextmanager
def followed() -> Iterator[None]:
    """Let the stages of the flow run that is under way report to Prefect, unless somebody watches already."""
    if not isinstance(REPORTER.get(), Silent):
        yield
        return
    token = REPORTER.set(RunLog())
    try:
        yield
    finally:
        REPORTER.reset(token)


class RunLog:
    """A reporter of the flow run in which it is made. A server that does not answer stops no work."""

    def __init__(self) -> None:
        self._log = get_run_logger()
        self._lock = Lock()
        self._works: dict[str, tuple[int, int]] = {}
        self._artifacts: dict[str, UUID] = {}

    def begin(self, name: str, total: int, done: int = 0) -> None:
        """Announce work in a line and a new artifact."""
        told = f"{name}: {done}/{total}"
        with self._lock:
            self._works[name] = done, total
            with contextlib.suppress(httpx.HTTPError):
                made = create_progress_artifact(_percent(done, total), key_of("progress", name), told)
                self._artifacts[name] = cast(UUID, made)
        self.say(told)

    def advance(self, name: str, steps: int = 1, note: str = "") -> None:
        """Count steps, and show them when another part of the work is done."""
        with self._lock:
            before, total = self._works[name]
            done = before + steps
            self._works[name] = done, total
            if total and done * PARTS // total == before * PARTS // total:
                return
            told = f"{name}: {done}/{total}{', ' * bool(note)}{note}"
            if artifact := self._artifacts.get(name):
                with contextlib.suppress(httpx.HTTPError):
                    update_progress_artifact(artifact, _percent(done, total), told)
        self.say(told)

    def say(self, text: str) -> None:
        """Write a line into the log."""
        self._log.info(text)


def _percent(done: int, total: int) -> float:
    return min(100.0, 100.0 * done / max(1, total))
