"""Files by name, and text files that are written whole or not at all."""

import os
from contextlib import suppress
from pathlib import Path

from qc.errors import QcError


def is_file(path: Path) -> bool:
    """Whether a file can be found there; no name is too long to be asked about."""
    try:
        return path.is_file()
    except OSError:
        return False


def write_text(path: Path, text: str) -> None:
    """Write a text file, whole or not at all.

    Raises:
        QcError: if it cannot be written.
    """
    staging = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        staging.write_text(text, encoding="utf-8")
        staging.replace(path)
    except OSError as error:
        raise QcError(f"{path}: cannot be written ({str(error.strerror).lower()}); choose another folder") from None
    finally:
        with suppress(OSError):
            staging.unlink(missing_ok=True)
