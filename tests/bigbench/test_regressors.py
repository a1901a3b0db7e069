"All predictors: scikit-learn's contract, bad input, search; networks in a batch"

import math

import numpy as np
import pytest
from sklearn.base import clone

from benchnb.bigbench.matrix_completion import (
    SVD,
    LogitFactors,
    ModelTask,
    evaluate_predictions,
)
from benchnb.bigbench.records import RecordFeatures, make_synthetic_records
from benchnb.bigbench.regressors import (
    MLP,
    PREDICTORS,
    fit_networks,
    get_predictor,
    random_search,
)
from benchnb.bigbench.splits import split_records

FAST = {
    "random_forest": {"n_estimators": 5},
    "boosted_trees": {"n_estimators": 20},
    "mlp": {"hidden": (16, 8), "epochs": 5, "batch": 16},
    "svd": {"factors": 3, "epochs": 5},
    "logit_factors": {"starts": 2, "rounds": 10},
}
SMALL = dict(hidden=(16, 8), epochs=4, batch=16)


@pytest.fixture(scope="module")
def records():
    return make_synthetic_records(families=4, sizes=3, tasks=8, shots=(0, 2), seed=1)


@pytest.mark.parametrize("name", PREDICTORS)
def test_scikit_learns_contract(name, records):
    one = get_predictor(name, **FAST.get(name, {}))
    twin = clone(one)
    assert one.fit(records, records["score"]) is one
    found = one.predict(records.drop(columns="score"))
    assert found.shape == (len(records),) and ((found >= 0) & (found <= 1)).all()
    assert np.allclose(twin.fit(records, records["score"]).predict(records), found)
    assert one.score(records, records["score"]) > 0.2  # R2, from scikit-learn


@pytest.mark.parametrize("name", PREDICTORS)
def test_anything_new_gets_a_prediction(name, records):
    few = records[(records["family"] == "A") | (records.index % 7 == 0)]
    for known in (few, records.head(2)):
        one = get_predictor(name, **FAST.get(name, {}))
        one.fit(known, known["score"], dev=known)
        for new in (
            dict(task="new", subtask="new"),
            dict(family="Z", model="Z-1b"),
            dict(metric="new"),
            dict(shots=64),
            dict(total_params=np.nan),
        ):
            assert np.isfinite(one.predict(records.head(9).assign(**new))).all()


@pytest.mark.parametrize(
    "change, error, words",
    [
        (lambda f: (f, f["score"] * 100), ValueError, "divide percentages by 100"),
        (lambda f: (f, f["score"] - 2), ValueError, "got -"),
        (lambda f: (f, f["score"].where(f.index > 0)), ValueError, "got nan"),
        (lambda f: (f, f["score"][1:]), ValueError, "need as many scores"),
        (lambda f: (f.drop(columns="shots"), f["score"]), ValueError, "'shots'"),
    ],
)
def test_bad_records_are_refused(change, error, words, records):
    with pytest.raises(error, match=words):
        ModelTask().fit(*change(records))


@pytest.mark.parametrize(
    "call, words",
    [
        (lambda r: random_search("ols", r, r), "no predictor 'ols'; there are model_"),
        (lambda r: evaluate_predictions(r, [0.5]), "each record needs a prediction"),
        (lambda r: MLP().fit(r.head(1), [0.5]), "needs a dev set"),
        (lambda r: SVD(lr=50).fit(r, r["score"]), "diverged with lr=50"),
        (lambda r: LogitFactors(penalty=0).fit(r, r["score"]), "penalty above 0"),
        (lambda r: MLP(epochs=0).fit(r, r["score"]), "must be 1 or more"),
    ],
)
def test_what_would_go_wrong_silently_is_refused(records, call, words):
    with pytest.raises(ValueError, match=words), np.errstate(all="ignore"):
        call(records)


@pytest.mark.equation("predicting_big_bench", "section D.1")
def test_search_takes_the_best_on_dev(records):
    train, dev, _ = (records.iloc[p] for p in split_records(records, "L2.1")[0])
    best, trials = random_search("svd", train, dev, trials=4)
    assert trials["r2"].is_monotonic_decreasing and len(trials) == 4
    again, _ = random_search("svd", train, dev, trials=4, n_jobs=2)
    assert again.get_params() == best.get_params()
    on_dev = evaluate_predictions(dev, best.predict(dev))["r2"]
    assert math.isclose(on_dev, trials["r2"][0])


