"""When an assembly counts: the seat check with its hold, and the dense score. Batched over envs."""

import numpy as np
from scipy.spatial.transform import Rotation

from pipeline.tasks import Task

GRASPED_M = 0.001
"""A part that has risen this far off its rest has been grasped."""

THREAD_START_RAD = 0.3
LIFTED_M = 0.030

LIFTED, ENGAGED, THREAD_START, SUCCESS = 0.5, 0.4, 1.5, 2.0
"""Milestones of the dense score, each paid once."""

APPROACH, ALIGN, DEPTH, THREADING = 0.2, 0.3, 0.5, 0.8
"""Potentials of the dense score: their new best is paid."""

APPROACH_FALLOFF_M, ALIGN_FALLOFF_M = 0.15, 0.10


def seat_target(task: Task, fixed_pos_m: np.ndarray, fixed_quat_xyzw: np.ndarray) -> np.ndarray:
    """Where the held part's base point belongs, (N, 3), env-local."""
    return fixed_pos_m + Rotation.from_quat(fixed_quat_xyzw).apply(np.array(task.seat.offset_m))


class Judge:
    """Follows N envs of one task: seated for long enough, and the reward of each control step.

    Attributes:
        success: (N,) the seat check has held for ``hold_steps`` control steps up to now.
        broken_limit: (N,) name of the limit on penetration, force or speed that the episode has broken, else None.
        score: (N,) dense score so far, 0 to 1; 1 once successful.
    """

    def __init__(self, task: Task, num_envs: int) -> None:
        self.task = task
        self._nut = task.family == "nut"
        self._best_possible = LIFTED + ENGAGED + APPROACH + ALIGN + DEPTH
        self._best_possible += (THREAD_START + THREADING) if self._nut else 0.0
        self._streak: np.ndarray = np.zeros(num_envs, int)
        self._banked = np.zeros(num_envs)
        self._start_z = np.zeros(num_envs)
        self._yaw = np.zeros(num_envs)
        self._turned = np.zeros(num_envs)
        self._risen: np.ndarray = np.zeros(num_envs, bool)
        self._paid = {name: np.zeros(num_envs, bool) for name in ("lifted", "engaged", "thread", "success")}
        potentials = ("approach", "align", "depth", "threading")
        self._base: dict[str, np.ndarray] = {name: np.full(num_envs, np.nan) for name in potentials}
        self._best = {name: np.zeros(num_envs) for name in self._base}
        self._ever = np.zeros(num_envs, bool)
        self._penetration_m, self._force_n, self._top_speed_m_s = (np.zeros(num_envs) for _ in range(3))

    @property
    def success(self) -> np.ndarray:
        """See the class."""
        return self._streak >= self.task.seat.hold_steps

    @property
    def broken_limit(self) -> np.ndarray:
        """See the class."""
        seat = self.task.seat
        broken = np.full(len(self._streak), None, object)
        broken[self._top_speed_m_s > seat.top_speed_m_s] = "speed_over_limit"
        broken[self._force_n > seat.max_force_n] = "force_over_limit"
        broken[self._penetration_m > seat.max_penetration_m] = "penetration_over_limit"
        return broken

    @property
    def score(self) -> np.ndarray:
        """See the class."""
        return np.where(self._ever, 1.0, 0.9 * self._banked / self._best_possible)

    def reset(self, env_ids: np.ndarray, held_pos_m: np.ndarray, held_quat_xyzw: np.ndarray) -> None:
        """Start an episode in ``env_ids``; poses are of all N envs."""
        ids = np.asarray(env_ids)
        self._streak[ids], self._banked[ids], self._turned[ids], self._ever[ids] = 0, 0.0, 0.0, False
        self._penetration_m[ids], self._force_n[ids], self._top_speed_m_s[ids] = 0.0, 0.0, 0.0
        self._start_z[ids], self._risen[ids] = held_pos_m[ids, 2], False
        self._yaw[ids] = _yaw(held_quat_xyzw)[ids]
        for paid in self._paid.values():
            paid[ids] = False
        for name in self._base:
            self._base[name][ids], self._best[name][ids] = np.nan, 0.0

    def update(
        self,
        held_pos_m: np.ndarray,
        held_quat_xyzw: np.ndarray,
        fixed_pos_m: np.ndarray,
        fixed_quat_xyzw: np.ndarray,
        held_speed_m_s: np.ndarray,
        tool_pos_m: np.ndarray,
        finger_closed: np.ndarray,
        penetration_m: np.ndarray,
        stray_penetration_m: np.ndarray,
        force_n: np.ndarray,
        top_speed_m_s: np.ndarray,
    ) -> np.ndarray:
        """Take in the state after a control step; returns its reward (N,).

        Args:
            held_pos_m, held_quat_xyzw, fixed_pos_m, fixed_quat_xyzw: part poses, (N, 3) and (N, 4).
            held_speed_m_s: (N,) linear speed of the held part, now.
            tool_pos_m: (N, 3) tool centre.
            finger_closed: (N,) 0 open to 1 closed.
            penetration_m, force_n: (N,) worst between held and fixed part during the control step.
            stray_penetration_m: (N,) deepest of the held part into anything else rigid; counted after the grasp.
            top_speed_m_s: (N,) largest linear speed of the held part during the control step.
        """
        seat, rules = self.task.seat, self.task.score
        error = held_pos_m - seat_target(self.task, fixed_pos_m, fixed_quat_xyzw)
        aside, gap = np.linalg.norm(error[:, :2], axis=1), error[:, 2]
        engaged = (aside < seat.max_xy_m) & (gap < rules.engage_gap_m)
        yaw = _yaw(held_quat_xyzw)
        self._turned += np.where(engaged, np.abs((yaw - self._yaw + np.pi) % (2 * np.pi) - np.pi), 0.0)
        self._yaw = yaw
        seated = (aside < seat.max_xy_m) & (gap < seat.max_gap_m) & (gap > seat.min_gap_m)
        seated &= held_speed_m_s < seat.max_speed_m_s
        seated &= Rotation.from_quat(held_quat_xyzw).as_matrix()[:, 2, 2] >= seat.min_upright_cos
        seated &= finger_closed < seat.max_finger_closed
        seated &= self._turned >= seat.min_thread_turn_rad
        rise = held_pos_m[:, 2] - self._start_z
        self._risen |= rise > GRASPED_M
        deepest = np.maximum(penetration_m, np.where(self._risen, stray_penetration_m, 0.0))
        self._penetration_m = np.maximum(self._penetration_m, deepest)
        self._force_n = np.maximum(self._force_n, force_n)
        self._top_speed_m_s = np.maximum(self._top_speed_m_s, top_speed_m_s)
        seated &= (self._penetration_m <= seat.max_penetration_m) & (self._force_n <= seat.max_force_n)
        seated &= self._top_speed_m_s <= seat.top_speed_m_s
        self._streak = np.where(seated, self._streak + 1, 0)
        self._ever |= self.success
        lifted = self._paid["lifted"] | (rise > LIFTED_M)
        reward = self._milestone("lifted", lifted, LIFTED)
        reward += self._milestone("engaged", lifted & engaged, ENGAGED)
        reach = np.linalg.norm(tool_pos_m - held_pos_m, axis=1)
        reward += self._potential("approach", 1 - np.tanh(reach / APPROACH_FALLOFF_M), ~lifted, APPROACH)
        reward += self._potential("align", 1 - np.tanh(aside / ALIGN_FALLOFF_M), lifted, ALIGN)
        reward += self._potential("depth", 1 - np.clip(gap / rules.depth_m, 0, 1), lifted & engaged, DEPTH, base=0.0)
        if self._nut:
            reward += self._milestone("thread", engaged & (self._turned > THREAD_START_RAD), THREAD_START)
            turns = np.clip(self._turned / (2 * np.pi * rules.thread_turns), 0, 1)
            reward += self._potential("threading", turns, engaged, THREADING, base=0.0)
        self._banked += reward
        return reward + self._milestone("success", self.success, SUCCESS)

    def _milestone(self, name: str, reached: np.ndarray, worth: float) -> np.ndarray:
        new = reached & ~self._paid[name]
        self._paid[name] |= new
        return np.where(new, worth, 0.0)

    def _potential(
        self, name: str, value: np.ndarray, counts: np.ndarray, worth: float, base: float | None = None
    ) -> np.ndarray:
        """Pay the rise of a potential over its best, scaled so that going from its first value to 1 pays ``worth``."""
        first = np.isnan(self._base[name]) & counts
        self._base[name] = np.where(first, value if base is None else base, self._base[name])
        start = self._base[name]
        progress = np.where(counts, (value - start) / np.maximum(1 - start, 1e-9), 0.0)
        rise = np.maximum(np.nan_to_num(progress) - self._best[name], 0.0)
        self._best[name] += rise
        return worth * rise


def _yaw(quat_xyzw: np.ndarray) -> np.ndarray:
    x, y, z, w = np.asarray(quat_xyzw).T
    yaw: np.ndarray = np.arctan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z))
    return yaw
