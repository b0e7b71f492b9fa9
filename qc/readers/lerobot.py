"""Reader of LeRobot datasets, versions 3.0, 2.1 and 2.0, from their parquet files alone: no video is decoded."""

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from qc.declared import check_counts, check_labels
from qc.episodes import (
    ACTION,
    EEF_POS,
    EEF_QUAT,
    FIXED_POSE,
    HELD_POSE,
    STATE,
    TIME,
    Episode,
    EpisodeSet,
    Finding,
    find_layout,
)
from qc.errors import QcError
from qc.identity import identify
from qc.integrity import check_rows, too_short
from qc.readers.columns import UNREADABLE, BadRowError, list_files, to_array, to_integers, why_unreadable
from qc.readers.lerobot_info import Info
from qc.readers.lerobot_meta import Meta, read_meta
from qc.rows import Rows

_POSES: Mapping[str, int] = {EEF_POS: 3, EEF_QUAT: 4, HELD_POSE: 7, FIXED_POSE: 7}
_COUNTERS = ("episode_index", "frame_index")
_NUMBERED = ("index", "task_index")
_PHASE = "phase"
_AGAIN = "write the file again, or fetch it again"


def read_lerobot(root: Path | str, *, videos: bool = False) -> EpisodeSet:
    """Read a dataset folder.

    What is wrong with it becomes :class:`Finding` entries: those about an episode's rows are with the episode too.

    Args:
        videos: a declared video that is not there is a finding; otherwise it may be left out.

    Raises:
        QcError: if there is no dataset, its metadata cannot be used, or it holds neither state nor action.
        OSError: if a folder may not be read.
    """
    root = Path(root)
    meta = read_meta(root)
    wanted = _columns(meta.info, root)
    rows, findings = _read_rows(root, meta, wanted)
    findings = findings or check_counts(meta, rows)
    if findings:
        return EpisodeSet((), findings=tuple(findings), fps=meta.info.fps)
    names = {name: meta.info.names(parts) for name, parts in wanted.items()}
    of_episode, of_dataset = check_rows(rows, names, meta.info.fps)
    episodes = _episodes(meta, rows, wanted)
    places, absent = meta.videos({e.index: e.id for e in episodes})
    labels = check_labels(meta, rows)
    checked = []
    for e in episodes:
        mine = [replace(f, episode=e.id) for f in (*of_episode.get(e.index, ()), *labels.get(e.index, ()))]
        mine += [f for f in absent if f.episode == e.id] if videos else []
        checked.append(replace(e, findings=(*e.findings, *mine)))
    return EpisodeSet(
        tuple(checked),
        findings=(*of_dataset, *(f for e in checked for f in e.findings)),
        fps=meta.info.fps,
        videos=places,
    )


def _columns(info: Info, root: Path) -> dict[str, tuple[str, ...]]:
    """What is read as what: most of the time a column by its own name."""
    vectors = info.vectors()
    found: dict[str, tuple[str, ...]] = {}
    for name in (STATE, ACTION):
        parts = (name,) if name in vectors else tuple(v for v in vectors if v.startswith(f"{name}."))
        if parts:
            found[name] = parts
    if not found:
        raise QcError(f"{root}: has neither {STATE} nor {ACTION}, only {', '.join(info.features)}; nothing to judge")
    found |= {name: (name,) for name, size in _POSES.items() if info.size(name) == size}
    if not {EEF_POS, EEF_QUAT} <= set(found):
        found = {name: parts for name, parts in found.items() if name not in (EEF_POS, EEF_QUAT)}
    return found


def _read_rows(root: Path, meta: Meta, wanted: Mapping[str, Sequence[str]]) -> tuple[Rows, list[Finding]]:
    needed = [*(part for parts in wanted.values() for part in parts), *_COUNTERS]
    welcome = (*_NUMBERED, TIME, *([_PHASE] if "phases" in meta.episodes else []))
    read, files, findings = [], [], []
    for path in list_files(root / "data"):
        file = path.relative_to(root).as_posix()
        try:
            reader = pq.ParquetFile(path, pre_buffer=False)
            there = set(reader.schema_arrow.names)
            if absent := [name for name in needed if name not in there]:
                findings.append(
                    Finding("columns", f"column {', '.join(absent)} is missing; {_AGAIN}", file, fatal=True)
                )
                continue
            table = reader.read(columns=[n for n in (*needed, *welcome) if n in there])
        except UNREADABLE as error:
            findings.append(Finding("footer", why_unreadable(error), file, fatal=True))
            continue
        if not len(table):
            continue
        try:
            read.append(_arrays(table, meta.info, wanted))
            files.append(file)
        except ValueError as error:
            findings.append(Finding("columns", f"{error}; {_AGAIN}", file, fatal=True))
    if not read and not findings and meta.info.frames:
        findings.append(Finding("files", "there is no row in any data file; fetch data/ as well", "data", fatal=True))
    if not read:
        empty = {name: np.zeros((0, sum(map(meta.info.size, parts))), np.float32) for name, parts in wanted.items()}
        return Rows({name: np.zeros(0, np.int64) for name in _COUNTERS} | empty, np.zeros(0, np.int64), ()), findings
    shared = [name for name in read[0] if all(name in columns for columns in read)]
    columns = {name: np.concatenate([each[name] for each in read]) for name in shared}
    return Rows(
        columns, np.repeat(np.arange(len(read)), [len(each[_COUNTERS[0]]) for each in read]), tuple(files)
    ), findings


