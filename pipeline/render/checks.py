"""What every render is held against before its videos count: whole, exposed, of this episode, its parts in sight."""

from collections.abc import Callable, Mapping, Sequence
from itertools import zip_longest
from pathlib import Path

import numpy as np

from pipeline.errors import UserError
from pipeline.video import read_frames

LEAST_CONTRAST = 4.0
"""Standard deviation of the levels (0 to 255) below which a picture shows nothing."""

MOST_CODING_ERROR = 6.0
"""Mean difference of levels above which a decoded picture is not the one that was rendered."""

BLACK, WHITE = 12, 254
"""A pixel is black with all channels at or below the first level, sensor noise included, burnt out with one above."""

MOST_CLIPPED = 0.5
"""Share of a picture that may be black, or burnt out."""

LEAST_SEEN_PX, LEAST_SEEN_LEVELS = 2, 3
"""So many pixels must change by so many levels where a part is taken away; the thinnest peg changes six, far off."""

PARTS = ("held", "fixed")
AWAY = np.array([0.0, 0.0, -1.0, 0.0, 0.0, 0.0, 1.0])
"""Pose of what is taken away: below the table."""

STRIDE = 4

Poses = Mapping[str, np.ndarray]


class BadVideo(UserError):
    """A video that does not show its episode."""


def thumbnail(picture: np.ndarray) -> np.ndarray:
    """Every fourth pixel each way of a picture (H, W, 3), as a copy."""
    return picture[::STRIDE, ::STRIDE].copy()


def check_video(path: Path, thumbnails: Sequence[np.ndarray]) -> None:
    """Decode a video and compare it, frame by frame, with thumbnails of the pictures that it was made from.

    Raises:
        BadVideo: if it has another number of frames, shows something else, or shows nothing.
    """
    for row, (frame, small) in enumerate(zip_longest(read_frames(path), thumbnails)):
        if frame is None or small is None:
            raise BadVideo(f"{path}: not one frame for each of {len(thumbnails)} rows")
        if small.std() < LEAST_CONTRAST:
            raise BadVideo(f"{path}: frame {row} shows nothing (all of one colour)")
        if (small <= BLACK).all(-1).mean() > MOST_CLIPPED:
            raise BadVideo(f"{path}: frame {row} is clipped: most of it is black")
        if (small >= WHITE).any(-1).mean() > MOST_CLIPPED:
            raise BadVideo(f"{path}: frame {row} is clipped: most of it is burnt out")
        if np.abs(np.subtract(thumbnail(frame), small, dtype=np.float32)).mean() > MOST_CODING_ERROR:
            raise BadVideo(f"{path}: frame {row} is not the picture of row {row}")


def check_depiction(
    path: Path, shoot: Callable[[Poses], np.ndarray], first: Poses, row: int, poses: Poses, shown: np.ndarray
) -> None:
    """Render an episode's poses again: one row must look as it was shown, and the first show both parts.

    A renderer that lags behind, or pictures of another episode, fail the first; a camera that looks past the parts,
    or a renderer that is stuck, the second.

    Args:
        path: video, to name it.
        shoot: makes the picture (H, W, 3) of poses, before the sensor's noise.
        first: poses of the first row.
        row: number of some other row, of which ``poses`` are the poses and ``shown`` is the picture in the video.

    Raises:
        BadVideo: if it is so.
    """
    if not np.array_equal(shoot(poses), shown):
        raise BadVideo(f"{path}: frame {row} is not of this episode: its row {row}, rendered again, looks otherwise")
    whole = shoot(first).astype(np.int16)
    for part in PARTS:
        change = np.abs(whole - shoot({**first, part: AWAY})).max(-1)
        if (change >= LEAST_SEEN_LEVELS).sum() < LEAST_SEEN_PX:
            raise BadVideo(f"{path}: frame 0 does not show the {part} part: it lies outside the picture or is hidden")
