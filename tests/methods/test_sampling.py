"Sampling: slow references, unbiased draws, odd tables, saving, intervals"

import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchnb.data.scores import Scores
from benchnb.evaluation.per_task import PerTask
from benchnb.evaluation.simulate import prepare_method, simulate
from benchnb.methods import sampling
from benchnb.methods.sampling import (
    AIPW,
    DifferenceEstimator,
    RandomSampling,
    StratifiedSampling,
)
from benchnb.stats import intervals
from benchnb.stats.metrics import interval_coverage

ALL = {
    "random": RandomSampling,
    "stratified": StratifiedSampling,
    "difference": DifferenceEstimator,
    "aipw": AIPW,
    "aipw_strata": lambda: AIPW(draw="stratified"),
}
each = pytest.mark.parametrize("make", ALL.values(), ids=ALL)


@pytest.fixture(autouse=True)
def no_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def table(models=30, items=60, seed=0, weights=None, marks=False, ability=0.0):
    "Simulated answers: a row per model, items in three tasks"
    rng = np.random.default_rng(seed)
    difficulty = np.random.default_rng(99).normal(0, 1.5, items)
    chance = 1 / (1 + np.exp(difficulty - rng.normal(ability, 1, (models, 1))))
    values = chance if marks else (rng.random(chance.shape) < chance).astype(float)
    facts = pd.DataFrame({"task": np.array(list("abc"))[np.arange(items) % 3]})
    facts.index = [f"q{i}" for i in range(items)]
    if weights is not None:
        facts["weight"] = weights
    return Scores(values, items=facts)


UNEQUAL = np.random.default_rng(5).gamma(0.7, size=60)
UNEQUAL[:4] = [0, 0, 8, 20]


@settings(max_examples=200)
@given(st.lists(st.integers(0, 50), min_size=1, max_size=20).filter(any), st.data())
def test_chances_add_up(weight, data):
    budget = data.draw(st.integers(1, len(weight)))
    weight = np.array(weight, dtype=float)
    chance = sampling.proportional_probabilities(weight, budget)
    assert chance.sum() == pytest.approx(min(budget, np.count_nonzero(weight)))
    assert ((chance >= 0) & (chance <= 1)).all() and (chance[weight == 0] == 0).all()
    loose = (chance < 1) & (weight > 0)
    if loose.any():
        np.testing.assert_allclose(np.ptp(chance[loose] / weight[loose]), 0, atol=1e-9)
        assert weight[loose].max() <= weight[chance == 1].min(initial=np.inf)
    for easiness in [None, np.arange(len(weight)) % 3]:
        rng = np.random.default_rng(data.draw(st.integers(0, 99)))
        items, share = sampling.draw_items(weight / weight.sum(), budget, rng, easiness)
        assert len(items) == len(set(items.tolist())) == round(chance.sum())
        assert share.sum() == pytest.approx(1) and (weight[items] > 0).all()


