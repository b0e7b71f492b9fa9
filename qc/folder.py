"""What quality control leaves behind in a folder: verdicts, accounts, decisions, a log of rounds, pictures."""

import hashlib
import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from qc.decisions import Decision, Decisions, apply_decisions, find_hash, read_decisions, write_decisions
from qc.diversity import diversity
from qc.episodes import Damaged, EpisodeSet, Unrecorded
from qc.errors import QcError
from qc.table import DROP, KEEP, REVIEW, accounting, read_verdicts, write_verdicts


@dataclass(frozen=True)
class Folder:
    """Places in a folder, and what they say."""

    root: Path

    @classmethod
    def of(cls, path: Path | str) -> "Folder":
        """Folder of a run, or the folder itself.

        Raises:
            QcError: if nothing was judged there.
        """
        for root in (Path(path) / "qc", Path(path)):
            if (root / "verdicts.parquet").is_file():
                return cls(root)
        raise QcError(f"{path}: no verdicts here; make them with `demomill qc`")

    @property
    def verdicts(self) -> Path:
        """Verdict of every episode."""
        return self.root / "verdicts.parquet"

    @property
    def accounting(self) -> Path:
        """Episodes counted by task, verdict and reason; what could not be read; what is wrong with rows and files."""
        return self.root / "accounting.json"

    @property
    def decisions(self) -> Path:
        """What people decided."""
        return self.root / "decisions.toml"

    @property
    def rounds(self) -> Path:
        """One line a round of judging: how much was dropped in all."""
        return self.root / "rounds.jsonl"

    @property
    def picture(self) -> Path:
        """Episodes in their first two principal components."""
        return self.root / "pca.png"

    @property
    def report(self) -> Path:
        """The report, one page."""
        return self.root / "report.html"

    def require_place(self) -> None:
        """Make sure, before anything is read, that the folder is there or can be made.

        Raises:
            QcError: if a file is in its way, or nothing may be written there.
        """
        there = next(place for place in (self.root.absolute(), *self.root.absolute().parents) if place.exists())
        if not there.is_dir():
            raise QcError(f"{self.root}: {there} is a file; choose another folder")
        if not os.access(there, os.W_OK):
            raise QcError(f"{self.root}: nothing may be written in {there}; choose another folder")

    def save(
        self, table: pd.DataFrame, found: EpisodeSet, decisions: Decisions, order: Sequence[str] = ()
    ) -> dict[str, Any]:
        """Write verdicts, accounts and the round; returns what is in the accounts.

        Args:
            order: of tasks in the accounts; others follow by name.

        Raises:
            QcError: if the folder cannot be written.
        """
        accounts, spread = accounting(table, found.damaged, found.unrecorded), diversity(found.episodes)
        tasks = [*(task for task in order if task in accounts), *(task for task in accounts if task not in order)]
        counted: dict[str, Any] = {
            "tasks": {task: asdict(accounts[task]) for task in tasks},
            "damaged": [asdict(damaged) for damaged in found.damaged],
            "unrecorded": [asdict(attempt) for attempt in found.unrecorded],
            "diversity": {task: asdict(spread[task]) for task in tasks if task in spread},
            "findings": [asdict(finding) for finding in found.findings],
        }
        try:
            self.root.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise QcError(f"{self.root}: cannot be written ({error.strerror}); choose another folder") from None
        write_verdicts(self.verdicts, table)
        _write(self.accounting, json.dumps(counted, indent=2) + "\n")
        self._log(table, decisions)
        return counted

    def decide(self, episodes: Sequence[str], verdict: str, who: str, why: str) -> list[str]:
        """Keep or drop episodes, named by id or content hash; returns the hashes.

        Raises:
            QcError: if one is not known or cannot be kept, before anything is written.
        """
        table, decisions = read_verdicts(self.verdicts), read_decisions(self.decisions)
        hashes = [find_hash(table, named) for named in episodes]
        for text, name in ((who, "who"), (why, "why")):
            if not text.strip():
                raise QcError(f"--{name} is empty; say {name}, for whoever reads the list next")
        self._rule(table, {**decisions, **{h: Decision(h, verdict, who, why) for h in hashes}})
        return hashes

    def undo(self, episodes: Sequence[str]) -> list[str]:
        """Take decisions back, named by id or content hash; returns the hashes.

        Raises:
            QcError: if nothing was decided about one, before anything is written.
        """
        table, decisions = read_verdicts(self.verdicts), read_decisions(self.decisions)
        hashes = [named if named in decisions else find_hash(table, named) for named in episodes]
        for named, hash_ in zip(episodes, hashes, strict=True):
            if hash_ not in decisions:
                raise QcError(f"{named}: nothing was decided about it; `demomill review list` shows what was")
        self._rule(table, {h: d for h, d in decisions.items() if h not in hashes})
        return hashes

    def _rule(self, table: pd.DataFrame, decisions: Decisions) -> None:
        ruled = apply_decisions(table, decisions)
        counted = json.loads(self.accounting.read_text())
        damaged = [Damaged(**entry) for entry in counted["damaged"]]
        accounts = accounting(ruled, damaged, [Unrecorded(**entry) for entry in counted["unrecorded"]])
        counted["tasks"] = {task: asdict(accounts[task]) for task in counted["tasks"]}
        write_decisions(self.decisions, decisions)
        write_verdicts(self.verdicts, ruled)
        _write(self.accounting, json.dumps(counted, indent=2) + "\n")

    def _log(self, table: pd.DataFrame, decisions: Decisions) -> None:
        """Add a round, unless the same episodes were judged with the same decisions before."""
        lines = self.rounds.read_text().splitlines() if self.rounds.is_file() else []
        decided = sorted(tuple(asdict(decision).values()) for decision in decisions.values())
        known = json.dumps([sorted(table["content_hash"]), decided])
        digest = hashlib.sha256(known.encode()).hexdigest()[:16]
        if any(json.loads(line)["of"] == digest for line in lines):
            return
        counts = {verdict: int((table["verdict"] == verdict).sum()) for verdict in (KEEP, DROP, REVIEW)}
        share = round(counts[DROP] / len(table), 6) if len(table) else 0.0
        entry = {"round": len(lines) + 1, "of": digest, "episodes": len(table), "decisions": len(decisions)}
        _write(self.rounds, "\n".join([*lines, json.dumps({**entry, **counts, "dropped_share": share})]) + "\n")


def _write(path: Path, text: str) -> None:
    staging = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        staging.write_text(text)
        staging.replace(path)
    except OSError as error:
        raise QcError(f"{path}: cannot be written ({str(error.strerror).lower()}); choose another folder") from None
    finally:
        staging.unlink(missing_ok=True)
