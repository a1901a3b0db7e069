"""What the chapter on SparseEval does not show: slow references for the network, its
descent and the exchange of anchors; weights, gaps and limits."""

import numpy as np
import pytest
from helpers.small import fit, halves, table, with_values
from scipy.special import erf

from benchnb.data.scores import Scores
from benchnb.evaluation.method import Flag
from benchnb.methods.sparse_eval import (
    Network,
    SparseEval,
    descend,
    exchange,
    new_network,
)


def doubled(network):
    return Network([part.astype(float) for part in network.layers])


def slow_score(layers, x):
    "One model through the network, unit by unit"
    for k in range(0, len(layers), 2):
        units = []
        for weights, offset in zip(layers[k].T, layers[k + 1], strict=True):
            z = sum(w * v for w, v in zip(weights, x, strict=True)) + offset
            last = k == len(layers) - 2
            gelu = z * (1 + erf(z / np.sqrt(2))) / 2
            units.append(1 / (1 + np.exp(-z)) if last else gelu)
        x = units
    return x[0]


def loss(layers, x, y):
    return np.mean((Network(layers)(x) - y) ** 2)


@pytest.fixture
def small():
    rng = np.random.default_rng(0)
    return doubled(new_network(3, 0.4, rng)), rng.random((6, 3)), rng.random(6)


def test_the_network_is_that_of_loops(small):
    network, x, _ = small
    slow = [slow_score(network.layers, row) for row in x]
    assert network(x) == pytest.approx(slow)


def test_gradients_are_differences_of_the_loss(small):
    network, x, y = small
    parts, by_x = network.gradient(x, y)
    rng = np.random.default_rng(1)
    for k, part in enumerate(network.layers):
        place = tuple(rng.integers(n) for n in part.shape)
        ends = []
        for step in (1e-5, -1e-5):
            moved = [p.copy() for p in network.layers]
            moved[k][place] += step
            ends.append(loss(moved, x, y))
        assert parts[k][place] == pytest.approx((ends[0] - ends[1]) / 2e-5, abs=1e-7)
    for m, j in np.ndindex(x.shape):
        ends = []
        for step in (1e-5, -1e-5):
            moved = x.copy()
            moved[m, j] += step
            ends.append(loss(network.layers, moved, y))
        assert by_x[m, j] == pytest.approx((ends[0] - ends[1]) / 2e-5, abs=1e-7)


def test_descent_is_adam_weight_by_weight(small):
    network, x, y = small
    fast = descend(network, x, y, 3, np.random.default_rng(0), rate=0.01, dropout=0)
    layers = [part.copy() for part in network.layers]
    first, second = ([0 * p for p in layers] for _ in range(2))
    for step in (1, 2, 3):
        for k, slope in enumerate(Network(layers).gradient(x, y)[0]):
            first[k] = 0.9 * first[k] + 0.1 * slope
            second[k] = 0.999 * second[k] + 0.001 * slope**2
            mean, square = first[k] / (1 - 0.9**step), second[k] / (1 - 0.999**step)
            layers[k] = layers[k] - 0.01 * mean / (np.sqrt(square) + 1e-8)
    for one, other in zip(fast.layers, layers, strict=True):
        assert one == pytest.approx(other, abs=1e-9)


def test_the_exchange_is_that_of_loops():
    rng = np.random.default_rng(0)
    filled = rng.integers(0, 2, (9, 8)).astype(float)
    truth, mean = filled.mean(axis=1), filled.mean(axis=0)
    anchors, allowed = np.array([1, 4, 6]), np.arange(8) != 3
    network = doubled(new_network(3, 0.5, rng))
    x = filled[:, anchors] - mean[anchors]
    slopes = network.gradient(x, truth)[1]
    importance = [sum(abs(s) for s in slopes[:, k]) for k in range(3)]
    off = network(x) - truth
    promise = {
        j: abs(sum((filled[m, j] - 0.5) * off[m] for m in range(9)))
        for j in range(8)
        if j not in anchors and allowed[j]
    }
    expected = int(np.argmin(importance)), max(promise, key=promise.get)
    assert exchange(network, x, filled, truth, anchors, allowed) == expected


def test_items_of_no_weight_are_not_asked():
    scores = table()
    weight = np.where(np.arange(60) < 40, 1.0, 0.0)
    scores = Scores(scores.values, scores.items.assign(weight=weight), scores.models)
    method = SparseEval(folds=0).fit(scores).prepare(20, np.random.default_rng(0))
    assert method.coreset_.max() < 40 and len({*method.coreset_}) == 20


def test_gaps_few_sources_and_a_model_beyond_them():
    source = halves()[0]
    rng = np.random.default_rng(0)
    gaps = np.where(rng.random(source.shape) < 0.3, np.nan, source.values)
    gaps[2] = np.nan
    for some in (with_values(source, gaps), source.select(models=[0, 1])):
        method = fit("sparse_eval", some).prepare(30, np.random.default_rng(0))
        assert 0 <= method.estimate(np.ones(30)).score <= 1
        assert Flag.OUT_OF_RANGE in method.estimate(np.ones(30)).flags
    assert np.isnan(method.estimate(np.full(30, np.nan)).score)
