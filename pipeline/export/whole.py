"""A folder that appears whole or not at all."""

import fcntl
import json
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pipeline.errors import UserError
from pipeline.export.layout import MANIFEST_PATH
from pipeline.store import canonical_json, explain_os_errors, fsync


def require_replaceable(out: Path, source: Path, recipe: Mapping[str, Any]) -> None:
    """Refuse an output folder whose content is not ours to replace.

    Args:
        out: where the dataset will be.
        source: the run that it is made from, which must not be inside.
        recipe: that run's recipe.

    Raises:
        UserError: if ``out`` holds anything but an earlier export of a run with this recipe.
    """
    if not out.exists():
        return
    ours = out.is_dir() and ((out / MANIFEST_PATH).is_file() or not any(out.iterdir()))
    if not ours or source.is_relative_to(out):
        raise UserError(f"{out}: exists and is not an earlier export; choose a new folder for --out")
    if (out / MANIFEST_PATH).is_file() and _exported_recipe(out) != json.loads(canonical_json(recipe)):
        raise UserError(f"{out}: holds the export of another run; choose another --out, or remove that dataset")


def _exported_recipe(out: Path) -> object:
    try:
        return json.loads((out / MANIFEST_PATH).read_text())["run"]
    except (OSError, ValueError, KeyError, TypeError):
        return None


@contextmanager
def replaced_whole(out: Path) -> Iterator[Path]:
    """Yield an empty folder to fill, which then takes the place of ``out`` by renaming.

    Everything lies in a hidden folder beside ``out`` until then; what a killed export left there is cleared by the
    next, which also puts an earlier dataset back if the kill fell between the two renames.

    Raises:
        UserError: if another export to ``out`` is running, or the place cannot be written.
    """
    workshop = out.with_name(f".{out.name}.export")
    dataset, earlier = workshop / "dataset", workshop / "earlier"
    with explain_os_errors(out):
        out.parent.mkdir(parents=True, exist_ok=True)
        with _locked(workshop, out):
            _put_back(earlier, out)
            shutil.rmtree(dataset, ignore_errors=True)
            shutil.rmtree(earlier, ignore_errors=True)
            dataset.mkdir()
            try:
                yield dataset
                _fsync_tree(dataset)
                if out.exists():
                    out.rename(earlier)
                dataset.rename(out)
                fsync(out.parent)
            finally:
                _put_back(earlier, out)
                shutil.rmtree(workshop, ignore_errors=True)


def _put_back(earlier: Path, out: Path) -> None:
    if earlier.exists() and not out.exists():
        earlier.rename(out)


@contextmanager
def _locked(folder: Path, out: Path) -> Iterator[None]:
    folder.mkdir(exist_ok=True)
    handle = os.open(folder, os.O_RDONLY)
    try:
        if not _holds(handle, folder):
            raise UserError(f"{out}: another export is writing here; wait for it")
        yield
    finally:
        os.close(handle)


def _holds(handle: int, folder: Path) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    # Its last holder may have removed the folder since it was opened.
    return folder.exists() and os.path.samestat(os.fstat(handle), folder.stat())


def _fsync_tree(root: Path) -> None:
    for path in (*root.rglob("*"), root):
        fsync(path)
