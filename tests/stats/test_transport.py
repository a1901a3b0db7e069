"""Transport beside a general solver; what arrives is what was sent; slices"""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog
from scipy.spatial.distance import cdist

from benchnb.stats import transport
from benchnb.stats.transport import (
    NotSolved,
    slice_masses,
    transport_answers,
    transport_plan,
)

examples = settings(max_examples=60, deadline=None, derandomize=True, database=None)


def clouds(seed, heaps=14, holes=9, models=6, binary=False):
    "Scores of the same models on items there and here; the new model's answers there"
    rng = np.random.default_rng(seed)
    draw = rng.integers(0, 2, (models, heaps + holes)) if binary else None
    both = rng.random((models, heaps + holes)) if draw is None else draw.astype(float)
    return both[:, :heaps], both[:, heaps:], rng.integers(0, 2, heaps).astype(float)


def cheapest(cost, heaps, holes):
    "What the best plan costs, by a general solver"
    j, k = cost.shape
    sides = np.vstack([np.kron(np.eye(j), np.ones(k)), np.kron(np.ones(j), np.eye(k))])
    both = np.concatenate([heaps, holes])
    return linprog(cost.ravel(), A_eq=sides, b_eq=both).fun


def recorded(monkeypatch, change=lambda *args: None):
    "A list to which every later call of `transport_plan` adds its cost matrix"
    costs, real = [], transport_plan

    def plan(cost, heaps=None, holes=None):
        costs.append(cost)
        change(cost)
        return real(cost, heaps, holes)

    monkeypatch.setattr(transport, "transport_plan", plan)
    return costs


# distances ---------------------------------------------------------------------


# plans -------------------------------------------------------------------------

sizes = st.integers(1, 7)
masses = st.lists(st.integers(1, 9), min_size=1, max_size=7)


@pytest.mark.equation("collaborative_filtering", "12")
@examples
@given(masses, masses, st.booleans(), st.booleans(), st.integers(0, 99))
def test_a_plan_empties_and_fills_and_no_plan_is_cheaper(j, k, alike, ties, seed):
    "Also with many equal costs, with a single heap, and with heaps of any mass"
    rng = np.random.default_rng(seed)
    shape = len(j), len(k)
    cost = rng.integers(0, 3, shape) if ties else rng.random(shape)
    j, k = (np.ones(len(a)) if alike else np.array(a) for a in (j, k))
    j, k = j / j.sum(), k / k.sum()
    plan = transport_plan(cost) if alike else transport_plan(cost, j, k)
    assert plan.shape == shape and (plan >= 0).all()
    np.testing.assert_allclose(plan.sum(axis=1), j, atol=1e-9)
    np.testing.assert_allclose(plan.sum(axis=0), k, atol=1e-9)
    assert (plan * cost).sum() == pytest.approx(cheapest(cost, j, k), abs=1e-9)


# slices ------------------------------------------------------------------------


@examples
@given(st.integers(1, 400), st.integers(1, 40))
def test_slices_hold_equal_masses_and_every_heap_once(size, number):
    slices = slice_masses(size, number)
    assert len(slices) == number
    total, last = np.zeros(size), 0
    for place, mass in slices:
        assert (mass > 0).all() and mass.sum() == pytest.approx(1 / number)
        assert place[0] in (last, last + 1) or not total.any()
        assert place.tolist() == list(range(place[0], place[-1] + 1))
        total[place] += mass
        last = place[-1]
    np.testing.assert_allclose(total, 1 / size)


# what arrives ------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(5))
def test_what_arrives_is_the_mixture_that_the_plan_makes(seed):
    "One slice: equation 12, a column of the plan scaled to sum to 1"
    left, right, answers = clouds(seed)
    plan = transport_plan(cdist(left.T, right.T))
    made, given = transport_answers(left, right, answers)
    slow = np.zeros((6, 9))
    for k in range(9):
        for j in range(14):
            slow[:, k] += left[:, j] * plan[j, k] * 9
    np.testing.assert_allclose(made, slow, atol=1e-6)
    np.testing.assert_allclose(given, 9 * answers @ plan, atol=1e-9)


@examples
@given(sizes, sizes, st.integers(1, 60), st.booleans(), st.integers(0, 99))
def test_the_mean_that_arrives_is_the_mean_that_was_sent(j, k, bound, binary, seed):
    "For the new model and for every source, in one slice or in many"
    left, right, answers = clouds(seed, j, k, binary=binary)
    made, given = transport_answers(left, right, answers, bound)
    assert made.shape == right.shape and given.shape == (k,)
    np.testing.assert_allclose(made.mean(axis=1), left.mean(axis=1), atol=1e-6)
    assert given.mean() == pytest.approx(answers.mean(), abs=1e-9)
    assert given.min() >= answers.min() - 1e-9 and given.max() <= answers.max() + 1e-9


# cut at one half ---------------------------------------------------------------


@examples
@given(sizes, sizes, st.integers(0, 99))
def test_binary_is_the_plain_mixture_cut(j, k, seed):
    left, right, answers = clouds(seed, j, k, binary=True)
    plain = transport_answers(left, right, answers)
    cut = transport_answers(left, right, answers, binary=True)
    for soft, hard in zip(plain, cut, strict=True):
        assert set(np.unique(hard)) <= {0.0, 1.0}
        assert (hard[soft > 0.5001] == 1).all() and (hard[soft < 0.4999] == 0).all()


# not solved --------------------------------------------------------------------


def largest(heaps, holes, number):
    "Pairs in the largest of so many slices"
    both = zip(slice_masses(heaps, number), slice_masses(holes, number), strict=True)
    return max(len(j) * len(k) for (j, _), (k, _) in both)


def test_a_plan_that_was_not_found_is_sought_in_slices(monkeypatch):
    def tired(cost):
        if cost.size > 40:
            raise NotSolved("too large")

    left, right, answers = clouds(0, 30, 40)
    costs = recorded(monkeypatch, tired)
    made, given = transport_answers(left, right, answers)
    assert costs[0].size == 1200 and costs[-1].size <= 40
    monkeypatch.undo()
    number = next(n for n in (1, 2, 4, 8, 16) if largest(30, 40, n) <= 40)
    whole = transport_answers(left, right, answers, math.ceil(1200 / number**2))
    np.testing.assert_allclose(made, whole[0], atol=1e-6)
    np.testing.assert_allclose(given, whole[1], atol=1e-9)
    assert given.mean() == pytest.approx(answers.mean())


MASSES = {
    "number 1 is -0.5, which is negative": ([1.5, -0.5], [0.5, 0.5]),
    "number 0 is nan, which is not finite": ([np.nan, 0.5], [0.5, 0.5]),
    "heaps are all 0": ([0.0, 0.0], [0.5, 0.5]),
    "the heaps sum to 2, the holes to 1": ([2.0, 0.0], [0.5, 0.5]),
    "3 numbers for 2 items": ([0.2, 0.3, 0.5], [0.5, 0.5]),
}


@pytest.mark.parametrize("message", MASSES)
def test_masses_that_are_no_shares_are_named(message):
    heaps, holes = map(np.array, MASSES[message])
    with pytest.raises(ValueError, match=message):
        transport_plan(np.ones((2, 2)), heaps, holes)
    if len(heaps) == 2 and "sum" in message:
        with pytest.raises(ValueError, match="the heaps sum to 2, the holes to 1"):
            transport_plan(np.ones((2, 1)), heaps, np.ones(1))
