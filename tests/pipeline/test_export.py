"""The exported dataset, judged by LeRobot's own reader, and every way in which an export may not begin or end."""

import errno
import hashlib
import json
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from pipeline.errors import UserError
from pipeline.export import Choice, export
from pipeline.export.files import _cut
from pipeline.export.statistics import PixelHistogram, vector_statistics
from pipeline.export.whole import replaced_whole
from pipeline.schema import FEATURES, FPS
from pipeline.store import Run
from pipeline.tasks import get_task
from pipeline.video import encode, probe, read_frames
from tests.pipeline.factories import CAMERAS, make_episode, painted, read_paint, verdict_table, write_run

EPISODES = (
    make_episode("peg_round_12mm", 1, length=21),
    make_episode("peg_round_4mm", 2, length=26, env_index=3),
    make_episode("peg_round_12mm", 0, length=34),
    make_episode("peg_round_4mm", 0, length=17, reason="no grasp"),
    make_episode("peg_round_4mm", 11, length=40),
)
IN_ORDER = [EPISODES[n] for n in (1, 4, 2, 0)]
"""Successes by size of peg, then attempt."""


def digests(root: Path) -> dict[str, str]:
    return {
        str(path.relative_to(root)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(root.rglob("*"))
        if path.is_file()
    }


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return write_run(tmp_path_factory.mktemp("run"), EPISODES)


@pytest.fixture(scope="module")
def dataset_root(run: Run, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return export(run.root, tmp_path_factory.mktemp("out") / "dataset", verdict_table(run)).root


@pytest.fixture(scope="module")
def load(dataset_root: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HF_HOME", str(tmp_path_factory.mktemp("cache")))
        patch.setenv("HF_HUB_OFFLINE", "1")
        from lerobot.datasets.lerobot_dataset import LeRobotDataset

        def loaded(**options):
            return LeRobotDataset("local/test", **{"root": dataset_root, "video_backend": "pyav", **options})

        yield loaded


def test_every_row_and_every_picture_is_its_own(load: Callable, run: Run) -> None:
    dataset = load(return_uint8=True)
    assert (dataset.num_episodes, dataset.num_frames, dataset.fps) == (4, 21 + 26 + 34 + 40, FPS)
    assert dataset.meta.robot_type == "panda_robotiq_2f85"
    rows = iter(dataset)
    for number, episode in enumerate(IN_ORDER):
        recorded = [feature for feature in FEATURES if feature.export]
        for k in range(episode.length):
            row = next(rows)
            for feature in recorded:
                stored = feature.check(episode.frames[feature.key], episode.length)
                assert row[feature.key].numpy().dtype == stored.dtype
                assert np.array_equal(row[feature.key].numpy(), stored[k]), (episode.id, k, feature.key)
            assert row["task"] == get_task(episode.task).instruction
            assert (row["episode_index"], row["frame_index"]) == (number, k)
            for index, camera in enumerate(("front", "wrist")):
                picture = row[f"observation.images.{camera}"].permute(1, 2, 0).numpy()
                assert read_paint(picture) == (EPISODES.index(episode), k, index)
    assert next(rows, None) is None


def test_time_windows_stay_in_their_episode(load: Callable) -> None:
    window = [-1 / FPS, 0.0, 2 / FPS]
    dataset = load(delta_timestamps=dict.fromkeys(("action", "next.reward", "observation.images.wrist"), window))
    last = IN_ORDER[0].length - 1
    row = dataset[last]
    assert row["action_is_pad"].tolist() == [False, False, True]
    stored = np.asarray(IN_ORDER[0].frames["action"], np.float32)
    assert np.array_equal(row["action"].numpy(), stored[[last - 1, last, last]])
    assert row["next.reward"].shape == (3,)
    pictures = (row["observation.images.wrist"] * 255).byte().permute(0, 2, 3, 1).numpy()
    assert [read_paint(picture)[1] for picture in pictures] == [last - 1, last, last]


def test_a_choice_of_episodes_loads(load: Callable) -> None:
    dataset = load(episodes=[2], return_uint8=True)
    assert len(dataset) == IN_ORDER[2].length
    assert read_paint(dataset[5]["observation.images.front"].permute(1, 2, 0).numpy()) == (2, 5, 0)


def test_the_usual_decoder_agrees(load: Callable) -> None:
    try:
        import torchcodec.decoders  # noqa: F401
    except (ImportError, OSError, RuntimeError):
        pytest.skip("torchcodec finds no FFmpeg libraries here")
    dataset = load(video_backend="torchcodec", return_uint8=True)
    assert [read_paint(dataset[k]["observation.images.front"].permute(1, 2, 0).numpy())[1] for k in (0, 25, 26)] == [
        0,
        25,
        0,
    ]


def test_episodes_carry_their_provenance(load: Callable) -> None:
    meta = load().meta
    for number, episode in enumerate(IN_ORDER):
        row = meta.episodes[number]
        assert row["episode_id"] == episode.id
        assert (row["task_id"], row["seed"], row["attempt"]) == (episode.task, episode.seed, episode.attempt)
        assert (row["outcome"], row["reason"], row["verdict"], row["look"]) == ("success", None, "keep", "plain")
        assert row["content_hash"] == episode.content_hash()
        assert row["phases"] == list(episode.phases)
        assert json.loads(row["draws"]) == episode.draws
        assert row["env_index"] == episode.env_index
    assert meta.filter_episodes(lambda row: row["seed"] == IN_ORDER[3].seed) == [3]
    assert meta.features["action"]["names"][-1] == "gripper_closed_target"
    assert list(meta.tasks.index) == [get_task(f"peg_round_{mm}mm").instruction for mm in (4, 12)]


def test_statistics_are_those_of_all_frames(load: Callable, dataset_root: Path, run: Run) -> None:
    stats = load().meta.stats
    for feature in FEATURES:
        if feature.export:
            rows = np.concatenate([feature.check(e.frames[feature.key], e.length) for e in IN_ORDER]).astype(float)
            rows = rows.reshape(len(rows), -1)
            assert np.allclose(stats[feature.key]["q01"], np.quantile(rows, 0.01, axis=0), atol=1e-12)
            assert np.allclose(stats[feature.key]["std"], rows.std(axis=0), atol=1e-12)
            assert stats[feature.key]["count"] == [len(rows)]
    pixels = np.concatenate(
        [
            [image[::2, ::2] for image in list(read_frames(run.folder(e.task, e.id) / "plain.wrist.mp4"))[::8]]
            for e in IN_ORDER
        ]
    ).reshape(-1, 3)
    wrist = stats["observation.images.wrist"]
    assert wrist["mean"].shape == (3, 1, 1)
    assert np.allclose(wrist["mean"].ravel(), pixels.mean(axis=0) / 255, atol=1e-9)
    assert np.allclose(wrist["std"].ravel(), pixels.std(axis=0) / 255, atol=1e-9)
    assert np.allclose(wrist["q90"].ravel(), np.quantile(pixels, 0.9, axis=0, method="inverted_cdf") / 255)
    assert np.allclose(wrist["max"].ravel(), pixels.max(axis=0) / 255)
    table = pq.read_table(dataset_root / "meta/episodes/chunk-000/file-000.parquet")
    action = np.asarray(IN_ORDER[1].frames["action"], np.float32)
    assert np.allclose(table["stats/action/q50"][1].as_py(), np.median(action.astype(float), axis=0))


def test_videos_have_as_many_frames_as_rows_and_data_a_row_group_an_episode(dataset_root: Path) -> None:
    frames = sum(episode.length for episode in IN_ORDER)
    for camera in ("front", "wrist"):
        path = dataset_root / f"videos/observation.images.{camera}/chunk-000/file-000.mp4"
        assert probe(path).frames == frames
    data = pq.ParquetFile(dataset_root / "data/chunk-000/file-000.parquet")
    groups = [data.metadata.row_group(n).num_rows for n in range(data.num_row_groups)]
    assert groups == [episode.length for episode in IN_ORDER]


def test_a_second_export_has_the_same_bytes(run: Run, dataset_root: Path, tmp_path: Path) -> None:
    shuffled = verdict_table(run).sample(frac=1.0, random_state=1)
    summary = export(run.root, tmp_path / "again", shuffled)
    assert digests(summary.root) == digests(dataset_root)
    assert summary.episodes_by_task == {"peg_round_4mm": 2, "peg_round_12mm": 2}
    assert (summary.episodes, summary.frames) == (4, 121)
    assert summary.size_bytes == sum(path.stat().st_size for path in summary.root.rglob("*") if path.is_file())


def test_without_verdicts_every_success_is_exported(run: Run, tmp_path: Path) -> None:
    summary = export(run.root, tmp_path / "out", choice=Choice(cameras=("wrist",)))
    assert summary.episodes == 4
    table = pq.read_table(summary.root / "meta/episodes/chunk-000/file-000.parquet", columns=["verdict"])
    assert set(table["verdict"].to_pylist()) == {"not assessed"}
    assert [path.name for path in (summary.root / "videos").iterdir()] == ["observation.images.wrist"]


def test_a_previous_export_is_replaced(run: Run, tmp_path: Path) -> None:
    out = tmp_path / "out"
    export(run.root, out, verdict_table(run))
    (out / "stale.txt").write_text("from before")
    summary = export(run.root, out, verdict_table(run, dropped=IN_ORDER[0].id))
    assert summary.episodes == 3
    assert json.loads((out / "meta/info.json").read_text())["total_episodes"] == 3
    assert not (out / "stale.txt").exists()
    assert list(tmp_path.iterdir()) == [out]


def test_without_the_first_episode_all_statistics_are_those_of_the_others(run: Run, tmp_path: Path) -> None:
    root = export(run.root, tmp_path / "out", verdict_table(run, dropped=IN_ORDER[0].id)).root
    data = pq.read_table(root / "data/chunk-000/file-000.parquet").to_pandas()
    described = pq.read_table(root / "meta/episodes/chunk-000/file-000.parquet").to_pandas()
    told = json.loads((root / "meta/stats.json").read_text())
    assert set(data.columns) <= set(told)
    for key in data.columns:
        values = np.stack(data[key].to_numpy()).reshape(len(data), -1).astype(float)
        for rows, stats in [
            (values, told[key]),
            *((values[data["episode_index"] == n], described.loc[n].filter(like=f"stats/{key}/")) for n in range(3)),
        ]:
            found = {str(name).rpartition("/")[2]: value for name, value in stats.items()}
            for name, share in {"min": 0.0, "q01": 0.01, "q50": 0.5, "q99": 0.99, "max": 1.0}.items():
                assert np.allclose(found[name], np.quantile(rows, share, axis=0)), (key, name)
            assert np.allclose(found["mean"], rows.mean(axis=0))
            assert np.allclose(found["std"], rows.std(axis=0))
            assert found["count"] == [len(rows)]


def test_the_card_counts_tasks_and_names_units(dataset_root: Path) -> None:
    card = (dataset_root / "README.md").read_text()
    assert card.startswith("---\n")
    assert "- LeRobot" in card.split("---")[1]
    assert "| peg_round_4mm | pick up the 4 mm round peg and insert it into the hole | 2 | 66 |" in card
    assert "joint_1_target_rad" in card


def refused(run_root: Path, out: Path, message: str, verdicts: pd.DataFrame | None = None, **options) -> None:
    before = set(out.parent.iterdir())
    with pytest.raises(UserError, match=message):
        export(run_root, out, verdicts, **options)
    assert set(out.parent.iterdir()) == before


@pytest.fixture
def small(tmp_path: Path) -> tuple[Run, Path]:
    run = write_run(tmp_path / "run", [make_episode(attempt=n, length=14) for n in range(2)])
    return run, tmp_path / "out"


def test_verdicts_that_do_not_fit_are_refused(small: tuple[Run, Path]) -> None:
    run, out = small
    table = verdict_table(run)
    first = str(table.loc[0, "episode_id"])
    refused(run.root, out, f"{first}: its verdict was given to other content", table.assign(content_hash="0" * 64))
    refused(
        run.root, out, f"{first}9: kept by the verdicts but not in", table.assign(episode_id=table.episode_id + "9")
    )
    refused(run.root, out, f"{first}: has more than one verdict", pd.concat([table, table]))
    refused(run.root, out, "column content_hash is missing", table.drop(columns="content_hash"))
    refused(run.root, out, "nothing to export, none of the 2 verdicts is keep", table.assign(verdict="drop"))


def test_an_unrendered_episode_is_named(small: tuple[Run, Path]) -> None:
    run, out = small
    refused(
        run.root,
        out,
        r"-00000: night\.front\.mp4 is missing \(4 videos in all\); run `demomill render .* --look night",
        choice=Choice(looks=("night",)),
    )
    (run.folders()[1] / "plain.wrist.mp4").unlink()
    refused(run.root, out, r"-00001: plain\.wrist\.mp4 is missing \(1 videos in all\)")


def test_a_video_of_another_length_is_named(small: tuple[Run, Path]) -> None:
    run, out = small
    encode(run.folders()[1] / "plain.wrist.mp4", painted(1, 13), FPS)
    refused(run.root, out, r"-00001: plain\.wrist\.mp4 has 13 frames but the episode has 14 rows")


def test_mixed_encoder_settings_are_refused(small: tuple[Run, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    run, out = small
    monkeypatch.setattr("pipeline.video._OPTIONS", {"preset": "ultrafast"})
    encode(run.folders()[1] / "plain.front.mp4", painted(1, 14), FPS)
    refused(run.root, out, r"00001/plain\.front\.mp4: encoded with other settings")


def test_a_damaged_episode_is_named(small: tuple[Run, Path]) -> None:
    run, out = small
    (run.folders()[0] / "frames.parquet").write_bytes(b"torn")
    refused(run.root, out, "-00000: damaged episode")


def test_a_run_of_failures_has_nothing_to_export(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", [make_episode(reason="no grasp")])
    refused(run.root, tmp_path / "out", "nothing to export, no successful episode")


def test_a_folder_of_others_is_left_alone(small: tuple[Run, Path]) -> None:
    run, out = small
    out.mkdir()
    (out / "thesis.tex").write_text("years of work")
    refused(run.root, out, "exists and is not an earlier export")
    refused(run.root, run.root, "exists and is not an earlier export")
    refused(run.root, out / "thesis.tex", "exists and is not an earlier export")
    assert (out / "thesis.tex").read_text() == "years of work"


def test_the_dataset_of_another_run_is_left_alone(small: tuple[Run, Path], tmp_path: Path) -> None:
    run, out = small
    other = Run.open(tmp_path / "other", {"run_seed": 8})
    folder = other.commit(make_episode(run_seed=8, length=14))
    for index, camera in enumerate(CAMERAS):
        encode(folder / f"plain.{camera}.mp4", painted(0, 14, index), FPS)
    export(other.root, out)
    before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    refused(run.root, out, "holds the export of another run")
    assert {path: path.read_bytes() for path in out.rglob("*") if path.is_file()} == before


def test_an_export_that_holds_the_run_is_not_replaced(tmp_path: Path) -> None:
    outer = export(write_run(tmp_path / "a", [make_episode(length=14)]).root, tmp_path / "out").root
    inner = write_run(outer / "run", [make_episode(length=14)])
    refused(inner.root, outer, "exists and is not an earlier export")


_KILLED_BY_ITSELF = """
import os, signal, sys
from pipeline.export import dataset
dataset.write_json_files = lambda *args, **kwargs: os.kill(os.getpid(), signal.SIGKILL)
dataset.export(sys.argv[1], sys.argv[2])
"""


def test_a_killed_export_leaves_nothing_half_done(small: tuple[Run, Path]) -> None:
    run, out = small
    export(run.root, out)
    before = digests(out)
    killed = subprocess.run([sys.executable, "-c", _KILLED_BY_ITSELF, run.root, out], check=False)
    assert killed.returncode == -signal.SIGKILL
    assert [path.name for path in out.parent.iterdir() if path.name.startswith(".")] == [".out.export"]
    assert digests(out) == before
    export(run.root, out)
    assert digests(out) == before
    assert not list(out.parent.glob(".*"))


def test_a_kill_between_the_two_renames_is_made_good(small: tuple[Run, Path]) -> None:
    run, out = small
    export(run.root, out)
    before = digests(out)
    workshop = out.with_name(".out.export")
    workshop.mkdir()
    out.rename(workshop / "earlier")
    with pytest.raises(RuntimeError), replaced_whole(out):
        raise RuntimeError("the next export fails too")
    assert digests(out) == before
    assert not workshop.exists()


def test_a_second_writer_is_refused(small: tuple[Run, Path]) -> None:
    run, out = small
    with replaced_whole(out) as root:
        refused(run.root, out, "another export is writing here")
        (root / "file").touch()
    assert (out / "file").exists()


def test_a_place_that_cannot_be_written_is_named(small: tuple[Run, Path]) -> None:
    run, _ = small
    with pytest.raises(UserError, match=r"out: cannot be written"):
        export(run.root, run.root / "run.json" / "out")


def test_a_full_disk_is_named(small: tuple[Run, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("pipeline.export.dataset.write_tasks", full)
    refused(small[0].root, small[1], "no space left")


def test_many_files_are_cut_at_their_limits_and_still_load(
    run: Run, tmp_path: Path, load: Callable, monkeypatch
) -> None:
    monkeypatch.setattr("pipeline.export.files.VIDEO_FILE_S", 70 / FPS)
    monkeypatch.setattr("pipeline.export.files.DATA_FILE_MB", 30 * 300 / 2**20)
    root = export(run.root, tmp_path / "out").root
    videos = sorted((root / "videos/observation.images.front/chunk-000").iterdir())
    assert [probe(path).frames for path in videos] == [26 + 40, 34 + 21]
    dataset = load(root=root, return_uint8=True)
    for start, episode in ((0, 1), (26, 4), (66, 2), (100, 0)):
        picture = dataset[start + 3]["observation.images.wrist"].permute(1, 2, 0).numpy()
        assert read_paint(picture) == (episode, 3, 1)


def test_cutting_keeps_every_load_within_every_limit() -> None:
    assert _cut([(4, 1), (4, 1), (4, 1), (20, 1), (1, 9), (1, 2)], (8, 10)) == [
        range(2),
        range(2, 3),
        range(3, 4),
        range(4, 5),
        range(5, 6),
    ]
    assert _cut([(1,)], (0.5,)) == [range(1)]


def test_statistics_of_a_constant_scalar() -> None:
    stats = vector_statistics(np.zeros(5, dtype=bool))
    assert all(value.shape == (1,) for value in stats.values())
    assert stats["count"] == 5
    assert stats["max"] == 0.0


def test_histograms_add_up(run: Run) -> None:
    clips = [folder / "plain.front.mp4" for folder in run.folders()]
    histograms = [PixelHistogram.of_video(clip) for clip in clips[:2]]
    both = histograms[0] + histograms[1]
    assert both.images == sum(h.images for h in histograms)
    assert both.counts.sum() == both.images * 3 * 16 * 32
