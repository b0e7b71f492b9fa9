"""Pictures for finding outliers and reading the data."""

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Ellipse
from scipy.stats import chi2

from qc.drawing import COLOURS, FLAGGED, in_order, label_points, plain
from qc.embedding import Embedding
from qc.errors import QcError
from qc.projection import RobustPCA
from qc.table import INTEGRITY, KEEP, OUTCOME

_INSIDE = 0.99
_FEWEST = 4


def plot_pca(table: pd.DataFrame, embedding: Embedding, path: Path | str, order: Sequence[str] = ()) -> None:
    """Draw the episodes of each task on the first two principal components, coloured by verdict, as PNG.

    Axes and the 99 % ellipse are those of the kept episodes. Failures, and episodes whose rows cannot be trusted, are
    left out; episodes beyond the frame are drawn on it.

    Args:
        order: of tasks; others follow by name.

    Raises:
        QcError: if the picture cannot be written, or the embedding lacks an episode of the table.
    """
    row = {episode: i for i, episode in enumerate(embedding.ids)}
    unseen = table["reasons"].map(lambda reasons: bool({INTEGRITY, OUTCOME} & set(reasons))).astype(bool)
    shown = table[~unseen]
    if absent := [episode for episode in shown["episode_id"] if episode not in row]:
        raise QcError(f"{absent[0]}: has a verdict but is not in the embedding; embed the run again")
    kept = np.zeros(len(row), dtype=bool)
    kept[[row[episode] for episode in shown.loc[shown["verdict"] == KEEP, "episode_id"]]] = True
    z = embedding.standardise(embedding.tasks, kept)

    tasks = in_order(shown["task"], order)
    wide = max(1, math.ceil(math.sqrt(len(tasks))))
    high = max(1, -(-len(tasks) // wide))
    figure = Figure(figsize=(4.2 * wide, 4.1 * high + 0.6), layout="constrained")
    axes = figure.subplots(high, wide, squeeze=False).ravel()
    for ax in axes[len(tasks) :]:
        ax.set_axis_off()
    for ax, task in zip(axes, tasks, strict=False):
        mine = shown[shown["task"] == task]
        rows = np.array([row[episode] for episode in mine["episode_id"]])
        _draw_task(ax, task, mine, z[rows], kept[rows], embedding.groups)
    handles = [
        Line2D([], [], marker="o", linestyle="", color=colour, label=f"{verdict.replace('_', ' ')} ({count})")
        for verdict, colour in COLOURS.items()
        if (count := int((shown["verdict"] == verdict).sum()))
    ]
    handles.append(Line2D([], [], color="0.5", linestyle="--", label="99 % of the kept, if normal"))
    figure.legend(handles=handles, loc="outside lower center", ncols=3 if len(tasks) > 1 else 1, frameon=False)
    try:
        figure.savefig(path, format="png", metadata={"Software": None})
    except OSError as error:
        raise QcError(f"{path}: cannot be written ({error.strerror}); choose another place") from None


def _draw_task(ax: Axes, task: str, mine: pd.DataFrame, z: np.ndarray, kept: np.ndarray, groups: np.ndarray) -> None:
    ax.set_title(f"{plain(task, 36)} ({len(mine)} episodes)", fontsize=10)
    if kept.sum() < _FEWEST:
        ax.set_axis_off()
        ax.text(0.5, 0.5, f"{kept.sum()} kept: too few to draw", ha="center", va="center", transform=ax.transAxes)
        return
    projection = RobustPCA(2, groups).fit(z[kept])
    scores = projection.transform(z)[:, :2]
    reach = _draw_ellipse(ax, scores[kept])
    centre = scores[kept].mean(axis=0)
    low, high = centre - 1.5 * reach, centre + 1.5 * reach
    drawn = np.clip(scores, low, high)
    for verdict, colour in COLOURS.items():
        chosen = (mine["verdict"] == verdict).to_numpy()
        size = 22 if verdict == KEEP else 40
        x, y = drawn[chosen].T
        ax.scatter(x, y, s=size, color=colour, edgecolors="white", linewidths=0.4, clip_on=False, zorder=3)
    ax.set_xlim(low[0], high[0])
    ax.set_ylim(low[1], high[1])
    flagged = mine["verdict"].isin(FLAGGED).to_numpy()
    label_points(ax, drawn[flagged], [i.removeprefix(f"{task}-") for i in mine.loc[flagged, "episode_id"]])
    ax.set_xlabel(f"PC 1 ({projection.explained_[0]:.0%} of the spread)", fontsize=8)
    ax.set_ylabel(f"PC 2 ({projection.explained_[1]:.0%})", fontsize=8)
    ax.tick_params(labelsize=7)
    ax.grid(alpha=0.25, linewidth=0.5)


def _draw_ellipse(ax: Axes, scores: np.ndarray) -> np.ndarray:
    """Draw where 99 % of normal scores (n, 2) would lie; returns its half-extent along the axes, (2,)."""
    covariance = np.cov(scores.T)
    squared = chi2.ppf(_INSIDE, df=2)
    variance, directions = np.linalg.eigh(covariance)
    width, height = 2.0 * np.sqrt(squared * np.maximum(variance, 0.0))
    angle = np.degrees(np.arctan2(directions[1, 0], directions[0, 0]))
    ellipse = Ellipse(
        tuple(scores.mean(axis=0)), width, height, angle=angle, fill=False, edgecolor="0.5", linestyle="--"
    )
    ax.add_patch(ellipse)
    return np.asarray(np.maximum(np.sqrt(squared * np.diag(covariance)), 1e-6))
