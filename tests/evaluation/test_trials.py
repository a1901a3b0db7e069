"Repeated runs of an agent: what they weigh, and what an interval is for"

import numpy as np
import pytest

from benchnb.data.scores import MAX_TRIALS, Scores
from benchnb.data.sources import load
from benchnb.evaluation.method import Estimand, IntervalKind
from benchnb.evaluation.per_task import PerTask
from benchnb.evaluation.registry import get_method
from benchnb.evaluation.simulate import prepare_method, simulate
from benchnb.live.evaluation import Evaluation
from benchnb.stats.intervals import effective_runs
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


COUNTING = [  # methods for which it matters how many runs are behind an answer
    "guarded_irt",
    "guarded_irt(rounds=5)",
    "adaptive_irt",
    "atlas",
    "p_irt",
    "gp_irt",
    "anchor_irt",
    "faq",
    "proeval",
    "random",
    "stratified",
    "difference",
    "aipw",
]


@pytest.mark.parametrize("name", COUNTING)
@pytest.mark.parametrize("counted", [False, True])
def test_runs_that_agree_are_worth_one_run(name, counted):
    "Whether the sources have runs or not: 3, 5 or 20 equal runs change nothing"
    scores, _ = agents(44, runs=1)
    source = scores.select(models=range(40))
    if counted:
        source, _ = agents(40)
    row = scores.select(models=range(40, 44))
    method = prepare_method(get_method(name).fit(source), 20)

    def estimates(runs):
        trials = np.full(row.shape, runs)
        return simulate(method, Scores(row.values, row.items, row.models, trials))

    once = estimates(1)
    for runs in (3, 5, 20):
        for one, many in zip(once, estimates(runs), strict=True):
            assert many.items == one.items
            assert many.score == pytest.approx(one.score, abs=1e-9)
            narrower = np.ptp(one.interval) - np.ptp(many.interval)
            assert narrower < 1e-9


@pytest.mark.slow
@pytest.mark.parametrize("name", ["guarded_irt", "adaptive_irt", "p_irt", "random"])
@pytest.mark.parametrize("counted", [False, True])
def test_intervals_hold_with_any_number_of_runs(name, counted):
    "Runs that agree, differ and mix: the interval holds the score that it names"
    scores, expected = agents(280, 89, seed=2)
    rng = np.random.default_rng(0)
    source = scores.select(models=range(60))
    if not counted:
        single = rng.binomial(1, expected[:60]).astype(float)
        source = Scores(single, source.items, source.models)
    method = prepare_method(get_method(name).fit(source), 40)
    rates = expected[60:]
    once = rng.binomial(1, rates).astype(float)
    held = {}
    for runs in (1, 3, 5, 20):
        held["agree", runs] = once, np.full(once.shape, runs), once
        held["differ", runs] = rng.binomial(runs, rates) / runs, runs, rates
    numbers = rng.choice([1, 3, 5, 20], once.shape)
    held["mixed", 0] = rng.binomial(numbers, rates) / numbers, numbers, rates
    for case, (values, trials, truth) in held.items():
        trials = np.broadcast_to(trials, values.shape)
        found = simulate(method, Scores(values, trials=trials))
        ends = np.array([e.interval for e in found])
        estimands = {e.estimand for e in found}
        for means in [
            means
            for estimand, means in ((Estimand.RUN, values), (Estimand.EXPECTED, truth))
            if estimand in estimands
        ]:
            mean = means.mean(axis=1)
            rate = ((ends[:, 0] <= mean + 1e-9) & (mean - 1e-9 <= ends[:, 1])).mean()
            assert rate >= 0.905, case  # of 220: .93 less two standard errors


def test_effective_runs_by_hand():
    seen, runs = np.array([0.5, 1.0, np.nan]), np.array([4, 2, 3])
    within = (0.25 * 4 / 3 + 0) / 4  # two imaginary items, whose runs agree
    mean = (0.5 + 1 + 1) / 4
    shared = 1 - within / (mean * (1 - mean))
    by_hand = [4 / (1 + 3 * shared), 2 / (1 + shared), 1]
    np.testing.assert_allclose(effective_runs(seen, runs), by_hand)
    both = effective_runs(np.stack([seen, seen]), np.stack([runs, np.ones(3)]))
    np.testing.assert_allclose(both, [by_hand, [1, 1, 1]])
    assert (effective_runs(np.full(1, 0.4), 5) < 5).all()  # one noisy item


@pytest.mark.parametrize("runs", [10**12, MAX_TRIALS + 1, 0])
def test_a_number_of_runs_has_a_limit_that_is_stated(runs):
    table = load("helm_medqa")
    evaluation = Evaluation(get_method("random").fit(table), 10, 0, source=table)
    item = evaluation.ask()[0]
    with pytest.raises(ValueError, match="from 1 to 1,000,000") as error:
        evaluation.tell({item: {"r": [1.0, runs]}})
    assert "\n" not in str(error.value) and len(str(error.value)) < 200
    trials = np.ones((1, 3))
    trials[0, 1] = runs
    with pytest.raises(ValueError, match="from 1 to 1,000,000"):
        Scores(np.ones((1, 3)), trials=trials)
