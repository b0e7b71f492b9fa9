"""Reader of LeRobot datasets, versions 3.0, 2.1 and 2.0, from their parquet files alone: no video is decoded."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

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
from qc.integrity import Rows, check_counts, check_rows
from qc.readers.columns import to_array
from qc.readers.lerobot_meta import Meta, read_meta

_POSES: Mapping[str, int] = {EEF_POS: 3, EEF_QUAT: 4, HELD_POSE: 7, FIXED_POSE: 7}
_BOOKKEEPING = ("episode_index", "frame_index", "index", "task_index", TIME)
_PHASE = "phase"


def read_lerobot(root: Path | str) -> EpisodeSet:
    """Read a dataset folder.

    What is wrong with it becomes :class:`Finding` entries: those about an episode's rows are with the episode too.

    Raises:
        QcError: if there is no dataset, its version is not known, or it holds neither state nor action.
    """
    root = Path(root)
    meta = read_meta(root)
    wanted = _columns(meta, root)
    rows, findings = _read_rows(root, wanted)
    findings += check_counts(meta, rows)
    if any(finding.fatal for finding in findings):
        return EpisodeSet((), findings=tuple(findings), fps=meta.fps)
    of_episode, of_dataset = check_rows(rows, {name: meta.names(parts) for name, parts in wanted.items()}, meta.fps)
    episodes = _episodes(meta, rows, wanted)
    named = [(e, [replace(f, episode=e.id) for f in of_episode.get(e.index, ())]) for e in episodes]
    return EpisodeSet(
        tuple(replace(e, findings=tuple(mine)) for e, mine in named),
        findings=(*findings, *of_dataset, *(f for _, mine in named for f in mine)),
        fps=meta.fps,
        videos=meta.videos([e.id for e in episodes]),
    )


def _columns(meta: Meta, root: Path) -> dict[str, tuple[str, ...]]:
    """What is read as what: most of the time a column by its own name."""
    vectors = meta.vectors()
    found: dict[str, tuple[str, ...]] = {}
    for name in (STATE, ACTION):
        parts = (name,) if name in vectors else tuple(v for v in vectors if v.startswith(f"{name}."))
        if parts:
            found[name] = parts
    if not found:
        raise QcError(f"{root}: has neither {STATE} nor {ACTION}, only {', '.join(meta.features)}; nothing to judge")
    found |= {name: (name,) for name, size in _POSES.items() if meta.size(name) == size}
    if not {EEF_POS, EEF_QUAT} <= set(found):
        found = {name: parts for name, parts in found.items() if name not in (EEF_POS, EEF_QUAT)}
    return found


def _read_rows(root: Path, wanted: Mapping[str, Sequence[str]]) -> tuple[Rows, list[Finding]]:
    names = [part for parts in wanted.values() for part in parts]
    tables, files, findings = [], [], []
    for path in sorted(root.glob("data/*/*.parquet")):
        file = path.relative_to(root).as_posix()
        try:
            reader = pq.ParquetFile(path, pre_buffer=False)
            there = set(reader.schema_arrow.names)
            if absent := [name for name in (*names, *_BOOKKEEPING[:2]) if name not in there]:
                findings.append(Finding("columns", f"column {', '.join(absent)} is missing", file, fatal=True))
                continue
            tables.append(reader.read(columns=[n for n in (*names, *_BOOKKEEPING, _PHASE) if n in there]))
            files.append(file)
        except (OSError, pa.ArrowException) as error:
            told = "not finalized: its footer is missing; finalize or recover the recording, or fetch the file again"
            why = " ".join(str(error).split())
            footer = "magic bytes" in why or "footer" in why.lower() or "too small" in why
            findings.append(Finding("footer", told if footer else why, file, fatal=True))
    if not tables:
        if not findings:
            findings.append(Finding("files", "there is no data file; fetch data/ as well", "data", fatal=True))
        return Rows({}, np.zeros(0, np.int64), ()), findings
    columns = {}
    for name, parts in wanted.items():
        try:
            joined = [np.hstack([np.atleast_2d(to_array(t[p]).T).T for p in parts]) for t in tables]
            columns[name] = np.concatenate(joined).astype(np.float32, copy=False)
        except ValueError as error:
            findings.append(Finding("columns", f"{name}: {error}", files[0], fatal=True))
    for name in (*_BOOKKEEPING, _PHASE):
        if all(name in t.column_names for t in tables):
            columns[name] = np.concatenate([to_array(t[name]) for t in tables])
    file_of_row = np.repeat(np.arange(len(tables)), [len(t) for t in tables])
    return Rows(columns, file_of_row, tuple(files)), findings


def _episodes(meta: Meta, rows: Rows, wanted: Mapping[str, Sequence[str]]) -> list[Episode]:
    names = {name: meta.names(wanted[name]) for name in (STATE, ACTION) if name in wanted}
    layout = find_layout(names, rows.columns)
    described = {int(told["episode_index"]): told for told in meta.episodes.to_dict("records")}
    episodes = []
    for index, span in rows.spans():
        told = described[index]
        frames = {name: rows.columns[name][span] for name in (*wanted, TIME) if name in rows.columns}
        task = _text(told, "task_id") or meta.task_of(told, rows.columns, span)
        outcome = _text(told, "outcome") or "success"
        episodes.append(
            Episode(
                id=_text(told, "episode_id") or f"episode_{index:06d}",
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
                file=rows.files[rows.file_of_row[span.start]],
            )
        )
    return identify(episodes)


def _text(told: Mapping[Any, Any], name: str) -> str:
    value = told.get(name)
    return value if isinstance(value, str) else ""


def _number(told: Mapping[Any, Any], name: str) -> int | None:
    value = told.get(name)
    return int(value) if isinstance(value, int | float) and value == value else None


def _phases(told: Mapping[Any, Any], columns: Mapping[str, np.ndarray], span: slice) -> tuple[Mapping[str, Any], ...]:
    names = told.get("phases")
    if names is None or _PHASE not in columns:
        return ()
    phase = columns[_PHASE][span].astype(np.int64)
    edges = np.r_[0, np.flatnonzero(np.diff(phase)) + 1, len(phase)]
    return tuple(
        {"phase": str(names[phase[a]]) if 0 <= phase[a] < len(names) else str(phase[a]), "start": int(a), "end": int(b)}
        for a, b in pairwise(edges)
    )
