"""What the chapters on the fit and the posterior do not show: one item against SciPy,
gaps, odd tables, partial scores, and that the fit is the same every time."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize

from benchnb.stats import irt
from benchnb.stats.irt import (
    log_likelihood,
    log_prior,
    pool_predictions,
    posterior_mode,
    predict_score,
    predictive_curves,
    predictive_probabilities,
    sample_posterior,
)
from benchnb.stats.irt_fit import (
    ItemParameters,
    Responses,
    fit_irt,
    item_step,
    source_step,
)
from benchnb.stats.logistic import NormalPrior


def fit_plain(values, weights, dims=3):
    "The fit that guarded_irt uses"
    return fit_irt(values, dims, weights, False, rounds=25, tolerance=0)


def made_up(models=40, items=60, dims=2, seed=0):
    "Answers that follow a factor model, and the chances that they follow"
    rng = np.random.default_rng(seed)
    slopes = rng.normal([1.5] + [0] * (dims - 1), 0.7, (items, dims))
    eta = rng.normal(size=(models, dims)) @ slopes.T + rng.normal(size=items)
    chance = 1 / (1 + np.exp(-eta))
    return (rng.random(chance.shape) < chance).astype(float), chance


def even(items):
    return np.full(items, 1 / items)


@pytest.mark.parametrize("gaps", [False, True])
@pytest.mark.parametrize("dims", [1, 3])
def test_one_items_fit_is_that_of_scipy(gaps, dims):
    rng = np.random.default_rng(1)
    values, _ = made_up(dims=dims)
    if gaps:
        values[rng.random(values.shape) < 0.3] = np.nan
    places = rng.normal(size=(40, dims))
    mean, covariance = np.full(dims + 1, 0.3), np.eye(dims + 1) * 1.7
    start = ItemParameters(
        np.zeros((60, dims + 1)), np.zeros((60, dims + 1, dims + 1)), mean, covariance
    )
    fitted = start
    for _ in range(25):
        fitted = item_step(fitted, Responses(values), places)
    fast, doubt = fitted.params, fitted.covariance
    design = np.column_stack([np.ones(40), places])
    for item in (0, 17, 59):
        known = ~np.isnan(values[:, item])
        x, y = design[known], values[known, item]

        def height(w, x=x, y=y):
            eta = x @ w
            like = np.logaddexp(0, eta).sum() - y @ eta
            return like + ((w - mean) ** 2).sum() / (2 * 1.7)

        slow = minimize(height, np.zeros(dims + 1), method="BFGS", tol=1e-8)
        np.testing.assert_allclose(fast[item], slow.x, atol=2e-3)
        chance = 1 / (1 + np.exp(-(x @ slow.x)))
        curve = (x.T * (chance * (1 - chance))) @ x + np.eye(dims + 1) / 1.7
        np.testing.assert_allclose(doubt[item], np.linalg.inv(curve), atol=2e-3)


def test_one_sources_step_leads_to_the_optimum_of_scipy():
    values, _ = made_up()
    params = np.random.default_rng(2).normal(size=(60, 3))
    items = ItemParameters(params, np.zeros((60, 3, 3)), np.zeros(3), np.eye(3))
    answers, places = Responses(values), np.zeros((40, 2))
    for _ in range(30):
        places, _ = source_step(items, answers, places)

    def height(z):
        eta = params[:, 0] + params[:, 1:] @ z
        return np.logaddexp(0, eta).sum() - values[7] @ eta + z @ z / 2

    slow = minimize(height, np.zeros(2), method="BFGS", tol=1e-8)
    np.testing.assert_allclose(places[7], slow.x, atol=2e-3)


def test_gaps_are_skipped():
    values, chance = made_up(models=150, items=80)
    holes = np.where(
        np.random.default_rng(3).random(values.shape) < 0.3, np.nan, values
    )
    holes[4] = np.nan  # a source without any answer
    holes[:, 9] = np.nan  # an item that nobody answered
    model = fit_plain(holes, even(80), dims=2)
    assert model.theta.shape == (150, 2) and not model.theta[4].any()
    found = np.delete(predictive_probabilities(model, model.theta)[0], 4, axis=0)
    assert np.isfinite(found).all()
    assert np.abs(found - np.delete(chance, 4, axis=0)).mean() < 0.1
    np.testing.assert_allclose(model.slopes[9], model.slopes.mean(axis=0), atol=0.5)


def test_without_answers_the_prior_speaks():
    values, _ = made_up(models=100)
    model = fit_plain(values, even(60), dims=2)
    items, seen = np.zeros((1, 0), int), np.zeros((1, 0))
    posterior = sample_posterior(model, items, seen)
    found = predict_score(model, posterior, items, seen)
    assert found.score[0] == pytest.approx(values.mean(), abs=0.05)
    assert np.sqrt(found.variance[0]) > 0.6 * values.mean(axis=1).std()


def test_standard_errors_are_true_where_the_model_is():
    values, _ = made_up(models=240, items=100, seed=4)
    model = fit_plain(values[:140], even(100), dims=2)
    rng, new = np.random.default_rng(5), values[140:]
    items = np.array([rng.permutation(100)[:25] for _ in new])
    seen = np.take_along_axis(new, items, axis=1)
    found = predict_score(model, sample_posterior(model, items, seen), items, seen)
    ratios = (found.score - new.mean(axis=1)) / np.sqrt(found.variance)
    assert 0.8 < np.sqrt(np.mean(np.square(ratios))) < 1.25


def test_the_most_likely_place_is_that_of_scipy():
    values, _ = made_up()
    model = fit_plain(values, even(60), dims=2)
    items = np.arange(0, 60, 3)
    flat = replace(model, covariance=model.covariance * 0)
    place = posterior_mode(flat, items[np.newaxis], values[[3]][:, items])[0][0]

    def height(z):
        eta = model.intercepts[items] + model.slopes[items] @ z
        like = np.logaddexp(0, eta).sum() - values[3, items] @ eta
        return like + z @ np.diag([0.25, 1]) @ z / 2

    slow = minimize(height, np.zeros(2), method="BFGS", tol=1e-8)
    np.testing.assert_allclose(place, slow.x, atol=2e-3)


def test_models_side_by_side_are_those_alone_whatever_they_lack():
    values, _ = made_up(models=60)
    banks = [fit_plain(values[:50], even(60), dims) for dims in (2, 3)]
    rng = np.random.default_rng(7)
    items = np.array([rng.permutation(60)[:20] for _ in range(10)])
    seen = np.take_along_axis(values[50:], items, axis=1)
    seen[rng.random(seen.shape) < 0.3] = np.nan
    seen[4] = np.nan  # a model without any answer
    trials = rng.integers(1, 4, seen.shape)
    together = pool_predictions(banks, items, seen, trials)
    for row in range(10):
        known = ~np.isnan(seen[row])
        part = (array[row, known][np.newaxis] for array in (items, seen, trials))
        alone = pool_predictions(banks, *part)
        for all_of_them, one in zip(together[:3], alone[:3], strict=True):
            np.testing.assert_allclose(all_of_them[row], one[0], rtol=1e-3, atol=1e-5)


def test_a_few_draws_stand_for_all_where_items_are_many(monkeypatch):
    values, _ = made_up(models=60, items=400, dims=3)
    banks = [fit_plain(values[:50], even(400), dims) for dims in (2, 3, 4)]
    items = np.tile(np.arange(0, 400, 5), (10, 1))
    seen = values[50:, ::5].copy()
    seen[3, :9] = np.nan
    exact = pool_predictions(banks, items, seen)
    monkeypatch.setattr(irt, "MANY_ITEMS", 0)
    posterior = sample_posterior(banks[0], items[:1], seen[:1])
    few, mixture = irt.spanning_draws(banks[0], posterior.theta[0])
    assert len(few) < 40  # of 128
    curves = predictive_curves(banks[0], posterior.theta[0])[0]
    np.testing.assert_allclose(mixture @ curves[few], curves, atol=2e-3)
    fast = pool_predictions(banks, items, seen)
    np.testing.assert_allclose(fast.score, exact.score, atol=2e-6)
    np.testing.assert_allclose(fast.variance, exact.variance, rtol=1e-3)
    np.testing.assert_allclose(fast.per_item, exact.per_item, atol=1e-3)


def test_the_prior_is_a_sum_over_sources():
    values, _ = made_up(models=12)
    model = fit_plain(values, even(60), dims=2)
    at, width = np.array([[0.3, -0.2], [4, 1]]), 12 ** (-1 / 6)
    cov = width**2 * (np.cov(model.theta.T, bias=True) + 1e-6 * np.eye(2))
    wide = np.diag([9, 1.5])

    def bell(x, cov):
        return np.exp(-x @ np.linalg.inv(cov) @ x / 2) / np.sqrt(np.linalg.det(cov))

    for place, fast in zip(at, log_prior(model, at), strict=True):
        centres = model.theta * np.sqrt(1 - width**2)
        like = np.mean([bell(place - centre, cov) for centre in centres])
        slow = np.log(0.9 * like + 0.1 * bell(place, wide))
        assert fast == pytest.approx(slow, abs=1e-6)


def test_a_posterior_with_a_prior_of_its_own_is_that_on_a_grid():
    rng = np.random.default_rng(1)
    bank = fit_irt((rng.random((24, 40)) < rng.random(40)).astype(float))
    items, seen = np.arange(6)[np.newaxis], np.array([[1.0, 1, 0, 1, 1, 1]])
    prior = NormalPrior(np.array([-1.0]), np.array([[6.0]]))
    found = sample_posterior(bank, items, seen, prior=prior)
    grid = np.linspace(-6, 6, 4001)[:, np.newaxis]
    chance = predictive_probabilities(bank, grid[np.newaxis], items)[0]
    log = log_likelihood(chance, seen)[0] - 3 * (grid[:, 0] + 1) ** 2
    exact = np.exp(log - log.max())
    mean = (exact / exact.sum()) @ grid[:, 0]
    assert abs(found.weights[0] @ found.theta[0, :, 0] - mean) < 0.01