# ---- many networks at once


@pytest.fixture(scope="module")
def table(records):
    "Features, scores, and five ways to deal the records to five parts"
    pytest.importorskip("torch")
    x, y = RecordFeatures().fit_transform(records), records["score"].to_numpy()
    rows = np.tile(np.arange(len(x)), (5, 1))
    return x, y, np.random.default_rng(0).permuted(rows, axis=1) % 5


@pytest.mark.equation("predicting_big_bench", "section 3.3 g")
def test_a_network_of_the_batch_is_one_of_torch(table):
    torch, (x, y, part) = pytest.importorskip("torch"), table
    many = fit_networks(x, y, part > 0, part == 0, **SMALL)
    for seed, some in enumerate(part):  # the slow reference
        rng, layers = np.random.default_rng(seed), []
        for inputs, outputs in ((x.shape[1], 16), (16, 8), (8, 1)):
            layers += [torch.nn.Linear(inputs, outputs), torch.nn.ReLU()]
            weight, bias = (
                rng.uniform(-1, 1, shape) / inputs**0.5
                for shape in ((inputs, outputs), outputs)
            )
            layers[-2].weight.data = torch.tensor(weight.T, dtype=torch.float32)
            layers[-2].bias.data = torch.tensor(bias, dtype=torch.float32)
        net, errors = torch.nn.Sequential(*layers[:-1]), []
        adam = torch.optim.Adam(net.parameters(), lr=1e-3, weight_decay=1e-5)
        sets = [(x[s], y[s].astype(np.float32)) for s in (some > 0, some == 0)]
        (a, b), (c, d) = [map(torch.tensor, each) for each in sets]
        for _ in range(4):
            for rows in np.array_split(rng.permutation(len(a)), -(-len(a) // 16)):
                adam.zero_grad()
                ((net(a[rows])[:, 0] - b[rows]) ** 2).mean().backward()
                adam.step()
            guess = net(c)[:, 0].detach().clamp(0, 1)
            errors.append(((guess - d) ** 2).mean().item())
        np.testing.assert_allclose(many.dev_errors[seed], errors, rtol=1e-3)
        r2 = 1 - min(errors) / y[some == 0].var()
        assert math.isclose(many.dev_r2[seed], r2, abs_tol=1e-4)


def test_predictions_together_are_those_of_each_network(table):
    x, y, part = table
    many = fit_networks(x, y, part > 0, part == 0, **SMALL)
    for number, predicted in enumerate(many.predict(x)):
        h = x  # the slow reference
        layers = zip(many.weights, many.biases, strict=True)
        for place, (weight, bias) in enumerate(layers):
            h = (np.maximum(h, 0) if place else h) @ weight[number] + bias[number]
        np.testing.assert_allclose(predicted, h[:, 0].clip(0, 1), atol=1e-6)


@pytest.mark.parametrize("dropout", [0.0, 0.2])
def test_a_network_does_not_depend_on_the_others(table, dropout):
    x, y, part = table
    dev, some = part[0] == 0, np.arange(len(x)) % 5 == 0
    train, devs = np.stack([~dev, ~dev & some, ~dev]), np.stack([dev] * 3)
    how = SMALL | dict(dropout=dropout)
    many = fit_networks(x, y, train, devs, seeds=[0, 1, 2], **how)
    for number in range(3):
        rows = slice(number, number + 1)
        one = fit_networks(x, y, train[rows], devs[rows], seeds=[number], **how)
        np.testing.assert_allclose(
            one.predict(x)[0], many.predict(x)[number], atol=1e-4
        )


def test_the_batch_refuses_what_makes_no_sense(table):
    x, y, part = table
    train, dev = part > 0, part == 0
    gap = dev & (np.arange(5) != 2)[:, None]
    for (_, words), given in {
        (0, "train must mark"): (x, y, train[0], dev, range(5)),
        (1, "dev must mark"): (x, y, train, gap),
        (2, "dev must mark"): (x, y, train, dev[:4]),
        (3, "in y for each row"): (x, y[1:], train, dev),
        (4, "in y for each row"): (x, 60 * y, train, dev),
    }.items():
        with pytest.raises(ValueError, match=words):
            fit_networks(*given)
