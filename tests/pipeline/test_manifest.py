"""The manifest names what made a run, counts what is in it, and notices every file that changes."""

import hashlib
import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import mujoco
import pytest

from pipeline.errors import UserError
from pipeline.manifest import SOURCE, check_manifest, write_manifest
from pipeline.record import Request, record
from pipeline.store import Run


@pytest.fixture
def root(fake_worker: None, request_of: Callable[..., Request]) -> Path:
    request = request_of()
    record(request)
    Run(request.root).quarantine_seed("peg_round_8mm", 3, 5, "for a test")
    return request.root


def test_a_manifest_says_what_made_a_run_and_what_is_in_it(root: Path) -> None:
    text = "quota = 4  # a few\n"
    manifest = json.loads(write_manifest(root, {"quota": 4}, text).read_text())
    head = subprocess.run(["git", "-C", SOURCE, "rev-parse", "HEAD"], capture_output=True, text=True, check=False)
    if head.returncode == 0:
        assert manifest["source"]["commit"] == head.stdout.strip()
    assert manifest["versions"]["packages"]["mujoco"] == mujoco.__version__
    assert manifest["run"]["run_seed"] == 3
    assert manifest["recipe"] == {"text": text, "resolved": {"quota": 4}}
    assert manifest["tasks"]["peg_round_8mm"] == {"hung": 1, "missed_grasp": 1, "success": 4}
    assert [(shard["task"], shard["new"], shard["state"]) for shard in manifest["shards"]] == [
        ("peg_round_8mm", 5, "done"),
        ("peg_round_4mm", 5, "done"),
    ]
    name = "episodes/peg_round_8mm/peg_round_8mm-s3-00000/frames.parquet"
    assert manifest["files"][name]["sha256"] == hashlib.sha256((root / name).read_bytes()).hexdigest()


def test_every_change_of_a_file_is_found(root: Path) -> None:
    write_manifest(root)
    assert check_manifest(root) == []
    folders = Run(root).folders()
    frames = folders[0] / "frames.parquet"
    spoilt = bytearray(frames.read_bytes())
    spoilt[100] ^= 1
    frames.write_bytes(spoilt)
    (folders[1] / "episode.json").unlink()
    (root / "note.txt").write_text("new")
    found = check_manifest(root)
    assert [problem.partition(":")[2].split()[0] for problem in found] == ["is", "holds", "is"]
    assert [Path(problem.partition(":")[0]).name for problem in found] == ["episode.json", "frames.parquet", "note.txt"]


def test_a_manifest_can_be_written_of_a_run_that_is_damaged(root: Path) -> None:
    (Run(root).folders("peg_round_4mm")[0] / "episode.json").write_text("{")
    with (root / "shards.jsonl").open("a") as lines:
        lines.write('{"task": "peg_ro')
    manifest = json.loads(write_manifest(root).read_text())
    assert manifest["tasks"]["peg_round_4mm"]["damaged"] == 1
    assert len(manifest["shards"]) == 2


def test_a_manifest_that_is_not_there_or_not_readable_is_a_clear_error(root: Path) -> None:
    with pytest.raises(UserError, match="no manifest here"):
        check_manifest(root)
    (root / "manifest.json").write_text("[]")
    with pytest.raises(UserError, match="not readable"):
        check_manifest(root)
