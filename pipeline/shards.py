"""Record one shard, from any thread or process on the machine: locked, watched, and hung seeds put aside."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from pipeline.locks import lock_attempts
from pipeline.sim.worker import Shard
from pipeline.store import Run, episode_id, is_sound
from pipeline.watch import State, Watched, watch

SILENCE_S = 900.0
"""A worker that says nothing for so long is hung; kernels that are compiled for the first time take minutes."""


@dataclass(frozen=True)
class Progress:
    """One event of a recording: ``kind`` is ``ready``, ``episode``, ``damaged``, ``note`` or ``hung`` (given up)."""

    kind: str
    task: str
    text: str = ""
    outcome: str = ""


Listener = Callable[[Progress], None]


@dataclass(frozen=True)
class ShardReport:
    """What became of a shard.

    Attributes:
        attempts: that it was to record.
        new: how many episodes it committed.
        hung: attempts whose seed hung the simulator twice; they are quarantined.
        core_seconds: CPU time of its workers without their start.
        state: how it ended.
        problem: what went wrong and what to do; empty if it is done.
    """

    task: str
    attempts: tuple[int, ...]
    new: int
    hung: tuple[int, ...]
    core_seconds: float
    state: State
    problem: str = ""


def record_shard(shard: Shard, listen: Listener = lambda _: None, silence_s: float = SILENCE_S) -> ShardReport:
    """Record what is still missing of a shard, from any thread or process on this machine.

    Its attempts stay locked meanwhile. If the worker hangs it is killed, and the attempts that it was at are tried
    once more, each alone; a seed that hangs again is quarantined, and the others go on.

    Args:
        shard: what to record.
        listen: called as episodes are committed.
        silence_s: seconds without a sign of life after which a worker counts as hung.

    Raises:
        UserError: if another process is recording one of its attempts, or the folder cannot be written.
    """
    run = Run(shard.root)
    log = run.root / "logs" / f"{shard.task}-{shard.attempts[0]:05d}.log"
    new, seconds, hung = 0, 0.0, list[int]()

    def attend(attempts: tuple[int, ...], num_envs: int) -> Watched:
        nonlocal new, seconds
        piece = replace(shard, attempts=attempts, num_envs=min(num_envs, len(attempts)))
        watched = watch(piece, lock, log, lambda event: _tell(listen, shard.task, event), silence_s)
        new, seconds = new + len(watched.committed), seconds + watched.core_seconds
        return watched

    def attend_alone(suspects: tuple[int, ...]) -> Watched:
        for suspect in suspects:
            listen(Progress("note", shard.task, f"{shard.task}: a worker hung; trying attempt {suspect} alone"))
            ended = attend((suspect,), 1)
            if ended.state is State.HUNG:
                note = run.quarantine_seed(shard.task, shard.run_seed, suspect, f"no sign of life for {silence_s:g} s")
                hung.append(suspect)
                text = f"{shard.task}: attempt {suspect} hangs the simulator; given up (to try it again: rm {note})"
                listen(Progress("hung", shard.task, text, "failure"))
            elif ended.state is not State.DONE:
                return ended
        return _DONE

    with lock_attempts(run.root, shard.task, shard.attempts) as lock:
        try:
            missing = _missing(run, shard, listen)
            ended = attend(missing, shard.num_envs) if missing else _DONE
            while ended.state is State.HUNG and ended.in_flight:
                ended = attend_alone(ended.in_flight)
                if ended.state is State.DONE and (rest := _missing(run, shard, listen)):
                    ended = attend(rest, shard.num_envs)
        finally:
            _clear(run, shard)
    report = ShardReport(shard.task, shard.attempts, new, tuple(hung), seconds, ended.state, ended.problem)
    run.note_shard(asdict(report))
    return report


_DONE = Watched(State.DONE, (), ())


def _missing(run: Run, shard: Shard, listen: Listener) -> tuple[int, ...]:
    """The attempts of a shard that are to be recorded; damaged ones are put aside."""
    _clear(run, shard)
    hung, missing = run.hung(), []
    for attempt in shard.attempts:
        name = episode_id(shard.task, shard.run_seed, attempt)
        folder = run.folder(shard.task, name)
        if name in hung or is_sound(folder):
            continue
        if folder.exists():
            moved = run.quarantine(folder)
            listen(Progress("damaged", shard.task, f"{folder.name}: damaged, moved to {moved}; recording it again"))
        missing.append(attempt)
    return tuple(missing)


def _clear(run: Run, shard: Shard) -> None:
    for attempt in shard.attempts:
        run.clear_staging(episode_id(shard.task, shard.run_seed, attempt))


def _tell(listen: Listener, task: str, event: Mapping[str, Any]) -> None:
    if event["event"] == "ready":
        listen(Progress("ready", task))
    if event["event"] == "episode":
        listen(Progress("episode", task, event["reason"] or "", event["outcome"]))
