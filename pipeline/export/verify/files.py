"""Checks of the files as such: are they all there, whole, and what the manifest and ``info.json`` say of them."""

import json
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from pipeline.errors import UserError
from pipeline.export.digests import UNSEALED, file_digest
from pipeline.export.layout import INFO_PATH, MANIFEST_PATH, STATS_PATH, TASKS_PATH
from pipeline.export.verify.findings import Finding
from pipeline.export.verify.tree import EPISODES, Member, Tree
from pipeline.video import probe


def check_hashes(tree: Tree) -> Iterator[Finding]:
    """Every file has the size and hash that the manifest gives it; none is missing, none is too many."""
    sealed = dict((tree.manifest or {}).get("files", {}))
    if not sealed:
        yield Finding(MANIFEST_PATH, "", "lists no files; export again with this version of demomill")
    for name, entry in sealed.items():
        path = tree.root / name
        if not path.is_file():
            yield Finding(name, "", "is missing")
        elif path.stat().st_size != entry["size"]:
            yield Finding(name, "", f"has {path.stat().st_size} bytes but was written with {entry['size']}")
        elif file_digest(path) != entry["sha256"]:
            yield Finding(name, "", f"holds other bytes than were written (sha256 is not {entry['sha256'][:12]}...)")
    there = {tree.shown(path) for path in tree.root.rglob("*") if path.is_file()}
    for name in sorted(there - {*sealed, *UNSEALED}):
        if sealed and not _is_hidden_or_text(name):
            yield Finding(name, "", "was not written by the export; remove it")


def check_footers(tree: Tree) -> Iterator[Finding]:
    """Every JSON, parquet and video file is there and can be opened."""
    for name in (STATS_PATH, TASKS_PATH, "data", EPISODES):
        if not tree.paths(f"{name}/*/*.parquet" if "." not in name else name):
            yield Finding(name, "", "is missing")
    for pattern, problem_of in _READERS:
        for path in tree.paths(pattern):
            if problem := problem_of(path):
                yield Finding(tree.shown(path), "", f"cannot be read ({' '.join(problem.split())})")
            elif pattern == _EPISODE_FILES and (absent := tree.episode_columns - set(pq.read_schema(path).names)):
                yield Finding(tree.shown(path), "", f"lacks the columns {', '.join(sorted(absent))}")


def check_places(tree: Tree) -> Iterator[Finding]:
    """The files that episodes lie in are there, and no other data or video file is."""
    wanted = {tree.data_file(member) for member in tree.members}
    wanted |= {tree.video_file(member, key) for member in tree.members for key in tree.cameras}
    there = {tree.shown(path) for pattern in ("data/*/*", "videos/*/*/*") for path in tree.paths(pattern)}
    for name in sorted(wanted - there):
        first = next(m for m in tree.members if name in _files(tree, m))
        yield Finding(name, first.name, "is missing, but the episode lies in it")
    for name in sorted(there - wanted):
        yield Finding(name, "", "no episode lies in it, yet readers load it; remove it")


def check_counts(tree: Tree) -> Iterator[Finding]:
    """``info.json`` counts what is there, and its splits are parts of it."""
    frames = sum(pq.read_metadata(path).num_rows for path in tree.paths(_DATA))
    lengths = sum(member.length for member in tree.members)
    counts = {"total_episodes": len(tree.members), "total_frames": frames, "total_tasks": len(tree.tasks)}
    for key, count in counts.items():
        if tree.info.get(key) != count:
            yield Finding(INFO_PATH, "", f"{key} is {tree.info.get(key)} but there are {count}")
    if lengths != frames:
        yield Finding(EPISODES, "", f"its lengths add up to {lengths} but data holds {frames} rows")
    last = 0
    for name, text in tree.info.get("splits", {}).items():
        first, _, end = str(text).partition(":")
        if not (first.isdigit() and end.isdigit() and last <= int(first) < int(end) <= len(tree.members)):
            yield Finding(INFO_PATH, f"split {name}", f"is {text!r}, no range of the {len(tree.members)} episodes")
        else:
            last = int(end)
    yield from _split_leaks(tree)


def _split_leaks(tree: Tree) -> Iterator[Finding]:
    """Two looks of one physical episode must not lie in different splits."""
    split_of: dict[str, tuple[str, str]] = {}
    for name, text in tree.info.get("splits", {}).items():
        first, _, end = str(text).partition(":")
        for member in tree.members[int(first) if first.isdigit() else 0 : int(end) if end.isdigit() else 0]:
            content = member.row.get("content_hash")
            known = split_of.setdefault(content, (name, member.name)) if content else (name, "")
            if known[0] != name:
                yield Finding(
                    INFO_PATH, f"split {name}, {member.name}", f"the same motion is in split {known[0]} as {known[1]}"
                )


def _files(tree: Tree, member: Member) -> set[str]:
    return {tree.data_file(member), *(tree.video_file(member, key) for key in tree.cameras)}


def _is_hidden_or_text(name: str) -> bool:
    return name.startswith(".") or name.endswith(".md")


def _json_problem(path: Path) -> str:
    try:
        json.loads(path.read_text())
    except ValueError as error:
        return str(error)
    return ""


def _parquet_problem(path: Path) -> str:
    try:
        pq.read_table(path)
    except (OSError, pa.ArrowException) as error:
        return str(error)
    return ""


def _video_problem(path: Path) -> str:
    try:
        probe(path)
    except UserError as error:
        return str(error)
    return ""


_DATA = "data/*/*.parquet"
_EPISODE_FILES = f"{EPISODES}/*/*.parquet"
_READERS = (
    ("meta/*.json", _json_problem),
    (_DATA, _parquet_problem),
    (_EPISODE_FILES, _parquet_problem),
    (TASKS_PATH, _parquet_problem),
    ("videos/*/*/*.mp4", _video_problem),
)
