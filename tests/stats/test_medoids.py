"""What the chapter on medoids does not show: slow references, brute force, faults."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import cdist

from benchnb.data.sources import load
from benchnb.stats.medoids import (
    Medoids,
    around_fixed,
    choose_medoids,
    group_identical_columns,
    item_distances,
    k_medoids,
    sampled_k_medoids,
    standardize,
)


def loss_of(distance, medoids, weights=None):
    return np.average(distance[:, list(medoids)].min(axis=1), weights=weights) * (
        len(distance) if weights is None else np.sum(weights)
    )


def pam(distance, medoids, fixed=0):
    "Best swap, one swap an iteration, as the authors of TailoredBench do it"
    medoids, loss = list(medoids), loss_of(distance, medoids)
    while True:
        tries = [
            (loss_of(distance, [*medoids[:p], i, *medoids[p + 1 :]]), p, i)
            for p in range(fixed, len(medoids))
            for i in range(len(distance))
        ]
        best, p, i = min(tries, default=(loss, 0, 0))
        if best >= loss - 1e-6:
            return medoids, loss
        medoids[p], loss = i, best


def binary(seed, models=12, items=60):
    rng = np.random.default_rng(seed)
    gap = rng.normal(size=(models, 1)) - rng.normal(size=items)
    return (rng.random(gap.shape) < 1 / (1 + np.exp(-2 * gap))).astype(float)


def check(found, n_items, k, fixed=()):
    "What every clustering must satisfy"
    assert len(set(found.medoids)) == k == len(found.medoids)
    assert list(found.medoids[: len(fixed)]) == list(fixed)
    assert found.medoids.min() >= 0 and found.medoids.max() < n_items
    assert found.labels.shape == (n_items,)
    assert list(found.labels[found.medoids]) == list(range(k))
    assert np.isclose(found.mass().sum(), 1)


# distances -------------------------------------------------------------------


@pytest.mark.parametrize("scale", ["raw", "rows", "columns"])
@pytest.mark.parametrize("marks", ["binary", "parts"])
def test_manhattan_equals_the_obvious_sum(scale, marks):
    table = binary(0, 9, 31)
    table[2], table[3] = 1, 0  # constant rows
    if marks == "parts":
        table = np.clip(
            table + np.random.default_rng(1).normal(0, 0.1, table.shape), 0, 1
        )
    if scale != "raw":
        table = standardize(table, axis=1 if scale == "rows" else 0)
    slow = np.abs(table[:, :, None] - table[:, None, :]).sum(axis=0)
    fast = item_distances(table)
    assert fast.dtype == np.float32
    np.testing.assert_allclose(fast, slow, atol=1e-4)
    assert (fast.diagonal() == 0).all() and fast.min() >= 0


@pytest.mark.parametrize("metric", ["correlation", "cosine"])
def test_angles_equal_scipy_and_flat_items_are_far_from_all(metric):
    table = binary(4, 10, 20)
    table[:, 5] = 0
    table[:, 6] = 0
    distance = item_distances(table, metric)
    flat = np.ptp(table, axis=0) == 0 if metric == "correlation" else ~table.any(axis=0)
    slow = cdist(table.T[~flat], table.T[~flat], metric)
    np.testing.assert_allclose(distance[np.ix_(~flat, ~flat)], slow, atol=1e-6)
    assert distance[5, 6] == 1 and distance[5, 5] == 0
    assert (distance[flat][:, ~flat] == 1).all()


# k-medoids -------------------------------------------------------------------


@pytest.mark.equation("tailored_bench", "2", "6, 7")
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("n_fixed", [0, 1, 2])
def test_best_of_a_few_starts_is_brute_force_on_eight_items(seed, n_fixed):
    distance = item_distances(np.random.default_rng(seed).random((4, 8)))
    fixed = np.random.default_rng(seed).permutation(8)[:n_fixed]
    others = np.setdiff1d(np.arange(8), fixed)
    best = min(
        loss_of(distance, [*fixed, *c]) for c in combinations(others, 4 - n_fixed)
    )
    found = [k_medoids(distance, 4, s, fixed) for s in range(10)]
    for one in found:
        check(one, 8, 4, fixed)
        assert np.isclose(one.loss, loss_of(distance, one.medoids), rtol=1e-5)
    assert np.isclose(min(one.loss for one in found), best, rtol=1e-5)


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 12), st.data())
def test_every_request_gives_k_distinct_items(n_items, data):
    "Also with many identical items, everything fixed, and a single cluster"
    k = data.draw(st.integers(1, n_items))
    fixed = data.draw(st.permutations(range(n_items)))[: data.draw(st.integers(0, k))]
    seed = data.draw(st.integers(0, 100))
    table = np.random.default_rng(seed).integers(0, 2, (2, n_items))
    distance = item_distances(table)
    for found in (
        k_medoids(distance, k, seed, fixed),
        choose_medoids(table, k, seed, fixed=fixed),
        choose_medoids(table, k, seed, "correlation", fixed=fixed),
        sampled_k_medoids(table, k, seed, fixed=fixed, sample=5),
    ):
        check(found, n_items, k, fixed)
        if k == n_items:
            assert found.loss == 0
    found = choose_medoids(table, k, seed, fixed=fixed)
    assert np.isclose(found.loss, loss_of(distance, found.medoids))
    own = distance[np.arange(n_items), found.medoids[found.labels]]
    np.testing.assert_array_equal(own, distance[:, found.medoids].min(axis=1))


def test_a_weight_is_a_number_of_copies():
    table = binary(8, 10, 30)
    times = np.random.default_rng(0).integers(1, 5, 30)
    distance = item_distances(table)
    copied = np.repeat(np.arange(30), times)
    for seed in range(5):
        found = k_medoids(distance, 5, seed, fixed=[3], weights=times)
        loss = loss_of(distance[copied], found.medoids)
        assert np.isclose(found.loss, loss, rtol=1e-5)
        assert np.isclose(
            choose_medoids(table, 5, seed, weights=times).loss, loss, rtol=0.1
        )
    np.testing.assert_allclose(
        around_fixed(distance, np.array([3]), times),
        np.minimum(distance, distance[:, [3]]) * times[:, None],
    )


def test_merging_identical_items_changes_nothing_but_speed():
    table = standardize(binary(9, 5, 200))
    distance = item_distances(table)
    assert len(group_identical_columns(table)[0]) < 40
    merged = [choose_medoids(table, 9, s, fixed=[0, 1, 2]).loss for s in range(8)]
    plain = [k_medoids(distance, 9, s, [0, 1, 2]).loss for s in range(8)]
    assert np.isclose(min(merged), min(plain), rtol=1e-4)
    assert np.isclose(np.mean(merged), np.mean(plain), rtol=0.02)


def test_distinct_columns_of_both_kinds():
    table = binary(10, 6, 50)
    for one in (table, table + np.linspace(0, 1e-3, 6)[:, None] * table, table * 0):
        first, kind = group_identical_columns(np.asarray(one, np.float32))
        assert len(first) == len(np.unique(one, axis=1).T)
        np.testing.assert_array_equal(one[:, first[kind]], one)
    parts = (
        np.random.default_rng(0).random((4, 10)).astype(np.float32)[:, [0, 1, 0, 2, 1]]
    )
    first, kind = group_identical_columns(parts)
    assert len(first) == 3 and kind[0] == kind[2] and kind[1] == kind[4]


def test_a_sample_of_everything_is_exact_and_a_small_one_is_close():
    table = standardize(load("helm_gsm8k").values[:, :800])
    exact = np.mean([k_medoids(item_distances(table), 15, s).loss for s in range(3)])
    whole = sampled_k_medoids(table, 15, 0, sample=800, repeats=1)
    part = sampled_k_medoids(table, 15, 0, fixed=[7, 700], sample=200)
    check(part, 800, 15, [7, 700])
    assert np.isclose(whole.loss / exact, 1, rtol=0.01)
    assert part.loss / exact < 1.12
    distance = item_distances(table)
    assert np.isclose(part.loss, loss_of(distance, part.medoids), rtol=1e-4)
    routed = choose_medoids(table, 15, 0, fixed=[7, 700], exact_up_to=300)
    check(routed, 800, 15, [7, 700])


# PAM -------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("fixed", [0, 3])
def test_pam_ends_where_the_slow_reference_ends(seed, fixed):
    "The best swap each time, from the same start, around the same fixed medoids"
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(40, 3))
    distance = cdist(points, points).astype(np.float32)
    start = rng.choice(40, 7, replace=False)
    slow, loss = pam(distance, start, fixed)
    found = k_medoids(distance, 7, seed, start[:fixed], start[fixed:], search="pam")
    assert set(found.medoids) == set(slow)
    assert found.loss == pytest.approx(loss, rel=1e-5)


# gaps and answers ------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 5), st.integers(0, 2**5 - 1), st.integers(0, 50))
def test_predictions_average_to_the_mean_over_scored_masses(k, mask, seed):
    rng = np.random.default_rng(seed)
    labels = np.concatenate([np.arange(k), rng.integers(0, k, 20)])
    clusters, weights = Medoids(np.arange(k), labels, 0.0), rng.random(20 + k)
    answers = np.where([mask >> j & 1 for j in range(k)], rng.random(k), np.nan)
    predicted = clusters.predict(answers, weights)
    scored = ~np.isnan(answers)
    if not scored.any():
        assert np.isnan(predicted).all()
        return
    mass = clusters.mass(weights)
    expected = np.average(answers[scored], weights=mass[scored])
    assert np.isclose(np.average(predicted, weights=weights), expected)


@pytest.mark.parametrize("search", ["fasterpam", "pam"])
@pytest.mark.parametrize("fixed", [(), (0, 1)])
def test_the_last_medoid_is_the_best_of_all(search, fixed):
    "With weights or fixed medoids the problem is not symmetric: rows are not columns"
    for seed in range(40):
        rng = np.random.default_rng(seed)
        distance, weights = item_distances(rng.random((4, 9))), rng.integers(1, 10, 9)
        k = len(fixed) + 1
        found = k_medoids(distance, k, seed, fixed, weights=weights, search=search)
        others = [i for i in range(9) if i not in fixed]
        best = min(loss_of(distance, [*fixed, i], weights) for i in others)
        assert found.loss == pytest.approx(best, rel=1e-5)


WEIGHTS = {
    "number 2 is -1, which is negative": [1.0, 1, -1, 1, 1, 1],
    "number 0 is inf, which is not finite": [np.inf, 1, 1, 1, 1, 1],
    "weights are all 0": np.zeros(6),
    "1e\\+12 is over 1e\\+07 times 1": [1e12, 1, 1, 1, 1, 1],
    "2 numbers for 6 items": [1.0, 1],
}


@pytest.mark.parametrize("message", WEIGHTS)
def test_weights_that_are_no_shares_are_named(message):
    weights = np.array(WEIGHTS[message])
    for choose in (choose_medoids, k_medoids):
        with pytest.raises(ValueError, match=message):
            choose(np.eye(6), 2, 0, weights=weights)
