"""Locks of attempts: no two processes ever record the same one, whoever started them and however they are sharded."""

import fcntl
import os
import struct
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from pipeline import store
from pipeline.errors import UserError


@contextmanager
def lock_attempts(root: Path, task: str, attempts: Sequence[int]) -> Iterator[int]:
    """Hold attempts of a task for writing: byte *n* of a file in the run folder stands for attempt *n*.

    The lock belongs to the open file (``F_OFD_SETLK``), not to the process: threads exclude each other as well, and a
    worker that inherits the descriptor keeps the attempts locked while it lives.

    Args:
        root: run folder.
        task: task id.
        attempts: numbers of the attempts.

    Yields:
        File descriptor of the lock.

    Raises:
        UserError: if another process holds one of them, and goes on holding it for some seconds.
    """
    with store.explain_os_errors(root):
        (root / ".locks").mkdir(exist_ok=True)
        handle = os.open(root / ".locks" / task, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        patience = time.monotonic() + store.LOCK_PATIENCE_S
        while (held := _refused(handle, attempts)) is not None:
            if time.monotonic() > patience:
                raise UserError(f"{root}: another demomill process is recording attempt {held} of {task}; wait for it")
            time.sleep(0.05)
        yield handle
    finally:
        os.close(handle)


def _refused(handle: int, attempts: Sequence[int]) -> int | None:
    """Lock all attempts, or none and say which one is held by another."""
    for attempt in attempts:
        try:
            _lock(handle, fcntl.F_WRLCK, attempt, 1)
        except BlockingIOError:
            _lock(handle, fcntl.F_UNLCK, 0, 0)
            return attempt
    return None


def _lock(handle: int, kind: int, start: int, length: int) -> None:
    fcntl.fcntl(handle, fcntl.F_OFD_SETLK, struct.pack("hhqqi", kind, os.SEEK_SET, start, length, 0))
