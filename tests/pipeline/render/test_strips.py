"""Strips and clips of painted videos, whose pictures spell their frame."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from pipeline.errors import UserError
from pipeline.render.strips import CLIP_BYTES, CLIP_FRAMES, CLIP_S, STRIP_BYTES, clip, phase_strip
from pipeline.store import read_meta
from tests.pipeline.factories import CAMERAS, PHASES, make_episode, read_paint, write_run

LENGTH = 90
COLUMN_PX, LINE_PX = 195, 242


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_run(tmp_path_factory.mktemp("strips"), [make_episode(length=LENGTH)]).folders()[0]


def shown(strip: Image.Image, place: int, camera: int) -> tuple[int, int, int]:
    """Episode, frame and camera of a picture in a strip."""
    left, top = place % 6 * COLUMN_PX, place // 6 * LINE_PX + camera * 111
    picture = strip.crop((left, top, left + 192, top + 108)).resize((64, 32), Image.Resampling.BOX)
    return read_paint(np.asarray(picture))


def test_a_strip_shows_how_each_phase_ended(folder: Path, tmp_path: Path) -> None:
    meta = read_meta(folder)
    path = phase_strip(folder, meta, tmp_path / "strip.png", "plain", CAMERAS)
    assert path.stat().st_size <= STRIP_BYTES
    strip = Image.open(path).convert("RGB")
    assert strip.size == (len(PHASES) * COLUMN_PX - 3, LINE_PX)
    for place, span in enumerate(meta["phase_spans"]):
        assert [shown(strip, place, camera) for camera in (0, 1)] == [(0, span["end"] - 1, c) for c in (0, 1)]
        label = np.asarray(strip.crop((place * COLUMN_PX, LINE_PX - 20, place * COLUMN_PX + 192, LINE_PX)))
        assert label.min() < 100


def test_a_phase_that_returns_is_shown_once_and_many_go_on_below(folder: Path, tmp_path: Path) -> None:
    names = [*(f"stroke {n}" for n in range(7)), "stroke 3"]
    spans = [{"phase": name, "start": 10 * n, "end": 10 * n + 10} for n, name in enumerate(names)]
    path = phase_strip(folder, {"phase_spans": spans}, tmp_path / "strip.png", "plain", CAMERAS)
    strip = Image.open(path).convert("RGB")
    assert strip.size == (6 * COLUMN_PX - 3, 2 * LINE_PX)
    assert shown(strip, 3, 0) == (0, 79, 0)
    assert shown(strip, 6, 1) == (0, 69, 1)


def test_a_clip_plays_the_whole_episode_in_few_bytes(folder: Path, tmp_path: Path) -> None:
    path = clip(folder, tmp_path / "clip.gif", "plain", CAMERAS)
    assert path.stat().st_size <= CLIP_BYTES
    with Image.open(path) as found:
        assert getattr(found, "n_frames", 1) == CLIP_FRAMES
        assert found.info["duration"] * CLIP_FRAMES == pytest.approx(1000 * CLIP_S, rel=0.1)
        assert found.info["loop"] == 0
        frames = []
        for number in (0, CLIP_FRAMES - 1):
            found.seek(number)
            half = found.convert("RGB").crop((0, 0, found.width // 2, found.height))
            frames.append(read_paint(np.asarray(half.resize((64, 32), Image.Resampling.BOX)))[1])
    assert frames == [0, LENGTH - 1]


def test_an_episode_that_is_not_rendered(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="not rendered with look 'dusk'"):
        clip(folder, tmp_path / "clip.gif", "dusk", CAMERAS)
