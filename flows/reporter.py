"""Whom the stages tell how far they are."""

from contextvars import ContextVar
from typing import Protocol


class Reporter(Protocol):
    """Shows progress. It may be called from several threads."""

    def begin(self, name: str, total: int, done: int = 0) -> None:
        """Announce work of ``total`` steps, of which some are done already."""

    def advance(self, name: str, steps: int = 1, note: str = "") -> None:
        """Steps of the work are done; ``note`` says what goes on in it now."""

    def say(self, text: str) -> None:
        """Tell the user something that is no step."""


class Silent:
    """Shows nothing."""

    def begin(self, name: str, total: int, done: int = 0) -> None:
        """Show nothing."""

    def advance(self, name: str, steps: int = 1, note: str = "") -> None:
        """Show nothing."""

    def say(self, text: str) -> None:
        """Show nothing."""


REPORTER: ContextVar[Reporter] = ContextVar("reporter", default=Silent())  # noqa: B039 - it has no state
"""A context variable, because a flow's parameters must be plain values."""
