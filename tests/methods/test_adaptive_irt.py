"""What the chapter on the adaptive test does not show: a slow reference, side by side
equals one by one, odd answers, saving."""

import numpy as np
import pytest
from helpers.small import halves, prepared, with_values

from benchnb.data.costs import Amount, Unit
from benchnb.data.scores import Scores
from benchnb.data.sources import load
from benchnb.evaluation.method import Flag
from benchnb.evaluation.simulate import prepare_method, simulate
from benchnb.methods.adaptive_irt import (
    AdaptiveIRT,
    AdaptiveTest,
    expected_variance_reduction,
    selection_penalty,
    simulate_test,
)
from benchnb.stats.balanced_sampling import combine_chosen_and_drawn
from benchnb.stats.irt import IRT, score_error
from benchnb.stats.logistic import predict_from_easiness

RULES = [
    {},
    {"batch": 4, "start": 3},
    {"start": 30},
    {"dims": 2},
    {"dims": 2, "batch": 5},
]


def made_up(models=40, items=50, seed=0, falling=0):
    "A bank whose curves are known, and models that follow it"
    rng = np.random.default_rng(seed)
    slopes = rng.uniform(0.7, 2.5, (items, 1))
    slopes[:falling] *= -2
    bank = IRT(slopes, rng.normal(0, 1, items), np.zeros(items), np.ones(items))
    theta = np.linspace(-2, 2, models)[:, np.newaxis]
    right = rng.random((models, items)) < bank.probability(theta)
    return bank, theta, right.astype(float)


def exam(bank, budget=20, **rules):
    weights = np.full(len(bank.intercepts), 1 / len(bank.intercepts))
    return AdaptiveTest(
        bank,
        weights,
        selection_penalty(bank, np.random.default_rng(0)),
        budget,
        **rules,
    )


def slow_items(bank, answers, budget, lots):
    "One model, one item at a time, information and ability by the plain formulas"
    a, d, asked = bank.slopes[:, 0], bank.intercepts, []
    grid = np.linspace(-6, 6, 120_001)
    while len(asked) < budget:
        height = -(grid**2) / 2
        for item in asked:
            chance = 1 / (1 + np.exp(-(a[item] * grid + d[item])))
            height += np.log(chance if answers[item] == 1 else 1 - chance)
        theta = grid[np.argmax(height)] if asked else 0.0
        best, found = -1.0, None
        for late in (False, True):
            for item in lots:
                chance = 1 / (1 + np.exp(-(a[item] * theta + d[item])))
                drawn_ones = a[item] ** 2 * chance * (1 - chance)
                if item not in asked and (a[item] < 0) == late and drawn_ones > best:
                    best, found = drawn_ones, item
            if found is not None:
                break
        asked.append(found)
    return asked


SLOW = [pytest.param(model, marks=pytest.mark.slow) for model in (0, 39)]


@pytest.mark.parametrize("model", [13, *SLOW])
@pytest.mark.parametrize("falling", [0, 12])
def test_a_slow_reference_asks_the_same_items(model, falling):
    bank, _, answers = made_up(falling=falling)
    fast, seen = simulate_test(exam(bank, 50), answers[[model]])
    slow = slow_items(bank, answers[model], 50, np.arange(50))
    assert fast[0].tolist() == slow
    np.testing.assert_array_equal(seen[0], answers[model][slow])
    assert sorted(fast[0][50 - falling :]) == list(range(falling))  # they come last


@pytest.mark.parametrize("dims", [2, 3])
def test_usefulness_is_the_variance_that_an_answer_takes_away(dims):
    rng = np.random.default_rng(1)
    bank = IRT(rng.normal(size=(7, dims)), rng.normal(size=7), np.zeros(7), np.ones(7))
    theta, root = rng.normal(size=(2, dims)), rng.normal(size=(2, dims, dims))
    covariance, weights = root @ root.swapaxes(1, 2), rng.random(7)
    fast = expected_variance_reduction(bank, theta, covariance, weights)
    for model in range(2):
        chance = bank.probability(theta)[model]
        steep = chance * (1 - chance)
        toward = (weights * steep) @ bank.slopes
        before = toward @ covariance[model] @ toward
        for item, slope in enumerate(bank.slopes):
            sure = np.linalg.inv(covariance[model]) + steep[item] * np.outer(
                slope, slope
            )
            after = toward @ np.linalg.inv(sure) @ toward
            assert fast[model, item] == pytest.approx(before - after, rel=1e-6)


