"""The data and video files of a dataset, each cut at its size limit, and what ``meta/episodes`` says of them."""

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import reduce
from operator import add
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from pipeline.export.digests import rows_digest
from pipeline.export.layout import (
    BOOKKEEPING,
    DATA_FILE_MB,
    DATA_PATH,
    PROVENANCE,
    VIDEO_FILE_MB,
    VIDEO_FILE_S,
    VIDEO_PATH,
    arrow_schema,
    chunk_and_file,
    row_bytes,
    video_key,
)
from pipeline.export.selection import Kept
from pipeline.export.statistics import PixelHistogram, Statistics, as_columns, vector_statistics
from pipeline.schema import FPS, Feature
from pipeline.store import read_episode
from pipeline.video import VideoInfo, probe, remux, segments

EpisodeRow = dict[str, Any]
"""Columns of ``meta/episodes`` for one episode."""

_MIB = 2**20
_BOOKKEEPING = {feature.key for feature in BOOKKEEPING}


def write_data(
    root: Path, kept: Sequence[Kept], features: Sequence[Feature], task_index: Mapping[str, int]
) -> tuple[list[EpisodeRow], dict[str, Statistics]]:
    """Write every row of every episode; one row group an episode, so that an episode can be read alone.

    Args:
        features: columns to write.
        task_index: index of each task id.

    Returns:
        Place and statistics of each episode; statistics over the dataset, by feature.

    Raises:
        DamagedEpisode: if an episode does not read back as it was committed.
    """
    rows: list[EpisodeRow] = []
    schema, start = arrow_schema(features), 0
    loads = [(episode.length * row_bytes(features),) for episode in kept]
    for file, members in enumerate(_cut(loads, (DATA_FILE_MB * _MIB,))):
        place = chunk_and_file(file)
        with pq.ParquetWriter(_make_room(root / DATA_PATH.format(**place)), schema, compression="snappy") as writer:
            for number in members:
                episode = kept[number]
                columns = _columns(episode, features, number, start, task_index[episode.task.id])
                writer.write_table(pa.table([_to_arrow(columns[f.name], f.type) for f in schema], schema=schema))
                row: EpisodeRow = {f"data/{name}": value for name, value in place.items()}
                row |= {"dataset_from_index": start, "dataset_to_index": start + episode.length}
                row["rows_sha256"] = rows_digest(
                    {key: values for key, values in columns.items() if key not in _BOOKKEEPING}
                )
                for key, values in columns.items():
                    row |= as_columns(key, vector_statistics(values))
                rows.append(row)
                start += episode.length
    return rows, {feature.key: vector_statistics(_read_column(root, feature.key)) for feature in features}


def write_videos(root: Path, kept: Sequence[Kept], camera: str) -> tuple[list[EpisodeRow], Statistics, VideoInfo]:
    """Join the videos of one camera by packets.

    Returns:
        Place and statistics of each episode's video; statistics over the dataset; a description of the first file.

    Raises:
        UserError: if a video is off the frame grid, reordered, or does not begin with a keyframe.
    """
    key = video_key(camera)
    sources = [episode.videos[camera] for episode in kept]
    rows: list[EpisodeRow] = []
    infos: list[VideoInfo] = []
    loads = [(source.stat().st_size, e.length / FPS) for source, e in zip(sources, kept, strict=True)]
    for file, members in enumerate(_cut(loads, (VIDEO_FILE_MB * _MIB, VIDEO_FILE_S))):
        place, start = chunk_and_file(file), 0
        target = _make_room(root / VIDEO_PATH.format(video_key=key, **place))
        counts = remux([sources[number] for number in members], target, FPS)
        infos.append(probe(target))
        for count in counts:
            span = {"from_timestamp": start / FPS, "to_timestamp": (start + count) / FPS}
            rows.append({f"videos/{key}/{name}": value for name, value in (place | span).items()})
            start += count
    with ThreadPoolExecutor() as pool:
        histograms = list(pool.map(PixelHistogram.of_video, sources))
        packets = list(pool.map(lambda source: segments(source, (), FPS)[0].sha256, sources))
    for row, histogram, digest in zip(rows, histograms, packets, strict=True):
        row[f"packets_sha256/{key}"] = digest
        row.update(as_columns(key, histogram.statistics()))
    return rows, reduce(add, histograms).statistics(), infos[0]


def _cut(loads: Sequence[Sequence[float]], limits: Sequence[float]) -> list[range]:
    """Cut episodes into files: runs of neighbours whose summed loads stay within every limit."""
    files: list[range] = []
    first, sums = 0, np.zeros(len(limits))
    for number, load in enumerate(loads):
        if number > first and (sums + load > limits).any():
            files.append(range(first, number))
            first, sums = number, np.zeros(len(limits))
        sums += load
    return [*files, range(first, len(loads))]


def _columns(
    episode: Kept, features: Sequence[Feature], number: int, start: int, task_index: int
) -> dict[str, NDArray[np.generic]]:
    frames = read_episode(episode.folder).frames
    step = np.arange(episode.length)
    columns = {
        **frames,
        **{feature.key: np.full_like(step, episode.meta[feature.key]) for feature in PROVENANCE},
        "timestamp": (step / FPS).astype(np.float32),
        "frame_index": step,
        "episode_index": np.full_like(step, number),
        "index": start + step,
        "task_index": np.full_like(step, task_index),
    }
    return {feature.key: columns[feature.key] for feature in features}


def _to_arrow(values: NDArray[np.generic], kind: pa.DataType) -> pa.Array:
    flat = pa.array(values.reshape(-1))
    return pa.FixedSizeListArray.from_arrays(flat, kind.list_size) if pa.types.is_fixed_size_list(kind) else flat


def _read_column(root: Path, key: str) -> NDArray[np.generic]:
    paths = sorted(root.glob("data/*/*.parquet"))
    column = pa.concat_tables(pq.read_table(path, columns=[key]) for path in paths)[key].combine_chunks()
    values = column.flatten() if pa.types.is_fixed_size_list(column.type) else column
    return np.asarray(values.to_numpy(zero_copy_only=False)).reshape(len(column), -1)


def _make_room(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    return path
