"Item response theory: against a slow reference, and on tables of every kind"

import numpy as np
import pytest

from benchnb.stats.irt import IRT, validation_error
from benchnb.stats.irt_fit import fit_bank, fit_irt, make_plain_bank


def world(models=60, items=15, dims=1, seed=0):
    "A made-up bank, and answers of models that are drawn at random"
    rng = np.random.default_rng(seed)
    slopes = np.exp(rng.normal(0.2, 0.6, (items, dims)))
    bank = IRT(slopes, rng.normal(0, 1, items))
    chance = bank.probability(rng.normal(size=(models, dims)))
    return bank, (rng.random(chance.shape) < chance).astype(float)


def test_the_scale_is_that_of_the_sources():
    _, values = world(models=200, items=60, dims=2)
    bank = fit_irt(values, dims=2)
    assert np.abs(bank.theta.mean(axis=0)).max() < 0.05
    spread = bank.abilities(values).covariance.mean(axis=0)
    np.testing.assert_allclose(
        np.cov(bank.theta.T, bias=True) + spread, np.eye(2), atol=0.1
    )
    assert np.corrcoef(bank.theta[:, 0], values.mean(axis=1))[0, 1] > 0.9
    turned = fit_irt(values[::-1], dims=2)
    chance = bank.probability(bank.theta)
    again = turned.probability(turned.theta[::-1])
    np.testing.assert_allclose(again, chance, atol=0.02)


def test_the_fit_of_equal_slopes_finds_them_again():
    rng = np.random.default_rng(3)
    truth = IRT(np.full((40, 1), 1.3), rng.normal(0, 1, 40))
    chance = truth.probability(rng.normal(size=(800, 1)))
    bank = fit_irt((rng.random(chance.shape) < chance).astype(float))
    apart = np.abs(bank.probability(bank.theta).mean(axis=0) - chance.mean(axis=0))
    assert bank.converged and apart.max() < 0.06
    assert bank.slopes.mean() == pytest.approx(1.3, abs=0.1)


def test_not_settled_is_said_and_warned():
    with pytest.warns(UserWarning, match="had not settled after 2 rounds"):
        bank = fit_irt(world()[1], rounds=2)
    assert not bank.converged and "not settled" in bank.notes[-1]


@pytest.mark.parametrize(
    ("values", "settings", "words"),
    [
        (np.ones((2, 5)), {}, ["3 or more models", "got 2"]),
        (np.full((5, 5), np.nan), {}, ["3 or more models", "got 0"]),
        (np.ones(5), {}, ["models x items"]),
        (np.ones((5, 5)) * 2, {}, ["in [0, 1]"]),
        (np.ones((5, 5)), {"dims": 5}, ["more than 5 models"]),
        (np.ones((5, 5)), {"dims": 0}, ["dims must be at least 1, got 0"]),
    ],
)
def test_bad_tables_are_refused_in_one_line(values, settings, words):
    with pytest.raises(ValueError) as error:
        fit_irt(values, **settings)
    assert "\n" not in str(error.value)
    assert all(word in str(error.value) for word in words)


def test_few_sources_fall_back():
    _, values = world()
    assert fit_bank(values[:2]).notes == make_plain_bank(values[:2]).notes
    assert fit_bank(values[:7], dims=5).slopes.shape[1] == 1
    assert fit_bank(values[:1] * np.nan).intercepts == pytest.approx(
        make_plain_bank(values[:1] * np.nan).intercepts
    )


def test_the_validation_error_is_that_of_the_weighted_mean():
    bank, values = world(models=10, items=16)
    weights = np.random.default_rng(0).random(16)
    slow = []
    for answers in values:
        theta = bank.select(np.arange(0, 16, 2)).abilities(answers[None, ::2]).theta
        guess = bank.probability(theta)[0, 1::2]
        slow.append(np.average(guess - answers[1::2], weights=weights[1::2]))
    error = validation_error(bank, values, weights)
    assert error == pytest.approx(np.abs(slow).mean(), rel=1e-6)
