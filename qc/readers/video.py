"""Videos against rows: how many frames a container holds, and whose picture an episode begins with."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import av
import numpy as np

from qc.episodes import Episode, EpisodeSet, Finding
from qc.errors import QcError

_Places = Mapping[str, tuple[str, float, float]]

_WIDTH, _HEIGHT = 64, 36
_NEARER = 3.0
_DIFFERENT = 0.5
"""Least difference, in grey levels, between two pictures that are not the same."""


def check_videos(found: EpisodeSet) -> EpisodeSet:
    """Add what is wrong with the videos of episodes.

    The frames of a container are counted by its index, without decoding. A first frame is of another episode if it is
    nearer to the last frame of the one before it in the same env than to its own second one (IsaacLab issue 3961).
    """
    findings: dict[str, list[Finding]] = defaultdict(list)
    for camera, places in found.videos.items():
        mine = [e for e in found.episodes if e.id in places]
        for finding in (*_frame_counts(mine, places, camera, found.fps), *_first_frames(mine, places, camera)):
            findings[finding.episode].append(finding)
    episodes = tuple(replace(e, findings=(*e.findings, *findings[e.id])) for e in found.episodes)
    return replace(found, episodes=episodes, findings=(*found.findings, *(f for fs in findings.values() for f in fs)))


def count_frames(path: Path | str) -> int:
    """Number of frames of a video file, from its index.

    Raises:
        QcError: if it is no video.
    """
    try:
        with av.open(str(path)) as container:
            stream = container.streams.video[0]
            frames = int(stream.frames) or sum(1 for packet in container.demux(stream) if packet.size)
    except (av.FFmpegError, IndexError) as error:
        raise QcError(f"{path}: not readable as a video ({error}); render or fetch it again") from None
    return frames


def read_frames(path: str, seconds: list[float]) -> list[np.ndarray]:
    """Pictures shown at some instants, (height, width, 3) uint8; the last one for an instant beyond the end."""
    found = []
    with av.open(path) as container:
        stream = container.streams.video[0]
        rate = float(stream.average_rate or 15)
        for second in seconds:
            last = None
            if np.isfinite(second):
                container.seek(max(0, int((second - 0.5 / rate) / (stream.time_base or 1))), stream=stream)
            else:
                container.seek(int(stream.duration or 0), stream=stream)
            for frame in container.decode(stream):
                last = frame
                if frame.time is not None and frame.time >= second - 0.5 / rate:
                    break
            if last is not None:
                found.append(last.to_ndarray(format="rgb24"))
    return found


def _frame_counts(episodes: list[Episode], places: _Places, camera: str, fps: float) -> Iterator[Finding]:
    by_file: dict[str, list[Episode]] = defaultdict(list)
    for episode in episodes:
        path, start, end = places[episode.id]
        by_file[path].append(episode)
        if np.isfinite(end) and round((end - start) * fps) != episode.length:
            told = f"{camera}: {episode.length} rows, but its part of the video is {round((end - start) * fps)} frames"
            yield Finding("video_frames", told, path, episode.id, harmful=True)
    for path, mine in by_file.items():
        frames, rows = count_frames(path), sum(e.length for e in mine)
        if frames != rows:
            for episode in mine:
                told = f"{camera}: {rows} rows of {len(mine)} episodes, but the video has {frames} frames"
                yield Finding("video_frames", told, path, episode.id, harmful=True)


def _first_frames(episodes: list[Episode], places: _Places, camera: str) -> Iterator[Finding]:
    last: dict[tuple[str, int | None], np.ndarray] = {}
    for episode in sorted(episodes, key=lambda e: e.index):
        path, start, end = places[episode.id]
        rate = episode.length / (end - start) if np.isfinite(end) else 15.0
        shown = [_small(picture) for picture in read_frames(path, [start, start + 1 / rate, end - 1 / rate])]
        if len(shown) < 3:
            continue
        env = (episode.task if episode.env_index is not None else "", episode.env_index)
        before = last.get(env)
        own = float(np.abs(shown[0] - shown[1]).mean())
        if before is not None and own > max(_DIFFERENT, _NEARER * float(np.abs(shown[0] - before).mean())):
            told = f"{camera}: the first frame shows the end of the episode before"
            yield Finding("first_frame", told, path, episode.id, 0, harmful=True)
        last[env] = shown[2]


def _small(picture: np.ndarray) -> np.ndarray:
    height, width = (max(1, size // small) for size, small in zip(picture.shape, (_HEIGHT, _WIDTH), strict=False))
    return picture[::height, ::width].mean(axis=2, dtype=np.float64)
