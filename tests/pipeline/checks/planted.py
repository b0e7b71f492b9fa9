"""Experts with one defect each; in a module, so that a worker process can import them."""

from dataclasses import replace

import numpy as np

from experts.contract import Action, View
from experts.peg import PegExpert


class NeverGivesUp(PegExpert):
    def __init__(self, *arguments):
        super().__init__(*arguments)
        self._timeouts = self._timeouts * 100


class Dices(PegExpert):
    """Draws from a generator that is not the episode's."""

    def act(self, view: View) -> Action:
        action = super().act(view)
        return replace(action, tool_pos_m=action.tool_pos_m + np.random.default_rng().normal(0, 1e-5, 3))


class DicesOncePressed(PegExpert):
    """The same, but only where something is touched."""

    def act(self, view: View) -> Action:
        action = super().act(view)
        noise = np.random.default_rng().normal(0, 1e-5, action.tool_pos_m.shape)
        return replace(action, tool_pos_m=action.tool_pos_m + noise * (view.pad_force_n[:, :1] > 1.0))


class MixesEnvs(PegExpert):
    def act(self, view: View) -> Action:
        action = super().act(view)
        return replace(action, tool_pos_m=action.tool_pos_m + 1e-4 * len(action.grip))


class WritesToTheView(PegExpert):
    def act(self, view: View) -> Action:
        view.tool_pos_m[:, 2] += 0.001
        return super().act(view)


class WritesAtReset(PegExpert):
    def reset(self, view, draws, env_ids) -> None:
        super().reset(view, draws, env_ids)
        view.held_pos_m[:] = 0.0


class ForgetsTheBatch(PegExpert):
    def act(self, view: View) -> Action:
        action = super().act(view)
        return replace(action, tool_pos_m=action.tool_pos_m[0])


class GripOfTwo(PegExpert):
    def act(self, view: View) -> Action:
        action = super().act(view)
        return replace(action, grip=np.stack([action.grip, action.grip], 1))


class AsksForNothing(PegExpert):
    """Not finite in the second env, from the tenth step on."""

    steps = 0

    def act(self, view: View) -> Action:
        action = super().act(view)
        self.steps += 1
        if self.steps > 9 and len(action.grip) > 1:
            action.tool_pos_m[1] = np.nan
        return action


class Millimetres(PegExpert):
    def act(self, view: View) -> Action:
        action = super().act(view)
        return replace(action, tool_pos_m=1000 * action.tool_pos_m)


class Unnormalised(PegExpert):
    def act(self, view: View) -> Action:
        action = super().act(view)
        return replace(action, tool_quat_xyzw=2 * action.tool_quat_xyzw)


class OpensTooFar(PegExpert):
    def act(self, view: View) -> Action:
        return replace(super().act(view), grip=np.full(view.num_envs, -1.0))


class PhaseByName(PegExpert):
    def act(self, view: View) -> Action:
        return replace(super().act(view), phase=np.full(view.num_envs, 99))


class UnlistedFailure(PegExpert):
    """Gives up in other words than it lists."""

    def act(self, view: View) -> Action:
        action = super().act(view)
        return replace(action, failure=np.where(action.failure != None, "oops", action.failure))  # noqa: E711 - an array


class IgnoresItsHandicap(PegExpert):
    """So that it cannot be told a wrong seat."""

    def __init__(self, num_envs, assembly, handicap):
        super().__init__(num_envs, assembly)


class NoNames(PegExpert):
    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.failures = ()
