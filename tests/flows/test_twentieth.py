"""The committed recipe at a twentieth of its size, with the real simulator, through Prefect's server and onto a Hub."""

import json
import tomllib
from pathlib import Path

import pytest

from flows.stages.account import release_file
from pipeline.export.layout import INFO_PATH
from pipeline.manifest import check_manifest
from qc.table import REVIEW, read_verdicts
from tests.flows.served import artifacts, form, log, serving, start, state, until
from tests.hub.fixtures import logged_in

pytestmark = [pytest.mark.slow, pytest.mark.sim]

ROOT = Path(__file__).resolve().parents[2]
QUOTAS = {
    task: max(1, round(quota / 20))
    for task, quota in tomllib.loads((ROOT / "data" / "release.toml").read_text())["quotas"].items()
}
RECIPE = f"""
seed = 13550
[quotas]
{"\n".join(f"{task} = {quota}" for task, quota in QUOTAS.items())}
[quality] # strict enough for every short wait of the gears to be doubted
idle_rows = 6
idle_share = 0.01
[pictures]
episodes_per_task = 1
[publication]
repository = "someone/assembly"
tag = "release-1"
"""
HOUR_S = 3600.0


def test_a_twentieth_is_started_watched_reviewed_and_published_and_dask_records_the_same(tmp_path):
    from prefect.flow_runs import resume_flow_run

    out = tmp_path / "run"
    with logged_in(tmp_path / "hub") as hub, serving(tmp_path, RECIPE, {"HF_HOME": str(tmp_path / "hf")}) as site:
        run = start(site, "out=run", "publish=true", "device=cpu")
        until(lambda: state(run) == "Paused", HOUR_S)
        verdicts = read_verdicts(out / "qc" / "verdicts.parquet")
        doubtful = sorted(verdicts["episode_id"][verdicts["verdict"] == REVIEW])
        description, schema = form(run)
        assert schema["properties"]["keep"]["items"]["enum"] == doubtful
        assert all(episode in description for episode in doubtful)
        resume_flow_run(run, {"keep": doubtful, "who": "Ada", "why": "short waits of the hand are as they should be"})
        until(lambda: state(run) in ("Completed", "Paused"), HOUR_S)
        assert state(run) == "Completed"
        until(lambda: any("Ada decides to keep" in line for line in log(run)))
        assert {"plan", "yield", "accounting", "contact-sheet", "report", "datasets"} <= artifacts(run).keys()
        token = hub.token
        again = start(site, "out=dask", "runner=dask", "workers=2", "device=cpu", "review=go-on")
        until(lambda: state(again) == "Completed", HOUR_S)
    assert hashes(out).items() <= hashes(tmp_path / "dask").items(), "Dask's workers record the same bytes"
    account = json.loads(release_file(out).read_text())
    assert account["state"] == "published"
    assert {task: counted["released"] for task, counted in account["tasks"].items()} == QUOTAS
    assert [each["verified"] for each in account["published"]] == [True, True]
    assert json.loads((out / "dataset" / INFO_PATH).read_text())["total_episodes"] == sum(QUOTAS.values())
    assert not check_manifest(out)
    assert not [path for path in tmp_path.rglob("*") if path.is_file() and _holds(path, token, tmp_path / "hub")]


def hashes(out: Path) -> dict[str, str]:
    return {p.parent.name: json.loads(p.read_text())["content_hash"] for p in out.glob("episodes/*/*/episode.json")}


def _holds(path: Path, token: str, but: Path) -> bool:
    return but not in path.parents and token.encode() in path.read_bytes()
