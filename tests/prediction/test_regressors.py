"Predictors: slow references, scikit-learn's contract, the batch of networks, bad input"

import math

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from benchnb.prediction.records import RecordFeatures, made_records
from benchnb.prediction.regressors import (
    GRIDS,
    MLP,
    PREDICTORS,
    SVD,
    LogitFactors,
    ModelTask,
    TaskKNN,
    alternate,
    cross_validate,
    descend,
    diagonals,
    draw_settings,
    effects,
    evaluate,
    fit_many,
    from_logit,
    get_predictor,
    neighbours,
    network,
    risk,
    search,
    similarity,
    to_logit,
    with_errors,
)
from benchnb.prediction.splits import split_records

FAST = {
    "random_forest": {"n_estimators": 5},
    "boosted_trees": {"n_estimators": 20},
    "mlp": {"hidden": (16, 8), "epochs": 5, "batch": 16},
    "svd": {"factors": 3, "epochs": 5},
    "logit_factors": {"starts": 2, "rounds": 10},
}
NAMES = [name for name in PREDICTORS if name != "xgboost"]


@pytest.fixture(scope="module")
def records():
    return made_records(families=4, sizes=3, tasks=8, shots=(0, 2), seed=1)


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


@pytest.mark.parametrize("seed", range(3))
def test_effects_against_a_slow_reference(seed):
    values = holes(seed)
    assert np.allclose(effects(values, 3, 2), slow_effects(values, 3, 2))


def test_effects_without_penalty_are_least_squares():
    values = holes(0)[:-1, :-1]
    rows, columns = np.nonzero(~np.isnan(values))
    design = np.zeros((len(rows), sum(values.shape)))
    design[np.arange(len(rows)), rows] = 1
    design[np.arange(len(rows)), len(values) + columns] = 1
    truth = values[rows, columns]
    exact = design @ np.linalg.lstsq(design, truth, rcond=None)[0]
    found = effects(values, 0, 0, rounds=500)[rows, columns]
    # the mean of all scores is fixed, yet rows and columns together can shift it
    assert np.allclose(found, exact, atol=1e-6)


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
    found = descend(values, **how, seed=5)
    slow = mean + np.add.outer(b, c) + q @ p.T
    assert np.allclose(found[:-1, :-1], slow[:-1, :-1])
    assert np.allclose(found[-1], mean + c) and np.allclose(found[:, -1], mean + b)


def slow_similarity(values, base, kind, support, shrink):
    found = np.zeros((len(values), len(values)))
    for u in range(len(values)):
        for v in range(len(values)):
            both = ~np.isnan(values[u]) & ~np.isnan(values[v])
            n = both.sum()
            if u == v or n < max(support, 1):
                continue
            x, y = values[u, both], values[v, both]
            if kind == "msd":
                found[u, v] = 1 / (((x - y) ** 2).mean() + 1)
            elif kind == "pearson":
                spread = x.std() * y.std()
                if n > 1 and spread > 1e-9:
                    found[u, v] = ((x - x.mean()) * (y - y.mean())).mean() / spread
            else:
                x, y = x - base[u, both], y - base[v, both]
                rho = (x @ y) / np.sqrt((x @ x) * (y @ y))
                found[u, v] = rho * (n - 1) / (n - 1 + shrink) if n > 1 else 0
    return found


@pytest.mark.parametrize("kind", ["msd", "pearson", "pearson_baseline"])
@pytest.mark.parametrize("support", [2, 4])
def test_similarity_against_a_slow_reference(kind, support):
    values = holes(3)
    base = effects(values)
    found = similarity(values, base, kind, support, 10)
    assert np.allclose(found, slow_similarity(values, base, kind, support, 10))


@pytest.mark.parametrize("k, least", [(1, 1), (3, 1), (3, 3), (50, 2)])
def test_neighbours_against_a_slow_reference(k, least):
    values = holes(4)
    base = effects(values)
    like, rest = similarity(values, base, "msd"), values - base
    found = neighbours(rest, like, k, least)
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


def test_logits_back_and_forth():
    values = holes(5)
    z, mean, spread = to_logit(values)
    known = ~np.isnan(values)
    back = from_logit(z, mean, spread)
    assert np.allclose(back[known], values[known].clip(0.005, 0.995))
    assert np.allclose(np.nanmean(z[:, :-1], axis=0), 0)


