"""Whether rows are what they say they are: found before any motion is judged.

Kinds of :class:`qc.episodes.Finding`: ``footer``, ``files`` and ``columns`` (what cannot be read), ``counts``
(declared against found), ``indices`` (gaps, repeats, positions), ``length``, ``tasks``, ``outcome``, ``short`` (too few
rows to move in), ``not_finite``, ``size`` (numbers beyond reason), ``no_rotation``, ``timestamps`` (backwards or with a
gap), ``fps``, ``constant`` and ``undriven`` (dimensions that never move), ``video_missing``, ``video_unreadable``,
``video_frames`` and ``first_frame`` (:mod:`qc.readers.video`), ``run`` (``run.json``).
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from qc.dimensions import check_size, check_still
from qc.episodes import EEF_QUAT, TIME, Episode, Finding
from qc.rows import Note, Rows, Spans

LEAST_ROWS = 3
"""Fewer have no velocity that changes: nothing can be said about their motion."""

_LATE = 1.5
_FPS_TOLERANCE = 0.01


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

    for index, span in spans:
        if (length := span.stop - span.start) < LEAST_ROWS:
            note(index, "short", too_short(length), span.start, 0)
    _check_numbers(rows, spans, names, note)
    check_size(rows, spans, names, note)
    counter = rows.columns["frame_index"]
    for index, span in spans:
        wrong = np.flatnonzero(counter[span] != np.arange(span.stop - span.start))
        if len(wrong):
            value = counter[span][wrong[0]]
            told = f"frame_index is {value if value >= 0 else 'missing'} at row {wrong[0]}"
            note(index, "indices", told, span.start, int(wrong[0]))
    dataset = _check_time(rows, spans, fps, note) if TIME in rows.columns else []
    return by_episode, [*dataset, *check_still(rows, spans, names, note)]


def too_short(length: int) -> str:
    """What is wrong with an episode of so few rows, in words."""
    return f"has {length} rows, and no motion can be judged in fewer than {LEAST_ROWS}"


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


def _check_numbers(rows: Rows, spans: Spans, names: Mapping[str, Sequence[str]], note: Note) -> None:
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


def _check_time(rows: Rows, spans: Spans, fps: float, note: Note) -> list[Finding]:
    steps = []
    for index, span in spans:
        time = rows.columns[TIME][span].astype(np.float64)
        if len(bad := np.flatnonzero(~np.isfinite(time))):
            note(index, "not_finite", f"{TIME}: {len(bad)} numbers are NaN or infinite", span.start, int(bad[0]))
            continue
        step = np.diff(time)
        if not len(step):
            continue
        steps.append(float(np.median(step)))
        if len(back := np.flatnonzero(step <= 0)):
            told = f"time stands still or goes back by {-step[back[0]]:.3f} s"
            note(index, "timestamps", told, span.start, int(back[0]) + 1)
        if len(late := np.flatnonzero(step > _LATE / fps)):
            told = f"{len(late)} gaps" if len(late) > 1 else "a gap"
            note(index, "timestamps", f"{told} in time, the first of {step[late[0]]:.3f} s at {fps:g} frames a second",
                 span.start, int(late[0]) + 1)  # fmt: skip
    if steps and abs((usual := float(np.median(steps))) * fps - 1) > _FPS_TOLERANCE:
        told = f"fps is {fps:g}, but timestamps are {usual:.4f} s apart; correct one of them"
        return [Finding("fps", told, "meta/info.json")]
    return []
