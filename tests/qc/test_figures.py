"""Every figure is drawn, from flawed data and from none."""

import numpy as np
import pandas as pd
import pytest

from qc.embedding import embed
from qc.figures import curves_figure, distance_figure, length_figure, map_figure
from qc.maps import pca_map, tsne_map
from qc.rates import rates
from qc.trajectories import overlay_figure, path_figure
from qc.verdicts import assess
from tests.qc.factories import TASK, change, freeze, make_task, truncate

EPISODES = change(change(make_task(40), [4], lambda e: truncate(e, 0.5)), [9], lambda e: freeze(e, 30, 85))


@pytest.fixture(scope="module")
def judged():
    embedding = embed(EPISODES)
    return assess(EPISODES, embedding=embedding), embedding.standardise(embedding.tasks, np.ones(40, bool))


def texts(figure):
    return [text.get_text() for ax in figure.axes for text in (*ax.texts, ax.title)]


def test_a_map_names_what_is_flagged_and_repeats(judged):
    table, z = judged
    plane = tsne_map(z)
    np.testing.assert_array_equal(plane.points, tsne_map(z).points)
    assert plane.title == "t-SNE, perplexity 13, seed 0"
    for each in (plane, pca_map(z)):
        assert 0.5 < each.trustworthiness <= 1.0
        said = texts(map_figure(each, table))
        assert {EPISODES[4].id, EPISODES[9].id} <= set(said)


def test_each_filter_that_flags_has_its_lengths_beside_the_kept(judged):
    table, _ = judged
    reasons = {reason for of in table["reasons"] for reason in of}
    figure = length_figure(table)
    assert len(figure.axes) == len(reasons)
    assert {ax.get_ylabel().split("\n")[0] for ax in figure.axes} == {r.replace("_", " ") for r in reasons}


def test_distances_and_trajectories_are_drawn(judged):
    table, _ = judged
    assert len(distance_figure(table).axes[0].lines) >= 3
    lines = overlay_figure(EPISODES, table, TASK).axes[0].lines
    assert len(lines) == 1 + 2
    assert len(path_figure(EPISODES[0], EPISODES[1]).axes) == 2


def test_nothing_gives_an_empty_figure():
    table = assess([])
    for figure in (length_figure(table), distance_figure(table), overlay_figure([], table, TASK)):
        assert figure.axes


def test_a_curve_for_each_defect():
    rows = [("jitter", s, "mm", s == 1, 4, f, 26, 0) for s, f in ((0.1, 1), (1.0, 4))]
    names = ["defect", "severity", "unit", "moderate", "planted", "found", "healthy", "false"]
    (axes, *_) = curves_figure(pd.DataFrame(rows, columns=names)).axes
    assert list(np.asarray(axes.lines[1].get_ydata(), dtype=float)) == [25, 100]


def test_an_env_that_yields_little_stands_out():
    kept = pd.DataFrame({"verdict": ["keep"] * 36 + ["drop"] * 4, "env_index": [0, 1, 2, 3] * 9 + [3] * 4, "file": ""})
    found = rates(kept).set_index("which")
    assert found["doubtful"].to_dict() == {"0": False, "1": False, "2": False, "3": False}
    worse = kept.assign(verdict=["drop" if env == 3 else "keep" for env in kept["env_index"]])
    assert rates(worse).set_index("which")["doubtful"].to_dict() == {"0": False, "1": False, "2": False, "3": True}
