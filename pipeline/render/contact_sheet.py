"""One labelled picture of many episodes: a row each, what both cameras saw at the key moments from left to right."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from pipeline.errors import UserError
from pipeline.render.cameras import HEIGHT_PX, SIZE, WIDTH_PX
from pipeline.render.sidecar import video_path
from pipeline.store import Run, explain_os_errors, read_meta
from pipeline.video import read_frames

COLUMNS = ("start", "grasp", "transport", "assembly", "end")
"""``start`` and ``end`` are the first and last row; any other name is the middle of that phase."""

ASSEMBLY = ("insert", "mesh", "thread")
"""Phases, of pegs, gears and nuts, that the column ``assembly`` stands for."""

_MARGIN_PX, _GAP_PX, _TITLE_PX, _HEADER_PX = 12, 4, 26, 30
_PAPER, _INK, _QUIET = (255, 255, 255), (25, 28, 32), (110, 115, 122)


def contact_sheet(
    root: Path | str,
    episode_ids: Sequence[str],
    path: Path | str,
    *,
    look: str = "plain",
    cameras: Sequence[str] = ("front", "wrist"),
    columns: Sequence[str] = COLUMNS,
) -> Path:
    """Draw rendered episodes and save the picture; its type follows from the file's ending (``.png``, ``.jpg``).

    Args:
        root: run folder.
        episode_ids: one row each, in this order.
        path: the picture; replaced if it exists.
        cameras: stacked in each row, from top to bottom.
        columns: see :data:`COLUMNS`; a phase that an episode never reached stays empty.

    Raises:
        UserError: for an unknown episode, one that is not rendered, or a file that cannot be written.
    """
    run = Run(root)
    known = {folder.name: folder for folder in run.folders()}
    if unknown := [episode for episode in episode_ids if episode not in known]:
        raise UserError(f"{run.root}: no episode {unknown[0]!r} among its {len(known)}")
    if not episode_ids:
        raise UserError("no episode given for the contact sheet")
    row_px = _TITLE_PX + len(cameras) * (HEIGHT_PX + _GAP_PX) + _MARGIN_PX
    width = 2 * _MARGIN_PX + len(columns) * (WIDTH_PX + _GAP_PX) - _GAP_PX
    sheet = Image.new("RGB", (width, _HEADER_PX + len(episode_ids) * row_px), _PAPER)
    draw, bold, small = ImageDraw.Draw(sheet), ImageFont.load_default(17), ImageFont.load_default(13)
    lefts = [_MARGIN_PX + i * (WIDTH_PX + _GAP_PX) for i in range(len(columns))]
    for left, column in zip(lefts, columns, strict=True):
        draw.text((left + WIDTH_PX // 2, _HEADER_PX - 6), column, _INK, bold, anchor="ms")
    for number, episode in enumerate(episode_ids):
        top = _HEADER_PX + number * row_px
        meta = read_meta(known[episode])
        draw.text((_MARGIN_PX, top + _TITLE_PX - 8), meta["task"], _INK, bold, anchor="ls")
        ending = meta["outcome"] if meta["reason"] is None else f"{meta['outcome']}: {meta['reason']}"
        caption = f"{episode}   {ending}   {meta['length']} frames   {' / '.join(cameras)}, {look}"
        draw.text((width - _MARGIN_PX, top + _TITLE_PX - 8), caption, _QUIET, small, anchor="rs")
        rows = [_moment(meta, column) for column in columns]
        for stacked, camera in enumerate(cameras):
            y = top + _TITLE_PX + stacked * (HEIGHT_PX + _GAP_PX)
            frames = _frames(video_path(known[episode], look, camera), {row for row in rows if row is not None})
            for left, row in zip(lefts, rows, strict=True):
                if row is not None:
                    sheet.paste(Image.fromarray(frames[row]).resize(SIZE), (left, y))
                else:
                    draw.text((left + WIDTH_PX // 2, y + HEIGHT_PX // 2), "not reached", _QUIET, small, anchor="mm")
    with explain_os_errors(Path(path)):
        sheet.save(path)
    return Path(path)


def _moment(meta: Mapping[str, Any], column: str) -> int | None:
    if column in ("start", "end"):
        return 0 if column == "start" else int(meta["length"]) - 1
    phases = ASSEMBLY if column == "assembly" else (column,)
    spans = [span for span in meta["phase_spans"] if span["phase"] in phases]
    return (spans[-1]["start"] + spans[-1]["end"]) // 2 if spans else None


def _frames(path: Path, rows: set[int]) -> dict[int, np.ndarray]:
    return {row: frame for row, frame in enumerate(read_frames(path)) if row in rows}
