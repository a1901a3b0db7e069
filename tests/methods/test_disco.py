"""What the chapter on DISCO does not show: slow references, gaps, weights, limits."""

import numpy as np
import pytest
from helpers.small import fit, halves, table, with_values
from sklearn.ensemble import RandomForestRegressor

from benchnb.data.scores import Scores
from benchnb.evaluation.method import Flag
from benchnb.methods.disco import Disco, Signatures, disagreement


def slow_disagreement(column):
    "Entropy of the mean minus the mean entropy, source by source"

    def entropy(p):
        return -sum(q * np.log(q) for q in (p, 1 - p) if q > 0)

    known = [y for y in column if not np.isnan(y)]
    mean = sum(known) / len(known)
    return entropy(mean) - sum(map(entropy, known)) / len(known)


def made(seed=3, budget=12, **settings):
    "A method prepared with a generator that can be made again"
    method = Disco(folds=0, **settings).fit(halves()[0])
    return method.prepare(budget, np.random.default_rng(seed))


def test_disagreement_is_that_of_loops():
    rng = np.random.default_rng(0)
    values = rng.choice([0, 0.25, 0.9, 1, np.nan], (12, 30))
    slow = [slow_disagreement(column) for column in values.T]
    assert disagreement(values) == pytest.approx(slow)
    values[:, 3] = np.nan  # an item that nobody answered
    assert disagreement(values)[3] == 0


@pytest.mark.parametrize("components", [2, 256])
def test_estimates_are_those_of_the_textbook(components):
    source, target = halves()
    method = made(components=components)
    values, items = source.values.astype(float), method.coreset_
    apart = np.abs(values.mean(axis=0) - 0.5)  # items are right or wrong
    assert apart[items].max() <= np.delete(apart, items).min() + 1e-9
    around = values[:, items] - values[:, items].mean(axis=0)
    axes = np.linalg.eigh(around.T @ around)[1][:, ::-1]  # either way round: choose
    own = Signatures(*method.pattern_).axes
    axes = axes[:, : own.shape[1]] * np.sign(
        (axes[:, : own.shape[1]] * own).sum(axis=0)
    )
    assert own.shape[1] == min(components, 12)
    rng = np.random.default_rng(3)
    rng.random(len(apart))  # the ties
    slow = RandomForestRegressor(100, random_state=int(rng.integers(2**31)))
    slow.fit(np.round(around @ axes, 9), source.truth())
    new = target.values[:, items].astype(float)
    expected = slow.predict((new - values[:, items].mean(axis=0)) @ axes)
    assert [method.estimate(row).score for row in new] == pytest.approx(
        expected, abs=0.02
    )


def test_the_nearest_source_is_that_of_a_loop():
    source, target = halves()
    method = made(predictor="knn")
    answers = source.values[:, method.coreset_].astype(float)
    middle, truth = answers.mean(axis=0), source.truth().to_numpy()
    for row in target.values[:, method.coreset_].astype(float):
        one, near = row - middle, []
        for other in answers - middle:
            near.append(one @ other / np.linalg.norm(one) / np.linalg.norm(other))
        best = truth[np.isclose(near, max(near))]
        assert min(abs(best - method.estimate(row).score)) < 1e-6


def test_items_of_no_weight_are_not_asked():
    scores = table()
    weight = np.where(np.arange(60) < 40, 1.0, 0.0)
    scores = Scores(scores.values, scores.items.assign(weight=weight), scores.models)
    method = Disco(folds=0).fit(scores).prepare(20, np.random.default_rng(0))
    assert method.coreset_.max() < 40


def test_no_estimate_lies_above_the_best_source_and_the_flag_says_so():
    method = made(budget=30)
    found = method.estimate(np.ones(30))
    assert found.score <= halves()[0].truth().max() + 1e-9
    assert Flag.OUT_OF_RANGE in found.flags
    assert Flag.OUT_OF_RANGE not in method.estimate(np.zeros(30)).flags


def test_gaps_in_answers_move_an_estimate_little_and_none_is_nan():
    method, row = made(), halves()[1].values[0].astype(float)
    seen = row[method.coreset_]
    some = np.where(np.arange(12) == 4, np.nan, seen)
    assert abs(method.estimate(some).score - method.estimate(seen).score) < 0.1
    assert np.isnan(method.estimate(np.full(12, np.nan)).score)


def test_sources_with_gaps_and_few_of_them():
    source = halves()[0]
    rng = np.random.default_rng(0)
    gaps = np.where(rng.random(source.shape) < 0.3, np.nan, source.values)
    gaps[2] = np.nan
    for some in (with_values(source, gaps), source.select(models=[0, 1])):
        method = fit("disco", some).prepare(12, np.random.default_rng(0))
        assert 0 <= method.estimate(np.ones(12)).score <= 1
