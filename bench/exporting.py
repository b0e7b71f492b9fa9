"""Seconds of an export against LeRobot's own writer, on the same frames.

Run as ``python -m bench.exporting [RUN] [--episodes N]``. LeRobot is given decoded frames, its decoding being nobody's
work, and the encoder settings that our videos have. Our export is measured in a process of its own, for its memory.
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from itertools import chain, islice, zip_longest
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from pipeline.engine import choose_engine
from pipeline.export import Choice, export
from pipeline.export.layout import PROVENANCE, recorded, video_key
from pipeline.record import Request, record
from pipeline.render.cameras import DEFAULT_CAMERAS
from pipeline.render.episodes import render_run
from pipeline.render.sidecar import video_path
from pipeline.schema import FPS
from pipeline.store import Episode, Run, read_episode, read_meta
from pipeline.tasks import get_task
from pipeline.video import CRF, GOP, PRESET, encode, read_frames

TASK = "peg_round_8mm"
EPISODES = 8
LOOK = "plain"


def main() -> None:
    """Record and render a few episodes, or take those of a run that are rendered, and export them both ways."""
    parser = argparse.ArgumentParser(prog="python -m bench.exporting", description=main.__doc__)
    parser.add_argument("run", type=Path, nargs="?", help="run folder, of which nothing is changed")
    parser.add_argument("--episodes", type=int, help=f"most episodes to export; without a run {EPISODES} by default")
    parser.add_argument("--export", type=Path, metavar="OUT", help="export alone, to this folder")
    asked = parser.parse_args()
    if asked.export:
        _export(asked.run, asked.export, asked.episodes)
        return
    with tempfile.TemporaryDirectory() as scratch:
        root = asked.run or _rendered(Path(scratch) / "run", asked.episodes or EPISODES)
        folders = _chosen(root, asked.episodes)
        ours = _measure_ours(root, Path(scratch) / "ours", len(folders))
        encoding = sum(_encoding(folder, Path(scratch)) for folder in folders)
        stored = _by_lerobot(folders, Path(scratch) / "stored", streaming=False)
        streamed = _by_lerobot(folders, Path(scratch) / "streamed", streaming=True)
    result = {
        "episodes": len(folders),
        "export_s": ours["seconds"],
        "peak_memory_gb": ours["peak_memory_gb"],
        "encoding_s": encoding,
        "lerobot_s": stored,
        "lerobot_streaming_s": streamed,
    }
    print("\nRESULT " + json.dumps(result))


def _rendered(root: Path, episodes: int) -> Path:
    record(Request(root, (TASK,), episodes, 1, choose_engine("cpu")))
    render_run(root, [folder.name for folder in _successes(root)])
    return root


def _successes(root: Path) -> list[Path]:
    return [folder for folder in Run(root).folders() if read_meta(folder)["outcome"] == "success"]


def _chosen(root: Path, most: int | None) -> list[Path]:
    """Successes that are rendered, in order; of each task as many, within one, if they are more than ``most``."""
    by_task: dict[str, list[Path]] = defaultdict(list)
    for folder in _successes(root):
        if all(video_path(folder, LOOK, camera).is_file() for camera in DEFAULT_CAMERAS):
            by_task[folder.parent.name].append(folder)
    in_turn = chain.from_iterable(zip_longest(*by_task.values()))
    return sorted(islice(filter(None, in_turn), most))


def _measure_ours(root: Path, out: Path, episodes: int) -> dict[str, float]:
    command = [sys.executable, "-m", "bench.exporting", str(root), "--episodes", str(episodes), "--export", str(out)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    found = next(line for line in done.stdout.splitlines() if line.startswith("RESULT "))
    return dict(json.loads(found.removeprefix("RESULT ")))


def _export(root: Path, out: Path, episodes: int) -> None:
    metas = [read_meta(folder) for folder in _chosen(root, episodes)]
    rows = [(meta["id"], meta["task"], meta["content_hash"], "keep") for meta in metas]
    verdicts = pd.DataFrame(rows, columns=["episode_id", "task", "content_hash", "verdict"])
    choice = Choice(tasks=tuple(verdicts["task"].unique()))
    start = time.perf_counter()
    export(root, out, verdicts, choice)
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print("RESULT " + json.dumps({"seconds": seconds, "peak_memory_gb": peak}))


def _encoding(folder: Path, scratch: Path) -> float:
    """Seconds that our encoder takes for the episode's frames, as `demomill render` does it once."""
    seconds = 0.0
    for pictures in _pictures(folder).values():
        start = time.perf_counter()
        encode(scratch / "again.mp4", pictures, FPS)
        seconds += time.perf_counter() - start
    return seconds


def _by_lerobot(folders: list[Path], root: Path, *, streaming: bool) -> float:
    """Seconds of ``add_frame``, ``save_episode`` and ``finalize``."""
    from lerobot.configs.video import RGBEncoderConfig
    from lerobot.datasets.lerobot_dataset import LeRobotDataset

    columns = [*recorded(), *PROVENANCE]
    shape = next(iter(_pictures(folders[0]).values()))[0].shape
    features: dict[str, Any] = {
        feature.key: {"dtype": feature.dtype, "shape": feature.shape or (1,), "names": list(feature.names) or None}
        for feature in columns
    }
    for camera in DEFAULT_CAMERAS:
        features[video_key(camera)] = {"dtype": "video", "shape": shape, "names": ["height", "width", "channels"]}
    dataset = LeRobotDataset.create(
        "local/bench",
        FPS,
        features,
        root=root,
        rgb_encoder=RGBEncoderConfig(vcodec="h264", g=GOP, crf=CRF, preset=PRESET),
        streaming_encoding=streaming,
        image_writer_threads=0 if streaming else 4 * len(DEFAULT_CAMERAS),
    )
    seconds = 0.0
    for folder in folders:
        rows = list(_rows(read_episode(folder), _pictures(folder), [feature.key for feature in columns]))
        start = time.perf_counter()
        for row in rows:
            dataset.add_frame(row)
        dataset.save_episode()
        seconds += time.perf_counter() - start
    start = time.perf_counter()
    dataset.finalize()
    return seconds + time.perf_counter() - start


def _pictures(folder: Path) -> dict[str, list[np.ndarray]]:
    return {camera: list(read_frames(video_path(folder, LOOK, camera))) for camera in DEFAULT_CAMERAS}


def _rows(episode: Episode, pictures: dict[str, list[np.ndarray]], keys: list[str]) -> Iterator[dict[str, Any]]:
    constant = {"seed": np.array([episode.seed]), "attempt": np.array([episode.attempt])}
    for k in range(episode.length):
        yield {
            **{key: constant[key] if key in constant else np.atleast_1d(episode.frames[key][k]) for key in keys},
            **{video_key(camera): frames[k] for camera, frames in pictures.items()},
            "task": get_task(episode.task).instruction,
        }


if __name__ == "__main__":
    main()
