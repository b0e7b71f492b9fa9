"""What ``meta/info.json`` of a LeRobot dataset says, each value checked before anything is made of it."""

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from qc.errors import QcError

_NUMBERS = ("float32", "float64", "float16", "int64", "int32", "int16", "int8", "uint8", "bool")
_VERSIONS = ((3, 0), (2, 1), (2, 0))
_FASTEST = 100_000


@dataclass(frozen=True)
class Info:
    """A dataset in brief.

    Attributes:
        version: (major, minor).
        fps: rows a second.
        features: name to ``dtype``, ``shape`` and ``names``.
        episodes: how many are declared.
        frames: how many rows are declared.
        video_path: pattern of the videos' places; empty if there are none.
        chunks_size: files in a folder, before version 3.
    """

    version: tuple[int, int]
    fps: float
    features: Mapping[str, Mapping[str, Any]]
    episodes: int
    frames: int
    video_path: str
    chunks_size: int

    def vectors(self) -> list[str]:
        """Features that are vectors of numbers."""
        return [name for name, f in self.features.items() if f["dtype"] in _NUMBERS and len(f["shape"]) < 2]

    def videos(self) -> list[str]:
        """Features that are videos."""
        return [name for name, f in self.features.items() if f["dtype"] == "video"]

    def size(self, name: str) -> int:
        """Numbers in a row of a feature; 0 if there is no such feature."""
        return math.prod(self.features[name]["shape"]) if name in self.vectors() else 0

    def names(self, parts: Sequence[str]) -> tuple[str, ...]:
        """Names of the dimensions of features set side by side."""
        found: list[str] = []
        for part in parts:
            names, size = _flat(self.features[part].get("names")), self.size(part)
            found += names if len(names) == size else [f"{part.rpartition('.')[2]}_{i}" for i in range(size)]
        return tuple(found)


def read_info(path: Path) -> Info:
    """Read ``meta/info.json``.

    Raises:
        OSError: if it may not be read.
        QcError: if it does not parse, its version is not known, or a value is not what it should be.
    """
    try:
        told = json.loads(path.read_bytes())
    except ValueError as error:
        raise QcError(f"{path}: not readable ({type(error).__name__}: {error}); fetch it again") from None
    if not isinstance(told, dict):
        raise QcError(f"{path}: not readable (it holds no object); fetch it again")

    version = re.match(r"v?(\d+)\.(\d+)", str(told.get("codebase_version")))
    major_minor = (int(version[1]), int(version[2])) if version else None
    if major_minor not in _VERSIONS:
        raise QcError(f"{path}: LeRobot version {told.get('codebase_version')}; convert the dataset to v3.0")
    values = {key: _checked(path, told, key) for key in _WANTED}
    for name, feature in values["features"].items():
        _check_feature(path, name, feature)
    return Info(
        version=major_minor,
        fps=float(values["fps"]),
        features=values["features"],
        episodes=values["total_episodes"],
        frames=values["total_frames"],
        video_path=values["video_path"],
        chunks_size=values["chunks_size"],
    )


def _checked(path: Path, told: Mapping[str, Any], key: str) -> Any:
    sound, wanted = _WANTED[key]
    value = told.get(key)
    value = _UNTOLD.get(key) if value is None else value
    return value if sound(value) else _refuse(path, key, value, wanted)


def _check_feature(path: Path, name: str, feature: Any) -> None:
    if not isinstance(feature, dict) or not isinstance(feature.get("dtype"), str):
        _refuse(path, f"features, {name}", feature, "an object with dtype and shape")
    shape = feature.get("shape")
    if feature["dtype"] in _NUMBERS and not (isinstance(shape, list) and all(_is_count(size) for size in shape)):
        _refuse(path, f"features, {name}, shape", shape, "a list of whole numbers")


def _refuse(path: Path, key: str, value: Any, wanted: str) -> NoReturn:
    shown = "is missing or null" if value is None else f"is {value!r:.80}"
    raise QcError(f"{path}: {key} {shown}, and should be {wanted}; correct it, or fetch the file again")


def _is_count(value: Any) -> bool:
    return type(value) is int and value >= 0


_WANTED: Mapping[str, tuple[Callable[[Any], bool], str]] = {
    "fps": (lambda v: isinstance(v, int | float) and 0 < v <= _FASTEST, f"a number above 0 and up to {_FASTEST}"),
    "features": (lambda v: isinstance(v, dict) and bool(v), "an object that names each feature"),
    "total_episodes": (_is_count, "a whole number"),
    "total_frames": (_is_count, "a whole number"),
    "video_path": (lambda v: isinstance(v, str), "a text"),
    "chunks_size": (lambda v: _is_count(v) and v > 0, "a whole number above 0"),
}
_UNTOLD: Mapping[str, Any] = {"video_path": "", "chunks_size": 1000}
"""What holds where the file does not say."""


def _flat(names: Any) -> list[str]:
    """Names of dimensions, which datasets write as a list, or as lists in lists or dictionaries."""
    if isinstance(names, Mapping):
        return [name for value in names.values() for name in _flat(value)]
    if isinstance(names, list | tuple):
        return [name for value in names for name in _flat(value)]
    return [str(names)] if isinstance(names, str) else []
