"""Checkers for anyone who adds a task or an expert, in the manner of Gymnasium's ``check_env``."""

from pipeline.checks.expert import check_expert
from pipeline.checks.findings import CheckFailed
from pipeline.checks.task import check_task

__all__ = ["CheckFailed", "check_expert", "check_task"]
