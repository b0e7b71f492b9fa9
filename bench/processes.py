"""What a process costs as a whole, from its start to its end."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Cost:
    """Of a process and its children: seconds on the clock, seconds of all cores, peak memory of the largest."""

    wall_s: float
    cpu_s: float
    peak_gb: float
    code: int


def measure(command: Sequence[str], log: Path, timeout_s: float = 600.0) -> Cost:
    """Run a command to its end, its output in a file; one that takes longer than ``timeout_s`` is ended, with code 124.

    Python keeps its bytecode, as it does for users, whatever this process was told.
    """
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    start = time.perf_counter()
    with log.open("wb") as out:
        process = subprocess.Popen(
            ["timeout", str(timeout_s), *command], stdout=out, stderr=subprocess.STDOUT, env=environment
        )
        _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    wall = time.perf_counter() - start
    return Cost(wall, used.ru_utime + used.ru_stime, used.ru_maxrss / 2**20, process.returncode)


def result_of(module: str, *arguments: str, env: Mapping[str, str] | None = None) -> Any:
    """What a benchmark printed as its result, run in a process of its own; a failure ends this one, too."""
    command = [sys.executable, "-m", module, *arguments]
    run = subprocess.run(command, check=False, capture_output=True, text=True, env=env)
    found = [line for line in run.stdout.splitlines() if line.startswith("RESULT ")]
    if run.returncode or not found:
        sys.exit(f"{module} {' '.join(arguments)} failed:\n{run.stderr[-2000:]}")
    return json.loads(found[-1].removeprefix("RESULT "))
