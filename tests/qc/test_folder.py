"""People decide: by content hash, in a text file, and a mistake changes no byte on disk."""

import json

import numpy as np
import pandas as pd
import pytest

from qc.decisions import Decision, find_hash, read_decisions, write_decisions
from qc.episodes import EpisodeSet
from qc.errors import QcError
from qc.folder import Folder
from qc.table import read_verdicts
from qc.verdicts import assess
from tests.qc.factories import change, copy_of, freeze, make_episode, make_task

FROZEN = 3


def episodes():
    return change(make_task(20), [FROZEN], lambda e: freeze(e, 30, 85))


def judged(root, given=None, decisions=None):
    found = EpisodeSet(tuple(given or episodes()))
    Folder(root).save(assess(found, decisions=decisions), found, decisions or {})
    return Folder(root)


def contents(root):
    return {path.name: path.read_bytes() for path in root.iterdir()}


def verdict(folder, number):
    return read_verdicts(folder.verdicts).to_dict("records")[number]


def test_a_person_keeps_what_a_filter_dropped_and_takes_it_back(tmp_path):
    folder = judged(tmp_path)
    before, id_ = contents(tmp_path), make_episode(FROZEN).id
    assert (verdict(folder, FROZEN)["verdict"], verdict(folder, FROZEN)["reasons"][0]) == ("drop", "idle")
    (hash_,) = folder.decide([id_], "keep", "ada", "it waits for a person")
    row = verdict(folder, FROZEN)
    assert (row["verdict"], row["judged"], row["decided_by"], row["decided_why"]) == (
        "keep",
        "drop",
        "ada",
        "it waits for a person",
    )
    assert json.loads(folder.accounting.read_text())["tasks"]["peg_round_8mm"]["kept"] == 20
    folder.undo([hash_])
    after = contents(tmp_path)
    assert after.pop("decisions.toml").startswith(b"# Decisions of people")
    assert after == before


def test_decisions_follow_the_content_not_the_place(tmp_path):
    folder = judged(tmp_path)
    folder.decide([make_episode(FROZEN).id], "keep", "ada", "fine")
    folder.decide([make_episode(7).id], "drop", "ada", "scrapes")
    decisions = read_decisions(folder.decisions)
    order = np.random.default_rng(0).permutation(20)
    renamed = [copy_of(episodes()[i], 100 + n, content_hash=f"{i:064x}") for n, i in enumerate(order)]
    rows = {row["content_hash"]: row for row in assess(renamed, decisions=decisions).to_dict("records")}
    assert rows[f"{FROZEN:064x}"]["verdict"] == "keep"
    assert (rows[f"{7:064x}"]["verdict"], rows[f"{7:064x}"]["decided_why"]) == ("drop", "scrapes")


def test_another_round_learns_from_decisions_and_is_logged_once(tmp_path):
    folder = judged(tmp_path)
    judged(tmp_path)
    folder.decide([make_episode(7).id], "drop", "ada", "scrapes")
    judged(tmp_path, decisions=read_decisions(folder.decisions))
    rounds = [json.loads(line) for line in folder.rounds.read_text().splitlines()]
    assert [(r["round"], r["decisions"], r["drop"]) for r in rounds] == [(1, 0, 1), (2, 1, 2)]
    assert rounds[1]["dropped_share"] == 0.1


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("decision = [", "not readable as TOML"),
        ("decision = 3", "decision is no list"),
        ("decision = [3]", "decision 1 needs exactly"),
        ('[[decisions]]\ncontent_hash = "a"', "decisions is unknown; begin every decision with"),
        ('[[decision]]\ncontent_hash = "a"\nverdict = "keep"\nwho = "x"\nwhy = "y"\nfile = "z"', "needs exactly"),
        ('[[decision]]\nverdict = "keep"', "decision 1 needs exactly content_hash, verdict, who, why"),
        ('[[decision]]\ncontent_hash = "a"\nverdict = "review"\nwho = "x"\nwhy = "y"', "use keep or drop"),
        ('[[decision]]\ncontent_hash = "a"\nverdict = "keep"\nwho = ""\nwhy = "y"', "not empty"),
        ('[[decision]]\ncontent_hash = "a"\nverdict = "keep"\nwho = "x"\nwhy = "y"\n' * 2, "decided twice"),
        (f'[[decision]]\ncontent_hash = "{99:064x}"\nverdict = "keep"\nwho = "x"\nwhy = "y"', "no episode here has"),
    ],
)
def test_a_bad_list_changes_no_byte(tmp_path, text, told):  # lerobot 2712
    folder = judged(tmp_path)
    folder.decisions.write_text(text)
    before = contents(tmp_path)
    with pytest.raises(QcError, match=told):
        judged(tmp_path, decisions=read_decisions(folder.decisions))
    with pytest.raises(QcError, match=told):
        folder.decide([make_episode(1).id], "drop", "ada", "because")
    assert contents(tmp_path) == before


