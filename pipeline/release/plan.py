"""What a release would change on the Hub, and whether the Hub can serve it well."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import pyarrow.parquet as pq
from packaging.version import InvalidVersion, Version

from pipeline.errors import UserError
from pipeline.release.files import OURS, File
from pipeline.release.hub import Remote

MOST_FILES = 100_000
MOST_IN_A_FOLDER = 10_000
ROW_GROUP_MIB = 286
"""The Hub's own recommendations, and what its viewer reads of a row group."""


@dataclass(frozen=True)
class Plan:
    """The difference between a release and a repository.

    Attributes:
        repo_id: ``user/name``.
        tag: of the release.
        files: every file of the release.
        new: paths that the repository lacks.
        changed: paths whose content differs there.
        stale: paths in our folders there that are not of the release, and will be deleted.
        foreign: other paths there, which are left alone.
        commit: newest commit of the repository; None if it will be created.
        private: whether only those who may can see the repository.
        card: text of the card.
    """

    repo_id: str
    tag: str
    files: tuple[File, ...]
    new: tuple[str, ...]
    changed: tuple[str, ...]
    stale: tuple[str, ...]
    foreign: tuple[str, ...]
    commit: str | None
    private: bool
    card: str

    @property
    def changes(self) -> bool:
        """Whether there is anything to commit."""
        return bool(self.new or self.changed or self.stale)

    @property
    def to_upload(self) -> list[File]:
        """New and changed files."""
        wanted = {*self.new, *self.changed}
        return [file for file in self.files if file.path in wanted]

    @property
    def size_bytes(self) -> int:
        """Size of all files of the release."""
        return sum(file.size for file in self.files)

    @property
    def upload_bytes(self) -> int:
        """Size of new and changed files."""
        return sum(file.size for file in self.to_upload)

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "repo_id": self.repo_id,
            "tag": self.tag,
            "creates_repository": self.commit is None,
            "private": self.private,
            "files": len(self.files),
            "size_bytes": self.size_bytes,
            "upload_bytes": self.upload_bytes,
            "new": list(self.new),
            "changed": list(self.changed),
            "stale": list(self.stale),
            "left_alone": list(self.foreign),
            "card": self.card,
        }


def make_plan(repo_id: str, tag: str, files: Sequence[File], card: str, remote: Remote, *, private: bool) -> Plan:
    """Compare a release with what is there.

    Args:
        private: of a repository that is to be created.
    """
    paths = {file.path for file in files}
    there = remote.files
    other = [path for path in there if path not in paths]
    return Plan(
        repo_id=repo_id,
        tag=tag,
        files=tuple(files),
        new=tuple(file.path for file in files if file.path not in there),
        changed=tuple(file.path for file in files if file.path in there and not there[file.path].equals(file)),
        stale=tuple(path for path in other if path.startswith(OURS)),
        foreign=tuple(path for path in other if not path.startswith(OURS)),
        commit=remote.commit,
        private=private if remote.commit is None else remote.private,
        card=card,
    )


def require_release_tag(tag: str) -> None:
    """Refuse what git cannot take for a tag, and what LeRobot would take for a version of its format.

    Raises:
        UserError: for such a tag.
    """
    if not re.fullmatch(r"[A-Za-z0-9][\w.-]*", tag) or ".." in tag or tag.endswith((".", ".lock")) or tag == "main":
        raise UserError(f"{tag}: no tag; letters, digits, `.`, `_` and `-` will do, such as release-1")
    try:
        Version(tag)
    except InvalidVersion:
        return
    raise UserError(f"{tag}: LeRobot would take this tag for a version of its format; choose one such as release-{tag}")


def require_servable(files: Sequence[File]) -> None:
    """Refuse what the Hub, or its viewer, cannot serve well.

    Raises:
        UserError: naming the folder or file and the limit.
    """
    if len(files) >= MOST_FILES:
        raise UserError(f"{len(files)} files; the Hub takes less than {MOST_FILES} in a repository")
    folders = Counter(str(PurePosixPath(file.path).parent) for file in files)
    for folder, count in folders.items():
        if count >= MOST_IN_A_FOLDER:
            raise UserError(f"{folder}: {count} files; the Hub takes less than {MOST_IN_A_FOLDER} in a folder")
    for file in files:
        if file.path.endswith(".parquet") and isinstance(file.source, Path):
            require_readable_row_groups(file.path, file.source)


def require_readable_row_groups(path: str, source: Path) -> None:
    """Refuse a parquet file of which the Hub's viewer cannot read a row group.

    Raises:
        UserError: naming the row group and its size.
    """
    footer = pq.read_metadata(source)
    for number in range(footer.num_row_groups):
        size = footer.row_group(number).total_byte_size / 2**20
        if size >= ROW_GROUP_MIB:
            raise UserError(
                f"{path}: row group {number} has {size:.0f} MiB; the Hub's viewer reads less than {ROW_GROUP_MIB}"
            )
