"""The gate against one-template data, with defects planted one at a time."""

from dataclasses import replace

import numpy as np
import pytest

from qc.diversity import FAIL, FLOORS, MIN_EPISODES, NOT_ASSESSED, PASS, diversity
from qc.episodes import EEF_POS, FIXED_POSE, HELD_POSE, Episode
from tests.qc.factories import TASK, make_episode

N = 24


def placed(episode: Episode, number: int) -> Episode:
    """With the poses of parts that start within 50 mm to each side."""
    rng = np.random.default_rng(number)
    poses = {
        part: np.tile([*rng.uniform(-0.05, 0.05, 2), 0, 0, 0, 0, 1], (episode.length, 1))
        for part in (HELD_POSE, FIXED_POSE)
    }
    return replace(episode, frames={**episode.frames, **poses})


def varied(count: int = N) -> list[Episode]:
    return [placed(make_episode(n), n) for n in range(count)]


def template(noise_m: float, count: int = N) -> list[Episode]:
    """One episode again and again, with a little noise in all that is measured."""
    rng, one, copies = np.random.default_rng(0), placed(make_episode(0), 0), []
    for n in range(count):
        frames = dict(one.frames)
        for name in (HELD_POSE, FIXED_POSE, EEF_POS):
            frames[name] = frames[name].copy()
            frames[name][:, :3] += rng.normal(0.0, noise_m, 3)
        copies.append(replace(make_episode(n), length=one.length, frames=frames, phase_spans=one.phase_spans))
    return copies


def low(episodes: list[Episode]) -> set[str]:
    """Figures below their floor."""
    found = diversity(episodes)[TASK]
    figures = {name for name, floor in FLOORS.items() if (value := found.measured[name]) is not None and value < floor}
    assert (found.verdict == FAIL) is bool(figures)
    assert all(name in found.advice for name in figures)
    return figures


def test_varied_episodes_pass_with_room_to_spare() -> None:
    found = diversity(varied())[TASK]
    assert (found.verdict, found.episodes, found.advice) == (PASS, N, "")
    assert all((found.measured[name] or 0.0) > 2 * floor for name, floor in FLOORS.items())


@pytest.mark.parametrize("noise_m", [0.0, 0.0001, 0.0005])
def test_one_template_fails(noise_m: float) -> None:
    assert low(template(noise_m)) == set(FLOORS)


def test_a_held_part_that_always_starts_in_one_place_is_seen_behind_a_moving_fixture() -> None:
    still = np.array([0.37, -0.07, 0.0, 0.0, 0.0, 0.0, 1.0])
    episodes = [replace(e, frames={**e.frames, HELD_POSE: np.tile(still, (e.length, 1))}) for e in varied()]
    assert low(episodes) == {"held_start_m"}


def test_a_fixture_may_stand_still() -> None:
    episodes = [replace(e, frames={**e.frames, FIXED_POSE: np.zeros((e.length, 7))}) for e in varied()]
    assert low(episodes) == set()


def test_equal_lengths_fail() -> None:
    short = min(e.length for e in varied())
    cut = [replace(e, length=short, frames={k: v[:short] for k, v in e.frames.items()}) for e in varied()]
    assert low(cut) == {"length_rows"}


def test_a_few_templates_fail_by_the_nearest_path() -> None:
    """Four different ones: on the whole they differ enough."""
    assert low(varied(4) * 6) == {"nearest_path_m"}


def test_failures_do_not_count() -> None:
    failures = [replace(e, outcome="failure", reason="dropped") for e in varied()]
    found = diversity([*template(0.0001), *failures])[TASK]
    assert (found.verdict, found.episodes) == (FAIL, N)


def test_too_few_are_not_assessed() -> None:
    few = diversity(template(0.0, MIN_EPISODES - 1))[TASK]
    assert few.verdict == NOT_ASSESSED
    assert "record more" in few.advice
    assert diversity(varied(MIN_EPISODES))[TASK].verdict == PASS


def test_what_is_not_recorded_is_not_assessed() -> None:
    found = diversity([make_episode(n) for n in range(N)])[TASK]
    assert found.verdict == NOT_ASSESSED
    assert found.measured["held_start_m"] is None
    assert "held_start_m: not recorded" in found.advice


def test_every_task_is_judged_by_itself() -> None:
    others = [replace(e, task="gear_small") for e in template(0.0)]
    found = diversity([*varied(), *others])
    assert {task: each.verdict for task, each in found.items()} == {TASK: PASS, "gear_small": FAIL}
