"""Small pictures of flagged episodes."""

import base64
import io
from collections.abc import Mapping

import numpy as np
from matplotlib.figure import Figure

from qc.episodes import Episode
from qc.figures import path_figure
from qc.readers.video import read_frames

_DPI = 90
_FRAMES = 4


def thumbnail(
    episode: Episode, peer: Episode | None, videos: Mapping[str, Mapping[str, tuple[str, float, float]]]
) -> str:
    """A PNG in base64: pictures of the episode above those of its peer where both have videos, else their paths."""
    ids = [e.id for e in (episode, peer) if e is not None]
    for places in videos.values():
        if all(id_ in places for id_ in ids):
            return _encode(_strip([places[id_] for id_ in ids]))
    return _encode(path_figure(episode, peer))


def _strip(places: list[tuple[str, float, float]]) -> Figure:
    figure = Figure(figsize=(3.6, 0.62 * len(places)), layout="constrained")
    axes = figure.subplots(len(places), _FRAMES, squeeze=False)
    for row, (path, start, end) in zip(axes, places, strict=True):
        last = end if np.isfinite(end) else start + 15.0
        pictures = read_frames(path, list(np.linspace(start, last - 0.1, _FRAMES)))
        for ax in row:
            ax.set_axis_off()
        for ax, picture in zip(row, pictures, strict=False):
            ax.imshow(picture[::2, ::2])
    return figure


def _encode(figure: Figure) -> str:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=_DPI, metadata={"Software": None})
    return base64.b64encode(buffer.getvalue()).decode()
