"""The fit of item curves beside a slow and obvious one: three Newton steps of each item
and two of each source in turn, one at a time, in as many rounds as it takes."""

import numpy as np
import pytest
from scipy.special import expit

from benchnb.stats.irt_fit import (
    Responses,
    fit_dimensions,
    fit_irt,
    initial_abilities,
    initial_items,
    inverses,
    learn_prior,
    standardize_abilities,
    symmetric_matrices,
)
from benchnb.stats.logistic import newton_step

PLAIN = dict(marginal=False, rounds=200, tolerance=1e-4)


def made_up(models=90, items=60, dims=2, seed=0):
    rng = np.random.default_rng(seed)
    slopes = rng.normal([1.5] + [0.3] * (dims - 1), 0.6, (items, dims))
    chance = expit(rng.normal(size=(models, dims)) @ slopes.T + rng.normal(size=items))
    return (rng.random(chance.shape) < chance).astype(float)


def newton(rows, scores, runs, offset, mean, precision, start, longest):
    "One step of one logistic regression; its Hessian"
    known = ~np.isnan(scores)
    x, y, n = rows[known], scores[known], runs[known]
    chance = expit(x @ start + offset[known])
    hessian = (x.T * (n * chance * (1 - chance))) @ x + precision
    gradient = x.T @ (n * (y - chance)) - precision @ (start - mean)
    return start + newton_step(gradient, hessian, longest), hessian


def slow_fit(values, dims, trials, rounds=25):
    "P(correct) of all sources, as the fit without the models' uncertainty has it"
    models, number = values.shape
    theta, items = initial_abilities(values, dims), initial_items(values, dims)
    for turn in range(rounds):
        design = np.column_stack([np.ones(models), theta])
        precision, none = np.linalg.inv(items.prior), np.zeros(models)
        params, covariance = items.params.copy(), items.covariance.copy()
        for i in range(number):
            for _ in range(3 if turn else 6):
                params[i], hessian = newton(
                    design, values[:, i], trials[:, i], none, items.mean, precision,
                    params[i], 2,
                )  # fmt: skip
            covariance[i] = np.linalg.inv(hessian)
        items = learn_prior(items._replace(params=params, covariance=covariance), False)
        for s in range(models):
            for _ in range(2):
                theta[s] = newton(
                    params[:, 1:], values[s], trials[s], params[:, 0], np.zeros(dims),
                    np.eye(dims), theta[s], 1,
                )[0]  # fmt: skip
        items, theta, _ = standardize_abilities(
            items, theta, np.zeros((models, dims, dims))
        )
    return expit(theta @ items.params[:, 1:].T + items.params[:, 0])


@pytest.mark.parametrize("kind", ["whole", "gaps", "runs"])
def test_one_step_a_round_leads_where_many_steps_lead(kind):
    rng, values = np.random.default_rng(1), made_up()
    trials = np.ones(values.shape)
    if kind == "gaps":
        values[rng.random(values.shape) < 0.2] = np.nan
    if kind == "runs":
        trials = rng.integers(1, 5, values.shape)
        values = rng.binomial(trials, 0.2 + 0.6 * values) / trials
    slow = slow_fit(values, 2, trials)
    bank = fit_irt(values, 2, trials=trials, **PLAIN)
    fast = bank.probability(bank.theta)
    assert bank.converged and bank.rounds > 5
    assert np.sqrt(np.mean((fast - slow) ** 2)) < 0.01
    assert np.abs(fast.mean(axis=1) - slow.mean(axis=1)).max() < 0.005


def test_a_part_fitted_from_the_whole_is_that_of_a_fit_of_its_own():
    values = made_up(models=150, items=60)
    kept = np.arange(150) % 5 > 0
    whole = fit_dimensions(values, [1, 2], **PLAIN)
    for bank in whole:
        bank.theta = bank.theta[kept]
    settled = PLAIN | {"tolerance": 0.01}
    parts = fit_dimensions(values[kept], [1, 2], start=whole, **settled)
    alone = fit_dimensions(values[kept], [1, 2], **PLAIN)
    for start, part, own in zip(whole, parts, alone, strict=True):
        chance = own.probability(own.theta)
        near = np.abs(part.probability(part.theta) - chance).mean()
        assert part.rounds < own.rounds and near < 0.01
        assert near < np.abs(start.probability(start.theta) - chance).mean()


def test_a_part_may_start_though_some_sources_have_no_answers():
    values = made_up()
    values[7] = np.nan
    whole = fit_dimensions(values, [2], **PLAIN)
    again = fit_dimensions(values, [2], start=whole, **PLAIN)[0]
    assert not again.theta[7].any() and again.rounds < whole[0].rounds
    np.testing.assert_allclose(
        again.probability(again.theta), whole[0].probability(whole[0].theta), atol=0.01
    )


def test_banks_fitted_together_are_those_fitted_alone():
    values = made_up(dims=3)
    for dims, bank in zip((1, 2, 3), fit_dimensions(values, (1, 2, 3)), strict=True):
        alone = fit_irt(values, dims)
        np.testing.assert_allclose(
            bank.probability(bank.theta), alone.probability(alone.theta), atol=1e-5
        )


def test_rotating_the_abilities_changes_no_probability():
    values = made_up()
    theta, items = initial_abilities(values, 2), initial_items(values, 2)
    rng = np.random.default_rng(0)
    items = items._replace(params=rng.normal(size=items.params.shape))
    moved, turned, spread = standardize_abilities(
        items,
        theta @ [[0, 1], [-1, 0]],
        np.tile(np.diag([0.3, 0.1]), (90, 1, 1)),
        theta,
    )
    before = items.params[:, 0] + theta @ [[0, 1], [-1, 0]] @ items.params[:, 1:].T
    after = moved.params[:, 0] + turned @ moved.params[:, 1:].T
    np.testing.assert_allclose(after, before, atol=1e-9)
    assert np.corrcoef(turned.T, theta.T)[0, 2] > 0.99
    total = np.cov(turned.T, bias=True) + spread.mean(axis=0)
    np.testing.assert_allclose(total, np.eye(2), atol=1e-9)


def test_blocks_cover_each_item_once(monkeypatch):
    values = made_up(models=30, items=41)
    whole = fit_irt(values, 2)
    monkeypatch.setattr("benchnb.stats.irt_fit.BLOCK", 300)
    assert [part.start for part in Responses(values).blocks()] == [0, 10, 20, 30, 40]
    parts = fit_irt(values, 2)
    np.testing.assert_allclose(parts.slopes, whole.slopes, atol=1e-3)


def test_inverses_are_those_of_lapack():
    rng = np.random.default_rng(0)
    for size in (1, 2, 6):
        rows = rng.normal(size=(50, size + 3, size))
        matrices = rows.swapaxes(1, 2) @ rows + 1e-3 * np.eye(size)
        np.testing.assert_allclose(
            inverses(matrices), np.linalg.inv(matrices), rtol=1e-7, atol=1e-9
        )
        upper = np.triu_indices(size)
        pairs = np.array([matrix[upper] for matrix in matrices])
        np.testing.assert_array_equal(symmetric_matrices(pairs, size), matrices)
