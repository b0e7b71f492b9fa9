"""Start a worker process and watch it: what it committed, what it was doing, and how it ended."""

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from pipeline.sim.worker import Shard
from pipeline.store import explain_os_errors

EXIT_S = 30.0
"""How long a worker that has finished may take to close its simulator."""

KILLED = (-signal.SIGKILL, 128 + signal.SIGKILL)


class State(StrEnum):
    """How a worker ended."""

    DONE = "done"
    HUNG = "hung"
    OUT_OF_MEMORY = "out of memory"
    DISK_FULL = "disk full"
    NOT_STARTED = "not started"
    CRASHED = "crashed"
    REFUSED = "refused"


@dataclass(frozen=True)
class Watched:
    """What became of a worker.

    Attributes:
        committed: attempts that it committed.
        in_flight: attempts that it was at when it ended.
        core_seconds: CPU time of all its threads without its start; 0 unless it is done.
        problem: what went wrong and what to do; empty if it is done.
    """

    state: State
    committed: tuple[int, ...]
    in_flight: tuple[int, ...]
    core_seconds: float = 0.0
    problem: str = ""


def watch(shard: Shard, lock: int, log: Path, listen: Callable[[dict[str, Any]], None], silence_s: float) -> Watched:
    """Run one worker to its end, or kill it when it says nothing for too long.

    Args:
        shard: what it records.
        lock: descriptor that it inherits.
        log: file to which its output is appended.
        listen: told of every event.
        silence_s: seconds without an event after which it counts as hung.

    Raises:
        UserError: if the log cannot be written.
    """
    committed: list[int] = []
    running: set[int] = set()
    ready, hung, last = False, False, dict[str, Any]()
    with _worker(shard, lock, log) as (process, events):
        for line in _lines(events, silence_s):
            if line is None:
                hung = True
                break
            last = json.loads(line)
            match last["event"]:
                case "ready":
                    ready = True
                case "beat":
                    running = set(last["attempts"])
                case "episode":
                    committed.append(last["attempt"])
            listen(last)
        code = None if hung else _exit_code(process)
    flying = tuple(sorted(running.difference(committed)))
    done = last.get("event") == "done"
    if done or (hung and set(committed) == set(shard.attempts)):
        return Watched(State.DONE, tuple(committed), (), last.get("core_seconds", 0.0))
    if last.get("event") == "error":
        return Watched(State(last["state"]), tuple(committed), flying, problem=last["message"])
    state, problem = _explain(ready, hung, code, silence_s)
    kept = f"{len(committed)} of {len(shard.attempts)} episodes, which are kept"
    where = f"{shard.task}, attempts {shard.attempts[0]} to {shard.attempts[-1]}"
    problem = f"{where}: {problem} after {kept}; see {log}, then run the same command again to go on"
    return Watched(state, tuple(committed), flying, problem=problem)


def _explain(ready: bool, hung: bool, code: int | None, silence_s: float) -> tuple[State, str]:
    if hung:
        silent = f"the worker said nothing for {silence_s:g} s and was killed"
        return (
            (State.HUNG, silent)
            if ready
            else (State.NOT_STARTED, f"the simulator did not start: {silent} (`demomill doctor` may know why)")
        )
    if code in KILLED:
        return State.OUT_OF_MEMORY, (
            "the worker was killed, most likely for lack of memory (take fewer --num-envs or --workers),"
        )
    if not ready:
        return State.NOT_STARTED, f"the simulator did not start: exit code {code} (`demomill doctor` may know why)"
    return State.CRASHED, f"the worker stopped with exit code {code}"


@contextmanager
def _worker(shard: Shard, lock: int, log: Path) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    with explain_os_errors(log.parent):
        log.parent.mkdir(exist_ok=True)
        sink = log.open("ab")
    read, write = os.pipe()
    try:
        with sink:
            try:
                process = subprocess.Popen(
                    [sys.executable, "-P", "-m", "pipeline.sim.worker", shard.to_json(), str(write), str(os.getpid())],
                    stdin=subprocess.DEVNULL,
                    stdout=sink,
                    stderr=sink,
                    pass_fds=(write, lock),
                )
            finally:
                os.close(write)
        try:
            yield process, read
        finally:
            if process.poll() is None:
                process.kill()
            process.wait()
    finally:
        os.close(read)


def _lines(events: int, silence_s: float) -> Iterator[bytes | None]:
    """Whole lines from a pipe until it is closed; None, and no more, after too long a silence."""
    poll, rest = select.poll(), b""
    poll.register(events, select.POLLIN)
    deadline = time.monotonic() + silence_s
    while poll.poll(max(0.0, deadline - time.monotonic()) * 1000):
        chunk = os.read(events, 1 << 16)
        if not chunk:
            return
        *lines, rest = (rest + chunk).split(b"\n")
        yield from lines
        if lines:
            deadline = time.monotonic() + silence_s
    yield None


def _exit_code(process: subprocess.Popen[bytes]) -> int | None:
    try:
        return process.wait(EXIT_S)
    except subprocess.TimeoutExpired:
        return None
