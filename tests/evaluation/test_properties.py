"""What holds for every registered method, whatever it does inside: a later method is
covered as soon as it is registered."""

import os
import warnings
from functools import cache

import numpy as np
import pandas as pd
import pytest
from helpers.small import (
    METHODS,
    NESTED,
    ONE_TASK,
    TASKS,
    estimates,
    fit,
    fitted,
    halves,
    prepared,
    shown,
    table,
    with_values,
)
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from benchnb.data.scores import Scores
from benchnb.evaluation.checks import is_possible
from benchnb.evaluation.compare import compare
from benchnb.evaluation.per_task import split_budget
from benchnb.evaluation.registry import get_method, load_method, save_method
from benchnb.evaluation.simulate import method_rng

pytestmark = pytest.mark.slow  # `make test` has the contract
every_method = pytest.mark.parametrize("name", METHODS)
deep = int(os.environ.get("BENCHNB_EXAMPLES") or 0)  # look longer, at other examples


def examples(number):
    "Settings: so many examples, the same ones in every run"
    return settings(
        max_examples=deep or number,
        derandomize=not deep,
        deadline=None,
        database=None,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
    )


@every_method
@given(st.integers(1, 60), st.integers(0, 1000))
@examples(3)
def test_any_budget_and_seed_gives_a_possible_answer(name, budget, seed):
    target = halves()[1]
    is_possible(estimates(fitted(name), target, budget, seed), target, budget)


@every_method
@given(st.integers(0, 1000), st.sampled_from([0.1, 0.5, 0.9, 1]), st.integers(1, 60))
@examples(3)
def test_answers_without_a_score_leave_an_estimate(name, seed, share, budget):
    target = halves()[1]
    gaps = np.random.default_rng(seed).random(target.shape) < share
    target = with_values(target, np.where(gaps, np.nan, target.values))
    method = fitted(name)
    found = estimates(method, target, budget, seed)
    is_possible(found, target, budget)
    for estimate in found:
        if len(estimate.unscored) == len(estimate.items):
            assert estimate.score == pytest.approx(method.source_mean_)
            assert any("no item was scored" in note for note in estimate.notes)


@pytest.mark.parametrize("name", NESTED)
def test_with_all_items_asked_the_score_is_exact(name):
    target = halves()[1]
    truth, tasks = target.truth(), target.performance(by="task")
    for model, estimate in zip(truth.index, all_asked(name), strict=True):
        assert estimate.score == pytest.approx(truth[model], abs=1e-9)
        assert estimate.interval == pytest.approx((truth[model],) * 2, abs=1e-9)
        if estimate.per_task is not None:
            wanted = tasks.loc[model, estimate.per_task.index]
            np.testing.assert_allclose(estimate.per_task, wanted, atol=1e-6)


def all_asked(name):
    "Estimates of a method that may ask, and does ask, for all items"
    given = estimates(fitted(name), halves()[1], 60)
    asked_all = [e for e in given if len(e.items) == 60]
    assert asked_all, "a budget of all items was left unspent for every target"
    return given


def seeds_agree(name):
    "Whether a method's estimates are the same for every seed"
    target = halves()[1]
    runs = [[e.score for e in estimates(fitted(name), target, 12, s)] for s in range(3)]
    return runs[0] == runs[1] == runs[2]


def means(method, target, seeds=6):
    "Mean over seeds of every target's estimate, by name; and its standard error"
    runs = [[e.score for e in estimates(method, target, 12, s)] for s in range(seeds)]
    runs = pd.DataFrame(runs, columns=target.models.index)
    return runs.mean(), runs.sem()


@cache
def usual(name):
    "Those of the small table as it is"
    return means(fitted(name), halves()[1])


def alike(name, other):
    "Means that differ by no more than chance; not at all where there is none"
    (mean, error), (mean2, error2) = usual(name), other
    allowed = 1e-6 if seeds_agree(name) else 0.02 + 4 * np.hypot(error, error2)
    apart = (mean - mean2[mean.index]).abs()
    assert (apart <= allowed).all(), pd.DataFrame({"apart": apart, "allowed": allowed})


@every_method
def test_the_order_of_the_sources_does_not_matter(name):
    source, target = halves()
    order = np.random.default_rng(1).permutation(len(source))
    alike(name, means(fit(name, source.select(models=order)), target))


@pytest.mark.parametrize("name", NESTED)
def test_a_saved_method_gives_equal_estimates(name, tmp_path):
    target, method = halves()[1], prepared(fitted(name), 12, seed=4)
    save_method(method, tmp_path)
    again = load_method(tmp_path)
    assert type(again) is type(method)
    wanted = estimates(method, target, None)
    assert list(map(shown, estimates(again, target, None))) == list(map(shown, wanted))
    try:
        later = estimates(again, target, 20, seed=9)
    except ValueError as error:  # it was saved without what choosing items needs
        assert "fit it again" in str(error)
    else:
        fresh = estimates(fitted(name), target, 20, seed=9)
        assert list(map(shown, later)) == list(map(shown, fresh))