def _arrays(table: pa.Table, info: Info, wanted: Mapping[str, Sequence[str]]) -> dict[str, np.ndarray]:
    """Columns of a file: vectors (rows, size) float32, counters (rows,) int64, time (rows,) in its own type."""
    columns: dict[str, np.ndarray] = {}
    for name in (*_COUNTERS, *_NUMBERED):
        if name in table.column_names:
            with _naming(name, columns):
                columns[name] = to_integers(table[name])
    if TIME in table.column_names:
        with _naming(TIME, columns):
            columns[TIME] = to_array(table[TIME], 1).reshape(-1)
    if _PHASE in table.column_names and pa.types.is_integer(table.schema.field(_PHASE).type):
        columns[_PHASE] = to_integers(table[_PHASE])
    for name, parts in wanted.items():
        joined = []
        for part in parts:
            with _naming(part, columns):
                joined.append(to_array(table[part], size := info.size(part)).reshape(len(table), size))
        with np.errstate(over="ignore"):  # what float32 cannot hold is infinite, and found to be
            columns[name] = np.hstack(joined).astype(np.float32, copy=False)
    return columns


@contextmanager
def _naming(name: str, columns: Mapping[str, np.ndarray]) -> Iterator[None]:
    """Name the column that cannot be used, and the episode if the fault is a row's."""
    try:
        yield
    except BadRowError as error:
        where = ", ".join(f"{counter} {columns[counter][error.row]}" for counter in _COUNTERS if counter in columns)
        raise ValueError(f"{name}: {error} as meta/info.json declares ({where})") from None
    except ValueError as error:
        raise ValueError(f"{name} {error}") from None


def _episodes(meta: Meta, rows: Rows, wanted: Mapping[str, Sequence[str]]) -> list[Episode]:
    names = {name: meta.info.names(wanted[name]) for name in (STATE, ACTION) if name in wanted}
    layout = find_layout(names, rows.columns)
    described = {int(told["episode_index"]): told for told in meta.episodes.to_dict("records")}
    spans, end = dict(rows.spans()), len(rows.file_of_row)
    episodes = []
    for index, told in described.items():
        span = spans.get(index, slice(end, end))
        frames = {name: rows.columns[name][span] for name in (*wanted, TIME) if name in rows.columns}
        task = _text(told, "task_id") or meta.task_of(told, rows.columns.get("task_index", np.zeros(0))[span])
        empty = Finding("short", too_short(0), meta.where, _id(told), harmful=True)
        outcome = _text(told, "outcome") or "success"
        episodes.append(
            Episode(
                id=_id(told),
                task=task,
                outcome=outcome if outcome in ("success", "failure") else "success",
                reason=_text(told, "reason"),
                length=span.stop - span.start,
                content_hash=_text(told, "content_hash"),
                frames=frames,
                phase_spans=_phases(told, rows.columns, span),
                layout=layout,
                index=index,
                env_index=_number(told, "env_index"),
                file=rows.file(span.start) if span.start < end else "",
                findings=() if span.stop > span.start else (empty,),
            )
        )
    return identify(episodes)


def _id(told: Mapping[Any, Any]) -> str:
    return _text(told, "episode_id") or f"episode_{int(told['episode_index']):06d}"


def _text(told: Mapping[Any, Any], name: str) -> str:
    value = told.get(name)
    return value if isinstance(value, str) else ""


def _number(told: Mapping[Any, Any], name: str) -> int | None:
    value = told.get(name)
    return int(value) if isinstance(value, int | float) and math.isfinite(value) else None


def _phases(told: Mapping[Any, Any], columns: Mapping[str, np.ndarray], span: slice) -> tuple[Mapping[str, Any], ...]:
    names = told.get("phases")
    if not isinstance(names, list | np.ndarray) or _PHASE not in columns:
        return ()
    phase = columns[_PHASE][span]
    edges = np.r_[0, np.flatnonzero(np.diff(phase)) + 1, len(phase)]
    return tuple(
        {"phase": str(names[phase[a]]) if 0 <= phase[a] < len(names) else str(phase[a]), "start": int(a), "end": int(b)}
        for a, b in pairwise(edges)
    )
