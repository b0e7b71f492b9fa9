import matplotlib
import numpy as np
import pytest
from matplotlib.image import imread

from qc.embedding import embed
from qc.errors import QcError
from qc.plots import plot_pca
from qc.verdicts import assess
from tests.qc.factories import change, make_episode, make_task, truncate


def test_the_picture_shows_verdicts_in_colour_and_repeats_byte_for_byte(tmp_path):
    backend = matplotlib.get_backend()
    episodes = [
        *change(make_task(40), [4], lambda e: truncate(e, 0.5)),
        *make_task(8, task="peg_round_4mm"),
        make_episode(2, task="nut_M8"),
        make_episode(3, task="nut_M8", outcome="failure", reason="grasp: missed"),
    ]
    embedding = embed(episodes)
    table = assess(episodes, embedding=embedding)
    for name in ("a.png", "b.png"):
        plot_pca(table, embedding, tmp_path / name)
    assert (tmp_path / "a.png").read_bytes() == (tmp_path / "b.png").read_bytes()
    pixels = (imread(tmp_path / "a.png")[..., :3] * 255).round().astype(int).reshape(-1, 3)
    for colour in ((0x00, 0x72, 0xB2), (0xD5, 0x5E, 0x00)):
        assert (pixels == colour).all(axis=1).sum() > 50
    assert matplotlib.get_backend() == backend
    assert np.ptp(pixels) > 0


def test_nothing_to_draw_is_an_empty_picture(tmp_path):
    plot_pca(assess([]), embed([]), tmp_path / "none.png")
    assert (tmp_path / "none.png").stat().st_size > 0


def test_what_cannot_be_drawn_or_written_is_a_clear_error(tmp_path):
    episodes = make_task(6)
    table, embedding = assess(episodes), embed(episodes)
    with pytest.raises(QcError, match="not in the embedding"):
        plot_pca(table, embed(episodes[1:]), tmp_path / "a.png")
    with pytest.raises(QcError, match="cannot be written"):
        plot_pca(table, embedding, tmp_path / "missing" / "a.png")
