"""Curves of one target against SciPy, extreme answers, person fit"""

import numpy as np
import pytest
from scipy.optimize import minimize, minimize_scalar
from scipy.special import expit

from benchnb.stats.logistic import fit_rasch_curve, person_fit, predict_from_easiness


def test_rasch_curve_is_that_of_scipy():
    rng = np.random.default_rng(0)
    ease, items = rng.normal(size=30), rng.permutation(30)[:12]
    seen = rng.uniform(size=12)

    def depth(level):
        p = expit(level + ease[items])
        log = seen @ np.log(p) + (1 - seen) @ np.log1p(-p)
        return level**2 / 50 - log

    level = minimize_scalar(depth).x
    assert np.allclose(
        fit_rasch_curve(ease, items, seen), expit(level + ease), atol=1e-6
    )


@pytest.mark.parametrize("seen", [np.zeros(3), np.ones(3), np.zeros(0)])
def test_rasch_curve_of_separable_answers_is_finite(seen):
    ease = np.array([-9.0, 0, 9, 1])
    guess = fit_rasch_curve(ease, np.arange(len(seen)), seen)
    assert ((guess > 0) & (guess <= 1)).all()


def test_target_curve_is_that_of_scipy():
    rng = np.random.default_rng(0)
    ease, items = rng.normal(size=30), rng.permutation(30)[:12]
    seen = rng.integers(0, 2, 12).astype(float)

    def height(line):
        eta = line[0] + line[1] * ease[items]
        like = np.logaddexp(0, eta).sum() - seen @ eta
        return like + line[0] ** 2 / 50 + (line[1] - 0.7) ** 2 / 0.5

    best = minimize(height, [0, 0.7], method="BFGS", tol=1e-9).x
    slow = 1 / (1 + np.exp(-(best[0] + best[1] * ease)))
    np.testing.assert_allclose(
        predict_from_easiness(ease, items, seen), slow, atol=1e-4
    )


def test_person_fit_is_standard_normal_where_the_model_is_right():
    rng = np.random.default_rng(3)
    chance = rng.uniform(0.1, 0.9, 60)
    many_fits = [
        person_fit(chance, (rng.random(60) < chance) * 1.0) for _ in range(4000)
    ]
    assert np.mean(many_fits) == pytest.approx(0, abs=0.06)
    assert np.std(many_fits) == pytest.approx(1, abs=0.05)
