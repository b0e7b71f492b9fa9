"""What an explanation speaks of is found in the episode and drawn."""

import numpy as np
import pytest

from qc.episodes import ACTION, EEF_POS, STATE
from qc.told import Told, told
from qc.trajectories import overlay_figure, path_figure
from qc.verdicts import assess
from tests.qc.factories import TASK, change, freeze, make_task, release_early, truncate, with_frames


def leap(episode):
    values = episode.frames[STATE].copy()
    values[60, 3] += 0.5
    return with_frames(episode, {**episode.frames, STATE: values})


def joints_only(episode):
    return with_frames(episode, {name: episode.frames[name] for name in (STATE, ACTION)})


@pytest.mark.parametrize(
    ("defect", "tool", "expected"),
    [
        (leap, True, Told(STATE, 3, (60, 60), closely=True)),
        (leap, False, Told(STATE, 3, (60, 60), closely=True)),
        (lambda e: freeze(e, 30, 90), True, Told(EEF_POS, 2, (90, 119))),
        (lambda e: freeze(e, 30, 90), False, Told(STATE, 5, (90, 119))),
        (lambda e: release_early(e, 14), True, Told(ACTION, 7, (91, 91))),
        (lambda e: truncate(e, 0.5), False, Told(ACTION, 7)),
    ],
)
def test_what_an_explanation_names_is_found_in_the_episode_and_drawn(defect, tool, expected):
    episodes = change(make_task(40), [25], defect)
    episodes = episodes if tool else [joints_only(e) for e in episodes]
    table = assess(episodes).set_index("episode_id")
    told_of = str(table.loc[episodes[25].id, "explanation"])
    assert told(episodes[25], told_of)[0] == expected
    figure = path_figure(episodes[25], episodes[24], told_of)
    titles = [ax.get_title() for ax in figure.axes]
    assert (
        titles[:2] == ["tool from above: x, y", "tool from the side: y, z"] if tool else "tool" not in " ".join(titles)
    )
    if expected.rows:
        first, last = expected.rows
        assert titles[2 if tool else 0].endswith(f"row {first}" if first == last else f"rows {first} to {last}")


def test_an_explanation_of_nothing_that_can_be_drawn_finds_nothing():
    (episode,) = make_task(1)
    for sentence in ("", "failed: jammed", "rows 102 to 264 lead back to align: not compared", "leaps at frame 99999"):
        assert told(episode, sentence) == []
    assert len(path_figure(episode).axes) == 3
    assert len(path_figure(joints_only(episode)).axes) == 2


def test_a_task_shows_all_its_joints_its_band_and_its_flagged():
    episodes = [joints_only(e) for e in change(make_task(40), [4, 9], lambda e: truncate(e, 0.5))]
    table = assess(episodes)
    figure = overlay_figure(episodes, table, TASK)
    drawn = [ax for ax in figure.axes if ax.axison]
    assert [ax.get_title() for ax in drawn] == [*(f"state joint_{i}" for i in range(1, 8)), "state gripper"]
    assert len(drawn[0].lines) == 1 + 2
    assert "band: 5 to 95 %" in figure.get_suptitle()


def test_one_far_number_leaves_the_band_readable():
    episodes = make_task(12)
    values = episodes[3].frames[EEF_POS].copy()
    values[40, 0] = 1e30
    episodes[3] = with_frames(episodes[3], {**episodes[3].frames, EEF_POS: values})
    low, high = overlay_figure(episodes, assess(episodes), TASK).axes[0].get_ylim()
    assert np.ptp([low, high]) < 2


def test_no_episode_gives_an_empty_figure():
    assert overlay_figure([], assess([]), TASK).axes
