"""Checks against the run that a dataset was made from: rows, packets and provenance, episode by episode."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from pipeline.errors import DamagedEpisode, UserError
from pipeline.export.layout import camera_name
from pipeline.export.metadata import AS_JSON, AS_STORED
from pipeline.export.verify.findings import Finding
from pipeline.export.verify.tree import EPISODES, Columns, Member, Tree
from pipeline.store import Run, canonical_json, read_episode, read_meta
from pipeline.tasks import get_task
from pipeline.video import segments


class Source:
    """The run folder of a dataset.

    Args:
        run: the run.
        tree: a dataset that `demomill export` made.

    Raises:
        UserError: if the dataset was not made by us, so that it does not say which episodes it holds.
    """

    def __init__(self, run: Run, tree: Tree) -> None:
        if not tree.ours:
            raise UserError(f"{tree.root}: not made by `demomill export`, so it cannot be compared with {run.root}")
        self._run = run
        self._tree = tree

    def folder(self, member: Member) -> Path:
        """Folder of an episode in the run."""
        return self._run.folder(str(member.row["task_id"]), str(member.row["episode_id"]))

    def video(self, member: Member, key: str) -> Path:
        """The episode's own video of a camera."""
        return self.folder(member) / f"{member.row['look']}.{camera_name(key)}.mp4"

    def check_rows(self) -> Iterator[Finding]:
        """Every value of every column, and everything that the dataset says of an episode."""
        starts: dict[str, int] = {}
        for member, columns in self._tree.episodes():
            file = self._tree.data_file(member)
            first = starts.get(file, 0)
            starts[file] = first + member.length
            try:
                episode = read_episode(self.folder(member))
            except DamagedEpisode as error:
                yield Finding(file, member.name, f"the run has no such episode: {error}")
                continue
            yield from self._provenance(member)
            stored = {**episode.frames, **_constants(columns, seed=episode.seed, attempt=episode.attempt)}
            for key in self._tree.recorded:
                found, wanted = columns[key], stored.get(key)
                if wanted is None or wanted.shape != found.shape or wanted.dtype != found.dtype:
                    yield Finding(file, f"{member.name}, {key}", f"is {found.dtype} {found.shape}, not as in the run")
                    continue
                rows = np.flatnonzero((found != wanted).reshape(len(found), -1).any(axis=1))
                if len(rows):
                    k = int(rows[0])
                    problem = f"{key} is {found[k]}, the run has {wanted[k]}; {len(rows)} rows differ"
                    yield Finding(file, f"row {first + k}, {member.name}, frame {k}", problem)

    def check_packets(self) -> Iterator[Finding]:
        """The bytes of every packet of every video."""
        tree = self._tree
        for camera in tree.cameras:
            for file, members in tree.by_video_file(camera):
                found = segments(tree.root / file, [member.length for member in members], tree.fps)
                for member, segment in zip(members, found, strict=False):
                    own = self.video(member, camera)
                    try:
                        (wanted,) = segments(own, (), tree.fps)
                    except (UserError, ValueError) as error:
                        yield Finding(file, member.name, f"the run has no such video: {error}")
                        continue
                    if wanted.sha256 != segment.sha256:
                        yield Finding(file, member.name, f"its packets are not those of the run's {own.name}")

    def _provenance(self, member: Member) -> Iterator[Finding]:
        meta, row = read_meta(self.folder(member)), member.row
        wanted: dict[str, Any] = {key: meta[key] for key in AS_STORED}
        wanted |= {key: canonical_json(meta[key]) for key in AS_JSON}
        wanted["tasks"] = [get_task(str(meta["task"])).instruction]
        for key, value in wanted.items():
            if row[key] != value:
                yield Finding(EPISODES, member.name, f"{key} is {row[key]!r:.80}, the run has {value!r:.80}")


def _constants(columns: Columns, **values: int) -> Columns:
    return {key: np.full(len(columns["index"]), value) for key, value in values.items()}


def source_of(run_root: Path, tree: Tree) -> Source:
    """Open the run of a dataset.

    Raises:
        UserError: if there is no run, or it is another than the dataset was made from.
    """
    run = Run(run_root)
    recorded = (tree.manifest or {}).get("run")
    if tree.ours and recorded != json.loads(canonical_json(run.recipe)):
        raise UserError(f"{run_root}: not the run that {tree.root} was made from (their recipes differ)")
    return Source(run, tree)
