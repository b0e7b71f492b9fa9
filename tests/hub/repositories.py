"""Repositories on disk: one JSON file each, objects by their hash."""

import hashlib
import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

LFS_SUFFIXES = (".parquet", ".mp4", ".png", ".gif", ".jpg")
LFS_BYTES = 5 * 2**20
GITATTRIBUTES = b"*.parquet filter=lfs diff=lfs merge=lfs -text\n*.mp4 filter=lfs diff=lfs merge=lfs -text\n"

Entry = dict[str, Any]
"""A file of a commit: ``oid`` (git's hash), ``size``, and ``sha256`` where it is an LFS object."""


def git_hash(content: bytes) -> str:
    """Hash that git gives to a blob."""
    return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()


@dataclass
class Repository:
    """State of one repository."""

    private: bool
    commits: list[dict[str, Any]]
    tags: dict[str, str]

    @property
    def head(self) -> str:
        return str(self.commits[-1]["sha"])

    def resolve(self, revision: str) -> str | None:
        """Commit of a branch, tag or hash."""
        if revision == "main":
            return self.head
        if revision in self.tags:
            return self.tags[revision]
        return next((str(commit["sha"]) for commit in self.commits if commit["sha"] == revision), None)

    def files(self, commit: str) -> dict[str, Entry]:
        """Files of a commit by path."""
        return dict(next(each["files"] for each in self.commits if each["sha"] == commit))

    def parent(self, commit: str) -> str:
        """The commit before; of the first, itself."""
        shas = [str(each["sha"]) for each in self.commits]
        return shas[max(0, shas.index(commit) - 1)]

    def first(self, path: str) -> Entry:
        """A file as it was when it was first committed."""
        return dict(next(each["files"][path] for each in self.commits if path in each["files"]))


class Repositories:
    """All repositories below a folder."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._lock = threading.Lock()
        (root / "objects").mkdir(parents=True, exist_ok=True)

    def find(self, kind: str, name: str) -> Repository | None:
        path = self._path(kind, name)
        return Repository(**json.loads(path.read_text())) if path.is_file() else None

    def create(self, kind: str, name: str, private: bool) -> bool:
        """Whether there was none before."""
        with self._lock:
            if self._path(kind, name).exists():
                return False
            repo = Repository(private, [], {})
            self._commit(repo, {".gitattributes": self.put_blob(GITATTRIBUTES)}, "initial commit")
            self._save(kind, name, repo)
            return True

    @contextmanager
    def changing(self, kind: str, name: str) -> Iterator[Repository]:
        """A repository to change; saved at the end."""
        with self._lock:
            repo = self.find(kind, name)
            assert repo is not None
            yield repo
            self._save(kind, name, repo)

    def commit(
        self, kind: str, name: str, added: Mapping[str, Entry], deleted: Sequence[str], summary: str, parent: str | None
    ) -> str | None:
        """Hash of the new commit; None if the branch has moved on from ``parent``."""
        with self.changing(kind, name) as repo:
            if parent is not None and repo.head != parent:
                return None
            files = {path: entry for path, entry in repo.files(repo.head).items() if path not in deleted}
            self._commit(repo, {**files, **added}, summary)
            return repo.head

    def put_blob(self, content: bytes) -> Entry:
        """Store a small file that comes with its commit."""
        oid = git_hash(content)
        self.object(oid).write_bytes(content)
        return {"oid": oid, "size": len(content)}

    def point_to(self, sha256: str, size: int) -> Entry:
        """An LFS object as git holds it: by a small file that names it."""
        pointer = f"version https://git-lfs.github.com/spec/v1\noid sha256:{sha256}\nsize {size}\n"
        return {**self.put_blob(pointer.encode()), "size": size, "sha256": sha256}

    def object(self, key: str) -> Path:
        """Place of an object: by sha256 if it is an LFS object, else by git's hash."""
        return self._root / "objects" / key

    def stored_bytes(self) -> int:
        """Size of all LFS objects."""
        return sum(path.stat().st_size for path in (self._root / "objects").iterdir() if len(path.name) == 64)

    def _commit(self, repo: Repository, files: dict[str, Entry], summary: str) -> None:
        told = json.dumps([repo.commits[-1]["sha"] if repo.commits else None, files, summary], sort_keys=True)
        sha = hashlib.sha1(told.encode(), usedforsecurity=False).hexdigest()
        repo.commits.append({"sha": sha, "summary": summary, "files": files})

    def _path(self, kind: str, name: str) -> Path:
        return self._root / f"{kind}--{name.replace('/', '--')}.json"

    def _save(self, kind: str, name: str, repo: Repository) -> None:
        path = self._path(kind, name)
        staging = path.with_suffix(".new")
        staging.write_text(json.dumps(vars(repo)))
        staging.replace(path)
