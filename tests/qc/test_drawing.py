import numpy as np
from matplotlib.figure import Figure
from matplotlib.text import Annotation

from qc.drawing import in_order, label_points, plain


def test_a_name_is_one_line_without_mathematics_that_the_font_can_draw():
    assert plain("move $x^$ \t把\nnow") == r"move \$x^\$ ? now"
    assert plain("a" * 80, 10) == "aaaaaaaaa…"


def test_tasks_stand_as_told_and_the_others_by_number():
    assert in_order(["b_12", "b_4", "a", "c", "c"], ["c", "unknown"]) == ["c", "a", "b_4", "b_12"]


def test_labels_of_points_in_one_place_lie_apart_and_inside():
    ax = Figure().subplots()
    ax.set(xlim=(0, 1), ylim=(0, 1))
    label_points(
        ax, np.array([[0.9, 1.0], [0.9, 1.0], [0.9, 0.99], [0.8, 0.0], [0.8, -0.1], [0.1, 0.5]]), list("abcdef")
    )
    labels = [text for text in ax.texts if isinstance(text, Annotation)]
    heights = np.sort([text.xyann[1] for text in labels if text.xyann[0] > 0.5])
    assert len(labels) == 6
    assert np.diff(heights).min() > 0.04
    assert 0 < heights[0] < heights[-1] < 0.97
