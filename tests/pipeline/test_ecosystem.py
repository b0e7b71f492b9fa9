"""Tools that others made for datasets of this kind, on our export."""

from pathlib import Path

import pytest

from pipeline.export import export
from pipeline.export.verify import verify
from tests.pipeline.factories import make_episode, write_run

LENGTHS = (20, 24, 28)


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", tmp_path / "cache")
    run = write_run(tmp_path / "run", [make_episode(attempt=n, length=length) for n, length in enumerate(LENGTHS)])
    return export(run.root, tmp_path / "dataset").root


@pytest.mark.slow
def test_datasets_reads_the_parquet_files(root: Path) -> None:
    from datasets import load_dataset

    rows = load_dataset("parquet", data_files=str(root / "data/*/*.parquet"), split="train")
    assert rows.num_rows == sum(LENGTHS)
    assert len(rows[0]["action"]) == 8
    assert rows[-1]["next.done"]


@pytest.mark.slow
def test_lerobots_editor_deletes_an_episode(root: Path, tmp_path: Path) -> None:
    from lerobot.datasets.dataset_tools import delete_episodes
    from lerobot.datasets.lerobot_dataset import LeRobotDataset

    dataset = LeRobotDataset("local/all", root=root, video_backend="pyav")
    edited = delete_episodes(dataset, [1], output_dir=tmp_path / "edited", repo_id="local/edited")
    assert (edited.num_episodes, edited.num_frames) == (2, LENGTHS[0] + LENGTHS[2])
    report = verify(tmp_path / "edited")
    assert report.passed, [str(finding) for finding in report.all_findings()]
