"""Videos: what is encoded comes back, and joining changes no packet."""

from pathlib import Path

import av
import numpy as np
import pytest

from pipeline.errors import UserError
from pipeline.video import encode, first_frame, probe, read_frames, read_keyframes, remux
from tests.pipeline.factories import painted, read_paint

FPS = 15


def packets(path: Path) -> list[tuple[bytes, bool, float, float]]:
    with av.open(str(path)) as container:
        found = [
            (bytes(p), p.is_keyframe, float(p.pts * p.time_base), float(p.dts * p.time_base))
            for p in container.demux(video=0)
            if p.dts is not None and p.pts is not None and p.time_base is not None
        ]
    return found


def encode_otherwise(path: Path, *, rate: int = FPS, gop: int = 2, b_frames: int = 0, frames: int = 12) -> Path:
    with av.open(str(path), "w") as container:
        stream = container.add_stream("libx264", rate=rate)
        stream.height, stream.width, stream.pix_fmt = 32, 64, "yuv420p"
        stream.codec_context.gop_size = gop
        stream.codec_context.max_b_frames = b_frames
        for image in painted(0, frames):
            container.mux(stream.encode(av.VideoFrame.from_ndarray(image, format="rgb24")))
        container.mux(stream.encode())
    return path


@pytest.fixture
def clips(tmp_path: Path) -> list[Path]:
    paths = [tmp_path / f"{episode}.mp4" for episode in range(3)]
    for episode, path in enumerate(paths):
        encode(path, painted(episode, 9 + episode), FPS)
    return paths


def test_encode_writes_what_it_says(tmp_path: Path) -> None:
    path = tmp_path / "a.mp4"
    assert encode(path, painted(3, 11), FPS) == 11
    info = probe(path)
    assert (info.frames, info.width, info.height, info.fps) == (11, 64, 32, FPS)
    assert (info.codec, info.pix_fmt) == ("h264", "yuv420p")
    found = packets(path)
    assert [keyframe for _, keyframe, _, _ in found] == [k % 2 == 0 for k in range(11)]
    assert [pts for _, _, pts, _ in found] == [dts for _, _, _, dts in found] == [k / FPS for k in range(11)]


def test_frames_come_back_in_order(tmp_path: Path) -> None:
    path = tmp_path / "a.mp4"
    encode(path, painted(5, 13, camera=1), FPS)
    assert [read_paint(image) for image in read_frames(path)] == [(5, k, 1) for k in range(13)]
    assert read_paint(first_frame(path)) == (5, 0, 1)
    assert [read_paint(image)[1] for image in read_keyframes(path, every=2)] == [0, 4, 8, 12]


def test_same_frames_give_the_same_bytes(tmp_path: Path) -> None:
    for name in ("a.mp4", "b.mp4"):
        encode(tmp_path / name, painted(1, 20), FPS)
    assert (tmp_path / "a.mp4").read_bytes() == (tmp_path / "b.mp4").read_bytes()


def test_a_failed_encode_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "a.mp4"
    encode(path, painted(1, 4), FPS)
    before = path.read_bytes()

    def broken():
        yield from painted(2, 3)
        raise RuntimeError("renderer died")

    with pytest.raises(RuntimeError, match="renderer died"):
        encode(path, broken(), FPS)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("frames", "message"),
    [
        ([], "no frames"),
        ([np.zeros((31, 64, 3), np.uint8)], r"\(31, 64, 3\)"),
        ([np.zeros((32, 64, 3), np.float32)], "float32"),
        ([np.zeros((32, 64, 3), np.uint8), np.zeros((32, 32, 3), np.uint8)], "frame 1"),
    ],
)
def test_encode_refuses(tmp_path: Path, frames: list[np.ndarray], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        encode(tmp_path / "a.mp4", frames, FPS)
    assert not list(tmp_path.iterdir())


def test_remux_copies_packets_onto_one_time_line(tmp_path: Path, clips: list[Path]) -> None:
    joined = tmp_path / "joined.mp4"
    assert remux(clips, joined, FPS) == [9, 10, 11]
    parts, whole = [packet for clip in clips for packet in packets(clip)], packets(joined)
    assert [packet[:2] for packet in whole] == [packet[:2] for packet in parts]
    assert [packet[2] for packet in whole] == [k / FPS for k in range(30)]
    assert [read_paint(image)[:2] for image in read_frames(joined)] == [
        (episode, k) for episode in range(3) for k in range(9 + episode)
    ]
    assert probe(joined).joins(probe(clips[0]))


def test_remux_refuses_other_settings(tmp_path: Path, clips: list[Path]) -> None:
    small = tmp_path / "small.mp4"
    encode(small, (image[:16] for image in painted(0, 5)), FPS)
    with pytest.raises(UserError, match=r"small\.mp4: encoded with other settings than .*0\.mp4"):
        remux([*clips, small], tmp_path / "joined.mp4", FPS)
    assert not list(tmp_path.glob("*joined*"))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rate": 30}, "packet 1 is not shown at 1/15 s"),
        ({"b_frames": 2, "gop": 12}, "packet . is not shown at"),
    ],
)
def test_remux_refuses_what_is_off_the_grid(tmp_path: Path, options: dict[str, int], message: str) -> None:
    source = encode_otherwise(tmp_path / "odd.mp4", **options)
    with pytest.raises(UserError, match=message):
        remux([source], tmp_path / "joined.mp4", FPS)


def test_remux_refuses_a_source_that_does_not_begin_with_a_keyframe(tmp_path: Path, clips: list[Path]) -> None:
    headless = tmp_path / "headless.mp4"
    with av.open(str(clips[0])) as source, av.open(str(headless), "w") as target:
        stream = target.add_stream_from_template(source.streams.video[0], opaque=True)
        for packet in list(source.demux(video=0))[1:-1]:
            assert packet.pts is not None
            assert packet.dts is not None
            packet.stream, packet.pts, packet.dts = stream, packet.pts - 1024, packet.dts - 1024
            target.mux_one(packet)
    with pytest.raises(UserError, match="keyframe"):
        remux([headless], tmp_path / "joined.mp4", FPS)


@pytest.mark.parametrize("read", [probe, first_frame, lambda path: remux([path], path.with_name("joined.mp4"), FPS)])
def test_unreadable_files_are_named(tmp_path: Path, read) -> None:
    with pytest.raises(UserError, match=r"gone\.mp4: no such video"):
        read(tmp_path / "gone.mp4")
    torn = tmp_path / "torn.mp4"
    encode(torn, painted(0, 8), FPS)
    torn.write_bytes(torn.read_bytes()[:200])
    with pytest.raises(UserError, match=r"torn\.mp4: not readable as a video"):
        read(torn)
