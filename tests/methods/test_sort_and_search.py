"""What the chapter on Sort & Search does not show: slow references, odd tables."""

import numpy as np
import pandas as pd
import pytest

from benchnb.data.scores import Scores
from benchnb.evaluation.simulate import method_rng, prepare_method, simulate
from benchnb.methods.sort_and_search import (
    THRESHOLDS,
    SortAndSearch,
    by_difficulty,
    even_steps,
    possible_edges,
    search_edge,
)
from benchnb.stats.intervals import conformal_radius


def answers(seed=0, models=24, items=60, weight=None, marks=False):
    "Right or wrong answers (or part marks); later models are stronger"
    rng = np.random.default_rng(seed)
    gap = np.linspace(-1, 1.5, models)[:, None] - rng.normal(size=items)
    values = 1 / (1 + np.exp(-2 * gap))
    if not marks:
        values = (rng.random(gap.shape) < values).astype(float)
    weight = rng.random(items) if weight is None else weight
    facts = {"task": [f"t{i % 2}" for i in range(items)], "weight": weight}
    facts = pd.DataFrame(facts, [f"q{i}" for i in range(items)])
    return Scores(values, facts, [f"m{i}" for i in range(models)])


def slow_search(seen, edges):
    "Equation 2 as it is written, with either kind of disagreement"
    width = np.diff(edges)
    for power in (1, 2):
        wrong = [
            width[:k] @ (1 - seen[:k]) ** power + width[k:] @ seen[k:] ** power
            for k in range(len(edges))
        ]
        yield np.mean(edges[np.isclose(wrong, min(wrong), atol=1e-9)])


@pytest.mark.parametrize("seed", range(30))
def test_search_is_the_edge_with_the_least_disagreement(seed):
    rng = np.random.default_rng(seed)
    size = int(rng.integers(1, 12))
    edges = np.concatenate([[0], np.cumsum(rng.dirichlet(np.ones(size)))])
    if seed % 2:
        edges = np.linspace(0, 1, size + 1)  # with ties
    seen = rng.choice([0, 1] if seed % 3 else [0, 0.25, 0.5, 1], size)
    for wanted in slow_search(seen, edges):
        assert np.isclose(search_edge(seen, edges), wanted)


@pytest.mark.parametrize("rule", THRESHOLDS)
@pytest.mark.parametrize("budget", [1, 2, 7, 20])
def test_all_right_is_1_and_all_wrong_is_0_and_steps_are_found(rule, budget):
    edges = np.linspace(0, 1, budget + 1)
    steps = np.tri(budget + 1, budget, -1)  # 0, 1, ..., budget right answers
    np.testing.assert_allclose(THRESHOLDS[rule](steps, edges), edges, atol=1e-12)


@pytest.mark.parametrize("rule", THRESHOLDS)
def test_a_model_that_keeps_to_the_order_is_known_to_within_a_step(rule):
    scores = answers(weight=np.ones(60))
    method = prepare_method(SortAndSearch(rule).fit(scores), 12)
    order = np.argsort(method.place_)
    knows = np.zeros((61, 60))
    for right in range(61):
        knows[right, order[:right]] = 1
    guess = simulate(method, Scores(knows, scores.items))
    off = np.array([e.score for e in guess]) - np.arange(61) / 60
    assert np.abs(off).max() <= 0.5 / 12 + 1e-9
    wrong = (np.array([e.predicted for e in guess]).round() != knows).sum(axis=1)
    assert wrong.max() <= 3 and wrong[0] == wrong[60] == 0


def test_equal_items_are_asked_in_every_place():
    weight, rng = np.full(30, 1 / 30), np.random.default_rng(0)
    hit = np.zeros(30)
    for _ in range(400):
        order = by_difficulty(np.ones(30), rng)
        hit[order[even_steps(weight, 6, rng)[0]]] += 1
    np.testing.assert_allclose(hit / 400, 0.2, atol=0.08)


@pytest.mark.parametrize("seed", range(40))
def test_steps_are_distinct_and_their_shares_sum_to_1(seed):
    rng = np.random.default_rng(seed)
    weight = rng.random(25) ** rng.choice([0, 1, 6])
    weight[rng.random(25) < rng.choice([0, 0.3])] = 0
    weight /= weight.sum()
    for budget in range(1, 26):
        places, share = even_steps(weight, budget, rng)
        assert (np.diff(places) > 0).all() and (weight[places] > 0).all()
        assert len(places) == min(budget, np.count_nonzero(weight))
        assert np.isclose(share.sum(), 1)
        assert (share >= weight[places] - 1e-12).all()
        light = share > weight[places] + 1e-12  # equal steps, but for heavy items
        assert len(np.unique(np.round(share[light], 9))) <= 1


def test_heavy_items_whose_borders_fall_on_a_middle_are_asked_once():
    for weight in ([1, 2, 2, 1], [1, 2, 2, 2, 1], [1, 6, 6, 6, 6, 6, 1]):
        weight = np.array(weight) / np.sum(weight)
        for budget in range(1, len(weight) + 1):
            for seed in range(6):
                rng = np.random.default_rng(seed)
                assert len(set(even_steps(weight, budget, rng)[0])) == budget


def test_unscored_answers_are_split_between_neighbours():
    share = np.array([0.1, 0.2, 0.3, 0.4])
    scored = np.array([False, True, False, True])
    np.testing.assert_allclose(possible_edges(share, scored), [0, 0.45, 1])
    np.testing.assert_allclose(
        possible_edges(share, np.ones(4, bool)), [0, 0.1, 0.3, 0.6, 1]
    )


@pytest.mark.slow
@pytest.mark.parametrize("marks", [False, True])
def test_counting_leans_neither_way_whatever_weights_and_order_are(marks):
    scores = answers(marks=marks, items=200)
    turned = Scores(1 - scores.values, scores.items, scores.models)  # hard is easy
    for targets in (scores, turned):
        method = SortAndSearch(folds=0).fit(scores)
        runs = [[e.score for e in simulate(method, targets, 20, s)] for s in range(40)]
        lean = np.mean(runs, axis=0) - targets.truth()
        assert abs(lean.mean()) < 0.015


@pytest.mark.parametrize("rule", THRESHOLDS)
def test_errors_of_left_out_sources_match_a_slow_reference(rule):
    source = answers(models=21)
    method = prepare_method(SortAndSearch(rule, folds=3).fit(source), 10)
    rng, errors = method_rng(method, 10, 0, 0), np.empty(21)
    method.choose(source.values.mean(axis=0), rng)
    fold = rng.permutation(21) % 3
    for part in range(3):
        order, items, share = method.choose(
            source.values[fold != part].mean(axis=0), rng
        )
        for row in np.flatnonzero(fold == part):
            edges = np.concatenate([[0], np.cumsum(share)])
            seen = source.values[row, items].astype(float)
            wanted = THRESHOLDS[rule](seen, edges) - source.truth().iloc[row]
            errors[row] = wanted
    assert np.isclose(method.radius_, conformal_radius(errors), atol=1e-6)
