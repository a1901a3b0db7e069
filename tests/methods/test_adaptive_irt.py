"""What the chapter on the adaptive test does not show: a slow reference, side by side
equals one by one, odd answers, saving."""

import numpy as np
import pytest
from helpers.small import halves, prepared, with_values

from benchnb.data.costs import Amount, Unit
from benchnb.data.scores import Scores
from benchnb.data.sources import load
from benchnb.evaluation.method import Flag
from benchnb.evaluation.simulate import ready, run_part, simulate
from benchnb.methods.adaptive_irt import (
    AdaptiveIRT,
    AdaptiveTest,
    handicap,
    take_test,
    usefulness,
)
from benchnb.stats.balanced_sampling import (
    ModelAssisted,
    rest_estimate,
    towards_sample,
)
from benchnb.stats.intervals import conformal_radius
from benchnb.stats.irt import IRT, fit_irt, score_error

RULES = [
    {},
    {"batch": 4, "start": 3},
    {"start": 30},
    {"dims": 2},
    {"target_se": 0.06},
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
        bank, weights, handicap(bank, np.random.default_rng(0)), budget, **rules
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


@pytest.mark.parametrize("model", [0, 13, 39])
@pytest.mark.parametrize("falling", [0, 12])
def test_a_slow_reference_asks_the_same_items(model, falling):
    bank, _, answers = made_up(falling=falling)
    fast, seen = take_test(exam(bank, 50), answers[[model]])
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
    fast = usefulness(bank, theta, covariance, weights)
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
    asked, seen = take_test(test, answers)
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
    method = AdaptiveIRT(outside="curves", **rules).fit(source)
    method = prepared(method, 25, seed=2)
    values = target.values.astype(float)
    values[1, ::3] = np.nan
    bank = IRT(**dict(method.bank_))
    asked, seen = take_test(method.test(bank), values)
    guesses = simulate(method, with_values(target, values))
    for row, estimate in enumerate(guesses):
        mine = target.items.index.get_indexer(estimate.items)
        assert asked[row, : len(mine)].tolist() == mine.tolist()
        assert np.isnan(seen[row, len(mine) :]).all()
        apart = method.conclude(bank, asked[[row]], seen[[row]])
        assert apart.score == pytest.approx(estimate.score, abs=1e-6)


def test_intervals_cover_models_like_the_sources():
    _, _, answers = made_up(models=160, items=80, seed=3)
    order = np.random.default_rng(0).permutation(160)
    scores = Scores(answers[order])
    source, target = (
        scores.select(models=np.arange(80)),
        scores.select(models=np.arange(80, 160)),
    )
    found = simulate(AdaptiveIRT().fit(source), target, budget=20)
    held = [
        e.interval[0] <= t <= e.interval[1]
        for e, t in zip(found, target.truth(), strict=True)
    ]
    assert 0.87 <= np.mean(held) <= 1
    assert np.mean([np.ptp(e.interval) for e in found]) < 0.5


def test_an_interval_from_the_stronger_sources_uses_only_their_errors():
    rng = np.random.default_rng(0)
    table = Scores(rng.random((60, 50)) < rng.random((60, 1)))
    wide = {}
    for which in ("all", "stronger"):
        method = AdaptiveIRT(interval_from=which).fit(table)
        wide[which] = ready(method, 10, 0)
    method = wide["stronger"]
    pairs = [
        (values[row].mean(), method.surprises(bank, values[[row]], trials[[row]])[0])
        for bank, values, trials in method._held_out
        for row in range(len(values))
    ]
    pairs.sort(key=lambda pair: -pair[0])
    least = pairs[len(pairs) // 2 - 1][0]
    errors = [error for score, error in pairs if score >= least]
    assert method.factor_ == pytest.approx(conformal_radius(np.array(errors), 0.95))
    every = np.array([error for _, error in pairs])
    assert wide["all"].factor_ == pytest.approx(conformal_radius(every, 0.95))
    assert wide["all"].factor_ != method.factor_


# Stronger than all sources -----------------------------------------------------


def beyond(strong=20):
    "Weak sources whose steep items saturate, and targets that solve the hard ones"
    rng = np.random.default_rng(4)
    ease = np.linspace(1, -6, 200)
    weak = rng.random((60, 200)) < 1 / (1 + np.exp(-ease - rng.normal(0, 1, (60, 1))))
    return Scores(weak), Scores(rng.random((strong, 200)) < 0.75)


def test_targets_above_all_sources_get_random_items_and_a_flag():
    source, target = beyond()
    truth = target.truth().to_numpy()
    method = AdaptiveIRT(folds=2, outside="sample").fit(source)
    found = simulate(method, target, budget=50)
    switched = np.array(["random items" in " ".join(e.notes) for e in found])
    assert switched.sum() >= 5
    for e in found:
        assert len(set(e.items)) == len(e.items) == 50
        assert e.score == pytest.approx(e.predicted @ target.weights, abs=1e-6)
    ends = np.array([e.interval for e in found])
    held = (ends[:, 0] <= truth) & (truth <= ends[:, 1])
    assert held[switched].mean() >= 0.8
    assert all(Flag.OUT_OF_RANGE in e.flags for e in np.array(found)[switched])
    curves = AdaptiveIRT(folds=0, outside="curves").fit(source)
    curves = simulate(curves, target, budget=50)
    mixed, single = (
        np.abs(np.array([e.score for e in each]) - truth)[switched].mean()
        for each in (found, curves)
    )
    assert mixed < 0.75 * single
    for k in np.flatnonzero(~switched):
        assert found[k].score == curves[k].score and found[k].items == curves[k].items


def older_agents():
    "Agents on SWE-bench Verified, of which the strongest follow the others' curves"
    return load("swebench_verified").split("date")[0]


def saturated(models=60):
    "Sources of which the strongest slip on easy items, and solve the hard ones"
    source, target = beyond(models // 2)
    values = np.vstack([source.values[: models // 2], target.values])
    return Scores(values)


@pytest.mark.parametrize(
    "source, further", [(older_agents(), True), (saturated(), False)]
)
def test_the_strongest_sources_tell_how_far_the_curves_go(source, further):
    method = prepared(AdaptiveIRT(folds=0).fit(source), 40)
    assert (method.ceiling_ > method.range_[1]) == further
    if not further:
        same = prepared(AdaptiveIRT(folds=0, outside="sample").fit(source), 40)
        assert same.ceiling_ == method.ceiling_ == method.range_[1]
    free = prepared(AdaptiveIRT(folds=0, outside="curves").fit(source), 40)
    assert free.ceiling_ == np.inf


def test_the_tested_distance_by_hand():
    "From two separate methods, fitted to the weaker half, one model at a time"
    source = older_agents()
    order = np.argsort(source.values.mean(axis=1), kind="stable")
    half, some = len(order) // 2, round(0.3 * len(order))
    strong = order[-some:][np.linspace(0, some - 1, 20).round().astype(int)]
    weak, strong = source.select(models=order[:half]), source.select(models=strong)
    method, off = prepared(AdaptiveIRT(folds=0).fit(source), 30), {}
    for outside in ("curves", "sample"):
        single = prepared(AdaptiveIRT(folds=0, outside=outside).fit(weak), 30)
        single.tie_seed_, single.ease_ = method.tie_seed_, method.ease_
        rows = [
            run_part(single.run(np.random.default_rng(at)), row.__getitem__)
            for at, row in enumerate(strong.values.astype(float))
        ]
        off[outside] = np.abs([e.score for e in rows] - strong.truth()).mean()
    bank = fit_irt(weak.values)
    theta = [
        bank.abilities(strong.values[[row]].astype(float)[:, at], at).theta[0, 0]
        for row in range(20)
        for at in [take_test(method.test(bank), strong.values[[row]])[0][0]]
    ]
    assert off["curves"] < off["sample"]
    distance = np.quantile(theta, 0.9) - bank.theta[:, 0].max()
    assert method.ceiling_ - method.range_[1] == pytest.approx(distance, abs=1e-6)


@pytest.mark.parametrize("per_cost", [False, True])
def test_an_amount_pays_for_the_random_rest(per_cost):
    "Above the sources the rest of the money buys a random sample, and not half of one"
    source, target = beyond(8)
    costs = {"cost": np.tile([1.0, 3.0], 100), "cost_unit": "tokens"}
    priced = [Scores(t.values, t.items.assign(**costs)) for t in (source, target)]
    method = AdaptiveIRT(folds=0, outside="sample", per_cost=per_cost).fit(priced[0])
    found = simulate(method, priced[1], budget=Amount(100, Unit.TOKENS))
    switched = [e for e in found if "random items" in " ".join(e.notes)]
    assert len(switched) >= 3
    for e in switched:
        assert 90 <= e.cost <= 100
        count = int(e.notes[-1].split(" random items")[0].split()[-1])
        drawn = priced[1].items["cost"][e.items[-count:]]
        assert len(e.items) == len(set(e.items)) and 1.5 < drawn.mean() < 2.5
        assert (
            abs(np.diff(np.sort(priced[1].items.index.get_indexer(drawn.index)))).max()
            > 3
        )


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
        scores.append(rest_estimate(weights, ease, chance, chosen, drawn_ones).score)
    assert np.mean(scores) == pytest.approx(weights @ answers, abs=0.01)


def test_a_mixture_goes_from_the_curves_to_the_sample():
    share = np.full(30, 1 / 30)
    sure = ModelAssisted(0.6, 1e-9, share)
    assert towards_sample(0.2, 0.1, sure, 0.95)[0] == pytest.approx(0.6)
    assert towards_sample(0.2, np.inf, sure, 0.95)[1] > 0
    near = ModelAssisted(0.25, 0.1, share)
    assert towards_sample(0.2, 0.1, near, 0.95) == (0.2, pytest.approx(0.1))
    scores = [towards_sample(0.2, 0.1, ModelAssisted(x, 0.1, share), 0.95)[0]
              for x in np.linspace(0.2, 1, 50)]  # fmt: skip
    assert (np.diff(scores) >= 0).all()
