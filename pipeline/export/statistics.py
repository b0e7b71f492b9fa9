"""Statistics by which policies normalise: exact, over every frame of an episode or of the dataset."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipeline.video import read_keyframes

QUANTILES = {"q01": 0.01, "q10": 0.10, "q50": 0.50, "q90": 0.90, "q99": 0.99}

Statistics = dict[str, NDArray[np.generic]]
"""``min, max, mean, std``, the quantiles and ``count``, by name."""

KEYFRAME_STRIDE = 4
"""Neighbouring keyframes are much alike: one in four, two a second, stands for them."""

_PIXEL_STRIDE = 2
"""As LeRobot does for pictures of this size."""


def vector_statistics(values: NDArray[np.generic]) -> Statistics:
    """Statistics of rows (n, d), or (n,) for a scalar column, a value a dimension."""
    rows = values.reshape(len(values), -1).astype(np.float64)
    quantiles = np.quantile(rows, list(QUANTILES.values()), axis=0)
    return {
        "min": rows.min(axis=0),
        "max": rows.max(axis=0),
        "mean": rows.mean(axis=0),
        "std": rows.std(axis=0),
        **dict(zip(QUANTILES, quantiles, strict=True)),
        "count": np.array([len(rows)]),
    }


def as_columns(key: str, statistics: Statistics) -> dict[str, Any]:
    """Statistics of one feature as columns of ``meta/episodes``."""
    return {f"stats/{key}/{name}": value.tolist() for name, value in statistics.items()}


@dataclass(frozen=True)
class PixelHistogram:
    """How often each of the 256 levels occurs in each of the three channels.

    Attributes:
        counts: (3, 256) pixels.
        images: pictures counted.
    """

    counts: NDArray[np.int64]
    images: int

    @classmethod
    def of_video(cls, path: Path) -> "PixelHistogram":
        """Count the pixels of a sample of a video's keyframes."""
        return cls.of_images(read_keyframes(path, every=KEYFRAME_STRIDE))

    @classmethod
    def of_images(cls, pictures: Iterable[NDArray[np.uint8]]) -> "PixelHistogram":
        """Count a sample of the pixels of pictures (height, width, 3)."""
        counts = np.zeros(3 * 256, dtype=np.int64)
        images = 0
        for image in pictures:
            sample = image[::_PIXEL_STRIDE, ::_PIXEL_STRIDE] + np.arange(0, 3 * 256, 256)
            counts += np.bincount(sample.reshape(-1), minlength=3 * 256)
            images += 1
        return cls(counts.reshape(3, 256), images)

    def __add__(self, other: "PixelHistogram") -> "PixelHistogram":
        return PixelHistogram(self.counts + other.counts, self.images + other.images)

    def statistics(self) -> Statistics:
        """Statistics of the pixels in [0, 1], shape (3, 1, 1) each."""
        levels = np.arange(256) / 255.0
        total = self.counts.sum(axis=1, keepdims=True)
        mean = (self.counts @ levels)[:, None] / total
        variance = (self.counts * (levels - mean) ** 2).sum(axis=1, keepdims=True) / total
        below = self.counts.cumsum(axis=1)
        values = {
            "min": levels[(self.counts > 0).argmax(axis=1)],
            "max": levels[255 - (self.counts[:, ::-1] > 0).argmax(axis=1)],
            "mean": mean,
            "std": np.sqrt(variance),
            **{name: levels[(below >= np.ceil(q * total)).argmax(axis=1)] for name, q in QUANTILES.items()},
        }
        return {**{name: value.reshape(3, 1, 1) for name, value in values.items()}, "count": np.array([self.images])}
