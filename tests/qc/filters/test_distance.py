"""Mahalanobis distance and neighbours: what one misses the other finds."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.covariance import ledoit_wolf

from qc.filters.mahalanobis import MahalanobisFilter, shrunk_covariance
from qc.filters.neighbours import NeighboursFilter

BOTH = (MahalanobisFilter, NeighboursFilter)


def clean(seed, n=97, d=40):
    """Standardised columns of a few factors and a little noise, as episodes have."""
    rng = np.random.default_rng(seed)
    mixing = np.random.default_rng(99).standard_normal((8, d))
    return rng.standard_normal((n, 8)) @ mixing / np.sqrt(8) + 0.1 * rng.standard_normal((n, d))


def direction(seed=5, d=40):
    v = np.random.default_rng(seed).standard_normal(d)
    return v / np.linalg.norm(v)


@pytest.mark.parametrize("kind", BOTH)
@pytest.mark.parametrize("n", [30, 60])
def test_false_alarms_on_clean_tasks_are_rare(kind, n):
    flagged = [(kind().fit_predict(clean(seed, n)) == -1).any() for seed in range(100, 220)]
    assert np.mean(flagged) < 0.08  # 0.02 stated for normal scores


@pytest.mark.parametrize("size", [2.0, 4.0, 10.0, 100.0])
def test_scattered_outliers_are_found_by_mahalanobis_distance(size):
    x = clean(0)
    bad = [3, 40, 41, 77]
    for i in bad:
        x[i] += size * direction(i)
    assert np.flatnonzero(MahalanobisFilter().fit_predict(x) == -1).tolist() == bad


@pytest.mark.parametrize("share", [0.05, 0.1, 0.15])
def test_a_tight_cluster_is_found_by_its_neighbours(share):
    x = clean(1)
    bad = np.arange(int(share * len(x)))
    x[bad] = x[50] + 12.0 * direction() + 0.05 * x[bad]  # clean rows lie about 9 from each other
    found = np.flatnonzero(NeighboursFilter().fit_predict(x) == -1)
    assert set(bad) <= set(found)
    assert len(found) <= len(bad) + 1


@pytest.mark.parametrize("kind", BOTH)
def test_neither_of_two_equally_common_ways_is_an_outlier(kind):
    for seed in range(5):
        x = clean(seed)
        x[::2] += 6.0 * direction()
        assert (kind().fit_predict(x) == -1).sum() <= 1


@pytest.mark.parametrize("kind", BOTH)
def test_order_does_not_matter(kind):
    x = clean(2)
    x[7] += 3.0 * direction()
    order = np.random.default_rng(0).permutation(len(x))
    straight, shuffled = kind().fit(x), kind().fit(x[order])
    np.testing.assert_allclose(shuffled.score_samples(x[order]), straight.score_samples(x)[order], rtol=1e-6)
    assert shuffled.cutoff_ == straight.cutoff_


@pytest.mark.parametrize("kind", BOTH)
def test_too_few_are_not_assessed(kind):
    x = clean(3, 29)
    x[0] += 100.0
    found = kind().fit(x)
    assert (found.predict(x) == 0).all()
    assert np.isnan(found.score_samples(x)).all()
    assert "29 of 30 episodes" in found.explain(0).sentence


@pytest.mark.parametrize("kind", BOTH)
def test_what_is_no_reference_is_scored_but_not_learnt_from(kind):
    x = clean(4, 120)
    x[80:] += 6.0 * direction()
    reference = np.arange(120) < 80
    assert (kind().fit(x, reference=reference).predict(x)[80:] == -1).all()


@pytest.mark.parametrize("kind", BOTH)
def test_an_outlier_is_explained_by_its_columns(kind):
    x = clean(5)
    x[9, 13] += 9.0
    names = tuple(f"column_{i}" for i in range(40))
    found = kind(columns=names, groups=np.array([f"group {i // 10}" for i in range(40)])).fit(x)
    explained = found.explain(9)
    assert "column_13" in explained.sentence
    assert explained.evidence["distance"] > explained.evidence["cutoff"]
    assert clone(found).get_params()["columns"] == names


@pytest.mark.parametrize(("n", "k"), [(12, 9), (30, 4), (97, 9)])
def test_covariances_of_many_samples_at_once_are_ledoit_and_wolfs(n, k):
    samples = np.random.default_rng(n).standard_normal((5, n, k)) * np.linspace(0.2, 3.0, k)
    theirs = [ledoit_wolf(x, assume_centered=True)[0] for x in samples]
    np.testing.assert_allclose(shrunk_covariance(samples), theirs, rtol=1e-12, atol=1e-14)
