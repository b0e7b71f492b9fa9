"""The files of a release: the dataset as it was exported, its card, and pictures of the card."""

import hashlib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from huggingface_hub.utils.sha import git_hash

from pipeline.errors import UserError
from pipeline.export.digests import file_digest
from pipeline.export.layout import MANIFEST_PATH
from pipeline.export.verify import files as checks
from pipeline.export.verify.tree import Tree

CARD_FOLDER = "card"
"""Of the card's pictures, in the repository."""

OURS = ("data/", "meta/", "videos/", f"{CARD_FOLDER}/")
"""What lies there and is not of the release is stale; other files in a repository are people's own."""


@dataclass(frozen=True)
class File:
    """A file of a release.

    Attributes:
        path: in the repository.
        source: where it lies, or its content.
    """

    path: str
    source: Path | bytes

    @cached_property
    def size(self) -> int:
        """Bytes."""
        return len(self.source) if isinstance(self.source, bytes) else self.source.stat().st_size

    @cached_property
    def sha256(self) -> str:
        """Hash by which large files are known on the Hub."""
        if isinstance(self.source, bytes):
            return hashlib.sha256(self.source).hexdigest()
        return file_digest(self.source)

    @cached_property
    def git_sha1(self) -> str:
        """Hash by which small files are known there."""
        return git_hash(self.source if isinstance(self.source, bytes) else self.source.read_bytes())


def dataset_files(root: Path) -> list[File]:
    """Files of an exported dataset but its card, each of which is as it was written.

    Raises:
        UserError: if ``root`` is no dataset of ours, or a file is missing, too many, or not as it was written.
    """
    tree = Tree(root)
    if not tree.ours:
        raise UserError(f"{root}: was not exported by demomill (no {MANIFEST_PATH}); make one with `demomill export`")
    for check in (checks.check_footers, checks.check_hashes, checks.check_places):
        if finding := next(iter(check(tree)), None):
            raise UserError(f"{root}: {finding}; see `demomill verify {root}`, then export again")
    sealed = {MANIFEST_PATH, *(tree.manifest or {}).get("files", ())}
    names = {tree.shown(path): path for path in root.rglob("*") if path.is_file()}
    return [File(name, names[name]) for name in sorted(names.keys() & sealed)]
