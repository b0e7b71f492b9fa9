"""Seconds of an export against LeRobot's own writer, on the same frames. Run as ``python -m bench.exporting [RUN]``.

LeRobot is given decoded frames, its decoding being nobody's work, and the encoder settings that our videos have. Our
export is measured in a process of its own, for its memory.
"""

import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from pipeline.engine import choose_engine
from pipeline.export import export
from pipeline.export.layout import PROVENANCE, recorded, video_key
from pipeline.record import Request, record
from pipeline.render.cameras import DEFAULT_CAMERAS
from pipeline.render.episodes import render_run
from pipeline.schema import FPS
from pipeline.store import Episode, Run, read_episode
from pipeline.tasks import get_task
from pipeline.video import CRF, GOP, PRESET, encode, read_frames

TASK = "peg_round_8mm"
EPISODES = 8


def main() -> None:
    """Record and render a few episodes, or take a rendered run, and export it both ways."""
    with tempfile.TemporaryDirectory() as scratch:
        root = Path(sys.argv[1]) if len(sys.argv) > 1 else _rendered(Path(scratch) / "run")
        folders = _successes(Run(root))
        ours = _measure_ours(root, Path(scratch) / "ours")
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


def _rendered(root: Path) -> Path:
    record(Request(root, (TASK,), EPISODES, 1, choose_engine("cpu")))
    render_run(root, [folder.name for folder in _successes(Run(root))])
    return root


def _successes(run: Run) -> list[Path]:
    return [folder for folder in run.folders() if read_episode(folder).outcome == "success"]


def _measure_ours(root: Path, out: Path) -> dict[str, float]:
    command = [sys.executable, "-m", "bench.exporting", "--export", str(root), str(out)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    found = next(line for line in done.stdout.splitlines() if line.startswith("RESULT "))
    return dict(json.loads(found.removeprefix("RESULT ")))


def _export(root: str, out: str) -> None:
    start = time.perf_counter()
    export(root, out)
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
    return {camera: list(read_frames(folder / f"plain.{camera}.mp4")) for camera in DEFAULT_CAMERAS}


def _rows(episode: Episode, pictures: dict[str, list[np.ndarray]], keys: list[str]) -> Iterator[dict[str, Any]]:
    constant = {"seed": np.array([episode.seed]), "attempt": np.array([episode.attempt])}
    for k in range(episode.length):
        yield {
            **{key: constant[key] if key in constant else np.atleast_1d(episode.frames[key][k]) for key in keys},
            **{video_key(camera): frames[k] for camera, frames in pictures.items()},
            "task": get_task(episode.task).instruction,
        }


if __name__ == "__main__":
    if sys.argv[1:2] == ["--export"]:
        _export(*sys.argv[2:])
    else:
        main()
