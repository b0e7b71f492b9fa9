"""Hashes by which a dataset says what it holds and what it was made from."""

import hashlib
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pipeline.export.layout import CARD_PATH, MANIFEST_PATH

UNSEALED = (CARD_PATH, MANIFEST_PATH)
"""The manifest cannot hold its own hash, and people write into the card."""


def rows_digest(columns: Mapping[str, NDArray[np.generic]]) -> str:
    """Sha256 over the rows of one episode: name, type, row shape and bytes of each column, in order of name."""
    digest = hashlib.sha256()
    for key, values in sorted(columns.items()):
        digest.update(f"{key}:{values.dtype}:{values.shape[1:]}".encode())
        digest.update(np.ascontiguousarray(values).tobytes())
    return digest.hexdigest()


def file_digest(path: Path) -> str:
    """Sha256 of a file."""
    with path.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def seal(root: Path) -> dict[str, dict[str, int | str]]:
    """Size in bytes and sha256 of every file of a dataset but the manifest and the card, by relative path."""
    return {
        name: {"size": path.stat().st_size, "sha256": file_digest(path)}
        for name, path in sorted((path.relative_to(root).as_posix(), path) for path in root.rglob("*"))
        if path.is_file() and name not in UNSEALED
    }
