"""A dataset repository on the Hub, through the real client; its errors said in words a user can act on."""

import re
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import httpx
from huggingface_hub import HfApi, get_token, hf_hub_download
from huggingface_hub.errors import HfHubHTTPError, OfflineModeIsEnabled, RepositoryNotFoundError, RevisionNotFoundError
from huggingface_hub.hf_api import RepoFile
from huggingface_hub.utils.tqdm import are_progress_bars_disabled, disable_progress_bars, enable_progress_bars

from pipeline.errors import UserError
from pipeline.export.layout import CARD_PATH
from pipeline.release.errors import explain, find_endpoint, is_passing
from pipeline.release.files import File

KIND = "dataset"
TRIES = 4
"""Of a request that the client itself does not repeat, when the Hub stumbles or the line breaks."""

T = TypeVar("T")


@dataclass(frozen=True)
class Served:
    """A file that the Hub lists: its size in bytes, and one of the two hashes."""

    size: int
    git_sha1: str
    sha256: str | None

    def equals(self, file: File) -> bool:
        """Whether it is said to hold the same bytes."""
        if self.size != file.size:
            return False
        return self.sha256 == file.sha256 if self.sha256 else self.git_sha1 == file.git_sha1


@dataclass(frozen=True)
class Remote:
    """A repository as it is now.

    Attributes:
        commit: newest commit of its main branch; None if there is no such repository yet.
        private: whether only those who may can see it.
        files: of that commit, by path.
        tags: commit of each tag.
        card: its card; empty if it has none.
    """

    commit: str | None = None
    private: bool = True
    files: Mapping[str, Served] = field(default_factory=dict)
    tags: Mapping[str, str] = field(default_factory=dict)
    card: str = ""


class Repository:
    """One dataset repository.

    Args:
        repo_id: ``user/name``.
        endpoint: address of the Hub; None takes ``HF_ENDPOINT`` or huggingface.co.

    Raises:
        UserError: if the name or the address cannot be right.
    """

    def __init__(self, repo_id: str, endpoint: str | None = None) -> None:
        self.repo_id, self.endpoint = repo_id, find_endpoint(endpoint)
        if not re.fullmatch(r"\w[\w.-]*/\w[\w.-]*", repo_id):
            raise UserError(f"{repo_id}: no name of a repository; give user/name")
        self.api = HfApi(endpoint=self.endpoint, library_name="demomill")

    @property
    def url(self) -> str:
        """Where people see it."""
        return f"{self.endpoint}/datasets/{self.repo_id}"

    def look(self) -> Remote:
        """What is there.

        Raises:
            UserError: if the Hub cannot be asked or refuses, or the name is taken by a model or a space.
        """
        with self.explained():
            try:
                info = self._asked(lambda: self.api.dataset_info(self.repo_id))
            except RepositoryNotFoundError:
                self._refuse_other_kinds()
                return Remote()
            files = self.files(str(info.sha))
            card = self.read(CARD_PATH, str(info.sha)) if CARD_PATH in files else ""
            return Remote(info.sha, bool(info.private), files, self.tags(), card)

    def files(self, commit: str) -> dict[str, Served]:
        """What the Hub lists at a commit."""
        with self.explained():
            entries = self._asked(
                lambda: list(self.api.list_repo_tree(self.repo_id, recursive=True, revision=commit, repo_type=KIND))
            )
        return {
            entry.path: Served(entry.size, entry.blob_id, entry.lfs.sha256 if entry.lfs else None)
            for entry in entries
            if isinstance(entry, RepoFile)
        }

    def tags(self) -> dict[str, str]:
        """Commit of each tag."""
        with self.explained():
            refs = self._asked(lambda: self.api.list_repo_refs(self.repo_id, repo_type=KIND))
        return {tag.name: tag.target_commit for tag in refs.tags}

    def read(self, path: str, commit: str) -> str:
        """A text file."""
        with tempfile.TemporaryDirectory(prefix="demomill-") as cache:
            return self.fetch(path, commit, Path(cache)).read_text()

    def fetch(self, path: str, commit: str, cache: Path) -> Path:
        """Download a file into a cache of the Hub's client, and return where it lies."""
        with self.explained():
            return Path(
                self._asked(
                    lambda: hf_hub_download(
                        self.repo_id,
                        path,
                        repo_type=KIND,
                        revision=commit,
                        cache_dir=cache,
                        endpoint=self.endpoint,
                    )
                )
            )

    def create(self, private: bool) -> None:
        """Create it, unless it is there."""
        with self.explained():
            self._asked(lambda: self.api.create_repo(self.repo_id, repo_type=KIND, private=private, exist_ok=True))

    def set_tag(self, tag: str, commit: str) -> None:
        """Let a tag name a commit, whatever it named before; if that fails, it names what it did.

        Raises:
            UserError: if the Hub refuses, or then says that the tag is elsewhere.
        """
        earlier = self.tags().get(tag)
        if earlier == commit:
            return
        with self.explained():
            try:
                self._untag(tag)
                self._tag(tag, commit)
                found = self.tags().get(tag)
                if found != commit:
                    raise UserError(
                        f"{self.repo_id}: the tag {tag} names commit {found}, not {commit} that was verified; "
                        "somebody moved it, or the Hub did; publish again"
                    )
            except Exception:
                self._put_back(tag, earlier)
                raise

    def require_token(self) -> None:
        """Refuse to write without a login.

        Raises:
            UserError: if there is no token.
        """
        if get_token() is None:
            raise UserError("no login of the Hub; run `hf auth login`, or set HF_TOKEN to a token that may write")

    def _tag(self, tag: str, commit: str) -> None:
        self._asked(lambda: self.api.create_tag(self.repo_id, tag=tag, revision=commit, repo_type=KIND, exist_ok=True))

    def _untag(self, tag: str) -> None:
        with suppress(RevisionNotFoundError):
            self._asked(lambda: self.api.delete_tag(self.repo_id, tag=tag, repo_type=KIND))

    def _put_back(self, tag: str, earlier: str | None) -> None:
        self._untag(tag)
        if earlier is not None:
            self._tag(tag, earlier)

    def _refuse_other_kinds(self) -> None:
        for kind in ("model", "space"):
            if self._asked(lambda kind=kind: self.api.repo_exists(self.repo_id, repo_type=kind)):  # type: ignore[misc]
                raise UserError(f"{self.repo_id}: is a {kind} repository, not a dataset; publish under another name")

    def _asked(self, ask: Callable[[], T]) -> T:
        for attempt in range(TRIES):
            try:
                return ask()
            except (HfHubHTTPError, httpx.TransportError) as error:
                if attempt == TRIES - 1 or not is_passing(error):
                    raise
                time.sleep(0.5 * 2**attempt)
        raise AssertionError("unreachable")

    @contextmanager
    def explained(self) -> Iterator[None]:
        """Say in words what the client raises.

        Raises:
            UserError: instead of any error of the client.
        """
        try:
            yield
        except UserError:
            raise
        except (httpx.HTTPError, OfflineModeIsEnabled, RuntimeError, ValueError, OSError) as error:
            raise UserError(explain(error, self.repo_id, self.endpoint)) from None


@contextmanager
def without_bars() -> Iterator[None]:
    """Keep the client's own progress bars off the terminal."""
    if are_progress_bars_disabled():
        yield
        return
    disable_progress_bars()
    try:
        yield
    finally:
        enable_progress_bars()
