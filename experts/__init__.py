"""Scripted experts, one file a task family; they see only :class:`experts.contract.View`."""

from collections.abc import Callable, Mapping

from experts.contract import Expert
from experts.peg import PegExpert

Factory = Callable[[int, Mapping[str, float], tuple[float, float]], Expert]


def _peg(clocks: bool) -> Factory:
    def make(num_envs: int, geometry: Mapping[str, float], hole_error_m: tuple[float, float]) -> Expert:
        mouth = geometry["base"] + geometry["bore_depth"]
        return PegExpert(num_envs, geometry["base"], mouth, hole_error_m, clocks)

    return make


EXPERTS: Mapping[str, Factory] = {"peg_round": _peg(clocks=False), "peg_square": _peg(clocks=True)}
"""Factory of each family's expert: ``(num_envs, task geometry, error in where the hole is told to be)``."""
