"Metrics: equality with slow references and with scipy, properties, and refused input"

import itertools
import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from benchnb.stats import metrics as m

ERRORS = [m.mae, m.weighted_mae, m.rmse, m.nrmse, m.rank_error]
CORRELATIONS = [m.kendall, m.spearman, m.pearson]
ALL = [*ERRORS, *CORRELATIONS, m.pairwise_accuracy]
scores = st.lists(st.integers(0, 20).map(lambda k: k / 20), min_size=2, max_size=12)
pairs = scores.flatmap(
    lambda t: st.tuples(
        st.just(t),
        st.lists(st.sampled_from(t + [0.33]), min_size=len(t), max_size=len(t)),
    )
)


@pytest.fixture(autouse=True)
def no_warnings():
    "A metric never warns: unknown is NaN, in silence"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def slow_ranks(values):
    "One more than the values above, and half of the equal ones"
    return [1 + sum(w > x for w in values) + (values.count(x) - 1) / 2 for x in values]


def slow_pairs(truth, score):
    "1, 1/2 or 0 for each pair that truly differs, with its gap"
    for (t, s), (u, v) in itertools.combinations(zip(truth, score, strict=True), 2):
        if t != u:
            yield abs(t - u), 0.5 if s == v else float((t < u) == (s < v))


@given(pairs)
def test_same_as_slow_references(both):
    truth, score = both
    models = range(len(truth))
    r, q = slow_ranks(truth), slow_ranks(score)
    error = [abs(s - t) for t, s in zip(truth, score, strict=True)]
    assert m.mae(truth, score) == pytest.approx(sum(error) / len(error))
    weighted = sum(error[i] / r[i] for i in models) / sum(1 / r[i] for i in models)
    assert m.weighted_mae(truth, score) == pytest.approx(weighted)
    assert m.rmse(truth, score) == pytest.approx(
        (sum(e * e for e in error) / len(error)) ** 0.5
    )
    assert m.rank_error(truth, score) == pytest.approx(
        sum(abs(r[i] - q[i]) for i in models) / len(r)
    )
    right = [right for _, right in slow_pairs(truth, score)]
    if right:
        assert m.pairwise_accuracy(truth, score) == pytest.approx(
            sum(right) / len(right)
        )
    else:
        assert np.isnan(m.pairwise_accuracy(truth, score))


@given(pairs)
def test_correlations_are_scipys_and_nan_when_constant(both):
    truth, score = both
    if len(set(truth)) < 2 or len(set(score)) < 2:
        assert all(np.isnan(f(truth, score)) for f in CORRELATIONS)
        return
    assert m.kendall(truth, score) == pytest.approx(
        stats.kendalltau(truth, score).statistic
    )
    assert m.spearman(truth, score) == pytest.approx(
        stats.spearmanr(truth, score).statistic
    )
    assert m.pearson(truth, score) == pytest.approx(
        stats.pearsonr(truth, score).statistic
    )


@pytest.mark.parametrize("metric", ALL, ids=lambda f: f.__name__)
def test_bad_input_is_refused(metric):
    with pytest.raises(ValueError, match="score has 1 NaN in 2"):
        metric([0.1, 0.2], [0.1, np.nan])
    with pytest.raises(ValueError, match="truth has 1 NaN"):
        metric([np.nan, 0.2], [0.1, 0.3])
    with pytest.raises(ValueError, match="truth has 2 models and score 3"):
        metric([0.1, 0.2], [0.1, 0.2, 0.3])
    with pytest.raises(ValueError, match="truth has 3 models and score 1"):
        metric([0.1, 0.2, 0.3], [0.1])
    with pytest.raises(ValueError, match="needs a number per model"):
        metric([], [])
    with pytest.raises(ValueError, match="needs a number per model"):
        metric(0.5, 0.5)
    truth = pd.Series([0.1, 0.2], ["a", "b"])
    with pytest.raises(ValueError, match="name different models"):
        metric(truth, truth[::-1])
    assert np.isfinite(metric(truth, truth * 0.5))


def test_intervals_leave_nan_out_and_keep_infinity():
    nan, inf = np.nan, np.inf
    assert m.interval_coverage([0.5, 0.5, 0.5], [0.5, 0.6, nan], [0.5, 0.7, 0.9]) == 0.5
    np.testing.assert_array_equal(
        m.interval_coverage([0.5, 0.5], [[0, nan], [nan, nan]], [[1, nan], [nan, nan]]),
        [1, nan],
    )
    assert m.interval_width([0, -inf], [1, inf]) == inf
    assert m.interval_width([-inf], [inf]) == inf
    assert m.interval_width([0.2, nan], [0.3, 0.4]) == pytest.approx(0.1)
    assert m.interval_coverage([0.3], [0.1 + 0.2], [1]) == 1  # dust at an end
    with pytest.raises(ValueError, match="1 intervals have low above high"):
        m.interval_width([0.4, 0], [0.3, 1])
    with pytest.raises(ValueError, match="truth has 1 NaN"):
        m.interval_coverage([np.nan], [0], [1])


@settings(max_examples=30)
@given(
    st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=2, max_size=9)
)
def test_paired_test_is_every_flip(both):
    x, y = np.array(both, dtype=float).T
    d = x - y
    flips = [np.dot(s, d) / len(d) for s in itertools.product([1, -1], repeat=len(d))]
    for alternative, far in {
        "two-sided": np.abs(flips) >= abs(d.mean()) - 1e-9,
        "less": np.array(flips) <= d.mean() + 1e-9,
        "greater": np.array(flips) >= d.mean() - 1e-9,
    }.items():
        assert m.paired_trial_test(x, y, alternative).p_value == pytest.approx(
            far.mean()
        )


@given(scores, scores)
def test_rank_among_is_counted(values, others):
    slow = [1 + sum(o > v for o in others) + others.count(v) / 2 for v in values]
    assert m.rank_among(values, np.array(others) + 1e-13).tolist() == slow
