"""What a worker does with one episode, with a renderer that paints the poses it is given."""

import errno
import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from pipeline.errors import DamagedEpisode, UserError
from pipeline.render import worker
from pipeline.render.checks import BadVideo
from pipeline.render.renderer import Choice
from pipeline.render.worker import EpisodeRenderer, Job
from pipeline.schema import FPS
from pipeline.store import Run, read_episode
from pipeline.video import probe, read_frames
from tests.pipeline.factories import make_episode
from tests.pipeline.render.painter import Painter, install
from tests.pipeline.render.recordings import poses_of, robot_episode

CAMERAS = ("front", "wrist")
PICTURES = 12 + 4
"""Of a video: one a row, and four to check it."""


@pytest.fixture
def painter(monkeypatch: pytest.MonkeyPatch) -> Painter:
    return install(monkeypatch, Painter())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return Run.open(tmp_path / "run", {"run_seed": 7}).commit(robot_episode())


def render(folder: Path, cameras: tuple[str, ...] = CAMERAS) -> None:
    with EpisodeRenderer(Job(Choice("mujoco"), ("plain",), cameras)) as episodes:
        episodes.render(folder)


def test_one_frame_for_each_row_and_the_first_shows_the_first(folder: Path, painter: Painter) -> None:
    render(folder)
    episode = read_episode(folder)
    first = Painter().paint(poses_of(episode, 0))
    for camera in CAMERAS:
        path = folder / f"plain.{camera}.mp4"
        info = probe(path)
        assert (info.frames, info.width, info.height, info.fps) == (episode.length, 320, 180, FPS)
        assert np.abs(np.subtract(next(read_frames(path)), first, dtype=np.int16)).mean() < 3
    assert json.loads((folder / "plain.json").read_text())["content_hash"] == episode.content_hash()


def test_only_what_is_missing_or_changed_is_rendered(folder: Path, painter: Painter) -> None:
    render(folder, ("front",))
    assert painter.pictures == PICTURES
    render(folder)
    assert painter.pictures == 2 * PICTURES
    render(folder)
    assert painter.pictures == 2 * PICTURES
    wrist = folder / "plain.wrist.mp4"
    wrist.write_bytes(wrist.read_bytes()[:-100])
    render(folder)
    assert painter.pictures == 3 * PICTURES
    sidecar = json.loads((folder / "plain.json").read_text())
    sidecar["settings"]["look"]["ambient"] = [0.0, 0.0, 0.0]
    (folder / "plain.json").write_text(json.dumps(sidecar))
    render(folder)
    assert painter.pictures == 5 * PICTURES


def test_one_camera_with_new_rows_does_not_vouch_for_the_other(tmp_path: Path, folder: Path, painter: Painter) -> None:
    render(folder)
    other = Run.open(tmp_path / "other", {"run_seed": 7}).commit(robot_episode(attempt=1))
    for path in other.iterdir():
        shutil.copy(path, folder)
    render(folder, ("front",))
    assert set(json.loads((folder / "plain.json").read_text())["videos"]) == {"front"}
    assert painter.pictures == 3 * PICTURES


def test_leftovers_of_a_killed_render_are_cleared(folder: Path, painter: Painter) -> None:
    (folder / ".plain.front.mp4.4242").write_bytes(b"half a video")
    render(folder)
    assert sorted(path.name for path in folder.glob(".*")) == []


def test_damaged_and_foreign_episodes_are_refused(tmp_path: Path, folder: Path, painter: Painter) -> None:
    foreign = Run.open(tmp_path / "other", {"run_seed": 7}).commit(make_episode())
    with pytest.raises(BadVideo, match="link0"):
        render(foreign)
    frames = folder / "frames.parquet"
    frames.write_bytes(frames.read_bytes()[:-50])
    with pytest.raises(DamagedEpisode):
        render(folder)
    assert not list(tmp_path.rglob("*.mp4"))


def test_a_full_disk_is_named_and_leaves_no_half_video(
    folder: Path, painter: Painter, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(path: Path, frames: object, fps: int) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(worker, "encode", full)
    with pytest.raises(UserError, match="no space left") as caught:
        render(folder)
    assert not isinstance(caught.value, BadVideo | DamagedEpisode)
    assert sorted(path.name for path in folder.iterdir()) == ["episode.json", "frames.parquet"]


def test_each_size_is_rendered_anew(folder: Path, painter: Painter) -> None:
    render(folder, ("front",))
    job = Job(Choice("mujoco"), ("plain",), ("front",), (640, 360))
    assert Job.from_json(job.to_json()) == job
    with EpisodeRenderer(job) as episodes:
        episodes.render(folder)
        episodes.render(folder)
    assert painter.pictures == 2 * PICTURES
    settings = json.loads((folder / "plain.json").read_text())["settings"]
    assert (settings["width_px"], settings["height_px"]) == (640, 360)
