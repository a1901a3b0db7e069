"""What the chapter on the guarded method does not show: slow references, both paths on
a table with enough sources, odd answers and tables, saving, impossible parameters."""

import functools

import numpy as np
import pytest
from helpers.small import estimates, prepared, table

from benchnb.data.scores import Scores
from benchnb.data.sources import load
from benchnb.evaluation.method import Flag
from benchnb.evaluation.simulate import simulate
from benchnb.live.evaluation import Evaluation
from benchnb.methods.guarded_irt import (
    GuardedIRT,
    curves_weight,
    most_informative_items,
    newest_quarter,
    posterior_quantiles,
    prob_out_of_range,
    strong_rates,
)
from benchnb.stats.intervals import effective_runs
from benchnb.stats.irt import (
    MIN_SOURCES,
    pool_predictions,
    predictive_probabilities,
    sample_posterior,
    wide_prior_precision,
)
from benchnb.stats.irt_fit import fit_irt

ROUNDS = pytest.mark.parametrize("rounds", [1, 5])


@functools.cache
def many():
    "40 sources and 6 targets like them, three tasks of equal weight"
    scores, new = table(1, 46), np.arange(46) % 8 == 3
    return scores.select(models=~new), scores.select(models=new)


@functools.cache
def fitted(**given):
    return GuardedIRT(**given).fit(many()[0])


@functools.cache
def split_by_strength():
    "Sources weak, targets strong"
    scores = table(2, 80)
    order = np.argsort(scores.performance().to_numpy())
    return scores.select(models=order[:40]), scores.select(models=order[-12:])


def positions(estimate, scores):
    return scores.items.index.get_indexer(estimate.items)


def test_items_are_chosen_as_by_a_slow_reference():
    source = many()[0]
    model = fit_irt(source.values, dims=2, weights=source.weights)
    asked, weights = np.array([3, 20, 41]), source.weights
    posterior = sample_posterior(model, asked[None], np.array([[1.0, 0, 1]]))
    chance, less = predictive_probabilities(model, posterior_quantiles(posterior)[0])
    variance, slopes = (chance * (1 - chance)).astype(float), model.slopes
    sure = []
    for place in range(8):
        each = [
            variance[place, i] * less[place, i] ** 2 * np.outer(slopes[i], slopes[i])
            for i in range(60)
        ]
        sure.append((wide_prior_precision(2) + sum(each[i] for i in asked), each))
    chosen = []
    for _ in range(6):
        gains = np.full(60, -1.0)
        for item in set(range(60)) - {*asked, *chosen}:
            gain = 0
            for place, (now, each) in enumerate(sure):
                gradient = (variance[place] * less[place] * weights) @ slopes
                before = gradient @ np.linalg.inv(now) @ gradient
                after = gradient @ np.linalg.inv(now + each[item]) @ gradient
                gain += (before - after) / 8
            gains[item] = gain + weights[item] ** 2 * variance[:, item].mean()
        chosen.append(int(gains.argmax()))
        sure = [(now + each[chosen[-1]], each) for now, each in sure]
    assert most_informative_items(model, posterior, asked[None], 6).tolist() == [chosen]


def test_the_guard_by_hand():
    rng = np.random.default_rng(2)
    draws = (rng.normal(0.7, 0.05, 200_000) + rng.normal(0.8, 0.1, 200_000)) / 2
    found = prob_out_of_range(0.78, (0.7, 0.05), (0.8, 0.1))
    assert found == pytest.approx((draws > 0.78).mean(), abs=0.005)
    assert prob_out_of_range(0.5, (0.6, 0), (0.6, 0)) == pytest.approx(1)


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


def test_a_stronger_target_is_flagged_and_asked_the_reserve():
    source, target = split_by_strength()
    careful = GuardedIRT(folds=0, rounds=5, beyond="sample")
    method = prepared(careful.fit(source), 30)
    found = simulate(method, target)
    strong = [Flag.OUT_OF_RANGE in e.flags for e in found]
    assert np.mean(strong) > 0.7
    sample = {*method.first_, *method.reserve_}
    for estimate, flag in zip(found, strong, strict=True):
        if flag:
            assert set(positions(estimate, target)) == sample


def test_the_guard_takes_away_the_bias_of_extrapolated_curves():
    source, target = load("helm_medqa").split("ability")
    truth, bias = target.truth().to_numpy(), {}
    for limits in ({}, {"limit": 1.1, "misfit_limit": -99.0}):
        method = GuardedIRT(folds=0, rounds=5, **limits).fit(source)
        scores = [estimate.score for estimate in estimates(method, target, 50, 0)]
        bias[bool(limits)] = np.mean(scores - truth)
    assert bias[True] < -0.08 and abs(bias[False]) < 0.3 * abs(bias[True])


