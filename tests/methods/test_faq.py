"""What the chapter on faq does not show: a slow reference, its averages over many
seeds, missing answers, tables with holes, repeated runs."""

import numpy as np
import pytest
from helpers.small import estimates, halves, prepared, with_values

from benchnb.data.scores import Scores
from benchnb.evaluation.method import Estimand, Flag, IntervalKind
from benchnb.evaluation.simulate import (
    AskTellSession,
    drive_generator,
    run_session,
    simulate,
)
from benchnb.methods.faq import FAQ

SETTINGS = [
    {},
    {"replacement": False},
    {"explore": 0.5, "warm_up": 0.5, "power": 0.75, "uniform": 0.05},
    {"explore": 0.5, "replacement": False, "dims": 3},
]


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def slow_faq(method, answers, rng):
    "One target by the plain formulas: loops over items, inverses in full"
    bank = dict(method.bank_)
    slopes, intercepts = bank["slopes"], bank["intercepts"]
    weights, items, total = method.weights_, range(len(answers)), method.budget_
    mean, precision = np.zeros(slopes.shape[1]), np.eye(slopes.shape[1])
    seen, phi, base = {}, [], []
    for s in range(1, total + 1):
        p = [sigmoid(intercepts[j] + slopes[j] @ mean) for j in items]
        covariance = np.linalg.inv(precision)
        steep = sum(weights[j] * p[j] * (1 - p[j]) * slopes[j] for j in items)
        oracle = np.array([weights[j] * np.sqrt(p[j] * (1 - p[j])) for j in items])
        after = [
            np.linalg.inv(
                precision + p[j] * (1 - p[j]) * np.outer(slopes[j], slopes[j])
            )
            for j in items
        ]
        learn = np.array([steep @ (covariance - after[j]) @ steep for j in items])
        rho, gamma = method.explore, method.warm_up
        alpha = max(0, 1 - s / (rho * total)) if rho else 0
        beta = method.power * (min(1, s / (gamma * total)) if gamma else 1)
        mixed = (1 - alpha) * oracle / oracle.sum() + alpha * learn / learn.sum()
        q = mixed**beta / (mixed**beta).sum()
        q = (1 - method.uniform) * q + method.uniform * weights
        guess = list(p)
        if not method.replacement:
            q[list(seen)] = 0
            q = q / q.sum()
            for j in seen:
                guess[j] = seen[j]
        item = rng.choice(len(q), p=q)
        base.append(sum(weights[j] * guess[j] for j in items))
        apart = answers[item] - p[item]
        phi.append(base[-1] + weights[item] * apart / q[item])
        seen[item] = answers[item]
        a = slopes[item]
        precision = precision + p[item] * (1 - p[item]) * np.outer(a, a)
        mean = mean + np.linalg.inv(precision) @ a * apart
    score = np.mean(phi)
    terms = [(f - b) ** 2 - (score - b) ** 2 for f, b in zip(phi, base, strict=True)]
    return score, max(sum(terms), 0) / (len(phi) - 1), list(seen)


def slow_interval(score, variance, draws):
    "Scores that lie within Wilson's bound, on a grid; the size by Student's quantile"
    score, t_975 = min(max(score, 0), 1), {15: 2.144787}[draws]
    middle = (draws * score + 2) / (draws + 4)
    two = 2 * middle * (1 - middle)
    size = draws * (draws * score * (1 - score) + two) / (draws * variance + two)
    size = max(1, size * (1.959964 / t_975) ** 2)
    grid = np.linspace(0, 1, 100_001)
    inside = grid[(score - grid) ** 2 <= 1.959964**2 * grid * (1 - grid) / size]
    low, high, half = inside.min(), inside.max(), t_975 * np.sqrt(variance / draws)
    if score < 0.5:
        return max(0, min(low, score - half)), high
    return low, min(1, max(high, score + half))


@pytest.mark.parametrize("settings", SETTINGS)
def test_a_slow_reference_draws_the_same_items_and_estimates_the_same(settings):
    source, target = halves()
    method = prepared(FAQ(**settings).fit(source), 15)
    for row in target.values.astype(float):
        asked = []

        def answer(wanted, row=row, asked=asked):
            asked.extend(wanted)
            return row[wanted]

        fast = drive_generator(method.run(np.random.default_rng(1)), answer)
        score, variance, items = slow_faq(method, row, np.random.default_rng(1))
        assert asked == items
        assert fast.score == pytest.approx(score, abs=1e-9)
        low, high = slow_interval(score, variance, 15)
        if len(set(row[items])) == 1:  # another interval: see below
            continue
        assert fast.interval == pytest.approx((low, high), abs=2e-5)


