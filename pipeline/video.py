"""H.264 videos of one episode and one camera: encode them once, join them by packets, look into them."""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import chain, islice
from pathlib import Path
from typing import Final

import av
import numpy as np
from av.container import InputContainer
from av.packet import Packet
from av.video.stream import VideoStream
from numpy.typing import NDArray

from pipeline.errors import UserError
from pipeline.store import appears_whole

ENCODER: Final = "libx264"
PIX_FMT = "yuv420p"
CRF = 20
PRESET = "veryfast"
GOP = 2
"""Every second frame is a keyframe, so that one frame is read at the price of two."""

_OPTIONS = {"crf": str(CRF), "preset": PRESET, "sc_threshold": "0"}

_TICKS = 1024
"""Time units a frame; the mp4 muxer's own choice for low frame rates."""


@dataclass(frozen=True)
class VideoInfo:
    """What a video file says of itself.

    Attributes:
        frames: number of packets, one a frame.
        codec: canonical name, e.g. ``h264``.
        extradata: the codec's parameter sets.
    """

    frames: int
    width: int
    height: int
    fps: float
    codec: str
    pix_fmt: str
    extradata: bytes

    def joins(self, other: "VideoInfo") -> bool:
        """Whether the two can be joined by packets: they differ in nothing but their length."""
        return replace(self, frames=0) == replace(other, frames=0)


@dataclass(frozen=True)
class Segment:
    """Neighbouring frames of a video, e.g. those of one episode.

    Attributes:
        frames: number of packets found, one a frame.
        begins_with_keyframe: whether it can be decoded without what comes before it.
        off_grid: first frame (of the segment) that is not shown at its multiple of 1 / fps, or None.
        sha256: of the packets' bytes, one after the other.
    """

    frames: int
    begins_with_keyframe: bool
    off_grid: int | None
    sha256: str


def encode(path: Path, frames: Iterable[NDArray[np.uint8]], fps: int) -> int:
    """Encode RGB frames; the file appears whole or not at all, and the same frames give the same bytes.

    Args:
        path: target; replaced if it exists.
        frames: arrays (height, width, 3) uint8, height and width even.
        fps: frames per second.

    Returns:
        Number of frames.

    Raises:
        ValueError: if there is no frame, or one has another shape or type.
    """
    count = 0
    shape: tuple[int, ...] = ()
    with appears_whole(path) as temporary, av.open(str(temporary), "w", format="mp4") as container:
        stream = container.add_stream(ENCODER, rate=fps, options=_OPTIONS)
        stream.pix_fmt = PIX_FMT
        stream.codec_context.gop_size = GOP
        stream.codec_context.max_b_frames = 0
        stream.codec_context.thread_count = 1
        for array in frames:
            if not count:
                shape = array.shape
                if len(shape) != 3 or shape[0] % 2 or shape[1] % 2 or shape[2] != 3:
                    raise ValueError(f"{path}: frames of shape {shape}, expected (even height, even width, 3)")
                stream.height, stream.width = shape[:2]
            if array.shape != shape or array.dtype != np.uint8:
                raise ValueError(f"{path}: frame {count} is {array.dtype} {array.shape}, expected uint8 {shape}")
            container.mux(stream.encode(av.VideoFrame.from_ndarray(array, format="rgb24")))
            count += 1
        if not count:
            raise ValueError(f"{path}: no frames to encode")
        container.mux(stream.encode())
    return count


def probe(path: Path) -> VideoInfo:
    """Read a video's properties and count its packets, without decoding.

    Raises:
        UserError: if the file is missing or is not a video.
    """
    with _opened(path) as container:
        return _describe(container.streams.video[0], frames=sum(1 for _ in _packets(container)))


def remux(sources: Sequence[Path], target: Path, fps: int) -> list[int]:
    """Join videos into one by copying their packets: nothing is decoded, every packet keeps its bytes.

    Frame k of a source that follows n frames is shown at exactly (n + k) / fps.

    Args:
        sources: videos of one camera, at least one.
        target: the joined video, index first; replaced if it exists.
        fps: frames per second of every source.

    Returns:
        Number of frames of each source.

    Raises:
        UserError: if a source is missing, off the frame grid, reordered, does not begin with a keyframe, or was
            encoded with other settings than the first.
    """
    counts: list[int] = []
    time_base = Fraction(1, fps * _TICKS)
    options = {"movflags": "faststart", "video_track_timescale": str(time_base.denominator)}
    with appears_whole(target) as temporary, av.open(str(temporary), "w", format="mp4", options=options) as joined:
        output = first = None
        for source in sources:
            with _opened(source) as container:
                info = _describe(container.streams.video[0], frames=0)
                if output is None or first is None:
                    output, first = joined.add_stream_from_template(container.streams.video[0], opaque=True), info
                    output.time_base = time_base
                if info != first:
                    raise UserError(
                        f"{source}: encoded with other settings than {sources[0]}, so the two cannot be joined; "
                        "render both with the same settings"
                    )
                start, count = sum(counts) * _TICKS, 0
                for packet in _packets(container):
                    _require_place(packet, count, fps, source)
                    packet.stream = output
                    packet.time_base = time_base
                    packet.pts = packet.dts = start + count * _TICKS
                    packet.duration = _TICKS
                    joined.mux_one(packet)
                    count += 1
                counts.append(count)
    return counts


