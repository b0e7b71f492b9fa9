"""A correction, which leads an episode back to where it was, is no fault."""

from dataclasses import replace

import numpy as np
import pytest

from qc.embedding import embed
from qc.episodes import EEF_POS
from qc.loops import without_loops
from qc.verdicts import assess
from tests.qc.factories import make_task, with_frames


def corrected(episode, rows=40):
    """Once inserted it goes back, gently, to where the transport began, and does both again."""
    starts = {s["phase"]: int(s["start"]) for s in episode.phase_spans}
    back, at = starts["transport"], starts["release"]
    t = np.arange(rows) / (rows - 1)
    way = at - 1 + (back - at + 1) * t**2 * (3 - 2 * t)
    index = np.r_[np.arange(at), way, np.arange(back, episode.length)]
    shift = at + rows - back
    spans = [s for s in episode.phase_spans if s["start"] < at]
    spans.append({"phase": "back_off", "start": at, "end": at + rows})
    again = [s for s in episode.phase_spans if s["start"] >= back]
    spans += [{**s, "start": s["start"] + shift, "end": s["end"] + shift} for s in again]
    low = np.floor(index).astype(int)
    high, weight = np.minimum(low + 1, episode.length - 1), (index - low)[:, None]
    frames = {name: v[low] * (1 - weight) + v[high] * weight for name, v in episode.frames.items()}
    return replace(with_frames(episode, frames), phase_spans=tuple(spans))


def test_of_a_loop_only_the_last_pass_is_left():
    episodes = make_task(20)
    looped = [*episodes[:19], corrected(episodes[19])]
    straight = without_loops(looped)
    assert looped[19].length > episodes[19].length + 40
    np.testing.assert_array_equal(straight[19].frames[EEF_POS], episodes[19].frames[EEF_POS])
    assert straight[19].phase_spans == episodes[19].phase_spans
    assert straight[19].content_hash == looped[19].content_hash
    assert all(a is b for a, b in zip(straight[:19], looped[:19], strict=True))


def test_strokes_that_all_repeat_are_no_loop():
    looped = [corrected(e) for e in make_task(10)]
    assert all(a is b for a, b in zip(without_loops(looped), looped, strict=True))


def test_a_correction_lies_where_the_straight_way_does():
    episodes = make_task(20)
    together = embed([*episodes, replace(corrected(episodes[3]), id="again")])
    np.testing.assert_allclose(together.matrix[20], together.matrix[3], atol=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_a_correction_is_kept(seed):
    episodes = make_task(60, seed=seed)
    before = assess(episodes).set_index("episode_id")["verdict"]
    chosen = [i for i in (4, 23, 41) if before[episodes[i].id] == "keep"]
    assert chosen
    for i in chosen:
        episodes[i] = corrected(episodes[i])
    after = assess(episodes).set_index("episode_id")
    after = after.loc[[episodes[i].id for i in chosen]]
    assert after["verdict"].tolist() == ["keep"] * len(chosen)
    assert after["explanation"].str.contains("lead back to transport").all()
