"""Figures of what quality control found, for notebooks and for the report; each returns a matplotlib figure."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from scipy.stats import chi2

from qc.drawing import COLOURS, FLAGGED, in_order, label_points, plain
from qc.maps import Map
from qc.projection import components_for
from qc.table import DROP, KEEP

_WIDTH = 9.4
_MARKERS = "os^Dv"
_NAMED = 30
_BINS = 24


def map_figure(plane: Map, table: pd.DataFrame) -> Figure:
    """Episodes on a map, coloured by verdict, flagged ones named.

    Args:
        table: verdicts, one row a point, in the same order.
    """
    figure = Figure(figsize=(7.0, 5.6), layout="constrained")
    ax = figure.subplots()
    points, _ = plane.framed()
    for verdict, colour in COLOURS.items():
        chosen = (table["verdict"] == verdict).to_numpy()
        if chosen.any():
            label = f"{verdict.replace('_', ' ')} ({chosen.sum()})"
            x, y = points[chosen].T
            ax.scatter(x, y, s=18 if verdict == KEEP else 44, color=colour, label=label,
                       edgecolors="white", linewidths=0.4, zorder=2 + (verdict != KEEP))  # fmt: skip
    ax.set(xlim=ax.get_xlim(), ylim=ax.get_ylim())
    flagged = table["verdict"].isin(FLAGGED).to_numpy()
    label_points(ax, points[flagged], list(table.loc[flagged, "episode_id"]))
    ax.set_title(plane.caption, fontsize=9)
    ax.set_xticks([])
    ax.set_yticks([])
    if len(points):
        figure.legend(fontsize=8, frameon=False, loc="outside lower center", ncols=len(COLOURS))
    return figure


def length_figure(table: pd.DataFrame, order: Sequence[str] = ()) -> Figure:
    """Lengths of each task's kept episodes, and marks where those lie that a filter flagged.

    A filter of lengths in disguise would have its marks at one end.

    Args:
        order: of tasks; others follow by name.
    """
    judged = table[table["outcome"] == "success"]
    tasks = in_order(judged["task"], order)
    reason = judged["reasons"].map(lambda reasons: reasons[0] if len(reasons) else "").astype(object)
    reason = reason.where(judged["verdict"].isin(FLAGGED), "")
    colours = {name: f"C{1 + n % 9}" for n, name in enumerate(sorted(set(reason) - {""}))}
    wide = min(4, max(2, len(tasks)))
    high = max(1, -(-len(tasks) // wide))
    figure = Figure(figsize=(_WIDTH, 0.6 + 1.25 * high), layout="constrained")
    axes = figure.subplots(high, wide, squeeze=False).ravel()
    for ax in axes[len(tasks) :]:
        ax.set_axis_off()
    for ax, task in zip(axes, tasks, strict=False):
        mine = judged["task"] == task
        lengths = judged.loc[mine, "length"].astype(float)
        ax.hist(lengths[judged["verdict"] == KEEP], _bins(lengths), color=COLOURS[KEEP],
                alpha=0.5)  # fmt: skip
        for name, colour in colours.items():
            for length in lengths[reason == name]:
                ax.axvline(length, color=colour, linewidth=1.4)
        ax.set_title(plain(task, 30), fontsize=8)
        ax.tick_params(labelsize=7)
        ax.set_yticks([])
    figure.supxlabel("length, rows", fontsize=8)
    handles = [Line2D([], [], color=COLOURS[KEEP], alpha=0.5, linewidth=6, label="kept (bars)")]
    handles += [Line2D([], [], color=colour, label=f"{name.replace('_', ' ')} ({(reason == name).sum()})")
                for name, colour in colours.items()]  # fmt: skip
    figure.legend(handles=handles, fontsize=8, frameon=False, loc="outside upper center", ncols=6)
    return figure


def _bins(lengths: pd.Series) -> np.ndarray:
    """Edges between whole numbers, so that no bar holds more of them than another."""
    low, high = int(lengths.min()), int(lengths.max())
    width = -(-(high - low + 1) // _BINS)
    return np.arange(low, high + width + 1, width) - 0.5


def distance_figure(table: pd.DataFrame, components: int = 9, order: Sequence[str] = ()) -> Figure:
    """Squared Mahalanobis distances of each task against those that a normal sample would have, on log scales.

    Args:
        order: of tasks; others follow by name.
    """
    judged = table[table["mahalanobis_score"].notna()]
    tasks = in_order(judged["task"], order)
    figure = Figure(figsize=(_WIDTH, 4.8), layout="constrained")
    ax = figure.subplots()
    handles = []
    for n, task in enumerate(tasks):
        mine = np.sort(-judged.loc[judged["task"] == task, "mahalanobis_score"].to_numpy(dtype=float))
        k = components_for(len(mine), components) + 1
        expected = chi2.ppf((np.arange(len(mine)) + 0.5) / len(mine), k)
        marker = _MARKERS[n // 10 % len(_MARKERS)]
        (line,) = ax.plot(expected, np.maximum(mine, 1e-2), marker, markersize=3.5, color=f"C{n % 10}")
        ax.axhline(-judged.loc[judged["task"] == task, "mahalanobis_cutoff"].iloc[0], color=line.get_color(),
                   linewidth=0.7, linestyle=":", zorder=1)  # fmt: skip
        handles.append(Line2D([], [], linestyle="", marker=marker, color=line.get_color(), label=plain(task, 32)))
    ax.axline((1, 1), (10, 10), color="0.5", linewidth=0.8, linestyle="--")
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.set_xlabel("squared distance expected of a normal sample (χ²)", fontsize=8)
    ax.set_ylabel("measured", fontsize=8)
    ax.tick_params(labelsize=7)
    if not tasks:
        ax.set_title("no task has enough episodes", fontsize=9)
        return figure
    more = [Line2D([], [], linestyle="", label=f"and {len(tasks) - _NAMED} more")] if len(tasks) > _NAMED else []
    lines = [
        Line2D([], [], color="0.3", linestyle=":", linewidth=0.7, label="cutoff of a task"),
        Line2D([], [], color="0.5", linestyle="--", linewidth=0.8, label="as a normal sample"),
    ]
    figure.legend(handles=[*handles[:_NAMED], *more, *lines], fontsize=7, frameon=False, loc="outside right upper")
    return figure


def curves_figure(curves: pd.DataFrame) -> Figure:
    """Part found of each defect over its severity; false alarms in grey; the dot marks the moderate severity.

    Args:
        curves: from :func:`qc.detection.detection_curves`.
    """
    defects = list(dict.fromkeys(curves["defect"]))
    wide = 4
    high = -(-len(defects) // wide)
    figure = Figure(figsize=(10.0, 1.9 * high), layout="constrained")
    axes = figure.subplots(high, wide, sharey=True, squeeze=False).ravel()
    for ax in axes[len(defects) :]:
        ax.set_axis_off()
    for ax, defect in zip(axes, defects, strict=False):
        mine = curves[curves["defect"] == defect].sort_values("severity")
        found, false = mine["found"] / mine["planted"], mine["false"] / mine["healthy"]
        at = np.arange(len(mine))
        ax.plot(at, 100 * false, "-", color="0.6", linewidth=1.2)
        ax.plot(at, 100 * found, "-", color=COLOURS[KEEP], linewidth=1.6, marker=".", markersize=4)
        marked = mine["moderate"].to_numpy(dtype=bool)
        ax.plot(at[marked], 100 * found.to_numpy()[marked], "o", color=COLOURS[DROP], markersize=6)
        ax.set_xticks(at, [f"{severity:g}" for severity in mine["severity"]], fontsize=6)
        ax.set_title(f"{defect}, {mine['unit'].iloc[0]}", fontsize=8)
        ax.set_ylim(-4, 104)
        ax.tick_params(labelsize=6)
        ax.grid(alpha=0.25, linewidth=0.5)
    for ax in axes[::wide]:
        ax.set_ylabel("found, %", fontsize=7)
    return figure
