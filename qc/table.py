"""The table of verdicts: its columns, its file, and the account that it adds up to."""

import os
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from qc.episodes import Damaged, Unrecorded
from qc.errors import QcError

KEEP, DROP, REVIEW, NOT_ASSESSED = VERDICTS = ("keep", "drop", "review", "not_assessed")
INTEGRITY, OUTCOME, DECISION = "integrity", "outcome", "decision"
MEASURED = (
    "duplicates",
    "near_duplicates",
    "idle",
    "length",
    "jitter",
    "spikes",
    "release",
    "end_pose",
    "phases",
    "mahalanobis",
    "neighbours",
)
"""Filters with a score and a cutoff, in the order in which they judge."""

_NUMBERS = tuple(f"{name}_{number}" for name in MEASURED for number in ("score", "cutoff"))
_SCHEMA = pa.schema(
    {
        "episode_index": pa.int64(),
        "episode_id": pa.string(),
        "task": pa.string(),
        "content_hash": pa.string(),
        "verdict": pa.string(),
        "reasons": pa.list_(pa.string()),
        "explanation": pa.string(),
        "length": pa.int64(),
        "outcome": pa.string(),
        "failure": pa.string(),
        "judged": pa.string(),
        "decided_by": pa.string(),
        "decided_why": pa.string(),
        "env_index": pa.int64(),
        "file": pa.string(),
        **dict.fromkeys(_NUMBERS, pa.float64()),
        "not_assessed_by": pa.list_(pa.string()),
    }
)
COLUMNS = tuple(_SCHEMA.names)
"""``reasons`` and ``not_assessed_by`` are names of filters, the one that decided first; ``failure`` is the named reason
of an attempt that failed; ``judged`` is the verdict before a person's decision. An episode is an outlier of a filter if
its score is below the cutoff."""


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


def make_table(rows: Iterable[Mapping[str, Any]]) -> pd.DataFrame:
    """Table of verdicts from its rows; numbers that a row lacks are NaN."""
    table = pd.DataFrame(list(rows), columns=list(COLUMNS))
    types = {f.name: _dtype(f.type) for f in _SCHEMA}
    return table.astype(types)


def _dtype(kind: pa.DataType) -> str:
    return {pa.int64(): "Int64", pa.float64(): "float64"}.get(kind, "object")


def accounting(
    table: pd.DataFrame, damaged: Iterable[Damaged] = (), unrecorded: Iterable[Unrecorded] = ()
) -> dict[str, Account]:
    """Account of each task; an episode counts under the reason that decided, a failed attempt under its own.

    Args:
        table: verdicts, one row an episode.
        damaged: folders that could not be read.
        unrecorded: attempts that left no episode; they count as failed.

    Raises:
        QcError: if the parts do not add up to what was generated.
    """
    lost = Counter(entry.task for entry in damaged)
    absent = dict[str, Counter[str]]()
    for attempt in unrecorded:
        absent.setdefault(attempt.task, Counter())[attempt.reason] += 1
    decided = pd.Series([reasons[0] if len(reasons) else "" for reasons in table["reasons"]], table.index, dtype=object)
    failed = (table["verdict"] == DROP) & (decided == OUTCOME)
    accounts = {}
    for task in sorted({*table["task"], *lost, *absent}):
        mine = table["task"] == task
        counts = {v: mine & (table["verdict"] == v) & ~failed for v in VERDICTS}
        by_reason = {v: dict(sorted(Counter(decided[counts[v]]).items())) for v in (DROP, REVIEW)}
        account = Account(
            generated=int(mine.sum()) + lost[task] + absent.get(task, Counter()).total(),
            kept=int(counts[KEEP].sum()),
            dropped=by_reason[DROP],
            review=by_reason[REVIEW],
            failed=dict(sorted((Counter(table.loc[mine & failed, "failure"]) + absent.get(task, Counter())).items())),
            not_assessed=int(counts[NOT_ASSESSED].sum()),
            damaged=lost[task],
        )
        if account.accounted != account.generated:
            raise QcError(f"{task}: {account.generated} episodes generated but {account.accounted} accounted for")
        accounts[str(task)] = account
    return accounts


def write_verdicts(path: Path | str, table: pd.DataFrame) -> None:
    """Write a table of verdicts as parquet, whole or not at all; equal tables give equal bytes.

    Raises:
        QcError: if it cannot be written.
    """
    path = Path(path)
    staging = path.with_name(f".{path.name}.{os.getpid()}")
    arrow = _to_arrow(table)
    try:
        with staging.open("wb") as handle:
            pq.write_table(arrow, handle)
            handle.flush()
            os.fsync(handle.fileno())
        staging.replace(path)
    except OSError as error:
        raise QcError(f"{path}: cannot be written ({error.strerror}); choose another place") from None
    finally:
        with suppress(OSError):
            staging.unlink(missing_ok=True)


def read_verdicts(path: Path | str) -> pd.DataFrame:
    """Read a table of verdicts.

    Raises:
        QcError: if the file is missing, is no such table, or judges an episode twice.
    """
    try:
        arrow = pq.read_table(path, memory_map=False)
    except FileNotFoundError:
        raise QcError(f"{path}: no verdicts here; make them with `demomill qc`") from None
    except (OSError, pa.ArrowException) as error:
        raise QcError(f"{path}: not a table of verdicts ({' '.join(str(error).split())})") from None
    if absent := [name for name in COLUMNS if name not in arrow.column_names]:
        raise QcError(f"{path}: column {', '.join(absent)} is missing; make it again with `demomill qc`")
    table = make_table(arrow.select(list(COLUMNS)).to_pylist())
    if not (known := table["verdict"].isin(VERDICTS)).all():
        row = table[~known].iloc[0]
        raise QcError(f"{path}: {row['episode_id']} has verdict {row['verdict']!r}; use one of {', '.join(VERDICTS)}")
    if (twice := table["episode_id"].duplicated()).any():
        raise QcError(f"{path}: {table.loc[twice, 'episode_id'].iloc[0]} has more than one verdict; keep one")
    return table


def to_json(table: pd.DataFrame) -> list[dict[str, Any]]:
    """Rows as plain values; a number that is not there is None."""
    return [{k: None if v != v else v for k, v in row.items()} for row in _to_arrow(table).to_pylist()]


def _to_arrow(table: pd.DataFrame) -> pa.Table:
    columns = {name: table[name].tolist() for name in COLUMNS}
    return pa.table({f.name: pa.array(columns[f.name], f.type, from_pandas=True) for f in _SCHEMA}, schema=_SCHEMA)
