"""What people decided about episodes: a small text file, keyed by content hash, that wins over every filter."""

import json
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd

from qc.errors import QcError
from qc.files import write_text
from qc.table import DECISION, DROP, INTEGRITY, KEEP, OUTCOME

_HEAD = "# Decisions of people, by content hash. `demomill review` edits this file, and so may you.\n"
_NAMES = ("content_hash", "verdict", "who", "why")
_SHORTEST = 6


@dataclass(frozen=True)
class Decision:
    """What is to become of an episode, who says so, and why; ``file`` is where it was read."""

    content_hash: str
    verdict: str
    who: str
    why: str
    file: str = field(default="", compare=False, repr=False)


Decisions = Mapping[str, Decision]


def read_decisions(path: Path | str) -> dict[str, Decision]:
    """Read decisions by content hash; none if there is no file.

    Raises:
        QcError: if the file does not parse, holds anything else, or an entry is not complete.
    """
    path = Path(path)
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        raise QcError(f"{path}: not readable as TOML ({error}); mend or remove it") from None
    if unknown := sorted(content.keys() - {"decision"}):
        raise QcError(f"{path}: {unknown[0]} is unknown; begin every decision with [[decision]]")
    listed = content.get("decision", [])
    if not isinstance(listed, list):
        raise QcError(f"{path}: decision is no list; begin every decision with [[decision]]")
    found: dict[str, Decision] = {}
    for number, entry in enumerate(listed, 1):
        if not isinstance(entry, dict) or set(entry) != set(_NAMES):
            raise QcError(f"{path}: decision {number} needs exactly {', '.join(_NAMES)}")
        if entry["verdict"] not in (KEEP, DROP):
            raise QcError(f"{path}: decision {number} has verdict {entry['verdict']!r}; use {KEEP} or {DROP}")
        if not all(isinstance(value, str) and value for value in entry.values()):
            raise QcError(f"{path}: decision {number}: hash, who and why must each be a text that is not empty")
        decision = Decision(**entry, file=str(path))
        if decision.content_hash in found:
            raise QcError(f"{path}: {decision.content_hash} is decided twice; remove one")
        found[decision.content_hash] = decision
    return found


def write_decisions(path: Path | str, decisions: Decisions) -> None:
    """Write decisions in order of hash, whole or not at all.

    Raises:
        QcError: if the file cannot be written.
    """
    parts = [_HEAD]
    for _, decision in sorted(decisions.items()):
        lines = [f"{name} = {_quote(getattr(decision, name))}" for name in _NAMES]
        parts.append("\n".join(["[[decision]]", *lines]) + "\n")
    write_text(Path(path), "\n".join(parts))


def check_decisions(decisions: Decisions, table: pd.DataFrame) -> None:
    """Refuse decisions that do not fit the episodes that were judged.

    Raises:
        QcError: if a hash is of no episode, or what cannot be trained on is to be kept.
    """
    known = set(table["content_hash"])
    if absent := [decision for hash_, decision in decisions.items() if hash_ not in known]:
        told = f"{absent[0].content_hash}: decided by {absent[0].who}, but no episode here has this content hash"
        raise QcError(_misfit(absent, f"{told}, nor that of {len(absent) - 1} more" if absent[1:] else told))
    columns = [table[name] for name in ("content_hash", "episode_id", "reasons", "explanation", "failure")]
    for hash_, id_, reasons, explanation, failure in zip(*columns, strict=True):
        decision = decisions.get(hash_)
        if decision and decision.verdict == KEEP and {INTEGRITY, OUTCOME} & set(reasons):
            raise QcError(_misfit([decision], f"{id_}: cannot be kept ({explanation or failure})"))


def apply_decisions(table: pd.DataFrame, decisions: Decisions) -> pd.DataFrame:
    """The table with decisions in force: ``verdict`` is the person's where there is one, else as ``judged``.

    The filters' reasons stay, after ``decision``: one that is taken back leaves no trace.

    Raises:
        QcError: see :func:`check_decisions`.
    """
    automatic = [[r for r in reasons if r != DECISION] for reasons in table["reasons"]]
    check_decisions(decisions, table.assign(reasons=pd.Series(automatic, table.index, dtype=object)))
    rows = [_decided(*row, decisions) for row in zip(table["content_hash"], table["judged"], automatic, strict=True)]
    columns = dict(zip(("verdict", "reasons", "decided_by", "decided_why"), zip(*rows, strict=True), strict=False))
    return table.assign(**{name: pd.Series(list(of), table.index, dtype=object) for name, of in columns.items()})


def _decided(hash_: str, judged: str, reasons: list[str], decisions: Decisions) -> tuple[str, list[str], str, str]:
    decision = decisions.get(hash_)
    if decision is None:
        return judged, reasons, "", ""
    return decision.verdict, [DECISION, *reasons], decision.who, decision.why


def find_hash(table: pd.DataFrame, named: str) -> str:
    """Content hash of the episode that somebody means by its id, its hash, or the beginning of its hash.

    Raises:
        QcError: if no episode is meant, or more than one.
    """
    exact = table[(table["episode_id"] == named) | (table["content_hash"] == named)]
    if not len(exact) and len(named) >= _SHORTEST:
        exact = table[table["content_hash"].str.startswith(named)]
    hashes = sorted(set(exact["content_hash"]))
    if not hashes:
        raise QcError(f"{named}: no episode here has this id or content hash; `demomill review list` shows them")
    if len(hashes) > 1:
        raise QcError(f"{named}: {len(hashes)} episodes' hashes begin like this; give more of it")
    return str(hashes[0])


def _quote(text: str) -> str:
    return json.dumps(text, ensure_ascii=True).replace("\x7f", "\\u007f")


def _misfit(decisions: Sequence[Decision], told: str) -> str:
    file, entries = decisions[0].file, "their entries" if decisions[1:] else "its entry"
    return f"{file}: {told}; remove {entries} from this file" if file else f"{told}; leave it out"
