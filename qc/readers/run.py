"""Reader of a run folder, ``episodes/<task>/<id>/{episode.json, frames.parquet}``."""

import hashlib
import json
from collections.abc import Mapping
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
    Damaged,
    Episode,
    EpisodeSet,
    Finding,
    Unrecorded,
)
from qc.errors import QcError
from qc.readers.columns import BadRowError, to_array

_NEEDED: Mapping[str, int] = {STATE: 8, ACTION: 8, EEF_POS: 3, EEF_QUAT: 4}
_WELCOME: Mapping[str, int] = {HELD_POSE: 7, FIXED_POSE: 7}
_AXES = 7


def is_run(root: Path) -> bool:
    """Whether a folder is a run's."""
    return (root / "run.json").is_file()


def read_run(root: Path | str) -> EpisodeSet:
    """Read the episodes of a run folder and verify their content hashes.

    A folder that is incomplete, unreadable or at odds with its own description becomes a :class:`Damaged` entry.

    Raises:
        QcError: if ``root`` holds no run, or the note of an attempt that hangs the simulator is not readable.
        OSError: if a folder may not be read.
    """
    root = Path(root)
    if not is_run(root):
        raise QcError(f"{root}: no run here (run.json is missing); make one with `demomill record`")
    episodes, damaged = [], []
    for folder in _folders(root / "episodes"):
        try:
            episodes.append(_read_episode(folder, root))
        except KeyError as error:
            damaged.append(Damaged(folder.name, folder.parent.name, f"{error.args[0]} is missing"))
        except (
            OSError,
            pa.ArrowException,
            ArithmeticError,
            AttributeError,
            LookupError,
            TypeError,
            ValueError,
        ) as error:
            damaged.append(Damaged(folder.name, folder.parent.name, " ".join(str(error).split())))
    videos: dict[str, dict[str, tuple[str, float, float]]] = {}
    for folder in sorted({(root / e.file).parent for e in episodes}):
        for video in sorted(folder.glob("*.*.mp4")):
            videos.setdefault(video.name.split(".")[-2], {})[folder.name] = (str(video), 0.0, float("inf"))
    hung = tuple(_read_note(path) for path in sorted(root.glob("quarantine/seeds/*.json")))
    ordered = tuple(sorted(episodes, key=lambda e: e.id))
    return EpisodeSet(ordered, tuple(damaged), hung, _check_run(root / "run.json"), videos=videos)


def content_hash(meta: Mapping[str, Any], columns: Mapping[str, np.ndarray]) -> str:
    """Content hash of an episode, as the recorder defines it: labels and draws, then every column's type and bytes.

    Args:
        meta: content of ``episode.json``.
        columns: every column of ``frames.parquet``.
    """
    identity = {name: meta[name] for name in ("task", "seed", "draws", "outcome", "reason", "phases")}
    digest = hashlib.sha256(json.dumps(identity, sort_keys=True, separators=(",", ":"), allow_nan=False).encode())
    bodies = {"key": "bodies", "dtype": "float32", "names": [None] * _AXES * len(meta["bodies"])}
    for feature in (*meta["features"], *([bodies] if meta["bodies"] else [])):
        shape = (len(feature["names"]),) if feature["names"] else ()
        values = np.ascontiguousarray(columns[feature["key"]], dtype=feature["dtype"])
        digest.update(f"{feature['key']}:{feature['dtype']}:{shape}".encode())
        digest.update(values.tobytes())
    return digest.hexdigest()


def _folders(within: Path) -> list[Path]:
    """Folder of every episode, in order."""
    tasks = [path for path in within.iterdir() if path.is_dir()] if within.is_dir() else []
    return sorted(path for task in tasks for path in task.iterdir() if path.is_dir())


