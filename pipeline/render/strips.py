"""A rendered episode at a glance: a strip with one moment of each phase, and a short clip that moves."""

import math
from collections.abc import Mapping, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from pipeline.errors import UserError
from pipeline.render.cameras import HEIGHT_PX, WIDTH_PX
from pipeline.render.sidecar import video_path
from pipeline.store import explain_os_errors
from pipeline.video import read_frames

FRAME_PX = (192, 108)
"""Size of a picture in a strip."""

STRIP_COLUMNS = 6
"""Phases side by side; more go on below."""

STRIP_BYTES = 170_000
"""Largest strip; colours are reduced until it fits, so that those of all tasks together stay small."""

CLIP_FRAMES, CLIP_S = 36, 6.0
"""Most frames of a clip, and how long it plays."""

CLIP_BYTES = 300_000
"""Largest clip; colours, then the size of its frames, are reduced until it fits."""

_STRIP_COLOURS = (256, 128, 64, 32, 16)
_CLIP_STYLES = ((256, 128), (256, 64), (256, 32), (192, 32), (160, 32), (128, 32), (96, 16))
_GAP_PX, _LABEL_PX = 3, 20
_PAPER, _INK = (255, 255, 255), (25, 28, 32)


def phase_strip(folder: Path, meta: Mapping[str, Any], path: Path, look: str, cameras: Sequence[str]) -> Path:
    """Save a PNG of how each phase ended, the last time it was met; its name stands below.

    Args:
        folder: of a rendered episode.
        meta: its ``episode.json``.
        path: the picture; replaced if it exists.
        look: which rendering.
        cameras: stacked for each phase, from top to bottom.

    Raises:
        UserError: if the episode is not rendered or the file cannot be written.
    """
    ends = {span["phase"]: int(span["end"]) - 1 for span in meta["phase_spans"]}
    width, height = FRAME_PX
    across, line_px = min(STRIP_COLUMNS, len(ends)), len(cameras) * (height + _GAP_PX) + _LABEL_PX
    size = (across * (width + _GAP_PX) - _GAP_PX, math.ceil(len(ends) / across) * line_px)
    strip = Image.new("RGB", size, _PAPER)
    draw, font = ImageDraw.Draw(strip), ImageFont.load_default(13)
    seen = [_frames(folder, look, camera) for camera in cameras]
    for place, (phase, end) in enumerate(ends.items()):
        left, top = place % across * (width + _GAP_PX), place // across * line_px
        for row, frames in enumerate(seen):
            picture = Image.fromarray(frames[end]).resize(FRAME_PX, Image.Resampling.LANCZOS)
            strip.paste(picture, (left, top + row * (height + _GAP_PX)))
        draw.text((left + width // 2, top + line_px - 6), phase, _INK, font, anchor="ms")
    for colours in _STRIP_COLOURS:
        sink = BytesIO()
        _reduce(strip, colours).save(sink, "PNG", optimize=True)
        if sink.tell() <= STRIP_BYTES:
            break
    with explain_os_errors(path):
        path.write_bytes(sink.getvalue())
    return path


def clip(folder: Path, path: Path, look: str, cameras: Sequence[str]) -> Path:
    """Save a GIF of a rendered episode, cameras side by side, of at most :data:`CLIP_BYTES`.

    Raises:
        UserError: if the episode is not rendered or the file cannot be written.
    """
    seen = [_frames(folder, look, camera) for camera in cameras]
    length = len(seen[0])
    rows = np.unique(np.linspace(0, length - 1, min(CLIP_FRAMES, length)).round().astype(int))
    pictures = [Image.fromarray(np.hstack([frames[row] for frames in seen])) for row in rows]
    for width, colours in _CLIP_STYLES:
        data = _gif(pictures, (width * len(cameras), width * HEIGHT_PX // WIDTH_PX), colours)
        if len(data) <= CLIP_BYTES:
            break
    with explain_os_errors(path):
        path.write_bytes(data)
    return path


def _gif(pictures: Sequence[Image.Image], size: tuple[int, int], colours: int) -> bytes:
    small = [picture.resize(size, Image.Resampling.LANCZOS) for picture in pictures]
    palette = _reduce(small[len(small) // 2], colours)
    first, *others = [picture.quantize(palette=palette, dither=Image.Dither.NONE) for picture in small]
    sink = BytesIO()
    step_ms = round(1000 * CLIP_S / len(pictures))
    first.save(sink, "GIF", save_all=True, append_images=others, duration=step_ms, loop=0, optimize=True)
    return sink.getvalue()


def _reduce(picture: Image.Image, colours: int) -> Image.Image:
    """With fewer colours, rare ones among them: a small blue part on a large grey table stays blue."""
    return picture.quantize(colours, method=Image.Quantize.MAXCOVERAGE, kmeans=2, dither=Image.Dither.NONE)


def _frames(folder: Path, look: str, camera: str) -> list[np.ndarray]:
    path = video_path(folder, look, camera)
    if not path.is_file():
        raise UserError(f"{folder.name}: not rendered with look {look!r}; run `demomill render` first")
    return list(read_frames(path))
