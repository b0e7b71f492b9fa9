"""What of a run is exported: looks, splits, columns, quotas, lists; and what is refused before anything is written."""

import json
from collections import defaultdict
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from pipeline.errors import UserError
from pipeline.export import Choice, export, is_current
from pipeline.export.layout import DATA_FILE_MB, FILES_PER_CHUNK, VIDEO_FILE_MB
from pipeline.export.verify import verify
from pipeline.schema import FPS
from pipeline.store import Run, read_meta
from pipeline.video import encode, read_frames, segments
from tests.pipeline.factories import CAMERAS, make_episode, painted, verdict_table, write_run

EPISODES = [
    *(make_episode("peg_round_8mm", n, length=14 + n) for n in range(4)),
    *(make_episode("peg_round_12mm", n, length=15) for n in range(3)),
    make_episode("peg_round_12mm", 3, reason="no grasp"),
]
HALF = Choice(looks=("plain", "night"), test_fraction=0.5)
HUB_FILES_PER_FOLDER = 10_000
HUB_ROW_GROUP_BYTES = 300e6


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    made = write_run(tmp_path_factory.mktemp("run"), EPISODES)
    for number, episode in enumerate(EPISODES):
        folder = made.folder(episode.task, episode.id)
        for index, camera in enumerate(CAMERAS):
            encode(folder / f"night.{camera}.mp4", painted(100 + number, episode.length, index), FPS)
        for look in ("plain", "night"):
            (folder / f"{look}.json").write_text(json.dumps({"settings": {"look": {"name": look, "light": 0.5}}}))
    return made


