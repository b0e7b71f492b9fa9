import json

import pytest

from pipeline.export import export
from tests.pipeline.factories import make_episode, write_run


@pytest.fixture
def built(tmp_path):
    run = write_run(tmp_path / "run", [make_episode(attempt=n, length=14) for n in range(2)])
    return run.root, export(run.root, tmp_path / "dataset").root


def test_verify_says_what_it_checked(demomill, built):
    run, dataset = built
    answer = demomill("verify", dataset, "--run", run)
    assert answer.code == 0
    assert "passed; 2 episodes, 28 frames" in answer.out
    assert "packets of the run" in answer.out
    assert "verify: hashes" in answer.err


def test_verify_names_file_and_row_and_ends_with_1(demomill, built):
    _, dataset = built
    info = json.loads((dataset / "meta/info.json").read_text())
    (dataset / "meta/info.json").write_text(json.dumps({**info, "total_episodes": 3}))
    answer = demomill("verify", dataset, "--json")
    assert answer.code == 1
    result = json.loads(answer.out)
    assert not result["passed"]
    (finding,) = result["checks"]["counts"]["findings"]
    assert finding == {"file": "meta/info.json", "where": "", "problem": "total_episodes is 3 but there are 2"}
    told = demomill("verify", dataset)
    assert told.code == 1
    assert "meta/info.json: total_episodes is 3 but there are 2" in told.out
    assert "FAILED" in told.out


def test_export_makes_either_format(demomill, built, tmp_path):
    run, _ = built
    made = json.loads(demomill("export", run, "--out", tmp_path / "a", "--no-privileged", "--json").out)
    assert (made["episodes"], made["frames"]) == (2, 28)
    answer = demomill("export", run, "--out", tmp_path / "a.hdf5", "--format", "hdf5", "--images")
    assert answer.code == 0
    assert "2 episodes, 28 frames" in answer.out
    assert demomill("verify", tmp_path / "a", "--run", run).code == 0
    bare = json.loads(demomill("export", run, "--out", tmp_path / "bare", "--no-images", "--json").out)
    assert (bare["episodes"], (tmp_path / "bare" / "videos").exists()) == (2, False)
    assert demomill("export", run, "--out", tmp_path / "one", "--camera", "wrist").code == 0
    assert [path.name for path in (tmp_path / "one" / "videos").iterdir()] == ["observation.images.wrist"]
    both = demomill("export", run, "--out", tmp_path / "b", "--no-images", "--camera", "wrist")
    assert both.code == 2
    assert "--no-images leaves nothing of --camera wrist" in both.complaint
    short = demomill("export", run, "--out", tmp_path / "b", "--quota", "3")
    assert short.code == 2
    assert "2 of its 2 attempts kept, 3 needed" in short.complaint
