"Matrix completion: slow references for each method"

import math

import numpy as np
import pandas as pd
import pytest

from benchnb.bigbench.matrix_completion import (
    SVD,
    ModelKNN,
    ModelTask,
    diagonals,
    evaluate_predictions,
)


def holes(seed, shape=(7, 9), share=0.3):
    "A matrix with holes, an empty last row and an empty last column"
    rng = np.random.default_rng(seed)
    values = rng.random(shape)
    values[rng.random(shape) < share] = np.nan
    values[-1], values[:, -1] = np.nan, np.nan
    return values


def slow_effects(values, model_penalty, task_penalty, rounds=10):
    models, tasks = values.shape
    mean = np.nanmean(values)
    b, c = [0.0] * models, [0.0] * tasks
    for _ in range(rounds):
        for i in range(tasks):
            seen = [u for u in range(models) if not np.isnan(values[u, i])]
            rest = sum(values[u, i] - mean - b[u] for u in seen)
            c[i] = rest / (task_penalty + len(seen))
        for u in range(models):
            seen = [i for i in range(tasks) if not np.isnan(values[u, i])]
            rest = sum(values[u, i] - mean - c[i] for i in seen)
            b[u] = rest / (model_penalty + len(seen))
    return mean + np.add.outer(b, c)


@pytest.mark.equation("predicting_big_bench", "section 3.3 a")
@pytest.mark.parametrize("seed", range(3))
def test_effects_against_a_slow_reference(seed):
    values = holes(seed)
    found = ModelTask(3, 2).complete(values)
    assert np.allclose(found, slow_effects(values, 3, 2))


@pytest.mark.parametrize("shape", [(7, 9), (9, 4), (5, 5)])
def test_descent_on_diagonals_is_one_score_at_a_time(shape):
    values, how = holes(2, shape), dict(factors=3, epochs=4, lr=0.05, penalty=0.02)
    rng, mean = np.random.default_rng(5), np.nanmean(values)
    b, q = np.zeros(shape[0]), rng.normal(0, 0.1, (shape[0], 3))
    c, p = np.zeros(shape[1]), rng.normal(0, 0.1, (shape[1], 3))
    for _ in range(4):
        for group in diagonals(shape, rng):
            for u, i in zip(*group, strict=True):
                if np.isnan(values[u, i]):
                    continue
                error = values[u, i] - mean - b[u] - c[i] - q[u] @ p[i]
                b[u] += 0.05 * (error - 0.02 * b[u])
                c[i] += 0.05 * (error - 0.02 * c[i])
                q[u], p[i] = (
                    q[u] + 0.05 * (error * p[i] - 0.02 * q[u]),
                    p[i] + 0.05 * (error * q[u] - 0.02 * p[i]),
                )
    found = SVD(**how, seed=5).complete(values)
    slow = mean + np.add.outer(b, c) + q @ p.T
    assert np.allclose(found[:-1, :-1], slow[:-1, :-1])
    assert np.allclose(found[-1], mean + c) and np.allclose(found[:, -1], mean + b)


def slow_similarity(values, base, kind, support, shrink):
    found = np.zeros((len(values), len(values)))
    for u in range(len(values)):
        for v in range(len(values)):
            both = ~np.isnan(values[u]) & ~np.isnan(values[v])
            n = both.sum()
            if u == v or n < support:
                continue
            x, y = values[u, both], values[v, both]
            if kind == "msd":
                found[u, v] = 1 / (((x - y) ** 2).mean() + 1)
            elif kind == "pearson":
                found[u, v] = np.corrcoef(x, y)[0, 1]
            else:
                x, y = x - base[u, both], y - base[v, both]
                rho = (x @ y) / np.sqrt((x @ x) * (y @ y))
                found[u, v] = rho * (n - 1) / (n - 1 + shrink)
    return found


@pytest.mark.parametrize("kind", ["msd", "pearson", "pearson_baseline"])
@pytest.mark.parametrize("support", [2, 4])
def test_similarity_against_a_slow_reference(kind, support):
    values = holes(3)
    base = ModelTask().complete(values)
    knn = ModelKNN(kind=kind, min_support=support, shrinkage=10)
    slow = slow_similarity(values, base, kind, support, 10)
    assert np.allclose(knn.similarity(values, base), slow)


@pytest.mark.equation("predicting_big_bench", "section 3.3 c, d")
@pytest.mark.parametrize("k, least", [(1, 1), (3, 1), (3, 3), (50, 2)])
def test_neighbours_against_a_slow_reference(k, least):
    values = holes(4)
    base, knn = ModelTask().complete(values), ModelKNN(k, least, kind="msd")
    like, rest = knn.similarity(values, base), values - base
    found = knn.neighbour_mean(rest, like)
    for u in range(len(values)):
        for i in range(values.shape[1]):
            others = [v for v in range(len(values)) if like[u, v] > 0]
            near = [
                (like[u, v], rest[v, i]) for v in others if not np.isnan(rest[v, i])
            ]
            near = sorted(near, reverse=True)[:k]
            slow = 0
            if len(near) >= least:
                slow = sum(s * r for s, r in near) / sum(s for s, _ in near)
            assert np.isclose(found[u, i], slow)


@pytest.mark.equation("predicting_big_bench", "section 3.1")
def test_metrics_by_hand():
    frame = pd.DataFrame({"task": list("aaabbcc"), "subtask": list("aaabbcc")})
    frame["score"] = [0.1, 0.2, 0.3, 0.5, 0.5, 0.3, 0.4]
    found = evaluate_predictions(frame, [0.1, 0.3, 0.2, 0.4, 0.6, 0.5, 0.5])
    truth, error = frame["score"].to_numpy(), 0.09
    assert math.isclose(found["rmse"], math.sqrt(error / 7))
    assert math.isclose(found["r2"], 1 - error / 7 / truth.var())
    # task b has no order; a constant prediction (c) counts as 0
    assert math.isclose(found["kendall"], (1 / 3 + 0) / 2)
    assert math.isclose(found["pearson"], (0.5 + 0) / 2)
