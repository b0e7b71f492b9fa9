"""Releases on a real server: served, started from the command line, paused for a person, resumed; and on Dask."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest

from flows.server import prefect_server
from flows.stages.account import release_file
from qc.decisions import read_decisions
from tests.flows.fake_process import DOUBTFUL, environment

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
PATIENCE_S = 240


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SimpleNamespace]:
    """A folder with a recipe, and ``demomill serve`` at work in it."""
    folder = tmp_path_factory.mktemp("site")
    (folder / "recipe.toml").write_text(RECIPE)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    there = {name: value for name, value in os.environ.items() if not name.startswith("PREFECT_")}
    there |= {**environment(folder / "fake"), "PREFECT_HOME": str(folder / "prefect")}
    command = [sys.executable, "-c", "from pipeline.cli import main; main()", "serve", "--port", str(port)]
    url = f"http://127.0.0.1:{port}/api"
    with (folder / "log").open("w") as log:
        served = subprocess.Popen(command, cwd=folder, env=there, stdout=log, stderr=log)
    with pytest.MonkeyPatch.context() as patch, settings(url):
        patch.setenv("PREFECT_API_URL", url)
        try:
            until(lambda: (served.poll() is None and "Runner" in (folder / "log").read_text()) or deployed())
            yield SimpleNamespace(folder=folder, environment={**there, "PREFECT_API_URL": url})
        finally:
            served.send_signal(signal.SIGINT)
            assert served.wait(60) in (0, 130)


@contextmanager
def settings(url: str) -> Iterator[None]:
    from prefect.settings import PREFECT_API_URL, temporary_settings

    with temporary_settings({PREFECT_API_URL: url}):
        yield


def until(done):
    """Wait for something to be true, and return it."""
    deadline = time.monotonic() + PATIENCE_S
    while not (found := done()):
        assert time.monotonic() < deadline
        time.sleep(0.5)
    return found


def deployed() -> bool:
    import httpx
    from prefect.client.orchestration import get_client
    from prefect.exceptions import ObjectNotFound

    try:
        with get_client(sync_client=True) as client:
            return bool(client.read_deployment_by_name("release/laptop"))
    except (httpx.HTTPError, ObjectNotFound, RuntimeError):
        return False


def start(site: SimpleNamespace, *parameters: str) -> UUID:
    """Start a release as one does on the command line; returns the id of the flow run."""
    words = [word for parameter in ("recipe=recipe.toml", "device=cpu", *parameters) for word in ("-p", parameter)]
    command = [sys.executable, "-m", "prefect", "deployment", "run", "release/laptop", *words]
    told = subprocess.run(command, env=site.environment, capture_output=True, text=True, check=True).stdout
    found = re.search(r"UUID: ([0-9a-f-]{36})", told)
    assert found, told
    return UUID(found[1])


def state(run: UUID) -> str:
    from prefect.client.orchestration import get_client

    with get_client(sync_client=True) as client:
        found = client.read_flow_run(run).state
    assert found is not None
    assert found.name is not None
    assert found.name not in ("Failed", "Crashed"), found.message
    return found.name


def form(run: UUID) -> tuple[str, dict]:
    """What a person sees: the description, and the schema of the fields."""
    from prefect.client.orchestration import get_client

    with get_client(sync_client=True) as client:
        found = client.read_flow_run(run).state
        assert found is not None
        keys = found.state_details.run_input_keyset
        assert keys is not None
        description, schema = (
            json.loads(until(partial(written, client, run, keys[name]))) for name in ("description", "schema")
        )
    return description, schema


def written(client: Any, run: UUID, key: str) -> bytes | None:
    """An input's part; Prefect pauses just before it writes them."""
    from prefect.exceptions import PrefectHTTPStatusError

    try:
        return client.read_flow_run_input(run, key)
    except PrefectHTTPStatusError:
        return None


def log(run: UUID) -> list[str]:
    from prefect.client.orchestration import get_client
    from prefect.client.schemas.filters import LogFilter, LogFilterFlowRunId

    with get_client(sync_client=True) as client:
        return [entry.message for entry in client.read_logs(LogFilter(flow_run_id=LogFilterFlowRunId(any_=[run])))]


def artifacts(run: UUID) -> dict[str | None, Any]:
    """Artifacts of a release and of its recordings, by key."""
    from prefect.client.orchestration import get_client
    from prefect.client.schemas.filters import (
        ArtifactFilter,
        ArtifactFilterFlowRunId,
        FlowRunFilter,
        FlowRunFilterParentFlowRunId,
    )

    with get_client(sync_client=True) as client:
        of_release = FlowRunFilter(parent_flow_run_id=FlowRunFilterParentFlowRunId(any_=[run]))
        runs = [run, *(each.id for each in client.read_flow_runs(flow_run_filter=of_release))]
        of_runs = ArtifactFilter(flow_run_id=ArtifactFilterFlowRunId(any_=runs))
        return {artifact.key: artifact.data for artifact in client.read_artifacts(artifact_filter=of_runs)}


def test_a_release_pauses_for_a_person_and_goes_on_with_the_answer(site):
    from prefect.flow_runs import resume_flow_run

    run, out = start(site, "out=run"), site.folder / "run"
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

    run = start(site, "out=followed")
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
    run = start(site, "out=late", "review_hours=0.001")
    until(lambda: state(run) == "Completed")
    until(lambda: "review: nobody answered within 0.001 h" in log(run))
    account = json.loads(release_file(site.folder / "late").read_text())
    assert account["tasks"]["peg_round_8mm"]["planned"] > 4, "without the episode, more were recorded"
    assert not read_decisions(site.folder / "late" / "qc" / "decisions.toml")


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
