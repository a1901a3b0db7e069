"""What the chapter on LEGO-IRT does not show: the posterior maximised by SciPy, one
benchmark as plain item response theory, gaps, and the draw of the items."""

import numpy as np
import pytest
from helpers.small import fit, halves, prepared, table, with_values
from scipy.optimize import minimize
from scipy.special import expit, logit

from benchnb.evaluation.method import Flag
from benchnb.methods.lego_irt import LegoBank, LegoIRT, fit_lego, lego_abilities

TASK = np.repeat([0, 1, 2], 8)


def bank(noise, seed=0):
    rng = np.random.default_rng(seed)
    curves = rng.uniform(0.4, 2, 24), rng.normal(0, 1, 24)
    return LegoBank(*curves, np.full(24, noise), TASK, 0.3, 9.0)


def minus_log_posterior(point, row, one):
    "Equations 1 and 2, written down item by item"
    theta, delta = point[0], point[1:]
    total = theta**2 / 2 + (delta**2).sum() / (2 * one.spread)
    for j, y in enumerate(row):
        if np.isnan(y):
            continue
        eta = one.slopes[j] * (theta + delta[TASK[j]]) + one.intercepts[j]
        if np.isnan(one.noise[j]):
            total -= y * np.log(expit(eta)) + (1 - y) * np.log(expit(-eta))
        else:
            away = logit(np.clip(y, 0.02, 0.98)) - eta
            total += away**2 / (2 * one.noise[j])
    return total


@pytest.mark.parametrize("noise", [np.nan, 0.7])
def test_abilities_maximise_the_posterior(noise):
    one, rng = bank(noise), np.random.default_rng(1)
    values = rng.integers(0, 2, (5, 24)) if np.isnan(noise) else rng.random((5, 24))
    values = np.where(rng.random((5, 24)) < 0.2, np.nan, values)
    theta, delta = lego_abilities(values, one, steps=200)
    for m, row in enumerate(values):
        best = minimize(minus_log_posterior, np.zeros(4), (row, one))
        assert [theta[m], *delta[m]] == pytest.approx(best.x, abs=1e-3)
    short = lego_abilities(values, one)
    assert short[0] == pytest.approx(theta, abs=0.02)


def test_a_steep_curve_is_climbed_and_not_jumped_over():
    one = bank(np.nan)._replace(slopes=np.full(24, 8.0))
    theta, _ = lego_abilities(np.ones((1, 24)), one)
    row = np.ones(24)
    best = minimize(minus_log_posterior, np.zeros(4), (row, one)).x
    assert theta[0] == pytest.approx(best[0], abs=0.1)


def test_curves_of_continuous_items_are_regressions():
    rng = np.random.default_rng(0)
    ability = rng.normal(size=400)
    eta = np.outer(ability, np.linspace(0.5, 2, 24)) + np.linspace(-1, 1, 24)
    values = expit(eta + rng.normal(0, 0.5, eta.shape))
    found = fit_lego(values, np.zeros(24, int))
    assert found.slopes == pytest.approx(np.linspace(0.5, 2, 24), abs=0.25)
    assert found.noise == pytest.approx(np.full(24, 0.25), abs=0.15)
    marks = fit_lego(values, np.zeros(24, int), graded=False)
    assert np.isnan(marks.noise).all()


def test_one_benchmark_has_no_offsets():
    values = table().values.astype(float)
    one = fit_lego(values, np.zeros(60, int))
    assert np.abs(lego_abilities(values, one)[1]).max() < 1e-3


def test_items_are_spread_over_the_tasks_and_none_without_weight():
    source = halves()[0]
    method = prepared(fit("lego_irt", source), 12)
    asked = source.items["task"].iloc[method.coreset_].value_counts()
    assert asked.to_dict() == {"algebra": 4, "logic": 4, "reading": 4}  # equal weights


def test_gaps_and_a_model_beyond_the_sources():
    source = halves()[0]
    rng = np.random.default_rng(0)
    gaps = np.where(rng.random(source.shape) < 0.3, np.nan, source.values)
    gaps[2] = np.nan
    method = prepared(LegoIRT().fit(with_values(source, gaps)), 20)
    found = method.estimate(np.ones(20))
    assert 0.5 < found.score <= 1 and found.predicted.shape == (60,)
    assert (
        Flag.OUT_OF_RANGE
        in prepared(fit("lego_irt", source), 40).estimate(np.ones(40)).flags
    )
    assert np.isnan(method.estimate(np.full(20, np.nan)).score)
