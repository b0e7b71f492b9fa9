import numpy as np
import pytest
from sklearn.base import clone, is_outlier_detector
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from qc.filters.length import LengthFilter


def lengths(seed, n=64):
    return np.random.default_rng(seed).normal(300, 15, n).round()


@pytest.mark.parametrize(("length", "verdict"), [(12, -1), (200, -1), (410, -1), (300, 1), (330, 1)])
def test_lengths_far_off_are_found(length, verdict):
    found = LengthFilter().fit(x := np.r_[lengths(0), length])
    assert found.predict(x)[-1] == verdict
    assert f"{length} rows" in found.explain(len(x) - 1).sentence


def test_many_bad_lengths_do_not_hide_each_other():
    x = np.r_[lengths(1), [120] * 12]
    assert (LengthFilter().fit_predict(x)[-12:] == -1).all()


def test_false_alarms_on_clean_tasks_are_as_rare_as_stated():
    for n in (10, 30, 97):
        flagged = [(LengthFilter().fit_predict(lengths(seed, n)) == -1).any() for seed in range(200)]
        assert np.mean(flagged) < 0.09, n  # 0.05 stated; three standard errors


def test_lengths_that_hardly_vary_make_no_outliers():
    assert (LengthFilter().fit_predict([300] * 40 + [301, 310, 290]) == 1).all()
    assert LengthFilter().fit_predict([300] * 40 + [380])[-1] == -1


def test_too_few_are_not_assessed():
    found = LengthFilter().fit([300] * 8 + [9])
    assert (found.predict([300] * 9) == 0).all()
    assert np.isnan(found.score_samples([300])).all()
    assert np.isnan(found.cutoff_)
    assert found.explain(8).sentence == "not assessed: 9 of 10 episodes needed"


def test_the_filter_is_a_scikit_learn_estimator():
    found = LengthFilter(min_episodes=5, seed=3)
    assert is_outlier_detector(found)
    assert repr(found).startswith("LengthFilter(min_episodes=5, ")
    assert (make_pipeline(FunctionTransformer(), found).fit_predict([300] * 40 + [380]) == -1).nonzero()[
        0
    ].tolist() == [40]
    assert clone(found).set_params(seed=4).seed == 4
    with pytest.raises(ValueError, match="no parameter 'sed'; it has min_episodes"):
        found.set_params(sed=4)
    assert clone(found).get_params() == found.get_params()
    x = lengths(2)
    np.testing.assert_array_equal(found.fit(x[:, None]).score_samples(x[:, None]), clone(found).fit(x).score_samples(x))
