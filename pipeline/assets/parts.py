"""The parts of every task by family, authored from its dimensions.

A part's root is the centre of its underside, +z up; lengths in metres.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace

from pipeline.assets.gears import gear_parts
from pipeline.assets.nuts import nut_parts
from pipeline.assets.pegs import peg_parts
from pipeline.assets.shapes import Part
from pipeline.faults import Fault
from pipeline.tasks import Task

TABLE_SIZE_M = (1.4, 1.8, 0.04)
TABLE_CENTRE_M = (0.35, 0.0, -0.02)

AUTHORS: Mapping[str, Callable[[Task], dict[str, Part]]] = {
    "peg_round": peg_parts,
    "peg_square": peg_parts,
    "gear": gear_parts,
    "nut": nut_parts,
}


def scene_parts(task: Task, fault: Fault | None = None) -> Mapping[str, Part]:
    """Parts of a task by role: ``held``, ``fixed`` and, where there is one, ``stand``."""
    narrowing = fault.bore_narrowing_m if fault else 0.0
    if narrowing:
        geometry = {**task.geometry, "clearance": task.geometry["clearance"] - narrowing}
        task = replace(task, geometry=geometry)
    if fault and fault.left_handed:
        return nut_parts(task, left_handed=True)
    return AUTHORS[task.family](task)
