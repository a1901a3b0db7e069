"""What the chapter on Bayesian quadrature does not show: full regression
as a slow reference, gaps, repeated runs, intervals, saving."""

import numpy as np
import pandas as pd
import pytest
from helpers.small import estimates, halves, shown

from benchnb.data.scores import Scores
from benchnb.evaluation.method import Flag, IntervalKind
from benchnb.evaluation.simulate import prepare_method, simulate
from benchnb.methods.proeval import (
    ProEval,
    choose_items,
    condition_on,
    score_prior,
)
from benchnb.stats.intervals import effective_runs

PUBLISHED = dict(keep_answers=False, folds=0)


def made_up(models=60, items=80, seed=0):
    "Scores that follow one ability, with uneven weights"
    rng = np.random.default_rng(seed)
    chance = 1 / (1 + np.exp(rng.normal(0, 1, items) - rng.normal(0, 1.2, (models, 1))))
    names = [f"item{n}" for n in range(items)]
    facts = pd.DataFrame({"weight": rng.uniform(0.2, 2, items)}, names)
    return Scores((rng.random(chance.shape) < chance).astype(float), facts)


def full_process(values, weights, asked, seen, noise):
    "Gaussian process regression by the textbook, with the matrix of all items"
    mean, covariance = values.mean(axis=0), np.cov(values.T)
    among = covariance[np.ix_(asked, asked)] + noise * np.eye(len(asked))
    gain = covariance[:, asked] @ np.linalg.inv(among)
    predicted = mean + gain @ (seen - mean[asked])
    left = covariance - gain @ covariance[asked]
    return predicted, weights @ left @ weights


def full_choice(values, weights, budget, noise):
    "Try every item, and keep the one after which the score varies least"
    asked = []
    for _ in range(budget):
        left = {
            item: full_process(values, weights, [*asked, item], np.zeros(1), noise)[1]
            for item in range(values.shape[1])
            if item not in asked
        }
        asked.append(min(left, key=left.get))
    return asked


@pytest.mark.parametrize("models", [4, 60])
@pytest.mark.parametrize("noise", [0.02, 0.3, 1 / 0.3])
def test_items_are_those_of_the_full_matrix(models, noise):
    scores = made_up(models, 25)
    values, weights = scores.values.astype(float), scores.weights
    fast = choose_items(score_prior(values), weights, 12, noise)
    slow = full_choice(values, weights, 12, noise)
    after = [full_process(values, weights, a, 0, noise)[1] for a in (fast, slow)]
    assert after[0] == pytest.approx(after[1], rel=1e-9)  # ties may go either way
    if models == 60:
        assert fast.tolist() == slow


def test_estimate_and_interval_are_those_of_the_full_matrix():
    scores = made_up()
    source, target = scores.split("random", seed=0)
    method = prepare_method(ProEval(**PUBLISHED).fit(source), 20)
    values = source.values.astype(float)
    for row, said in zip(target.values, simulate(method, target), strict=True):
        given = (method.coreset_, row[method.coreset_], 0.3)
        predicted, left = full_process(values, scores.weights, *given)
        assert said.score == pytest.approx(scores.weights @ predicted, abs=1e-6)
        half = 1.959964 * np.sqrt(left)
        assert np.ptp(said.interval) == pytest.approx(2 * half, rel=1e-5)
        assert said.kind is IntervalKind.MODEL


def test_an_asked_item_counts_as_it_was_answered():
    source, target = made_up().split("random", seed=0)
    own = prepare_method(ProEval(folds=0).fit(source), 20)
    paper = prepare_method(ProEval(**PUBLISHED).fit(source), 20)
    asked, weights = own.coreset_, source.weights
    seen = target.values[0, asked].astype(float)
    raw, kept = paper.estimate(seen), own.estimate(seen)
    model = condition_on(own.mean_, own.cross_, asked, seen, 0.3, weights)[0]
    apart = weights[asked] @ (seen - model[asked])
    assert kept.score - raw.score == pytest.approx(apart, abs=1e-9)
    every = prepare_method(ProEval(folds=0).fit(source), 80)
    exact = every.estimate(target.values[0, every.coreset_])
    assert exact.score == pytest.approx(target.truth().iloc[0], abs=1e-6)


