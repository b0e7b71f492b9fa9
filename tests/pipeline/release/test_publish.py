"""A release against a Hub that speaks the real protocol, and everything that such a Hub can get wrong."""

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from huggingface_hub import CommitOperationAdd, HfApi

from flows.stages.publish import publish
from pipeline.errors import UserError
from pipeline.export.card import END
from pipeline.release import Plan, verify
from pipeline.release import publish as release
from pipeline.store import Run
from tests.hub import TestHub
from tests.hub.repositories import Repository
from tests.pipeline.cli.conftest import Answer, demomill  # noqa: F401

FRONT = "videos/observation.images.front/chunk-000/file-000.mp4"
ROWS = "data/chunk-000/file-000.parquet"


@pytest.fixture
def not_reloaded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leaves out LeRobot, which takes long to start: one test here, and the slow ones, load what they publish."""
    monkeypatch.setattr(verify, "reload_with_lerobot", lambda *_: None)


def there(hub: TestHub, name: str) -> Repository:
    found = hub.repositories.find("datasets", name)
    assert found is not None
    return found


def complaint(*arguments: object, **options: object) -> str:
    with pytest.raises(UserError) as caught:
        publish(*arguments, **options)  # type: ignore[arg-type]
    text = str(caught.value)
    assert "\n" not in text
    return text


def test_a_dataset_is_published_loaded_and_then_left_alone(
    hub: TestHub,
    dataset: Path,
    demomill: Callable[..., Answer],  # noqa: F811
) -> None:
    planned = json.loads(demomill("publish", dataset, "me/pegs", "--release-tag", "r1", "--dry-run", "--json").out)
    assert planned["plan"]["creates_repository"]
    assert planned["commit"] is None
    assert {ROWS, FRONT, "README.md", "meta/demomill.json"} <= set(planned["plan"]["new"])
    assert hub.repositories.find("datasets", "me/pegs") is None

    first = json.loads(demomill("publish", dataset, "me/pegs", "--release-tag", "r1", "--json").out)
    repo = there(hub, "me/pegs")
    assert repo.private
    assert repo.tags == {"v3.0": first["commit"], "r1": first["commit"]}
    assert first["verified"]
    assert first["uploaded_bytes"] == planned["plan"]["upload_bytes"] > 200_000
    sent = {path.relative_to(dataset).as_posix() for path in dataset.rglob("*") if path.is_file()}
    assert set(repo.files(repo.head)) == {*sent, ".gitattributes"}

    uploads, commits = len(hub.uploads()), len(repo.commits)
    again = demomill("publish", dataset, "me/pegs", "--release-tag", "r1")
    assert (again.code, "nothing to do" in again.out) == (0, True)
    assert (len(hub.uploads()), len(there(hub, "me/pegs").commits)) == (uploads, commits)


def test_the_next_release_replaces_what_differs_and_keeps_what_people_wrote(
    hub: TestHub, dataset: Path, smaller: Path, assessed: Run, not_reloaded: None
) -> None:
    first = publish(dataset, "me/two", "r1", run=assessed.root)
    assert "card/pca.png" in first.plan.new
    assert not publish(dataset, "me/two", "r1", run=assessed.root).changed
    api = HfApi(endpoint=hub.url)
    card = there(hub, "me/two").files(str(first.commit))["README.md"]
    text = hub.repositories.object(card["oid"]).read_text()
    edited = text.replace("---\n", "---\npretty_name: Pegs of mine\n", 1) + "\n## Cite us\n\nAs you like.\n"
    extra = {"README.md": edited.encode(), "LICENSE": b"mine", "data/chunk-000/file-007.parquet": b"PAR1 old PAR1"}
    operations = [CommitOperationAdd(path, content) for path, content in extra.items()]
    api.create_commit("me/two", operations, commit_message="by hand", repo_type="dataset")
    hub.requests.clear()

    second = publish(smaller, "me/two", "r2")
    repo = there(hub, "me/two")
    assert set(second.plan.stale) == {"data/chunk-000/file-007.parquet", "card/pca.png", "card/accounting.png"}
    assert set(second.plan.foreign) == {"LICENSE", ".gitattributes"}
    assert "meta/tasks.parquet" not in {*second.plan.changed, *second.plan.new}
    assert len(hub.uploads()) == sum(path.endswith((".parquet", ".mp4")) for path in second.plan.changed)
    assert repo.tags == {"v3.0": second.commit, "r1": first.commit, "r2": second.commit}
    files = repo.files(str(second.commit))
    assert "LICENSE" in files
    assert "data/chunk-000/file-007.parquet" not in files
    text = hub.repositories.object(files["README.md"]["oid"]).read_text()
    assert text.split(END)[1] == "\n\n## Cite us\n\nAs you like.\n"
    assert "pretty_name: Pegs of mine" in text
    assert "5 episodes of 2 tasks" in text
    assert 'revision="r2"' in text

    assert "the tag r1 is at commit" in complaint(smaller, "me/two", "r1")
    assert not publish(dataset, "me/two", "r1").changed


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ({"flip": FRONT}, rf"{FRONT}: other bytes are served than were sent"),
        ({"truncate": FRONT}, rf"{FRONT}: cannot be downloaded whole .*Consistency check failed"),
        ({"truncate": "README.md"}, r"README.md: \d+ bytes are served, \d+ were sent"),
        ({"stale": ROWS}, rf"{ROWS}: .*(other bytes|bytes are served)"),
        ({"keep_deleted": True}, r"data/chunk-000/file-007.parquet: is stale"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_what_the_hub_serves_wrong_is_named_and_no_tag_moves(
    hub: TestHub, dataset: Path, smaller: Path, not_reloaded: None, fault: dict[str, object], words: str
) -> None:
    name = f"me/{'-'.join(map(str, fault)).replace('_', '-')}-{len(str(fault))}"
    publish(dataset, name, "r1")
    shard = CommitOperationAdd("data/chunk-000/file-007.parquet", b"PAR1 old PAR1")
    HfApi(endpoint=hub.url).create_commit(name, [shard], commit_message="by hand", repo_type="dataset")
    earlier = there(hub, name).tags
    vars(hub.faults).update(fault)
    told = complaint(smaller, name, "r2")
    assert re.search(words, told), told
    assert "no tag was moved" in told
    assert there(hub, name).tags == earlier

    hub.faults = type(hub.faults)()
    if "keep_deleted" not in fault:
        assert publish(smaller, name, "r2").verified
        assert set(there(hub, name).tags) == {"v3.0", "r1", "r2"}


def test_a_tag_that_lands_elsewhere_is_put_back(hub: TestHub, dataset: Path, smaller: Path, not_reloaded: None) -> None:
    first = publish(dataset, "me/tags", "r1")
    hub.faults.move_tags = True
    told = complaint(smaller, "me/tags", "r2")
    assert f"the tag v3.0 names commit {first.commit}" in told
    assert set(there(hub, "me/tags").tags) == {"v3.0", "r1"}
    hub.faults.move_tags = False
    second = publish(smaller, "me/tags", "r2")
    assert (second.uploaded_bytes, there(hub, "me/tags").tags["v3.0"]) == (0, second.commit)


def test_a_release_tag_that_somebody_moved_is_told(
    hub: TestHub, dataset: Path, smaller: Path, not_reloaded: None
) -> None:
    publish(dataset, "me/moved", "r1")
    second = publish(smaller, "me/moved", "r2")
    with hub.repositories.changing("datasets", "me/moved") as repo:
        repo.tags["r1"] = str(second.commit)
    assert f"the tag r1 is at commit {second.commit}, which is not this dataset" in complaint(dataset, "me/moved", "r1")


def test_lerobots_tag_is_brought_back_from_a_commit_that_is_no_release(
    hub: TestHub, dataset: Path, smaller: Path, not_reloaded: None
) -> None:
    first = publish(dataset, "me/astray", "r1")
    second = publish(smaller, "me/astray", "r2")
    assert not publish(dataset, "me/astray", "r1").changed, "it belongs to the newest release"
    with hub.repositories.changing("datasets", "me/astray") as repo:
        repo.tags["v3.0"] = repo.commits[0]["sha"]
    assert not publish(smaller, "me/astray", "r2", dry_run=True).changed
    assert publish(smaller, "me/astray", "r2").changed
    assert there(hub, "me/astray").tags == {"v3.0": second.commit, "r1": first.commit, "r2": second.commit}


def test_stumbles_and_broken_lines_are_got_over(empty_hub: TestHub, dataset: Path, not_reloaded: None) -> None:
    empty_hub.faults.errors = {"/preupload/": 1, "/upload/": 1, "/commit/": 1, "/tree/": 1, "/tag/": 1}
    empty_hub.faults.drops = {"/upload/": 1, "/refs": 1}
    assert publish(dataset, "me/rough", "r1").verified
    assert not any(empty_hub.faults.errors.values())
    assert not any(empty_hub.faults.drops.values())
    assert [commit["summary"] for commit in there(empty_hub, "me/rough").commits] == ["initial commit", "Release r1"]


def test_answers_that_are_lost_do_not_commit_twice(
    hub: TestHub, dataset: Path, smaller: Path, not_reloaded: None
) -> None:
    hub.faults.lost = {"/repos/create": 1}
    first = publish(dataset, "me/lost", "r1")
    hub.faults.lost = {"/commit/": 1, "/tag/": 3}
    second = publish(smaller, "me/lost", "r2")
    assert not any(hub.faults.lost.values())
    repo = there(hub, "me/lost")
    assert [commit["summary"] for commit in repo.commits] == ["initial commit", "Release r1", "Release r2"]
    assert repo.tags == {"v3.0": second.commit, "r1": first.commit, "r2": second.commit}


def test_somebody_elses_commit_in_between_is_not_overwritten(
    hub: TestHub, dataset: Path, smaller: Path, not_reloaded: None
) -> None:
    publish(dataset, "me/shared", "r1")

    def interfere(_: Plan) -> None:
        operations = [CommitOperationAdd("NOTES.md", b"theirs")]
        HfApi(endpoint=hub.url).create_commit("me/shared", operations, commit_message="theirs", repo_type="dataset")

    with pytest.raises(UserError, match="me/shared: somebody else changed the repository meanwhile"):
        release(smaller, "me/shared", "r2", announce=interfere)
    assert there(hub, "me/shared").commits[-1]["summary"] == "theirs"
    assert publish(smaller, "me/shared", "r2").verified


def test_a_hub_without_room_names_the_file(empty_hub: TestHub, dataset: Path, not_reloaded: None) -> None:
    empty_hub.faults.room_bytes = 50_000
    told = complaint(dataset, "me/full", "r1")
    assert re.search(r"Error while uploading '\S+' to the Hub: the Hub has no room left \(Insufficient Storage\)", told)
    assert there(empty_hub, "me/full").tags == {}
    arrived = empty_hub.uploads()
    empty_hub.faults.room_bytes = 1e9
    assert publish(dataset, "me/full", "r1").verified
    assert 0 < len(arrived) < len(empty_hub.uploads()) == len(set(empty_hub.uploads()))


def test_a_token_that_the_hub_rejects(
    hub: TestHub, dataset: Path, monkeypatch: pytest.MonkeyPatch, not_reloaded: None
) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_wrong")
    told = complaint(dataset, "me/token", "r1")
    assert "the Hub rejects the token" in told
    assert "hf_wrong" not in told
    monkeypatch.delenv("HF_TOKEN")
    monkeypatch.setattr("huggingface_hub.constants.HF_TOKEN_PATH", "/nowhere/token")
    assert "no login of the Hub; run `hf auth login`" in complaint(dataset, "me/token", "r1")


def test_the_name_of_a_model_is_refused(hub: TestHub, dataset: Path) -> None:
    HfApi(endpoint=hub.url).create_repo("me/policy", repo_type="model")
    assert "me/policy: is a model repository, not a dataset" in complaint(dataset, "me/policy", "r1")
    assert hub.repositories.find("datasets", "me/policy") is None


def test_a_hub_that_is_not_there(dataset: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_any")
    monkeypatch.setattr("pipeline.release.hub.TRIES", 1)
    told = complaint(dataset, "me/pegs", "r1", endpoint="http://127.0.0.1:9")
    assert "the Hub at http://127.0.0.1:9 cannot be reached" in told
    assert "no address of a Hub" in complaint(dataset, "me/pegs", "r1", endpoint="huggingface")
    assert "no name of a repository" in complaint(dataset, "pegs", "r1")


def test_a_damaged_dataset_is_not_published(hub: TestHub, dataset: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(dataset, copy)
    (copy / FRONT).write_bytes((copy / FRONT).read_bytes() + b"x")
    assert f"{FRONT}: has" in complaint(copy, "me/damaged", "r1")
    (copy / "meta" / "demomill.json").unlink()
    assert "was not exported by demomill" in complaint(copy, "me/damaged", "r1")
    assert hub.repositories.find("datasets", "me/damaged") is None


def test_quality_control_reads_what_was_published(
    hub: TestHub,
    dataset: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    not_reloaded: None,
    demomill: Callable[..., Answer],  # noqa: F811
) -> None:
    publish(dataset, "me/judged", "r1")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "cache"))
    hub.requests.clear()
    answer = demomill("qc", "me/judged", "--out", tmp_path / "qc", "--no-report", "--json")
    assert answer.code == 0, answer.err
    assert {task["generated"] for task in json.loads(answer.out)["tasks"].values()} == {3}
    assert not any(path.endswith(".mp4") for _, path in hub.requests)
    missing = demomill("qc", "me/nothing", "--out", tmp_path / "none", "--json")
    assert missing.code == 2
    assert "no such dataset on the Hub" in missing.complaint
