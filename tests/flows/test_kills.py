"""A release is killed at random moments (its flow, Prefect's server, workers), and goes on to the same datasets."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from pipeline.export.digests import file_digest
from pipeline.store import Run, read_episode
from tests.flows.fake_worker import renderable
from tests.killing import kill_at_random, strays, wait_until_gone
from tests.understudy import interpreter

ROOT = Path(__file__).resolve().parents[2]
KILLS = 20

QUOTAS = {"peg_round_8mm": 4, "peg_round_16mm": 2}
RECIPE = """
seed = 3
[quotas]
peg_round_8mm = 4
peg_round_16mm = 2
"""

COMMAND = """
import sys
sys.executable = sys.argv.pop(1)
from pipeline.cli import main
main()
"""

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def studio(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every third attempt fails, so that the larger quota is topped up."""
    run = Run.open(tmp_path_factory.mktemp("kills") / "studio", {})
    for task, quota in QUOTAS.items():
        for attempt in range(3 * quota):
            run.commit(renderable(task, attempt, run_seed=3, reason="dropped" if attempt % 3 == 2 else None))
    return run.root


Start = Callable[[Path], subprocess.Popen[bytes]]


@pytest.fixture
def start(studio: Path, tmp_path: Path) -> Start:
    recipe = tmp_path / "recipe.toml"
    recipe.write_text(RECIPE)
    command = [sys.executable, "-c", COMMAND, str(interpreter(tmp_path)), "release", str(recipe), "--device", "cpu"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "STUDIO": str(studio), "PREFECT_CLIENT_MAX_RETRIES": "1"}
    environment.pop("PREFECT_API_URL", None)

    def start(root: Path) -> subprocess.Popen[bytes]:
        with (tmp_path / "told").open("ab") as told:
            mine = {**environment, "RELEASE_OF_TEST": str(root)}
            return subprocess.Popen([*command, "--out", str(root)], env=mine, stdout=told, stderr=told)

    return start


def content(root: Path) -> dict[str, str]:
    """Content hashes of the episodes, and hashes of every file of the dataset."""
    episodes = {folder.name: read_episode(folder).content_hash() for folder in Run(root).folders()}
    files = (path for path in (root / "dataset").rglob("*") if path.is_file())
    return {**episodes, **{str(path.relative_to(root)): file_digest(path) for path in files}}


def stamps(root: Path) -> dict[str, int]:
    return {path.parent.name: path.stat().st_mtime_ns for path in root.glob("episodes/*/*/episode.json")}


def test_a_release_killed_at_twenty_moments_comes_to_the_same(start: Start, tmp_path: Path) -> None:
    rng, codes, runs = np.random.default_rng(KILLS), list[int](), 0
    began = time.monotonic()
    assert start(tmp_path / "undisturbed").wait() == 0
    undisturbed_s = time.monotonic() - began
    expected = content(tmp_path / "undisturbed")
    while len(codes) < KILLS:
        root = tmp_path / f"run{runs}"
        before = stamps(root)
        code = kill_at_random(start(root), rng, undisturbed_s)
        wait_until_gone(str(root))
        assert before.items() <= stamps(root).items()
        assert code in (None, -9, 0, 2), (tmp_path / "told").read_text()
        codes += [] if code is None else [code]
        runs += code in (None, 0)
    assert {-9, 2} <= set(codes)
    for run in range(runs + 1):
        root = tmp_path / f"run{run}"
        before = stamps(root)
        assert start(root).wait() == 0
        assert before.items() <= stamps(root).items()
        assert content(root) == expected
        assert json.loads((root / "release.json").read_text())["state"] == "exported"
        assert not [path for path in root.rglob(".*") if path.is_dir() and path.name != ".locks"]
        assert not (root / "quarantine").exists()
    assert "Prefect's server stopped with exit code -9" in (tmp_path / "told").read_text()
    assert "Traceback" not in (tmp_path / "told").read_text()


def test_a_second_release_in_a_folder_is_refused_at_once(start: Start, tmp_path: Path) -> None:
    root = tmp_path / "run"
    first = start(root)
    while not (root / "shards.jsonl").exists():
        assert first.poll() is None, (tmp_path / "told").read_text()
        time.sleep(0.05)
    second = start(root)
    assert second.wait() == 2
    assert first.poll() is None
    assert f"{root}: another release is at work here; wait for it" in (tmp_path / "told").read_text()
    assert first.wait() == 0
    assert start(tmp_path / "alone").wait() == 0
    assert content(root) == content(tmp_path / "alone")
    assert not strays(str(root))
