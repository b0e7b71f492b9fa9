"""Videos of LeRobot datasets against their rows, and those that are not there."""

import numpy as np
import pandas as pd
import pytest

from qc.readers.source import read_source
from tests.qc.datasets import edit_info
from tests.qc.factories import make_task, take
from tests.qc.readers.films import EPISODES, KEY, ramp, write_filmed

VERSIONS = pytest.mark.parametrize("version", ["v3.0", "v2.1"])
SHORT = [take(e, np.arange(0, e.length, 4)) for e in make_task(3)]


def filmed(root, version, episodes=SHORT, change=lambda shades: None):
    shades = [ramp(e, i) for i, e in enumerate(episodes)]
    change(shades)
    return write_filmed(root / "d", episodes, shades, version)


def kinds(found):
    return [(f.kind, f.episode, f.harmful) for f in found.findings if f.kind not in ("fps", "timestamps")]


@VERSIONS
def test_whole_videos_are_sound(tmp_path, version):
    assert kinds(read_source(filmed(tmp_path, version), videos=True)) == []


@VERSIONS
def test_a_declared_video_that_is_absent_is_found_if_videos_are_looked_at(tmp_path, version):
    root = filmed(tmp_path, version)
    film = min(root.rglob("*.mp4"))
    film.unlink()
    found = read_source(root, videos=True)
    hit = [f"episode_{i:06d}" for i in range(3 if version == "v3.0" else 1)]
    assert kinds(found) == [("video_missing", id_, True) for id_ in hit]
    assert all(f.file == film.relative_to(root).as_posix() and "fetch videos/" in f.told for f in found.findings)
    assert [e.id for e in found.episodes if not e.sound] == hit
    assert kinds(read_source(root)) == []


@VERSIONS
def test_lost_frames_are_told_with_the_episodes_that_share_the_file(tmp_path, version):
    found = read_source(filmed(tmp_path, version, change=lambda shades: shades[1].pop()), videos=True)
    rows = sum(e.length for e in (SHORT if version == "v3.0" else SHORT[1:2]))
    assert all(f"{rows} rows" in f.told and f"{rows - 1} frames" in f.told for f in found.findings)
    assert all("render it or fetch it again" in f.told for f in found.findings)
    if version == "v3.0":
        assert kinds(found) == [("video_frames", e.id, True) for e in found.episodes]
        assert "nothing tells in which of episode_000000 to episode_000002" in found.findings[0].told
    else:
        assert kinds(found) == [("video_frames", "episode_000001", True)]


@VERSIONS
def test_what_is_no_video_is_found_with_its_episodes(tmp_path, version):
    root = filmed(tmp_path, version)
    max(root.rglob("*.mp4")).write_bytes(b"nothing")
    found = read_source(root, videos=True)
    hit = [0, 1, 2] if version == "v3.0" else [2]
    assert kinds(found) == [("video_unreadable", f"episode_{i:06d}", True) for i in hit]


@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        (lambda root: edit_info(root, video_path=None), "video_path in meta/info.json is missing"),
        (lambda root: edit_info(root, video_path="videos/{foo}.mp4"), r"'videos/{foo}.mp4'"),
        (lambda root: _episodes(root, lambda t: t.drop(columns=f"videos/{KEY}/file_index")), "file_index is missing"),
        (lambda root: _episodes(root, lambda t: t.assign(**{f"videos/{KEY}/to_timestamp": None})), "None"),
    ],
)
def test_places_that_nothing_tells_are_found_if_videos_are_looked_at(tmp_path, spoil, why):
    root = filmed(tmp_path, "v3.0")
    spoil(root)
    assert kinds(read_source(root)) == []
    found = read_source(root, videos=True)
    assert kinds(found) == [("video_missing", e.id, True) for e in found.episodes]
    assert why in found.findings[-1].told


def test_a_part_of_a_video_that_begins_in_the_one_before_is_found(tmp_path):
    root = filmed(tmp_path, "v3.0")

    def earlier(table):
        seconds = np.array([0.0, 0.0, 0.4])
        names = [f"videos/{KEY}/{edge}_timestamp" for edge in ("from", "to")]
        return table.assign(**{name: table[name] - seconds for name in names})

    _episodes(root, earlier)
    found = read_source(root, videos=True)
    assert kinds(found) == [("video_frames", "episode_000002", True)]
    assert "begins at frame" in found.findings[-1].told


@VERSIONS
@pytest.mark.parametrize(("before", "leaks"), [(0, True), (1, False)])
def test_the_episode_before_is_that_of_the_same_env(tmp_path, version, before, leaks):  # IsaacLab 3961
    """Two envs take turns, and the first picture of episode 2 is the last of episode 0, its own env's, or of 1."""

    def leak(shades):
        shades[1] = np.linspace(20, 120, len(shades[1])).astype(np.uint8).tolist()
        shades[2][0] = shades[before][-1]

    root = filmed(tmp_path, version, change=leak)
    _tell_envs(root, version, [0, 1, 0])
    found = read_source(root, videos=True)
    assert [e.env_index for e in found.episodes] == [0, 1, 0]
    assert kinds(found) == ([("first_frame", "episode_000002", True)] if leaks else [])


def _tell_envs(root, version, envs):
    if version == "v3.0":
        _episodes(root, lambda table: table.assign(env_index=envs))
        return
    path = root / "meta" / "episodes.jsonl"
    pd.read_json(path, lines=True).assign(env_index=envs).to_json(path, orient="records", lines=True)


def _episodes(root, change):
    path = root / EPISODES
    change(pd.read_parquet(path)).to_parquet(path)
