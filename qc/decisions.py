"""What people decided about episodes: a small text file, keyed by content hash, that wins over every filter."""

import json
import os
import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

import pandas as pd

from qc.errors import QcError
from qc.table import DECISION, DROP, INTEGRITY, KEEP, OUTCOME

_HEAD = "# Decisions of people, by content hash. `demomill review` edits this file, and so may you.\n"
_SHORTEST = 6


@dataclass(frozen=True)
class Decision:
    """What is to become of an episode, who says so, and why."""

    content_hash: str
    verdict: str
    who: str
    why: str


Decisions = Mapping[str, Decision]


def read_decisions(path: Path | str) -> dict[str, Decision]:
    """Read decisions by content hash; none if there is no file.

    Raises:
        QcError: if the file does not parse, or an entry is not complete.
    """
    path = Path(path)
    if not path.exists():
        return {}
    try:
        listed = tomllib.loads(path.read_text(encoding="utf-8")).get("decision", [])
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise QcError(f"{path}: not readable as TOML ({error}); mend or remove it") from None
    found: dict[str, Decision] = {}
    for number, entry in enumerate(listed, 1):
        try:
            decision = Decision(**entry)
        except TypeError:
            names = ", ".join(Decision.__dataclass_fields__)
            raise QcError(f"{path}: decision {number} needs exactly {names}") from None
        if decision.verdict not in (KEEP, DROP):
            raise QcError(f"{path}: decision {number} has verdict {decision.verdict!r}; use {KEEP} or {DROP}")
        if not all(isinstance(value, str) and value for value in asdict(decision).values()):
            raise QcError(f"{path}: decision {number}: hash, who and why must each be a text that is not empty")
        if decision.content_hash in found:
            raise QcError(f"{path}: {decision.content_hash} is decided twice; remove one")
        found[decision.content_hash] = decision
    return found


def write_decisions(path: Path | str, decisions: Decisions) -> None:
    """Write decisions in order of hash, whole or not at all.

    Raises:
        QcError: if the file cannot be written.
    """
    path = Path(path)
    parts = [_HEAD]
    for _, decision in sorted(decisions.items()):
        lines = [f"{name} = {_quote(value)}" for name, value in asdict(decision).items()]
        parts.append("\n".join(["[[decision]]", *lines]) + "\n")
    staging = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        staging.write_text("\n".join(parts), encoding="utf-8")
        staging.replace(path)
    except OSError as error:
        raise QcError(f"{path}: cannot be written ({error.strerror}); choose another place") from None
    finally:
        staging.unlink(missing_ok=True)


def check_decisions(decisions: Decisions, table: pd.DataFrame) -> None:
    """Refuse decisions that do not fit the episodes that were judged.

    Raises:
        QcError: if a hash is of no episode, or what cannot be trained on is to be kept.
    """
    known = dict(zip(table["content_hash"], table.itertuples(), strict=True))
    for hash_, decision in decisions.items():
        if hash_ not in known:
            told = f"{hash_}: decided by {decision.who}, but no episode here has this content hash"
            raise QcError(f"{told}; undo it with `demomill review undo`")
        row = known[hash_]
        if decision.verdict == KEEP and {INTEGRITY, OUTCOME} & set(row.reasons):
            raise QcError(f"{row.episode_id}: cannot be kept ({row.explanation or row.failure}); undo that decision")


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
