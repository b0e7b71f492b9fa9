"""What quality control leaves behind in a folder: verdicts, accounts, decisions, a log of rounds, pictures."""

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
from qc.files import is_file, write_text
from qc.place import real, require_place
from qc.rounds import add_round, read_rounds
from qc.table import accounting, read_verdicts, write_verdicts


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
            if is_file(root / "verdicts.parquet"):
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

    def origin(self, source: Path) -> str:
        """How the accounts name a source in a folder: by the way from here, which holds when both are moved."""
        return os.path.relpath(real(source), real(self.root))

    def require_place(self, source: Path, origin: str) -> None:
        """Make sure, before anything is read, that verdicts on a source can be written here.

        Args:
            source: folder that is to be judged.
            origin: how the accounts name it.

        Raises:
            QcError: if it is no place for them (:func:`qc.place.require_place`), the log of rounds is damaged, or the
                verdicts here are on another source.
        """
        files = (self.verdicts, self.accounting, self.decisions, self.rounds, self.picture, self.report)
        require_place(self.root, source, files)
        read_rounds(self.rounds)
        if self.verdicts.is_file() and (before := self._judged()) not in ("", origin):
            raise QcError(
                f"{self.root}: holds verdicts on {before if '://' in before else real(self.root / before)}; choose "
                f"another folder for these, or, if what was judged has only been moved, remove {self.verdicts}"
            )

    def decided(self, listed: Path | None = None) -> dict[str, Decision]:
        """What people decided: the folder's list, or another that is to take its place.

        Raises:
            QcError: if one cannot be read, or a decision would be lost.
        """
        own = read_decisions(self.decisions)
        if listed is None:
            return own
        given = read_decisions(listed)
        if lost := [decision for hash_, decision in own.items() if given.get(hash_) != decision]:
            first = f"to {lost[0].verdict} {lost[0].content_hash[:12]}, by {lost[0].who}"
            told = f"{listed} lacks {len(lost)} of these decisions (the first {first})"
            raise QcError(f"{self.decisions}: {told}; copy them over, or leave --decisions out to go on from these")
        return given

    def save(
        self, table: pd.DataFrame, found: EpisodeSet, decisions: Decisions, order: Sequence[str] = (), origin: str = ""
    ) -> dict[str, Any]:
        """Write verdicts, accounts, decisions and the round; returns what is in the accounts.

        Pictures and report are of other verdicts from now on, and are removed.

        Args:
            decisions: that are in force in the table.
            order: of tasks in the accounts; others follow by name.
            origin: what was judged, as :meth:`origin` names it; empty if that is not to be remembered.

        Raises:
            QcError: if the folder cannot be written, or the log of rounds is damaged, before anything is written.
        """
        accounts, spread = accounting(table, found.damaged, found.unrecorded), diversity(found.episodes)
        tasks = [*(task for task in order if task in accounts), *(task for task in accounts if task not in order)]
        counted: dict[str, Any] = {
            "source": origin,
            "tasks": {task: asdict(accounts[task]) for task in tasks},
            "damaged": [asdict(damaged) for damaged in found.damaged],
            "unrecorded": [asdict(attempt) for attempt in found.unrecorded],
            "diversity": {task: asdict(spread[task]) for task in tasks if task in spread},
            "findings": [asdict(finding) for finding in found.findings],
        }
        own, rounds = read_decisions(self.decisions), add_round(read_rounds(self.rounds), table, decisions)
        try:
            self.root.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise QcError(f"{self.root}: cannot be written ({error.strerror}); choose another folder") from None
        if (listed := {**own, **decisions}) != own:
            write_decisions(self.decisions, listed)
        self._write(table, counted)
        write_text(self.rounds, "\n".join(rounds) + "\n")
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

    def read_accounts(self) -> dict[str, Any]:
        """What is in the accounts, as :meth:`save` returns it.

        Raises:
            QcError: if they are missing or damaged.
        """
        try:
            counted: dict[str, Any] = json.loads(self.accounting.read_bytes())
            _absent(counted), counted["tasks"].keys(), counted["diversity"].keys(), list(counted["findings"])
        except (OSError, ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
            told = f"not readable ({type(error).__name__}: {error})"
            raise QcError(f"{self.accounting}: {told}; make it again with `demomill qc`") from None
        return counted

    def _judged(self) -> str:
        """Source of the verdicts that are here; empty if nothing tells."""
        try:
            return str(self.read_accounts().get("source", ""))
        except QcError:
            return ""

    def _rule(self, table: pd.DataFrame, decisions: Decisions) -> None:
        ruled, counted = apply_decisions(table, decisions), self.read_accounts()
        accounts = accounting(ruled, *_absent(counted))
        if accounts.keys() != counted["tasks"].keys():
            raise QcError(f"{self.accounting}: counts other tasks than the verdicts; make it again with `demomill qc`")
        counted["tasks"] = {task: asdict(accounts[task]) for task in counted["tasks"]}
        write_decisions(self.decisions, decisions)
        self._write(ruled, counted)

    def _write(self, table: pd.DataFrame, counted: dict[str, Any]) -> None:
        for stale in (self.report, self.picture):
            try:
                stale.unlink(missing_ok=True)
            except OSError as error:
                raise QcError(f"{stale}: is of other verdicts and cannot be removed ({error.strerror})") from None
        write_verdicts(self.verdicts, table)
        write_text(self.accounting, json.dumps(counted, indent=2) + "\n")


def _absent(counted: dict[str, Any]) -> tuple[list[Damaged], list[Unrecorded]]:
    """What the accounts tell of attempts without a verdict."""
    return [Damaged(**entry) for entry in counted["damaged"]], [Unrecorded(**entry) for entry in counted["unrecorded"]]
