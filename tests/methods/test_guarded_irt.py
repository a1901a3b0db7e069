"""What the chapter on the guarded method does not show: slow references, both paths on
a table with enough sources, odd answers and tables, saving, impossible parameters."""

import functools

import numpy as np
import pytest
from helpers.small import estimates, prepared, shown, table, with_values

import benchnb.methods.guarded_irt as chapter
from benchnb.data.scores import Scores
from benchnb.evaluation.method import Flag
from benchnb.evaluation.registry import load_method, save_method
from benchnb.evaluation.simulate import simulate
from benchnb.live.bundles import publish
from benchnb.live.evaluation import Evaluation
from benchnb.methods.guarded_irt import (
    FEWEST,
    GuardedIRT,
    GuardedStatic,
    chance_outside,
    draw_with_reserve,
    most_informative_items,
    posterior_quantiles,
    sherman_morrison,
    strong_rates,
)
from benchnb.stats.irt import IRT, fit_irt
from benchnb.stats.irt_posterior import sample_posterior, search_precision

BOTH = pytest.mark.parametrize("cls", [GuardedIRT, GuardedStatic])


@functools.cache
def many():
    "40 sources and 6 targets like them, three tasks of equal weight"
    scores, new = table(1, 46), np.arange(46) % 8 == 3
    return scores.select(models=~new), scores.select(models=new)


@functools.cache
def fitted(cls, **given):
    return cls(**given).fit(many()[0])


@functools.cache
def split_by_strength():
    "Sources weak, targets strong"
    scores = table(2, 80)
    order = np.argsort(scores.performance().to_numpy())
    return scores.select(models=order[:40]), scores.select(models=order[-12:])


def positions(estimate, scores):
    return scores.items.index.get_indexer(estimate.items)


def test_ranking_follows_the_number_right():
    weak, strong = split_by_strength()
    ranking, plain = (
        prepared(GuardedStatic(folds=0, ranking=on).fit(weak), 30)
        for on in (True, False)
    )
    answers = strong.values[:, ranking.first_].astype(float)
    models = [IRT(**dict(arrays)) for arrays in ranking.banks_]
    chances = [ranking.judge(models, ranking.first_, row)[0] for row in answers]
    order = np.argsort(answers.sum(axis=1), kind="stable")
    scores = np.array([e.score for e in simulate(ranking, strong)])
    certain = np.array(chances)[order] >= 0.5  # the survey alone speaks
    assert certain.sum() > 2 and (np.diff(scores[order][certain]) >= -1e-9).all()
    assert not np.allclose([e.score for e in simulate(plain, strong)], scores)


def test_the_fixed_sample_is_a_coreset(tmp_path):
    source, target = many()
    method = prepared(GuardedStatic(folds=0).fit(source), 20)
    for row, there in zip(target.values, simulate(method, target), strict=True):
        here = method.estimate(row[method.coreset_].astype(float))
        assert (here.score, here.interval) == (there.score, there.interval)
    subset = publish(method, tmp_path / "small")
    again = load_method(tmp_path / "small")
    assert len(subset) == 20
    assert simulate(again, target)[0].score == simulate(method, target)[0].score
    with pytest.raises(ValueError, match="first must be"):
        prepared(GuardedStatic(first=0.5, folds=0).fit(source), 20)


@pytest.mark.parametrize(("sources", "parts"), [(40, 5), (100, 5), (134, 4), (600, 1)])
def test_each_source_or_a_hundred_are_held_out_once(sources, parts, monkeypatch):
    rng = np.random.default_rng(0)
    values, weights = rng.random((sources, 3)), np.ones(3) / 3
    scores = values.mean(axis=1)
    fitted = []
    monkeypatch.setattr(chapter, "fit_dimensions", lambda v, *_: fitted.append(v) or [])
    left_out = chapter.leave_out(values, scores, weights, 5)
    assert len(left_out) == len(fitted) == parts
    held = np.concatenate([rows for _, rows, *_ in left_out])
    assert len(np.unique(held, axis=0)) == len(held) == min(sources, 100)
    for (_, rows, *_), known in zip(left_out, fitted, strict=True):
        assert len(rows) <= sources / 5 and len(known) == sources - len(rows)
        assert not (rows[:, np.newaxis] == known).all(axis=2).any()  # new to the fit
        assert abs(rows.mean() - scores.mean()) < 0.05  # weak and strong ones alike
    assert chapter.leave_out(values, scores, weights, 0) == []