def test_alternating_ridge_finds_a_low_rank():
    rng = np.random.default_rng(0)
    truth = rng.normal(size=(30, 2)) @ rng.normal(size=(2, 20))
    truth += rng.normal(size=(30, 1)) + rng.normal(size=20)
    seen = np.where(rng.random(truth.shape) < 0.3, np.nan, truth)
    gap = (alternate(seen, penalty=0.01, starts=2) - truth)[np.isnan(seen)]
    assert np.sqrt((gap**2).mean()) < 0.1


@pytest.mark.parametrize("name", NAMES)
def test_scikit_learns_contract(name, records):
    one = get_predictor(name, **FAST.get(name, {}))
    twin = clone(one)
    assert twin.get_params() == one.get_params()
    assert one.fit(records, records["score"]) is one
    found = one.predict(records.drop(columns="score"))
    assert found.shape == (len(records),) and ((found >= 0) & (found <= 1)).all()
    assert np.allclose(twin.fit(records, records["score"]).predict(records), found)
    assert one.score(records, records["score"]) > 0.2  # R2, from scikit-learn
    with pytest.raises(ValueError):
        one.set_params(nonsense=1)


@pytest.mark.parametrize("name", NAMES)
def test_new_models_and_tasks_get_a_prediction(name, records):
    one = get_predictor(name, **FAST.get(name, {})).fit(records, records["score"])
    for new in (
        dict(task="new", subtask="new"),
        dict(family="Z", model="Z-1b"),
        dict(metric="new"),
        dict(shots=64),
        dict(total_params=np.nan),
    ):
        assert np.isfinite(one.predict(records.head(9).assign(**new))).all()


@pytest.mark.parametrize("name", NAMES)
def test_a_family_with_one_model_and_few_records(name, records):
    few = pd.concat(
        [records[records["family"] == "A"], records[records["family"] == "B"].head(1)]
    )
    one = get_predictor(name, **FAST.get(name, {})).fit(few, few["score"])
    assert np.isfinite(one.predict(records)).all()
    some = records.head(2)
    one = get_predictor(name, **FAST.get(name, {})).fit(some, some["score"], dev=some)
    assert np.isfinite(one.predict(records)).all()


def test_the_order_of_records_does_not_matter_to_the_matrix(records):
    mixed = records.sample(frac=1, random_state=0)
    for kind in (ModelTask, TaskKNN):
        one, two = (kind().fit(part, part["score"]) for part in (records, mixed))
        assert np.allclose(one.predict(records), two.predict(records))


def test_repeated_records_are_averaged_in_the_matrix(records):
    twice = pd.concat([records.assign(score=0.2), records.assign(score=0.6)])
    one = ModelTask().fit(twice, twice["score"])
    assert np.allclose(one.predict(records), 0.4)


@pytest.mark.parametrize(
    "change, error, words",
    [
        (lambda f: (f, f["score"] * 100), ValueError, "divide by 100"),
        (lambda f: (f, f["score"] - 2), ValueError, "drop these records"),
        (lambda f: (f, f["score"].where(f.index > 0)), ValueError, "got nan"),
        (lambda f: (f, f["score"][1:]), ValueError, "need as many scores"),
        (lambda f: (f.drop(columns="shots"), f["score"]), ValueError, "'shots'"),
        (lambda f: (f.to_numpy(), f["score"]), TypeError, "not ndarray"),
        (lambda f: (f.head(0), []), ValueError, "no records"),
    ],
)
def test_bad_records_are_refused_in_one_line(change, error, words, records):
    for name in ("model_task", "mlp"):
        with pytest.raises(error, match=words) as caught:
            get_predictor(name).fit(*change(records))
        assert "\n" not in str(caught.value)


def test_bad_settings_are_refused(records):
    with pytest.raises(ValueError, match="no predictor 'ols'; there are model_task"):
        search("ols", records, records)
    with pytest.raises(ValueError, match="not 'cosine'"):
        get_predictor("task_knn", kind="cosine").fit(records, records["score"])
    with pytest.raises(ValueError, match="trials must be at least 1"):
        draw_settings({}, 0)
    with pytest.raises(ValueError, match="needs a dev set"):
        MLP().fit(records.head(1), records["score"].head(1))
    with pytest.raises(ValueError, match="as many predictions"):
        evaluate(records, [0.5])


def test_xgboost_says_what_is_missing(records, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "xgboost", None)
    with pytest.raises(ImportError, match="pip install xgboost"):
        get_predictor("xgboost").fit(records, records["score"])


def test_xgboost_where_it_is(records):
    pytest.importorskip("xgboost")
    one = get_predictor("xgboost", n_estimators=20)
    one.fit(records, records["score"], dev=records)
    assert one.score(records, records["score"]) > 0.5


