"""Kill processes at random moments, and see what is left of them."""

import os
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path

import numpy as np

GONE_S = 20.0
"""How long processes may take to follow the one that was killed; on a busy machine they wait for a core."""

ENDS_S = 300.0
"""How long a process may go on after one of its children was killed."""


def family(pid: int) -> list[int]:
    """A process and all that descend from it."""
    members = [pid]
    for member in members:
        with suppress(FileNotFoundError, ProcessLookupError):
            for thread in Path(f"/proc/{member}/task").iterdir():
                members += map(int, (thread / "children").read_text().split())
    return members


def strays(mark: str) -> list[str]:
    """Command lines of processes that name ``mark`` in their command line or environment, but for this one."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            told = (folder / "cmdline").read_bytes() + b"\0" + (folder / "environ").read_bytes()
            if mark.encode() in told and folder.name != str(os.getpid()):
                found.append((folder / "cmdline").read_bytes().replace(b"\0", b" ").decode())
    return found


def kill_at_random(process: subprocess.Popen[bytes], rng: np.random.Generator, within_s: float) -> int | None:
    """Kill a command or one of its descendants; returns its exit code, or None if it ended before that."""
    time.sleep(rng.uniform(0.0, within_s))
    if process.poll() is not None:
        assert process.returncode == 0
        return None
    with suppress(ProcessLookupError):
        os.kill(int(rng.choice(family(process.pid))), signal.SIGKILL)
    return process.wait(ENDS_S)


def wait_until_gone(mark: str) -> None:
    deadline = time.monotonic() + GONE_S
    while left := strays(mark):
        assert time.monotonic() < deadline, f"still there: {left}"
        time.sleep(0.05)
