from dataclasses import asdict, fields

import pytest

from randomization.looks import PRESETS, Perturbation, draw_perturbation
from randomization.seeds import episode_seed

SEED = episode_seed(7, "peg_round_8mm", 0)


@pytest.mark.parametrize("preset", PRESETS)
def test_every_axis_is_drawn_inside_its_range(preset: str) -> None:
    drawn = [asdict(draw_perturbation(episode_seed(7, "nut_M8", k), preset, 0)) for k in range(200)]
    assert set(PRESETS[preset]) == {field.name for field in fields(Perturbation)}
    for axis, (low, high) in PRESETS[preset].items():
        values = [draws[axis] for draws in drawn]
        assert low <= min(values) <= max(values) <= high
        assert low == high or len(set(values)) > 1


def test_a_draw_depends_on_seed_preset_and_number_alone() -> None:
    assert draw_perturbation(SEED, "varied", 1) == draw_perturbation(SEED, "varied", 1)
    others = [("varied", 0, SEED), ("workshop", 1, SEED), ("varied", 1, SEED + 1)]
    assert all(draw_perturbation(seed, preset, k) != draw_perturbation(SEED, "varied", 1) for preset, k, seed in others)
