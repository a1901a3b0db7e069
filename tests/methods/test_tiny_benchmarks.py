"""What the chapter on tinyBenchmarks does not show: slow references, odd tables."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchnb.data.scores import Scores
from benchnb.evaluation.simulate import prepare_method, simulate
from benchnb.methods.tiny_benchmarks import (
    ANCHOR_FIT_TOLERANCE,
    GPIRT,
    PIRT,
    AnchorIRT,
    Anchors,
    anchor_mean,
    choose_dims,
    draw_anchors,
    k_means_anchors,
    trust_in_anchors,
)
from benchnb.stats.intervals import conformal_radius
from benchnb.stats.irt_fit import fit_irt

ALL = [AnchorIRT, PIRT, GPIRT]
KINDS = ["random", "correctness", "irt"]


def answers(seed=0, models=30, items=60, weights=False):
    "Right or wrong answers; later models are stronger"
    rng = np.random.default_rng(seed)
    gap = np.linspace(-1, 1.5, models)[:, None] - rng.normal(size=items)
    values = (rng.random(gap.shape) < 1 / (1 + np.exp(-2 * gap))).astype(float)
    facts = pd.DataFrame({"task": [f"t{i % 2}" for i in range(items)]})
    facts.index = [f"q{i}" for i in range(items)]
    if weights:
        facts["weight"] = rng.random(items)
    return Scores(values, facts, [f"m{i}" for i in range(models)])


def parts(scores):
    "Sources and targets, both weak and strong"
    order = np.arange(len(scores))
    return scores.select(models=order % 5 > 0), scores.select(models=order % 5 == 0)


@pytest.mark.parametrize("anchors", KINDS)
@pytest.mark.parametrize("weights", [False, True])
def test_all_three_equal_a_slow_reference(anchors, weights):
    "Loops over items: the anchors' mean, the completed table, lambda"
    source, target = parts(answers(weights=weights))
    w = source.weights
    for cls in ALL:
        method = prepare_method(cls(anchors, folds=0).fit(source), 12, seed=3)
        row = target.values[2].astype(float)
        seen = row[method.coreset_].copy()
        seen[4] = np.nan  # one answer could not be scored
        scored = [j for j in range(12) if j != 4]
        mean = sum(method.share_[j] * seen[j] for j in scored)
        mean /= sum(method.share_[j] for j in scored)
        theta = method.bank.abilities(seen[None], method.coreset_, spread=2.0).theta[0]
        known = {int(method.coreset_[j]): seen[j] for j in scored}
        filled = 0.0
        for i in range(60):
            eta = method.bank.intercepts[i] + sum(method.bank.slopes[i] * theta)
            filled += w[i] * known.get(i, 1 / (1 + np.exp(-eta)))
        variances = []
        for model in source.values.astype(float):
            middle = sum(w * model)
            variances.append(sum(w * (model - middle) ** 2))
        noise = np.mean(variances) / (11 if anchors == "random" else 44)
        lam = method.error_**2 / (method.error_**2 + noise)
        lam = {"anchor_irt": 1, "p_irt": 0, "gp_irt": lam}[cls.name]
        expected = lam * mean + (1 - lam) * filled
        assert method.estimate(seen).score == pytest.approx(expected, abs=1e-6)


def test_lambda_has_the_least_squared_error():
    rng = np.random.default_rng(0)
    for error, variance, size in rng.random((20, 3)) * [0.1, 0.25, 200] + [0, 0, 1]:
        lam = np.linspace(0, 1, 10001)
        loss = lam**2 * variance / size + (1 - lam) ** 2 * error**2
        best = trust_in_anchors(error, variance, np.array([size]))[0]
        assert best == pytest.approx(lam[loss.argmin()], abs=1e-4)
    assert trust_in_anchors(0.0, 0.0, np.array([3])) == 1
    assert trust_in_anchors(0.0, 0.2, np.array([3])) == 0


def test_the_anchor_is_the_member_nearest_to_the_weighted_middle():
    rng = np.random.default_rng(1)
    points, weights = rng.normal(size=(80, 3)), rng.random(80)
    weights /= weights.sum()
    found = k_means_anchors(points, 7, np.random.default_rng(0), weights)
    for group, item in enumerate(found.items):
        members = np.flatnonzero(found.labels == group)
        middle = np.average(points[members], axis=0, weights=weights[members])
        away = np.linalg.norm(points[members] - middle, axis=1)
        assert item == members[away.argmin()]
        assert found.share[group] == pytest.approx(weights[members].sum())


@settings(max_examples=60, deadline=None, derandomize=True, database=None)
@given(
    st.integers(1, 15),
    st.integers(0, 1000),
    st.sampled_from([np.ones, None, "two"]),
    st.booleans(),
)
def test_always_as_many_distinct_items_as_asked_for(k, seed, kind, drawn):
    "With equal points, too few kinds of points, and items without weight"
    rng = np.random.default_rng(seed)
    weights = rng.random(15) if kind is None else np.ones(15)
    if kind == "two":
        weights = np.where(np.arange(15) % 14, 0.0, 1.0)
    weights /= weights.sum()
    points = rng.integers(0, 2, (15, rng.integers(1, 5)))
    found = (
        draw_anchors(k, rng, weights)
        if drawn
        else k_means_anchors(points, k, rng, weights)
    )
    assert len(set(found.items)) == k == len(found.items) == len(found.share)
    assert found.share.sum() == pytest.approx(1) and (found.share >= 0).all()
    assert (weights[found.items] > 0).sum() == min(k, (weights > 0).sum())
    if not drawn:
        np.testing.assert_array_equal(found.labels[found.items], np.arange(k))
        assert found.labels.min() >= 0 and found.labels.max() < k


def test_items_are_drawn_in_proportion_to_weight_and_the_mean_is_unbiased():
    rng = np.random.default_rng(0)
    weights = np.array([0.05, 0.1, 0.1, 0.3, 0.15, 0.2, 0.1])
    values = rng.random((1, 7))
    draws = [draw_anchors(3, np.random.default_rng(s), weights) for s in range(4000)]
    often = np.bincount(np.concatenate([d.items for d in draws])) / 4000
    np.testing.assert_allclose(often, 3 * weights, atol=0.03)
    means = [anchor_mean(values[:, d.items], d.share)[0] for d in draws]
    assert np.mean(means) == pytest.approx((values @ weights)[0], abs=0.01)


@pytest.mark.parametrize("anchors", KINDS)
def test_the_radius_is_made_of_errors_on_sources_left_out(anchors):
    source, _ = parts(answers(models=75))
    method = GPIRT(anchors, dims=1, folds=3).fit(source)
    prepare_method(method, 10, seed=1)
    chosen = Anchors(method.coreset_, method.share_, method.labels_)
    errors = method.source_errors(chosen, np.random.default_rng(5))
    rng = np.random.default_rng(5)
    for (fit, out), bank in zip(method._parts, method._banks, strict=True):
        fresh = fit_irt(source.values[fit], dims=1, tolerance=ANCHOR_FIT_TOLERANCE)
        np.testing.assert_allclose(bank.slopes, fresh.slopes)
        theirs = chosen
        if anchors != "random":
            theirs = method.choose(fresh, source.values[fit], rng)
        rows = source.values[out].astype(float)
        guess, _ = method.estimate_scores(fresh, theirs, rows[:, theirs.items])
        np.testing.assert_allclose(errors[out], guess - rows @ source.weights)
    if anchors == "random":
        assert method.radius_ == pytest.approx(conformal_radius(errors))


def test_intervals_hold_their_promise_for_models_like_the_sources():
    held = []
    for seed in range(8):
        source, target = answers(seed, 100, 120).split("random", seed=seed)
        truth = target.truth().to_numpy()
        estimates = simulate(GPIRT(dims=1).fit(source), target, 15, seed)
        ends = np.array([e.interval for e in estimates])
        held.append(((ends[:, 0] <= truth) & (truth <= ends[:, 1])).mean())
    assert 0.9 < np.mean(held) <= 1


def test_another_ability_must_earn_its_place():
    one = answers(models=60, items=100)
    assert choose_dims(one.values, one.weights)[0] == 1
    rng = np.random.default_rng(0)
    two = rng.normal(size=(120, 2)) @ (3 * np.eye(2)[:, [0] * 60 + [1] * 60])
    two = (rng.random((120, 120)) < 1 / (1 + np.exp(-two + rng.normal(size=120)))) + 0.0
    weights = np.where(np.arange(120) < 60, 3.0, 1.0) / 240
    assert choose_dims(two, weights)[0] > 1
    assert GPIRT(dims=2, folds=0).fit(Scores(two)).bank.slopes.shape == (120, 2)
