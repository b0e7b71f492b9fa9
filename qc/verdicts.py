"""What is to become of each episode, and why. Nothing is edited or deleted."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from qc.embedding import Embedding, embed
from qc.episodes import Episode, EpisodeSet
from qc.errors import QcError
from qc.filters.base import Filter
from qc.filters.duplicates import DuplicatesFilter
from qc.filters.idle import IdleFilter
from qc.filters.length import LengthFilter
from qc.filters.mahalanobis import MahalanobisFilter
from qc.filters.neighbours import NeighboursFilter
from qc.settings import Settings
from qc.table import COLUMNS, DROP, FAILED, KEEP, NOT_ASSESSED, REVIEW

REQUIRED = frozenset({DuplicatesFilter.name, IdleFilter.name})
"""Filters without which an episode is not kept; the others need samples that a small run does not have."""


@dataclass
class _Case:
    """What has been found out about one episode."""

    episode: Episode
    charges: list[tuple[str, str]] = field(default_factory=list)
    sentences: list[str] = field(default_factory=list)
    numbers: dict[str, float] = field(default_factory=dict)
    not_assessed: list[str] = field(default_factory=list)

    def verdict(self) -> str:
        if not self.episode.succeeded:
            return FAILED
        charged = {verdict for verdict, _ in self.charges}
        if charged:
            return DROP if DROP in charged else REVIEW
        return NOT_ASSESSED if REQUIRED & set(self.not_assessed) else KEEP

    def reasons(self) -> list[str]:
        """Those that decided first."""
        if not self.episode.succeeded:
            return [self.episode.reason or "unnamed"]
        return [reason for wanted in (DROP, REVIEW) for verdict, reason in self.charges if verdict == wanted]


def assess(
    episodes: EpisodeSet | Sequence[Episode], settings: Settings | None = None, embedding: Embedding | None = None
) -> pd.DataFrame:
    """Judge every episode.

    Failures keep the reason they were recorded with. Successes pass the filters in order: duplicates over the whole
    run, idle streaks and length within each task, Mahalanobis distance and neighbours within task or family. Each
    filter learns from what the ones before let through, and scores all.

    Args:
        embedding: of the same episodes in the same order, if it is there already.

    Returns:
        One row an episode in order of id, with :data:`qc.table.COLUMNS`.

    Raises:
        QcError: if two episodes share an id, or the embedding is of others.
    """
    settings = settings or Settings()
    given = episodes.episodes if isinstance(episodes, EpisodeSet) else tuple(episodes)
    ids = [e.id for e in given]
    if twice := sorted({i for i in ids if ids.count(i) > 1}) if len(set(ids)) < len(ids) else []:
        raise QcError(f"{twice[0]}: more than one episode has this id; assess runs with different seeds together")
    embedding = embedding or embed(given, settings.points)
    if embedding.ids != tuple(ids):
        raise QcError("the embedding is of other episodes than those to assess; embed them again")
    cases = [_Case(e) for e in given]
    normal = _judge_duplicates(cases)
    for rows in _groups(cases, lambda e: e.task):
        normal[rows] &= _judge_idle([cases[i] for i in rows], normal[rows], settings)
        normal[rows] &= _judge_length([cases[i] for i in rows], normal[rows], settings)
    z = embedding.standardise(embedding.tasks, normal)
    for rows in _groups(cases, lambda e: e.task if settings.within == "task" else e.family):
        _judge_distance([cases[i] for i in rows], z[rows], normal[rows], embedding, settings)
    return _table(sorted(cases, key=lambda c: c.episode.id))


def _groups(cases: Sequence[_Case], label: Callable[[Episode], str]) -> list[np.ndarray]:
    """Indices of the successes, by label."""
    labels = np.array([label(c.episode) if c.episode.succeeded else "" for c in cases], dtype=object)
    return [np.flatnonzero(labels == name) for name in sorted(set(labels) - {""})]


def _judge_duplicates(cases: Sequence[_Case]) -> np.ndarray:
    """Returns the mask of episodes whose motion is their own."""
    episodes = [c.episode for c in cases]
    duplicates = DuplicatesFilter().fit(episodes)
    outlier = _score(duplicates, episodes, cases)
    conflict = duplicates.conflicts(episodes)
    for i in np.flatnonzero(outlier | conflict):
        cases[i].charges.append((DROP, "duplicate") if outlier[i] else (REVIEW, "conflict"))
        cases[i].sentences.append(duplicates.explain(i).sentence)
    return ~outlier & ~conflict & np.array([e.succeeded for e in episodes], dtype=bool)


def _judge_idle(cases: Sequence[_Case], normal: np.ndarray, settings: Settings) -> np.ndarray:
    idle = IdleFilter(settings.idle_rows, settings.idle_speed, settings.excused_before, settings.excused_after)
    episodes = tuple(c.episode for c in cases)
    outlier = _score(idle.fit(episodes, reference=normal), episodes, cases)
    doubtful = outlier.mean() > settings.idle_share
    for i, case in enumerate(cases):
        streaks = () if idle.not_assessed_ else idle.streaks_[i]
        where = [w for w in ("start", "middle") if any(s.where == w for s in streaks)]
        case.charges += [(REVIEW if doubtful else DROP, f"idle_{w}") for w in where]
        case.sentences += [idle.explain(i).sentence] if streaks else []
        if where and doubtful:
            case.sentences.append(
                f"warning: {outlier.sum()} of {len(cases)} episodes of {case.episode.task} are idle, so the rule may "
                "not fit the task"
            )
    return ~outlier | doubtful


def _judge_length(cases: Sequence[_Case], normal: np.ndarray, settings: Settings) -> np.ndarray:
    length = LengthFilter(settings.length_min_episodes, settings.length_floor, settings.false_alarm, settings.seed)
    rows = np.array([c.episode.length for c in cases])
    outlier = _score(length.fit(rows, reference=normal), rows, cases)
    for i in np.flatnonzero(outlier):
        cases[i].charges.append((DROP, "length"))
        cases[i].sentences.append(length.explain(i).sentence)
    return ~outlier


def _judge_distance(
    cases: Sequence[_Case], z: np.ndarray, normal: np.ndarray, embedding: Embedding, settings: Settings
) -> None:
    judged = np.zeros(len(cases), dtype=bool)
    for kind, charge in ((MahalanobisFilter, DROP), (NeighboursFilter, REVIEW)):
        detector = kind(
            components=settings.components,
            min_episodes=settings.distance_min_episodes,
            false_alarm=settings.false_alarm,
            seed=settings.seed,
            groups=embedding.groups,
            columns=embedding.columns,
        )
        outlier = _score(detector.fit(z, reference=normal), z, cases)
        for i in np.flatnonzero(outlier & ~judged):  # a lone outlier has far neighbours too: once is enough
            cases[i].charges.append((charge, detector.name))
            cases[i].sentences.append(detector.explain(i).sentence)
        judged |= outlier


def _score(detector: Filter, x: Any, cases: Sequence[_Case]) -> np.ndarray:
    """Note score and cutoff of each case; returns the mask of outliers."""
    scores = detector.score_samples(x)
    for case, score in zip(cases, scores, strict=True):
        if case.episode.succeeded:
            case.numbers[f"{detector.name}_score"] = float(score)
            case.numbers[f"{detector.name}_cutoff"] = detector.cutoff_
            if np.isnan(score):
                case.not_assessed.append(detector.name)
                case.sentences.append(f"not assessed: {detector.not_assessed_ or 'nothing normal to compare with'}")
    return np.asarray(scores < detector.cutoff_)


def _table(cases: Sequence[_Case]) -> pd.DataFrame:
    rows = [
        {
            "episode_id": case.episode.id,
            "task": case.episode.task,
            "content_hash": case.episode.content_hash,
            "outcome": case.episode.outcome,
            "verdict": case.verdict(),
            "reasons": ";".join(case.reasons()),
            "explanation": "; ".join(dict.fromkeys(case.sentences)),
            **case.numbers,
            "not_assessed_by": ";".join(case.not_assessed),
        }
        for case in cases
    ]
    return pd.DataFrame(rows, columns=list(COLUMNS))
