"""One vector an episode, shared by the filters and the plots: motion resampled in time, plus a few scalars."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.spatial.transform import Rotation

from qc.episodes import ACTION, ARM, EEF_POS, EEF_QUAT, GRIPPER, STATE, Episode
from qc.robust import centre_and_spread

CLOSED = 0.5
"""Gripper command above which the gripper counts as told to close."""

_JOINTS = tuple(f"joint_{i}" for i in range(1, 8))
_DIMENSIONS = {
    "eef_position": ("x", "y", "z"),
    "eef_rotation": ("xx", "xy", "yx", "yy", "zx", "zy"),
    "state_arm": _JOINTS,
    "state_gripper": ("closed",),
    "action_arm": _JOINTS,
    "action_gripper": ("closed",),
}
# Scalars, each with the spread below which a difference does not matter.
_RESOLUTION = {
    "length_rows": 1.0,
    "closed_at": 0.01,
    "closed_fraction": 0.01,
    "gripper_changes": 1.0,
    "eef_roughness": 0.1,
    "state_roughness": 0.1,
    "action_roughness": 0.1,
}
# Least spread of a column, as a part of its group's.
_SPREAD_FLOOR = {"state_gripper": 1.0, "action_gripper": 1.0}
_DEFAULT_FLOOR = 0.05
_SMOOTH = 1e-3  # smoother than this is all the same


@dataclass(frozen=True)
class Embedding:
    """Episodes as vectors.

    Attributes:
        ids: episode id of each row.
        tasks: task of each row, (n,) of str.
        matrix: (n, d) float64, in the recorded units.
        columns: name of each column, e.g. ``eef_position.z@0.52`` (at 52 % of the episode's time).
        groups: group of each column, (d,) of str; the columns of a group share a unit.
        resolution: (d,) least spread of each column, in its unit; 0 where the group's own spread decides.
    """

    ids: tuple[str, ...]
    tasks: np.ndarray
    matrix: np.ndarray
    columns: tuple[str, ...]
    groups: np.ndarray
    resolution: np.ndarray

    def standardise(self, within: np.ndarray, reference: np.ndarray) -> np.ndarray:
        """Columns in deviations from their median (:mod:`qc.robust`), so that no unit decides what is unusual.

        Both are those of the reference rows with the same label. A deviation is at least 5 % of the group's (root mean
        square over its columns): a column that is constant but for rounding makes no outliers.
        The gripper's is at least the group's: where only the quickest have closed yet, being quick is no outlier.

        Args:
            within: (n,) labels; rows with equal labels are standardised together.
            reference: (n,) bool, rows that say what is normal.

        Returns:
            (n, d); NaN where a label has no reference row.
        """
        out = np.full_like(self.matrix, np.nan)
        names, group = np.unique(self.groups, return_inverse=True)
        size = np.bincount(group, minlength=len(names))
        floor = np.array([_SPREAD_FLOOR.get(name, _DEFAULT_FLOOR) for name in names])[group]
        for label in np.unique(within):
            rows = within == label
            normal = self.matrix[rows & reference]
            if not len(normal):
                continue
            centre, spread = centre_and_spread(normal)
            typical = np.sqrt(np.bincount(group, spread**2, len(names)) / size)[group]
            scale = np.maximum(spread, np.maximum(floor * typical, self.resolution))
            out[rows] = (self.matrix[rows] - centre) / np.where(scale > 0, scale, 1.0)
        return out


def embed(episodes: Sequence[Episode], points: int = 32) -> Embedding:
    """Embed episodes.

    Tool position and orientation (first two columns of the rotation matrix: continuous, and blind to the sign of the
    quaternion; Zhou et al., 2019), joints and gripper, measured and commanded, each linearly interpolated at
    ``points`` instants spread evenly over the episode. The gripper enters as the part of the episode that it has been
    closed so far: sampled as it is, its step would turn a delay of one frame into a leap.
    Scalars: length; when the gripper was first told to close and for what part of the time it was (fractions of the
    length); how often its command changed; how rough tool, joints and commands move.
    """
    lengths = np.array([e.length for e in episodes], dtype=np.int64)
    signals = _signals(episodes, lengths)
    trajectories = {name: _resample(values, lengths, points) for name, values in signals.items()}
    instants = np.linspace(0.0, 1.0, points)
    columns = [f"{name}.{d}@{t:.2f}" for name, dims in _DIMENSIONS.items() for t in instants for d in dims]
    groups = [name for name, dims in _DIMENSIONS.items() for _ in range(points * len(dims))]
    return Embedding(
        ids=tuple(e.id for e in episodes),
        tasks=np.array([e.task for e in episodes], dtype=object),
        matrix=np.hstack([*trajectories.values(), _scalars(episodes, signals, lengths)]),
        columns=(*columns, *_RESOLUTION),
        groups=np.array([*groups, *["scalars"] * len(_RESOLUTION)]),
        resolution=np.array([*[0.0] * len(columns), *_RESOLUTION.values()]),
    )


def _signals(episodes: Sequence[Episode], lengths: np.ndarray) -> dict[str, np.ndarray]:
    """Rows of all episodes, one under another, by group."""
    if not episodes:
        return {name: np.empty((0, len(dims))) for name, dims in _DIMENSIONS.items()}
    rows = {
        name: np.concatenate([e.frames[name] for e in episodes]).astype(np.float64)
        for name in (EEF_POS, EEF_QUAT, STATE, ACTION)
    }
    return {
        "eef_position": rows[EEF_POS],
        "eef_rotation": Rotation.from_quat(rows[EEF_QUAT]).as_matrix()[:, :, :2].reshape(-1, 6),
        "state_arm": rows[STATE][:, ARM],
        "state_gripper": _closed_so_far(rows[STATE][:, GRIPPER], lengths),
        "action_arm": rows[ACTION][:, ARM],
        "action_gripper": _closed_so_far(rows[ACTION][:, GRIPPER], lengths),
    }


def _closed_so_far(gripper: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Part of the episode spent closed up to and with each row."""
    total = np.cumsum(gripper, axis=0)
    before = np.concatenate([[0.0], total[np.cumsum(lengths)[:-1] - 1, 0]])
    return (total - np.repeat(before, lengths)[:, None]) / np.repeat(lengths, lengths)[:, None]


