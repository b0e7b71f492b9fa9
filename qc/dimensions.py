"""Dimensions that do not move where they should, and numbers that no machine can have measured."""

from collections.abc import Mapping, Sequence

import numpy as np

from qc.episodes import ACTION, STATE, Finding
from qc.rows import Note, Rows, Spans

_ENOUGH = 5
_USUAL = 0.9
_HARDLY_EVER = 0.01
_BEYOND = 1e6
_LEAST_SHARE = 1e-3


def check_still(rows: Rows, spans: Spans, names: Mapping[str, Sequence[str]], note: Note) -> list[Finding]:
    """Dimensions of state and action that never change, in the whole dataset or in one episode alone.

    An episode's own are noted if nearly all others move there, or if it is filled with zeros: nothing but 0 where most
    episodes of its task have hardly a 0, as no command or flag that is often 0 has.

    Args:
        names: name of each dimension, by column of ``rows``.
    """
    findings = []
    lengths = np.array([span.stop - span.start for _, span in spans])
    starts = [span.start for _, span in spans]
    tasks = rows.columns["task_index"][starts] if "task_index" in rows.columns else np.zeros(len(spans))
    for name in (STATE, ACTION):
        if name not in names or not len(values := rows.columns[name]):
            continue
        moves = np.maximum.reduceat(values, starts) != np.minimum.reduceat(values, starts)
        zeros = np.add.reduceat(values == 0, starts, dtype=np.int64)
        for dim, label in enumerate(names[name]):
            if (values[:, dim] == values[0, dim]).all():
                kind = "undriven" if values[0, dim] == 0 else "constant"
                told = (
                    f"{name}, {label} is {values[0, dim] + 0.0:g} in every row: normalising by its deviation gives NaN"
                )
                findings.append(Finding(kind, told))
                continue
            usual = len(spans) >= _ENOUGH and moves[:, dim].mean() >= _USUAL
            filled = _filled(zeros[:, dim], lengths, tasks)
            for i in np.flatnonzero((~moves[:, dim] & (lengths > 1) & usual) | filled).tolist():
                how = "is 0 in every row, but hardly ever" if filled[i] else "never changes, but does"
                index, span = spans[i]
                note(index, "undriven", f"{name}, {label} {how} in the other episodes", span.start, 0)
    return findings


def check_size(rows: Rows, spans: Spans, names: Mapping[str, Sequence[str]], note: Note) -> None:
    """Numbers a million times larger than the largest that half of the episodes have in a dimension.

    A dimension that is 0 in most counts as a thousandth of the widest of its column.
    """
    starts = [span.start for _, span in spans]
    for name, dims in names.items():
        if not len(values := rows.columns[name]):
            continue
        largest = np.maximum(np.maximum.reduceat(values, starts), -np.minimum.reduceat(values, starts))
        usual = np.sort(largest, axis=0)[(len(spans) - 1) // 2].astype(np.float64)
        usual = np.maximum(usual, _LEAST_SHARE * np.max(usual, initial=0.0, where=np.isfinite(usual)))
        for i, dim in np.argwhere((largest > _BEYOND * usual) & (usual > 0) & np.isfinite(largest)).tolist():
            index, span = spans[i]
            frame = int(np.argmax(np.abs(values[span, dim])))
            told = f"{name}, {dims[dim]} is {values[span, dim][frame]:g}, over a million times what others have"
            note(index, "size", told, span.start, frame)


def _filled(zeros: np.ndarray, lengths: np.ndarray, tasks: np.ndarray) -> np.ndarray:
    """Which episodes have nothing but 0 while most of their task hardly ever do, (n,) bool.

    Args:
        zeros: (n,) rows that are 0 in each.
        lengths: (n,) rows of each.
        tasks: (n,) task of each.
    """
    filled = zeros == lengths
    for task in np.unique(tasks[filled]):
        others = (tasks == task) & ~filled
        most = others.sum() > (tasks == task).sum() / 2
        if not most or zeros[others].sum() > _HARDLY_EVER * lengths[others].sum():
            filled[tasks == task] = False
    return filled
