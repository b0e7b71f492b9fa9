"""Worker processes end with the process that started them, however it ends."""

import ctypes
import signal

_PR_SET_PDEATHSIG = 1


def die_with_parent(by: signal.Signals = signal.SIGKILL) -> None:
    """Let the kernel send ``by`` to this process when its parent dies (Linux)."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, by)
