"""Which episode of a dataset is the one that people decided about."""

import hashlib
import json
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import replace

from qc.episodes import Episode


def identify(episodes: Iterable[Episode]) -> list[Episode]:
    """Episodes, in order of index, each with a content hash of its own.

    It is the one that the recorder wrote, as long as all that bear it are alike; else a hash of motion, task and
    outcome. Of episodes that are alike the first has this hash, and each one after it another, by its number.

    Args:
        episodes: of one dataset, with the recorder's content hash, which may be empty.
    """
    ordered = sorted(episodes, key=lambda e: e.index)
    contents = [_digest(e.motion, e.task, e.outcome) for e in ordered]
    borne = defaultdict[str, set[str]](set)
    for episode, content in zip(ordered, contents, strict=True):
        borne[episode.content_hash].add(content)
    seen, found = Counter[str](), []
    for episode, content in zip(ordered, contents, strict=True):
        recorded = episode.content_hash
        hash_ = recorded if recorded and len(borne[recorded]) == 1 else content
        found.append(replace(episode, content_hash=_digest(hash_, seen[hash_]) if seen[hash_] else hash_))
        seen[hash_] += 1
    return found


def _digest(*parts: str | int) -> str:
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()
