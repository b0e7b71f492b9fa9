"""Recording is killed at random moments, and goes on: the same episodes, each made once."""

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from pipeline.store import Run, read_episode
from tests.killing import kill_at_random, wait_until_gone
from tests.pipeline.conftest import TASKS
from tests.understudy import interpreter

ROOT = Path(__file__).resolve().parents[2]

RECORD = """
import sys
sys.executable = sys.argv[1]
from pathlib import Path
from pipeline.engine import Engine
from pipeline.errors import UserError
from pipeline.record import Request, record
try:
    record(Request(Path(sys.argv[2]), {tasks!r}, 8, run_seed=3, engine=Engine(), workers=2))
except UserError as error:
    print(error, file=sys.stderr)
    sys.exit(2)
"""


@pytest.fixture
def start(studio: Path, tmp_path: Path) -> Callable[[Path], subprocess.Popen[bytes]]:
    command = [sys.executable, "-c", RECORD.format(tasks=TASKS), str(interpreter(tmp_path))]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "STUDIO": str(studio)}

    def start(root: Path) -> subprocess.Popen[bytes]:
        with (tmp_path / "told").open("ab") as told:
            return subprocess.Popen([*command, str(root)], env=environment, stderr=told)

    return start


def content(root: Path) -> dict[str, str]:
    """Of every episode, read as a whole."""
    return {folder.name: read_episode(folder).content_hash() for folder in Run(root).folders()}


def stamps(root: Path) -> dict[str, int]:
    return {path.parent.name: path.stat().st_mtime_ns for path in root.glob("episodes/*/*/episode.json")}


@pytest.mark.parametrize("kills", [2, pytest.param(20, marks=pytest.mark.slow)])
def test_killed_at_random_moments_it_records_the_same_and_nothing_twice(
    start: Callable[[Path], subprocess.Popen[bytes]], studio: Path, tmp_path: Path, kills: int
) -> None:
    rng, codes, runs = np.random.default_rng(kills), list[int](), 0
    began = time.monotonic()
    assert start(tmp_path / "undisturbed").wait() == 0
    undisturbed_s = time.monotonic() - began
    expected = content(tmp_path / "undisturbed")
    assert expected == content(studio)
    while len(codes) < kills:
        root = tmp_path / f"run{runs}"
        before = stamps(root)
        code = kill_at_random(start(root), rng, undisturbed_s)
        wait_until_gone(str(root))
        assert before.items() <= stamps(root).items()
        assert code in (None, -9, 0, 2), (tmp_path / "told").read_text()
        codes += [] if code is None else [code]
        runs += code in (None, 0)
    for run in range(runs + 1):
        root = tmp_path / f"run{run}"
        before = stamps(root)
        assert start(root).wait() == 0
        assert before.items() <= stamps(root).items()
        assert content(root) == expected
        assert not list(root.glob(".staging-*"))
        assert not (root / "quarantine").exists()
    assert "Traceback" not in (tmp_path / "told").read_text()