def read_frames(path: Path) -> Iterator[NDArray[np.uint8]]:
    """Decode every frame, in order, as RGB (height, width, 3) uint8.

    Raises:
        UserError: if the file is missing or is not a video.
    """
    with _opened(path) as container:
        container.streams.video[0].codec_context.thread_count = 1
        for frame in container.decode(video=0):
            yield _rgb(frame)


def read_keyframes(path: Path, every: int = 1) -> Iterator[NDArray[np.uint8]]:
    """Decode each ``every``-th keyframe, in order, as RGB (height, width, 3) uint8; what is between is skipped unread.

    Raises:
        UserError: if the file is missing or is not a video.
    """
    with _opened(path) as container:
        stream = container.streams.video[0]
        stream.codec_context.thread_count = 1
        keyframes = (packet for packet in _packets(container) if packet.is_keyframe)
        for packet in chain(islice(keyframes, 0, None, every), [None]):
            for frame in stream.decode(packet):
                yield _rgb(frame)


def segments(path: Path, lengths: Sequence[int], fps: int) -> list[Segment]:
    """Describe neighbouring segments of a video, without decoding.

    Args:
        lengths: frames of each segment; what the video holds beyond their sum becomes one more segment.
        fps: frames per second that the video should have.

    Raises:
        UserError: if the file is missing or is not a video.
    """
    found = []
    with _opened(path) as container:
        packets, start = enumerate(_packets(container)), 0
        for length in (*lengths, None):
            members = list(islice(packets, length))
            if length is None and not members:
                break
            digest = hashlib.sha256()
            for _, packet in members:
                digest.update(bytes(packet))
            off_grid = (n for n, packet in members if packet.pts != n / (packet.time_base * fps))
            off = next(off_grid, None)
            found.append(
                Segment(
                    frames=len(members),
                    begins_with_keyframe=bool(members) and members[0][1].is_keyframe,
                    off_grid=None if off is None else off - start,
                    sha256=digest.hexdigest(),
                )
            )
            start += len(members)
    return found


def read_segment_keyframes(path: Path, lengths: Sequence[int], every: int) -> Iterator[tuple[int, NDArray[np.uint8]]]:
    """Decode each ``every``-th keyframe of each segment, as :func:`read_keyframes` does of a whole video.

    Args:
        lengths: frames of each segment.

    Yields:
        Number of the segment and a picture, RGB (height, width, 3) uint8.

    Raises:
        UserError: if the file is missing or is not a video.
    """
    with _opened(path) as container:
        stream = container.streams.video[0]
        stream.codec_context.thread_count = 1
        packets = _packets(container)
        for number, length in enumerate(lengths):
            keyframes = (packet for packet in islice(packets, length) if packet.is_keyframe)
            for position, packet in enumerate(keyframes):
                if position % every == 0:
                    for frame in stream.decode(packet):
                        yield number, _rgb(frame)
            for frame in stream.decode(None):
                yield number, _rgb(frame)
            stream.codec_context.flush_buffers()


def first_frame(path: Path) -> NDArray[np.uint8]:
    """Decode the first frame as RGB (height, width, 3) uint8.

    Raises:
        UserError: if the file is missing, is not a video, or is empty.
    """
    for frame in read_frames(path):
        return frame
    raise UserError(f"{path}: this video is empty; render the episode again")


def _rgb(frame: av.VideoFrame) -> NDArray[np.uint8]:
    return np.asarray(frame.to_ndarray(format="rgb24"), dtype=np.uint8)


def _describe(stream: VideoStream, frames: int) -> VideoInfo:
    return VideoInfo(
        frames=frames,
        width=stream.width,
        height=stream.height,
        fps=float(stream.average_rate or 0),
        codec=stream.codec.canonical_name,
        pix_fmt=str(stream.pix_fmt),
        extradata=bytes(stream.codec_context.extradata or b""),
    )


def _packets(container: InputContainer) -> Iterator[Packet]:
    return (packet for packet in container.demux(video=0) if packet.dts is not None)


def _require_place(packet: Packet, index: int, fps: int, source: Path) -> None:
    if not packet.pts == packet.dts == index / (packet.time_base * fps):
        raise UserError(f"{source}: packet {index} is not shown at {index}/{fps} s; render the episode again")
    if index == 0 and not packet.is_keyframe:
        raise UserError(f"{source}: does not begin with a keyframe; render the episode again")


@contextmanager
def _opened(path: Path) -> Iterator[InputContainer]:
    try:
        container = av.open(str(path))
    except FileNotFoundError:
        raise UserError(f"{path}: no such video; make it with `demomill render`") from None
    except (av.error.InvalidDataError, av.error.EOFError) as error:
        raise UserError(f"{path}: not readable as a video ({error.strerror}); render the episode again") from None
    with container:
        if not container.streams.video or container.streams.video[0].codec_context is None:
            raise UserError(f"{path}: holds no video; render the episode again")
        yield container
