"""What the chapter on EssenceBench does not show: parts, odd tables, kills, saving."""

import functools
import warnings

import numpy as np
import pandas as pd
import pytest
from pygam import LinearGAM, s

from benchnb.data.scores import Scores
from benchnb.evaluation.learned_coresets import RandomCurve
from benchnb.evaluation.simulate import prepare_method, simulate
from benchnb.methods.essence_bench import (
    GRID,
    CurveFitness,
    EssenceBench,
    attribution,
    attribution_groups,
    curve_tables,
    scores_from_curves,
    stratified_parts,
    unexplained,
)
from benchnb.stats.genetic_search import positions_to_masks
from benchnb.stats.metrics import rmse

QUICK = dict(population=30, generations=20, folds=0)


def answers(seed=0, models=60, items=80, texts=False):
    "Answers of models that get stronger from row to row"
    rng = np.random.default_rng(seed)
    gap = np.linspace(-1, 1.5, models)[:, None] - rng.normal(size=items)
    values = (rng.random(gap.shape) < 1 / (1 + np.exp(-2 * gap))).astype(float)
    facts = pd.DataFrame({"task": "t"}, [f"q{i}" for i in range(items)])
    if texts:
        facts["text"] = [f"Question {i} about {i * 7 % 11}" for i in range(items)]
    return Scores(values, facts, [f"m{i}" for i in range(models)])


# Pieces ---------------------------------------------------------------------------


def test_parts_are_of_equal_size_and_strength():
    truth = np.random.default_rng(0).random(103)
    part = stratified_parts(truth, 5, np.random.default_rng(1))
    assert np.bincount(part).max() - np.bincount(part).min() <= 1
    means = [truth[part == number].mean() for number in range(5)]
    assert np.ptp(means) < 0.03
    tied = stratified_parts(np.zeros(10), 5, np.random.default_rng(1))
    assert np.bincount(tied).tolist() == [2] * 5


def test_a_table_is_the_curve_of_pygam_fitted_to_the_other_parts():
    rng = np.random.default_rng(0)
    filled = (rng.random((60, 40)) < rng.random((60, 1))).astype(float)
    truth = filled.mean(axis=1)
    part = stratified_parts(truth, 4, rng)
    settings = (np.array([1]), 10)
    seen = np.random.default_rng(3)
    table = curve_tables(filled, truth, part, *settings, seen, subsets=5)[0]
    again = np.random.default_rng(3)
    subsets = again.random((5, 40)).argpartition(9, axis=1)[:, :10]
    others = part != 1
    x = np.concatenate([filled[others][:, one].mean(axis=1) for one in subsets])
    y, same = np.tile(truth[others], 5), []
    for fine in 10.0 ** np.arange(-2, 5):
        gam = LinearGAM(s(0, n_splines=10, lam=fine)).fit(x[:, None], y)
        same.append(np.allclose(table, gam.predict(GRID[:, None]), atol=1e-4))
    assert sum(same) == 1


def test_the_table_is_read_as_numpy_would():
    rng = np.random.default_rng(0)
    tables = rng.random((3, len(GRID))).astype(np.float32)
    which, means = rng.integers(3, size=20), rng.random((7, 20)).astype(np.float32)
    means[0, :2] = 0, 1
    found = scores_from_curves(tables, which, means)
    for model in range(20):
        slow = np.interp(means[:, model], GRID, tables[which[model]])
        np.testing.assert_allclose(found[:, model], slow, atol=1e-3)


def fitness(rng, **settings):
    values = rng.integers(2, size=(30, 12)).astype(np.float32)
    tables = np.tile(GRID.astype(np.float32), (2, 1)) ** [[1], [2]]
    which = rng.integers(2, size=30)
    truth = values.mean(axis=1)
    given = values, truth, tables.astype(np.float32), which
    return CurveFitness(*given, **settings)


