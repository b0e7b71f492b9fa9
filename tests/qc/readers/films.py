"""Videos of grey pictures for datasets: one shade a row, so that each episode's pictures are told apart."""

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from pipeline.video import encode
from qc.episodes import Episode
from tests.qc.datasets import edit_info, write_dataset

KEY = "observation.images.front"
EPISODES = "meta/episodes/chunk-000/file-000.parquet"
_PLACES = {
    "v3.0": "videos/{video_key}/chunk-{chunk_index:03d}/file-{file_index:03d}.mp4",
    "v2.1": "videos/chunk-{episode_chunk:03d}/{video_key}/episode_{episode_index:06d}.mp4",
}


def pictures(shades: Sequence[int]) -> list[np.ndarray]:
    """One picture for each shade of grey."""
    return [np.full((72, 128, 3), shade, np.uint8) for shade in shades]


def ramp(episode: Episode, number: int) -> list[int]:
    """Darker at the start, brighter at the end, as a moving arm changes the picture; each episode begins alike."""
    return np.linspace(20, 200 + 5 * number, episode.length).astype(np.uint8).tolist()


def write_filmed(root: Path, episodes: Sequence[Episode], shades: Sequence[Sequence[int]], version: str) -> Path:
    """A dataset whose episodes have these pictures; those of v3.0 share one file."""
    write_dataset(root, episodes, version=version)
    features = json.loads((root / "meta" / "info.json").read_text())["features"]
    features[KEY] = {"dtype": "video", "shape": [72, 128, 3], "names": None}
    edit_info(root, features=features, video_path=_PLACES[version])
    if version == "v3.0":
        ends = np.cumsum([e.length for e in episodes]) / 15
        told = {"chunk_index": 0, "file_index": 0, "from_timestamp": np.r_[0, ends[:-1]], "to_timestamp": ends}
        path = root / EPISODES
        pd.read_parquet(path).assign(**{f"videos/{KEY}/{name}": of for name, of in told.items()}).to_parquet(path)
    together = {0: [shade for of in shades for shade in of]} if version == "v3.0" else dict(enumerate(shades))
    for number, of in together.items():
        names = {"chunk_index": 0, "file_index": number, "episode_chunk": 0, "episode_index": number}
        path = root / _PLACES[version].format(video_key=KEY, **names)
        path.parent.mkdir(parents=True, exist_ok=True)
        encode(path, pictures(of), 15)
    return root
