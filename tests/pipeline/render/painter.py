"""A renderer that paints bars, whose places tell the poses that it is given."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import numpy as np
import pytest

from pipeline.render import worker
from pipeline.render.renderer import Choice

Poses = Mapping[str, np.ndarray]


class Painter:
    """Paints a standing bar for the held part's height, a lying one for the fixed part's x; counts its pictures."""

    def __init__(self) -> None:
        self.pictures = 0

    def render(self, body_poses: Poses, cameras: Sequence[str]) -> list[np.ndarray]:
        self.pictures += len(cameras)
        return [self.paint(body_poses) for _ in cameras]

    def paint(self, body_poses: Poses) -> np.ndarray:
        picture = np.full((180, 320, 3), 60, np.uint8)
        held, fixed = body_poses["held"], body_poses["fixed"]
        if held[2] >= 0:
            at = 20 + int(1000 * held[2])
            picture[:, at : at + 60] = 220
        if fixed[2] >= 0:
            at = 20 + int(200 * abs(fixed[0]))
            picture[at : at + 20] = 140
        return picture

    def close(self) -> None:
        pass


def install(monkeypatch: pytest.MonkeyPatch, painter: Painter) -> Painter:
    """Have the worker render with it."""

    @contextmanager
    def opened(choice: Choice, scene: object) -> Iterator[Painter]:
        yield painter

    monkeypatch.setattr(worker, "open_renderer", opened)
    return painter
