"""Ask a person about doubtful episodes: the flow run pauses until a form is filled in, or the time is over."""

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import copy_context
from pathlib import Path
from threading import Event, Thread
from uuid import UUID, uuid4

import httpx
from prefect.exceptions import NotPausedError
from prefect.flow_runs import pause_flow_run, resume_flow_run
from prefect.runtime import flow_run

from flows.reporter import REPORTER
from flows.stages.assess import redraw
from flows.stages.form import make_form, write_answer
from flows.stages.recipe import settings
from flows.stages.review import waiting
from pipeline.recipe import Recipe
from qc.errors import QcError

GRACE_S = 600
"""Prefect fails a run whose pause is over, so it is resumed before that."""

POLL_S = 5
"""How often the run asks the server whether it was resumed."""


def ask(root: Path, recipe: Recipe, hours: float, asked: set[str]) -> None:
    """Pause the flow run until a person answers, and write the decisions; an answer that cannot be is asked again.

    Args:
        hours: how long to wait; then the run goes on, and says so.
        asked: ids of episodes that were asked about before, and are not again; those of this call are added.
    """
    until, refused = time.monotonic() + hours * 3600, ""
    doubtful = [episode for episode in waiting(root, recipe) if episode not in asked]
    asked.update(doubtful)
    while doubtful:
        form, left_s = make_form(root, doubtful, refused), until - time.monotonic()
        with _resumed_after(left_s):
            answer = pause_flow_run(form, timeout=int(left_s) + GRACE_S, poll_interval=POLL_S, key=str(uuid4()))
        if not (answer.keep or answer.drop):
            late = time.monotonic() >= until
            REPORTER.get().say(f"review: {f'nobody answered within {hours:g} h' if late else 'nothing was decided'}")
            return
        try:
            write_answer(root, answer)
            redraw(root, settings(recipe))
            return
        except QcError as error:
            refused = str(error)


@contextmanager
def _resumed_after(seconds: float) -> Iterator[None]:
    """Resume this flow run as if somebody had left the form empty, unless somebody does so first."""
    this, answered = UUID(flow_run.id), Event()

    def resume() -> None:
        wait_s = max(0.0, seconds)
        while not answered.wait(wait_s):
            wait_s = POLL_S
            with suppress(NotPausedError, httpx.HTTPError):
                resume_flow_run(this)

    Thread(target=copy_context().run, args=[resume], daemon=True).start()
    try:
        yield
    finally:
        answered.set()