@functools.cache
def by_date():
    "48 sources, and 16 later targets: the later, the stronger"
    return table(2, 64).split("date")


def undated(scores):
    return Scores(scores.values, scores.items, scores.models.drop(columns="released"))


def test_the_weight_of_the_curves_is_that_of_ten_more_sources():
    rng = np.random.default_rng(3)
    truth, curves, sample = rng.random((3, 12))
    apart = np.append(
        curves - sample, np.full(10, np.sqrt(np.mean((curves - sample) ** 2)))
    )
    wanted = np.append(truth - sample, 0.8 * apart[12:])
    slow = np.linalg.lstsq(apart[:, np.newaxis], wanted, rcond=None)[0].item()
    assert curves_weight(curves, sample, truth) == pytest.approx(np.clip(slow, 0, 1))
    assert curves_weight(curves, curves, truth) == 0  # nothing to weigh


def test_later_targets_are_estimated_by_examined_curves():
    source, target = by_date()
    method = prepared(GuardedIRT(folds=0, rounds=5).fit(source), 30)
    assert method.curves_weight_ > 0.5
    found = simulate(method, target)
    careful = estimates(
        GuardedIRT(folds=0, rounds=5, beyond="sample").fit(source), target, 30
    )
    own = [a.score != b.score for a, b in zip(found, careful, strict=True)]
    assert any(own)
    for estimate, changed in zip(found, own, strict=True):
        assert not changed or Flag.OUT_OF_RANGE in estimate.flags
    truth = target.truth().to_numpy()
    errors = [
        np.abs([e.score for e in each] - truth).mean() for each in (found, careful)
    ]
    assert errors[0] < errors[1] + 0.01


@ROUNDS
def test_only_later_targets_profit_from_the_exam(rounds):
    source, target = by_date()
    careful = GuardedIRT(folds=0, rounds=rounds, beyond="sample").fit(source)
    expected = [e.score for e in estimates(careful, target, 30)]
    method = GuardedIRT(folds=0, rounds=rounds)
    for sources, targets in [(source, undated(target)), (undated(source), target)]:
        found = [e.score for e in estimates(method.fit(sources), targets, 30)]
        assert found == expected


def test_one_round_has_no_exam():
    source, target = by_date()
    method = prepared(GuardedIRT(folds=0).fit(source), 30)
    assert np.isnan(method.exam_reach_)
    careful = GuardedIRT(folds=0, beyond="sample").fit(source)
    expected = [e.score for e in estimates(careful, target, 30)]
    assert [e.score for e in simulate(method, target)] == expected


def test_curves_that_fail_the_exam_are_not_used():
    source, target = by_date()
    values = source.values.astype(float)
    newest = newest_quarter(source)[1]
    values[newest] = np.sort(values[newest], axis=1)  # right and wrong at other places
    other = Scores(values, source.items, source.models)
    method = prepared(GuardedIRT(folds=0, rounds=5).fit(other), 30)
    assert method.curves_weight_ < 0.5
    strong = [e for e in simulate(method, target) if Flag.OUT_OF_RANGE in e.flags]
    sample = {*method.first_, *method.reserve_}
    assert strong and all(set(positions(e, target)) == sample for e in strong)


def test_a_target_in_range_is_asked_in_rounds():
    target = many()[1]
    counts = []
    for row in range(6):
        run = Evaluation(prepared(fitted(rounds=5), 20))
        known, requests = target.values[row].astype(float), []
        while run.ask():
            names = run.ask()
            requests.append(len(names))
            where = target.items.index.get_indexer(names)
            run.tell(dict(zip(names, known[where], strict=True)))
        counts.append(requests)
        assert sum(requests) == 20 and requests[0] == 8
    assert [8, 3, 3, 3, 3] in counts


@ROUNDS
def test_few_sources_get_the_random_sample_and_a_note(rounds):
    source, target = many()
    method = GuardedIRT(rounds=rounds).fit(
        source.select(models=np.arange(MIN_SOURCES - 1))
    )
    found = estimates(method, target, 20)
    assert all("19 sources are too few for an item" in e.notes[0] for e in found)
    assert len({tuple(e.items) for e in found}) == 1
    enough = GuardedIRT(folds=0, rounds=rounds).fit(
        source.select(models=np.arange(MIN_SOURCES))
    )
    assert not any("too few" in str(e.notes) for e in estimates(enough, target, 20))