@pytest.mark.parametrize(
    "easiness", [None, np.arange(12.0) // 2], ids=["random", "strata"]
)
def test_items_are_drawn_with_their_chances(easiness):
    weight = np.arange(1, 13) / 78
    chance = sampling.proportional_probabilities(weight, 5)
    rng = np.random.default_rng(0)
    hits = [sampling.draw_items(weight, 5, rng, easiness)[0] for _ in range(6000)]
    shares = np.bincount(np.concatenate(hits), minlength=12) / 6000
    np.testing.assert_allclose(shares, chance, atol=0.03)


def test_each_stratum_gives_one_item():
    easiness = np.random.default_rng(0).random(40)
    place = np.argsort(np.argsort(-easiness))
    for seed in range(50):
        rng = np.random.default_rng(seed)
        items, _ = sampling.draw_items(np.full(40, 1 / 40), 8, rng, easiness)
        assert (place[items] // 5 == np.arange(8)).all()


@pytest.mark.slow
@each
@pytest.mark.parametrize("weights", [None, UNEQUAL], ids=["equal", "unequal"])
def test_unbiased_over_draws(make, weights):
    "Sources unlike the target shift no method; AIPW's small bias is allowed for"
    source = table(20, weights=weights)
    target = table(4, seed=7, weights=weights, ability=1.5)
    method = make().fit(source)
    scores = np.array(
        [[e.score for e in simulate(method, target, 25, s)] for s in range(250)]
    )
    spread = scores.std(axis=0) / np.sqrt(250)
    apart = np.abs(scores.mean(axis=0) - target.truth().to_numpy())
    assert (apart < 4 * spread + 0.012).all()


@pytest.mark.parametrize("weights", [None, UNEQUAL], ids=["equal", "unequal"])
@pytest.mark.parametrize("penalty", [1.0, 7.0])
def test_aipw_is_its_slow_definition(weights, penalty):
    "Equation 8 with n + 1 explicit fits of a ridge with an intercept"
    from sklearn.linear_model import Ridge

    source, target = (
        table(25, weights=weights, marks=True),
        table(5, seed=8, weights=weights),
    )
    method = prepare_method(AIPW(penalty=penalty).fit(source), 15, seed=1)
    asked, w = method.coreset_, source.weights
    x = source.values.T.astype(float)
    drawn = x[asked] - x[asked].mean(axis=0)
    alpha = penalty * np.trace(drawn @ drawn.T) / len(asked)
    for row in target.values.astype(float):
        y = row[asked]
        g = Ridge(alpha=alpha).fit(x[asked], y).predict(x)
        rest = [np.delete(np.arange(len(asked)), i) for i in range(len(asked))]
        e = [
            y[i] - Ridge(alpha=alpha).fit(x[asked][r], y[r]).predict(x[asked[[i]]])[0]
            for i, r in enumerate(rest)
        ]
        unseen = np.setdiff1d(np.arange(60), asked)
        a = method.share_
        slow = w[asked] @ y + w[unseen] @ g[unseen] + (a - w[asked]) @ np.array(e)
        fast = method.estimate(y)
        assert fast.score == pytest.approx(np.clip(slow, 0, 1), abs=1e-5)
        np.testing.assert_allclose(fast.predicted, np.clip(g, 0, 1), atol=1e-5)


def test_aipw_takes_the_penalty_with_the_least_left_out_error():
    rng = np.random.default_rng(0)
    x, y = rng.random((9, 14)), rng.random(14)
    eigen = sampling.centred_eigen(x.T @ x)
    errors = [
        (sampling.ridge_loo(*eigen, y, (p,))[1] ** 2).sum()
        for p in sampling.RIDGE_PENALTIES
    ]
    best = sampling.RIDGE_PENALTIES[int(np.argmin(errors))]
    for chosen, single in zip(
        sampling.ridge_loo(*eigen, y),
        sampling.ridge_loo(*eigen, y, (best,)),
        strict=True,
    ):
        np.testing.assert_allclose(chosen, single)


def test_kernels_are_finite_or_named():
    "Any Scores give a finite kernel; products of other numbers are refused"
    for seed in range(60):  # sources with gaps, items and models without any answer
        rng = np.random.default_rng(seed)
        values = table(1 + seed % 12, 20, seed, marks=seed % 2 == 0).values
        values[rng.random(values.shape) < [0, 0.3, 0.9][seed % 3]] = np.nan
        values[:, : seed % 15] = np.nan
        values[1:2] = np.nan
        if not np.isnan(values).all():
            method = prepare_method(AIPW().fit(Scores(values)), 8, seed)
            assert np.isfinite(method.cross_).all()
            asked = np.where(rng.random(8) < 0.3, np.nan, rng.random(8).round())
            assert np.isfinite(method.estimate(asked).score) or np.isnan(asked).all()
    sums = np.full((4, 4), 2e38, dtype=np.float32)  # its column sums overflow
    np.testing.assert_array_equal(sampling.centred_eigen(sums)[0], 0)
    source = table(5)
    method = AIPW().fit(source)
    source.values[0] = np.nan  # changed after fit, which keeps no copy
    with pytest.raises(ValueError, match="not finite: fill their gaps"):
        prepare_method(method, 8)


def test_aipw_makes_no_copy_of_the_table():
    source = table(50, 500)
    method = prepare_method(AIPW().fit(source), 20)
    assert method._features is source.values
    assert method.cross_.dtype == np.float32 and method.cross_.shape == (500, 20)


def test_task_scores():
    source, target = table(), table(1, seed=2)
    for make in ALL.values():
        e = simulate(make().fit(source), target, 30)[0]
        assert list(e.per_task.index) == ["a", "b", "c"]
        assert e.per_task.between(0, 1).all()
        assert e.per_task.mean() == pytest.approx(e.score, abs=0.15)
    few = simulate(RandomSampling().fit(source), target, 2)[0]
    asked = {target.items.loc[i, "task"] for i in few.items}
    assert set(few.per_task.dropna().index) == asked  # unknown is NaN
    per_task = PerTask(AIPW()).fit(source)
    assert len(simulate(per_task, target, 12)[0].per_task) == 3


@pytest.mark.slow
@each
@pytest.mark.parametrize("weights", [None, "unequal"])
def test_intervals_keep_their_promise(make, weights):
    w = None if weights is None else np.random.default_rng(1).gamma(2, size=600)
    source, target = table(40, 600, weights=w), table(40, 600, 1, weights=w)
    method, truth = make().fit(source), target.truth().to_numpy()
    held = []
    for seed in range(12):
        ends = np.array([e.interval for e in simulate(method, target, 40, seed)]).T
        held.append(interval_coverage(truth, *ends))
    assert 0.91 < np.mean(held) < 0.985


def test_residual_interval_is_never_sure():
    for n in [1, 2, 5, 40]:
        for seen in [np.ones(n), np.zeros(n), np.full(n, 0.7)]:
            for left in [None, 0.0, 0.2]:
                low, high = intervals.residual_interval(seen.mean(), seen, left, size=n)
                assert 0 <= low < high <= 1
    point = intervals.residual_interval(0.7, np.full(3, 0.7), 0.1)
    np.testing.assert_allclose(point, [0.7, 0.7])
    with pytest.raises(ValueError, match="left must lie in"):
        intervals.residual_interval(0.5, [0, 1], left=-1, size=2)
    with pytest.raises(ValueError, match="Drop the items that have no score"):
        intervals.residual_interval(0.5, [0, np.nan], size=2)


@given(st.lists(st.integers(1, 30), min_size=1, max_size=15), st.integers(1, 4))
def test_weighted_size_is_bounded(mass, times):
    share = np.array(mass) / sum(mass)
    total = len(mass) * times
    size = intervals.weighted_effective_size(share, share / times, total)
    assert 1 <= size and (times > 1 or size == np.inf)
    if times > 1:  # unequal shares never tell more than equal ones
        assert size <= intervals.effective_size(len(mass), total) + 1e-9
