"""What the chapter on spread samples does not show: chances by simulation, unequal and
certain ones, ties, seeds, and the survey estimate against a sum by hand."""

import numpy as np
import pytest

from benchnb.stats import balanced_sampling
from benchnb.stats.balanced_sampling import (
    local_pivotal_sample,
    model_assisted_estimate,
    resolve_pair,
)


def slow_sample(chance, space, rng):
    "The local pivotal method as the paper says it, with all distances every time"
    chance = np.array(chance, dtype=float)
    while True:
        left = np.flatnonzero((chance > 1e-9) & (chance < 1 - 1e-9))
        if len(left) < 2:
            break
        one = left[int(rng.random() * len(left))]
        apart = ((space[left] - space[one]) ** 2).sum(axis=1)
        apart[left == one] = np.inf
        two = left[apart.argmin()]
        a, b = chance[one], chance[two]
        if a + b < 1:
            first = rng.random() < b / (a + b)
            chance[one], chance[two] = (0, a + b) if first else (a + b, 0)
        else:
            first = rng.random() < (1 - b) / (2 - a - b)
            chance[one], chance[two] = (1, a + b - 1) if first else (a + b - 1, 1)
    for one in left:
        chance[one] = rng.random() < chance[one]
    return np.flatnonzero(chance > 0.5)


@pytest.mark.parametrize("equal", [True, False])
def test_every_item_has_its_chance_as_in_the_slow_method(equal):
    rng = np.random.default_rng(0)
    space = rng.normal(size=(12, 2))
    chance = np.full(12, 0.25) if equal else rng.random(12)
    chance *= 3 / chance.sum()
    for draw, draws in ((local_pivotal_sample, 4000), (slow_sample, 1000)):
        counts = np.zeros(12)
        for _ in range(draws):
            counts[draw(chance, space, rng)] += 1
        np.testing.assert_allclose(counts / draws, chance, atol=2.2 / np.sqrt(draws))


def test_many_items_are_halved_first_and_keep_their_chances(monkeypatch):
    monkeypatch.setattr(balanced_sampling, "MANY_UNDECIDED", 30)
    monkeypatch.setattr(balanced_sampling, "FEW_UNDECIDED", 10)
    rng = np.random.default_rng(1)
    space = rng.normal(size=(40, 2)).round(1)
    space[10:20] = space[0]  # items at one place
    chance = rng.random(40)
    chance *= 8 / chance.sum()
    chance = np.append(chance, [0, 1])  # and what is decided beforehand
    space = np.vstack([space, space[:2]])
    counts = np.zeros(42)
    for _ in range(3000):
        sample = local_pivotal_sample(chance, space, rng)
        assert len(sample) == 9 and (np.diff(sample) > 0).all()
        counts[sample] += 1
    np.testing.assert_allclose(counts / 3000, chance, atol=0.04)


def test_a_halved_sample_is_as_balanced_as_a_walked_one(monkeypatch):
    rng = np.random.default_rng(2)
    line = rng.random((600, 1))
    chance = np.full(600, 0.05)
    errors = {}
    for most in (600, 100):
        monkeypatch.setattr(balanced_sampling, "MANY_UNDECIDED", most)
        monkeypatch.setattr(balanced_sampling, "FEW_UNDECIDED", most)
        samples = [local_pivotal_sample(chance, line, rng) for _ in range(150)]
        errors[most] = np.std([line[sample].mean() for sample in samples])
    assert errors[100] < 1.25 * errors[600]  # at random: about five times as large


def test_items_at_one_place_certain_items_and_none():
    rng = np.random.default_rng(3)
    same = np.zeros((50, 2))
    assert len(local_pivotal_sample(np.full(50, 0.1), same, rng)) == 5
    assert local_pivotal_sample(np.array([1, 0, 1.0]), same[:3], rng).tolist() == [0, 2]
    assert local_pivotal_sample(np.zeros(3), same[:3], rng).size == 0
    one = [
        len(local_pivotal_sample(np.array([0.3]), same[:1], rng)) for _ in range(2000)
    ]
    assert np.mean(one) == pytest.approx(0.3, abs=0.04)


def test_a_resolved_pair_keeps_the_chances_on_average():
    uniforms = (np.arange(5000) + 0.5) / 5000
    for a, b in [(0.1, 0.2), (0.5, 0.5), (0.9, 0.3), (0.99, 0.98)]:
        after = np.array([resolve_pair(a, b, uniform) for uniform in uniforms])
        np.testing.assert_allclose(after.mean(axis=0), [a, b], atol=1e-3)
        assert (np.isclose(after, 0) | np.isclose(after, 1)).any(axis=1).all()


def test_model_assisted_estimate_by_hand():
    rng = np.random.default_rng(5)
    weights, guess = rng.random(9), rng.random(9)
    weights /= weights.sum()
    chance, items = rng.uniform(0.2, 0.9, 9), np.array([1, 4, 5, 8])
    seen = np.array([1.0, 0, 1, 0])
    found = model_assisted_estimate(weights, chance, guess, items, seen)
    total = mass = 0
    for item, answer in zip(items, seen, strict=True):
        mass += weights[item] / chance[item]
        total += weights[item] / chance[item] * (answer - guess[item])
    score = sum(w * f for w, f in zip(weights, guess, strict=True)) + total / mass
    variance = excess = 0
    for item, answer in zip(items, seen, strict=True):
        share = weights[item] / chance[item] / mass
        said = guess[item] * (1 - guess[item])
        excess += share * ((answer - guess[item]) ** 2 - said)
    for item in items:
        share = weights[item] / chance[item] / mass
        uniform = guess[item] * (1 - guess[item]) + max(0, excess) + 0.02
        variance += (1 - chance[item]) * share**2 * uniform
    assert found.score == pytest.approx(score)
    assert found.se == pytest.approx(np.sqrt(2 * variance))


@pytest.mark.parametrize("size", [10, 20, 50])
def test_the_interval_needs_no_trust_in_the_predictions(size):
    "Right, reversed and far too sure predictions: half() holds what it promises"
    rng = np.random.default_rng(size)
    total = 300
    weights, chance = np.full(total, 1 / total), np.full(total, size / total)
    held = {"right": [], "reversed": [], "too sure": []}
    for _ in range(400):
        logit = 1.2 * rng.normal(size=total) + 0.5
        right = 1 / (1 + np.exp(-logit))
        truth = (rng.random(total) < right).astype(float)
        items = rng.choice(total, size, replace=False)
        guesses = {"right": right, "reversed": 1 - right}
        guesses["too sure"] = 1 / (1 + np.exp(-4 * logit))
        for name, guess in guesses.items():
            found = model_assisted_estimate(weights, chance, guess, items, truth[items])
            held[name].append(abs(found.score - truth.mean()) <= found.half())
    assert min(map(np.mean, held.values())) > 0.93
