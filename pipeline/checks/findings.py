"""The one error of the checkers."""

from pipeline.errors import UserError


class CheckFailed(UserError):
    """A task or expert that breaks a rule: the message names the task, what was found, and what to do."""


def finding(task: str, found: str, remedy: str) -> CheckFailed:
    """Word an error."""
    return CheckFailed(f"{task}: {found}; {remedy}")
