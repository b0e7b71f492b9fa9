"""The flow of a release, with made-up episodes in place of the simulator's."""

import json
import shutil
from pathlib import Path

import pytest

from flows.server import prefect_server
from flows.stages.account import release_file
from pipeline import shards
from pipeline.cli import run
from pipeline.export.layout import INFO_PATH
from pipeline.manifest import check_manifest
from pipeline.store import Episode
from tests.flows.fake_worker import fake_worker, renderable
from tests.hub.fixtures import logged_in

QUOTAS = {"peg_round_8mm": 5, "peg_round_16mm": 2}
RECIPE = """
seed = 3
[quotas]
peg_round_8mm = 5
peg_round_16mm = 2
[pictures]
looks = [{ name = "plain" }, { name = "varied" }]
episodes_per_task = 1
[publication]
repository = "someone/pegs"
tag = "release-1"
"""


@pytest.fixture(scope="module", autouse=True)
def server():
    """One server for all tests: it takes seconds to start."""
    with prefect_server():
        from prefect.settings import PREFECT_API_URL

        url = PREFECT_API_URL.value()
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("PREFECT_API_URL", url)
            yield


def command(out: Path, *more: str) -> list[str]:
    out.parent.mkdir(exist_ok=True)
    recipe = out.parent / "recipe.toml"
    if not recipe.exists():
        recipe.write_text(RECIPE)
    return ["release", str(recipe), "--out", str(out), "--device", "cpu", *more]


def hashes(out: Path) -> dict[str, str]:
    return {p.parent.name: json.loads(p.read_text())["content_hash"] for p in out.glob("episodes/*/*/episode.json")}


def bytes_of(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}


@pytest.fixture(scope="module")
def made(tmp_path_factory, server):
    """A release that was interrupted while it recorded, then went on to the end."""
    out = tmp_path_factory.mktemp("release") / "run"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shards, "watch", fake_worker(renderable, dies_after=2))
        assert run(command(out)) == 130
        assert 0 < len(hashes(out)) < sum(QUOTAS.values())
        assert json.loads(release_file(out).read_text())["state"] == "incomplete"
        patch.setattr(shards, "watch", fake_worker(renderable))
        assert run(command(out)) == 0
    return out


def test_every_quota_is_met_by_kept_episodes(made):
    account = json.loads(release_file(made).read_text())
    assert account["state"] == "exported"
    for task, quota in QUOTAS.items():
        counted = account["tasks"][task]
        assert (counted["quota"], counted["released"], counted["pictured"]) == (quota, quota, 1)
        assert counted["kept"] >= quota
        assert counted["generated"] == counted["planned"]
    assert account["tasks"]["peg_round_8mm"]["planned"] > 6, "its first six attempts leave four: it was topped up"
    assert account["recipe"]["text"] == RECIPE
    assert account["recipe"]["resolved"]["pictures"]["cameras"] == ["front", "wrist"]


def test_states_of_all_and_pictures_of_some_are_two_datasets(made):
    infos = {name: json.loads((made / name / INFO_PATH).read_text()) for name in ("dataset", "dataset-pictures")}
    assert infos["dataset"]["total_episodes"] == sum(QUOTAS.values())
    assert infos["dataset-pictures"]["total_episodes"] == 2 * len(QUOTAS)
    kinds = {name: {f["dtype"] for f in info["features"].values()} for name, info in infos.items()}
    assert "video" in kinds["dataset-pictures"]
    assert "video" not in kinds["dataset"]


def test_manifest_covers_every_file(made):
    assert not check_manifest(made)


def test_an_undisturbed_run_comes_to_the_same(made, tmp_path, monkeypatch):
    monkeypatch.setattr(shards, "watch", fake_worker(renderable))
    out = tmp_path / "again" / "run"
    assert run(command(out)) == 0
    assert hashes(out) == hashes(made)
    assert bytes_of(out / "dataset") == bytes_of(made / "dataset")
    assert bytes_of(out / "dataset-pictures") == bytes_of(made / "dataset-pictures")


def test_a_second_call_does_nothing(made, monkeypatch):
    def must_not_record(*_: object) -> None:
        raise AssertionError("there is nothing to record")

    before = {p: p.stat().st_mtime_ns for p in made.glob("[deq]*/**/*.*") if p.is_file()}
    monkeypatch.setattr(shards, "watch", must_not_record)
    assert run(command(made)) == 0
    assert before == {p: p.stat().st_mtime_ns for p in made.glob("[deq]*/**/*.*") if p.is_file()}


def test_a_yield_that_collapses_is_said_and_nothing_is_exported(tmp_path, monkeypatch, capfd):
    def always_fails(task: str, attempt: int, **options: object) -> Episode:
        return renderable(task, attempt, **{**options, "reason": "dropped"})

    monkeypatch.setattr(shards, "watch", fake_worker(always_fails))
    out = tmp_path / "run"
    assert run(command(out)) == 2
    told = capfd.readouterr().err
    assert "peg_round_16mm: 0 of 2 kept after 6 attempts (6 dropped)" in told
    assert "Traceback" not in told
    assert not (out / "dataset").exists()
    assert json.loads(release_file(out).read_text())["tasks"]["peg_round_8mm"]["failed"] == {"dropped": 15}


def test_it_is_published_where_the_recipe_says_and_the_token_stays_out_of_it(made, tmp_path, monkeypatch):
    out = tmp_path / "out" / "run"
    out.parent.mkdir()
    shutil.copy(made.parent / "recipe.toml", out.parent)
    shutil.copytree(made, out)
    with logged_in(tmp_path / "hub") as hub:
        assert run(command(out, "--publish")) == 0
        token = hub.token
    account = json.loads(release_file(out).read_text())
    assert account["state"] == "published"
    assert [each["repository"] for each in account["published"]] == ["someone/pegs", "someone/pegs-pictures"]
    assert all(each["verified"] for each in account["published"])
    assert not [name for name, content in bytes_of(out).items() if token.encode() in content]


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (("seed = 3", "sede = 3"), "unknown key 'sede'; did you mean 'seed'?"),
        (("peg_round_16mm = 2", "peg_round_17mm = 2"), "did you mean"),
        (("peg_round_16mm = 2", "peg_round_16mm = 0"), "give a number of episodes, at least 1"),
        (('"varied"', '"vareid"'), "did you mean 'varied'?"),
        (('"release-1"', '"v1.0"'), "v1.0"),
        (("seed = 3", 'seed = 3\nkeep_list = "gone.toml"'), "there is no file"),
        (("seed = 3", "seed ="), "not readable as TOML"),
    ],
)
def test_a_bad_recipe_is_refused_before_anything_is_made(tmp_path, capfd, change, told):
    recipe = tmp_path / "recipe.toml"
    recipe.write_text(RECIPE.replace(*change))
    for command in (
        ["recipe", "check", str(recipe), "--no-sample"],
        ["release", str(recipe), "--out", str(tmp_path / "o")],
    ):
        assert run(command) == 2
        error = capfd.readouterr().err
        assert told in error
        assert str(recipe) in error
        assert "Traceback" not in error
    assert not (tmp_path / "o").exists()
