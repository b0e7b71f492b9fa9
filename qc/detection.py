"""How much of each defect is found, from mild to severe, and how much that is healthy is found as well."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from qc.episodes import TIME, Episode
from qc.filters.idle import IdleFilter
from qc.inject import DEFECTS, Arm, Defect, Injector, with_sensor_noise
from qc.integrity import check_episodes
from qc.settings import Settings
from qc.table import DROP, REVIEW
from qc.verdicts import assess

CLUSTER = "shared fault"
CLUSTER_SHARES = (0.05, 0.10, 0.15)
_CLUSTER_MM = 60.0
_FPS = 15.0


@dataclass(frozen=True)
class Trial:
    """One task with some defects in it, judged.

    Attributes:
        planted, found: episodes with the defect, and those of them that were not kept (or, idle at the end, told).
        healthy, false: episodes without, and those of them that were not kept.
        by: how many of the planted each filter gave a reason for.
    """

    defect: str
    severity: float
    unit: str
    planted: int
    found: int
    healthy: int
    false: int
    by: dict[str, int]


def detection_curves(
    episodes: Sequence[Episode],
    defects: Sequence[str] = (*DEFECTS, CLUSTER),
    trials: int = 5,
    seed: int = 0,
    *,
    moderate_only: bool = False,
) -> pd.DataFrame:
    """Plant each defect into four healthy episodes of each task at a time, and judge the task.

    Args:
        episodes: healthy ones, with the tool's pose.
        moderate_only: leave out severities that are not moderate.

    Returns:
        One row a defect and severity: ``defect, severity, unit, moderate, planted, found, healthy, false``, then how
        many of the planted each filter found. ``moderate`` marks the severity at which 95 % should be found.
    """
    timed = [replace(e, frames={**e.frames, TIME: np.arange(e.length, dtype=np.float32) / _FPS}) for e in episodes]
    arm = Arm.learn(timed)
    rows: list[dict[str, object]] = []
    for task in sorted({e.task for e in timed}):
        mine = [e for e in timed if e.task == task]
        for number, name in enumerate(defects):
            for trial in range(trials):
                injector = Injector(arm, np.random.default_rng([seed, number, trial]))
                rows += [{**vars(t), **t.by} for t in _trials(mine, name, injector, moderate_only)]
    table = pd.DataFrame(rows).drop(columns="by")
    keys = ["defect", "severity", "unit"]
    summed = table.groupby(keys, sort=False).sum().astype(int).reset_index()
    moderate = [
        (d in DEFECTS and DEFECTS[d].moderate == s) or d == CLUSTER
        for d, s in zip(summed["defect"], summed["severity"], strict=True)
    ]
    summed.insert(3, "moderate", moderate)
    return summed


def _trials(episodes: Sequence[Episode], name: str, injector: Injector, moderate_only: bool) -> Iterator[Trial]:
    if name == CLUSTER:
        for share in CLUSTER_SHARES:
            yield _judge(name, 100 * share, "% of the task", *_cluster(episodes, share, injector))
        return
    defect = DEFECTS[name]
    chosen = injector.rng.choice(len(episodes), min(4, len(episodes)), replace=False)
    for severity in (defect.moderate,) if moderate_only else defect.severities:
        yield _judge(name, severity, defect.unit, *_planted(episodes, defect, severity, chosen, injector))


def _planted(
    episodes: Sequence[Episode], defect: Defect, severity: float, chosen: np.ndarray, injector: Injector
) -> tuple[list[Episode], set[str]]:
    given = list(episodes)
    if "noise" in defect.name and not defect.adds:
        given = [with_sensor_noise(e, injector.rng) for e in given]
    bad = []
    for i in chosen:
        made = defect.plant(injector, given[i], severity)
        if defect.adds:
            made = replace(made, id=f"{made.id}-again")
            given.append(made)
        else:
            given[i] = made
        bad.append(made.id)
    return given, set(bad)


def _cluster(episodes: Sequence[Episode], share: float, injector: Injector) -> tuple[list[Episode], set[str]]:
    angle = injector.rng.uniform(0, 2 * np.pi)
    direction = np.array([np.cos(angle), np.sin(angle), 1.0]) / np.sqrt(2)
    chosen = injector.rng.choice(len(episodes), max(2, round(share * len(episodes))), replace=False)
    given = list(episodes)
    for i in chosen:
        given[i] = injector.detour(given[i], _CLUSTER_MM, direction)
    return given, {given[i].id for i in chosen}


def _judge(name: str, severity: float, unit: str, episodes: list[Episode], bad: set[str]) -> Trial:
    checked = check_episodes(episodes, _FPS)
    table = assess(checked).set_index("episode_id")
    found = set(table.index[table["verdict"].isin((DROP, REVIEW))])
    if name == "idle at the end":
        s = Settings()
        idle = IdleFilter(s.idle_rows, s.idle_speed, s.excused_before, s.excused_after).fit(checked)
        rest = [max((x.rows for x in streaks if x.where == "end"), default=0) for streaks in idle.streaks_]
        usual = float(np.median(rest))
        found |= {e.id for e, rows in zip(checked, rest, strict=True) if rows >= max(s.idle_rows, usual + 5)}
    by: dict[str, int] = {}
    for reasons in table.loc[sorted(bad), "reasons"]:
        for reason in reasons:
            by[reason] = by.get(reason, 0) + 1
    healthy = set(table.index) - bad
    return Trial(name, severity, unit, len(bad), len(found & bad), len(healthy), len(found & healthy), by)
