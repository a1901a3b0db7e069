"Repeated runs of an agent: what they weigh, and what an interval is for"

import numpy as np
import pytest

from benchnb.data.scores import Scores
from benchnb.evaluation.method import Estimand, IntervalKind
from benchnb.evaluation.per_task import PerTask
from benchnb.evaluation.registry import get_method
from benchnb.evaluation.simulate import prepare_method, simulate
from benchnb.stats.irt import log_likelihood, posterior_mode, sample_posterior
from benchnb.stats.irt_fit import fit_irt

RUNS = 5


def agents(count=40, items=60, seed=0, runs=RUNS):
    "Made-up agents with their expected scores on every item"
    rng = np.random.default_rng(seed)
    theta, hard = rng.normal(0.3, 1, (count, 1)), rng.normal(0, 1.5, items)
    expected = 1 / (1 + np.exp(-(theta - hard)))
    trials = np.full((count, items), runs)
    return Scores(rng.binomial(trials, expected) / runs, trials=trials), expected


def singles(scores, row, columns):
    "The runs of some items as items of their own, one trial each"
    trials = scores.trials[row, columns]
    right = np.round(scores.values[row, columns] * trials).astype(int)
    pairs = list(zip(columns, right, trials, strict=True))
    where = np.repeat(columns, trials)
    given = [float(k < good) for _, good, size in pairs for k in range(size)]
    return where, np.array(given)


def test_n_runs_weigh_like_n_answers_to_the_same_item():
    scores, _ = agents()
    bank = fit_irt(scores.values, dims=2)
    items = np.array([[3, 7, 20, 41]])
    seen, runs = scores.values[:1, items[0]].astype(float), scores.trials[:1, items[0]]
    where, given = (row[np.newaxis] for row in singles(scores, 0, items[0]))
    chance = np.random.default_rng(0).uniform(0.1, 0.9, (1, 5, items.size))
    slow = log_likelihood(np.repeat(chance, runs[0], axis=2), given)
    np.testing.assert_allclose(log_likelihood(chance, seen, runs), slow, rtol=1e-6)
    pairs = [
        posterior_mode(bank, items, seen, runs),
        posterior_mode(bank, where, given),
    ]
    for one, two in zip(*pairs, strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-5, atol=1e-6)
    drawn = [sample_posterior(bank, items, seen, runs)]
    drawn += [sample_posterior(bank, where, given)]
    np.testing.assert_allclose(drawn[0].weights, drawn[1].weights, atol=1e-4)
    fast = bank.abilities(seen, items, trials=runs)
    slow = bank.abilities(given, where)
    np.testing.assert_allclose(fast.theta, slow.theta, atol=1e-4)
    np.testing.assert_allclose(fast.covariance, slow.covariance, atol=1e-4)


@pytest.mark.parametrize(
    "name", ["adaptive_irt", "p_irt", "guarded_irt", "guarded_irt(rounds=5)"]
)
def test_methods_hear_how_many_runs_an_answer_rests_on(name):
    scores, _ = agents(60)
    known, targets = (scores.select(models=part) for part in (range(50), range(50, 60)))
    method = prepare_method(get_method(name, folds=0).fit(known), 12)
    once = Scores(targets.values, targets.items, targets.models)
    ones = Scores(targets.values, targets.items, targets.models, np.ones(targets.shape))
    many, one, plain = (simulate(method, table) for table in (targets, ones, once))
    assert [e.score for e in one] == [e.score for e in plain]
    assert max(abs(a.score - b.score) for a, b in zip(many, one, strict=True)) > 1e-3
    assert method._runs is None  # nothing is left of a conversation


def coverage(method, scores, expected, budget, seeds):
    "How often the interval holds the expected score"
    held, truth = [], expected.mean(axis=1)
    for seed in seeds:
        found = simulate(method, scores, budget, seed)
        assert {e.estimand for e in found} == {Estimand.EXPECTED}
        ends = np.array([e.interval for e in found])
        held += list((ends[:, 0] <= truth) & (truth <= ends[:, 1]))
    return np.mean(held)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["random", "stratified", "aipw"])
@pytest.mark.parametrize("budget", [30, 89])
def test_design_based_intervals_hold_the_expected_score(name, budget):
    scores, expected = agents(240, 89, seed=1)
    half = scores.select(models=range(40))
    method = get_method(name).fit(half)
    rest = scores.select(models=range(40, 240))
    rate = coverage(method, rest, expected[40:], budget, range(4 if budget < 89 else 1))
    assert 0.925 <= rate <= 0.985


def test_an_interval_names_what_it_is_for():
    scores, _ = agents()
    plain = Scores(scores.values, scores.items, scores.models)
    method = get_method("random").fit(plain)
    (run, *_), (many, *_) = simulate(method, plain, 20), simulate(method, scores, 20)
    assert (run.estimand, many.estimand) == (Estimand.RUN, Estimand.EXPECTED)
    assert run.score == many.score and run.interval != many.interval
    whole, counted = simulate(method, plain, 60)[0], simulate(method, scores, 60)[0]
    assert whole.kind is IntervalKind.EXACT and whole.estimand is Estimand.RUN
    assert counted.interval[0] < counted.score < counted.interval[1]
    parts = PerTask(get_method("random")).fit(plain)
    assert simulate(parts, scores, 20)[0].estimand is Estimand.EXPECTED