@pytest.mark.parametrize("name", ONE_TASK)
def test_a_method_works_in_every_task(name):
    target = halves()[1]
    items = target.items
    found = estimates(fitted(f"per_task({name})"), target, 12)
    is_possible(found, target, 12)
    for estimate in found:
        assert list(estimate.per_task.index) == list(TASKS)
        asked = items.loc[estimate.items, "task"].value_counts()
        assert asked.le(pd.Series({"algebra": 6, "logic": 4, "reading": 2})).all()
        assert set(asked.index) == set(TASKS)
        mass = items.groupby("task", sort=False)["weight"].sum()
        total = np.average(estimate.per_task, weights=mass)
        assert estimate.score == pytest.approx(total, abs=1e-6)


@every_method
def test_what_is_asked_depends_only_on_answers_and_seed(name):
    "Two targets with the same answers get the same conversation"
    target = halves()[1]
    twins = Scores(np.repeat(target.values[:1], 2, axis=0), target.items)
    method = fitted(name)
    method.fresh_per_target = False  # else the target's name counts too
    a, b = estimates(method, twins, 12)
    assert shown(a) == shown(b)
    rngs = [method_rng(fitted(name), 12, 0, step).random() for step in (0, 0, 1)]
    assert rngs[0] == rngs[1] != rngs[2]


def clipped_shares(budget, floor, sizes):
    "The same part of every task, but no less than its floor: the part by bisection"
    low, high = 0.0, 1.0
    for _ in range(60):
        part = (low + high) / 2
        dear = np.clip(part * sizes, floor, sizes).sum() > budget
        low, high = (low, part) if dear else (part, high)
    return np.clip(high * sizes, floor, sizes)


@given(
    st.lists(st.integers(1, 50), min_size=1, max_size=9), st.integers(1, 60), st.data()
)
@examples(100)
def test_shares_with_a_floor_are_fair_above_it(sizes, least, data):
    sizes = np.array(sizes)
    floor = np.minimum(sizes, least)
    budget = data.draw(st.integers(len(sizes), int(sizes.sum())), "budget")
    share = split_budget(budget, sizes, least)
    assert share.sum() == budget
    assert (share >= 1).all() and (share <= sizes).all()
    order = np.argsort(sizes, kind="stable")
    assert (np.diff(share[order]) >= -1).all()
    if floor.sum() > budget:  # nobody gets more while others lack
        assert (share <= floor).all()
    else:
        assert (share >= floor).all()
        exact = clipped_shares(budget, floor, sizes)
        assert (np.abs(share - exact) < 1).all()


# Tables and their files --------------------------------------------------------

names = st.lists(st.text(min_size=1), min_size=2, max_size=5, unique=True)
numbers = st.floats(0, 1, width=32)
YEARS = (pd.Timestamp(2015, 1, 1), pd.Timestamp(2030, 1, 1))


@given(names, names, st.data())
@examples(60)
def test_a_table_survives_its_file(tmp_path_factory, models, items, data):
    size = len(models) * len(items)
    cells = st.lists(numbers | st.just(np.nan), min_size=size, max_size=size)
    values = np.reshape(data.draw(cells), (len(models), len(items)))
    part = st.floats(0, 1)
    facts = pd.DataFrame(
        {
            "full_score": [data.draw(part | st.just(np.nan)) for _ in models],
            "released": [data.draw(st.datetimes(*YEARS)) for _ in models],
            "n_params": [data.draw(st.integers(0, 2**52)) for _ in models],
            "family": [data.draw(st.none() | st.text()) for _ in models],
        },
        index=models,
    )
    facts["released"] = facts["released"].dt.floor("s")
    weight = [data.draw(st.floats(1e-3, 1e3)) for _ in items]
    scores = Scores(values, pd.DataFrame({"weight": weight}, index=items), facts)
    path = tmp_path_factory.mktemp("table") / "table.parquet"
    scores.to_parquet(path)
    back = Scores.from_parquet(path)
    np.testing.assert_array_equal(back.values, scores.values)
    assert back.fingerprint() == scores.fingerprint()
    assert back.models.index.equals(scores.models.index)
    pd.testing.assert_frame_equal(back.items, scores.items)
    for name in facts:
        a, b = back.models[name], scores.models[name]
        pd.testing.assert_series_equal(a, b, check_dtype=False, rtol=1e-12)


# Comparisons: all methods at once, on one and on two processors ----------------


def quiet(*args, **settings):
    "compare, without what small budgets warn of"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return compare(*args, **settings).frame.drop(columns="seconds")


@cache
def compared(n_jobs):
    "All methods on the small table"
    return quiet(table(), METHODS, [6, 12], trials=2, seed=1, n_jobs=n_jobs)


@every_method
def test_the_number_of_processors_does_not_matter(name):
    one, two = compared(1), compared(2)
    mine = one["method"] == name
    assert mine.any()
    pd.testing.assert_frame_equal(one[mine], two[mine])


@every_method
def test_other_methods_budgets_and_trials_do_not_matter(name):
    single = quiet(table(), [name], [12], trials=1, seed=1)
    rows = compared(1).set_index(["method", "budget", "trial"])
    among = rows.loc[(name, 12, 0)].reset_index()[single.columns]
    pd.testing.assert_frame_equal(single, among)


def test_all_items_of_a_part_are_not_the_whole_benchmark():
    source, target = halves()
    source.models["full_score"] = source.performance() / 2
    for estimate in estimates(get_method("random").fit(source), target, 60):
        assert not estimate.interval_method.startswith("exact")
