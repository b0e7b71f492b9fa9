"""Whether files and rows are what they say they are: found before any motion is judged.

Kinds of :class:`qc.episodes.Finding`: ``footer``, ``files`` and ``columns`` (what cannot be read), ``counts``
(declared against found), ``indices`` (gaps, repeats), ``length``, ``empty``, ``not_finite``, ``no_rotation``,
``timestamps`` (backwards or with a gap), ``fps``, ``constant`` and ``undriven`` (dimensions that never move),
``video_frames`` and ``first_frame`` (:mod:`qc.readers.video`).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

import numpy as np

from qc.episodes import ACTION, EEF_QUAT, STATE, TIME, Episode, Finding

if TYPE_CHECKING:
    from qc.readers.lerobot_meta import Meta

_LATE = 1.5
_FPS_TOLERANCE = 0.01
_USUAL = 0.9
_SHOWN = 5


_Spans = Sequence[tuple[int, slice]]


class _Note(Protocol):
    """Remembers a finding about an episode whose first row is ``row``."""

    def __call__(self, index: int, kind: str, told: str, row: int, frame: int, harmful: bool = True) -> None: ...


@dataclass(frozen=True)
class Rows:
    """All rows of a dataset, one under another, by column; and the file of each."""

    columns: Mapping[str, np.ndarray]
    file_of_row: np.ndarray
    files: tuple[str, ...]

    def spans(self) -> Iterator[tuple[int, slice]]:
        """Each stretch of rows with one episode index."""
        index = self.columns.get("episode_index", np.zeros(0, np.int64))
        edges = np.r_[0, np.flatnonzero(np.diff(index)) + 1, len(index)] if len(index) else np.zeros(1, np.int64)
        for a, b in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
            yield int(index[a]), slice(a, b)

    def file(self, row: int) -> str:
        """File of a row."""
        return self.files[self.file_of_row[row]]


def check_counts(meta: "Meta", rows: Rows) -> list[Finding]:
    """What was declared against what was found: a difference means that rows and labels may not belong together."""
    if not rows.columns:
        return []
    spans = list(rows.spans())
    found = [index for index, _ in spans]
    total, findings = len(rows.columns["episode_index"]), []

    def fatal(kind: str, told: str, file: str = "") -> None:
        findings.append(Finding(kind, told, file, fatal=True))

    if twice := sorted({i for i in found if found.count(i) > 1}) if len(set(found)) < len(found) else []:
        fatal("indices", f"rows of episode {twice[0]} lie in more than one place ({_some(twice)}); write it again")
    known = set(meta.episodes.index.tolist())
    missing, extra = sorted(known - set(found)), sorted(set(found) - known)
    if len(set(found)) != meta.declared_episodes or missing or extra:
        told = f"{meta.declared_episodes} episodes declared, {len(known)} described, {len(set(found))} with rows"
        told += f"; without rows: {_some(missing)}" if missing else ""
        told += f"; not described: {_some(extra)}" if extra else ""
        fatal("counts", f"{told}; fetch the whole dataset, or finalize the recording", "meta/info.json")
    if total != meta.declared_frames:
        fatal("counts", f"{meta.declared_frames} frames declared, {total} found; fetch the whole dataset or finalize "
                        "the recording", "meta/info.json")  # fmt: skip
    gaps = sorted(set(range(max(known, default=-1) + 1)) - known)
    if gaps:
        fatal("indices", f"episode index jumps over {_some(gaps)}: readers look episodes up by position and would give "
                         "each later one another's video; number them again", "meta/episodes")  # fmt: skip
    for index, span in spans:
        declared = int(meta.episodes["length"].get(index, span.stop - span.start))
        if declared != span.stop - span.start:
            fatal("length", f"episode {index} has {span.stop - span.start} rows, its metadata say {declared}",
                  rows.file(span.start))  # fmt: skip
    return findings


def check_rows(
    rows: Rows, names: Mapping[str, Sequence[str]], fps: float
) -> tuple[dict[int, list[Finding]], list[Finding]]:
    """What is wrong with the rows of each episode, by its index, and with the dataset as a whole.

    Args:
        names: name of each dimension, by column of ``rows``.
    """
    by_episode: dict[int, list[Finding]] = {}
    spans = list(rows.spans())

    def note(index: int, kind: str, told: str, row: int, frame: int, harmful: bool = True) -> None:
        finding = Finding(kind, told, rows.file(row), frame=frame, harmful=harmful)
        by_episode.setdefault(index, []).append(finding)

    for name, dims in names.items():
        bad = ~np.isfinite(rows.columns[name])
        for index, span in spans if bad.any() else ():
            if len(where := np.argwhere(bad[span])):
                row, dim = where[0].tolist()
                note(index, "not_finite", f"{name}, {dims[dim]}: {bad[span].sum()} numbers are NaN or infinite",
                     span.start, row)  # fmt: skip
    if EEF_QUAT in rows.columns:
        short = np.linalg.norm(rows.columns[EEF_QUAT], axis=1) < 0.5
        for index, span in spans if short.any() else ():
            if len(where := np.flatnonzero(short[span])):
                note(index, "no_rotation", f"{EEF_QUAT} is no rotation", span.start, int(where[0]))
    counter = rows.columns["frame_index"]
    for index, span in spans:
        wrong = np.flatnonzero(counter[span] != np.arange(span.stop - span.start))
        if len(wrong):
            told = f"frame_index is {counter[span][wrong[0]]} at row {wrong[0]}"
            note(index, "indices", told, span.start, int(wrong[0]))
    dataset = _check_time(rows, spans, fps, note) if TIME in rows.columns else []
    return by_episode, [*dataset, *_check_still(rows, spans, names, note)]


def _check_time(rows: Rows, spans: _Spans, fps: float, note: _Note) -> list[Finding]:
    steps = []
    for index, span in spans:
        step = np.diff(rows.columns[TIME][span].astype(np.float64))
        if not len(step):
            continue
        steps.append(float(np.median(step)))
        if len(back := np.flatnonzero(step <= 0)):
            note(
                index,
                "timestamps",
                f"time stands still or goes back by {-step[back[0]]:.3f} s",
                span.start,
                int(back[0]) + 1,
            )
        if len(late := np.flatnonzero(step > _LATE / fps)):
            told = f"{len(late)} gaps" if len(late) > 1 else "a gap"
            note(index, "timestamps", f"{told} in time, the first of {step[late[0]]:.3f} s at {fps:g} frames a second",
                 span.start, int(late[0]) + 1)  # fmt: skip
    if steps and abs((usual := float(np.median(steps))) * fps - 1) > _FPS_TOLERANCE:
        return [
            Finding(
                "fps", f"fps is {fps:g}, but timestamps are {usual:.4f} s apart; correct one of them", "meta/info.json"
            )
        ]
    return []


def _check_still(rows: Rows, spans: _Spans, names: Mapping[str, Sequence[str]], note) -> list[Finding]:  # type: ignore[no-untyped-def]
    """Dimensions of state and action that never change, in the whole dataset or in one episode alone."""
    findings = []
    for name in (STATE, ACTION):
        if name not in names or not len(values := rows.columns[name]):
            continue
        starts = [span.start for _, span in spans]
        moves = np.maximum.reduceat(values, starts) != np.minimum.reduceat(values, starts)
        for dim, label in enumerate(names[name]):
            same = values[:, dim] == values[0, dim]
            if same.all():
                kind = "undriven" if values[0, dim] == 0 else "constant"
                told = f"{name}, {label} is {values[0, dim]:g} in every row: normalising by its deviation gives NaN"
                findings.append(Finding(kind, told))
            elif len(spans) >= _SHOWN and moves[:, dim].mean() >= _USUAL:
                for i in np.flatnonzero(~moves[:, dim]).tolist():
                    index, span = spans[i]
                    long = span.stop - span.start > 1
                    note(index, "undriven", f"{name}, {label} never changes, but does in the other episodes",
                         span.start, 0, harmful=long)  # fmt: skip
    return findings


def _some(indices: Sequence[int]) -> str:
    shown = ", ".join(map(str, indices[:_SHOWN]))
    return f"{shown} and {len(indices) - _SHOWN} more" if len(indices) > _SHOWN else shown


def check_episodes(episodes: Sequence[Episode], fps: float) -> list[Episode]:
    """The same episodes with what is wrong with their rows, as the reader of a file would have found it."""
    if not episodes:
        return []
    names = sorted(set.intersection(*(set(e.frames) for e in episodes)))
    lengths = [e.length for e in episodes]
    columns = {name: np.concatenate([e.frames[name] for e in episodes]) for name in names}
    columns["episode_index"] = np.repeat(np.arange(len(episodes)), lengths)
    columns["frame_index"] = np.concatenate([np.arange(n) for n in lengths])
    rows = Rows(columns, columns["episode_index"], tuple(e.file for e in episodes))
    layout = episodes[0].layout
    dims = {n: layout.names.get(n) or [str(i) for i in range(columns[n].shape[1])] for n in names if n != TIME}
    found, _ = check_rows(rows, dims, fps)
    return [
        replace(e, findings=(*e.findings, *(replace(f, episode=e.id) for f in found.get(i, ()))))
        for i, e in enumerate(episodes)
    ]
