"""The manifest of a run: what made it, what is in it, and the hash of every file."""

import json
import platform
import subprocess
from collections import Counter
from collections.abc import Iterator, Mapping
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

from pipeline import __version__
from pipeline.engine import cuda_devices
from pipeline.errors import DamagedEpisode, UserError
from pipeline.export.digests import file_digest
from pipeline.store import Run, explain_os_errors, read_meta, write_atomically

MANIFEST = "manifest.json"
SOURCE = Path(__file__).resolve().parents[1]


def write_manifest(root: Path, recipe: Mapping[str, Any] | None = None, recipe_text: str = "") -> Path:
    """Describe a run as it is now; it may be complete or not.

    Args:
        root: run folder.
        recipe: of the release that it is made for, as resolved.
        recipe_text: the same, verbatim as the user wrote it.

    Returns:
        The manifest, ``manifest.json`` in the run folder: ``source`` (git commit and whether the tree is dirty, or None
        without a tree), ``versions``, ``machine``, ``run`` (what all its episodes have in common), ``recipe``,
        ``tasks`` (attempts committed by outcome, damaged or hung), ``shards`` (reports), ``files`` (size, sha256).

    Raises:
        UserError: if there is no run, or it cannot be written.
    """
    run = Run(root)
    path = run.root / MANIFEST
    manifest = {
        "source": _source(),
        "versions": {"demomill": __version__, "python": platform.python_version(), "packages": _packages()},
        "machine": {"system": platform.platform(), "processor": _processor(), "cuda_devices": cuda_devices()},
        "run": run.recipe,
        "recipe": {"text": recipe_text, "resolved": recipe},
        "tasks": _tasks(run),
        "shards": run.shard_reports(),
        "files": {name: {"size": file.stat().st_size, "sha256": file_digest(file)} for name, file in _files(run.root)},
    }
    with explain_os_errors(run.root):
        write_atomically(path, json.dumps(manifest, indent=1, sort_keys=True) + "\n")
    return path


def check_manifest(root: Path) -> list[str]:
    """Compare the files of a run with its manifest; returns what differs, one sentence each.

    Raises:
        UserError: if there is no manifest, or it is not readable.
    """
    path = root / MANIFEST
    try:
        written = dict(json.loads(path.read_text())["files"])
    except FileNotFoundError:
        raise UserError(f"{path}: no manifest here; write it with `demomill manifest {root}`") from None
    except (ValueError, KeyError, TypeError) as error:
        raise UserError(f"{path}: not readable ({error}); write it again with `demomill manifest {root}`") from None
    there = dict(_files(root))
    changed = [
        f"{name}: holds other bytes than the manifest says"
        for name in sorted(written.keys() & there.keys())
        if there[name].stat().st_size != written[name]["size"] or file_digest(there[name]) != written[name]["sha256"]
    ]
    lost = [f"{name}: is missing" for name in sorted(written.keys() - there.keys())]
    return [*lost, *changed, *(f"{name}: is not in the manifest" for name in sorted(there.keys() - written.keys()))]


def _files(root: Path) -> Iterator[tuple[str, Path]]:
    """Files of a run by relative path, without the manifest and what is hidden: locks, and files half written."""
    for path in sorted(root.rglob("*")):
        name = path.relative_to(root)
        if path.is_file() and name != Path(MANIFEST) and not any(part.startswith(".") for part in name.parts):
            yield name.as_posix(), path


def _tasks(run: Run) -> dict[str, dict[str, int]]:
    counts: dict[str, Counter[str]] = {}
    for folder in run.folders():
        try:
            meta = read_meta(folder)
            outcome = str(meta["reason"] or meta["outcome"])
        except DamagedEpisode:
            outcome = "damaged"
        counts.setdefault(folder.parent.name, Counter())[outcome] += 1
    for note in run.hung().values():
        counts.setdefault(note["task"], Counter())[note["reason"]] += 1
    return {task: dict(sorted(count.items())) for task, count in sorted(counts.items())}


def _source() -> dict[str, Any] | None:
    if not (SOURCE / ".git").exists():
        return None
    try:
        return {"commit": _git("rev-parse", "HEAD"), "dirty": bool(_git("status", "--porcelain"))}
    except (OSError, subprocess.CalledProcessError):
        return None


def _git(*arguments: str) -> str:
    return subprocess.run(["git", "-C", SOURCE, *arguments], capture_output=True, text=True, check=True).stdout.strip()


def _packages() -> dict[str, str]:
    return {found.metadata["Name"]: found.version for found in distributions()}


def _processor() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine())
