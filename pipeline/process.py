"""Worker processes end with the process that started them, however it ends."""

import ctypes
import os
import signal

_PR_SET_PDEATHSIG = 1


def die_with_parent(parent: int, by: signal.Signals = signal.SIGKILL) -> None:
    """Let the kernel send ``by`` to this process when its parent dies (Linux); end it at once if that has happened.

    Args:
        parent: process id of the parent, which it had better be told: an orphan is given another.
        by: the signal.
    """
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, by)
    if os.getppid() != parent:
        os.kill(os.getpid(), signal.SIGKILL)
