"""Figures of what quality control found, for notebooks and for the report; each returns a matplotlib figure."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy.stats import chi2

from qc.episodes import ACTION, EEF_POS, STATE, Episode
from qc.maps import Map
from qc.plots import COLOURS, natural
from qc.projection import components_for
from qc.table import DROP, KEEP, MEASURED, REVIEW

_FLAGGED = (DROP, REVIEW)
_POINTS = 100
_LINES = 12


def map_figure(plane: Map, table: pd.DataFrame) -> Figure:
    """Episodes on a map, coloured by verdict, flagged ones named.

    Args:
        table: verdicts, one row a point, in the same order.
    """
    figure = Figure(figsize=(7.0, 5.6), layout="constrained")
    ax = figure.subplots()
    for verdict, colour in COLOURS.items():
        chosen = (table["verdict"] == verdict).to_numpy()
        if chosen.any():
            label = f"{verdict.replace('_', ' ')} ({chosen.sum()})"
            x, y = plane.points[chosen].T
            ax.scatter(x, y, s=18 if verdict == KEEP else 44, color=colour, label=label,
                       edgecolors="white", linewidths=0.4, zorder=2 + (verdict != KEEP))  # fmt: skip
    flagged = np.flatnonzero(table["verdict"].isin(_FLAGGED))
    centre = plane.points[:, 0].mean() if len(plane.points) else 0.0
    for i in flagged[:20]:
        left = bool(plane.points[i, 0] > centre)
        ax.annotate(
            table["episode_id"].iloc[i], plane.points[i], xytext=(-6 if left else 6, 3), textcoords="offset points",
            fontsize=6, ha="right" if left else "left",
        )  # fmt: skip
    trust = "" if np.isnan(plane.trustworthiness) else f"; trustworthiness {plane.trustworthiness:.2f}"
    ax.set_title(f"{plane.title}{trust}", fontsize=9)
    ax.set_xticks([])
    ax.set_yticks([])
    ax.legend(fontsize=8, frameon=False, loc="best")
    return figure


def length_figure(table: pd.DataFrame) -> Figure:
    """Lengths of kept episodes beside those that each filter flagged: a filter of lengths in disguise would show."""
    counts = {name: table["reasons"].map(lambda r, n=name: n in r).astype(bool) for name in MEASURED}
    shown = [name for name, mask in counts.items() if mask.any()]
    judged = table[table["outcome"] == "success"]
    figure = Figure(figsize=(7.0, 1.1 + 0.75 * max(1, len(shown))), layout="constrained")
    axes = figure.subplots(max(1, len(shown)), 1, sharex=True, squeeze=False).ravel()
    bins = np.histogram_bin_edges(judged["length"].astype(float), 40) if len(judged) else 40
    kept = judged.loc[judged["verdict"] == KEEP, "length"].astype(float)
    for ax, name in zip(axes, shown or [""], strict=True):
        ax.hist(kept, bins, color=COLOURS[KEEP], alpha=0.45, density=len(kept) > 0)
        if name:
            mine = table.loc[counts[name], "length"].astype(float)
            ax.plot(mine, np.zeros(len(mine)), "|", color=COLOURS[DROP], markersize=22, markeredgewidth=1.4)
            ax.set_ylabel(
                f"{name.replace('_', ' ')}\n{len(mine)} flagged", fontsize=7, rotation=0, ha="right", va="center"
            )
        ax.set_yticks([])
    axes[-1].set_xlabel("length, rows (bars: kept; marks: flagged by the filter)", fontsize=8)
    axes[-1].tick_params(labelsize=7)
    return figure


def distance_figure(table: pd.DataFrame, components: int = 9) -> Figure:
    """Squared Mahalanobis distances of each task against those that a normal sample would have, on log scales."""
    judged = table[table["mahalanobis_score"].notna()]
    tasks = sorted(judged["task"].unique(), key=natural)
    figure = Figure(figsize=(5.6, 4.6), layout="constrained")
    ax = figure.subplots()
    for n, task in enumerate(tasks):
        mine = np.sort(-judged.loc[judged["task"] == task, "mahalanobis_score"].to_numpy(dtype=float))
        k = components_for(len(mine), components) + 1
        expected = chi2.ppf((np.arange(len(mine)) + 0.5) / len(mine), k)
        (line,) = ax.plot(expected, np.maximum(mine, 1e-2), "o", markersize=3, label=task)
        ax.axhline(-judged.loc[judged["task"] == task, "mahalanobis_cutoff"].iloc[0], color=line.get_color(),
                   linewidth=0.6, linestyle=":", zorder=1, label="cutoff" if n == 0 else None)  # fmt: skip
    ax.axline((1, 1), (10, 10), color="0.5", linewidth=0.8, linestyle="--")
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.set_xlabel("squared distance expected of a normal sample ($\\chi^2$)", fontsize=8)
    ax.set_ylabel("measured", fontsize=8)
    ax.tick_params(labelsize=7)
    if tasks:
        ax.legend(fontsize=7, frameon=False)
    else:
        ax.set_title("no task has enough episodes", fontsize=9)
    return figure


def overlay_figure(episodes: Sequence[Episode], table: pd.DataFrame, task: str) -> Figure:
    """Trajectories of a task over its time: the band holds nine in ten of the kept, lines are the flagged."""
    verdict = dict(zip(table["episode_id"], table["verdict"], strict=True))
    mine = [e for e in episodes if e.task == task and e.succeeded and e.sound]
    rows = _dimensions(mine[0]) if mine else []
    figure = Figure(figsize=(7.0, 0.6 + 1.1 * max(1, len(rows))), layout="constrained")
    axes = figure.subplots(max(1, len(rows)), 1, sharex=True, squeeze=False).ravel()
    at = np.linspace(0, 100, _POINTS)
    flagged = [e for e in mine if verdict.get(e.id) in _FLAGGED][:_LINES]
    colours = [f"C{i % 10}" for i in range(1, len(flagged) + 1)]
    for ax, (label, column, dim) in zip(axes, rows, strict=False):
        paths = [np.interp(at, np.linspace(0, 100, e.length), _values(e, column)[:, dim]) for e in mine
                 if verdict.get(e.id) not in _FLAGGED]  # fmt: skip
        if paths:
            low, middle, high = np.percentile(paths, (5, 50, 95), axis=0)
            ax.fill_between(at, low, high, color=COLOURS[KEEP], alpha=0.25, linewidth=0)
            ax.plot(at, middle, color=COLOURS[KEEP], linewidth=1)
        for episode, colour in zip(flagged, colours, strict=True):
            values = _values(episode, column)[:, dim]
            ax.plot(np.linspace(0, 100, episode.length), values, color=colour, linewidth=0.9, label=episode.id)
        ax.set_ylabel(label, fontsize=7)
        ax.tick_params(labelsize=6)
    axes[-1].set_xlabel("% of the episode", fontsize=8)
    if flagged:
        handles, labels = axes[0].get_legend_handles_labels()
        figure.legend(handles, labels, fontsize=6, frameon=False, loc="outside lower center", ncols=3)
    axes[0].set_title(f"{task}: {len(mine)} episodes", fontsize=9)
    return figure


def path_figure(episode: Episode, peer: Episode | None = None) -> Figure:
    """Way of the tool from above and from the side, beside that of the nearest healthy episode (grey)."""
    figure = Figure(figsize=(3.2, 1.5), layout="constrained")
    top, side = figure.subplots(1, 2)
    for ax, (across, up), name in ((top, (0, 1), "from above"), (side, (1, 2), "from the side")):
        if peer is not None:
            _draw_path(ax, peer, across, up, "0.65", 1.0)
        _draw_path(ax, episode, across, up, COLOURS[DROP], 1.2)
        ax.set_title(name, fontsize=6, pad=2)
        ax.set_aspect("equal", adjustable="datalim")
        ax.set_xticks([])
        ax.set_yticks([])
    return figure


def _draw_path(ax: Axes, episode: Episode, across: int, up: int, colour: str, width: float) -> None:
    path = _values(episode, EEF_POS if EEF_POS in episode.frames else STATE if STATE in episode.frames else ACTION)
    across, up = min(across, path.shape[1] - 1), min(up, path.shape[1] - 1)
    ax.plot(path[:, across], path[:, up], color=colour, linewidth=width)
    commanded = episode.commanded
    changes = np.flatnonzero((commanded[1:] != commanded[:-1]).any(axis=1)) + 1
    ax.plot(path[changes, across], path[changes, up], "o", color=colour, markersize=3)


def _dimensions(episode: Episode) -> list[tuple[str, str, int]]:
    rows = [(f"tool {axis}, m", EEF_POS, i) for i, axis in enumerate("xyz")] if EEF_POS in episode.frames else []
    column = STATE if STATE in episode.frames else ACTION
    if not rows:
        names = episode.layout.names[column]
        rows = [(names[i], column, i) for i in episode.layout.arm(column)[:6]]
    return [
        *rows,
        *((f"{column.rpartition('.')[2]} gripper", column, i) for i in episode.layout.grippers.get(column, ())),
    ]


def _values(episode: Episode, column: str) -> np.ndarray:
    return episode.frames[column].astype(np.float64)


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
