"""What figures share: colours, names as a font can draw them, the order of tasks, labels that stay apart."""

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache

import numpy as np
from matplotlib.axes import Axes
from matplotlib.font_manager import FontProperties, findfont, get_font

from qc.table import DROP, KEEP, NOT_ASSESSED, REVIEW

COLOURS: Mapping[str, str] = {
    KEEP: "#0072B2",
    NOT_ASSESSED: "#999999",
    REVIEW: "#E69F00",
    DROP: "#D55E00",
}  # Okabe and Ito
FLAGGED = (DROP, REVIEW)
_APART = 0.045
_LABELS = 20


def natural(name: str) -> list[tuple[str, int]]:
    """Sorting key by which 4mm comes before 12mm."""
    return [(word, int(number or 0)) for word, number in re.findall(r"(\D*)(\d*)", name)]


def in_order(tasks: Iterable[str], order: Sequence[str] = ()) -> list[str]:
    """Each task once: those of ``order`` as they stand there, then the others by name."""
    place = {task: i for i, task in enumerate(order)}
    return sorted(set(tasks), key=lambda task: (place.get(task, len(place)), natural(task)))


def plain(text: str, longest: int = 60) -> str:
    """Text on one line as a figure can draw it: no mathematics, ``?`` for what the font lacks, cut where too long."""
    known = _characters(findfont(FontProperties()))
    line = "".join(c if ord(c) in known else "?" for c in " ".join(text.split()))
    line = line if len(line) <= longest else f"{line[: longest - 1]}…"
    return line.replace("$", r"\$")


@cache
def _characters(font: str) -> frozenset[int]:
    return frozenset(get_font(font).get_charmap())


def label_points(ax: Axes, points: np.ndarray, names: Sequence[str]) -> None:
    """Name points (n, 2) at the nearer side of axes whose limits are set, a little higher, one name under another."""
    if not len(points):
        return
    x, y = ax.transAxes.inverted().transform(ax.transData.transform(points)).T
    for mine, edge, align in ((x <= 0.5, 0.01, "left"), (x > 0.5, 0.99, "right")):
        rows = np.flatnonzero(mine)
        rows = rows[np.argsort(-y[rows], kind="stable")][:_LABELS]
        for i, height in zip(rows, _apart(y[rows] + _APART), strict=True):
            ax.annotate(
                plain(names[i], 32), tuple(points[i]), xytext=(edge, height), textcoords="axes fraction", ha=align,
                va="center", fontsize=7, zorder=4, annotation_clip=False,
                arrowprops={"arrowstyle": "-", "linewidth": 0.5, "color": "0.5"},
            )  # fmt: skip


def _apart(heights: np.ndarray) -> np.ndarray:
    """Heights in falling order, moved no farther than is needed to keep them apart and inside 0 to 1."""
    steps = _APART * np.arange(len(heights))
    down = np.minimum.accumulate(np.minimum(heights, 1 - _APART) + steps) - steps
    least = _APART / 2 + steps[::-1]
    return np.asarray(np.maximum(down, least))
