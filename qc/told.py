"""Which dimensions and rows of an episode an explanation speaks of, so that they can be drawn."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from qc.episodes import ACTION, EEF_POS, STATE, Episode

_ROWS = re.compile(r"(?:at frame |\(rows )(\d+)(?: to (\d+)\))?")
_JOINT = re.compile(r", joint (\d+)(?: from the fixed part)? is ")
_AXIS = re.compile(r"^(?:tool|held part|way).*, ([xyz])(?: from the fixed part)? is ")
_EMBEDDED = {"eef_position": EEF_POS, "state_arm": STATE, "action_arm": ACTION}


@dataclass(frozen=True)
class Told:
    """A dimension of an episode.

    Attributes:
        column: of the episode.
        dim: in the column.
        rows: the first and the last row that are spoken of, if any are.
        closely: whether it happens from one row to the next.
    """

    column: str
    dim: int
    rows: tuple[int, int] | None = None
    closely: bool = False


def told(episode: Episode, explanation: str) -> list[Told]:
    """What an explanation, as in the table of verdicts, speaks of, in its order; each dimension once."""
    found: dict[tuple[str, int], Told] = {}
    for sentence in explanation.split("; "):
        place, rows = _dimension(episode, sentence), _rows(episode, sentence)
        if place is None and rows is not None:
            place = usual_dimensions(episode)[0]
        if place is not None and place not in found:
            found[place] = Told(*place, rows, " leaps " in sentence)
    return list(found.values())


def usual_dimensions(episode: Episode) -> list[tuple[str, int]]:
    """What tells most of an episode: the tool's height, or the joint that moves farthest; then the gripper."""
    column = STATE if STATE in episode.frames else ACTION
    arm = episode.layout.arm(column) or tuple(range(episode.frames[column].shape[1]))
    far = [float(np.ptp(episode.frames[column][:, i])) for i in arm]
    first = (EEF_POS, 2) if EEF_POS in episode.frames else (column, arm[int(np.argmax(far))])
    return [first, *((column, i) for i in episode.layout.grippers.get(column, ())[:1])]


def label(episode: Episode, column: str, dim: int) -> str:
    """Name of a dimension, with its unit where it is known."""
    if column == EEF_POS:
        return f"tool {'xyz'[dim]}, m"
    return f"{column.rpartition('.')[2]} {episode.layout.names[column][dim]}"


def _rows(episode: Episode, sentence: str) -> tuple[int, int] | None:
    if not (match := _ROWS.search(sentence)):
        return None
    first, last = int(match[1]), int(match[2] or match[1])
    return (first, last) if last < episode.length else None


def _dimension(episode: Episode, sentence: str) -> tuple[str, int] | None:
    names = {(column, dim): name for column in (STATE, ACTION, EEF_POS) for dim, name in _names(episode, column)}
    for (column, dim), name in names.items():
        if sentence.startswith((f"{column}, {name} leaps ", f"{column}, {name} trembles ")):
            return column, dim
    if "lets go" in sentence:
        return next(((c, g[0]) for c in (ACTION, STATE) if (g := episode.layout.grippers.get(c))), None)
    if (match := _AXIS.search(sentence)) and EEF_POS in episode.frames:
        return EEF_POS, "xyz".index(match[1])
    if match := _JOINT.search(sentence):
        return _joint(episode, int(match[1]) - 1)
    spots = {
        sentence.find(f"{group}.{name}@"): (column, dim)
        for group, column in _EMBEDDED.items()
        for dim, name in _names(episode, column)
    }
    spots.pop(-1, None)
    return spots[min(spots)] if spots else None


def _joint(episode: Episode, number: int) -> tuple[str, int] | None:
    column = STATE if STATE in episode.frames else ACTION
    arm = episode.layout.arm(column)
    return (column, arm[number]) if number < len(arm) else None


def _names(episode: Episode, column: str) -> Sequence[tuple[int, str]]:
    if column not in episode.frames:
        return []
    return list(enumerate("xyz" if column == EEF_POS else episode.layout.names[column]))
