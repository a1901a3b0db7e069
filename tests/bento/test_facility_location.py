"""What the chapter on facility location does not show: references, brute force, ties"""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchnb.bento.facility_location import (
    coverage,
    select_medoid_tasks,
    select_tasks,
)
from benchnb.bento.similarity import cosine_similarity, task_distances


def slow_greedy(S, k, tie=1e-9):
    "As written in the paper, with the rule for ties: coverage anew for each candidate"
    start = len(S) * min(0.0, S.min())
    order, value, within = [], start, None
    for _ in range(k):
        gains = {
            j: coverage(S, [*order, j]) - value for j in range(len(S)) if j not in order
        }
        within = tie * max(gains.values()) if within is None else within
        best = next(j for j in gains if gains[j] >= max(gains.values()) - within)
        order.append(best)
        value = coverage(S, order)
    return order, value


def random_similarity(seed, size, kind="plane"):
    rng = np.random.default_rng(seed)
    if kind == "plane":
        distance = task_distances(rng.normal(size=(size, 2)))
        return distance.max() - distance
    if kind == "cosine":
        return cosine_similarity(rng.normal(size=(size, 3)))
    if kind == "grid":  # many ties
        return rng.integers(0, 3, (size, size)).astype(float)
    return rng.random((size, size))  # not symmetric


kinds = st.sampled_from(["plane", "cosine", "grid", "any"])
seeds = st.integers(0, 10_000)


@pytest.mark.equation("bento", "5")
@given(seeds, st.integers(2, 40), kinds)
@settings(max_examples=100, deadline=None)
def test_it_makes_the_slow_choice(seed, size, kind):
    S = random_similarity(seed, size, kind)
    order, value = slow_greedy(S, size)
    found = select_tasks(S, size)
    assert found.order.tolist() == order
    assert np.isclose(found.values[-1], value)
    covered = [coverage(S, found.order[:k]) for k in range(1, size + 1)]
    assert np.allclose(found.values, covered)
    assert (np.diff(found.gains) <= 1e-9 * found.gains[0]).all()
    assert select_tasks(S, 2).order.tolist() == order[:2]  # nested


@given(seeds)
@settings(max_examples=40, deadline=None)
def test_rounding_changes_nothing(seed):
    "Two leftovers that are each other's nearest gain the same: a rule must decide"
    S = random_similarity(seed, 12)
    noise = np.random.default_rng(seed).normal(0, 1e-13, S.shape)
    assert (
        select_tasks(S, 12).order.tolist() == select_tasks(S + noise, 12).order.tolist()
    )


@pytest.mark.parametrize(
    "matrix, k, message",
    [
        (np.ones((3, 4)), 2, r"got the shape \(3, 4\)"),
        (np.eye(3), 0, "0 to choose: give a whole number from 1 to 3"),
        (np.eye(3), 2.0, "2.0 to choose"),
    ],
)
def test_faults(matrix, k, message):
    with pytest.raises(ValueError, match=message):
        select_tasks(matrix, k)


@given(seeds)
@settings(max_examples=20, deadline=None)
def test_medoids_and_greedy_have_one_objective(seed):
    S = random_similarity(seed, 9)
    medoids = select_medoid_tasks(S, 3)
    best = max(coverage(S, chosen) for chosen in combinations(range(9), 3))
    assert len(set(medoids.tolist())) == 3
    assert 0.9 * best <= coverage(S, medoids) <= best + 1e-9
    with pytest.raises(ValueError, match="got the shape"):
        select_medoid_tasks(S[:4], 2)
