"""One vector an episode, shared by the filters and the plots: motion resampled in time, plus a few scalars."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from scipy.spatial.transform import Rotation

from qc.detours import stray
from qc.episodes import ACTION, EEF_POS, EEF_QUAT, STATE, Episode
from qc.loops import without_loops
from qc.robust import centre_and_spread
from qc.smoothness import roughness, spectral_arc_length
from qc.timing import instants
from qc.units import bounds, moving, reach, stack

_ROTATION = ("xx", "xy", "yx", "yy", "zx", "zy")
# Scalars, each with the spread below which a difference does not matter.
_RESOLUTION = {
    "length_rows": 1.0,
    "closed_at": 0.01,
    "closed_fraction": 0.01,
    "gripper_changes": 1.0,
    "path_length": 0.05,
    "roughness": 0.1,
    "action_roughness": 0.1,
    "spectral_arc_length": 0.1,
}
_COARSE = {"eef_stray": 0.01}
# Least spread of a column, as a part of its group's.
_SPREAD_FLOOR = {"state_gripper": 1.0, "action_gripper": 1.0, "eef_rotation": 0.25}
_DEFAULT_FLOOR = 0.05


@dataclass(frozen=True)
class Embedding:
    """Episodes as vectors.

    Attributes:
        ids: episode id of each row.
        tasks: task of each row, (n,) of str.
        matrix: (n, d) float64, in the recorded units.
        columns: name of each column, e.g. ``eef_position.z@0.52`` (at 52 % of the episode's time).
        groups: group of each column, (d,) of str.
        unit: (d,) size of each column's dimension over the whole set, in its unit (:func:`qc.units.reach`).
        resolution: (d,) least spread of each column, in ``unit``; 0 where the group's own spread decides.
    """

    ids: tuple[str, ...]
    tasks: np.ndarray
    matrix: np.ndarray
    columns: tuple[str, ...]
    groups: np.ndarray
    unit: np.ndarray
    resolution: np.ndarray

    def standardise(self, within: np.ndarray, reference: np.ndarray) -> np.ndarray:
        """Columns in deviations from their median (:mod:`qc.robust`), so that no unit decides what is unusual.

        Both are those of the reference rows with the same label. A deviation is at least 5 % of the group's (root mean
        square over its columns): a column that is constant but for rounding makes no outliers.
        The gripper's is at least the group's: where only the quickest have closed yet, being quick is no outlier. A
        rotation's is at least a quarter of it: a small turn moves some columns by no more than its square.

        Args:
            within: (n,) labels; rows with equal labels are standardised together.
            reference: (n,) bool, rows that say what is normal.

        Returns:
            (n, d); NaN where a label has no reference row.
        """
        matrix = self.matrix / self.unit
        out = np.full_like(matrix, np.nan)
        names, group = np.unique(self.groups, return_inverse=True)
        size = np.bincount(group, minlength=len(names))
        floor = np.array([_SPREAD_FLOOR.get(name, _DEFAULT_FLOOR) for name in names])[group]
        for label in np.unique(within):
            rows = within == label
            normal = matrix[rows & reference]
            if not len(normal):
                continue
            centre, spread = centre_and_spread(normal)
            typical = np.sqrt(np.bincount(group, spread**2, len(names)) / size)[group]
            scale = np.maximum(spread, np.maximum(floor * typical, self.resolution))
            out[rows] = (matrix[rows] - centre) / np.where(scale > 0, scale, 1.0)
        return out


def embed(episodes: Sequence[Episode], points: int = 32) -> Embedding:
    """Embed episodes.

    Tool position, how far it strays from straight ways (:func:`qc.detours.stray`), and orientation where they are
    recorded (first two columns of the rotation matrix: continuous, and blind to the sign of the quaternion; Zhou et
    al., 2019), joints and gripper, measured and commanded, each linearly interpolated at ``points`` instants
    (:func:`qc.timing.instants`) of the episode without its loops (:mod:`qc.loops`). Dimensions that move in no episode
    are left out.
    The gripper enters as the part of the episode that it has been closed so far: sampled as it is, its step would turn
    a delay of one frame into a leap.
    Scalars: length; when the gripper was first told to close and for what part of the time it was (fractions of the
    length); how often its command changed; length of the path, of the tool or else of the joints; how rough it and the
    commands move, and the spectral arc length of its speed (Balasubramanian et al., 2015).
    """
    episodes = without_loops(episodes)
    lengths = np.array([e.length for e in episodes], dtype=np.int64)
    signals, dims, unit = _signals(episodes, lengths)
    at = instants(episodes, points)
    trajectories = [_resample(values, lengths, at) for values in signals.values()]
    shares = np.linspace(0.0, 1.0, points)
    columns = [f"{name}.{d}@{t:.2f}" for name in signals for t in shares for d in dims[name]]
    groups = [name for name in signals for _ in range(points * len(dims[name]))]
    units = [np.tile(unit[name], points) for name in signals]
    scalars = np.ones(len(_RESOLUTION))
    return Embedding(
        ids=tuple(e.id for e in episodes),
        tasks=np.array([e.task for e in episodes], dtype=object),
        matrix=np.hstack([*trajectories, _scalars(episodes, signals, unit, lengths)]),
        columns=(*columns, *_RESOLUTION),
        groups=np.array([*groups, *["scalars"] * len(_RESOLUTION)]),
        unit=np.concatenate([*units, scalars]),
        resolution=np.array([*(_COARSE.get(name, 0.0) for name in groups), *_RESOLUTION.values()]),
    )


_Signals = Mapping[str, np.ndarray]


def _signals(
    episodes: Sequence[Episode], lengths: np.ndarray
) -> tuple[dict[str, np.ndarray], dict[str, tuple[str, ...]], dict[str, np.ndarray]]:
    """Rows of all episodes, one under another, by group; the names of the dimensions; and their sizes."""
    signals: dict[str, np.ndarray] = {}
    dims: dict[str, tuple[str, ...]] = {}
    unit: dict[str, np.ndarray] = {}

    def add(name: str, values: np.ndarray, names: Sequence[str], size: np.ndarray) -> None:
        if values.shape[1]:
            signals[name], dims[name], unit[name] = values, tuple(names), size

    if not episodes:
        return signals, dims, unit
    layout = episodes[0].layout
    succeeded = np.array([e.succeeded for e in episodes])
    normal = np.repeat(succeeded if succeeded.any() else ~succeeded, lengths)
    if all(EEF_POS in e.frames and EEF_QUAT in e.frames for e in episodes):
        position = np.concatenate([e.frames[EEF_POS] for e in episodes], dtype=np.float64)
        size = float(reach(position, normal).max())
        add("eef_position", position, "xyz", np.full(3, size))
        add("eef_stray", np.concatenate([stray(e, size) for e in episodes]), ("off", "up"), np.full(2, size))
        quaternions = np.concatenate([e.frames[EEF_QUAT] for e in episodes], dtype=np.float64)
        columns = Rotation.from_quat(quaternions).as_matrix()[:, :, :2].reshape(-1, 6)
        add("eef_rotation", columns, _ROTATION, np.ones(6))
    for column, name in ((STATE, "state"), (ACTION, "action")):
        if column not in layout.names:
            continue
        arm = stack(episodes, column)
        driven = moving(arm, lengths)
        names = np.array([layout.names[column][i] for i in layout.arm(column)], dtype=object)[driven]
        arm = arm[:, driven]
        add(f"{name}_arm", arm, names, reach(arm, normal))
        gripper = np.concatenate([e.gripper(column) for e in episodes])
        closed = ["closed"] if gripper.shape[1] == 1 else [f"closed_{i}" for i in range(gripper.shape[1])]
        add(f"{name}_gripper", _closed_so_far(gripper, lengths), closed, np.ones(len(closed)))
    return signals, dims, unit


def _closed_so_far(gripper: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Part of the episode spent closed up to and with each row."""
    total = np.cumsum(gripper, axis=0)
    before = np.vstack([np.zeros((1, gripper.shape[1])), total[np.cumsum(lengths)[:-1] - 1]])
    return (total - np.repeat(before, lengths, axis=0)) / np.repeat(lengths, lengths)[:, None]


