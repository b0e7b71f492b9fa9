"""Merge runs of one recipe: what several machines recorded becomes one run, every episode verified on its way."""

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from pipeline.errors import DamagedEpisode, UserError
from pipeline.locks import lock_attempts
from pipeline.store import Run, episode_id, first_difference, read_episode


@dataclass(frozen=True)
class Merged:
    """What a merge did.

    Attributes:
        episodes: content hash of every episode of the merged runs, by id.
        new: ids of those that were copied; the others were there.
        hung: ids of the attempts that hang the simulator, and of which no run has an episode.
    """

    episodes: Mapping[str, str]
    new: tuple[str, ...]
    hung: tuple[str, ...]


@dataclass(frozen=True)
class _Found:
    folder: Path
    task: str
    attempt: int
    content_hash: str


def _silent(done: int, total: int) -> None:
    """Nobody listens."""


def merge_runs(sources: Sequence[Path], out: Path, listen: Callable[[int, int], None] = _silent) -> Merged:
    """Copy the episodes of some runs into one, with their videos, unless they are there.

    Attempts that more than one run recorded must be equal by content hash. All episodes are read and compared before
    anything is written. A merge that was broken off goes on when it is repeated.

    Args:
        sources: run folders; they are only read. Of equal episodes the first one's videos are taken.
        out: run folder; made if it is missing, completed if it is there.
        listen: called with the number of episodes that are copied, and of those that are to be.

    Raises:
        DamagedEpisode: if an episode does not read back as it was committed.
        UserError: if the runs differ in their recipe or in an episode, or the folder cannot be used.
    """
    runs = [Run(source) for source in sources]
    if not runs:
        raise UserError("no run to merge; name at least one run folder")
    wanted = dict[str, _Found]()
    for run in runs:
        if run.root.resolve() == out.resolve():
            raise UserError(f"{run.root}: is --out itself, which keeps what it has; leave it out of the runs to merge")
        if difference := first_difference(runs[0].recipe, run.recipe):
            raise UserError(f"{run.root}: was not made like {runs[0].root} ({difference}), so they cannot be merged")
        wanted = _union(wanted, _read(run))
    target = Run.open(out, runs[0].recipe)
    with ExitStack() as locks:
        locks.enter_context(target.lock())
        for task, attempts in _by_task(wanted.values()).items():
            locks.enter_context(lock_attempts(target.root, task, attempts))
        there = _read(target)
        every = _union(there, wanted)
        new = [name for name in sorted(wanted) if name not in there]
        for done, name in enumerate(new, 1):
            target.clear_staging(name)
            target.adopt(wanted[name].folder)
            listen(done, len(new))
        hung = _merge_hung(runs, target, every)
        _merge_reports(runs, target)
    return Merged({name: found.content_hash for name, found in sorted(wanted.items())}, tuple(new), hung)


def _read(run: Run) -> dict[str, _Found]:
    """Every episode of a run by id, read as a whole."""
    found = {}
    for folder in run.folders():
        episode = read_episode(folder)
        if (folder.parent.name, folder.name) != (
            episode.task,
            episode_id(episode.task, run.recipe["run_seed"], episode.attempt),
        ):
            raise DamagedEpisode(f"{folder}: holds {episode.id}, which does not belong there; move it out of the run")
        found[folder.name] = _Found(folder, episode.task, episode.attempt, episode.content_hash())
    return found


def _union(first: Mapping[str, _Found], second: Mapping[str, _Found]) -> dict[str, _Found]:
    for name in sorted(first.keys() & second.keys()):
        one, other = first[name], second[name]
        if one.content_hash != other.content_hash:
            raise UserError(
                f"{other.folder}: is not the episode in {one.folder} (content hash {other.content_hash[:12]}, not "
                f"{one.content_hash[:12]}); runs of one recipe differ only if code, versions or processor do: keep one "
                "of the two runs, or remove one of the two folders"
            )
    return {**second, **first}


def _by_task(episodes: Collection[_Found]) -> dict[str, list[int]]:
    attempts = defaultdict[str, list[int]](list)
    for found in episodes:
        attempts[found.task].append(found.attempt)
    return attempts


def _merge_hung(runs: Sequence[Run], target: Run, recorded: Collection[str]) -> tuple[str, ...]:
    """An attempt that hung in one run and was recorded in another is recorded."""
    notes = {name: note for run in (*reversed(runs), target) for name, note in run.hung().items()}
    for name in notes.keys() & set(recorded):
        (target.root / "quarantine" / "seeds" / f"{name}.json").unlink(missing_ok=True)
    hung = tuple(sorted(notes.keys() - set(recorded)))
    for name in hung:
        note = notes[name]
        target.quarantine_seed(note["task"], note["run_seed"], note["attempt"], note["evidence"])
    return hung


def _merge_reports(runs: Sequence[Run], target: Run) -> None:
    there = target.shard_reports()
    for report in [report for run in runs for report in run.shard_reports() if report not in there]:
        target.note_shard(report)