def test_an_update_of_rank_one_is_a_full_inverse():
    rng = np.random.default_rng(1)
    root, slope = rng.normal(size=(8, 4, 4)), rng.normal(size=4)
    covariance = root @ root.swapaxes(1, 2) + np.eye(4)
    info, along = rng.random(8), covariance @ slope
    fast = sherman_morrison(covariance, along, info, along @ slope)
    for one, told, found in zip(covariance, info, fast, strict=True):
        sure = np.linalg.inv(one) + told * np.outer(slope, slope)
        np.testing.assert_allclose(found, np.linalg.inv(sure), atol=1e-9)


def test_items_are_chosen_as_by_a_slow_reference():
    source = many()[0]
    model = fit_irt(source.values, dims=2, weights=source.weights)
    asked, weights = np.array([3, 20, 41]), source.weights
    posterior = sample_posterior(model, asked, np.array([1.0, 0, 1]))
    chance, flatter = model.attenuated(posterior_quantiles(posterior))
    coin, slopes = (chance * (1 - chance)).astype(float), model.slopes
    sure = []
    for place in range(8):
        each = [
            coin[place, i] * flatter[place, i] ** 2 * np.outer(slopes[i], slopes[i])
            for i in range(60)
        ]
        sure.append((search_precision(2) + sum(each[i] for i in asked), each))
    chosen = []
    for _ in range(6):
        gains = np.full(60, -1.0)
        for item in set(range(60)) - {*asked, *chosen}:
            gain = 0
            for place, (now, each) in enumerate(sure):
                rise = (coin[place] * flatter[place] * weights) @ slopes
                before = rise @ np.linalg.inv(now) @ rise
                after = rise @ np.linalg.inv(now + each[item]) @ rise
                gain += (before - after) / 8
            gains[item] = gain + weights[item] ** 2 * coin[:, item].mean()
        chosen.append(int(gains.argmax()))
        sure = [(now + each[chosen[-1]], each) for now, each in sure]
    assert most_informative_items(model, posterior, asked, 6).tolist() == chosen


def test_the_guard_by_hand():
    rng = np.random.default_rng(2)
    draws = (rng.normal(0.7, 0.05, 200_000) + rng.normal(0.8, 0.1, 200_000)) / 2
    found = chance_outside(0.78, (0.7, 0.05), (0.8, 0.1))
    assert found == pytest.approx((draws > 0.78).mean(), abs=0.005)
    assert chance_outside(0.5, (0.6, 0), (0.6, 0)) == pytest.approx(1)


def test_strong_rates_with_gaps():
    values = many()[0].values.astype(float)
    values[np.random.default_rng(4).random(values.shape) < 0.3] = np.nan
    values[:, 5] = np.nan
    scores = np.nanmean(values, axis=1)
    found = strong_rates(values, scores)
    assert ((found > 0) & (found < 1)).all()
    best = np.argsort(-scores, kind="stable")[:8]
    for item in (0, 5, 33):
        known = values[best, item][~np.isnan(values[best, item])]
        mean = np.nanmean(values[:, item]) if item != 5 else None
        if mean is not None:
            likely = np.clip(mean + scores[best].mean() - scores.mean(), 0.02, 0.98)
            slow = (known.sum() + 4 * likely) / (len(known) + 4)
            assert found[item] == pytest.approx(slow, abs=1e-5)


def test_first_part_and_reserve_are_one_sample():
    space, chance = np.random.default_rng(5).normal(size=(30, 2)), np.full(30, 0.4)
    counts = np.zeros((2, 30))
    for seed in range(1500):
        parts = draw_with_reserve(chance, space, 5, np.random.default_rng(seed))
        assert [len(part) for part in parts] == [5, 7]
        assert len(set(np.concatenate(parts))) == 12
        for row, part in enumerate(parts):
            counts[row, part] += 1 / 1500
    np.testing.assert_allclose(counts[0], 0.4 * 5 / 12, atol=0.05)
    np.testing.assert_allclose(counts.sum(axis=0), 0.4, atol=0.05)


