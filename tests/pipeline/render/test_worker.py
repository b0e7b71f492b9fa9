"""What a worker does with one episode, with a renderer that paints the poses it is given."""

import errno
import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from pipeline.errors import DamagedEpisode, UserError
from pipeline.render import worker
from pipeline.render.renderer import Choice
from pipeline.render.worker import BadVideo, EpisodeRenderer, Job, check_video
from pipeline.schema import FPS
from pipeline.store import Run, read_episode
from pipeline.video import encode, probe, read_frames
from tests.pipeline.factories import make_episode
from tests.pipeline.render.recordings import robot_episode

CAMERAS = ("front", "wrist")


class Painter:
    """Paints a bar whose place tells the held part's height, and counts its pictures."""

    def __init__(self, flat: bool = False) -> None:
        self.pictures, self._flat = 0, flat

    def render(self, body_poses: Mapping[str, np.ndarray], cameras: Sequence[str]) -> list[np.ndarray]:
        picture = np.full((180, 320, 3), 60, np.uint8)
        if not self._flat:
            at = 20 + int(1000 * body_poses["held"][2])
            picture[:, at : at + 60] = 220
        self.pictures += len(cameras)
        return [picture for _ in cameras]

    def close(self) -> None:
        pass


@pytest.fixture
def painter(monkeypatch: pytest.MonkeyPatch) -> Painter:
    return install(monkeypatch, Painter())


def install(monkeypatch: pytest.MonkeyPatch, painter: Painter) -> Painter:
    @contextmanager
    def opened(choice: Choice, scene: object) -> Iterator[Painter]:
        yield painter

    monkeypatch.setattr(worker, "open_renderer", opened)
    return painter


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return Run.open(tmp_path / "run", {"run_seed": 7}).commit(robot_episode())


def render(folder: Path, cameras: tuple[str, ...] = CAMERAS) -> None:
    with EpisodeRenderer(Job(Choice("mujoco"), ("plain",), cameras)) as episodes:
        episodes.render(folder)


def test_one_frame_for_each_row_and_the_first_shows_the_first(folder: Path, painter: Painter) -> None:
    render(folder)
    episode = read_episode(folder)
    first = Painter().render({"held": episode.frames["privileged.held_pose"][0]}, ("front",))[0]
    for camera in CAMERAS:
        path = folder / f"plain.{camera}.mp4"
        info = probe(path)
        assert (info.frames, info.width, info.height, info.fps) == (episode.length, 320, 180, FPS)
        assert np.abs(np.subtract(next(read_frames(path)), first, dtype=np.int16)).mean() < 3
    assert json.loads((folder / "plain.json").read_text())["content_hash"] == episode.content_hash()


def test_only_what_is_missing_or_changed_is_rendered(folder: Path, painter: Painter) -> None:
    render(folder, ("front",))
    assert painter.pictures == 12
    render(folder)
    assert painter.pictures == 24
    render(folder)
    assert painter.pictures == 24
    wrist = folder / "plain.wrist.mp4"
    wrist.write_bytes(wrist.read_bytes()[:-100])
    render(folder)
    assert painter.pictures == 36
    sidecar = json.loads((folder / "plain.json").read_text())
    sidecar["settings"]["look"]["ambient"] = [0.0, 0.0, 0.0]
    (folder / "plain.json").write_text(json.dumps(sidecar))
    render(folder)
    assert painter.pictures == 60


def test_one_camera_with_new_rows_does_not_vouch_for_the_other(tmp_path: Path, folder: Path, painter: Painter) -> None:
    render(folder)
    other = Run.open(tmp_path / "other", {"run_seed": 7}).commit(robot_episode(attempt=1))
    for path in other.iterdir():
        shutil.copy(path, folder)
    render(folder, ("front",))
    assert set(json.loads((folder / "plain.json").read_text())["videos"]) == {"front"}
    assert painter.pictures == 36


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


def test_a_picture_of_nothing_is_not_kept(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, Painter(flat=True))
    with pytest.raises(BadVideo, match="shows nothing"):
        render(folder)
    assert sorted(path.name for path in folder.iterdir()) == ["episode.json", "frames.parquet"]


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
    assert painter.pictures == 24
    settings = json.loads((folder / "plain.json").read_text())["settings"]
    assert (settings["width_px"], settings["height_px"]) == (640, 360)


def test_a_shifted_video_does_not_pass(tmp_path: Path) -> None:
    pictures = [Painter().render({"held": np.array([0.0, 0.0, 0.02 * row])}, ("front",))[0] for row in range(6)]
    path, thumbnails = tmp_path / "video.mp4", [picture[::4, ::4] for picture in pictures]
    encode(path, pictures, FPS)
    check_video(path, thumbnails)
    with pytest.raises(BadVideo, match="not the picture of row 0"):
        check_video(path, thumbnails[1:] + thumbnails[:1])
    with pytest.raises(BadVideo, match="not one frame for each of 5 rows"):
        check_video(path, thumbnails[:5])
