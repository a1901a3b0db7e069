"Item response theory: against a slow reference, and on tables of every kind"

import warnings

import numpy as np
import pytest
from scipy.optimize import minimize, root
from scipy.special import expit

from benchnb.stats import irt
from benchnb.stats.irt import (
    IRT,
    compare_dims,
    fit_bank,
    fit_irt,
    held_out_folds,
    plain_bank,
    validation_error,
)


def world(models=60, items=15, dims=1, seed=0):
    "A made-up bank, and answers of models that are drawn at random"
    rng = np.random.default_rng(seed)
    slopes = np.exp(rng.normal(0.2, 0.6, (items, dims)))
    bank = IRT(slopes, rng.normal(0, 1, items), np.zeros(items), np.ones(items))
    chance = bank.probability(rng.normal(size=(models, dims)))
    return bank, (rng.random(chance.shape) < chance).astype(float)


def slow_abilities(bank, values):
    "Abilities and their variances, one model after the other, one dimension"
    theta, spread = [], []
    for answers in values:
        known = ~np.isnan(answers)

        def loss(z, answers=answers, known=known):
            chance = bank.probability(z[np.newaxis])[0][known]
            right = answers[known]
            told = right * np.log(chance) + (1 - right) * np.log(1 - chance)
            return z @ z / 2 - told.sum()

        z = minimize(loss, np.zeros(1), tol=1e-10).x
        chance = bank.probability(z[np.newaxis])[0][known]
        curve = 1 + (bank.slopes[known, 0] ** 2 * chance * (1 - chance)).sum()
        theta.append(z[0])
        spread.append(1 / curve)
    return np.array(theta), np.array(spread)


def slow_item(right, known, theta, spread, mean, precision):
    "The item whose averaged gradient is zero, and its uncertainty"

    def parts(w):
        flatter = 1 / np.sqrt(1 + np.pi / 8 * spread * w[0] ** 2)
        chance = expit(flatter * (w[0] * theta + w[1]))
        return flatter, chance

    def gradient(w):
        flatter, chance = parts(w)
        total = -precision @ (w - mean)
        for s in np.flatnonzero(known):
            total += (right[s] - chance[s]) * np.array([theta[s], 1])
            vague = flatter[s] * chance[s] * (1 - chance[s]) * spread[s]
            total[0] -= vague * w[0]
        return total

    w = root(gradient, [1.0, 0.0]).x
    flatter, chance = parts(w)
    curve = precision.copy()
    for s in np.flatnonzero(known):
        design = np.array([[theta[s] ** 2 + spread[s], theta[s]], [theta[s], 1]])
        curve += flatter[s] * chance[s] * (1 - chance[s]) * design
    return w, np.linalg.inv(curve)


def slow_round(values, bank):
    "One round with loops and general optimisers, from where a fit stands still"
    known = ~np.isnan(values)
    theta, spread = slow_abilities(bank, values)
    w = np.column_stack([bank.slopes, bank.intercept])
    mean = w.mean(axis=0)
    total = (w - mean).T @ (w - mean) + bank.covariance.sum(axis=0)
    total += irt.FEW * np.diag([0.25, 1])
    precision = np.linalg.inv(total / (len(w) + irt.FEW))
    found = [
        slow_item(values[:, i], known[:, i], theta, spread, mean, precision)
        for i in range(values.shape[1])
    ]
    return np.array([f[0] for f in found]), np.array([f[1] for f in found]), theta


@pytest.mark.parametrize("gaps", [0, 0.2])
def test_a_fit_stands_where_loops_and_general_optimisers_stand(gaps):
    _, values = world(models=60, items=20)
    values[np.random.default_rng(1).random(values.shape) < gaps] = np.nan
    bank = fit_irt(values, tolerance=1e-6, max_iter=1000)
    w, doubt, theta = slow_round(values, bank)
    np.testing.assert_allclose(bank.slopes[:, 0], w[:, 0], atol=0.02)
    np.testing.assert_allclose(bank.intercept, w[:, 1], atol=0.02)
    np.testing.assert_allclose(bank.covariance, doubt, atol=0.02)
    np.testing.assert_allclose(bank.theta[:, 0], theta, atol=0.02)


def test_eap_is_the_mean_of_the_posterior():
    bank, values = world(models=5)
    grid = np.linspace(-8, 8, 4001)[:, np.newaxis]
    chance = bank.probability(grid)
    placed = bank.abilities(values, how="eap")
    for row, answers in enumerate(values):
        log = np.log(chance) @ answers + np.log(1 - chance) @ (1 - answers)
        weight = np.exp(log - grid[:, 0] ** 2 / 2 - log.max())
        weight /= weight.sum()
        mean = weight @ grid[:, 0]
        deviation = np.sqrt(weight @ (grid[:, 0] - mean) ** 2)
        assert placed.theta[row, 0] == pytest.approx(mean, abs=1e-3)
        assert placed.se[row, 0] == pytest.approx(deviation, abs=1e-3)


