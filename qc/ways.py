"""In which of a few clearly different ways episodes take hold of the part."""

from collections.abc import Sequence

import numpy as np
from scipy.spatial.transform import Rotation

from qc.episodes import EEF_QUAT, Episode

_APART_RAD = 0.7
_LEAST = 2


def ways_to_take_hold(episodes: Sequence[Episode], within: np.ndarray) -> np.ndarray:
    """Group (n,) of each episode by the tool's turn about the vertical when the gripper is first told to act.

    An expert that turns its hand where parts lie too close together does so seldom, and rightly: such episodes can be
    compared with each other alone. Groups lie more than 40 degrees apart and are numbered from the largest, 0. Episodes
    that are alone there, that never act, or whose tool is not recorded are in group 0, as are all where turns leave
    fewer than two such gaps around the circle.

    Args:
        within: (n,) labels; episodes with equal labels are grouped together.
    """
    ways = np.zeros(len(episodes), dtype=np.int64)
    turned = [_turned(e) for e in episodes]
    there = np.array([q is not None for q in turned], dtype=bool)
    for name in np.unique(within[there]) if there.any() else ():
        mine = np.flatnonzero(there & (within == name))
        ways[mine] = _groups(_headings(np.array([turned[i] for i in mine])))
    return ways


def _turned(episode: Episode) -> np.ndarray | None:
    commanded = episode.commanded
    acts = (commanded != commanded[:1]).any(axis=1)
    if EEF_QUAT not in episode.frames or not acts.any():
        return None
    quaternion = episode.frames[EEF_QUAT][int(acts.argmax())].astype(np.float64)
    return quaternion if np.linalg.norm(quaternion) > 0 else None


def _headings(quaternions: np.ndarray) -> np.ndarray:
    """Turn (n,) about the vertical from the mean of rotations (n, 4), in radians."""
    rotations = Rotation.from_quat(quaternions)
    away = (rotations * rotations.mean().inv()).as_quat()
    return np.asarray(2 * np.arctan2(away[:, 2], away[:, 3]))


def _groups(headings: np.ndarray) -> np.ndarray:
    around = np.mod(headings, 2 * np.pi)
    order = np.argsort(around, kind="stable")
    gaps = np.diff(around[order], append=around[order[0]] + 2 * np.pi)
    starts = np.r_[False, gaps[:-1] > _APART_RAD]
    group = np.cumsum(starts)
    if gaps[-1] <= _APART_RAD:  # around the circle the last go on with the first
        group[group == group[-1]] = 0
    _, group, size = np.unique(group, return_inverse=True, return_counts=True)
    number = np.zeros(len(size), dtype=np.int64)
    number[np.argsort(-size, kind="stable")] = np.arange(len(size))
    out = np.empty(len(headings), dtype=np.int64)
    out[order] = np.where(size >= _LEAST, number, 0)[group]
    return out