def test_the_standard_error_is_that_of_many_draws():
    bank, theta, answers = made_up(models=3, items=40)
    test = exam(bank, 10)
    asked, seen = simulate_test(test, answers)
    where, _, covariance = bank.abilities(seen, asked)
    covariance = covariance / 25  # small, so that the curves are straight enough
    wanted = score_error(bank, where, covariance, asked, seen, test.weights)
    rng = np.random.default_rng(0)
    for row in range(3):
        draws = rng.normal(where[row, 0], np.sqrt(covariance[row, 0, 0]), (40_000, 1))
        chance = np.delete(bank.probability(draws), asked[row], axis=1)
        scores = (rng.random(chance.shape) < chance).sum(axis=1) / 40
        assert scores.std() == pytest.approx(wanted[row], rel=0.03)


@pytest.mark.parametrize("rules", RULES, ids=str)
def test_side_by_side_equals_one_by_one(rules):
    source, target = halves()
    method = AdaptiveIRT(check=0.0, **rules).fit(source)
    method = prepared(method, 25, seed=2)
    values = target.values.astype(float)
    values[1, ::3] = np.nan
    bank = IRT(**dict(method.bank_))
    asked, seen = simulate_test(method.make_test(bank), values)
    guesses = simulate(method, with_values(target, values))
    for row, estimate in enumerate(guesses):
        mine = target.items.index.get_indexer(estimate.items)
        assert asked[row, : len(mine)].tolist() == mine.tolist()
        assert np.isnan(seen[row, len(mine) :]).all()
        apart = method.estimate_target(bank, asked[row], seen[row])
        assert apart.score == pytest.approx(estimate.score, abs=1e-6)


@pytest.mark.slow
def test_intervals_cover_models_like_the_sources():
    _, _, answers = made_up(models=320, items=80, seed=3)
    order = np.random.default_rng(0).permutation(320)
    scores = Scores(answers[order])
    source, target = (
        scores.select(models=np.arange(80)),
        scores.select(models=np.arange(80, 320)),
    )
    found = simulate(AdaptiveIRT().fit(source), target, budget=20)
    held = [
        e.interval[0] <= t <= e.interval[1]
        for e, t in zip(found, target.truth(), strict=True)
    ]
    assert 0.87 <= np.mean(held) <= 1
    assert np.mean([np.ptp(e.interval) for e in found]) < 0.5


# Stronger than all sources -----------------------------------------------------


def beyond(strong=20):
    "Weak sources whose steep items saturate, and targets that solve the hard ones"
    rng = np.random.default_rng(4)
    ease = np.linspace(1, -6, 200)
    weak = rng.random((60, 200)) < 1 / (1 + np.exp(-ease - rng.normal(0, 1, (60, 1))))
    return Scores(weak), Scores(rng.random((strong, 200)) < 0.75)


def split_answers(method, bank, estimate, target, row):
    "The chosen and the random items of an estimate: positions and answers"
    asked = target.items.index.get_indexer(estimate.items)
    answers = target.values[row].astype(float)
    chosen, drawn = np.split(asked, [len(asked) - method.random_])
    chance = np.zeros(target.shape[1])
    left = np.delete(np.arange(target.shape[1]), chosen)
    chance[left] = len(drawn) / len(left)
    return chance, (chosen, answers[chosen]), (drawn, answers[drawn])