@pytest.mark.parametrize("dims", [2, 3])
def test_eap_in_several_dimensions_agrees_with_many_draws(dims):
    bank, values = world(models=3, items=40, dims=dims)
    draws = np.random.default_rng(0).normal(size=(200_000, dims))
    chance = np.clip(bank.probability(draws), 1e-12, 1 - 1e-12)
    placed = bank.abilities(values, how="eap")
    for row, answers in enumerate(values):
        log = np.log(chance) @ answers + np.log(1 - chance) @ (1 - answers)
        weight = np.exp(log - log.max())
        mean = weight @ draws / weight.sum()
        np.testing.assert_allclose(placed.theta[row], mean, atol=0.06)


@pytest.mark.parametrize("kind", ["2pl", "3pl", "4pl"])
def test_the_pull_of_an_answer_is_a_derivative(kind):
    rng = np.random.default_rng(0)
    eta, y = rng.normal(0, 2, (4, 6)), rng.random((4, 6))
    lower = np.full(6, 0.2 if kind != "2pl" else 0.0)
    upper = np.full(6, 0.9 if kind == "4pl" else 1.0)

    def loss(eta):
        chance = lower + (upper - lower) * expit(eta)
        return y * np.log(chance) + (1 - y) * np.log(1 - chance)

    first, second = irt.answer_pull(eta, y, lower, upper)
    np.testing.assert_allclose(
        first, (loss(eta + 1e-5) - loss(eta - 1e-5)) / 2e-5, atol=1e-6
    )
    assert (second > 0).all()
    y[0, 0] = np.nan
    first, second = irt.answer_pull(eta, y, lower, upper)
    assert first[0, 0] == second[0, 0] == 0


@pytest.mark.parametrize("kind", ["3pl", "4pl"])
def test_the_gradient_of_the_asymptotes_is_a_derivative(kind):
    rng = np.random.default_rng(1)
    extra = irt.KINDS[kind]
    params = np.column_stack([rng.normal(1, 0.2, (5, 1)), rng.normal(size=(5, 1))])
    params = np.hstack([params, np.tile(irt.BOUNDS[:extra], (5, 1))])
    theta, y = rng.normal(size=(30, 1)), rng.random((30, 5))
    design = np.column_stack([theta, np.ones(30)])
    point = np.zeros((30, 1, 1))  # abilities known exactly

    def loss(params):
        lower, upper = irt._bounds(params, 1, kind)
        chance = lower + (upper - lower) * expit(design @ params[:, :2].T)
        return (y * np.log(chance) + (1 - y) * np.log(1 - chance)).sum(axis=0)

    gradient, curve = irt._item_curvature(params, y, design, point, kind)
    for j in range(2 + extra):
        move = np.zeros(params.shape)
        move[:, j] = 1e-5
        slope = (loss(params + move) - loss(params - move)) / 2e-5
        np.testing.assert_allclose(gradient[:, j], slope, atol=1e-5)
    np.testing.assert_allclose(curve, curve.transpose(0, 2, 1))
    assert (np.linalg.eigvalsh(curve) > -1e-9).all()


@pytest.mark.parametrize("kind", ["1pl", "2pl", "3pl", "4pl"])
def test_every_kind_settles_and_tells_items_apart(kind):
    rng = np.random.default_rng(3)
    slopes = np.full(40, 1.3) if kind == "1pl" else np.exp(rng.normal(0.2, 0.3, 40))
    lower = np.full(40, 0.2 if kind in ("3pl", "4pl") else 0.0)
    upper = np.full(40, 0.9 if kind == "4pl" else 1.0)
    truth = IRT(slopes[:, np.newaxis], rng.normal(0, 1, 40), lower, upper)
    chance = truth.probability(rng.normal(size=(800, 1)))
    bank = fit_irt((rng.random(chance.shape) < chance).astype(float), kind)
    assert bank.converged
    apart = np.abs(bank.probability(bank.theta).mean(axis=0) - chance.mean(axis=0))
    assert apart.max() < 0.06
    if kind == "1pl":
        assert np.ptp(bank.slopes) < 1e-9
        assert bank.slopes.mean() == pytest.approx(1.3, abs=0.1)
    else:
        assert np.corrcoef(bank.slopes[:, 0], slopes)[0, 1] > 0.5
    assert (bank.lower > 0).all() == (kind in ("3pl", "4pl"))
    assert (bank.upper < 1).all() == (kind == "4pl")


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
    np.testing.assert_allclose(turned.theta[::-1], bank.theta, atol=0.02)


def test_blocks_change_nothing(monkeypatch):
    _, values = world(dims=2)
    values[2, 3:7] = np.nan
    whole = fit_irt(values, dims=2)
    monkeypatch.setattr(irt, "BLOCK", 100)
    pieces = fit_irt(values, dims=2)
    np.testing.assert_allclose(whole.slopes, pieces.slopes, atol=1e-8)