def _resample(values: np.ndarray, lengths: np.ndarray, at: np.ndarray) -> np.ndarray:
    """(rows, c) of n episodes to (n, points * c), time-major, by linear interpolation at rows (n, points)."""
    first = bounds(lengths)[:-1, None]
    low = np.floor(at).astype(np.int64)
    high = np.minimum(low + 1, lengths[:, None] - 1)
    weight = (at - low)[..., None]
    sampled = values[low + first] * (1 - weight) + values[high + first] * weight
    return sampled.reshape(len(lengths), at.shape[1] * values.shape[1])


def _scalars(episodes: Sequence[Episode], signals: _Signals, unit: _Signals, lengths: np.ndarray) -> np.ndarray:
    out = np.zeros((len(lengths), len(_RESOLUTION)))
    arm = next((name for name in ("eef_position", "state_arm", "action_arm") if name in signals), "")
    moved = signals[arm] / unit[arm] if arm else np.zeros((lengths.sum(), 1))
    told = signals["action_arm"] / unit["action_arm"] if "action_arm" in signals else moved
    (speed, change), (told_speed, told_change) = _speeds(moved), _speeds(told)
    for i, (episode, (a, b)) in enumerate(zip(episodes, pairwise(bounds(lengths).tolist()), strict=True)):
        ways, turns = slice(a, max(a, b - 1)), slice(a, max(a, b - 2))
        closed = episode.commanded
        ever = closed.any(axis=1)
        out[i] = (
            episode.length,
            np.argmax(ever) / episode.length if ever.any() else 1.0,
            closed.mean() if closed.size else 0.0,
            np.count_nonzero(closed[1:] != closed[:-1]),
            speed[ways].sum(),
            roughness(speed[ways], change[turns]),
            roughness(told_speed[ways], told_change[turns]),
            spectral_arc_length(speed[ways]),
        )
    return out


def _speeds(path: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Way from each row (n, k) to the next, (n - 1,), and by how much that changes from one to the next, (n - 2,)."""
    way = np.diff(path, axis=0)
    turn = np.diff(way, axis=0)
    return np.sqrt(np.einsum("nk,nk->n", way, way)), np.sqrt(np.einsum("nk,nk->n", turn, turn))
