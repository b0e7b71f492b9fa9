"""The kept episodes of a run as one HDF5 file in robomimic's layout.

::

    data/                    attributes: total (rows), env_args (JSON)
    data/demo_<i>/           attributes: num_samples, and where the episode comes from
        actions, rewards, dones, successes, phases, states, obs/<name>
    mask/train, mask/valid   names of demos, split by seed

Every dataset of rows has an attribute ``names``: its dimensions, with units; quaternions are x, y, z, w.
"""

import errno
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pipeline import __version__
from pipeline.errors import UserError
from pipeline.export.dataset import ExportSummary
from pipeline.export.layout import ROBOT_TYPE, recorded
from pipeline.export.selection import TEST, TRAIN, Choice, Kept, count_by_task, select
from pipeline.schema import FPS, body_feature
from pipeline.store import Run, appears_whole, canonical_json, explain_os_errors, read_episode
from pipeline.video import read_frames

GYM_ENV = 2
"""robomimic's number for an env with Gym's interface, which Isaac Lab's own recorder writes, too."""

_OWN = "demomill"
_RENAMED = {
    "action": "actions",
    "next.reward": "rewards",
    "next.done": "dones",
    "next.success": "successes",
    "phase": "phases",
}


def export_hdf5(
    run_root: Path | str, out: Path | str, verdicts: pd.DataFrame | None = None, choice: Choice | None = None
) -> ExportSummary:
    """Write the kept episodes of a run as one robomimic HDF5 file, whole or not at all.

    Demos are numbered as :func:`pipeline.export.export` numbers episodes; the same inputs give the same bytes.
    ``states`` are the poses of every moving body, (rows, 7 x bodies), from which the episode can be rendered again.
    ``obs`` holds the columns ``observation.*`` and ``privileged.*`` by their last name, and for each camera of the
    choice ``<camera>_image``, (rows, height, width, 3) uint8.

    Args:
        run_root: a run folder.
        out: the file; an earlier export there is replaced, anything else is refused.
        verdicts: as for :func:`pipeline.export.export`.
        choice: as there; without cameras no pictures are written and none need be rendered.

    Raises:
        UserError: as :func:`pipeline.export.export` does, or if h5py cannot write ``out``.
    """
    run, out, choice = Run(run_root), Path(out).resolve(), choice or Choice(cameras=())
    _require_replaceable(out)
    kept = select(run, verdicts, choice)
    frames, by_task = sum(episode.length for episode in kept), count_by_task(kept)
    env_args = {
        "env_name": ROBOT_TYPE,
        "type": GYM_ENV,
        "env_kwargs": {"fps": FPS, "run": run.recipe, "tasks": list(by_task)},
    }
    with _explained(out), appears_whole(out) as temporary, h5py.File(temporary, "w") as file:
        file.attrs[_OWN] = __version__
        data = file.create_group("data")
        data.attrs["total"] = frames
        data.attrs["env_args"] = canonical_json(env_args)
        for number, episode in enumerate(kept):
            _write_demo(data.create_group(f"demo_{number}"), episode, choice)
        mask = file.create_group("mask")
        for name, split in (("train", TRAIN), ("valid", TEST)):
            names = [f"demo_{number}" for number, episode in enumerate(kept) if episode.split == split]
            mask.create_dataset(name, data=np.array(names, dtype=f"S{max(map(len, names), default=1)}"))
    return ExportSummary(root=out, episodes_by_task=by_task, frames=frames, size_bytes=out.stat().st_size)


def _write_demo(group: h5py.Group, episode: Kept, choice: Choice) -> None:
    stored = read_episode(episode.folder)
    for name, value in _attributes(episode).items():
        group.attrs[name] = value
    obs = group.create_group("obs")
    for feature in recorded(choice.privileged):
        values = stored.frames[feature.key]
        if feature.key in _RENAMED:
            _write_rows(group, _RENAMED[feature.key], values, feature.names)
        else:
            _write_rows(obs, feature.key.partition(".")[2], values, feature.names)
    _write_rows(group, "states", stored.frames["bodies"], body_feature(stored.bodies).names)
    for camera, video in episode.videos.items():
        _write_pictures(obs, f"{camera}_image", video, episode.length)


def _write_rows(group: h5py.Group, name: str, values: NDArray[np.generic], names: tuple[str, ...]) -> None:
    whole = values.astype(np.int64) if values.dtype == bool else values
    made = group.create_dataset(name, data=whole, track_times=False)
    made.attrs["names"] = canonical_json(list(names))


def _write_pictures(group: h5py.Group, name: str, video: Path, length: int) -> None:
    made = None
    for number, picture in enumerate(read_frames(video)):
        if made is None:
            shape = (length, *picture.shape)
            chunks = (1, *picture.shape)
            made = group.create_dataset(
                name, shape, np.uint8, chunks=chunks, compression="gzip", compression_opts=2, track_times=False
            )
        made[number] = picture


def _attributes(episode: Kept) -> Mapping[str, Any]:
    meta = episode.meta
    same = ("run_seed", "attempt", "seed", "outcome", "content_hash")
    return {
        "num_samples": episode.length,
        "episode_id": meta["id"],
        "task": episode.task.id,
        "instruction": episode.task.instruction,
        "verdict": episode.verdict,
        "look": episode.look,
        **{name: meta[name] for name in same},
        **{name: canonical_json(meta[name]) for name in ("draws", "phases", "versions", "engine")},
    }


def _require_replaceable(out: Path) -> None:
    if not out.exists():
        return
    try:
        with h5py.File(out, "r") as file:
            ours = _OWN in file.attrs
    except OSError:
        ours = False
    if not ours:
        raise UserError(f"{out}: exists and is not an earlier export; choose a new file for --out")


@contextmanager
def _explained(out: Path) -> Iterator[None]:
    with explain_os_errors(out):
        try:
            out.parent.mkdir(parents=True, exist_ok=True)
            yield
        except OSError as error:
            # HDF5 tells what the system said in the text alone.
            if error.errno is None and "No space left" in str(error):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)) from error
            raise
