"""Scripted experts, one file a task family; they see only :class:`experts.contract.View`."""

from collections.abc import Callable, Mapping
from functools import partial

from experts.contract import Assembly, Expert, Handicap
from experts.gear import GearExpert
from experts.nut import NutExpert
from experts.peg import PegExpert

EXPERTS: Mapping[str, Callable[[int, Assembly, Handicap], Expert]] = {
    "peg_round": PegExpert,
    "peg_square": partial(PegExpert, square=True),
    "gear": GearExpert,
    "nut": NutExpert,
}
"""Factory of each family's expert: ``(num_envs, assembly, handicap)``."""