def test_the_programs_noise_changes_items_and_not_the_estimates():
    source, _ = made_up().split("random", seed=0)
    paper = prepare_method(ProEval(**PUBLISHED).fit(source), 20)
    program = prepare_method(ProEval(choice_noise=1 / 0.3, **PUBLISHED).fit(source), 20)
    assert set(paper.coreset_) != set(program.coreset_)
    program.coreset_, program.cross_ = paper.coreset_, paper.cross_
    seen = np.arange(20) % 2.0
    assert shown(program.estimate(seen)) == shown(paper.estimate(seen))


def test_gaps_in_the_sources_leave_the_moments_of_who_was_asked():
    rng = np.random.default_rng(0)
    values = made_up(40, 10).values.astype(float)
    values[rng.random(values.shape) < 0.3] = np.nan
    values[:, 4], values[1:, 5] = np.nan, np.nan
    prior = score_prior(values)
    own = np.diag(prior.covariance(np.arange(10)))
    for item in set(range(10)) - {4, 5}:
        column = values[~np.isnan(values[:, item]), item]
        assert prior.mean[item] == pytest.approx(column.mean())
        assert own[item] == pytest.approx(column.var(ddof=1))
    assert own[4] == own[5] == 0  # nobody, and one source: no covariance
    assert prior.mean[4] == pytest.approx(np.nanmean(values))
    assert np.linalg.eigvalsh(prior.covariance(np.arange(10))).min() > -1e-9


def test_repeated_runs_have_less_noise():
    source, target = made_up().split("random", seed=0)
    once = prepare_method(ProEval(folds=0).fit(source), 20)
    often = prepare_method(ProEval(folds=0).fit(source), 20)
    often._runs = np.full(80, 4)  # as in a session whose answers rest on four runs
    seen = 0.25 + 0.5 * target.values[0, often.coreset_]  # one run of four differs
    worth = effective_runs(seen, 4)[0]
    assert 1.5 < worth < 4
    quiet = prepare_method(ProEval(folds=0, noise=0.3 / worth).fit(source), 20)
    quiet.coreset_, quiet.cross_ = often.coreset_, often.cross_
    assert often.estimate(seen).score == pytest.approx(quiet.estimate(seen).score)
    assert often.estimate(seen).score != pytest.approx(once.estimate(seen).score)


@pytest.mark.parametrize("models, kind", [(19, "CONFORMAL"), (18, "MODEL")])
def test_the_interval_needs_nineteen_sources(models, kind):
    scores = made_up(models + 1)
    source, target = (
        scores.select(models=some) for some in (np.arange(models), [models])
    )
    said = simulate(ProEval().fit(source), target, 20)[0]
    assert said.kind is IntervalKind[kind] and np.ptp(said.interval) < 1


def test_conformal_intervals_hold_where_those_of_the_process_may_not():
    covered = {0: [], 5: []}
    for seed in range(6):
        source, target = made_up(seed=seed).split("random", seed=seed)
        for folds, held in covered.items():
            for said, truth in zip(
                simulate(ProEval(folds=folds, noise=0.02).fit(source), target, 10),
                target.truth(),
                strict=True,
            ):
                held.append(said.interval[0] <= truth <= said.interval[1])
    assert np.mean(covered[5]) > 0.9 > np.mean(covered[0])


@pytest.mark.parametrize("models", [1, 2])
def test_few_sources_are_noted(models):
    source, target = halves()
    few = source.select(models=np.arange(models))
    said = estimates(ProEval().fit(few), target.select(models=[0]), 12)[0]
    assert Flag.FEW_SOURCES in said.flags and "too few" in said.notes[0]
    assert said.interval == (0.0, 1.0)
