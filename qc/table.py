"""The table of verdicts: its columns, its file, and the account that it adds up to."""

import os
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd

from qc.episodes import Damaged
from qc.errors import QcError

KEEP, DROP, REVIEW, NOT_ASSESSED, FAILED = VERDICTS = ("keep", "drop", "review", "not_assessed", "failed")
FILTERS = ("duplicates", "idle", "length", "mahalanobis", "neighbours")

_NUMBERS = tuple(f"{name}_{number}" for name in FILTERS for number in ("score", "cutoff"))
COLUMNS = (
    "episode_id",
    "task",
    "content_hash",
    "outcome",
    "verdict",
    "reasons",
    "explanation",
    *_NUMBERS,
    "not_assessed_by",
)
"""``reasons`` and ``not_assessed_by`` are joined by semicolons, the reason that decided first; an episode is an outlier
of a filter if its score is below the cutoff."""


@dataclass(frozen=True)
class Account:
    """What became of every episode of a task that was ever attempted; counts by reason where there are reasons."""

    generated: int
    kept: int
    dropped: Mapping[str, int] = field(default_factory=dict)
    review: Mapping[str, int] = field(default_factory=dict)
    failed: Mapping[str, int] = field(default_factory=dict)
    not_assessed: int = 0
    damaged: int = 0

    @property
    def accounted(self) -> int:
        """Sum of all parts; equals ``generated``."""
        by_reason = sum(sum(counts.values()) for counts in (self.dropped, self.review, self.failed))
        return self.kept + by_reason + self.not_assessed + self.damaged


def accounting(table: pd.DataFrame, damaged: Iterable[Damaged] = ()) -> dict[str, Account]:
    """Account of each task; an episode counts under the reason that decided.

    Args:
        table: verdicts, one row an episode.
        damaged: folders that could not be read.

    Raises:
        QcError: if the parts do not add up to what was generated.
    """
    lost = Counter(entry.task for entry in damaged)
    decided = table["reasons"].astype(str).str.split(";").str[0]
    accounts = {}
    for task in sorted({*table["task"], *lost}):
        mine = table["task"] == task
        counts = {v: mine & (table["verdict"] == v) for v in VERDICTS}
        by_reason = {v: dict(sorted(Counter(decided[counts[v]]).items())) for v in (DROP, REVIEW, FAILED)}
        account = Account(
            generated=int(mine.sum()) + lost[task],
            kept=int(counts[KEEP].sum()),
            dropped=by_reason[DROP],
            review=by_reason[REVIEW],
            failed=by_reason[FAILED],
            not_assessed=int(counts[NOT_ASSESSED].sum()),
            damaged=lost[task],
        )
        if account.accounted != account.generated:
            raise QcError(f"{task}: {account.generated} episodes generated but {account.accounted} accounted for")
        accounts[str(task)] = account
    return accounts


def write_verdicts(path: Path | str, table: pd.DataFrame) -> None:
    """Write a table of verdicts as CSV, whole or not at all; equal tables give equal bytes.

    Raises:
        QcError: if it cannot be written.
    """
    path = Path(path)
    staging = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with staging.open("w", encoding="utf-8", newline="") as handle:
            table.to_csv(handle, columns=list(COLUMNS), index=False, lineterminator="\n", float_format="%.6g")
            handle.flush()
            os.fsync(handle.fileno())
        staging.replace(path)
    except OSError as error:
        raise QcError(f"{path}: cannot be written ({error.strerror}); choose another place") from None
    finally:
        staging.unlink(missing_ok=True)


def read_verdicts(path: Path | str) -> pd.DataFrame:
    """Read a table of verdicts.

    Raises:
        QcError: if the file is missing, is no such table, or judges an episode twice.
    """
    text = [name for name in COLUMNS if name not in _NUMBERS]
    try:
        table = pd.read_csv(
            path,
            dtype={**dict.fromkeys(text, "str"), **dict.fromkeys(_NUMBERS, "float64")},
            keep_default_na=False,
            na_values={name: [""] for name in _NUMBERS},
        )
    except FileNotFoundError:
        raise QcError(f"{path}: no verdicts here; make them with `demomill qc`") from None
    except (OSError, ValueError) as error:
        raise QcError(f"{path}: not a table of verdicts ({' '.join(str(error).split())})") from None
    if absent := [name for name in COLUMNS if name not in table]:
        raise QcError(f"{path}: column {', '.join(absent)} is missing; make it again with `demomill qc`")
    if not (known := table["verdict"].isin(VERDICTS)).all():
        row = table[~known].iloc[0]
        raise QcError(f"{path}: {row['episode_id']} has verdict {row['verdict']!r}; use one of {', '.join(VERDICTS)}")
    if (twice := table["episode_id"].duplicated()).any():
        raise QcError(f"{path}: {table.loc[twice, 'episode_id'].iloc[0]} has more than one verdict; keep one")
    return table
