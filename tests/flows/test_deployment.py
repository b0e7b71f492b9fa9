"""Releases on a real server: served, started from the command line, paused for a person, resumed; and on Dask."""

import json

import pytest

from flows.server import prefect_server
from flows.stages.account import release_file
from flows.stages.held import held
from qc.decisions import read_decisions
from tests.flows.fake_process import DOUBTFUL, SLOW, environment
from tests.flows.served import artifacts, form, log, serving, start, state, until
from tests.killing import strays

pytestmark = pytest.mark.slow

RECIPE = """
seed = 3
[quotas]
peg_round_8mm = 3
peg_round_16mm = 1
[pictures]
episodes_per_task = 1
"""
EPISODE = f"{DOUBTFUL[0]}-s3-{DOUBTFUL[1]:05d}"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory):
    folder = tmp_path_factory.mktemp("site")
    with serving(folder, RECIPE, environment(folder / "fake")) as site:
        yield site


def test_a_release_pauses_for_a_person_and_goes_on_with_the_answer(site):
    from prefect.flow_runs import resume_flow_run

    run, out = start(site, "device=cpu", "out=run"), site.folder / "run"
    until(lambda: state(run) == "Paused")
    description, schema = form(run)
    assert f"`{EPISODE}`: same state and action in every row" in description
    assert schema["properties"]["keep"]["items"]["enum"] == [EPISODE]
    with pytest.raises(RuntimeError, match="not one of"):
        resume_flow_run(run, {"keep": ["another"]})
    resume_flow_run(run, {"keep": [EPISODE], "why": "it is seated"})
    until(lambda: state(run) == "Paused" and "Not accepted: --who is empty" in form(run)[0])
    assert not read_decisions(out / "qc" / "decisions.toml")
    resume_flow_run(run, {"keep": [EPISODE], "who": "Ada", "why": "it is seated"})
    until(lambda: state(run) == "Completed")
    (decision,) = read_decisions(out / "qc" / "decisions.toml").values()
    assert (decision.verdict, decision.who, decision.why) == ("keep", "Ada", "it is seated")
    account = json.loads(release_file(out).read_text())
    assert account["state"] == "exported"
    assert account["tasks"]["peg_round_8mm"]["planned"] == 4, "with the episode kept, nothing was topped up"


def test_the_run_can_be_followed(site):
    from prefect.flow_runs import resume_flow_run

    run = start(site, "device=cpu", "out=followed")
    until(lambda: state(run) == "Paused")
    form(run)
    resume_flow_run(run)
    until(lambda: state(run) == "Completed")
    shown = artifacts(run)
    until(lambda: "review: nothing was decided" in log(run))
    told = log(run)
    assert "review: 1 episodes wait; going on without them, with the verdicts as they stand" in told
    assert {"plan", "yield", "accounting", "motions", "contact-sheet", "report", "datasets"} <= shown.keys()
    assert shown["progress-peg-round-16mm"] == 100.0
    accounts = {row["task"]: row for row in json.loads(shown["accounting"])}
    assert accounts["peg_round_8mm"]["failed"] == "1 dropped"
    assert accounts["peg_round_8mm"]["review"] == "1 duplicates"
    assert str(shown["contact-sheet"]).startswith("data:image/jpeg;base64,")


def test_a_pause_that_nobody_ends_ends_in_time(site):
    run = start(site, "device=cpu", "out=late", "review_hours=0.001")
    until(lambda: state(run) == "Completed")
    until(lambda: "review: nobody answered within 0.001 h" in log(run))
    account = json.loads(release_file(site.folder / "late").read_text())
    assert account["tasks"]["peg_round_8mm"]["planned"] > 4, "without the episode, more were recorded"
    assert not read_decisions(site.folder / "late" / "qc" / "decisions.toml")


def test_a_run_that_is_cancelled_leaves_no_worker_and_a_free_folder(site):
    from prefect.client.orchestration import get_client
    from prefect.states import Cancelling

    run, out = start(site, "device=cpu", f"out={SLOW}"), site.folder / SLOW
    until(lambda: strays(f'"root": "{SLOW}"'))
    with get_client(sync_client=True) as client:
        client.set_flow_run_state(run, Cancelling())
    until(lambda: state(run) == "Cancelled")
    until(lambda: not strays(f'"root": "{SLOW}"'))
    with held(out):
        assert len(list(out.glob("episodes/*/*/episode.json"))) < 6


def test_workers_of_dask_record_the_same_bytes(tmp_path, monkeypatch):
    for name, value in environment(tmp_path / "fake").items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("PREFECT_HOME", str(tmp_path / "prefect"))
    monkeypatch.delenv("PREFECT_API_URL", raising=False)
    (tmp_path / "recipe.toml").write_text(RECIPE)
    found = {}
    with prefect_server():
        from flows.release import release

        for runner in ("threads", "dask"):
            out = tmp_path / runner
            release(str(tmp_path / "recipe.toml"), str(out), review="go-on", device="cpu", workers=2, runner=runner)
            metas = [json.loads(path.read_text()) for path in out.glob("episodes/*/*/episode.json")]
            found[runner] = {meta["id"]: meta["content_hash"] for meta in metas}
            assert json.loads(release_file(out).read_text())["state"] == "exported"
    assert len(found["dask"]) >= 6
    assert found["dask"] == found["threads"]
