"""The videos that a dataset is joined from, examined before anything is written."""

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from pipeline.errors import UserError
from pipeline.schema import FPS
from pipeline.video import probe
from randomization.looks import PRESETS


def require_videos(episodes: Sequence[tuple[Path, int, Mapping[str, Path]]], run: Path) -> None:
    """Refuse episodes whose videos cannot be joined.

    Args:
        episodes: folder, number of rows, and video by camera, of each.
        run: the run folder, for the remedy.

    Raises:
        UserError: if a video is missing, has another frame rate than the robot was recorded at, more or fewer frames
            than its episode has rows, another size than the others, or other encoder settings than the first of its
            camera.
    """
    missing = [video for _, _, videos in episodes for video in videos.values() if not video.is_file()]
    if missing:
        look, camera, _ = missing[0].name.split(".")
        raise UserError(
            f"{missing[0].parent.name}: {missing[0].name} is missing ({len(missing)} videos in all); run `demomill "
            f"render {run} {_render_options(look)} --camera {camera}`, naming all cameras, then export again"
        )
    sizes: dict[tuple[int, int], Path] = {}
    for camera in episodes[0][2]:
        paths = [videos[camera] for _, _, videos in episodes]
        with ThreadPoolExecutor() as pool:
            infos = list(pool.map(probe, paths))
        for (folder, length, _), path, info in zip(episodes, paths, infos, strict=True):
            remedy = "delete that video and run `demomill render` again"
            if abs(info.fps - FPS) > 1e-6 * FPS:
                raise UserError(f"{folder.name}: {path.name} has {info.fps:g} fps, its rows {FPS}; {remedy}")
            if info.frames != length:
                raise UserError(
                    f"{folder.name}: {path.name} has {info.frames} frames but the episode has {length} rows; {remedy}"
                )
            sizes.setdefault((info.width, info.height), path)
            if len(sizes) > 1:
                (size, first), (other, second) = ((f"{w}x{h}", path) for (w, h), path in sizes.items())
                raise UserError(
                    f"{first} is {size} and {second} is {other} pixels; run `demomill render {run} --size {size}` with "
                    "the same look and cameras, or with the other size, then export again"
                )
            if not info.joins(infos[0]):
                raise UserError(
                    f"{path}: encoded with other settings than {paths[0]}, so the two cannot be joined; render both "
                    "with the same settings"
                )


def _render_options(look: str) -> str:
    """Options of ``demomill render`` that make a rendering of this name."""
    preset, _, number = look.rpartition("-")
    return f"--look {preset} --looks-per-episode {int(number) + 1}" if preset in PRESETS else f"--look {look}"
