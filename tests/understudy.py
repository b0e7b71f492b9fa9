"""The worker process with ready-made episodes in place of the simulator's; all else of it is real.

``python -m tests.understudy SHARD.json EVENTS_FD``, with the run folder that the episodes are taken from in ``STUDIO``.
"""

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet  # noqa: F401 - takes a while; a simulator would be starting

from pipeline.sim import worker
from pipeline.store import Run, episode_id, read_episode

PACE_S = 0.02

INTERPRETER = """#!{python}
import os, resource, sys
if limit := os.environ.get("MOST_MEMORY"):
    resource.setrlimit(resource.RLIMIT_AS, (int(limit), int(limit)))
played = {{"pipeline.sim.worker": "tests.understudy"}}
os.execv({python!r}, [{python!r}, *(played.get(word, word) for word in sys.argv[1:])])
"""


def interpreter(folder: Path) -> Path:
    """An executable that takes the place of ``sys.executable``: workers that it is to start are understudies.

    They may map at most ``MOST_MEMORY`` bytes, and need as many as ``HUNGER`` names at the last attempt of a shard.
    """
    script = folder / "interpreter"
    script.write_text(INTERPRETER.format(python=sys.executable))
    script.chmod(0o755)
    return script


def _record(shard: worker.Shard, tell: Callable[..., None]) -> float:
    studio, run = Run(os.environ["STUDIO"]), Run(shard.root)
    tell("ready")
    for number, attempt in enumerate(shard.attempts):
        tell("beat", attempts=shard.attempts[number : number + shard.num_envs])
        time.sleep(PACE_S)
        if number == len(shard.attempts) - 1:
            bytearray(int(os.environ.get("HUNGER", "0")))
        name = episode_id(shard.task, shard.run_seed, attempt)
        episode = read_episode(studio.folder(shard.task, name))
        run.commit(episode)
        tell("episode", attempt=attempt, outcome=episode.outcome, reason=episode.reason)
    return PACE_S * len(shard.attempts)


if __name__ == "__main__":
    worker._record = _record
    sys.exit(worker.main(sys.argv))
