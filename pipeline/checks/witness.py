"""An expert under observation: whatever it breaks of its contract is an error, in any env, at any step."""

from collections.abc import Sequence
from dataclasses import fields

import numpy as np

from experts.contract import Action, Expert, View
from pipeline.checks.findings import CheckFailed, finding
from randomization.draws import Draws

FARTHEST_M = 1.2
"""No tool target is further from the robot's base."""

UNIT = 1e-3
"""How far the norm of a quaternion may be from 1."""


class Witness:
    """Passes everything on to an expert and checks it.

    Args:
        task: its id, for messages.
        expert: the expert.
        num_envs: N.

    Raises:
        CheckFailed: from any method, at the first breach.
    """

    def __init__(self, task: str, expert: Expert, num_envs: int) -> None:
        self._task, self._expert, self._num_envs = task, expert, num_envs
        for name in ("phases", "failures"):
            names = getattr(expert, name, None)
            if not (isinstance(names, tuple) and names and all(isinstance(n, str) for n in names)):
                raise finding(task, f"the expert's {name} are {names!r}", "give a tuple of names")
        self.phases, self.failures = expert.phases, expert.failures
        self._step = 0

    def reset(self, view: View, draws: Sequence[Draws], env_ids: Sequence[int]) -> None:
        """See :class:`experts.contract.Expert`."""
        before = _copy(view)
        self._expert.reset(view, draws, env_ids)
        self._unchanged(before, view, "reset")

    def act(self, view: View) -> Action:
        """See :class:`experts.contract.Expert`."""
        before = _copy(view)
        action = self._expert.act(view)
        self._unchanged(before, view, "act")
        self._shapes(action)
        self._values(action)
        self._step += 1
        return action

    def _unchanged(self, before: dict[str, np.ndarray], view: View, method: str) -> None:
        for name, array in before.items():
            if not np.array_equal(array, getattr(view, name), equal_nan=True):
                raise finding(self._task, f"{method} writes to view.{name}", "copy what is to be changed")

    def _shapes(self, action: Action) -> None:
        n = self._num_envs
        wanted = {
            "tool_pos_m": (n, 3),
            "tool_quat_xyzw": (n, 4),
            **dict.fromkeys(("grip", "phase", "done", "failure"), (n,)),
        }
        for name, shape in wanted.items():
            found = np.shape(getattr(action, name))
            if found != shape:
                raise finding(self._task, f"action.{name} has shape {found} for {n} envs", f"return {shape}")

    def _values(self, action: Action) -> None:
        phase = np.asarray(action.phase)
        if phase.dtype.kind not in "iu" or phase.min() < 0 or phase.max() >= len(self.phases):
            raise finding(self._task, f"action.phase is {phase}", f"return whole numbers below {len(self.phases)}")
        norms = np.linalg.norm(action.tool_quat_xyzw, axis=1)
        bad = {
            "tool_pos_m is not finite": ~np.isfinite(action.tool_pos_m).all(1),
            f"tool_pos_m is more than {FARTHEST_M} m from the robot's base": ~(
                np.linalg.norm(action.tool_pos_m, axis=1) <= FARTHEST_M
            ),
            "tool_quat_xyzw has no unit norm": ~(np.abs(norms - 1) <= UNIT),
            "grip is not between 0 and 1": ~((action.grip >= 0) & (action.grip <= 1)),
        }
        for what, envs in bad.items():
            if envs.any():
                raise self._breach(what, int(np.argmax(envs)), phase, "return metres, unit quaternions xyzw, 0 to 1")
        for env, failure in enumerate(action.failure):
            if failure is not None and failure not in self.failures:
                raise self._breach(f"failure is {failure!r}", env, phase, "list every failure in `failures`")

    def _breach(self, what: str, env: int, phase: np.ndarray, remedy: str) -> CheckFailed:
        where = f"in env {env} at step {self._step}, phase {self.phases[int(phase[env])]!r}"
        return finding(self._task, f"action.{what} {where}", remedy)


def _copy(view: View) -> dict[str, np.ndarray]:
    return {field.name: getattr(view, field.name).copy() for field in fields(view)}
