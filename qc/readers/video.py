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
_UNREADABLE = "video_unreadable"
_AGAIN = "render it or fetch it again, or record these episodes anew"


def check_videos(found: EpisodeSet) -> EpisodeSet:
    """Add what is wrong with the videos of episodes.

    The frames of a container are counted by its index, without decoding. A first frame is of another episode if it is
    nearer to the last frame of the one before it in the same env than to its own second one (IsaacLab issue 3961).
    """
    findings: dict[str, list[Finding]] = defaultdict(list)
    for camera, places in found.videos.items():
        mine = [e for e in found.episodes if e.id in places]
        counted = list(_frame_counts(mine, places, camera, found.fps))
        broken = {finding.file for finding in counted if finding.kind == _UNREADABLE}
        whole = [e for e in mine if places[e.id][0] not in broken]
        for finding in (*counted, *_first_frames(whole, places, camera)):
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
        raise QcError(f"{path}: {_not_readable(error)}") from None
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
            told += f"; {_AGAIN}"
            yield Finding("video_frames", told, path, episode.id, harmful=True)
    for path, mine in by_file.items():
        for episode, kind, told in _check_file(path, mine, places, fps):
            yield Finding(kind, f"{camera}: {told}", path, episode.id, harmful=True)


def _check_file(path: str, episodes: list[Episode], places: _Places, fps: float) -> Iterator[tuple[Episode, str, str]]:
    """What is wrong with a file, for each of the episodes in it: kind of finding, and words."""
    rows = sum(e.length for e in episodes)
    try:
        frames = count_frames(path)
    except QcError as error:
        yield from ((e, _UNREADABLE, str(error).removeprefix(f"{path}: ")) for e in episodes)
        return
    if frames != rows:
        first, last = episodes[0].id, episodes[-1].id
        told = f"{rows} rows of {len(episodes)} episodes, but the video has {frames} frames"
        if len(episodes) > 1:
            told += f": nothing tells in which of {first} to {last}, and those after it show pictures of other rows"
        yield from ((e, "video_frames", f"{told}; {_AGAIN}") for e in episodes)
        return
    before = 0
    for episode in sorted(episodes, key=lambda e: places[e.id][1]):
        start = round(places[episode.id][1] * fps)
        if abs(start - before) > 1:
            told = f"its part of the video begins at frame {start}, but that of the episode before ends at {before}"
            yield episode, "video_frames", f"{told}; {_AGAIN}"
        before += episode.length


def _first_frames(episodes: list[Episode], places: _Places, camera: str) -> Iterator[Finding]:
    last: dict[tuple[str, int | None], np.ndarray] = {}
    for episode in sorted(episodes, key=lambda e: e.index):
        path, start, end = places[episode.id]
        rate = episode.length / (end - start) if np.isfinite(end) else 15.0
        try:
            shown = [_small(picture) for picture in read_frames(path, [start, start + 1 / rate, end - 1 / rate])]
        except av.FFmpegError as error:
            yield Finding(_UNREADABLE, f"{camera}: {_not_readable(error)}", path, episode.id, harmful=True)
            continue
        if len(shown) < 3:
            continue
        env = (episode.task if episode.env_index is not None else "", episode.env_index)
        before = last.get(env)
        own = float(np.abs(shown[0] - shown[1]).mean())
        if before is not None and own > max(_DIFFERENT, _NEARER * float(np.abs(shown[0] - before).mean())):
            told = f"{camera}: the first frame shows the end of the episode before"
            yield Finding("first_frame", told, path, episode.id, 0, harmful=True)
        last[env] = shown[2]


def _not_readable(error: Exception) -> str:
    return f"not readable as a video ({getattr(error, 'strerror', error)}); {_AGAIN}"


def _small(picture: np.ndarray) -> np.ndarray:
    height, width = (max(1, size // small) for size, small in zip(picture.shape, (_HEIGHT, _WIDTH), strict=False))
    return picture[::height, ::width].mean(axis=2, dtype=np.float64)
