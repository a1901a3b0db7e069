"Held-out records of one's own: who is held out, which intervals are promised"

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import HistGradientBoostingRegressor
from threadpoolctl import threadpool_info, threadpool_limits

from benchnb.bigbench.held_out import (
    choose_split,
    complete_own_records,
    gap_folds,
    group_folds,
    predict_held_out,
    predict_missing,
    predictor_errors,
    side_with_gaps,
    unseen_names,
)
from benchnb.bigbench.records import make_synthetic_records
from benchnb.bigbench.splits import SPLIT_SETTINGS, list_possible_split_settings


@pytest.fixture
def made():
    return make_synthetic_records(families=8, noise=0.03)


@pytest.mark.parametrize("split", ["model", "family", "task"])
def test_who_shares_a_value_is_held_out_together(made, split):
    folds = group_folds(made, split)
    tested = np.concatenate([fold.test for fold in folds])
    assert sorted(tested) == [*range(len(made))]  # each record once
    for fold in folds:
        learned = made.iloc[np.concatenate([fold.train, fold.dev])]
        assert not {*learned[split]} & {*made[split].iloc[fold.test]}


def test_a_column_says_what_is_held_out(made):
    role = np.where(made["shots"] == 3, "Test", "train")
    own = complete_own_records(made.assign(split=role), features=["split"])
    assert choose_split(own) == "split"
    (fold,) = group_folds(own, "split")
    assert [*own["shots"].iloc[fold.test].unique()] == [3] and not len(fold.dev)
    predictions = predict_held_out(own, [fold], ["model_knn"])
    assert np.isnan(predictor_errors(predictions)["mae_se"]).all()  # one trial


@pytest.mark.parametrize("split", [n for n in SPLIT_SETTINGS])
def test_settings_of_the_paper_go_by_their_names(made, split):
    assert list_possible_split_settings(made)[split].allowed
    assert len(group_folds(made, split)) in (1, 9, 10)


@pytest.mark.parametrize("split", ["size", "score"])
def test_another_split_is_refused(made, split):
    with pytest.raises(ValueError, match="split is one of record, family"):
        group_folds(made, split)


def test_what_is_held_out_is_like_what_is_missing(made):
    for name in ("model", "task"):
        gaps = made[name].isin(made[name].unique()[:2])
        assert choose_split(made.assign(score=made["score"].mask(gaps))) == name
    gaps = made["task"].isin(["t0"]) | made["model"].isin(["A-0.1b"])
    kinds = unseen_names(made[gaps], made[~gaps]).value_counts()
    assert kinds.to_dict() == {"task": 69, "model": 21, "model and task": 3}


