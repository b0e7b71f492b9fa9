"""The phase machine that experts share: every env is in one phase; measured conditions move it on.

A phase ends when its exit condition is measured, never by a clock; its time-out names the failure.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from experts.contract import Action, View
from randomization.draws import Draws


@dataclass(frozen=True)
class Phase:
    """One phase of an expert.

    Attributes:
        name: as recorded.
        timeout_steps: control steps after which the attempt has failed.
        failure: name of that failure.
    """

    name: str
    timeout_steps: int
    failure: str


Handler = Callable[[View, np.ndarray], np.ndarray]
"""``handler(view, ids) -> next phase of each of these envs``; it edits the commands of ``ids`` in place."""


class PhaseMachine:
    """Base of the experts.

    Subclasses list :class:`Phase` in ``table``, in order, and return a handler for each name from
    :meth:`handlers`. ``pos`` (N, 3), ``quat`` (N, 4) xyzw and ``grip`` (N,) are the standing commands.
    Failures that handlers name, beside those of the table, are listed in ``other_failures``.
    """

    table: tuple[Phase, ...]
    other_failures: tuple[str, ...] = ()

    def __init__(self, num_envs: int) -> None:
        self.phases = tuple(phase.name for phase in self.table)
        self.failures = tuple(dict.fromkeys((*(phase.failure for phase in self.table), *self.other_failures)))
        self.phase: np.ndarray = np.zeros(num_envs, int)
        self.steps_in_phase: np.ndarray = np.zeros(num_envs, int)
        self.pos = np.zeros((num_envs, 3))
        self.quat = np.tile([1.0, 0.0, 0.0, 0.0], (num_envs, 1))
        self.grip = np.zeros(num_envs)
        self._failure = np.full(num_envs, None, object)
        self._timeouts = np.array([phase.timeout_steps for phase in self.table])
        self._handlers = tuple(self.handlers()[name] for name in self.phases)

    def handlers(self) -> Mapping[str, Handler]:
        """Handler of every phase, by name."""
        raise NotImplementedError

    def index(self, name: str) -> int:
        """Number of a phase."""
        return self.phases.index(name)

    def fail(self, ids: np.ndarray, failure: str) -> None:
        """Give up on these envs; the first failure stands."""
        for env in ids:
            self._failure[env] = self._failure[env] or failure

    def reset(self, view: View, draws: Sequence[Draws], env_ids: Sequence[int]) -> None:
        """Start an episode in these envs: first phase, commands as measured, gripper open."""
        ids = np.asarray(env_ids)
        self.phase[ids] = 0
        self.steps_in_phase[ids] = 0
        self.pos[ids] = view.tool_pos_m[ids]
        self.quat[ids] = view.tool_quat_xyzw[ids]
        self.grip[ids] = 0.0
        self._failure[ids] = None

    def act(self, view: View) -> Action:
        """Run the handler of each env's phase, then move those on whose exit was measured."""
        shown = self.phase.copy()
        following = shown.copy()
        for number, handler in enumerate(self._handlers):
            ids = np.flatnonzero(shown == number)
            if ids.size:
                following[ids] = handler(view, ids)
        last = len(self.table) - 1
        moved = following != shown
        self.steps_in_phase = np.where(moved, 0, self.steps_in_phase + 1)
        late = ~moved & (self.steps_in_phase >= self._timeouts[shown])
        for env in np.flatnonzero(late):
            self.fail(np.array([env]), self.table[shown[env]].failure)
        self.phase = np.minimum(following, last)
        done = (following > last) | np.array([failure is not None for failure in self._failure])
        return Action(self.pos.copy(), self.quat.copy(), self.grip.copy(), shown, done, self._failure.copy())

    def stay_or(self, ids: np.ndarray, leave: np.ndarray, to: str | None = None) -> np.ndarray:
        """Next phase of ``ids``: the following one (or ``to``) where ``leave`` holds, else the present one."""
        target = self.phase[ids] + 1 if to is None else np.full(len(ids), self.index(to))
        return np.where(leave, target, self.phase[ids])
