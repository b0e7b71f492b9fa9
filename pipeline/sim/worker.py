"""Worker process: record one shard of a task. Run as ``python -m pipeline.sim.worker SHARD EVENTS_FD PARENT``.

It writes one JSON line per event to the file descriptor: ``ready``; ``beat`` (the attempts that it is at, whenever they
change and every second); ``episode`` (committed); ``error`` (a message and a :class:`pipeline.watch.State`);
``done`` (with the CPU time of all its threads since it was ready, ``core_seconds``).
"""

import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from experts.contract import Handicap
from pipeline.assets.cache import cache_dir
from pipeline.engine import Engine
from pipeline.errors import DiskFull, UserError
from pipeline.faults import Fault
from pipeline.process import die_with_parent
from pipeline.store import Episode, Run
from pipeline.tasks import get_task

BEAT_S = 1.0

OUT_OF_MEMORY = "the worker ran out of memory; take fewer --num-envs or --workers, then run the same command again"


@dataclass(frozen=True)
class Shard:
    """What one worker records.

    Attributes:
        root: run folder.
        attempts: numbers of the attempts to make.
        fault, handicap: of negative controls.
    """

    root: str
    task: str
    run_seed: int
    attempts: tuple[int, ...]
    num_envs: int
    engine: Engine
    fault: Fault = Fault()
    handicap: Handicap = Handicap()

    def to_json(self) -> str:
        """One line of JSON."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> "Shard":
        """Inverse of :meth:`to_json`."""
        raw = json.loads(text)
        return cls(
            **{
                **raw,
                "attempts": tuple(raw["attempts"]),
                "engine": Engine(**raw["engine"]),
                "fault": Fault(**raw["fault"]),
                "handicap": Handicap(**{**raw["handicap"], "seat_error_m": tuple(raw["handicap"]["seat_error_m"])}),
            }
        )


def main(argv: list[str]) -> int:
    """Record the shard named on the command line."""
    die_with_parent(int(argv[3]))
    shard = Shard.from_json(argv[1])
    with os.fdopen(int(argv[2]), "w", buffering=1) as events:

        def tell(event: str, **fields: Any) -> None:
            events.write(json.dumps({"event": event, **fields}) + "\n")

        try:
            core_seconds = _record(shard, tell)
        except UserError as error:
            tell("error", message=str(error), state="disk full" if isinstance(error, DiskFull) else "refused")
            return 2
        except MemoryError:
            tell("error", message=f"{shard.task}: {OUT_OF_MEMORY}", state="out of memory")
            return 2
        tell("done", core_seconds=core_seconds)
    return 0


def _record(shard: Shard, tell: Any) -> float:
    os.environ.setdefault("WARP_CACHE_PATH", str(cache_dir() / "warp"))
    if shard.engine.device == "cpu":
        os.environ["CUDA_VISIBLE_DEVICES"] = ""
    from pipeline.reasons import make_expert
    from pipeline.sim.cell import open_cell
    from pipeline.sim.recorder import record

    task, run = get_task(shard.task), Run(shard.root)
    extra: dict[str, Any] = {}
    if (shard.fault, shard.handicap) != (Fault(), Handicap()):
        extra = {"fault": asdict(shard.fault), "handicap": asdict(shard.handicap)}

    def commit(episode: Episode) -> None:
        run.commit(episode)
        tell("episode", attempt=episode.attempt, outcome=episode.outcome, reason=episode.reason)

    with open_cell(task, shard.num_envs, shard.engine, shard.fault) as cell:
        tell("ready")
        start = time.process_time()
        expert = make_expert(task, shard.num_envs, shard.handicap)
        record(cell, expert, shard.engine, shard.run_seed, shard.attempts, commit, extra, _beats(tell))
        return time.process_time() - start


def _beats(tell: Callable[..., None]) -> Callable[[Sequence[int]], None]:
    told, when = list[int](), 0.0

    def beat(attempts: Sequence[int]) -> None:
        nonlocal told, when
        now = time.monotonic()
        if list(attempts) != told or now - when >= BEAT_S:
            told, when = list(attempts), now
            tell("beat", attempts=told)

    return beat


if __name__ == "__main__":
    sys.exit(main(sys.argv))
