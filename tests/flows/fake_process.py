"""A worker process without a simulator, wherever it is started from: flow runs of a deployment, workers of Dask.

:func:`environment` puts a ``sitecustomize`` before everything else, which takes over processes that would be workers.
"""

import json
import os
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pipeline.sim.worker import Shard
from pipeline.store import Episode, Run
from tests.flows.fake_worker import renderable

DOUBTFUL = ("peg_round_8mm", 3)
"""A success that moves as a failed attempt does: only one label can be right, so a person should look at it."""

FAILED = 2

SLOW = "slow"
"""A run folder of this name takes half a minute an episode."""

SITE = """
import os, sys
if sys.orig_argv[1:4] == ["-P", "-m", "pipeline.sim.worker"]:
    from tests.flows.fake_process import work
    work(sys.orig_argv[4:])
    os._exit(0)
"""


def environment(folder: Path) -> dict[str, str]:
    """What to add to the environment of a process whose workers are to be fake."""
    folder.mkdir(exist_ok=True)
    (folder / "sitecustomize.py").write_text(SITE)
    root = Path(__file__).resolve().parents[2]
    return {"PYTHONPATH": os.pathsep.join([str(folder), str(root)])}


def work(arguments: Sequence[str]) -> None:
    """Do what :mod:`pipeline.sim.worker` does with these arguments, but make the episodes up."""
    shard = Shard.from_json(arguments[0])
    with os.fdopen(int(arguments[1]), "w", buffering=1) as events:

        def tell(event: str, **fields: Any) -> None:
            events.write(json.dumps({"event": event, **fields}) + "\n")

        tell("ready")
        for attempt in shard.attempts:
            tell("beat", attempts=[attempt])
            time.sleep(30 if Path(shard.root).name == SLOW else 0)
            episode = _episode(shard, attempt)
            Run(Path(shard.root)).commit(episode)
            tell("episode", attempt=attempt, outcome=episode.outcome, reason=episode.reason)
        tell("done", core_seconds=1.0)


def _episode(shard: Shard, attempt: int) -> Episode:
    reason = "dropped" if attempt == FAILED else None
    episode = renderable(shard.task, attempt, run_seed=shard.run_seed, reason=reason)
    if (shard.task, attempt) == DOUBTFUL:
        twin = renderable(shard.task, FAILED, run_seed=shard.run_seed, reason="dropped")
        motion = {name: twin.frames[name] for name in ("observation.state", "action")}
        episode = replace(episode, frames={**episode.frames, **motion})
    return episode