@pytest.mark.equation("essence_bench", "fitness")
def test_fitness_against_a_loop_over_models():
    judge = fitness(np.random.default_rng(0), noise=np.linspace(0, 1, 12))
    masks = positions_to_masks([[0, 1, 2], [3, 7, 11]], 12)
    for mask, found in zip(masks, judge(masks), strict=True):
        square = []
        for row, y, curve in zip(judge.answers, judge.truth, judge.which, strict=True):
            guess = row[mask].mean() ** (1 + curve)
            square.append((guess - y) ** 2)
        noise = judge.noise[mask].sum() / 9
        assert found == pytest.approx(-np.sqrt(np.mean(square) + noise), abs=1e-4)


def test_juries_change_with_the_generation_and_with_nothing_else():
    masks = positions_to_masks([[0, 1, 2]], 12)
    judge = fitness(np.random.default_rng(0), sample=0.3)
    one, two, again = (judge(masks, np.random.default_rng(n)) for n in (1, 2, 1))
    assert one == again != two
    assert judge(masks) == fitness(np.random.default_rng(0))(masks)


def test_what_a_score_explains():
    truth = np.linspace(0, 1, 400)
    guess = np.random.default_rng(0).integers(2, size=400)
    left = unexplained(np.column_stack([truth, guess, np.ones(400)]), truth)
    np.testing.assert_allclose(left, [0, 0.25, 0], atol=0.01)
    assert np.isfinite(unexplained(np.ones((4, 2)), np.full(4, 0.5))).all()


@pytest.mark.equation("essence_bench", "attribution")
def test_attribution_is_the_norm_of_the_terms_of_the_ebm():
    from interpret.glassbox import ExplainableBoostingRegressor

    rng = np.random.default_rng(0)
    values = rng.integers(2, size=(80, 6)).astype(float)
    truth = values @ np.array([0.5, 0.3, 0.1, 0.1, 0, 0])
    subsets = np.array([[0, 1, 2], [1, 3, 4]])
    worth = np.zeros(6)
    for subset in subsets:
        model = ExplainableBoostingRegressor(
            interactions=0, n_jobs=1, outer_bags=2, max_rounds=100, random_state=5
        ).fit(values[:, subset], truth)
        terms = model.eval_terms(values[:, subset])
        for place, item in enumerate(subset):
            worth[item] += np.sqrt(sum(terms[:, place] ** 2)) / 2
    np.testing.assert_allclose(attribution(values, truth, subsets, 5), worth)
    assert attribution(values, truth, subsets)[5] == 0


def test_constant_columns_and_few_models_are_no_harm_to_attribution():
    values = np.column_stack([np.ones(10), np.arange(10) % 2, np.zeros(10)])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        worth = attribution(values, values[:, 1], np.array([[0, 1, 2]]))
    assert np.isfinite(worth).all() and worth[0] == worth[2] == 0


