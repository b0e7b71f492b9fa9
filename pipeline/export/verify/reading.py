"""The dataset through LeRobot's own reader: every row and picture in windows, then alone, filtered and streamed."""

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipeline.export.verify.findings import Finding
from pipeline.export.verify.tree import Columns, Member, Tree
from pipeline.video import read_frames

_NAME = "local/verify"

WINDOW = 96
"""Rows read at once: a window costs LeRobot a good deal, its length little."""

_STREAM_TOLERANCE = 2.0
"""Mean difference, in levels of 255, that two decoders' colour conversions may have."""

_CHOSEN = 3
_STREAMED_PICTURES = 24

Pictures = Iterator[NDArray[np.uint8]]
VideoOf = Callable[[Member, str], Path]


class Reader:
    """Reads a dataset with LeRobot.

    Args:
        tree: the dataset, whose files are known to be whole.
        video_of: an episode's own video of a camera, to compare with; None takes the joined videos, frame by frame in
            their order, which shows that LeRobot finds each row its picture but not that the picture is right.
    """

    def __init__(self, tree: Tree, video_of: VideoOf | None) -> None:
        self._tree = tree
        self._video_of = video_of
        self._columns = {member.number: columns for member, columns in tree.episodes()}
        self._kept: dict[tuple[int, str], NDArray[np.uint8]] = {}

    def check_windows(self) -> Iterator[Finding]:
        """Every column and every picture, by delta timestamps that reach beyond the end of each episode."""
        tree = self._tree
        window = [k / tree.fps for k in range(WINDOW)]
        dataset = self._load(delta_timestamps=dict.fromkeys((*tree.recorded, *tree.cameras), window))
        for member, pictures in self._episodes_with_pictures():
            columns, start = self._columns[member.number], int(member.row["dataset_from_index"])
            for first in range(0, member.length, WINDOW):
                item = dataset[start + first]
                rows = np.minimum(np.arange(first, first + WINDOW), member.length - 1)
                real = min(WINDOW, member.length - first)
                padded = np.arange(WINDOW) >= real
                for key in tree.recorded:
                    found = item[key].numpy().reshape(WINDOW, -1)
                    wanted = columns[key][rows].reshape(WINDOW, -1)
                    bad = (found != wanted).any(axis=1) | (item[f"{key}_is_pad"].numpy() != padded)
                    yield from self._bad_row(member, key, bad, first, self._tree.data_file(member))
                for key in tree.cameras:
                    own = list(islice(pictures[key], real))
                    if len(own) < real:
                        problem = f"{key}: its own video ends after {first + len(own)} of {member.length} frames"
                        yield Finding(tree.video_file(member, key), member.name, problem)
                        continue
                    bad = (item[key].numpy()[:real].transpose(0, 2, 3, 1) != np.stack(own)).any(axis=(1, 2, 3))
                    yield from self._bad_row(member, key, bad, first, tree.video_file(member, key))
                    if first == 0 and member.number < _STREAMED_PICTURES:
                        self._kept[member.number, key] = own[0]

    def check_rows_alone(self) -> Iterator[Finding]:
        """First and last row of each episode, without windows, and the instruction."""
        dataset = self._load()
        if (dataset.num_episodes, dataset.num_frames) != (len(self._tree.members), self._total()):
            problem = f"LeRobot counts {dataset.num_episodes} episodes and {dataset.num_frames} frames"
            yield Finding("meta/info.json", "", problem)
        for member in self._tree.members:
            for frame in (0, member.length - 1):
                yield from self._same_row(dataset[member.row["dataset_from_index"] + frame], member, frame)

    def check_choice(self) -> Iterator[Finding]:
        """A choice of episodes, as ``episodes=[...]``: first, middle and last."""
        members = self._tree.members
        places = sorted({0, len(members) // 2, len(members) - 1})[:_CHOSEN]
        dataset = self._load(episodes=places)
        if len(dataset) != sum(members[place].length for place in places):
            yield Finding("meta/episodes", f"episodes={places}", f"LeRobot finds {len(dataset)} rows in them")
            return
        start = 0
        for place in places:
            for frame in (0, members[place].length - 1):
                yield from self._same_row(dataset[start + frame], members[place], frame)
            start += members[place].length

    def check_stream(self) -> Iterator[Finding]:
        """Every row, streamed; the first picture of some episodes."""
        from lerobot.datasets.streaming_dataset import StreamingLeRobotDataset

        missing = set(range(self._total()))
        dataset = StreamingLeRobotDataset(_NAME, root=self._tree.root, shuffle=False, buffer_size=1, return_uint8=True)
        for item in dataset:
            member, frame = self._tree.members[int(item["episode_index"])], int(item["frame_index"])
            missing.discard(int(item["index"]))
            yield from self._same_row(item, member, frame)
            for key in self._tree.cameras if frame == 0 else ():
                own = self._kept.get((member.number, key))
                picture = item[key].numpy().transpose(1, 2, 0)
                if own is not None and np.abs(picture.astype(float) - own).mean() > _STREAM_TOLERANCE:
                    yield Finding(
                        self._tree.video_file(member, key), f"{member.name}, row 0", "streams another picture"
                    )
        if missing:
            row = min(missing)
            yield Finding("data", f"row {row}", f"is not streamed; {len(missing)} rows are missing")

    def why_not_streamed(self) -> str:
        """Why the stream cannot be read here; empty if it can."""
        for key in self._tree.cameras:
            if len(list(self._tree.by_video_file(key))) > 1:
                return "LeRobot 0.6 streams a dataset only while each camera's video is one file"
        try:
            import torchcodec.decoders  # noqa: F401
        except (ImportError, OSError, RuntimeError):
            return "torchcodec finds no FFmpeg libraries; install Debian's ffmpeg or its like"
        return ""

    def _load(self, **options: Any) -> Any:
        from lerobot.datasets.lerobot_dataset import LeRobotDataset

        return LeRobotDataset(_NAME, root=self._tree.root, video_backend="pyav", return_uint8=True, **options)

    def _total(self) -> int:
        return sum(member.length for member in self._tree.members)

    def _episodes_with_pictures(self) -> Iterator[tuple[Member, dict[str, Pictures]]]:
        joined: dict[str, tuple[str, Pictures]] = {}
        for member in self._tree.members:
            pictures = {}
            for key in self._tree.cameras:
                if self._video_of is not None:
                    pictures[key] = read_frames(self._video_of(member, key))
                    continue
                file = self._tree.video_file(member, key)
                if key not in joined or joined[key][0] != file:
                    joined[key] = file, read_frames(self._tree.root / file)
                pictures[key] = joined[key][1]
            yield member, pictures

    def _same_row(self, item: Any, member: Member, frame: int) -> Iterator[Finding]:
        columns: Columns = self._columns[member.number]
        for key in self._tree.numeric:
            if not np.array_equal(np.ravel(item[key]), np.ravel(columns[key][frame])):
                problem = f"LeRobot reads {key} as {np.ravel(item[key])}, the file has {columns[key][frame]}"
                yield Finding(self._tree.data_file(member), f"{member.name}, row {frame}", problem)
        if item["task"] not in member.row["tasks"]:
            problem = f"LeRobot reads the task {item['task']!r}, expected {member.row['tasks']}"
            yield Finding("meta/tasks.parquet", f"{member.name}, row {frame}", problem)

    def _bad_row(self, member: Member, key: str, bad: NDArray[np.bool_], first: int, file: str) -> Iterator[Finding]:
        rows = np.flatnonzero(bad)
        if len(rows):
            problem = f"LeRobot reads another {key} than was stored; {len(rows)} of {len(bad)} rows"
            yield Finding(file, f"{member.name}, row {first + int(rows[0])}", problem)


@contextmanager
def alone() -> Iterator[None]:
    """Let LeRobot read with one thread, and ``datasets`` keep what it makes in a temporary folder.

    No earlier reading can then be taken for this one, and many small tensors are not handed round between threads.
    """
    import datasets.config as config
    import torch

    threads = torch.get_num_threads()
    with tempfile.TemporaryDirectory(prefix="demomill-verify-") as folder:
        earlier = config.HF_DATASETS_CACHE
        config.HF_DATASETS_CACHE = Path(folder)
        torch.set_num_threads(1)
        try:
            yield
        finally:
            torch.set_num_threads(threads)
            config.HF_DATASETS_CACHE = earlier