def test_metrics_by_hand():
    frame = pd.DataFrame({"task": list("aaabb"), "subtask": list("aaabb")})
    frame["score"] = [0.1, 0.2, 0.3, 0.5, 0.5]
    found = evaluate(frame, [0.1, 0.3, 0.2, 0.4, 0.6])
    truth = frame["score"].to_numpy()
    assert math.isclose(found["rmse"], math.sqrt(0.04 / 5))
    assert math.isclose(found["r2"], 1 - 0.04 / 5 / truth.var())
    assert math.isclose(found["kendall"], 1 / 3)  # task b has no order
    assert math.isclose(found["pearson"], 0.5)


def test_search_takes_the_best_on_dev(records):
    train, dev, _ = (records.iloc[p] for p in split_records(records, "L2.1")[0])
    best, trials = search("svd", train, dev, trials=4)
    assert trials["r2"].is_monotonic_decreasing and len(trials) == 4
    again, _ = search("svd", train, dev, trials=4, n_jobs=2)
    assert again.get_params() == best.get_params()
    assert math.isclose(evaluate(dev, best.predict(dev))["r2"], trials["r2"][0])


@pytest.mark.parametrize("name", GRIDS)
def test_every_grid_fits_its_predictor(name):
    for settings in draw_settings(GRIDS[name], 5):
        assert get_predictor(name, **settings).get_params().items() >= settings.items()
    drawn = draw_settings(GRIDS[name], 50)
    assert len({str(one) for one in drawn}) == len(drawn)


def test_cross_validation_leaves_predictors_unfitted(records):
    one = ModelTask()
    found = cross_validate(
        records, {"base": one}, split_records(records, "L3", folds=3)
    )
    assert found["fold"].tolist() == [0, 1, 2] and not hasattr(one, "table_")
    assert with_errors(found).index.tolist() == ["base"]


def test_no_error_judges_itself():
    rng = np.random.default_rng(0)
    errors, code = rng.normal(size=30), rng.integers(4, size=30)
    whole, others = risk(errors, code, 5)
    size = np.minimum(abs(errors), 5 * np.median(abs(errors)))
    for cell in range(30):
        rest = (code == code[cell]) & (np.arange(30) != cell)
        total = size[rest].sum() + 3 * size.mean()
        assert math.isclose(others[cell], total / (rest.sum() + 3) / size.mean())
    assert whole.shape == (5,) and whole[4] == 1


def test_intervals_hold_what_they_promise():
    records = made_records(families=6, sizes=4, tasks=20, shots=(0,), noise=0.05)
    held = []
    for train, _, test in split_records(records, "L2.1", folds=5):
        known, hidden = records.iloc[train], records.iloc[test]
        one = LogitFactors(starts=3).fit(known, known["score"])
        low, high = one.predict_interval(hidden)
        held.append((low <= hidden["score"]) & (hidden["score"] <= high))
        assert (low >= 0).all() and (high <= 1).all() and (low <= high).all()
    assert 0.82 < np.concatenate(held).mean() < 0.98


@pytest.fixture(scope="module")
def table(records):
    pytest.importorskip("torch")
    x, y = RecordFeatures().fit_transform(records), records["score"].to_numpy()
    part = (
        np.random.default_rng(0).permuted(np.tile(np.arange(len(x)), (5, 1)), axis=1)
        % 5
    )
    return x, y, part


SMALL = dict(hidden=(16, 8), epochs=4, batch=16)


@pytest.mark.parametrize("together", [1, 2, 5])
def test_the_batch_is_the_same_networks(together, table):
    x, y, part = table
    many = fit_many(x, y, part > 0, part == 0, together=together, **SMALL)
    for seed, some in enumerate(part):
        one, rng = MLP(seed=seed, **SMALL), np.random.default_rng(seed)
        one.network_ = network(x.shape[1], one.hidden, 0.0, rng)
        one.train(x[some > 0], y[some > 0], (x[some == 0], y[some == 0]), rng)
        error = min(one.dev_errors_) / y[some == 0].var()
        assert math.isclose(many.dev_r2[seed], 1 - error, abs_tol=1e-4)
        assert many.epoch[seed] == one.epoch_
        weight = one.network_[0].weight.detach().numpy().T
        assert np.allclose(many.weights[0][seed], weight, atol=1e-4)


def test_weights_count_records(table):
    x, y, part = table
    train, dev = (part[:1] > 0).astype(float), part[:1] == 0
    one = fit_many(x, y, train, dev, **SMALL)
    double = fit_many(x, y, 2 * train, dev, **SMALL)
    assert np.allclose(one.predict(x), double.predict(x), atol=1e-5)
    heavy = np.where(y > np.median(y), 20, 1) * train
    up = fit_many(x, y, heavy, dev, **SMALL)
    assert up.predict(x).mean() > one.predict(x).mean()


