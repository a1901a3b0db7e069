"The embedded leaderboard: what `benchnb.data.leaderboards` makes, complete and varied"

import numpy as np
import pytest

from benchnb.data.files import resource_path
from benchnb.data.leaderboards import (
    ZooModel,
    ZooTask,
    answer_items,
    make_zoo,
    training_rows,
    zoo_models,
    zoo_tasks,
)
from benchnb.data.sources import load


@pytest.fixture(scope="module")
def zoo():
    return load("zoo")


@pytest.fixture(scope="module")
def tasks():
    return zoo_tasks()


def test_size_of_the_zoo(zoo):
    assert resource_path("zoo.parquet").stat().st_size < 500_000
    assert len(zoo) >= 200
    assert zoo.shape[1] >= 2000
    assert zoo.models["family"].nunique() >= 8
    assert zoo.items["task"].nunique() >= 4


def test_scores_are_right_or_wrong_and_complete(zoo):
    assert np.isin(zoo.values, (0, 1)).all()
    assert (zoo.items["weight"] == 1).all()


def test_facts_are_complete(zoo):
    facts = zoo.models[
        ["family", "n_params", "released", "fraction", "features", "part"]
    ]
    assert not facts.isna().any().any()
    assert (facts["n_params"] > 0).all()
    assert facts["fraction"].between(0, 1, inclusive="right").all()
    assert not zoo.items[["task", "cost"]].isna().any().any()
    assert zoo.items["cost"].dtype.kind == "i"


def test_models_and_items_are_those_of_the_module(zoo, tasks):
    models = zoo_models()
    assert [model.name for model in models] == list(zoo.models.index)
    assert [model.family for model in models] == list(zoo.models["family"])
    names = [f"{task.name}-{number:04d}" for task in tasks for number in task.items]
    assert names == list(zoo.items.index)


def test_scores_spread_and_models_differ(zoo):
    performance, share = zoo.performance(), zoo.values.mean(axis=0)
    assert performance.min() < 0.3
    assert performance.max() > 0.85
    assert 0.1 < performance.std() < 0.25
    assert share.min() < 0.02
    assert share.max() > 0.98
    groups, sizes = np.unique(zoo.near_copies(), return_counts=True)
    assert 0 < sizes[sizes > 1].sum() <= 0.1 * len(zoo)


def test_later_models_are_stronger_on_the_whole(zoo):
    rank = zoo.models["released"].rank().corr(zoo.performance().rank())
    assert 0.5 < rank < 0.95


def test_parts_are_dealt_in_turn(zoo):
    order = np.argsort(zoo.values.mean(axis=1), kind="stable")
    part = zoo.models["part"].to_numpy()[order]
    assert (part[::2] == "source").all()
    assert (part[1::2] == "target").all()


@pytest.mark.parametrize("how", ["given", "random", "family", "date", "ability"])
def test_every_split_works(zoo, how):
    source, target = zoo.split(how)
    assert len(source) >= 100
    assert len(target) >= 50
    assert not set(source.models.index) & set(target.models.index)
    if how == "family":
        assert not set(source.models["family"]) & set(target.models["family"])


def test_no_item_is_ever_trained_on(tasks):
    for task in tasks:
        assert len(set(task.items)) == len(task.items)
        for train, test in task.folds:
            learned, asked = set(task.origin[train].flat), set(task.origin[test].flat)
            assert not learned & asked
            rows = {tuple(row) for row in task.features[train].tolist()}
            if task.name != "top-half":  # the upper half of two digits may be the same
                assert not any(
                    tuple(row) in rows for row in task.features[test].tolist()
                )


def test_a_model_is_never_shown_an_answer_it_is_asked_for(tasks):
    "Other answers to the items change nothing that a model learns"
    task, model = tasks[-2], zoo_models()[0]  # two folds: take one
    fold = (task.folds[0],)
    one = ZooTask(task.name, task.features, task.answers, task.origin, fold)
    wrong = task.answers.copy()
    wrong[fold[0][1]] = 99
    other = ZooTask(task.name, task.features, wrong, task.origin, fold)
    assert answer_items(model, one)[1] == answer_items(model, other)[1]
    assert answer_items(model, one)[0].any()
    assert not answer_items(model, other)[0].any()


def test_a_leak_is_refused():
    line = np.arange(4)[:, np.newaxis]
    with pytest.raises(ValueError, match="trains on row 1 and asks about it"):
        ZooTask("leak", line, np.arange(4), line, (([0, 1], [1, 2]),))


@pytest.mark.parametrize("fraction", [0.02, 0.4, 1.0])
def test_training_rows_keep_every_class(fraction):
    answers = np.repeat([0, 1, 2], [2, 30, 100])
    rows = training_rows(answers, np.arange(132), fraction, np.random.default_rng(0))
    assert len(set(rows)) == len(rows)
    counts = np.bincount(answers[rows])
    assert list(counts) == [max(2, round(fraction * n)) for n in (2, 30, 100)]


def test_three_models_can_be_made_again(zoo):
    names = ["centroid-t100-f30", "tree-5-t40", "rbf-10-t15"]
    models = {model.name: model for model in zoo_models()}
    made = make_zoo([models[name] for name in names], n_jobs=1, progress=False)
    stored = zoo.select(models=names)
    assert ((made.values == stored.values).mean(axis=1) >= 0.99).all()
    assert np.allclose(made.models["n_params"], stored.models["n_params"], rtol=0.05)
    days = (made.models["released"] - stored.models["released"]).dt.days.abs()
    assert days.max() <= 15
    assert list(made.items["cost"]) == list(stored.items["cost"])


def test_a_model_answers_the_same_twice(tasks):
    "Alone or again, on tasks made anew"
    model = zoo_models()[40]
    alone, size = answer_items(model, tasks[-1])
    again, same_size = answer_items(model, zoo_tasks()[-1])
    assert (alone == again).all()
    assert size == same_size


def test_another_seed_makes_another_zoo():
    kind, settings = "tree.DecisionTreeClassifier", {"max_depth": 1}
    stump = ZooModel("stump", "tree", "", kind, settings)
    a, b = (make_zoo([stump], seed=seed, n_jobs=1, progress=False) for seed in (0, 1))
    assert list(a.items.index) != list(b.items.index)
    assert a.shape == b.shape
