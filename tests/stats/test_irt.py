"Item response theory: against a slow reference, and on tables of every kind"

import warnings

import numpy as np
import pytest
from scipy.special import expit

from benchnb.stats import irt_fit
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
    bank = IRT(slopes, rng.normal(0, 1, items))
    chance = bank.probability(rng.normal(size=(models, dims)))
    return bank, (rng.random(chance.shape) < chance).astype(float)


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


@pytest.mark.parametrize("kind", ["3pl", "4pl"])
def test_the_gradient_of_the_asymptotes_is_a_derivative(kind):
    rng = np.random.default_rng(1)
    extra = irt_fit.KINDS[kind]
    params = np.column_stack([rng.normal(size=(5, 1)), rng.normal(1, 0.2, (5, 1))])
    params = np.hstack([params, np.tile(irt_fit.BOUNDS[:extra], (5, 1))])
    theta, y = rng.normal(size=(30, 1)), rng.random((30, 5))
    design = np.column_stack([np.ones(30), theta])
    point = np.zeros((30, 1, 1))  # abilities known exactly

    def loss(params):
        last = expit(params[:, 2:])
        lower, upper = last[:, 0], last[:, 1] if extra > 1 else 1.0
        chance = lower + (upper - lower) * expit(design @ params[:, :2].T)
        return (y * np.log(chance) + (1 - y) * np.log(1 - chance)).sum(axis=0)

    items = irt_fit.Items(params, None, None, None)
    known = (slice(None), irt_fit.Responses(y), theta, point, extra)
    gradient, curve = irt_fit.item_derivatives(items, *known)
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
    assert np.all(bank.lower > 0) == (kind in ("3pl", "4pl"))
    assert np.all(bank.upper < 1) == (kind == "4pl")


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


def test_blocks_change_nothing(monkeypatch):
    _, values = world(dims=2)
    values[2, 3:7] = np.nan
    whole = fit_irt(values, dims=2)
    monkeypatch.setattr(irt_fit, "BLOCK", 100)
    pieces = fit_irt(values, dims=2)
    np.testing.assert_allclose(whole.slopes, pieces.slopes, atol=1e-5)  # 32 bits


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
    for part in (bank.slopes, bank.intercepts, bank.theta, bank.covariance):
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
        bank = fit_irt(world()[1], rounds=2)
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
    assert fit_bank(values[:1] * np.nan).intercepts == pytest.approx(
        plain_bank(values[:1] * np.nan).intercepts
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


@pytest.mark.parametrize("shape", [(30, 6), (6, 30), (9, 9), (9, 2), (9, 1)])
def test_the_start_takes_the_smaller_product(shape):
    "The directions of the models' large product; beyond the rank any will do"
    table = np.random.default_rng(shape).standard_normal(shape)
    slow = np.linalg.eigh(table @ table.T)[1][:, ::-1][:, :3]
    fast = irt_fit.principal_vectors(table, min(3, shape[0]))
    np.testing.assert_allclose(fast.T @ fast, np.eye(3), atol=1e-9)
    rank = min(3, *shape)
    alike = np.abs((fast * slow)[:, :rank].sum(axis=0))
    np.testing.assert_allclose(alike, 1, atol=1e-9)
