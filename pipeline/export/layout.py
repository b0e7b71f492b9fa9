"""Names, places and columns of a LeRobot v3.0 dataset."""

from collections.abc import Mapping, Sequence
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from pipeline.schema import FEATURES, FPS, Feature
from pipeline.video import CRF, GOP, PRESET, VideoInfo

CODEBASE_VERSION = "v3.0"
ROBOT_TYPE = "panda_robotiq_2f85"

FILES_PER_CHUNK = 1000
DATA_FILE_MB = 100
VIDEO_FILE_MB = 200
VIDEO_FILE_S = 1000.0
"""Readers hold times as float32: much beyond this, a frame's time leaves LeRobot's tolerance of 1e-4 s."""

_VIDEO_PREFIX = "observation.images."

DATA_PATH = "data/chunk-{chunk_index:03d}/file-{file_index:03d}.parquet"
VIDEO_PATH = "videos/{video_key}/chunk-{chunk_index:03d}/file-{file_index:03d}.mp4"
EPISODES_PATH = "meta/episodes/chunk-000/file-000.parquet"
TASKS_PATH = "meta/tasks.parquet"
INFO_PATH = "meta/info.json"
STATS_PATH = "meta/stats.json"
CARD_PATH = "README.md"
MANIFEST_PATH = "meta/demomill.json"
"""Ours: what the dataset was made from; a folder that has it may be replaced by a new export."""

PROVENANCE: tuple[Feature, ...] = (Feature("seed", "int64"), Feature("attempt", "int64"))
"""Of the whole episode, repeated in its rows: readers that see rows alone can group and split by them."""

BOOKKEEPING: tuple[Feature, ...] = (
    Feature("timestamp", "float32"),
    Feature("frame_index", "int64"),
    Feature("episode_index", "int64"),
    Feature("index", "int64"),
    Feature("task_index", "int64"),
)


def recorded(privileged: bool = True) -> tuple[Feature, ...]:
    """Columns that the recorder wrote; without ``privileged``, those that a real robot could have."""
    return tuple(f for f in FEATURES if f.export and (privileged or not f.key.startswith("privileged.")))


def all_columns(privileged: bool = True) -> tuple[Feature, ...]:
    """Columns of the data files, in order."""
    return (*recorded(privileged), *PROVENANCE, *BOOKKEEPING)


def row_bytes(columns: Sequence[Feature]) -> int:
    """Size of one row, uncompressed."""
    return sum(np.dtype(feature.dtype).itemsize * (len(feature.names) or 1) for feature in columns)


def arrow_schema(columns: Sequence[Feature]) -> pa.Schema:
    """Schema of the data files."""
    return pa.schema([(feature.key, _arrow_type(feature)) for feature in columns])


def video_key(camera: str) -> str:
    """Feature key of a camera."""
    return f"{_VIDEO_PREFIX}{camera}"


def camera_name(key: str) -> str:
    """Camera of a feature key."""
    return key.removeprefix(_VIDEO_PREFIX)


def chunk_and_file(number: int) -> dict[str, int]:
    """Place of the ``number``-th file of a kind, counted from 0."""
    chunk, file = divmod(number, FILES_PER_CHUNK)
    return {"chunk_index": chunk, "file_index": file}


def info(
    videos: Mapping[str, VideoInfo], columns: Sequence[Feature], splits: Mapping[str, int], frames: int, tasks: int
) -> dict[str, Any]:
    """Content of ``meta/info.json``.

    Args:
        videos: of each camera, a description of its files.
        splits: number of episodes of each split, in the order in which they lie.
    """
    ends = list(accumulate(splits.values(), initial=0))
    features: dict[str, Any] = {video_key(camera): _video_feature(video) for camera, video in videos.items()}
    for feature in columns:
        names = list(feature.names) or None
        features[feature.key] = {"dtype": feature.dtype, "shape": list(feature.shape or (1,)), "names": names}
    return {
        "codebase_version": CODEBASE_VERSION,
        "fps": FPS,
        "features": features,
        "total_episodes": ends[-1],
        "total_frames": frames,
        "total_tasks": tasks,
        "chunks_size": FILES_PER_CHUNK,
        "data_files_size_in_mb": DATA_FILE_MB,
        "video_files_size_in_mb": VIDEO_FILE_MB,
        "data_path": DATA_PATH,
        "video_path": VIDEO_PATH if videos else None,
        "robot_type": ROBOT_TYPE,
        "splits": {name: f"{a}:{b}" for name, (a, b) in zip(splits, pairwise(ends), strict=True)},
    }


def _arrow_type(feature: Feature) -> pa.DataType:
    scalar = pa.bool_() if feature.dtype == "bool" else pa.type_for_alias(feature.dtype)
    return pa.list_(scalar, len(feature.names)) if feature.names else scalar


def _video_feature(video: VideoInfo) -> dict[str, Any]:
    return {
        "dtype": "video",
        "shape": [video.height, video.width, 3],
        "names": ["height", "width", "channels"],
        "info": {
            "video.height": video.height,
            "video.width": video.width,
            "video.codec": video.codec,
            "video.pix_fmt": video.pix_fmt,
            "video.fps": FPS,
            "video.channels": 3,
            "video.g": GOP,
            "video.crf": CRF,
            "video.preset": PRESET,
            "video.fast_decode": 0,
            "video.video_backend": "pyav",
            "video.extra_options": {},
            "has_audio": False,
            "is_depth_map": False,
        },
    }