ODD = {
    "all alike": np.tile(np.arange(30) % 3 == 0, (25, 1)).astype(float),
    "all right": np.ones((25, 30)),
    "rank one": np.tri(25, 30, k=2),
    "part marks": np.outer(np.linspace(0.1, 0.9, 25), np.linspace(0.2, 1, 30)),
    "two items": (np.arange(50).reshape(25, 2) % 3 == 0).astype(float),
}


@pytest.mark.parametrize("name", ODD)
@ROUNDS
def test_odd_sources_give_finite_estimates(rounds, name):
    source = Scores(ODD[name])
    target = Scores(np.stack([ODD[name][0], 1 - ODD[name][-1]]), source.items)
    for budget in (1, source.shape[1] // 2, source.shape[1]):
        for estimate in estimates(
            GuardedIRT(folds=2, rounds=rounds).fit(source), target, budget
        ):
            assert np.isfinite([estimate.score, *estimate.interval]).all()


@ROUNDS
def test_the_full_score_is_what_is_estimated_where_it_is_known(rounds):
    noise = np.random.default_rng(0).normal(0, 0.01, 80)
    scores = table(1, 80)
    part = scores.performance().to_numpy()
    scores.models["full_score"] = np.clip(0.3 + 0.5 * part + noise, 0, 1)
    scores.models.loc[scores.models.index[:9], "full_score"] = np.nan
    source, target = scores.split("random", seed=0)
    known = target.truth().notna().to_numpy()
    target = target.select(models=known)
    plain = target.performance().to_numpy()
    method, truth = GuardedIRT(rounds=rounds).fit(source), target.truth().to_numpy()
    found = estimates(method, target, 30)
    score = np.array([estimate.score for estimate in found])
    low, high = np.array([estimate.interval for estimate in found]).T
    assert np.abs(score - truth).mean() < np.abs(score - plain).mean()
    assert ((low <= truth) & (truth <= high)).mean() > 0.8
    assert (high - low).min() > 2 * 1.9 * 0.008  # what the line misses is added
    weights = source.weights
    means = [estimate.predicted @ weights for estimate in found]
    assert np.abs(means - plain).mean() < np.abs(means - truth).mean()
    assert not any("these items alone" in note for e in found for note in e.notes)
    source.models.loc[source.models.index[15:], "full_score"] = np.nan
    few = estimates(GuardedIRT(folds=0, rounds=rounds).fit(source), target, 30)
    assert all("these items alone" in e.notes[-1] for e in few)


def one_source(method, models, row, trials):
    "The items and the prediction of one held-out source, as for a target of its own"
    asked = method.first_
    for left in range(max(1, method.rounds - 1), 0, -1):
        count = -(-(method.budget_ - len(asked)) // left)
        if count:
            scored = asked[~np.isnan(row[asked])][np.newaxis]
            posterior = sample_posterior(
                models[-1],
                scored,
                row[scored],
                effective_runs(row[scored], trials[scored]),
            )
            worth = effective_runs(row[asked], trials[asked])[None]
            wanted = most_informative_items(
                models[-1], posterior, asked[None], count, worth
            )
            asked = np.append(asked, wanted[0])
    scored = asked[~np.isnan(row[asked])][np.newaxis]
    worth = effective_runs(row[scored], trials[scored])
    return pool_predictions(models, scored, row[scored], worth)


@pytest.mark.parametrize("rounds", [1, 4])
def test_held_out_sources_side_by_side_are_those_one_at_a_time(rounds):
    rng, scores = np.random.default_rng(6), table(1, 46)
    runs = rng.integers(1, 4, scores.shape)
    values = rng.binomial(runs, 0.1 + 0.8 * scores.values) / runs
    values[rng.random(values.shape) < 0.15] = np.nan
    source = Scores(values, scores.items, scores.models, trials=np.nan_to_num(runs))
    method = prepared(GuardedIRT(rounds=rounds).fit(source), 25)
    assert len(method._held_out) == 5
    slow, fast = [], []
    for models, held in method._held_out:
        fast.extend(method.standardized_errors(models, held))
        for k in held:
            score = method._scores[k]
            found = one_source(method, models, method._values[k], method._trials[k])
            slow.append(abs(found.score[0] - score) / np.sqrt(found.variance[0] + 1e-9))
    np.testing.assert_allclose(fast, slow, rtol=1e-3, atol=1e-4)
    factor = np.sort(slow)[int(np.ceil(47 * 0.95)) - 1] / 1.96
    assert method.se_inflation_ == pytest.approx(np.clip(factor, 0.85, 2.5), rel=1e-3)


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
