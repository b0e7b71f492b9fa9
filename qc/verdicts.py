"""What is to become of each episode, and why. Nothing is edited or deleted."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

from qc.decisions import Decisions, apply_decisions
from qc.embedding import Embedding, embed
from qc.episodes import Episode, EpisodeSet
from qc.errors import QcError
from qc.filters.base import OUTLIER, Filter
from qc.filters.duplicates import DuplicatesFilter
from qc.filters.idle import IdleFilter
from qc.filters.length import LengthFilter
from qc.filters.mahalanobis import MahalanobisFilter
from qc.filters.moments import EndPoseFilter, ReleaseFilter
from qc.filters.near_duplicates import NearDuplicatesFilter
from qc.filters.neighbours import NeighboursFilter
from qc.filters.phases import PhasesFilter
from qc.filters.roughness import JitterFilter, SpikesFilter
from qc.loops import find_loops, without_loops
from qc.settings import Settings
from qc.table import DROP, INTEGRITY, KEEP, NOT_ASSESSED, OUTCOME, REVIEW, make_table
from qc.ways import ways_to_take_hold

REQUIRED = frozenset({DuplicatesFilter.name, IdleFilter.name})
"""Filters without which an episode is not kept; the others need samples that a small run does not have."""


@dataclass
class _Case:
    """What has been found out about one episode."""

    episode: Episode
    charges: list[tuple[str, str]] = field(default_factory=list)
    sentences: list[str] = field(default_factory=list)
    numbers: dict[str, float] = field(default_factory=dict)
    not_assessed: dict[str, str] = field(default_factory=dict)

    @property
    def open(self) -> bool:
        """Whether its motion is worth a look."""
        return self.episode.succeeded and self.episode.sound

    def charge(self, verdict: str, reason: str, sentence: str) -> None:
        """Note a reason, once."""
        if (verdict, reason) not in self.charges:
            self.charges.append((verdict, reason))
        self.sentences.append(sentence)

    def verdict(self) -> str:
        charged = {verdict for verdict, _ in self.charges}
        if charged:
            return DROP if DROP in charged else REVIEW
        return NOT_ASSESSED if REQUIRED & self.not_assessed.keys() else KEEP

    def told(self) -> list[str]:
        """What was found, and what could not be assessed."""
        because: dict[str, list[str]] = {}
        for name, why in self.not_assessed.items():
            because.setdefault(why, []).append(name)
        return [*self.sentences, *(f"not assessed by {', '.join(of)} ({why})" for why, of in because.items())]

    def reasons(self) -> list[str]:
        """Those that decided first."""
        return [reason for wanted in (DROP, REVIEW) for verdict, reason in self.charges if verdict == wanted]


def assess(
    episodes: EpisodeSet | Sequence[Episode],
    settings: Settings | None = None,
    embedding: Embedding | None = None,
    decisions: Decisions | None = None,
) -> pd.DataFrame:
    """Judge every episode, in one pass with fixed cutoffs.

    Failed attempts and episodes whose rows cannot be trusted are dropped unseen. The others pass the filters in the
    order of :data:`qc.table.MEASURED`: exact duplicates over the whole set, Mahalanobis distance and neighbours within
    task or family, all else within each task. Each filter learns from what the ones before let through, and from what
    people kept, and scores all.

    Args:
        embedding: of the same sound episodes in the same order, if it is there already.
        decisions: of people: they win, and what they dropped is not learnt from.

    Returns:
        One row an episode in order of id, with :data:`qc.table.COLUMNS`.

    Raises:
        QcError: if two episodes share an id, the embedding is of others, or a decision does not fit.
    """
    settings = settings or Settings()
    given = episodes.episodes if isinstance(episodes, EpisodeSet) else tuple(episodes)
    ids = [e.id for e in given]
    if twice := sorted({i for i in ids if ids.count(i) > 1}) if len(set(ids)) < len(ids) else []:
        raise QcError(f"{twice[0]}: more than one episode has this id; assess runs with different seeds together")
    cases = [_Case(e) for e in given]
    _judge_rows(cases)
    sound = [c for c in cases if c.episode.sound]
    embedding = embedding or embed([c.episode for c in sound], settings.points)
    if embedding.ids != tuple(c.episode.id for c in sound):
        raise QcError("the embedding is of other episodes than those to assess; embed them again")
    judge = _Judge(sound, settings, decisions or {})
    with threadpool_limits(1, "blas"):  # matrices so small that more threads would only wait for each other
        judge.judge(embedding)
    table = make_table(_row(case) for case in sorted(cases, key=lambda c: c.episode.id))
    return apply_decisions(table, decisions or {})


def _judge_rows(cases: Sequence[_Case]) -> None:
    for case in cases:
        if not case.episode.succeeded:
            case.charge(DROP, OUTCOME, f"failed: {case.episode.reason or 'no reason is given'}")
        for finding in case.episode.findings:
            if finding.harmful:
                case.charge(DROP, INTEGRITY, str(finding))


class _Judge:
    """The filters at work; ``normal`` are the episodes that the next filter learns from."""

    def __init__(self, cases: Sequence[_Case], settings: Settings, decisions: Decisions) -> None:
        self.cases, self.settings = cases, settings
        self.episodes = [c.episode for c in cases]
        said = [decisions.get(c.episode.content_hash) for c in cases]
        self.kept = np.array([bool(d and d.verdict == KEEP) for d in said], dtype=bool)
        self.normal = np.array([c.open and not (d and d.verdict == DROP) for c, d in zip(cases, said, strict=True)])
        self.normal = self.normal.astype(bool)

    def judge(self, embedding: Embedding) -> None:
        """Let every filter judge."""
        self.duplicates()
        for rows in self.groups(embedding.tasks):
            self.motion(rows)
        by_task = self.settings.within == "task"
        ways = self.ways(np.array([e.task if by_task else e.family for e in self.episodes], dtype=object))
        z = embedding.standardise(ways, self.normal)
        for rows in self.groups(ways):
            self.distance(rows, z, embedding)

    def ways(self, within: np.ndarray) -> np.ndarray:
        """Labels (n,) of the same label and way to take hold; those that do so in another way than most are told."""
        way = ways_to_take_hold(self.episodes, within)
        for i in np.flatnonzero(way):
            same = within == within[i]
            told = f"{(way[same] == way[i]).sum()} of {same.sum()} take hold with the hand turned as here, not as most"
            self.cases[i].sentences.append(told)
        return np.array([f"{label} {number}" for label, number in zip(within, way, strict=True)], dtype=object)

    def groups(self, labels: np.ndarray) -> list[np.ndarray]:
        """Indices of the episodes whose motion is judged, by label (n,)."""
        labels = np.where([c.open for c in self.cases], labels, "")
        return [np.flatnonzero(labels == name) for name in sorted(set(labels) - {""})]

    def duplicates(self) -> None:
        """Equal motion, over all tasks and outcomes."""
        episodes = self.episodes
        duplicates = DuplicatesFilter().fit(episodes)
        outlier, conflict = self._score(duplicates, episodes, np.arange(len(episodes))), duplicates.conflicts(episodes)
        for i in np.flatnonzero(outlier | conflict):
            if self.cases[i].open:
                self.cases[i].charge(DROP if outlier[i] else REVIEW, duplicates.name, duplicates.explain(i).sentence)
        self._forget(np.arange(len(episodes)), outlier | conflict)

    def motion(self, rows: np.ndarray) -> None:
        """What each filter says of the motion in one task."""
        s = self.settings
        episodes = tuple(self.cases[i].episode for i in rows)
        chance: Mapping[str, Any] = {"false_alarm": s.false_alarm, "seed": s.seed}
        lengths = np.array([e.length for e in without_loops(episodes)])
        for i, loops in zip(rows, find_loops(episodes), strict=True):
            told = [f"rows {start} to {end - 1} lead back to {phase}: not compared" for phase, start, end in loops]
            self.cases[i].sentences += told
        length = LengthFilter(s.length_min_episodes, s.length_floor, **chance)
        far = length.fit(lengths, reference=self.normal[rows]).predict(lengths) == OUTLIER
        several = far & (lengths > np.median(lengths))  # what was run together would make copies of its parts
        self._judge(NearDuplicatesFilter(s.copy_distance), episodes, rows, s.copies_share, leave_out=several)
        self._judge_idle(episodes, rows)
        self._judge(length, lengths, rows)
        for kind in (JitterFilter, SpikesFilter, ReleaseFilter, EndPoseFilter):
            self._judge(kind(s.feature_min_episodes, **chance), episodes, rows)
        self._judge(PhasesFilter(s.feature_min_episodes), episodes, rows, share=0.0)

    def distance(self, rows: np.ndarray, z: np.ndarray, embedding: Embedding) -> None:
        """Mahalanobis distance, and neighbours for what it does not see; never both, for a lone outlier is far too."""
        s, judged = self.settings, np.zeros(len(rows), dtype=bool)
        mine, projection = z[rows], None
        for kind, share in ((MahalanobisFilter, s.minority_share), (NeighboursFilter, 0.0)):
            detector = kind(
                components=s.components,
                min_episodes=s.distance_min_episodes,
                false_alarm=s.false_alarm,
                seed=s.seed,
                groups=embedding.groups,
                columns=embedding.columns,
            )
            detector.fit(mine, reference=self.normal[rows], projection=projection)
            projection = None if detector.not_assessed_ else detector.projection_
            outlier = self._score(detector, mine, rows)
            self._charge(detector, rows, outlier & ~judged, outlier.mean() > share)
            judged |= outlier

    def _judge(
        self,
        detector: Filter,
        x: Any,
        rows: np.ndarray,
        share: float | None = None,
        leave_out: np.ndarray | bool = False,
    ) -> None:
        """Charge outliers; if more than ``share`` of the task are, a person is asked: it may be a way to do it.

        Args:
            leave_out: (len(rows),) bool, those not to learn from besides those already found.
        """
        detector.fit(x, reference=self.normal[rows] & ~np.asarray(leave_out))
        outlier = self._score(detector, x, rows)
        doubtful = outlier.mean() > (self.settings.minority_share if share is None else share)
        self._charge(detector, rows, outlier, doubtful)
        if not doubtful:
            self._forget(rows, outlier)

    def _judge_idle(self, episodes: Sequence[Episode], rows: np.ndarray) -> None:
        s = self.settings
        idle = IdleFilter(s.idle_rows, s.idle_speed, s.excused_before, s.excused_after)
        outlier = self._score(idle.fit(episodes, reference=self.normal[rows]), episodes, rows)
        doubtful = bool(outlier.mean() > s.idle_share)
        self._charge(idle, rows, outlier, doubtful)
        for i, row in enumerate(rows):
            if not idle.not_assessed_ and not outlier[i] and idle.streaks_[i]:
                self.cases[row].sentences.append(idle.explain(i).sentence)
            if outlier[i] and doubtful:
                told = f"{outlier.sum()} of {len(rows)} episodes of {episodes[i].task} are idle"
                self.cases[row].sentences.append(f"warning: {told}, so the rule may not fit the task")
        if not doubtful:
            self._forget(rows, outlier)

    def _charge(self, detector: Filter, rows: np.ndarray, outlier: np.ndarray, doubtful: bool) -> None:
        for i in np.flatnonzero(outlier):
            self.cases[rows[i]].charge(REVIEW if doubtful else DROP, detector.name, detector.explain(i).sentence)

    def _forget(self, rows: np.ndarray, outlier: np.ndarray) -> None:
        self.normal[rows] &= ~outlier | self.kept[rows]

    def _score(self, detector: Filter, x: Any, rows: np.ndarray) -> np.ndarray:
        """Note score and cutoff of each case; returns the mask of outliers."""
        scores = detector.score_samples(x)
        for row, score in zip(rows, scores, strict=True):
            case = self.cases[row]
            if case.open:
                case.numbers[f"{detector.name}_score"] = float(score)
                case.numbers[f"{detector.name}_cutoff"] = detector.cutoff_
                if np.isnan(score):
                    case.not_assessed[detector.name] = detector.not_assessed_ or "nothing normal to compare with"
        return np.asarray(scores < detector.cutoff_)


def _row(case: _Case) -> dict[str, Any]:
    episode, verdict = case.episode, case.verdict()
    return {
        "episode_index": episode.index,
        "episode_id": episode.id,
        "task": episode.task,
        "content_hash": episode.content_hash,
        "verdict": verdict,
        "reasons": case.reasons(),
        "explanation": "; ".join(dict.fromkeys(case.told())),
        "length": episode.length,
        "outcome": episode.outcome,
        "failure": episode.reason if not episode.succeeded else "",
        "judged": verdict,
        "decided_by": "",
        "decided_why": "",
        "env_index": episode.env_index,
        "file": episode.file,
        **case.numbers,
        "not_assessed_by": list(case.not_assessed),
    }
