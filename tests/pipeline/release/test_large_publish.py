"""Fifty megabytes, a kill half-way, and where the token must never turn up."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from pipeline.export import export
from pipeline.export.layout import CODEBASE_VERSION
from pipeline.schema import FPS
from pipeline.store import Run
from pipeline.video import encode
from tests.hub import TestHub
from tests.hub.fixtures import logged_in
from tests.pipeline.factories import CAMERAS, make_episode, verdict_table, write_run

pytestmark = pytest.mark.slow

ROWS = 90
EPISODES = [make_episode("peg_round_8mm", attempt, length=ROWS) for attempt in range(8)]


def noise(seed: int) -> Iterator[np.ndarray]:
    """Pictures (180, 320, 3) that no encoder can make small."""
    rng = np.random.default_rng(seed)
    for _ in range(ROWS):
        yield rng.integers(0, 255, (180, 320, 3), dtype=np.uint8)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    run = write_run(tmp_path_factory.mktemp("run"), EPISODES, cameras=())
    for number, folder in enumerate(run.folders()):
        for index, camera in enumerate(CAMERAS):
            encode(folder / f"plain.{camera}.mp4", noise(10 * number + index), FPS)
    return run


@pytest.fixture(scope="module")
def dataset(run: Run, tmp_path_factory: pytest.TempPathFactory) -> Path:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pipeline.export.files.VIDEO_FILE_MB", 4)
        return export(run.root, tmp_path_factory.mktemp("out") / "dataset", verdict_table(run)).root


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[TestHub]:
    with logged_in(tmp_path / "hub") as hub:
        yield hub


def publish(dataset: Path, tag: str) -> subprocess.Popen[str]:
    code = "import sys; from pipeline.cli import run; sys.exit(run(sys.argv[1:]))"
    command = [sys.executable, "-c", code, "publish", str(dataset), "me/large", "--release-tag", tag]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_a_killed_publication_goes_on_with_what_is_missing(hub: TestHub, dataset: Path) -> None:
    size = sum(path.stat().st_size for path in dataset.rglob("*") if path.is_file())
    files = {path.relative_to(dataset).as_posix() for path in dataset.rglob("*") if path.is_file()}
    assert size > 50e6
    hub.faults.seconds_per_mb = 0.4
    first = publish(dataset, "r1")
    while len(hub.uploads()) < 5:
        assert first.poll() is None, first.communicate()
        time.sleep(0.02)
    first.send_signal(signal.SIGKILL)
    first.communicate()
    time.sleep(4 * 0.4)
    arrived = hub.uploads()
    large = [name for name in files if name.endswith((".parquet", ".mp4"))]
    assert 5 <= len(arrived) < len(large)
    repo = hub.repositories.find("datasets", "me/large")
    assert repo is not None
    assert (len(repo.commits), repo.tags) == (1, {})

    hub.faults.seconds_per_mb = 0.0
    second = publish(dataset, "r1")
    out, err = second.communicate(timeout=300)
    assert second.returncode == 0, err
    assert len(hub.uploads()) == len(set(hub.uploads())) == len(large)
    repo = hub.repositories.find("datasets", "me/large")
    assert repo is not None
    assert set(repo.files(repo.head)) == {*files, ".gitattributes"}
    assert repo.tags == {CODEBASE_VERSION: repo.head, "r1": repo.head}
    assert repo.head in out


def test_the_token_turns_up_nowhere(
    hub: TestHub, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Prefect's database, logs and results, the client's caches, the dataset, and what is printed."""
    home = tmp_path / "home"
    for name, folder in (("PREFECT_HOME", "prefect"), ("HF_HOME", "hf"), ("TMPDIR", "tmp")):
        (home / folder).mkdir(parents=True)
        monkeypatch.setenv(name, str(home / folder))
    monkeypatch.setenv("HF_DEBUG", "1")
    dataset = export(run.root, home / "dataset", verdict_table(run)).root
    code = f"""
from flows.server import prefect_server
with prefect_server():
    from prefect import flow, task
    from flows.stages.publish import publish

    @task(persist_result=True)
    def release(dataset: str, name: str, tag: str) -> dict:
        return publish(dataset, name, tag).to_dict()

    @flow(log_prints=True, persist_result=True)
    def published() -> None:
        print(release({str(dataset)!r}, "me/secret", "r1")["commit"])

    published()
"""
    child = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=300)
    assert child.returncode == 0, child.stderr
    assert "/api/datasets/me/secret" in child.stdout + child.stderr, "the client's debugging log was on"
    monkeypatch.setenv("HF_TOKEN", hub.token + "x")
    failed = publish(dataset, "r1")
    printed = "".join((child.stdout, child.stderr, *failed.communicate(), *capfd.readouterr()))
    assert failed.returncode == 2
    assert "the Hub rejects the token" in printed
    assert hub.token not in printed
    written = [path for path in home.rglob("*") if path.is_file()]
    assert any(path.suffix == ".db" for path in written)
    for path in written:
        assert hub.token.encode() not in path.read_bytes(), path
    assert os.environ["HF_TOKEN"].startswith(hub.token)