@pytest.mark.slow
@pytest.mark.parametrize("settings", SETTINGS)
def test_right_on_average_for_targets_unlike_the_sources(settings):
    source, target = halves()
    odd = with_values(target, 1 - target.values)  # the weak items are its strong ones
    method, truth = FAQ(**settings).fit(source), odd.truth().to_numpy()
    prepared(method, 20)
    scores = np.array(
        [
            [
                drive_generator(
                    method.run(np.random.default_rng([seed, n])), row.__getitem__
                )
                for n, row in enumerate(odd.values.astype(float))
            ]
            for seed in range(150)
        ]
    )
    scores = np.vectorize(lambda estimate: estimate.score)(scores)  # not clipped
    error = scores.std(axis=0, ddof=1) / np.sqrt(len(scores))
    assert (np.abs(scores.mean(axis=0) - truth) < 4 * error).all()


@pytest.mark.slow
@pytest.mark.parametrize("level", [-4.0, 4.0, 5.5])
def test_intervals_hold_for_models_weaker_and_stronger_than_all_sources(level):
    rng = np.random.default_rng(1)
    slope, hard = np.exp(rng.normal(0, 0.4, 300)), rng.normal(size=300)

    def answers(theta):
        chance = sigmoid(slope * (theta - hard))
        return (rng.random(chance.shape) < chance).astype(float)

    source = Scores(answers(rng.normal(size=(80, 1))))
    target = Scores(answers(np.full((100, 1), level)))
    method, truth = FAQ().fit(source), target.truth().to_numpy()
    found = [simulate(prepared(method, 30, seed), target) for seed in range(3)]
    ends = np.array([[e.interval for e in part] for part in found])
    held = (ends[..., 0] <= truth + 1e-9) & (truth - 1e-9 <= ends[..., 1])
    assert held.mean() >= 0.93  # of 300
    assert {e.kind for part in found for e in part} == {IntervalKind.DESIGN}


@pytest.mark.slow
@pytest.mark.parametrize("replacement", [True, False])
def test_intervals_hold_as_often_as_they_say(replacement):
    rng = np.random.default_rng(0)
    chance = sigmoid(rng.normal(0, 1, (80, 1)) - rng.normal(0, 1.5, 300))
    scores = Scores((rng.random(chance.shape) < chance).astype(float))
    source, target = scores.split("random", sources=0.5, seed=0)
    method = FAQ(replacement=replacement).fit(source)
    truth = target.truth().to_numpy()
    ends = np.array(
        [
            [e.interval for e in simulate(prepared(method, 100, seed), target)]
            for seed in range(6)
        ]
    )
    held = (ends[..., 0] <= truth) & (truth <= ends[..., 1])
    assert 0.92 < held.mean() < 0.98  # 240 intervals: a standard error of .014


def test_nothing_is_asked_twice_and_repeats_are_noted():
    source, target = halves()
    for estimate in estimates(FAQ(uniform=0.05).fit(source), target, 40):
        assert len(set(estimate.items)) == len(estimate.items) < 40
        repeats = 40 - len(estimate.items)
        assert any(note.startswith(f"{repeats} of 40 draws") for note in estimate.notes)
    for estimate in estimates(FAQ(replacement=False).fit(source), target, 40):
        assert len(estimate.items) == 40 and not estimate.notes
        assert estimate.kind is IntervalKind.DESIGN


def test_few_sources_have_no_factor_model_and_one_draw_no_interval():
    source, target = halves()
    two = FAQ().fit(source.select(models=[0, 1]))
    for estimate in estimates(two, target, 20):
        assert Flag.FEW_SOURCES in estimate.flags
        assert "2 sources are too few" in estimate.notes[-1]
    for estimate in estimates(FAQ().fit(source), target, 1):
        assert estimate.interval == (0, 1) and Flag.FEW_ITEMS in estimate.flags


def test_runs_that_differ_count_in_the_update_and_runs_that_agree_do_not():
    source, target = halves()
    agree = target.values[2].astype(float)

    def run(row, trials):
        part = AskTellSession(prepared(FAQ().fit(source), 20))
        return run_session(part, lambda t: (row[t.wanted], None, trials))

    once, often = run(agree, None), run(agree, np.full(1, 5))
    assert once.estimand is Estimand.RUN and often.estimand is Estimand.EXPECTED
    np.testing.assert_allclose(once.predicted, often.predicted)
    differ = 0.2 + 0.6 * agree  # one run of five is another
    once, often = run(differ, None), run(differ, np.full(1, 5))
    assert not np.allclose(once.predicted, often.predicted)