def _check_run(path: Path) -> tuple[Finding, ...]:
    try:
        told = json.loads(path.read_bytes())
        why = "" if isinstance(told, dict) else "holds no object"
    except (OSError, ValueError) as error:
        why = str(error)
    told = f"not readable ({why}), so nothing tells how the run was recorded; restore it before recording goes on"
    return (Finding("run", told, path.name),) if why else ()


def _read_note(path: Path) -> Unrecorded:
    try:
        note = json.loads(path.read_bytes())
        return Unrecorded(str(note["id"]), str(note["task"]), str(note["reason"]))
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise QcError(
            f"{path}: not readable ({error}); delete it, then `demomill record` tries this attempt again"
        ) from None


def _read_episode(folder: Path, root: Path) -> Episode:
    for name in ("episode.json", "frames.parquet"):
        if not (folder / name).is_file():
            raise ValueError(f"{name} is missing")
    meta = json.loads((folder / "episode.json").read_bytes())
    if not isinstance(meta, dict):
        raise TypeError("episode.json holds no object")
    if (meta["id"], meta["task"]) != (folder.name, folder.parent.name):
        raise ValueError(f"episode.json describes {meta['task']}/{meta['id']}")
    if meta["outcome"] not in ("success", "failure"):
        raise ValueError(f"outcome is {meta['outcome']!r}")
    _check_types(meta)
    columns = _read_columns(folder / "frames.parquet")
    rows = len(columns[STATE])
    if rows != meta["length"] or rows == 0:
        raise ValueError(f"frames.parquet has {rows} rows, episode.json says {meta['length']}")
    found = content_hash(meta, columns)
    if found != meta["content_hash"]:
        raise ValueError("not what was committed, by its content hash")
    kept = (*_NEEDED, *(name for name in _WELCOME if name in columns))
    return Episode(
        id=meta["id"],
        task=meta["task"],
        outcome=meta["outcome"],
        reason=meta["reason"] or "",
        length=rows,
        content_hash=found,
        frames={name: columns[name].copy() for name in kept},  # a view would keep every body's poses in memory
        phase_spans=tuple(meta["phase_spans"]),
        index=int(meta.get("attempt", 0)),
        env_index=meta.get("env_index"),
        file=str((folder / "frames.parquet").relative_to(root)),
    )


def _check_types(meta: Mapping[str, Any]) -> None:
    """What later steps count with; the content hash covers the rest."""
    for name in ("attempt", "env_index"):
        if type(meta.get(name, 0)) is not int and (name == "attempt" or meta[name] is not None):
            raise ValueError(f"{name} is {meta[name]!r}, not a whole number")
    if not isinstance(meta["reason"], str | None):
        raise ValueError(f"reason is {meta['reason']!r}, not a text")
    spans = meta["phase_spans"]
    if not isinstance(spans, list) or not all(
        isinstance(span, dict) and "phase" in span and all(type(span.get(edge)) is int for edge in ("start", "end"))
        for span in spans
    ):
        raise ValueError("phase_spans is no list of phase, start and end")


def _read_columns(path: Path) -> dict[str, np.ndarray]:
    # One small file after another: a thread pool and read-ahead cost more than they save.
    table = pq.ParquetFile(path, pre_buffer=False).read(use_threads=False)
    if absent := [name for name in _NEEDED if name not in table.column_names]:
        raise ValueError(f"column {', '.join(absent)} is missing")
    sizes = {**_NEEDED, **_WELCOME}
    columns = {}
    for name in table.column_names:
        try:
            columns[name] = to_array(table[name], sizes.get(name))
        except BadRowError as error:
            raise ValueError(f"{name}: {error}") from None
        if name in sizes and len(bad := np.argwhere(~np.isfinite(columns[name]))):
            raise ValueError(f"{name} is not finite at row {bad[0, 0]}")
    if len(short := np.flatnonzero(np.linalg.norm(columns[EEF_QUAT], axis=1) < 0.5)):
        raise ValueError(f"{EEF_QUAT} is no rotation at row {short[0]}")
    return columns
