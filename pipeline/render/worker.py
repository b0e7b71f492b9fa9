"""Worker process: render the episodes named on its standard input.

Run as ``python -m pipeline.render.worker JOB FD PARENT``. For each line, the folder of an episode, it writes one line
of JSON to the file descriptor: ``{"ok": true}``, or ``{"ok": false, "message": ..., "fatal": ...}`` where fatal means
that other episodes would fail in the same way.
"""

import json
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from pipeline.errors import DamagedEpisode, UserError
from pipeline.process import die_with_parent
from pipeline.render import sidecar
from pipeline.render.cameras import CAMERAS, SIZE, Size
from pipeline.render.checks import BadVideo, check_depiction, check_video, thumbnail
from pipeline.render.look import Look, Sensor
from pipeline.render.looks import look_of
from pipeline.render.renderer import Choice, Renderer, open_renderer
from pipeline.schema import FPS
from pipeline.store import Episode, explain_os_errors, read_episode
from pipeline.tasks import get_task
from pipeline.video import encode
from randomization.seeds import generator


@dataclass(frozen=True)
class Job:
    """What a worker does with each episode.

    Attributes:
        choice: renderer; the worker was started in its environment.
        looks: their names.
        cameras: names of the cameras to render where they are missing.
        size: of the pictures.
    """

    choice: Choice
    looks: tuple[str, ...]
    cameras: tuple[str, ...]
    size: Size = SIZE

    def to_json(self) -> str:
        """One line of JSON."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> "Job":
        """Inverse of :meth:`to_json`."""
        raw = json.loads(text)
        width, height = raw["size"]
        return cls(Choice(**raw["choice"]), tuple(raw["looks"]), tuple(raw["cameras"]), (width, height))


def main(argv: list[str]) -> int:
    """Serve until standard input ends; die with the parent."""
    die_with_parent(int(argv[3]))
    with os.fdopen(int(argv[2]), "w", buffering=1) as replies, EpisodeRenderer(Job.from_json(argv[1])) as episodes:
        for line in sys.stdin:
            reply: dict[str, object] = {"ok": True}
            try:
                episodes.render(Path(line.rstrip("\n")))
            except UserError as error:
                fatal = not isinstance(error, DamagedEpisode | BadVideo)
                reply = {"ok": False, "message": str(error), "fatal": fatal}
            replies.write(json.dumps(reply) + "\n")
    return 0


class EpisodeRenderer:
    """Renders episodes in one process; keeps the renderer while task and look stay the same."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._open = ExitStack()
        self._shown: tuple[str, Look] | None = None
        self._renderer: Renderer
        self._drawn: frozenset[str]

    def __enter__(self) -> "EpisodeRenderer":
        return self

    def __exit__(self, *exception: object) -> None:
        self._open.close()

    def render(self, folder: Path) -> None:
        """Render the missing videos of an episode, check them, and describe them in its sidecars.

        Raises:
            DamagedEpisode: if the episode does not read back.
            BadVideo: if a video does not show it.
            UserError: if the disk is full or the folder cannot be written.
        """
        episode = read_episode(folder)
        for name in self._job.looks:
            self._render_look(folder, episode, look_of(name, episode.seed))

    def _render_look(self, folder: Path, episode: Episode, look: Look) -> None:
        key = episode.content_hash(), sidecar.settings(self._job.choice.name, look, self._job.size)
        stale = sidecar.missing(folder, *key, tuple(CAMERAS))
        todo = [camera for camera in self._job.cameras if camera in stale]
        if not todo:
            return
        self._prepare(episode, look)
        with explain_os_errors(folder):
            for leftover in folder.glob(f".{look.name}.*"):
                leftover.unlink()
            for camera in todo:
                self._render_camera(episode, camera, look.sensor, sidecar.video_path(folder, look.name, camera))
            whole = (CAMERAS.keys() - stale) | set(self._job.cameras)
            sidecar.write(folder, *key, episode.length, sorted(whole))

    def _prepare(self, episode: Episode, look: Look) -> None:
        if self._shown != (episode.task, look):
            from pipeline.render.scene import build_scene

            self._open.close()
            scene = build_scene(get_task(episode.task), look, self._job.size)
            self._renderer = self._open.enter_context(open_renderer(self._job.choice, scene))
            self._shown, self._drawn = (episode.task, look), frozenset(scene.bodies)
        if absent := sorted(self._drawn - set(episode.bodies)):
            raise BadVideo(f"{episode.id}: the pose of {', '.join(absent)} was not recorded, so it cannot be drawn")

    def _render_camera(self, episode: Episode, camera: str, sensor: Sensor, path: Path) -> None:
        rng, tested = generator(sensor.seed, camera), int(generator(episode.seed, path.name).integers(episode.length))
        thumbnails: list[np.ndarray] = []
        shown: list[np.ndarray] = []

        def shoot(poses: Mapping[str, np.ndarray]) -> np.ndarray:
            return self._renderer.render(poses, (camera,))[0]

        def pictures() -> Iterator[np.ndarray]:
            for row in range(episode.length):
                picture = shoot(self._poses(episode, row))
                if row == tested:
                    shown.append(picture.copy())
                picture = expose(picture, sensor, rng)
                thumbnails.append(thumbnail(picture))
                yield picture

        encode(path, pictures(), FPS)
        try:
            check_video(path, thumbnails)
            again = read_episode(path.parent)
            check_depiction(path, shoot, self._poses(again, 0), tested, self._poses(again, tested), shown[0])
        except BadVideo:
            path.unlink()
            raise

    def _poses(self, episode: Episode, row: int) -> dict[str, np.ndarray]:
        poses = episode.frames["bodies"][row].astype(np.float64).reshape(-1, 7)
        return {body: pose for body, pose in zip(episode.bodies, poses, strict=True) if body in self._drawn}


def expose(picture: np.ndarray, sensor: Sensor, rng: np.random.Generator) -> np.ndarray:
    """What a sensor reads of a picture (H, W, 3) uint8, likewise."""
    if sensor.gain == 1.0 and sensor.noise_levels == 0.0:
        return picture
    levels = picture * np.float32(sensor.gain)
    levels += sensor.noise_levels * rng.standard_normal(picture.shape, np.float32)
    return np.clip(np.rint(levels), 0, 255).astype(np.uint8)


if __name__ == "__main__":
    sys.exit(main(sys.argv))