@pytest.fixture(scope="module")
def in_two_looks(run: Run, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return export(run.root, tmp_path_factory.mktemp("out") / "dataset", choice=HALF).root


def episodes(root: Path) -> list[dict]:
    return pq.read_table(root / "meta/episodes/chunk-000/file-000.parquet").to_pylist()


def refused(run: Run, out: Path, message: str, choice: Choice) -> None:
    with pytest.raises(UserError, match=message):
        export(run.root, out, choice=choice)
    assert not out.exists()
    assert not list(out.parent.glob(".*"))


def test_looks_of_one_motion_lie_in_one_split(in_two_looks: Path) -> None:
    rows = episodes(in_two_looks)
    splits = json.loads((in_two_looks / "meta/info.json").read_text())["splits"]
    bounds = {name: tuple(map(int, span.split(":"))) for name, span in splits.items()}
    assert list(bounds) == ["train", "test"]
    assert (bounds["train"][0], bounds["train"][1], bounds["test"][1]) == (0, bounds["test"][0], 14)
    by_motion = defaultdict(set)
    for number, row in enumerate(rows):
        assert bounds[row["split"]][0] <= number < bounds[row["split"]][1]
        by_motion[row["content_hash"]].add((row["split"], row["look"]))
    assert len(by_motion) == 7
    for motion in by_motion.values():
        assert len({split for split, _ in motion}) == 1
        assert {look for _, look in motion} == {"plain", "night"}


def test_a_split_is_a_function_of_the_seed_alone(run: Run, in_two_looks: Path, tmp_path: Path) -> None:
    few = Choice(tasks=("peg_round_12mm",), test_fraction=0.5)
    of_seed = {row["seed"]: row["split"] for row in episodes(in_two_looks)}
    for row in episodes(export(run.root, tmp_path / "out", choice=few).root):
        assert of_seed[row["seed"]] == row["split"]
    seeds = np.random.default_rng(0).integers(0, 2**62, 4000).tolist()
    assert 0.08 < np.mean([Choice(test_fraction=0.1).split(seed) == "test" for seed in seeds]) < 0.12


def test_lerobot_loads_each_look_with_its_own_pictures(run: Run, in_two_looks: Path) -> None:
    assert verify(in_two_looks, run.root).passed
    for row in episodes(in_two_looks):
        assert json.loads(row["rendering"])["look"] == {"name": row["look"], "light": 0.5}
        assert row["outcome"] == "success"
    night, plain = (
        next(read_frames(run.folder("peg_round_8mm", EPISODES[0].id) / f"{look}.front.mp4"))
        for look in ("night", "plain")
    )
    assert (night != plain).any()


def test_rows_carry_seed_and_attempt_and_leave_out_what_is_privileged(run: Run, tmp_path: Path) -> None:
    root = export(run.root, tmp_path / "out", choice=Choice(privileged=False)).root
    table = pq.read_table(root / "data/chunk-000/file-000.parquet")
    features = json.loads((root / "meta/info.json").read_text())["features"]
    assert not [key for key in (*table.column_names, *features) if key.startswith("privileged.")]
    assert features["observation.eef_quat"]["names"] == ["qx", "qy", "qz", "qw"]
    for episode, row in enumerate(episodes(root)):
        own = table.filter(np.equal(table["episode_index"].to_numpy(), episode))
        assert set(own["seed"].to_pylist()) == {row["seed"]}
        assert set(own["attempt"].to_pylist()) == {row["attempt"]}
        assert own["phase"].to_numpy().max() < len(row["phases"])
    assert verify(root, run.root).passed


def test_states_alone_need_no_rendering(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", EPISODES, cameras=())
    bare = Choice(cameras=())
    root = export(run.root, tmp_path / "out", choice=bare).root
    assert not (root / "videos").exists()
    assert {(row["look"], row["rendering"]) for row in episodes(root)} == {(None, None)}
    assert "none, the dataset holds states alone" in (root / "README.md").read_text()
    report = verify(root, run.root)
    assert report.passed, [str(finding) for finding in report.all_findings()]
    assert is_current(run.root, root, None, bare)
    assert not is_current(run.root, root, None, Choice(cameras=(), privileged=False))


def test_lerobot_loads_states_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", tmp_path / "cache")
    from lerobot.datasets.lerobot_dataset import LeRobotDataset

    run = write_run(tmp_path / "run", EPISODES, cameras=())
    root = export(run.root, tmp_path / "out", choice=Choice(cameras=())).root
    dataset = LeRobotDataset("local/states", root=root, delta_timestamps={"action": [0.0, 1 / FPS]})
    assert (dataset.num_episodes, dataset.meta.camera_keys) == (7, [])
    stored = next(e for e in EPISODES if e.id == episodes(root)[0]["episode_id"])
    for k in (0, stored.length - 2):
        assert np.array_equal(dataset[k]["action"], np.float32(stored.frames["action"][k : k + 2]))


def test_the_cameras_of_a_choice_are_exported(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", [make_episode(length=14)], cameras=("front", "wrist", "exterior_1"))
    root = export(run.root, tmp_path / "out", choice=Choice(cameras=("exterior_1", "wrist"))).root
    assert {path.name for path in (root / "videos").iterdir()} == {
        "observation.images.exterior_1",
        "observation.images.wrist",
    }
    assert verify(root, run.root).passed
    remedy = r"plain\.exterior_2\.mp4 is missing .*`demomill render .* --look plain --camera exterior_2`"
    refused(run, tmp_path / "more", remedy, Choice(cameras=("exterior_2",)))
    remedy = r"varied-1\.front\.mp4 is missing .* --look varied --looks-per-episode 2 --camera front`"
    refused(run, tmp_path / "more", remedy, Choice(looks=("varied-1",)))
    with pytest.raises(UserError, match="'varied' is drawn for each episode; give --look varied-0"):
        Choice(looks=("varied",))


def test_the_same_choice_gives_the_same_bytes(run: Run, in_two_looks: Path, tmp_path: Path) -> None:
    again = export(run.root, tmp_path / "out", choice=HALF).root
    files = [path.relative_to(again) for path in again.rglob("*") if path.is_file()]
    assert all((again / path).read_bytes() == (in_two_looks / path).read_bytes() for path in files)


def test_an_empty_task_stops_the_export(tmp_path: Path) -> None:
    failed = make_episode("peg_round_4mm", reason="no grasp")
    run = write_run(tmp_path / "run", [make_episode(length=14), failed])
    message = "peg_round_4mm: 0 of its 1 attempts kept, 1 needed; run `demomill record --task peg_round_4mm"
    refused(run, tmp_path / "out", message, Choice())
    assert export(run.root, tmp_path / "out", choice=Choice(tasks=("peg_round_8mm",))).episodes == 1


def test_a_task_below_its_quota_stops_the_export(run: Run, tmp_path: Path) -> None:
    message = r"peg_round_12mm: 3 of its 4 attempts kept, 5 needed; .*--episodes 8 "
    refused(run, tmp_path / "out", message, Choice(quota={"peg_round_12mm": 5, "peg_round_8mm": 4}))
    refused(run, tmp_path / "out", "nut_M8: 0 of its 0 attempts kept, 2 needed", Choice(quota={"nut_M8": 2}))
    assert export(run.root, tmp_path / "out", choice=Choice(quota={"peg_round_12mm": 3})).episodes == 7


def test_mixed_frame_rates_stop_the_export(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", [make_episode(attempt=n, length=14) for n in range(2)])
    encode(run.folders()[1] / "plain.wrist.mp4", painted(1, 14, 1), 2 * FPS)
    refused(run, tmp_path / "out", r"-00001: plain\.wrist\.mp4 has 30 fps, its rows 15", Choice())


def test_pictures_of_two_sizes_stop_the_export(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", [make_episode(attempt=n, length=14) for n in range(2)])
    large = [np.kron(picture, np.ones((2, 2, 1), np.uint8)) for picture in painted(1, 14, 1)]
    message = r"00000/plain\.front\.mp4 is 64x32 and .*{}/plain\.wrist\.mp4 is 128x64 pixels; run `demomill render"
    encode(run.folders()[1] / "plain.wrist.mp4", large, FPS)
    refused(run, tmp_path / "out", message.format("00001"), Choice())
    encode(run.folders()[0] / "plain.wrist.mp4", large, FPS)
    refused(run, tmp_path / "out", message.format("00000"), Choice())
    root = export(run.root, tmp_path / "out", choice=Choice(cameras=("wrist",))).root
    info = json.loads((root / "meta/info.json").read_text())
    assert info["features"]["observation.images.wrist"]["shape"] == [64, 128, 3]


def test_options_without_sense_are_refused(run: Run, tmp_path: Path) -> None:
    for fraction in (-0.1, 1.0):
        with pytest.raises(UserError, match="--test-fraction is"):
            Choice(test_fraction=fraction)
    with pytest.raises(UserError, match="looks are plain, plain; give each once"):
        Choice(looks=("plain", "plain"))
    with pytest.raises(UserError, match="no look is chosen"):
        Choice(looks=())
    with pytest.raises(UserError, match="looks are plain, night, but without pictures they are all alike"):
        Choice(cameras=(), looks=("plain", "night"))
    with pytest.raises(UserError, match="unknown camera 'top'; there is: front, "):
        Choice(cameras=("front", "top"))
    with pytest.raises(UserError, match="peg_round_8m"):
        Choice(tasks=("peg_round_8m",))
    meta = read_meta(run.folders()[0])
    seeds = {int(read_meta(folder)["seed"]) for folder in run.folders()}
    almost = 1 - 1e-9
    assert all(Choice(test_fraction=almost).split(seed) == "test" for seed in {*seeds, int(meta["seed"])})
    refused(run, tmp_path / "out", "all 7 seeds fall into the split test", Choice(test_fraction=almost))


def test_the_limits_of_the_hub_viewer_are_kept(in_two_looks: Path) -> None:
    """The largest row group is one episode, at most a file; folders hold as many files as a chunk."""
    assert FILES_PER_CHUNK < HUB_FILES_PER_FOLDER
    assert max(DATA_FILE_MB, VIDEO_FILE_MB) * 2**20 < HUB_ROW_GROUP_BYTES
    data = pq.ParquetFile(in_two_looks / "data/chunk-000/file-000.parquet").metadata
    groups = [data.row_group(n) for n in range(data.num_row_groups)]
    assert [group.num_rows for group in groups] == [row["length"] for row in episodes(in_two_looks)]
    assert max(group.total_byte_size for group in groups) < HUB_ROW_GROUP_BYTES


def test_packets_of_kept_episodes_outlive_a_deletion(tmp_path: Path) -> None:
    """Two of twenty are dropped: the others' packets are those of the first export, and of the rendering."""
    made = [make_episode(attempt=n, length=12 + n % 3) for n in range(20)]
    run = write_run(tmp_path / "run", made)
    before = {row["episode_id"]: row for row in episodes(export(run.root, tmp_path / "all").root)}
    dropped = {made[4].id, made[13].id}
    verdicts = verdict_table(run)
    verdicts.loc[verdicts.episode_id.isin(dropped), "verdict"] = "drop"
    root = export(run.root, tmp_path / "rest", verdicts).root
    after = {row["episode_id"]: row for row in episodes(root)}
    assert after.keys() == before.keys() - dropped
    for camera in CAMERAS:
        path = root / f"videos/observation.images.{camera}/chunk-000/file-000.mp4"
        found = segments(path, [row["length"] for row in after.values()], FPS)
        assert len(found) == 18
        for (episode, row), segment in zip(after.items(), found, strict=True):
            rendered = run.folder("peg_round_8mm", episode) / f"plain.{camera}.mp4"
            assert segments(rendered, [row["length"]], FPS)[0].sha256 == segment.sha256
            key = f"packets_sha256/observation.images.{camera}"
            assert row[key] == before[episode][key] == segment.sha256