@pytest.mark.parametrize("size", [1, 10, 25, 29])
def test_groups_hold_more_than_is_chosen(size):
    worth = np.random.default_rng(0).integers(3, size=30).astype(float)
    groups = attribution_groups(worth, size, np.random.default_rng(0))
    count = min(30, max(10, size * 3 // 2))
    assert [len(set(group)) for group in groups.values()] == [count] * 3
    assert worth[groups["high"]].min() >= np.sort(worth)[::-1][count - 1]
    assert worth[groups["low"]].max() <= np.sort(worth)[count - 1]


# The method -----------------------------------------------------------------------


@pytest.mark.slow
def test_it_beats_random_items_and_a_curve():
    gained = []
    for seed in range(4):
        source, target = answers(seed, 80, 100).split("random", seed=seed)
        truth = target.truth()
        both = [
            [e.score for e in simulate(method.fit(source), target, 15, seed)]
            for method in (EssenceBench(folds=0), RandomCurve(folds=0))
        ]
        gained.append(rmse(truth, both[0]) - rmse(truth, both[1]))
    assert np.mean(gained) < 0


@functools.cache
def quick_coreset(**settings):
    "Twelve items of the small table"
    method = EssenceBench(**QUICK | settings).fit(answers().split("random", seed=1)[0])
    return prepare_method(method, 12, 3).coreset_.tolist()


@pytest.mark.parametrize(
    "given",
    [
        {"sample": 0.3},
        {"rounds": 0},
        pytest.param({"validation": "part"}, marks=pytest.mark.slow),
        pytest.param({"penalty": 0.0}, marks=pytest.mark.slow),
        pytest.param({"rounds": 2, "groups": ("high",)}, marks=pytest.mark.slow),
    ],
)
def test_every_option_does_something_and_the_seed_decides(given):
    one, two = (quick_coreset.__wrapped__(**given) for _ in range(2))
    assert one == two and len(set(one)) == 12
    assert (
        one != quick_coreset() or "rounds" in given
    )  # the first search may stay the best


def test_copies_are_left_out_and_come_back_when_needed():
    table = answers(items=20)
    twice = Scores(np.repeat(table.values, 2, axis=1))
    method = prepare_method(EssenceBench(**QUICK).fit(twice), 8)
    assert not any(item % 2 for item in method.coreset_)  # the first of each pair
    full = prepare_method(EssenceBench(**QUICK).fit(twice), 30)
    assert any("are not redundant" in note for note in full.notes_)
    assert len(set(full.coreset_)) == 30


def test_texts_count_when_there_are_any_and_their_lack_is_said():
    table = answers(texts=True)
    assert prepare_method(EssenceBench(**QUICK).fit(table), 10).notes_ == []
    lacking = "items without texts: rank redundancy alone"
    assert lacking in prepare_method(EssenceBench(**QUICK).fit(answers()), 10).notes_
    assert (
        prepare_method(EssenceBench(**QUICK, text=1, rank=1).fit(answers()), 10).notes_
        == []
    )
    same = answers(texts=True)
    same.items["text"] = ["the same words"] * 79 + ["something else"]
    few = prepare_method(EssenceBench(**QUICK).fit(same), 10)
    assert any("only" in note for note in few.notes_)


def test_settings_that_do_not_fit_are_named():
    for groups in (("top",), ()):
        with pytest.raises(ValueError, match="groups are some of"):
            EssenceBench(groups=groups).fit(answers())
    with pytest.raises(ValueError, match="parts=60 leave 1 judges"):
        method = EssenceBench(**QUICK | {"parts": 60, "validation": "part"})
        prepare_method(method.fit(answers()), 12)


# One held-out set ----------------------------------------------------------------


def refined(monkeypatch, **settings):
    "What every search of one choice was judged by, found, and how fit it was"
    seen, search = [], EssenceBench.search

    def spied(self, filled, truth, pool, *given):
        found = search(self, filled, truth, pool, *given)
        masks = positions_to_masks([np.searchsorted(pool, found[0])], len(pool))
        seen.append((found[2].truth, found[0], found[2](masks)[0]))
        return found

    monkeypatch.setattr(EssenceBench, "search", spied)
    method = EssenceBench(**QUICK | dict(vote=False, penalty=0.0) | settings)
    kept = prepare_method(method.fit(answers()), 20).coreset_
    return np.searchsorted(method.eligible(20)[0], np.sort(kept)), seen


SEEDS = [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2, 3))]


@pytest.mark.parametrize("seed", SEEDS)
def test_as_published_one_held_out_set_judges_every_search(monkeypatch, seed):
    given = dict(validation="part", proxy="pool", rounds=2)
    kept, seen = refined(monkeypatch, **given, generations=3 + seed)
    assert len(seen) == 7
    for judges, _, _ in seen:
        np.testing.assert_array_equal(judges, seen[0][0])
    fittest = max(seen, key=lambda one: one[2])
    assert kept.tolist() == np.sort(fittest[1]).tolist()
