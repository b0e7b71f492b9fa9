"""Whether the decisive moments of an episode, letting go and ending, happen where and when they do in the others."""

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from scipy.spatial.transform import Rotation

from qc.episodes import ACTION, EEF_POS, FIXED_POSE, HELD_POSE, STATE, Episode
from qc.filters.features import FeatureFilter
from qc.units import reach

_ROWS_AFTER = 8
_ARRIVED = 0.02
_WAYS = ("way after release", "speed at release")
_FINE = 0.005
"""Least deviation of a position, as a part of the range over which the tool moves."""


def release_row(episode: Episode) -> int | None:
    """Row at which a gripper is last told to return to where it began; None if it never is."""
    commanded = episode.commanded
    returns = (commanded[1:] == commanded[:1]) & (commanded[:-1] != commanded[:1])
    rows = np.flatnonzero(returns.any(axis=1))
    return int(rows[-1]) + 1 if len(rows) else None


class ReleaseFilter(FeatureFilter):
    """Early and late release.

    Looked at are how many rows later the arm is where it ends (waiting there is no fault), how far it still goes in the
    eight rows after the release, how fast it goes at the time, and, where the parts' poses are recorded, how far the
    held part is from where it ends.
    """

    name: ClassVar[str] = "release"

    def _prepare(self, normal: Sequence[Episode]) -> tuple[tuple[str, ...], np.ndarray]:
        if np.mean([release_row(e) is not None for e in normal]) < 0.9:
            return (), np.zeros(0)
        self.path_, self.reach_ = _frame_of(normal)
        if not self.path_:
            return (), np.zeros(0)
        names, resolution = ["rows to the end of the motion", *_WAYS], [1.0, _FINE, _FINE / 4]
        if self.path_ == EEF_POS and all(HELD_POSE in e.frames for e in normal):
            names.append("way of the held part after release")
            resolution.append(_FINE)
        return tuple(names), np.array(resolution)

    def _measure(self, episodes: Sequence[Episode]) -> np.ndarray:
        return np.array([self._features(e)[: len(self.names_)] for e in episodes])

    def _features(self, episode: Episode) -> list[float]:
        row = release_row(episode)
        row = episode.length - 1 if row is None else row
        path = _path(episode, self.path_) / self.reach_
        away = np.flatnonzero(np.linalg.norm(path - path[-1], axis=1) > _ARRIVED)
        later, before = min(row + _ROWS_AFTER, episode.length - 1), max(row - 1, 0)
        found = [
            float(away[-1] + 1 - row) if len(away) else 0.0,
            float(np.linalg.norm(path[later] - path[row])),
            float(np.linalg.norm(path[row] - path[before])),
        ]
        if HELD_POSE in episode.frames and self.path_ == EEF_POS:
            held = episode.frames[HELD_POSE][:, :3].astype(np.float64) / self.reach_
            found.append(float(np.linalg.norm(held[-1] - held[row])))
        return found

    def _tell(self, episode: Episode, worst: int) -> tuple[str, dict[str, Any]]:
        row, value = release_row(episode), self._features(episode)[worst]
        if row is None:
            return "never lets go", {}
        shown = f"{value:.0f}" if worst == 0 else f"{value:.2%} of its range"
        told = f"lets go at frame {row}: {self.names_[worst]} {shown} (median {self.centre_[worst]:.3g})"
        return told, {"frame": row}


class EndPoseFilter(FeatureFilter):
    """Wrong end pose: where the tool is when it lets go and at the end.

    Where the parts' poses are recorded, tool and held part are measured from the fixed part, in its own axes; where
    they are not, from the world and from the place of the release: a goal that is drawn at random then hides an error
    that is smaller than its range.
    """

    name: ClassVar[str] = "end_pose"

    def _prepare(self, normal: Sequence[Episode]) -> tuple[tuple[str, ...], np.ndarray]:
        self.path_, self.reach_ = _frame_of(normal)
        if not self.path_:
            return (), np.zeros(0)
        self.relative_ = self.path_ == EEF_POS and all({HELD_POSE, FIXED_POSE} <= set(e.frames) for e in normal)
        size = 3 if self.path_ == EEF_POS else normal[0].arm(self.path_).shape[1]
        axes = "xyz" if size == 3 else [f"joint {i + 1}" for i in range(size)]
        whats = ["tool at the release", "tool at the end"]
        whats += ["held part at the end"] if self.relative_ else ["way from release to end"]
        names = tuple(f"{what}, {axis}" for what in whats for axis in axes)
        return names, np.full(len(names), _FINE)

    def _measure(self, episodes: Sequence[Episode]) -> np.ndarray:
        released = [e.length - 1 if (row := release_row(e)) is None else row for e in episodes]
        paths = [_path(e, self.path_) for e in episodes]
        release, end = (
            np.array([p[row] for p, row in zip(paths, released, strict=True)]),
            np.array([p[-1] for p in paths]),
        )
        if not self.relative_:
            return np.hstack([release, end, end - release]) / np.tile(self.reach_, 3)
        held = np.array([e.frames[HELD_POSE][-1, :3] for e in episodes], dtype=np.float64)
        goal = np.array([e.frames[FIXED_POSE][-1] for e in episodes])
        goal_then = np.array([e.frames[FIXED_POSE][row] for e, row in zip(episodes, released, strict=True)])
        seen = [_seen_from(goal_then, release), _seen_from(goal, end), _seen_from(goal, held)]
        return np.hstack(seen) / self.reach_[0]

    def _tell(self, episode: Episode, worst: int) -> tuple[str, dict[str, Any]]:
        value = float(self._measure([episode])[0, worst])
        seen = " from the fixed part" if self.relative_ else ""
        off = value - self.centre_[worst]
        return f"{self.names_[worst]}{seen} is {abs(off):.1%} of the arm's range off", {"off": float(off)}


def _seen_from(poses: np.ndarray, positions: np.ndarray) -> np.ndarray:
    """Positions (n, 3) in the axes of poses (n, 7), metres and xyzw."""
    at = poses.astype(np.float64)
    return np.asarray(Rotation.from_quat(at[:, 3:]).apply(positions - at[:, :3], inverse=True))


def _frame_of(normal: Sequence[Episode]) -> tuple[str, np.ndarray]:
    """Column in which the arm's way is measured, and the range of each of its dimensions."""
    for column in (EEF_POS, STATE, ACTION):
        if all(column in e.frames for e in normal):
            size = reach(np.concatenate([_path(e, column) for e in normal]))
            if len(size):
                return column, np.full(3, size.max()) if column == EEF_POS else size
    return "", np.ones(0)


def _path(episode: Episode, column: str) -> np.ndarray:
    values = episode.frames[column] if column == EEF_POS else episode.arm(column)
    return values.astype(np.float64)
