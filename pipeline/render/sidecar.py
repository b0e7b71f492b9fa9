"""``<look>.json`` beside an episode's videos: what they were made from and with, so that no work is done twice."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from pipeline import __version__, video
from pipeline.render.cameras import SIZE, Size
from pipeline.render.look import Look
from pipeline.schema import FPS
from pipeline.store import canonical_json, write_atomically


def settings(renderer: str, look: Look, size: Size = SIZE) -> dict[str, Any]:
    """Everything but the episode that a video depends on."""
    made_with = {
        "demomill": __version__,
        "renderer": renderer,
        "width_px": size[0],
        "height_px": size[1],
        "look": asdict(look),
        "video": {"fps": FPS, "crf": video.CRF, "preset": video.PRESET, "gop": video.GOP},
    }
    return dict(json.loads(canonical_json(made_with)))


def video_path(folder: Path, look: str, camera: str) -> Path:
    """Where an episode's video lies."""
    return folder / f"{look}.{camera}.mp4"


def missing(folder: Path, content_hash: str, made_with: dict[str, Any], wanted: Sequence[str]) -> tuple[str, ...]:
    """Cameras of an episode whose video is absent, not whole, or made from other rows or with other settings."""
    look = made_with["look"]["name"]
    try:
        known = json.loads((folder / f"{look}.json").read_text())
        if known["content_hash"] != content_hash or known["settings"] != made_with:
            return tuple(wanted)
        sums = {name: entry["sha256"] for name, entry in known["videos"].items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return tuple(wanted)
    return tuple(c for c in wanted if _sha256(video_path(folder, look, c)) != sums.get(c, "not made"))


def write(folder: Path, content_hash: str, made_with: dict[str, Any], frames: int, whole: Sequence[str]) -> None:
    """Describe the videos of the cameras ``whole``, made from these rows with these settings."""
    look = made_with["look"]["name"]
    videos = {c: {"frames": frames, "sha256": _sha256(video_path(folder, look, c))} for c in sorted(whole)}
    entry = {"content_hash": content_hash, "settings": made_with, "videos": videos}
    write_atomically(folder / f"{look}.json", json.dumps(entry, indent=2) + "\n")


def _sha256(path: Path) -> str | None:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError:
        return None