def test_networks_with_different_numbers_of_records(table):
    x, y, part = table
    first = np.array([192, 150, 90, 40, 12])[:, np.newaxis]
    train = (part > 0) & (np.arange(len(x)) < first)
    many = fit_many(x, y, train, part == 0, together=3, **SMALL)
    other = fit_many(x, y, train, part == 0, together=5, **SMALL)
    assert np.allclose(many.dev_r2, other.dev_r2, atol=1e-4)
    assert len(many) == 5 and many.predict(x).shape == (5, len(x))


def test_the_batch_refuses_what_makes_no_sense(table):
    x, y, part = table
    with pytest.raises(ValueError, match="train must be networks x"):
        fit_many(x, y, part[0] > 0, part == 0)
    with pytest.raises(ValueError, match="dev of network 2 is empty"):
        fit_many(x, y, part > 0, (part == 0) & (np.arange(5) != 2)[:, None])
    with pytest.raises(ValueError, match="one of each, got 5 rows of train, 4 of dev"):
        fit_many(x, y, part > 0, part[:4] == 0)
    with pytest.raises(ValueError, match="train must not be negative"):
        fit_many(x, y, part - 1.0, part == 0)


@pytest.mark.parametrize("dropout", [0.0, 0.2])
def test_a_network_is_the_same_alone_and_in_company(records, dropout):
    x, y = RecordFeatures().fit_transform(records), records["score"].to_numpy()
    dev = np.random.default_rng(0).permutation(len(x)) % 9 == 0
    train = np.stack([~dev, ~dev & (np.arange(len(x)) % 5 == 0), ~dev])
    how = dict(hidden=(16, 8), batch=32, epochs=4, dropout=dropout)
    many = fit_many(x, y, train, np.stack([dev] * 3), seeds=[0, 1, 2], **how)
    again = fit_many(x, y, train, np.stack([dev] * 3), seeds=[0, 1, 2], **how)
    np.testing.assert_array_equal(many.predict(x), again.predict(x))
    for number in range(3):
        rows = slice(number, number + 1)
        one = fit_many(x, y, train[rows], dev[np.newaxis], seeds=[number], **how)
        np.testing.assert_allclose(
            one.predict(x)[0], many.predict(x)[number], atol=1e-4
        )


def test_the_callers_luck_stays_as_it_is(records):
    torch = pytest.importorskip("torch")
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    MLP(epochs=1, dropout=0.5).fit(records, records["score"])
    assert torch.equal(torch.rand(3), expected)


def test_the_order_of_records_is_no_matter_to_matrices(records):
    mixed = records.sample(frac=1, random_state=0)
    for name in ("model_task", "svd", "model_knn", "task_knn", "logit_factors"):
        first = get_predictor(name).fit(records, records["score"])
        second = get_predictor(name).fit(mixed, mixed["score"])
        np.testing.assert_allclose(first.predict(records), second.predict(records))


def test_a_constant_prediction_has_told_no_order():
    frame = pd.DataFrame({"task": list("aabb"), "subtask": list("aabb")})
    frame["score"] = [0.1, 0.2, 0.3, 0.4]
    found = evaluate(frame, [0.1, 0.2, 0.5, 0.5])
    assert found["pearson"] == pytest.approx(0.5) and found["kendall"] == 0.5


@pytest.mark.parametrize(
    "call, words",
    [
        (lambda r: evaluate(r, np.full(len(r), np.nan)), "a prediction is NaN"),
        (lambda r: ModelTask().fit(r.astype({"shots": str}), r["score"]), "be numbers"),
        (lambda r: MLP().fit(r, r["score"], dev=r.drop(columns="score")), "its scores"),
        (lambda r: SVD(lr=50).fit(r, r["score"]), "diverged with lr=50"),
        (lambda r: LogitFactors(penalty=0).fit(r, r["score"]), "penalty above 0"),
        (lambda r: MLP(epochs=0).fit(r, r["score"]), "must be 1 or more"),
        (lambda r: fit_many([[1.0]] * 4, [0.1] * 3, [[1] * 4], [[1] * 4]), "in y for"),
        (lambda r: fit_many([[1.0]] * 2, [5, 60], [[1, 0]], [[0, 1]]), "in y for"),
    ],
)
def test_what_would_go_wrong_silently_is_refused(records, call, words):
    with pytest.raises(ValueError, match=words) as error:
        with np.errstate(all="ignore"):
            call(records)
    assert "\n" not in str(error.value)