def test_a_mistaken_decision_changes_no_byte(tmp_path):
    failed = make_episode(50, outcome="failure", reason="insert: jammed")
    folder = judged(tmp_path, [*episodes(), failed])
    before = contents(tmp_path)
    for named, who, why, told in (
        ([make_episode(1).id, "peg_round_8mm-s7-00999"], "ada", "x", "no episode here has this id"),
        (["000"], "ada", "x", "no episode here"),
        (["00000000"], "ada", "x", "episodes' hashes begin like this"),
        ([make_episode(1).id], "ada", " ", "--why is empty"),
        ([failed.id], "ada", "x", r"cannot be kept \(failed: insert: jammed"),
    ):
        with pytest.raises(QcError, match=told):
            folder.decide(named, "keep", who, why)
    with pytest.raises(QcError, match="nothing was decided about it"):
        folder.undo([make_episode(1).id])
    assert contents(tmp_path) == before


def test_a_list_with_one_mistake_is_refused_whole(tmp_path):
    folder = judged(tmp_path)
    folder.decide([make_episode(1).id], "drop", "ada", "scrapes")
    before = contents(tmp_path)
    for named in ([f"{2:064x}", f"{99:064x}"], [f"{99:064x}", make_episode(2).id], [f"{2:064x}", ""]):
        with pytest.raises(QcError, match="no episode here has this id or content hash"):
            folder.decide(named, "drop", "ada", "x")
    with pytest.raises(QcError, match="nothing was decided about it"):
        folder.undo([make_episode(1).id, make_episode(2).id])
    assert contents(tmp_path) == before


@pytest.mark.parametrize("text", [None, b"{", b"\xff", b"[]", b"{}", b'{"tasks": [], "damaged": [], "unrecorded": []}'])
def test_without_its_accounts_nothing_is_decided_until_it_is_judged_again(tmp_path, text):
    (source := tmp_path / "source").mkdir()
    folder = judged(tmp_path / "out")
    folder.accounting.unlink()
    if text is not None:
        folder.accounting.write_bytes(text)
    before = contents(folder.root)
    with pytest.raises(QcError, match=r"accounting.json: not readable .*make it again with `demomill qc`"):
        folder.decide([make_episode(1).id], "drop", "ada", "scrapes")
    assert contents(folder.root) == before
    folder.require_place(source, "../source")
    assert judged(folder.root).decide([make_episode(1).id], "drop", "ada", "scrapes")


@pytest.mark.parametrize("text", [b'{"round": 1', b"\xff\n", b"{}\n", b"[]\n", b"3\n", b'{"of": "x"}\n\n'])
def test_a_damaged_log_is_refused_before_anything_is_written(tmp_path, text):
    (source := tmp_path / "source").mkdir()
    folder = judged(tmp_path / "out")
    folder.rounds.write_bytes(text)
    before = contents(folder.root)
    for attempt in (lambda: judged(folder.root, make_task(3)), lambda: folder.require_place(source, "../source")):
        with pytest.raises(QcError, match=r"rounds.jsonl: .*mend it, or move it away"):
            attempt()
    assert contents(folder.root) == before


def test_pictures_go_with_the_verdicts_that_they_show(tmp_path):
    folder = judged(tmp_path)
    (hash_,) = folder.decide([make_episode(1).id], "drop", "ada", "scrapes")
    for change_them in (lambda: folder.decide([hash_], "keep", "ada", "no"), lambda: folder.undo([hash_]), judged):
        folder.picture.write_bytes(b"old")
        folder.report.write_text("old")
        change_them(*([tmp_path] if change_them is judged else []))
        assert not folder.picture.exists()
        assert not folder.report.exists()


def test_a_decision_that_does_not_fit_is_told_with_its_file(tmp_path):
    listed = {f"{n:064x}": Decision(f"{n:064x}", "keep", "ada", "x") for n in (98, 99)}
    write_decisions(tmp_path / "mine.toml", listed)
    with pytest.raises(QcError, match=r"mine.toml: 0+62: decided by ada, but no .* 1 more; remove their entries from"):
        assess(make_task(2), decisions=read_decisions(tmp_path / "mine.toml"))
    with pytest.raises(QcError, match=r"^0+62: decided by ada, but no .* 1 more; leave it out"):
        assess(make_task(2), decisions=listed)


def test_any_text_is_written_and_read_back(tmp_path):
    told = 'she said "no"\n\ttwice \\ and Ω\x7f'
    write_decisions(tmp_path / "d.toml", {"a": Decision("a", "keep", "Ł", told)})
    assert read_decisions(tmp_path / "d.toml")["a"] == Decision("a", "keep", "Ł", told)


def test_the_beginning_of_a_hash_is_enough():
    table = pd.DataFrame({"episode_id": ["x", "y"], "content_hash": ["abcdef01", "abcdef99"]})
    assert find_hash(table, "abcdef0") == "abcdef01"
    assert find_hash(table, "y") == "abcdef99"


def test_where_nothing_was_judged_is_a_clear_error(tmp_path):
    with pytest.raises(QcError, match="no verdicts here"):
        Folder.of(tmp_path)
