"""How often each task succeeds, how certain that is, why it fails, and what an episode costs."""

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from scipy.stats import binomtest

from pipeline.record import Recorded

CONFIDENCE = 0.95


@dataclass(frozen=True)
class TaskYield:
    """The yield of one task.

    Attributes:
        success_rate: succeeded / attempted.
        wilson_low, wilson_high: 95 % interval of the success rate (Wilson's score interval).
        by_reason: failures by their named reason, the most frequent first.
        by_env_index: attempts and successes of each parallel env, ``{"attempted", "succeeded"}`` by its index: contacts
            that go wrong in some worlds only show up here.
        seconds_per_episode: core seconds: CPU time of the worker process, all threads, from the opened simulator to the
            last episode, over the episodes that it recorded; None where nothing had to be recorded.
    """

    task: str
    attempted: int
    succeeded: int
    success_rate: float
    wilson_low: float
    wilson_high: float
    by_reason: Mapping[str, int]
    by_env_index: Mapping[int, Mapping[str, int]]
    seconds_per_episode: float | None


def task_yields(recorded: Recorded) -> tuple[TaskYield, ...]:
    """Yield of each task of a recording, in the order of its request."""
    by_task = defaultdict[str, list[Mapping[str, Any]]](list)
    for meta in recorded.episodes:
        by_task[meta["task"]].append(meta)
    for note in recorded.hung:
        by_task[note["task"]]
    yields = []
    for task, metas in by_task.items():
        hung = [note for note in recorded.hung if note["task"] == task]
        attempted = len(metas) + len(hung)
        wins = [meta for meta in metas if meta["outcome"] == "success"]
        interval = binomtest(len(wins), attempted).proportion_ci(CONFIDENCE, method="wilson")
        tried, won = (Counter(meta["env_index"] for meta in group) for group in (metas, wins))
        yields.append(
            TaskYield(
                task=task,
                attempted=attempted,
                succeeded=len(wins),
                success_rate=len(wins) / attempted,
                wilson_low=float(interval.low),
                wilson_high=float(interval.high),
                by_reason=dict(Counter(meta["reason"] for meta in (*metas, *hung) if meta["reason"]).most_common()),
                by_env_index={i: {"attempted": tried[i], "succeeded": won[i]} for i in sorted(tried)},
                seconds_per_episode=recorded.seconds_per_episode.get(task),
            )
        )
    return tuple(yields)
