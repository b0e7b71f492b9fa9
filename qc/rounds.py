"""The log of rounds: one line of JSON a round of judging, with how much was dropped in all."""

import hashlib
import json
from pathlib import Path

import pandas as pd

from qc.decisions import Decisions
from qc.errors import QcError
from qc.table import DROP, KEEP, REVIEW


def read_rounds(path: Path) -> list[str]:
    """Lines of the log; none if there is no file.

    Raises:
        QcError: if it cannot be read, or a line is no round.
    """
    number = 0
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
        for number, line in enumerate(lines, 1):  # noqa: B007
            json.loads(line)["of"]
    except FileNotFoundError:
        return []
    except (OSError, ValueError, TypeError, LookupError, RecursionError) as error:
        where = f"line {number} is no round" if number else "not readable"
        raise QcError(f"{path}: {where} ({type(error).__name__}: {error}); mend it, or move it away: a new log "
                      "begins, and no verdict depends on it") from None  # fmt: skip
    return lines


def add_round(lines: list[str], table: pd.DataFrame, decisions: Decisions) -> list[str]:
    """The log with this round, unless the same episodes were judged with the same decisions before."""
    decided = sorted((d.content_hash, d.verdict, d.who, d.why) for d in decisions.values())
    known = json.dumps([sorted(table["content_hash"]), decided])
    digest = hashlib.sha256(known.encode()).hexdigest()[:16]
    if any(json.loads(line)["of"] == digest for line in lines):
        return lines
    counts = {verdict: int((table["verdict"] == verdict).sum()) for verdict in (KEEP, DROP, REVIEW)}
    share = round(counts[DROP] / len(table), 6) if len(table) else 0.0
    entry = {"round": len(lines) + 1, "of": digest, "episodes": len(table), "decisions": len(decisions)}
    return [*lines, json.dumps({**entry, **counts, "dropped_share": share})]
