"""What a dataset says of itself against its rows: a difference means that rows and labels may not belong together."""

import re
from collections import Counter
from collections.abc import Mapping
from itertools import pairwise
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

import numpy as np

from qc.episodes import Finding
from qc.rows import Rows, Spans, some

if TYPE_CHECKING:
    from qc.readers.lerobot_meta import Meta

_AGAIN = "write it again, or fetch it again"
_FILE_OF_ONE = re.compile(r"episode_(\d+)")


def check_counts(meta: "Meta", rows: Rows) -> list[Finding]:
    """Episodes, their lengths and their places: what is found is fatal, for nothing tells which side is right."""
    index = rows.columns["episode_index"]
    if len(none := np.flatnonzero(index < 0)):
        told = f"row {rows.row_in_file(none[0])} has no episode_index; {_AGAIN}"
        return [_fatal("indices", told, rows.file(none[0]))]
    spans = list(rows.spans())
    times = Counter(i for i, _ in spans)
    if twice := sorted(i for i, count in times.items() if count > 1):
        told = f"rows of episode {twice[0]} lie in more than one place ({some(twice)}); {_AGAIN}"
        return [_fatal("indices", told)]
    return [*_check_episodes(meta, rows, spans)] or [*_check_places(meta, rows, spans)]


def check_labels(meta: "Meta", rows: Rows) -> dict[int, list[Finding]]:
    """Tasks and outcomes that cannot be told, by index of the episode."""
    told = {int(of["episode_index"]): of for of in meta.episodes.to_dict("records")}
    found: dict[int, list[Finding]] = {}
    for index, of in told.items():
        if (outcome := of.get("outcome")) not in (None, "", "success", "failure") and outcome == outcome:
            why = f"outcome is {outcome!r}; correct it to success or failure"
            found.setdefault(index, []).append(Finding("outcome", why, meta.where, harmful=True))
    for index, span in rows.spans() if "task_index" in rows.columns else ():
        if why := _bad_task(meta, told[index], rows.columns["task_index"][span]):
            found.setdefault(index, []).append(Finding("tasks", why, rows.file(span.start), harmful=True))
    return found


def _check_episodes(meta: "Meta", rows: Rows, spans: Spans) -> list[Finding]:
    found, total = {index for index, _ in spans}, len(rows.file_of_row)
    lengths = dict(zip(meta.episodes.index.tolist(), meta.episodes["length"].tolist(), strict=True))
    known, findings = set(lengths), []
    empty = {index for index, length in lengths.items() if not length} - found
    if gaps := max(known, default=-1) + 1 - len(known):
        first = [i for a, b in pairwise([-1, *sorted(known)]) for i in range(a + 1, min(b, a + 7))]
        told = (f"episode index jumps over {some(first, gaps)}: readers look episodes up by position and would give "
                "each later one another's video; number them again")  # fmt: skip
        findings.append(_fatal("indices", told, meta.where))
    missing, extra = sorted(known - found - empty), sorted(found - known)
    if len(found | empty) != meta.info.episodes or missing or extra:
        told = f"{meta.info.episodes} episodes declared, {len(known)} described, {len(found)} with rows"
        told += f"; without rows: {some(missing)}" if missing else ""
        told += f"; not described: {some(extra)}" if extra else ""
        findings.append(
            _fatal("counts", f"{told}; fetch the whole dataset, or finalize the recording", "meta/info.json")
        )
    if total != meta.info.frames:
        told = f"{meta.info.frames} frames declared, {total} found; fetch the whole dataset, or finalize the recording"
        findings.append(_fatal("counts", told, "meta/info.json"))
    for index, span in spans:
        if lengths.get(index, length := span.stop - span.start) != length:
            told = f"episode {index} has {length} rows, its metadata say {lengths[index]}; fetch or record it again"
            findings.append(_fatal("length", told, rows.file(span.start)))
    return findings


def _check_places(meta: "Meta", rows: Rows, spans: Spans) -> list[Finding]:
    """Whatever readers look up by its position."""
    findings = []
    for index, span in spans:
        named = _FILE_OF_ONE.fullmatch(PurePath(file := rows.file(span.start)).stem)
        if named and int(named[1]) != index:
            findings.append(_fatal("files", f"holds episode {index}, where readers look for {int(named[1])}: "
                                   "files were swapped; rename it", file))  # fmt: skip
    if findings:
        return findings
    if "index" in rows.columns and len(
        wrong := np.flatnonzero(rows.columns["index"] != np.arange(len(rows.file_of_row)))
    ):
        row = int(wrong[0])
        value, episode = rows.columns["index"][row], rows.columns["episode_index"][row]
        told = (f"index is {value if value >= 0 else 'missing'} in episode {episode}, at row {row} of the dataset: "
                "readers look rows up by it; number them again from 0")  # fmt: skip
        findings.append(_fatal("indices", told, rows.file(row)))
    starts = dict(meta.episodes["dataset_from_index"]) if "dataset_from_index" in meta.episodes else {}
    for index, span in spans if starts else ():
        if starts[index] != span.start:
            told = (f"dataset_from_index of episode {index} is {starts[index]}, but its rows begin at {span.start}: "
                    "readers would give those of another; write meta/episodes again")  # fmt: skip
            findings.append(_fatal("indices", told, meta.where))
            break
    if meta.info.version >= (3, 0) and list(meta.tasks) != list(range(len(meta.tasks))):
        told = (f"task_index is {some(list(meta.tasks))}: readers look tasks up by position and would give another's "
                "text; sort the rows from 0")  # fmt: skip
        findings.append(_fatal("tasks", told, "meta/tasks.parquet"))
    return findings


def _bad_task(meta: "Meta", told: Mapping[Any, Any], given: np.ndarray) -> str:
    """What is wrong with the task of an episode; empty if nothing.

    An episode may change its task if its metadata name every one.
    """
    tasks = np.unique(given).tolist()
    if unknown := [task for task in tasks if task not in meta.tasks]:
        what = f"task_index is {unknown[0]}, which no task has" if unknown[0] >= 0 else "task_index is missing in a row"
        return f"{what}; correct it, or fetch meta/ again"
    if len(tasks) > 1 and not {meta.tasks[task] for task in tasks} <= set(meta.tasks_told(told)):
        row = int(np.flatnonzero(given != given[0])[0])
        return (
            f"task_index changes from {given[0]} to {given[row]} at row {row}; correct it, or name both in {meta.where}"
        )
    return ""


def _fatal(kind: str, told: str, file: str = "") -> Finding:
    return Finding(kind, told, file, fatal=True)
