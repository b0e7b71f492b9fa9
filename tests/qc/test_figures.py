"""Every figure is drawn, from flawed data and from none."""

import warnings

import numpy as np
import pandas as pd
import pytest
from matplotlib.patches import Rectangle
from sklearn.manifold import TSNE
from threadpoolctl import threadpool_info

from qc.embedding import embed
from qc.figures import curves_figure, distance_figure, length_figure, map_figure
from qc.maps import pca_map, tsne_map
from qc.plots import plot_pca
from qc.rates import rates
from qc.trajectories import overlay_figure
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


def test_a_far_episode_lies_on_the_edge_and_squeezes_nobody(judged):
    _, z = judged
    z = z.copy()
    z[9, 3] = 1e30
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        planes = pca_map(z), tsne_map(z)
    points, far = planes[0].framed()
    assert np.flatnonzero(far).tolist() == [9]
    assert (np.ptp(np.delete(points, 9, axis=0), axis=0) > 0.2 * np.ptp(points, axis=0)).all()
    assert np.isfinite(planes[1].points).all()


@pytest.mark.parametrize("z", [np.zeros((8, 5)), np.full((8, 5), np.nan), np.eye(3, 5), np.zeros((0, 5))])
def test_a_map_of_nothing_says_so(z):
    for plane in (pca_map(z), tsne_map(z)):
        assert plane.caption.startswith("nothing to map: ")
        assert not plane.framed()[1].any()
        map_figure(plane, pd.DataFrame({"episode_id": [str(i) for i in range(len(z))], "verdict": "keep"}))


def test_a_map_takes_one_thread(judged, monkeypatch):
    def watched(self, *given):
        used.update(pool["num_threads"] for pool in threadpool_info())
        return fit(self, *given)

    used, fit = set[int](), TSNE.fit_transform
    monkeypatch.setattr(TSNE, "fit_transform", watched)
    tsne_map(judged[1])
    assert used == {1}


def test_each_task_has_its_own_lengths_with_the_flagged_marked():
    episodes = [*EPISODES, *make_task(12, task="gear_small")]
    table = assess(episodes)
    figure = length_figure(table, ["gear_small"])
    gear, peg = (ax for ax in figure.axes if ax.axison)
    assert [ax.get_title() for ax in (gear, peg)] == ["gear_small", TASK]
    assert [len(ax.lines) for ax in (gear, peg)] == [0, 2]
    assert sum(bar.get_height() for bar in peg.patches if isinstance(bar, Rectangle)) == 38


def test_no_two_tasks_look_alike_among_distances():
    table = assess([])
    rows = [{"task": f"task {i}", "mahalanobis_score": -1.0 - n, "mahalanobis_cutoff": -9.0} for i in range(14)
            for n in range(3)]  # fmt: skip
    figure = distance_figure(pd.DataFrame(rows, columns=table.columns))
    drawn = {
        (line.get_color(), line.get_marker()) for line in figure.axes[0].lines if len(np.ravel(line.get_xdata())) == 3
    }
    assert len(drawn) == len(figure.legends[0].get_texts()) - 2 == 14


def test_nothing_gives_an_empty_figure():
    table = assess([])
    for figure in (length_figure(table), distance_figure(table)):
        assert figure.axes


def test_any_name_of_a_task_can_be_drawn(tmp_path):
    names = [r"move $\frac{ and $5", "turn $x^$ now", "把方块放进盒子\t\U0001f916", "_hidden"]
    episodes = change(make_task(34, task=names[0]), [4], lambda e: truncate(e, 0.5))
    episodes += [e for name in names[1:] for e in make_task(5, task=name)]
    embedding = embed(episodes)
    table = assess(episodes, embedding=embedding)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        plot_pca(table, embedding, tmp_path / "pca.png")
        for figure in (length_figure(table), distance_figure(table), overlay_figure(episodes, table, names[0])):
            figure.savefig(tmp_path / "figure.png")


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
