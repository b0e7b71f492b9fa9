"""Pictures that no training set may hold: each is refused, with its episode named, and none is kept."""

from pathlib import Path

import numpy as np
import pytest

from pipeline.render.checks import BadVideo, check_video, thumbnail
from pipeline.render.look import Sensor
from pipeline.render.renderer import Choice
from pipeline.render.worker import EpisodeRenderer, Job, expose
from pipeline.schema import FPS
from pipeline.store import Run
from pipeline.video import encode
from tests.pipeline.render.painter import Painter, Poses, install
from tests.pipeline.render.recordings import poses_of, robot_episode

FIRST, SECOND = robot_episode(attempt=0), robot_episode(attempt=1)


class Blank(Painter):
    def paint(self, body_poses: Poses) -> np.ndarray:
        return np.full((180, 320, 3), 60, np.uint8)


class Dark(Painter):
    """Black but for a third."""

    def paint(self, body_poses: Poses) -> np.ndarray:
        picture = super().paint(body_poses)
        picture[:120] = 0
        return picture


class Glaring(Painter):
    def paint(self, body_poses: Poses) -> np.ndarray:
        picture = super().paint(body_poses)
        picture[:120, :, 0] = 255
        return picture


class LooksPast(Painter):
    """Sees the robot, but not a part."""

    def __init__(self, part: str) -> None:
        super().__init__()
        self._part = part

    def paint(self, body_poses: Poses) -> np.ndarray:
        return super().paint({**body_poses, self._part: np.full(7, -1.0)})


class Lags(Painter):
    """Shows the poses of the call before: in an episode's first frame the last of the episode before."""

    _before: Poses | None = None

    def paint(self, body_poses: Poses) -> np.ndarray:
        before, self._before = self._before or body_poses, dict(body_poses)
        return super().paint(before)


class Stuck(Painter):
    """Shows for ever what it showed first."""

    _first: Poses | None = None

    def paint(self, body_poses: Poses) -> np.ndarray:
        self._first = self._first or dict(body_poses)
        return super().paint(self._first)


class ShowsAnother(Painter):
    """Shows the first episode's rows in the second's video."""

    def paint(self, body_poses: Poses) -> np.ndarray:
        row = self.pictures - 1 - FIRST.length - 4
        return super().paint(poses_of(FIRST, row) if 0 <= row < FIRST.length else body_poses)


@pytest.mark.parametrize(
    ("painter", "message"),
    [
        (Blank(), "frame 0 shows nothing"),
        (Dark(), "frame 0 is clipped: most of it is black"),
        (Glaring(), "frame 0 is clipped: most of it is burnt out"),
        (LooksPast("held"), "frame 0 does not show the held part"),
        (LooksPast("fixed"), "frame 0 does not show the fixed part"),
    ],
)
def test_a_picture_that_shows_nothing_or_no_part_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, painter: Painter, message: str
) -> None:
    install(monkeypatch, painter)
    folder = Run.open(tmp_path / "run", {"run_seed": 7}).commit(FIRST)
    with (
        EpisodeRenderer(Job(Choice("mujoco"), ("plain",), ("front",))) as episodes,
        pytest.raises(BadVideo, match=rf"{FIRST.id}/plain\.front\.mp4: {message}"),
    ):
        episodes.render(folder)
    assert sorted(path.name for path in folder.iterdir()) == ["episode.json", "frames.parquet"]


@pytest.mark.parametrize(
    ("painter", "spoiled", "message"),
    [
        (Lags(), FIRST, r"frame \d+ is not of this episode"),
        (Stuck(), FIRST, "frame 0 does not show the held part"),
        (ShowsAnother(), SECOND, r"frame \d+ is not of this episode"),
    ],
)
def test_pictures_of_another_moment_or_episode_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, painter: Painter, spoiled: object, message: str
) -> None:
    install(monkeypatch, painter)
    run = Run.open(tmp_path / "run", {"run_seed": 7})
    with EpisodeRenderer(Job(Choice("mujoco"), ("plain",), ("front",))) as episodes:
        for episode in (FIRST, SECOND):
            folder = run.commit(episode)
            if episode is not spoiled:
                episodes.render(folder)
                assert (folder / "plain.front.mp4").exists()
                continue
            with pytest.raises(BadVideo, match=rf"{episode.id}/plain\.front\.mp4: {message}"):
                episodes.render(folder)
            assert not list(folder.glob("*plain*"))
            return


def test_black_is_told_through_the_sensors_noise(tmp_path: Path) -> None:
    rng, sensor = np.random.default_rng(3), Sensor(1.2, 3.0, 5)
    pictures = [expose(Dark().paint(poses_of(FIRST, row)), sensor, rng) for row in range(3)]
    path = tmp_path / "video.mp4"
    encode(path, pictures, FPS)
    with pytest.raises(BadVideo, match="frame 0 is clipped: most of it is black"):
        check_video(path, [thumbnail(picture) for picture in pictures])


def test_a_shifted_video_does_not_pass(tmp_path: Path) -> None:
    pictures = [Painter().paint(poses_of(FIRST, row)) for row in range(6)]
    path, small = tmp_path / "video.mp4", [thumbnail(picture) for picture in pictures]
    encode(path, pictures, FPS)
    check_video(path, small)
    with pytest.raises(BadVideo, match="not the picture of row 0"):
        check_video(path, small[::-1])
    with pytest.raises(BadVideo, match="not one frame for each of 5 rows"):
        check_video(path, small[:5])