def _resample(values: np.ndarray, lengths: np.ndarray, points: int) -> np.ndarray:
    """(rows, c) of n episodes to (n, points * c), time-major, by linear interpolation."""
    first = np.cumsum(lengths) - lengths
    at = np.linspace(0.0, 1.0, points) * (lengths - 1)[:, None]
    low = np.floor(at).astype(np.int64)
    high = np.minimum(low + 1, lengths[:, None] - 1)
    weight = (at - low)[..., None]
    low, high = low + first[:, None], high + first[:, None]
    return (values[low] * (1 - weight) + values[high] * weight).reshape(len(lengths), points * values.shape[1])


def _scalars(episodes: Sequence[Episode], signals: dict[str, np.ndarray], lengths: np.ndarray) -> np.ndarray:
    out = np.empty((len(lengths), len(_RESOLUTION)))
    end = np.cumsum(lengths)
    for i, (episode, a, b) in enumerate(zip(episodes, end - lengths, end, strict=True)):
        closed = episode.frames[ACTION][:, 7] > CLOSED
        out[i] = (
            b - a,
            np.argmax(closed) / (b - a) if closed.any() else 1.0,
            closed.mean(),
            np.count_nonzero(np.diff(closed)),
            *(_roughness(signals[name][a:b]) for name in ("eef_position", "state_arm", "action_arm")),
        )
    return out


def _roughness(path: np.ndarray) -> float:
    """Median change of velocity from row to row over the episode's own top speed, log10: what jitter raises."""
    speed = np.linalg.norm(np.diff(path, axis=0), axis=1)
    change = np.linalg.norm(np.diff(path, n=2, axis=0), axis=1)
    top = np.percentile(speed, 95) if len(speed) else 0.0
    return float(np.log10(_SMOOTH + (np.median(change) / top if len(change) and top > 0 else 0.0)))
