import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qc.episodes import Damaged, Unrecorded
from qc.errors import QcError
from qc.table import COLUMNS, VERDICTS, accounting, read_verdicts, write_verdicts
from qc.verdicts import assess
from tests.qc.factories import copy_of, make_episode, make_task, truncate

TASKS = st.sampled_from(["peg_round_8mm", "peg_round_4mm", "nut_M8"])
REASONS = st.lists(st.sampled_from(["duplicates", "idle", "length", "neighbours"]), min_size=1, max_size=3)


@given(
    rows=st.lists(st.tuples(TASKS, st.sampled_from(VERDICTS), REASONS), max_size=40),
    lost=st.lists(TASKS, max_size=5),
    hung=st.lists(TASKS, max_size=5),
)
def test_every_episode_is_accounted_for_once(rows, lost, hung):
    table = pd.DataFrame(
        [(task, verdict, reasons, "") for task, verdict, reasons in rows],
        columns=["task", "verdict", "reasons", "failure"],
    )
    damaged = [Damaged(str(i), task, "footer is missing") for i, task in enumerate(lost)]
    accounts = accounting(table, damaged, [Unrecorded(str(i), task, "hung") for i, task in enumerate(hung)])
    assert set(accounts) == {task for task, *_ in rows} | set(lost) | set(hung)
    assert sum(account.generated for account in accounts.values()) == len(rows) + len(lost) + len(hung)
    for task, account in accounts.items():
        mine = [(verdict, reasons) for name, verdict, reasons in rows if name == task]
        assert account.accounted == account.generated == len(mine) + lost.count(task) + hung.count(task)
        assert account.failed.get("hung", 0) == hung.count(task)
        assert account.kept == sum(verdict == "keep" for verdict, _ in mine)
        assert sum(account.dropped.values()) == sum(verdict == "drop" for verdict, _ in mine)
        assert account.damaged == lost.count(task)


@settings(max_examples=10, deadline=None)
@given(good=st.integers(0, 12), copies=st.integers(0, 3), short=st.integers(0, 2), failures=st.integers(0, 4))
def test_what_is_assessed_adds_up(good, copies, short, failures):
    episodes = [
        *make_task(good + 1),
        *(copy_of(make_episode(0), 100 + i) for i in range(copies)),
        *(truncate(make_episode(200 + i), 0.2) for i in range(short)),
        *(make_episode(300 + i, outcome="failure", reason="lift: dropped") for i in range(failures)),
    ]
    (account,) = accounting(assess(episodes)).values()
    assert account.generated == account.accounted == len(episodes)
    assert account.dropped.get("duplicates", 0) == copies
    assert account.failed == ({"lift: dropped": failures} if failures else {})


def test_an_unknown_verdict_does_not_vanish():
    table = pd.DataFrame({"task": ["nut_M8"], "verdict": ["kept"], "reasons": [[]], "failure": [""]})
    with pytest.raises(QcError, match="1 episodes generated but 0 accounted for"):
        accounting(table)


def test_a_table_is_read_back_as_written_and_its_bytes_repeat(tmp_path):
    episodes = [*make_task(11), make_episode(50, outcome="failure", reason='odd, "quoted" reason')]
    table = assess(episodes)
    write_verdicts(tmp_path / "a.parquet", table)
    write_verdicts(tmp_path / "b.parquet", assess(episodes))
    assert (tmp_path / "a.parquet").read_bytes() == (tmp_path / "b.parquet").read_bytes()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.parquet", "b.parquet"]
    back = read_verdicts(tmp_path / "a.parquet")
    pd.testing.assert_frame_equal(back, table)
    write_verdicts(tmp_path / "c.parquet", back)
    assert (tmp_path / "c.parquet").read_bytes() == (tmp_path / "a.parquet").read_bytes()


def test_an_empty_table_is_read_back(tmp_path):
    write_verdicts(tmp_path / "v.parquet", assess([]))
    assert tuple(read_verdicts(tmp_path / "v.parquet").columns) == COLUMNS


def test_tables_that_cannot_be_used_are_clear_errors(tmp_path):
    good = assess(make_task(2))
    with pytest.raises(QcError, match="no verdicts here"):
        read_verdicts(tmp_path / "none.parquet")
    path = tmp_path / "v.parquet"
    pd.DataFrame({"episode_id": ["a"], "verdict": ["keep"]}).to_parquet(path)
    with pytest.raises(QcError, match="column episode_index, task"):
        read_verdicts(path)
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(QcError, match="not a table of verdicts"):
        read_verdicts(path)
    write_verdicts(path, good.assign(verdict="perhaps"))
    with pytest.raises(QcError, match="verdict 'perhaps'; use one of keep"):
        read_verdicts(path)
    write_verdicts(path, pd.concat([good, good]))
    with pytest.raises(QcError, match="more than one verdict"):
        read_verdicts(path)


def test_a_place_that_cannot_be_written_is_a_clear_error(tmp_path):
    with pytest.raises(QcError, match="cannot be written"):
        write_verdicts(tmp_path / "missing" / "v.parquet", assess(make_task(2)))
