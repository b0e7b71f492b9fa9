"""Whatever is to be judged: a run folder, a LeRobot dataset in a folder, or one on the Hugging Face Hub."""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from qc.episodes import EpisodeSet
from qc.errors import QcError
from qc.readers.lerobot import read_lerobot
from qc.readers.lerobot_meta import is_lerobot
from qc.readers.run import is_run, read_run

_HUB_ID = re.compile(r"[\w.-]+/[\w.-]+")
_TOLD = 3


def find_source(source: str, revision: str | None = None, *, videos: bool = False) -> Path:
    """Folder of what is to be judged; a dataset on the Hub is fetched into its cache, videos only if asked for.

    Raises:
        QcError: if there is nothing that can be read.
    """
    with _readable(source):
        folder = Path(source).expanduser()
        there = folder.exists()
        if is_run(folder) or is_lerobot(folder):
            return folder
    if there:
        raise QcError(f"{source}: neither a run folder (run.json) nor a LeRobot dataset (meta/info.json)")
    if not _HUB_ID.fullmatch(source):
        told = f"{source}: no run here, nor a dataset, nor is it a name on the Hub (user/name)"
        raise QcError(f"{told}; make a run with `demomill record`")
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError, RepositoryNotFoundError

    patterns = ["meta/**", "data/**", *(["videos/**"] if videos else [])]
    # The client itself reads HF_ENDPOINT when it is imported, and never again.
    endpoint = os.environ.get("HF_ENDPOINT") or None
    try:
        fetched = snapshot_download(
            source, repo_type="dataset", revision=revision, allow_patterns=patterns, endpoint=endpoint
        )
        return Path(fetched)
    except RepositoryNotFoundError:
        raise QcError(f"{source}: no such folder, and no such dataset on the Hub; is it private? then log in") from None
    except (HfHubHTTPError, LocalEntryNotFoundError, OSError) as error:
        told = " ".join(str(error).split())[:200]
        raise QcError(f"{source}: no such folder, and the Hub cannot be asked ({told})") from None


def read_source(folder: Path, *, videos: bool = False) -> EpisodeSet:
    """Read a run or a dataset folder.

    Args:
        videos: compare videos with rows as well.

    Raises:
        QcError: if it cannot be read, or so much is wrong with its files that no verdict could be trusted.
    """
    with _readable(str(folder)):
        found = read_run(folder) if is_run(folder) else read_lerobot(folder, videos=videos)
    if fatal := [str(finding) for finding in found.findings if finding.fatal]:
        more = f" (and {len(fatal) - _TOLD} more findings)" if len(fatal) > _TOLD else ""
        raise QcError(f"{folder}: {'. Also '.join(fatal[:_TOLD])}{more}")
    if not videos:
        return found
    from qc.readers.video import check_videos

    return check_videos(found)


@contextmanager
def _readable(source: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise QcError(
            f"{error.filename or source}: cannot be read ({error.strerror}); see to its permissions"
        ) from None