@pytest.mark.slow
@pytest.mark.parametrize("hidden, most", [("record", 0.99), ("model", 1)])
def test_intervals_hold_as_often_as_they_promise(hidden, most):
    "Single gaps, and models that were never run: with 25 others they hold more often"
    held = []
    for seed in range(5):
        made = make_synthetic_records(families=10, noise=0.03, seed=seed)
        rng = np.random.default_rng(seed)
        names = made["model"] if hidden == "model" else pd.Series(made.index)
        gaps = names.isin(rng.choice(names.unique(), len(names.unique()) // 6, False))
        records = made.assign(score=made["score"].mask(gaps))
        scored = records.dropna(subset="score").reset_index(drop=True)
        found = predict_held_out(scored, group_folds(scored, hidden), ["model_task"])
        filled = predict_missing(records, found, "model_task")
        truth = made["score"][gaps]
        held.append(truth.between(filled["low"], filled["high"]).mean())
    assert 0.91 < np.mean(held) <= most


def results(seed, models=40, tasks=20):
    "Scores of models on tasks that do not all measure the same, and their strength"
    rng = np.random.default_rng(seed)
    strength, hardness = rng.normal(0, 1.3, models), rng.normal(0, 1.3, tasks)
    leaning = rng.normal(0, 0.5, (models, 2)) @ rng.normal(0, 0.5, (2, tasks))
    scores = 1 / (1 + np.exp(hardness - strength[:, np.newaxis] - leaning))
    scores = (scores + rng.normal(0, 0.06, scores.shape)).clip(0, 1)
    names = [f"m{n:02}" for n in range(models)], [f"t{n:02}" for n in range(tasks)]
    wide = pd.DataFrame(scores, *names).rename_axis("model").reset_index()
    return wide.melt("model", var_name="task", value_name="score"), strength, hardness


def fill(long, gaps, split=None):
    "Predictions of the gaps by the best of two predictors, with what is promised"
    records = complete_own_records(long.assign(score=long["score"].mask(gaps)))
    split = split or choose_split(records)
    scored = records.dropna(subset="score").reset_index(drop=True)
    if split == "gaps":
        folds = gap_folds(records)
    else:
        folds = group_folds(scored, split)
    found = predict_held_out(scored, folds, ["model_task", "model_knn"])
    errors = predictor_errors(found)
    filled = predict_missing(records, found, errors.index[0], split=split)
    truth = long.set_index(["model", "task"])["score"]
    pairs = pd.MultiIndex.from_frame(filled[["model", "task"]])
    return split, errors["mae"].iloc[0], filled, truth[pairs].to_numpy()


@pytest.mark.parametrize(
    "trials", [5, pytest.param(30, marks=pytest.mark.slow)], ids=["few", "many"]
)
def test_a_model_with_two_scores_is_predicted_as_well_as_is_promised(trials):
    "Single records, held out, promise 7 points, and their intervals hold in 75%"
    promised, actual, held = [], [], []
    for seed in range(trials):
        long, *_ = results(seed)
        gaps = (long["model"] == f"m{seed:02}") & (long["task"] > "t01")
        split, error, filled, truth = fill(long, gaps)
        assert split == "gaps"
        promised.append(error)
        actual.append(np.abs(filled["predicted"] - truth).mean())
        if filled["low"].notna().all():
            held.append(((filled["low"] <= truth) & (truth <= filled["high"])).mean())
    assert np.mean(promised) > 0.75 * np.mean(actual)
    assert len(held) > trials / 2 and np.mean(held) > 0.93


def test_the_best_models_on_the_hardest_tasks_have_no_interval():
    long, strength, hardness = results(0)
    best = [f"m{n:02}" for n in np.argsort(strength)[-8:]]
    hardest = [f"t{n:02}" for n in np.argsort(hardness)[-7:]]
    gaps = long["model"].isin(best) & long["task"].isin(hardest)
    split, _, filled, _ = fill(long, gaps)
    assert split == "gaps" and filled["low"].isna().mean() > 0.8
    beyond = filled["new"] == "better or worse than all other models"
    assert beyond.mean() > 0.5 and filled["low"][beyond].isna().all()


def test_gaps_at_random_are_single_ones():
    for seed in range(20):
        long, *_ = results(seed)
        gaps = np.random.default_rng(seed).random(len(long)) < 0.2
        assert side_with_gaps(long.assign(score=long["score"].mask(gaps))) == ""
    gaps = long["task"].isin(["t03", "t07"]) & (long["model"] > "m02")
    with_gaps = complete_own_records(long.assign(score=long["score"].mask(gaps)))
    assert side_with_gaps(with_gaps) == "task"
    for fold in gap_folds(with_gaps):
        held = with_gaps.dropna(subset="score").iloc[fold.test]
        assert not {*held["task"]} & {"t03", "t07"} and held["model"].min() > "m02"


def test_rows_unlike_all_held_out_ones_get_no_interval(made):
    gaps = (made["model"] == "A-0.1b") | (made.index % 7 == 0)
    records = made.assign(score=made["score"].mask(gaps))
    scored = records.dropna(subset="score").reset_index(drop=True)
    for split, known in {"record": "", "model": "model"}.items():
        found = predict_held_out(scored, group_folds(scored, split), ["model_knn"])
        filled = predict_missing(records, found, "model_knn")
        assert (filled["low"].notna() == (filled["new"] == known)).all()
        assert filled["predicted"].notna().all() and len(filled) == gaps.sum()


def test_a_column_of_your_own_is_learned_from(made):
    "A column that tells the score makes the error small"
    own = made.assign(hint=made["score"] ** 2, lab="x")
    own = complete_own_records(own, features=["hint", "lab"])
    folds = group_folds(own, "model")[:2]
    errors = [
        predictor_errors(predict_held_out(own, folds, ["random_forest"], given))
        for given in ([], ["hint", "lab"])
    ]
    assert errors[1]["mae"].item() < errors[0]["mae"].item() / 3


def test_few_records_are_boosted_by_one_thread_and_slow_fits_are_spread(
    made, monkeypatch
):
    "More threads wait for each other; the time to go is that of all predictors"
    seen, fit = [], HistGradientBoostingRegressor.fit

    def threads(self, *given):
        seen.append({one["num_threads"] for one in threadpool_info()})
        return fit(self, *given)

    monkeypatch.setattr(HistGradientBoostingRegressor, "fit", threads)
    names = ["model_task", "boosted_trees"]
    with threadpool_limits(2):
        found = predict_held_out(made[:90], group_folds(made[:90])[:2], names)
    assert seen == [{1}, {1}]
    assert [*found["predictor"].unique()] == names
    assert (found["fold"].diff().dropna() >= 0).all()


@pytest.mark.slow
def test_several_processes_find_the_same(made):
    folds = group_folds(made)[:2]
    one, two = (predict_held_out(made, folds, ["model_knn"], n_jobs=n) for n in (1, 2))
    pd.testing.assert_frame_equal(one, two)
