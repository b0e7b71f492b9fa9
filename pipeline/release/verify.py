"""Proof that the Hub serves, at one commit, the bytes of a release."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from huggingface_hub import constants

from pipeline.errors import UserError
from pipeline.export.digests import file_digest
from pipeline.export.layout import INFO_PATH
from pipeline.release.files import OURS, File
from pipeline.release.hub import Repository, Served

MOST_TOLD = 5
DOWNLOADS = 4


def verify_release(
    repository: Repository, commit: str, files: Sequence[File], checked: Callable[[int], object] = int
) -> None:
    """Download a release into an empty cache, compare every byte, and load it from there with LeRobot.

    Args:
        commit: the exact commit that is examined, whatever the branch or a tag names by now.
        files: of the release.
        checked: told the number of files that were examined since it was told last.

    Raises:
        UserError: naming each file that the Hub does not serve as it was sent.
    """
    _refuse(repository, commit, check_listing(repository.files(commit), files))
    with tempfile.TemporaryDirectory(prefix="demomill-release-") as folder:
        cache = Path(folder) / "hub"
        with ThreadPoolExecutor(DOWNLOADS) as pool:

            def examine(file: File) -> str:
                problem = check_download(repository, commit, file, cache)
                checked(1)
                return problem

            _refuse(repository, commit, filter(None, pool.map(examine, files)))
        reload_with_lerobot(repository, commit, Path(folder), files)


def require_room(files: Sequence[File]) -> None:
    """Refuse to begin what could not be verified.

    Raises:
        UserError: if a download does not fit into the folder of temporary files.
    """
    folder, wanted = Path(tempfile.gettempdir()), sum(file.size for file in files)
    free = shutil.disk_usage(folder).free
    if free < wanted:
        raise UserError(
            f"{folder}: {free / 1e9:.1f} GB are free, and a release is downloaded again to be verified "
            f"({wanted / 1e9:.1f} GB); set TMPDIR to a larger disk"
        )


def check_listing(listed: dict[str, Served], files: Sequence[File]) -> Iterator[str]:
    """What the Hub lists against what was sent: missing, other and stale files."""
    for file in files:
        served = listed.get(file.path)
        if served is None:
            yield f"{file.path}: is missing"
        elif served.size != file.size:
            yield f"{file.path}: is listed with {served.size} bytes, has {file.size}"
        elif not served.equals(file):
            yield f"{file.path}: is listed with another hash"
    for path in sorted(listed.keys() - {file.path for file in files}):
        if path.startswith(OURS):
            yield f"{path}: is stale: it is not of this release, yet readers may load it"


def check_download(repository: Repository, commit: str, file: File, cache: Path) -> str:
    """What is wrong with the bytes that are served for a file; empty if nothing is."""
    try:
        served = repository.fetch(file.path, commit, cache)
    except UserError as error:
        return f"{file.path}: cannot be downloaded whole ({error})"
    if served.stat().st_size != file.size:
        return f"{file.path}: {served.stat().st_size} bytes are served, {file.size} were sent"
    if file_digest(served) != file.sha256:
        return f"{file.path}: other bytes are served than were sent (sha256 is not {file.sha256[:12]}...)"
    if file.path.endswith(".parquet"):
        try:
            pq.read_metadata(served)
        except (OSError, pa.ArrowException) as error:
            return f"{file.path}: its footer cannot be read ({error})"
    return ""


def reload_with_lerobot(repository: Repository, commit: str, home: Path, files: Sequence[File]) -> None:
    """Load a release by name and commit with LeRobot, in a process of its own that has no other cache.

    Args:
        home: an empty cache, or one that holds nothing but files of this commit.

    Raises:
        UserError: if LeRobot cannot load it, or finds another number of episodes or rows.
    """
    places = {"HF_HOME": home, "HF_LEROBOT_HOME": home, "HF_TOKEN_PATH": constants.HF_TOKEN_PATH}
    with subprocess.Popen(
        [sys.executable, "-m", "pipeline.release.reload", str(os.getpid()), repository.repo_id, commit],
        env={**os.environ, **{name: str(place) for name, place in places.items()}, "HF_ENDPOINT": repository.endpoint},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as child:
        try:
            out, err = child.communicate()
        except BaseException:
            # The cache is about to be removed under it.
            child.kill()
            child.wait()
            raise
    if child.returncode:
        why = (err.strip().splitlines() or ["it was killed"])[-1]
        raise UserError(f"{repository.repo_id}: LeRobot cannot load it at commit {commit}: {why}; no tag was moved")
    found = json.loads(out.splitlines()[-1])
    source = next(file.source for file in files if file.path == INFO_PATH)
    assert isinstance(source, Path)
    info = json.loads(source.read_text())
    for key, count in found.items():
        if info[f"total_{key}"] != count:
            raise UserError(
                f"{repository.repo_id}: LeRobot finds {count} {key} at commit {commit}, there are "
                f"{info[f'total_{key}']}; no tag was moved"
            )


def _refuse(repository: Repository, commit: str, problems: Iterator[str]) -> None:
    found = list(problems)
    if found:
        more = f" (and {len(found) - MOST_TOLD} more)" if len(found) > MOST_TOLD else ""
        raise UserError(
            f"{repository.repo_id}: the Hub does not serve at commit {commit} what was sent: "
            f"{'; '.join(found[:MOST_TOLD])}{more}; no tag was moved; publish again"
        )
