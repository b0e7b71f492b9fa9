"""Pictures from the videos of flagged episodes."""

from pathlib import Path

import av
import numpy as np
from matplotlib.figure import Figure

from qc.episodes import Episode, EpisodeSet
from qc.errors import QcError
from qc.readers.video import read_frames

_FRAMES = 4


def video_figure(episode: Episode, peer: Episode | None, found: EpisodeSet) -> Figure | None:
    """Four pictures of the episode above those of its peer, from the first camera that has both; None if none has.

    Raises:
        QcError: if a video cannot be read.
    """
    episodes = [e for e in (episode, peer) if e is not None]
    places = next((of for of in found.videos.values() if all(e.id in of for e in episodes)), None)
    if places is None:
        return None
    figure = Figure(figsize=(3.7, 0.62 * len(episodes)), layout="constrained")
    axes = figure.subplots(len(episodes), _FRAMES, squeeze=False)
    for row, one in zip(axes, episodes, strict=True):
        path, start, end = places[one.id]
        last = end if np.isfinite(end) else start + one.length / found.fps
        pictures = _read(path, list(np.linspace(start, last - 1 / found.fps, _FRAMES)))
        for ax in row:
            ax.set_axis_off()
        for ax, picture in zip(row, pictures, strict=False):
            ax.imshow(picture[::2, ::2])
    return figure


def _read(path: str, seconds: list[float]) -> list[np.ndarray]:
    try:
        pictures = read_frames(path, seconds)
    except (QcError, av.FFmpegError, OSError, IndexError, ValueError):
        pictures = []
    if not pictures:
        raise QcError(f"{Path(path).name}: not readable as a video; render or fetch it again")
    return pictures
