"Batched networks: the same networks as one by one, bad input"

import math

import numpy as np
import pytest
from benchnb.prediction.network import fit_networks

from benchnb.prediction.records import RecordFeatures, made_records
from benchnb.prediction.regressors import MLP, build_network

SMALL = dict(hidden=(16, 8), epochs=4, batch=16)


@pytest.fixture(scope="module")
def records():
    return made_records(families=4, sizes=3, tasks=8, shots=(0, 2), seed=1)


@pytest.fixture(scope="module")
def table(records):
    pytest.importorskip("torch")
    x, y = RecordFeatures().fit_transform(records), records["score"].to_numpy()
    part = (
        np.random.default_rng(0).permuted(np.tile(np.arange(len(x)), (5, 1)), axis=1)
        % 5
    )
    return x, y, part


@pytest.mark.parametrize("group", [1, 2, 5])
def test_the_batch_is_the_same_networks(group, table):
    x, y, part = table
    many = fit_networks(x, y, part > 0, part == 0, group=group, **SMALL)
    for seed, some in enumerate(part):
        one, rng = MLP(seed=seed, **SMALL), np.random.default_rng(seed)
        one.network_ = build_network(x.shape[1], one.hidden, 0.0, rng)
        one.train(x[some > 0], y[some > 0], (x[some == 0], y[some == 0]), rng)
        error = min(one.dev_errors_) / y[some == 0].var()
        assert math.isclose(many.dev_r2[seed], 1 - error, abs_tol=1e-4)
        assert many.epoch[seed] == one.epoch_
        weight = one.network_[0].weight.detach().numpy().T
        assert np.allclose(many.weights[0][seed], weight, atol=1e-4)


def one_by_one(many, x):
    "The slow reference: the predictions of each network for itself"
    found = []
    for layers in zip(*many.weights, *many.biases, strict=True):
        h, half = np.asarray(x, dtype=np.float32), len(layers) // 2
        pairs = zip(layers[:half], layers[half:], strict=True)
        for number, (weight, bias) in enumerate(pairs):
            h = (np.maximum(h, 0) if number else h) @ weight + bias
        found.append(h[:, 0].clip(0, 1))
    return np.array(found)


@pytest.mark.parametrize("group", [1, 2, 64])
def test_predictions_together_are_those_of_each_network(group, table):
    x, y, part = table
    many = fit_networks(x, y, part > 0, part == 0, **SMALL)
    found = many.predict(x, group=group)
    np.testing.assert_allclose(found, one_by_one(many, x), atol=1e-6)
    assert np.ptp(found, axis=0).max() > 0.01  # the networks differ


def test_weights_count_records(table):
    x, y, part = table
    train, dev = (part[:1] > 0).astype(float), part[:1] == 0
    one = fit_networks(x, y, train, dev, **SMALL)
    double = fit_networks(x, y, 2 * train, dev, **SMALL)
    assert np.allclose(one.predict(x), double.predict(x), atol=1e-5)
    heavy = np.where(y > np.median(y), 20, 1) * train
    up = fit_networks(x, y, heavy, dev, **SMALL)
    assert up.predict(x).mean() > one.predict(x).mean()


def test_networks_with_different_numbers_of_records(table):
    x, y, part = table
    first = np.array([192, 150, 90, 40, 12])[:, np.newaxis]
    train = (part > 0) & (np.arange(len(x)) < first)
    many = fit_networks(x, y, train, part == 0, group=3, **SMALL)
    other = fit_networks(x, y, train, part == 0, group=5, **SMALL)
    assert np.allclose(many.dev_r2, other.dev_r2, atol=1e-4)
    assert len(many) == 5 and many.predict(x).shape == (5, len(x))


def test_the_batch_refuses_what_makes_no_sense(table):
    x, y, part = table
    with pytest.raises(ValueError, match="train must be networks x"):
        fit_networks(x, y, part[0] > 0, part == 0)
    with pytest.raises(ValueError, match="dev of network 2 is empty"):
        fit_networks(x, y, part > 0, (part == 0) & (np.arange(5) != 2)[:, None])
    with pytest.raises(ValueError, match="one of each, got 5 rows of train, 4 of dev"):
        fit_networks(x, y, part > 0, part[:4] == 0)
    with pytest.raises(ValueError, match="train must not be negative"):
        fit_networks(x, y, part - 1.0, part == 0)
    for x, y in (([[1.0]] * 4, [0.1] * 3), ([[1.0]] * 2, [5, 60])):
        rows = [[1] + [0] * (len(x) - 1)], [[0] * (len(x) - 1) + [1]]
        with pytest.raises(ValueError, match="in y for each row"):
            fit_networks(x, y, *rows)


@pytest.mark.parametrize("dropout", [0.0, 0.2])
def test_a_network_is_the_same_alone_and_in_company(records, dropout):
    x, y = RecordFeatures().fit_transform(records), records["score"].to_numpy()
    dev = np.random.default_rng(0).permutation(len(x)) % 9 == 0
    train = np.stack([~dev, ~dev & (np.arange(len(x)) % 5 == 0), ~dev])
    how = dict(hidden=(16, 8), batch=32, epochs=4, dropout=dropout)
    many = fit_networks(x, y, train, np.stack([dev] * 3), seeds=[0, 1, 2], **how)
    again = fit_networks(x, y, train, np.stack([dev] * 3), seeds=[0, 1, 2], **how)
    np.testing.assert_array_equal(many.predict(x), again.predict(x))
    for number in range(3):
        rows = slice(number, number + 1)
        one = fit_networks(x, y, train[rows], dev[np.newaxis], seeds=[number], **how)
        np.testing.assert_allclose(
            one.predict(x)[0], many.predict(x)[number], atol=1e-4
        )
