"""A worker that has too little memory or disk, for real: a named state, and the rest of the run unharmed."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pipeline.errors import UserError
from pipeline.record import Request, plan_shards, record
from pipeline.shards import record_shard
from pipeline.store import Run, read_episode
from pipeline.watch import State
from tests.pipeline.conftest import TASKS
from tests.understudy import interpreter

ROOT = Path(__file__).resolve().parents[2]
GIB = 2**30


@pytest.fixture(autouse=True)
def _understudies(studio: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", str(interpreter(tmp_path)))
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("STUDIO", str(studio))


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 128 KiB."""
    place = tmp_path / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=128k", "none", str(place)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("needs the right to mount")
    yield place
    subprocess.run(["umount", "-l", place], check=True)


def content(root: Path) -> dict[str, str]:
    return {folder.name: read_episode(folder).content_hash() for folder in Run(root).folders()}


def test_a_disk_that_fills_up_costs_nothing_and_more_room_is_enough(
    request_of: Callable[..., Request], studio: Path, small_disk: Path
) -> None:
    request = request_of(root=small_disk / "run", episodes=8)
    with pytest.raises(UserError, match="no space left; free some and run the same command again to go on"):
        record(request)
    there = content(request.root)
    assert 0 < len(there) < 16
    assert not list(request.root.glob(".staging-*"))
    subprocess.run(["mount", "-o", "remount,size=16m", small_disk], check=True)
    assert record(request).new == 16 - len(there)
    assert content(request.root) == content(studio)


def test_a_worker_without_memory_says_so_and_the_other_task_is_recorded(
    request_of: Callable[..., Request], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("MOST_MEMORY", str(8 * GIB))
    monkeypatch.setenv("HUNGER", str(16 * GIB))
    first, second = plan_shards(request_of())
    report = record_shard(first)
    assert (report.state, report.new) == (State.OUT_OF_MEMORY, 4)
    assert "ran out of memory; take fewer --num-envs or --workers, then run the same command again" in report.problem
    monkeypatch.delenv("HUNGER")
    assert record_shard(second).state is State.DONE
    assert record(request_of()).new == 1
    assert sorted(content(tmp_path / "run")) == sorted(f"{task}-s3-{n:05d}" for task in TASKS for n in range(5))
