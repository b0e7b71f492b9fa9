"""Videos against rows: counted in the container, and whose picture an episode begins with."""

import numpy as np
import pytest

from pipeline.video import encode
from qc.episodes import EpisodeSet
from qc.errors import QcError
from qc.readers.source import read_source
from qc.readers.video import check_videos, count_frames
from tests.qc.factories import TASK, make_task, write_run


def pictures(shades):
    """One picture for each shade of grey."""
    return [np.full((72, 128, 3), shade, np.uint8) for shade in shades]


def ramp(episode, number):
    """Darker at the start, brighter at the end, as a moving arm changes the picture; each episode begins alike."""
    return list(np.linspace(20, 200 + 5 * number, episode.length).astype(np.uint8))


def films(root, episodes, shades):
    for episode in episodes:
        encode(root / "episodes" / TASK / episode.id / "plain.front.mp4", pictures(shades[episode.id]), 15)
    return root


@pytest.fixture
def run(tmp_path):
    episodes = make_task(4)
    return write_run(tmp_path / "run", episodes), episodes


def test_a_video_with_frames_lost_is_found_with_both_counts(run):  # lerobot 4462
    root, episodes = run
    shades = {e.id: ramp(e, i) for i, e in enumerate(episodes)}
    shades[episodes[2].id] = shades[episodes[2].id][:-2]
    found = read_source(films(root, episodes, shades), videos=True)
    (finding,) = found.findings
    assert (finding.kind, finding.episode, finding.harmful) == ("video_frames", episodes[2].id, True)
    rows = episodes[2].length
    assert f"{rows} rows of 1 episodes, but the video has {rows - 2} frames" in finding.told
    assert [e.sound for e in found.episodes] == [True, True, False, True]
    assert read_source(root).findings == ()


def test_a_first_frame_of_the_episode_before_is_found(run):  # IsaacLab 3961
    root, episodes = run
    shades = {e.id: ramp(e, i) for i, e in enumerate(episodes)}
    shades[episodes[1].id][0] = shades[episodes[0].id][-1]
    (finding,) = read_source(films(root, episodes, shades), videos=True).findings
    assert (finding.kind, finding.episode, finding.frame) == ("first_frame", episodes[1].id, 0)


def test_what_is_no_video_is_a_clear_error(tmp_path):
    (tmp_path / "a.mp4").write_bytes(b"nothing")
    with pytest.raises(QcError, match="not readable as a video"):
        count_frames(tmp_path / "a.mp4")


def test_without_videos_there_is_nothing_to_say():
    found = EpisodeSet(tuple(make_task(2)))
    assert check_videos(found) == found