def test_a_sample_of_items_places_the_models_as_all_do():
    _, values = world(models=80, items=400)
    whole, part = fit_irt(values), fit_irt(values, sample=200)
    assert np.corrcoef(whole.theta[:, 0], part.theta[:, 0])[0, 1] > 0.97
    assert np.corrcoef(whole.intercept, part.intercept)[0, 1] > 0.99


@pytest.mark.parametrize(
    "spoil",
    {
        "all right": lambda v: v * 0 + 1,
        "all wrong": lambda v: v * 0,
        "constant columns": lambda v: np.where(np.arange(15) < 8, 1.0, v),
        "an empty row": lambda v: np.where(np.arange(60)[:, None] == 4, np.nan, v),
        "an empty column": lambda v: np.where(np.arange(15) == 4, np.nan, v),
        "two equal models": lambda v: v[[0] * 30 + [1] * 30],
        "part marks": lambda v: 0.25 + v / 2,
        "three models": lambda v: v[:3],
        "one item": lambda v: v[:, :1],
    }.values(),
)
def test_odd_tables_have_finite_curves(spoil):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        values = spoil(world()[1])
        bank = fit_irt(values)
    for part in (bank.slopes, bank.intercept, bank.theta, bank.covariance):
        assert np.isfinite(part).all()
    chance = bank.probability(bank.theta)
    assert ((chance > 0) & (chance < 1)).all()
    placed = bank.abilities(np.stack([np.ones(values.shape[1])] * 2))
    assert np.isfinite(placed.theta).all() and (np.abs(placed.theta) < 10).all()


def test_what_was_lost_is_noted():
    _, values = world()
    values[4], values[:, 2] = np.nan, np.nan
    bank = fit_irt(values)
    assert any("1 items without any source" in note for note in bank.notes)
    assert any("1 sources without any answer" in note for note in bank.notes)
    assert bank.theta[4] == 0


def test_not_settled_is_said_and_warned():
    with pytest.warns(UserWarning, match="had not settled after 2 rounds"):
        bank = fit_irt(world()[1], max_iter=2)
    assert not bank.converged and "not settled" in bank.notes[-1]


@pytest.mark.parametrize(
    ("values", "settings", "words"),
    [
        (np.ones((2, 5)), {}, ["3 or more models", "got 2"]),
        (np.full((5, 5), np.nan), {}, ["3 or more models", "got 0"]),
        (np.ones(5), {}, ["models x items"]),
        (np.ones((5, 5)) * 2, {}, ["in [0, 1]"]),
        (np.ones((5, 5)), {"kind": "5pl"}, ["1pl, 2pl", "'5pl'"]),
        (np.ones((5, 5)), {"kind": "3pl", "dims": 2}, ["dims=2", "3pl"]),
        (np.ones((5, 5)), {"dims": 5}, ["more than 5 models"]),
    ],
)
def test_bad_tables_are_refused_in_one_line(values, settings, words):
    with pytest.raises(ValueError) as error:
        fit_irt(values, **settings)
    assert "\n" not in str(error.value)
    assert all(word in str(error.value) for word in words)


def test_bad_answers_are_refused():
    bank = world()[0]
    with pytest.raises(ValueError, match="models x 15 answers"):
        bank.abilities(np.ones((2, 3)))
    with pytest.raises(ValueError, match="'map' or 'eap'"):
        bank.abilities(np.ones((2, 15)), how="mode")


def test_few_sources_fall_back():
    _, values = world()
    assert fit_bank(values[:2]).notes == plain_bank(values[:2]).notes
    assert fit_bank(values[:7], dims=5).slopes.shape[1] == 1
    assert fit_bank(values[:1] * np.nan).intercept == pytest.approx(
        plain_bank(values[:1] * np.nan).intercept
    )


def test_folds_are_alike_in_strength():
    _, values = world(models=53)
    fold = held_out_folds(values)
    strength = [values[fold == f].mean() for f in range(5)]
    assert np.ptp(strength) < 0.1
    assert np.ptp(np.bincount(fold)) <= 1


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


def test_two_skills_ask_for_two_dimensions():
    rng = np.random.default_rng(0)
    slopes = np.zeros((80, 2))
    slopes[::4, 0] = slopes[1::4, 0] = slopes[2::4, 1] = slopes[3::4, 1] = 2
    bank = IRT(slopes, rng.normal(0, 1, 80), np.zeros(80), np.ones(80))
    chance = bank.probability(rng.normal(size=(150, 2)))
    values = (rng.random(chance.shape) < chance) * 1.0
    only_one = (slopes[:, 1] > 0) / 40  # the score counts one of the skills
    errors = compare_dims(values, (1, 2), only_one, every=True)["error"]
    assert errors[2] < 0.95 * errors[1]
