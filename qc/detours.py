"""How far the tool strays from the straight way between the moments at which the gripper acts."""

from itertools import pairwise

import numpy as np

from qc.episodes import EEF_POS, Episode

_SHORT = 0.05


def stray(episode: Episode, reach_m: float) -> np.ndarray:
    """How far (length, 2) the tool is off the straight line, to its left as seen from above and upwards.

    The lines run from the first row to each change of the gripper's command and to the last row. Where parts are placed
    at random, positions say little of a detour and these distances say all; they are 0 where a line is shorter than a
    twentieth of ``reach_m``, the range over which the tool moves.
    """
    position = episode.frames[EEF_POS][:, :2].astype(np.float64)
    height = episode.frames[EEF_POS][:, 2].astype(np.float64)
    commanded = episode.commanded
    changes = np.flatnonzero((commanded[1:] != commanded[:-1]).any(axis=1)) + 1
    marks = np.unique(np.r_[0, changes, episode.length - 1])
    out = np.zeros((episode.length, 2))
    for a, b in pairwise(marks.tolist()):
        line = position[b] - position[a]
        long = np.linalg.norm(line)
        if long > _SHORT * reach_m:
            off = position[a : b + 1] - position[a]
            out[a : b + 1, 0] = (line[0] * off[:, 1] - line[1] * off[:, 0]) / long
            along = np.clip(off @ line / long**2, 0.0, 1.0)
            out[a : b + 1, 1] = height[a : b + 1] - height[a] - along * (height[b] - height[a])
    return out