@BOTH
def test_the_same_seed_gives_the_same_whatever_the_order(cls):
    target = many()[1]
    method = prepared(fitted(cls), 20, seed=3)
    forward = [shown(e) for e in simulate(method, target)]
    back = simulate(method, target.select(models=np.arange(6)[::-1]))
    assert forward == [shown(e) for e in back][::-1]
    again = prepared(cls().fit(many()[0]), 20, seed=3)
    assert forward == [shown(e) for e in simulate(again, target)]
    other = prepared(fitted(cls), 20, seed=4)
    assert forward != [shown(e) for e in simulate(other, target)]


@BOTH
def test_its_error_is_below_the_spread_of_the_targets(cls):
    target = many()[1]
    truth, errors = target.truth().to_numpy(), []
    for seed in range(4):
        found = estimates(fitted(cls), target, 20, seed)
        errors.append([e.score for e in found] - truth)
    assert np.abs(errors).mean() < 0.06 < np.abs(truth - truth.mean()).mean()


def test_a_stronger_target_is_flagged_and_asked_the_reserve():
    source, target = split_by_strength()
    method = prepared(GuardedIRT(folds=0).fit(source), 30)
    found = simulate(method, target)
    strong = [Flag.OUT_OF_RANGE in e.flags for e in found]
    assert np.mean(strong) > 0.7
    sample = {*method.first_, *method.reserve_}
    for estimate, flag in zip(found, strong, strict=True):
        if flag:
            assert set(positions(estimate, target)) == sample
    bias = np.array([e.score for e in found]) - target.truth().to_numpy()
    blind = GuardedIRT(folds=0, limit=1.1, misfit_limit=-99.0).fit(source)
    unguarded = [e.score for e in estimates(blind, target, 30)]
    assert abs(bias.mean()) < 0.5 * abs(np.mean(unguarded - target.truth().to_numpy()))


def test_a_target_in_range_is_asked_in_rounds():
    target = many()[1]
    counts = []
    for row in range(6):
        run = Evaluation(prepared(fitted(GuardedIRT), 20))
        known, requests = target.values[row].astype(float), []
        while run.ask():
            names = run.ask()
            requests.append(len(names))
            where = target.items.index.get_indexer(names)
            run.tell(dict(zip(names, known[where], strict=True)))
        counts.append(requests)
        assert sum(requests) == 20 and requests[0] == 8
    assert [8, 3, 3, 3, 3] in counts


@BOTH
def test_an_evaluation_is_resumed_in_the_middle(cls, tmp_path):
    target = many()[1]
    wanted = simulate(prepared(fitted(cls), 20), target)
    for row in range(3):
        folder = tmp_path / str(row)
        run = Evaluation(prepared(fitted(cls), 20), folder=folder)
        while run.ask():
            names = run.ask()
            where = target.items.index.get_indexer(names)
            answers = target.values[row, where].astype(float)
            run.tell(dict(zip(names, answers, strict=True)))
            run = Evaluation.load(folder, many()[0])
        assert shown(run.conversation.estimate) == shown(wanted[row])


@BOTH
def test_saved_and_loaded_it_goes_on_alike(cls, tmp_path):
    target = many()[1]
    method = prepared(fitted(cls), 20)
    save_method(method, tmp_path)
    again = load_method(tmp_path)
    assert list(map(shown, simulate(again, target))) == list(
        map(shown, simulate(method, target))
    )
    with pytest.raises(ValueError, match="fit it again"):
        prepared(again, 10)


@BOTH
def test_answers_without_a_score(cls):
    target = many()[1]
    values = target.values.astype(float)
    values[0] = np.nan
    values[1, ::2] = np.nan
    found = estimates(fitted(cls), with_values(target, values), 20)
    assert found[0].score == fitted(cls).source_mean_
    assert found[0].interval == (0, 1) and len(found[0].unscored) == 20
    assert 0 < len(found[1].unscored) < 20
    for estimate in found:
        assert np.isfinite(estimate.score) and len(estimate.items) == 20
    whole = estimates(fitted(cls), target, 20)[1]
    assert np.ptp(found[1].interval) > 0.8 * np.ptp(whole.interval)


