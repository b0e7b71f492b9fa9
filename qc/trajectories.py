"""Figures of motion over time: the episodes of a task together, and one beside another."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from qc.drawing import COLOURS, FLAGGED, plain
from qc.episodes import ACTION, EEF_POS, STATE, Episode
from qc.table import DROP, KEEP
from qc.told import Told, label, told, usual_dimensions

_POINTS = 100
_LINES = 12
_MOST = 16
_NEAR = 20
_SERIES = 2
_MARK = "#CC79A7"
_PEER = "0.6"


def overlay_figure(episodes: Sequence[Episode], table: pd.DataFrame, task: str) -> Figure:
    """Trajectories of a task over its time: the band holds nine in ten of the kept, lines are the flagged.

    The tool's position and the grippers, or where the tool's is not recorded all joints.
    """
    verdict = dict(zip(table["episode_id"], table["verdict"], strict=True))
    mine = [e for e in episodes if e.task == task and e.succeeded and e.sound]
    places = _places(mine)
    shown = places[:_MOST]
    high = max(1, -(-len(shown) // 2))
    figure = Figure(figsize=(9.4, 0.9 + 1.25 * high), layout="constrained")
    axes = figure.subplots(high, 2, sharex=True, squeeze=False).ravel()
    kept = [e for e in mine if verdict.get(e.id) not in FLAGGED]
    flagged = [e for e in mine if verdict.get(e.id) in FLAGGED][:_LINES]
    for ax in axes[len(shown) :]:
        ax.set_axis_off()
    for ax, (column, dim) in zip(axes, shown, strict=False):
        _draw_band(ax, [_values(e, column, dim) for e in kept])
        for n, episode in enumerate(flagged, 1):
            values = _values(episode, column, dim)
            ax.plot(
                np.linspace(0, 100, len(values)), values, color=f"C{n % 10}", linewidth=0.9, label=plain(episode.id)
            )
        ax.set_title(plain(label(mine[0], column, dim)), fontsize=8, pad=3)
        ax.tick_params(labelsize=7, labelbottom=True)
    for ax in axes[max(0, len(shown) - 2) : len(shown)]:
        ax.set_xlabel("% of the episode", fontsize=8)
    if flagged:
        handles, labels = axes[0].get_legend_handles_labels()
        figure.legend(handles, labels, fontsize=7, frameon=False, loc="outside lower center", ncols=4)
    part = f"; the first {_MOST} of {len(places)} dimensions" if len(places) > _MOST else ""
    band = f"line: median of {len(kept)} kept, band: 5 to 95 % of them{part}"
    figure.suptitle(f"{plain(task)}: {len(mine)} episodes ({band})", fontsize=9)
    return figure


def _draw_band(ax: Axes, paths: Sequence[np.ndarray]) -> None:
    """Median and nine in ten of the paths, with room around them that no far line can take up."""
    if not paths:
        return
    at = np.linspace(0, 100, _POINTS)
    together = [np.interp(at, np.linspace(0, 100, len(path)), path) for path in paths]
    low, middle, high = np.percentile(together, (5, 50, 95), axis=0)
    ax.fill_between(at, low, high, color=COLOURS[KEEP], alpha=0.25, linewidth=0)
    ax.plot(at, middle, color=COLOURS[KEEP], linewidth=1)
    room = 0.6 * float(high.max() - low.min())
    if room > 0:
        ax.set_ylim(float(low.min()) - room, float(high.max()) + room)


def path_figure(episode: Episode, peer: Episode | None = None, explanation: str = "") -> Figure:
    """What an explanation speaks of, over the rows of an episode and beside those of the nearest healthy one (grey).

    Where the tool's position is recorded, its way from above and from the side comes first. A ring is the start, dots
    are changes of the gripper's command; what is spoken of has a band or a cross.
    """
    series = _series(episode, explanation)
    ways = EEF_POS in episode.frames
    heights = [1.5] * ways + [0.95] * len(series)
    figure = Figure(figsize=(3.7, sum(heights)), layout="constrained")
    grid = figure.add_gridspec(len(heights), 2, height_ratios=heights)
    if ways:
        for i, (across, up, name) in enumerate(((0, 1, "from above"), (1, 2, "from the side"))):
            ax = figure.add_subplot(grid[0, i])
            for one, colour in ((peer, _PEER), (episode, COLOURS[DROP])):
                if one is not None and EEF_POS in one.frames:
                    _draw_way(ax, one, across, up, colour)
            at = [each.rows[0] for each in series if each.rows]
            ax.plot(*episode.frames[EEF_POS][at][:, [across, up]].T, "x", color=_MARK, markersize=6, zorder=4)
            ax.set_title(f"tool {name}: {'xyz'[across]}, {'xyz'[up]}", fontsize=7, pad=2)
            ax.set_aspect("equal", adjustable="datalim")
            ax.set_xticks([])
            ax.set_yticks([])
    for i, each in enumerate(series, int(ways)):
        _draw_series(figure.add_subplot(grid[i, :]), each, episode, peer)
    return figure


def _series(episode: Episode, explanation: str) -> list[Told]:
    spoken_of = told(episode, explanation)[:_SERIES]
    usual = [Told(*place) for place in usual_dimensions(episode)]
    wanted = 1 if EEF_POS in episode.frames else _SERIES
    there = {(each.column, each.dim) for each in spoken_of}
    return [*spoken_of, *(u for u in usual if (u.column, u.dim) not in there)][: max(wanted, len(spoken_of))]


def _draw_way(ax: Axes, episode: Episode, across: int, up: int, colour: str) -> None:
    x, y = episode.frames[EEF_POS].astype(np.float64)[:, [across, up]].T
    changes = _changes(episode)
    ax.plot(x, y, color=colour, linewidth=1.1)
    ax.plot(x[:1], y[:1], "o", color=colour, markersize=5, markerfacecolor="white", zorder=3)
    ax.plot(x[changes], y[changes], "o", color=colour, markersize=3, zorder=3)


def _draw_series(ax: Axes, each: Told, episode: Episode, peer: Episode | None) -> None:
    name = plain(label(episode, each.column, each.dim), 40)
    first, last = each.rows or (0, 0)
    where = f"row {first}" if first == last else f"rows {first} to {last}"
    ax.set_title(f"{name}, {where}" if each.rows else name, fontsize=7, pad=2)
    ax.tick_params(labelsize=6)
    values = _values(episode, each.column, each.dim)
    if each.closely:
        begin, end = max(0, first - _NEAR), first + _NEAR + 1
        ax.plot(np.arange(begin, begin + len(values[begin:end])), values[begin:end], ".-", color=COLOURS[DROP],
                linewidth=1.1, markersize=3)  # fmt: skip
    else:
        if peer is not None and each.column in peer.frames:
            ax.plot(_values(peer, each.column, each.dim), color=_PEER, linewidth=1.1)
        ax.plot(values, color=COLOURS[DROP], linewidth=1.1)
        changes = _changes(episode)
        ax.plot(changes, values[changes], "o", color=COLOURS[DROP], markersize=3)
    if each.rows and first == last:
        ax.plot(first, values[first], "x", color=_MARK, markersize=7, markeredgewidth=1.6, zorder=4)
    elif each.rows:
        ax.axvspan(first, last, color=_MARK, alpha=0.3, linewidth=0)


def _changes(episode: Episode) -> np.ndarray:
    commanded = episode.commanded
    return np.flatnonzero((commanded[1:] != commanded[:-1]).any(axis=1)) + 1


def _places(episodes: Sequence[Episode]) -> list[tuple[str, int]]:
    """Dimensions that are drawn of a task."""
    if not episodes:
        return []
    layout, column = episodes[0].layout, STATE if STATE in episodes[0].frames else ACTION
    tool = all(EEF_POS in e.frames for e in episodes)
    arm = [(EEF_POS, i) for i in range(3)] if tool else [(column, i) for i in layout.arm(column)]
    return [*arm, *((column, i) for i in layout.grippers.get(column, ()))]


def _values(episode: Episode, column: str, dim: int) -> np.ndarray:
    return episode.frames[column][:, dim].astype(np.float64)
