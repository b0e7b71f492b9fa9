"""Tools that others made for datasets of this kind, on our export."""

import json
import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from pipeline.export import export
from pipeline.export.verify import verify
from tests.pipeline.factories import make_episode, write_run

LENGTHS = (20, 24, 28)
DOCS = Path(__file__).parents[2] / "docs" / "datasets.md"


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", tmp_path / "cache")
    made = write_run(tmp_path / "run", [make_episode(attempt=n, length=length) for n, length in enumerate(LENGTHS)])
    return export(made.root, tmp_path / "dataset").root


@pytest.mark.slow
def test_datasets_reads_the_parquet_files(root: Path) -> None:
    from datasets import load_dataset

    rows = load_dataset("parquet", data_files=str(root / "data/*/*.parquet"), split="train")
    assert rows.num_rows == sum(LENGTHS)
    assert len(rows[0]["action"]) == 8
    assert rows[-1]["next.done"]


def run(tool: str, root: Path, *arguments: str) -> str:
    """What a command prints that came with LeRobot, run without a network or a window."""
    environment = {
        **os.environ,
        "HF_HUB_OFFLINE": "1",
        "HF_HOME": str(root.parent / "home"),
        "CUDA_VISIBLE_DEVICES": "",
    }
    command = [str(Path(sys.executable).parent / tool), *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


@pytest.mark.slow
def test_lerobot_trains_act(root: Path, tmp_path: Path) -> None:
    small = {"dim_model": 32, "n_heads": 2, "dim_feedforward": 32, "n_encoder_layers": 1, "n_vae_encoder_layers": 1}
    policy = {"type": "act", "device": "cpu", "push_to_hub": "false", "pretrained_backbone_weights": "null"}
    options = {**policy, **small, "chunk_size": 8, "n_action_steps": 8}
    run(
        "lerobot-train",
        root,
        "--dataset.repo_id=local/all",
        f"--dataset.root={root}",
        "--dataset.video_backend=pyav",
        *(f"--policy.{name}={value}" for name, value in options.items()),
        *("--steps=20", "--batch_size=2", "--num_workers=0", "--save_freq=20", "--wandb.enable=false"),
        f"--output_dir={tmp_path / 'trained'}",
    )
    saved = tmp_path / "trained" / "checkpoints" / "000020" / "pretrained_model"
    config = json.loads((saved / "config.json").read_text())
    assert set(config["output_features"]) == {"action"}
    assert {"observation.state", "observation.images.front", "observation.images.wrist"} <= set(
        config["input_features"]
    )
    assert (saved / "model.safetensors").stat().st_size > 1e6


@pytest.mark.slow
def test_lerobots_edit_command_deletes_an_episode(root: Path, tmp_path: Path) -> None:
    run(
        "lerobot-edit-dataset",
        root,
        *("--repo_id=local/all", f"--root={root}", "--new_repo_id=local/less", f"--new_root={tmp_path / 'less'}"),
        *("--operation.type=delete_episodes", "--operation.episode_indices=[1]"),
    )
    report = verify(tmp_path / "less")
    assert report.passed, [str(finding) for finding in report.all_findings()]
    assert (report.episodes, report.frames) == (2, LENGTHS[0] + LENGTHS[2])


@pytest.mark.slow
def test_lerobots_viewer_shows_an_episode(root: Path, tmp_path: Path) -> None:
    run(
        "lerobot-dataset-viz",
        root,
        *("--repo-id=local/all", f"--root={root}", "--episode-index=1", "--num-workers=0", "--batch-size=8"),
        *("--save=1", f"--output-dir={tmp_path}"),
    )
    (path,) = tmp_path.glob("*.rrd")
    shown: Counter[str] = Counter()
    for rows, entity in re.findall(r"with (\d+) rows .*? - (\S+) - ", run("rerun", root, "rrd", "print", str(path))):
        shown[entity] += int(rows)
    for entity in ("/action", "/state", "/observation.images.front", "/observation.images.wrist"):
        assert shown[entity] == LENGTHS[1]


@pytest.mark.slow
def test_the_mapping_of_the_docs_gives_openpis_droid_keys(root: Path) -> None:
    from lerobot.datasets.lerobot_dataset import LeRobotDataset

    (code,) = (block for block in re.findall(r"```python\n(.*?)```", DOCS.read_text(), re.DOTALL) if "openpi" in block)
    names: dict = {}
    exec(code, names)  # noqa: S102 (it is our own page that is run)
    horizon = {"action": [k / 15 for k in range(16)]}
    row = LeRobotDataset("local/all", root=root, video_backend="pyav", delta_timestamps=horizon)[0]
    mapped = names["to_openpi_droid"](row)
    assert {key: np.shape(value) for key, value in mapped.items() if key != "prompt"} == {
        "observation/exterior_image_1_left": (32, 64, 3),
        "observation/wrist_image_left": (32, 64, 3),
        "observation/joint_position": (7,),
        "observation/gripper_position": (1,),
        "actions": (16, 8),
    }
    assert mapped["observation/wrist_image_left"].dtype == np.uint8
    assert mapped["observation/wrist_image_left"].max() > 200
    state = np.concatenate([mapped["observation/joint_position"], mapped["observation/gripper_position"]])
    assert np.array_equal(state, row["observation.state"])
    assert mapped["prompt"] == row["task"]


@pytest.mark.slow
def test_lerobots_editor_deletes_an_episode(root: Path, tmp_path: Path) -> None:
    from lerobot.datasets.dataset_tools import delete_episodes
    from lerobot.datasets.lerobot_dataset import LeRobotDataset

    dataset = LeRobotDataset("local/all", root=root, video_backend="pyav")
    edited = delete_episodes(dataset, [1], output_dir=tmp_path / "edited", repo_id="local/edited")
    assert (edited.num_episodes, edited.num_frames) == (2, LENGTHS[0] + LENGTHS[2])
    report = verify(tmp_path / "edited")
    assert report.passed, [str(finding) for finding in report.all_findings()]
