"What is certain: no interval reaches beyond it, and none excludes what can still be"

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from benchnb.data.scores import Scores
from benchnb.evaluation.guard import Guard, random_part_estimate
from benchnb.evaluation.method import Estimand, IntervalKind
from benchnb.evaluation.registry import get_method, list_methods
from benchnb.evaluation.simulate import AskTellSession, prepare_method, simulate
from benchnb.stats.intervals import (
    certain_bounds,
    effective_size,
    keep_to_certain,
    residual_interval,
)

ITEMS = 60
HEAVY = {"essence_bench", "disco", "collaborative_filtering", "tailored_bench"}


def table(models=40, items=ITEMS, seed=1):
    "Made-up models, and items in two tasks"
    rng = np.random.default_rng(seed)
    theta, hard = rng.normal(size=(models, 1)), rng.normal(size=items)
    slope = np.exp(rng.normal(0, 0.4, items))
    right = rng.random((models, items)) < 1 / (1 + np.exp(-slope * (theta - hard)))
    facts = pd.DataFrame(
        {"task": np.where(np.arange(items) % 3, "a", "b")},
        [f"i{k}" for k in range(items)],
    )
    return Scores(right.astype(float), facts)


def all_names():
    return list_methods(table())


def fitted(name, source, budget):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return prepare_method(get_method(name).fit(source), budget, seed=1)


def certain(estimate, row, names):
    "By hand: the sum seen, and the rest"
    seen = np.array([row[names.index(name)] for name in estimate.items], float)
    low = seen.sum() / len(names)
    return low, low + 1 - len(seen) / len(names), seen


@pytest.mark.parametrize("budget", [12, ITEMS - 1])
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.slow] if name in HEAVY else [])
        for name in all_names()
    ],
)
def test_every_method_keeps_to_what_is_certain(name, budget):
    scores = table()
    source = scores.select(models=np.arange(36))
    values = scores.values[36:].astype(float)
    targets = np.vstack([np.ones(ITEMS), np.zeros(ITEMS), values])
    method = fitted(name, source, budget)
    found = simulate(method, Scores(targets, scores.items))
    names = list(scores.items.index)
    for estimate, row in zip(found, targets, strict=True):
        least, most, seen = certain(estimate, row, names)
        assert least - 1e-9 <= estimate.score <= most + 1e-9
        if estimate.predicted is not None:
            assert estimate.predicted.min() >= 0 and estimate.predicted.max() <= 1
            assert np.isclose(estimate.predicted.mean(), estimate.score, atol=1e-9)
        low, high = estimate.interval
        if np.isnan(low) or (low, high) == (0, 1):
            continue
        assert least - 1e-9 <= low <= estimate.score <= high <= most + 1e-9
        if seen.min() == 1:
            assert high == pytest.approx(most) and high == pytest.approx(1)
        if seen.max() == 0:
            assert low == pytest.approx(least) and low == pytest.approx(0)
        if len(seen) == ITEMS - 1:
            assert low == pytest.approx(least) and high == pytest.approx(most)
            assert low - 1e-9 <= row.mean() <= high + 1e-9


@pytest.mark.parametrize("name", ["difference", "aipw", "faq"])
def test_answers_that_are_all_alike_leave_an_interval_about_as_wide_as_random(name):
    scores = table(80, 300, seed=3)
    ends = Scores(np.vstack([np.ones(300), np.zeros(300)]), scores.items)
    widths = {}
    for one in ("random", name):
        found = simulate(fitted(one, scores, 30), ends)
        widths[one] = [np.ptp(e.interval) for e in found]
    assert max(widths[name]) < 2 * max(widths["random"])


def exact_worst_coverage(asked, total):
    "Worst coverage of random sampling's interval over all scores, by exact sums"
    weights, items = np.full(total, 1 / total), np.arange(asked)
    ends = []
    for right in range(asked + 1):
        seen = np.repeat([1.0, 0.0], [right, asked - right])
        size = effective_size(asked, total)
        plain = residual_interval(right / asked, seen, size=size)
        ends.append(keep_to_certain(plain, weights, items, seen))
    low, high = np.transpose(ends)
    number = np.arange(total + 1)[:, np.newaxis]
    chance = stats.hypergeom.pmf(np.arange(asked + 1), total, number, asked)
    held = (low <= number / total + 1e-9) & (number / total <= high + 1e-9)
    return (chance * held).sum(axis=1).min()


@pytest.mark.parametrize(
    ("asked", "total"),
    [(10, 20), (19, 20), (25, 50), (40, 50), (48, 50), (49, 50), (100, 120), (59, 60)],
)
def test_where_most_items_are_asked_coverage_never_falls_short(asked, total):
    assert exact_worst_coverage(asked, total) >= 0.95


def test_bounds_and_rules_by_hand():
    weights = np.array([0.4, 0.3, 0.2, 0.1])
    items, seen = np.array([0, 3]), np.array([1.0, 0.5])
    assert certain_bounds(weights, items, seen) == pytest.approx((0.45, 0.95))
    assert keep_to_certain((0.2, 0.99), weights, items, seen) == pytest.approx(
        (0.45, 0.95)
    )
    assert np.isnan(keep_to_certain((np.nan, np.nan), weights, items, seen)).all()
    # one item left: all that it can be
    three = np.array([0, 1, 2]), np.array([1.0, 0, 1])
    assert keep_to_certain((0.62, 0.65), weights, *three) == pytest.approx((0.6, 0.7))
    # few are seen: an empty interval stays what it is
    few = np.array([0]), np.array([1.0])
    assert keep_to_certain((0.0, 1.0), weights, *few) == (0, 1)
    # an interval that lies beyond what is possible ends up at its edge
    low, high = keep_to_certain((0.96, 0.99), weights, items, seen)
    assert low <= high == pytest.approx(0.95)


def test_intervals_that_a_guard_makes_keep_to_it_too():
    scores = table()
    source = scores.select(models=np.arange(36))
    row = np.ones(ITEMS)
    method = fitted("kmeans", source, 50)
    session = AskTellSession(method)
    session.tell(row[session.wanted])
    errors = pd.DataFrame(
        {"estimate": np.full(40, 0.5), "truth": np.full(40, 0.7)},
        [f"m{k}" for k in range(40)],
    )
    estimate = Guard(None, errors=errors, level=0.9)(session)
    assert estimate.kind is IntervalKind.CONFORMAL and estimate.interval[1] == 1
    assert estimate.interval[0] >= 50 / 60 - 1e-9
    drawn = fitted("random", source, 50)
    ease = source.values.mean(axis=0)
    answers = np.zeros(50)
    inside = random_part_estimate(drawn, 0.95, ease, drawn.coreset_, answers)
    assert inside.interval[0] == 0 and inside.interval[1] <= 10 / 60 + 1e-9


def test_an_expected_score_is_not_bounded_by_its_runs():
    "Two runs of three say less of an item than its score"
    scores = table()
    source = scores.select(models=np.arange(36))
    values = np.full((1, ITEMS), 2 / 3)
    runs = np.full((1, ITEMS), 3)
    method = fitted("random", source, ITEMS)
    estimate = simulate(method, Scores(values, scores.items, trials=runs))[0]
    assert estimate.estimand is Estimand.EXPECTED
    low, high = estimate.interval
    assert low < 0.65 and high > 0.68
