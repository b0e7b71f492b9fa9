"""Where quality control may write: never into what it reads."""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from qc.errors import QcError
from qc.readers.lerobot_meta import is_lerobot
from qc.readers.run import is_run


def require_place(root: Path, source: Path, files: Sequence[Path]) -> None:
    """Make sure, before anything is read, that results may be written to a folder, which is there or can be made.

    In a dataset nothing is written, and in a run only in its ``qc``, wherever symbolic links lead.

    Args:
        source: folder that is to be judged.
        files: in the folder, which are to be written.

    Raises:
        QcError: if it lies in a dataset or in the run, a file is in its way or a folder in that of one of the files, or
            nothing may be written there.
    """
    try:
        if taken := next(_taken(real(root), source), None):
            own = ", or leave --out out: a run's verdicts go into its qc" if is_run(source) else ""
            raise QcError(f"{root}: lies in {taken}, which is left alone; choose a folder outside{own}")
        if root.is_symlink() and not root.exists():
            raise QcError(f"{root}: is a link that leads nowhere; choose another folder")
        there = next(place for place in (root.absolute(), *root.absolute().parents) if place.exists())
        if not there.is_dir():
            raise QcError(f"{root}: {there} is a file; choose another folder")
        if blocked := next((file for file in files if file.is_dir()), None):
            raise QcError(f"{blocked}: is a folder; move it away, or choose another place for the verdicts")
    except OSError as error:
        raise QcError(f"{root}: cannot be used ({str(error.strerror).lower()}); choose another folder") from None
    if not os.access(there, os.W_OK):
        raise QcError(f"{root}: nothing may be written in {there}; choose another folder")


def real(path: Path) -> Path:
    """The path without symbolic links; what does not exist stays as it is."""
    return Path(os.path.realpath(path))


def _taken(place: Path, source: Path) -> Iterator[Path]:
    """Folders that hold recordings and in which the place lies."""
    if is_run(source) and place.is_relative_to(real(source / "qc")):
        return
    parts = (source, *(child for child in source.iterdir() if child.is_dir() and child.name != "qc"))
    yield from (part for part in parts if place.is_relative_to(real(part)))
    yield from (folder for folder in (place, *place.parents) if is_lerobot(folder))
    if is_run(place):
        yield place
