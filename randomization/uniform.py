"""Draw every field of a dataclass of axes."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import numpy as np


def draw_uniform[T](cls: type[T], rng: np.random.Generator, ranges: Mapping[str, tuple[float, float]]) -> T:
    """Uniform in ``ranges``, axis by axis in the order of the fields of a dataclass; whole numbers are rounded."""
    drawn = {field.name: (field.type, rng.uniform(*ranges[field.name])) for field in fields(cls)}  # type: ignore[arg-type]
    values: dict[str, Any] = {k: round(v) if kind is int else float(v) for k, (kind, v) in drawn.items()}
    return cls(**values)