@BOTH
def test_tasks_add_up(cls):
    target = many()[1]
    for estimate in estimates(fitted(cls), target, 20):
        assert estimate.per_task.between(0, 1).all()
        assert estimate.per_task.mean() == pytest.approx(estimate.score, abs=0.03)
        assert estimate.predicted @ target.weights == pytest.approx(
            estimate.score, abs=0.03
        )


@BOTH
def test_items_without_weight_are_not_drawn(cls):
    source, target = many()
    items = source.items.copy()
    items["weight"] = np.where(np.arange(60) < 45, 1.0, 0.0)
    method = cls(folds=0).fit(Scores(source.values, items, source.models))
    goal = Scores(target.values, items, target.models)
    drawn = prepared(method, 30)
    assert max([*drawn.first_, *drawn.reserve_]) < 45
    for estimate in estimates(method, goal, 60):
        assert 45 <= len(estimate.items) <= 60
    sure = estimates(method, goal, 45)
    for estimate, truth in zip(sure, goal.truth(), strict=True):
        if set(positions(estimate, goal)) == set(range(45)):
            assert estimate.score == pytest.approx(truth, abs=1e-6)


@BOTH
def test_few_sources_are_surveyed_and_it_is_said(cls):
    source, target = many()
    method = cls().fit(source.select(models=np.arange(FEWEST - 1)))
    found = estimates(method, target, 20)
    assert all("19 sources are too few for an item" in e.notes[0] for e in found)
    assert len({tuple(e.items) for e in found}) == 1
    enough = cls(folds=0).fit(source.select(models=np.arange(FEWEST)))
    assert not any("too few" in str(e.notes) for e in estimates(enough, target, 20))


ODD = {
    "all alike": np.tile(np.arange(30) % 3 == 0, (25, 1)).astype(float),
    "all right": np.ones((25, 30)),
    "rank one": np.tri(25, 30, k=2),
    "part marks": np.outer(np.linspace(0.1, 0.9, 25), np.linspace(0.2, 1, 30)),
    "two items": (np.arange(50).reshape(25, 2) % 3 == 0).astype(float),
}


@pytest.mark.parametrize("name", ODD)
@BOTH
def test_odd_sources_give_finite_estimates(cls, name):
    source = Scores(ODD[name])
    target = Scores(np.stack([ODD[name][0], 1 - ODD[name][-1]]), source.items)
    for budget in (1, source.shape[1] // 2, source.shape[1]):
        for estimate in estimates(cls(folds=2).fit(source), target, budget):
            assert np.isfinite([estimate.score, *estimate.interval]).all()


def test_gaps_in_the_sources():
    source, target = many()
    values = source.values.astype(float)
    values[np.random.default_rng(6).random(values.shape) < 0.3] = np.nan
    values[:, 7] = np.nan
    found = estimates(GuardedIRT(folds=2).fit(with_values(source, values)), target, 20)
    apart = [e.score for e in found] - target.truth().to_numpy()
    assert np.abs(apart).mean() < 0.12


def test_intervals_cover_models_like_the_sources():
    scores = table(3, 120)
    source = scores.select(models=np.arange(0, 120, 2))
    target = scores.select(models=np.arange(1, 120, 2))
    method, held = GuardedIRT().fit(source), []
    for seed in range(2):
        for estimate, truth in zip(
            estimates(method, target, 20, seed), target.truth(), strict=True
        ):
            held.append(estimate.interval[0] <= truth <= estimate.interval[1])
    assert np.mean(held) > 0.88


BAD = [
    ({"folds": 1}, "folds must be a whole number of at least 0, not 1"),
    ({"folds": -2}, "folds must be a whole number"),
    ({"folds": True}, "folds must be a whole number"),
    ({"level": 1.0}, "level must be a number"),
    ({"first": 0.0}, "first must be a number"),
    ({"first": 1.5}, "first must be a number"),
    ({"rounds": 1}, "rounds must be a whole number"),
    ({"rounds": 2.5}, "rounds must be a whole number"),
]


@pytest.mark.parametrize("given, words", BAD, ids=str)
def test_impossible_parameters_are_named(given, words):
    with pytest.raises(ValueError, match=words) as caught:
        GuardedIRT(**given).fit(many()[0])
    assert "\n" not in str(caught.value)
