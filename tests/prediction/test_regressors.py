"Regressors and all predictors: scikit-learn's contract, search, bad input"

import math

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from benchnb.prediction.matrix_completion import (
    SVD,
    LogitFactors,
    ModelTask,
    evaluate_predictions,
)
from benchnb.prediction.records import made_records
from benchnb.prediction.regressors import (
    GRIDS,
    MLP,
    PREDICTORS,
    cross_validate,
    draw_settings,
    get_predictor,
    random_search,
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
        random_search("ols", records, records)
    with pytest.raises(ValueError, match="not 'cosine'"):
        get_predictor("task_knn", kind="cosine").fit(records, records["score"])
    with pytest.raises(ValueError, match="trials must be at least 1"):
        draw_settings({}, 0)
    with pytest.raises(ValueError, match="needs a dev set"):
        MLP().fit(records.head(1), records["score"].head(1))
    with pytest.raises(ValueError, match="as many predictions"):
        evaluate_predictions(records, [0.5])


def test_xgboost_says_what_is_missing(records, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "xgboost", None)
    with pytest.raises(ImportError, match="pip install xgboost"):
        get_predictor("xgboost").fit(records, records["score"])


def test_xgboost_where_it_is(records):
    pytest.importorskip("xgboost")
    one = get_predictor("xgboost", n_estimators=20)
    one.fit(records, records["score"], dev=records)
    assert one.score(records, records["score"]) > 0.5


def test_search_takes_the_best_on_dev(records):
    train, dev, _ = (records.iloc[p] for p in split_records(records, "L2.1")[0])
    best, trials = random_search("svd", train, dev, trials=4)
    assert trials["r2"].is_monotonic_decreasing and len(trials) == 4
    again, _ = random_search("svd", train, dev, trials=4, n_jobs=2)
    assert again.get_params() == best.get_params()
    assert math.isclose(
        evaluate_predictions(dev, best.predict(dev))["r2"], trials["r2"][0]
    )


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


def test_the_callers_random_state_is_kept(records):
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


@pytest.mark.parametrize(
    "call, words",
    [
        (
            lambda r: evaluate_predictions(r, np.full(len(r), np.nan)),
            "a prediction is NaN",
        ),
        (lambda r: ModelTask().fit(r.astype({"shots": str}), r["score"]), "be numbers"),
        (lambda r: MLP().fit(r, r["score"], dev=r.drop(columns="score")), "its scores"),
        (lambda r: SVD(lr=50).fit(r, r["score"]), "diverged with lr=50"),
        (lambda r: LogitFactors(penalty=0).fit(r, r["score"]), "penalty above 0"),
        (lambda r: MLP(epochs=0).fit(r, r["score"]), "must be 1 or more"),
    ],
)
def test_what_would_go_wrong_silently_is_refused(records, call, words):
    with pytest.raises(ValueError, match=words) as error:
        with np.errstate(all="ignore"):
            call(records)
    assert "\n" not in str(error.value)