def test_no_estimate_without_a_flag_is_contradicted_by_its_random_items():
    "By a slow reference: the curves after the chosen items, against the random ones"
    source, target = beyond()
    method = prepare_method(AdaptiveIRT(folds=2).fit(source), 50)
    bank, contradicted = IRT(**dict(method.bank_)), []
    for row, e in enumerate(simulate(method, target)):
        assert len(set(e.items)) == len(e.items) == 50
        assert e.score == pytest.approx(e.predicted @ target.weights, abs=1e-6)
        chance, chosen, drawn = split_answers(method, bank, e, target, row)
        assert len(drawn[0]) == 17
        where = bank.abilities(chosen[1][None], chosen[0])
        full = bank.completed(where.theta, chosen[0], chosen[1][None])[0]
        expected, slopes = full[drawn[0]], np.delete(bank.slopes[:, 0], chosen[0])
        rest = np.delete(full, chosen[0])
        steep = (slopes * rest * (1 - rest)).mean() * where.se[0, 0]
        noise = 17 / 15 * (1 - 17 / 167) * (expected * (1 - expected) + 0.02).sum()
        se = np.sqrt(noise / 17**2 + steep**2)
        apart = (drawn[1] - expected).mean() / se
        contradicted.append(abs(apart) > 1.96)
        assert (Flag.MISFIT in e.flags) == contradicted[-1]
        easy = predict_from_easiness(method.ease_, *drawn)
        sample = combine_chosen_and_drawn(target.weights, easy, chance, chosen, drawn)
        if contradicted[-1]:
            assert e.score == pytest.approx(sample.score)
            assert np.ptp(e.interval) <= 2 * sample.half(0.95) + 1e-9
    assert 5 <= np.sum(contradicted) <= 20
    alone = simulate(AdaptiveIRT(folds=0, check=0.0).fit(source), target, budget=50)
    assert not any(Flag.MISFIT in e.flags for e in alone)


def flagged_and_off(table, split, budget=50):
    "Of estimates by targets like or above the sources: flagged; off by ten points"
    source, target = table.split(split, seed=0)
    found = simulate(AdaptiveIRT(batch=5, folds=0).fit(source), target, budget)
    off = np.abs([e.score for e in found] - target.truth().to_numpy())
    return np.array([bool(e.flags) for e in found]), off > 0.1


@pytest.mark.slow
@pytest.mark.parametrize("name", ["helm_medqa", "ifeval", "swebench_verified"])
def test_on_stronger_targets_what_is_far_off_has_a_flag(name):
    table = load(name)
    table = table.select(models=np.arange(0, len(table), 1 + (name == "ifeval")))
    flagged, far = flagged_and_off(table, "ability")
    assert flagged[far].all() and flagged.mean() > 0.9
    flagged, far = flagged_and_off(table, "random")
    assert flagged.mean() < 0.3


def test_an_amount_pays_for_the_random_rest():
    "A third of the money buys a random sample"
    source, target = beyond(8)
    costs = {"cost": np.tile([1.0, 3.0], 100), "cost_unit": "tokens"}
    priced = [Scores(t.values, t.items.assign(**costs)) for t in (source, target)]
    method = AdaptiveIRT(folds=0).fit(priced[0])
    for e in simulate(method, priced[1], budget=Amount(100, Unit.TOKENS)):
        assert 90 <= e.cost <= 100 and len(e.items) == len(set(e.items))
        spent = np.cumsum(priced[1].items["cost"][e.items])
        drawn = priced[1].items["cost"][np.array(e.items)[spent.to_numpy() > 67]]
        assert 10 <= len(drawn) <= 24 and 1 < drawn.mean() < 3


@pytest.mark.slow
@pytest.mark.parametrize("asked", [0, 5])
def test_the_estimate_from_the_rest_is_unbiased(asked):
    rng = np.random.default_rng(0)
    weights = rng.random(30) + 0.2
    weights /= weights.sum()
    ease, answers = rng.normal(size=30), (rng.random(30) < 0.4).astype(float)
    chosen = (np.arange(asked), answers[:asked])
    left, chance = np.arange(asked, 30), np.zeros(30)
    chance[left] = 15 / len(left)
    scores = []
    for _ in range(3000):
        drawn = rng.choice(left, 15, replace=False)
        drawn_ones = (drawn, answers[drawn])
        easy = predict_from_easiness(ease, *drawn_ones)
        scores.append(
            combine_chosen_and_drawn(weights, easy, chance, chosen, drawn_ones).score
        )
    assert np.mean(scores) == pytest.approx(weights @ answers, abs=0.01)
