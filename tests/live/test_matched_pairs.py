"What the interval of two models on the same items promises: by exact sums"

import copy
import itertools
import math

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import brentq, minimize_scalar
from scipy.special import gammaln, xlogy
from scipy.stats import binom

from benchnb.data.scores import Scores
from benchnb.data.sources import load
from benchnb.evaluation.registry import get_method
from benchnb.live.evaluation import Evaluation
from benchnb.live.gate import compute_pass_k, difference_sequence, gate
from benchnb.live.paired import (
    BEYOND,
    Disagreements,
    compare_evaluations,
    paired,
)
from benchnb.live.race import judge_live_race, race
from benchnb.live.stopping import judge_standing

# The score interval -------------------------------------------------------------------


def slow_statistic(delta, b, c, n):
    "Tango's squared z, with the most likely share of B's wins found by search"

    def loss(p):
        parts = np.array([p + delta, p, 1 - 2 * p - delta])
        return -xlogy([b, c, n - b - c], np.maximum(parts, 1e-300)).sum()

    low = max(0.0, -delta)
    high = (1 - delta) / 2
    p = minimize_scalar(loss, bounds=(low, high), options={"xatol": 1e-12}).x
    p = min((low, high, p), key=loss)
    variance = n * (2 * p + delta * (1 - delta))
    return (b - c - n * delta) ** 2 / max(variance, 1e-15)


@pytest.mark.parametrize("b, c, n", [(7, 1, 21), (2, 0, 20), (5, 5, 30), (0, 9, 40)])
def test_the_interval_is_that_of_a_search(b, c, n):
    "For every true difference; and the ends by a root finder"
    table = Disagreements(float(b), float(c), n)
    for delta in np.linspace(-0.95, 0.95, 41):
        slow = slow_statistic(delta, b, c, n)
        if abs(slow - 3.8415) > 0.01:
            assert table.is_no_surprise(delta, 3.8415) == (slow <= 3.8415)
    padded = (b + 0.25, c + 0.25, n + 0.5)
    middle = (b - c) / padded[2]
    ends = [
        brentq(lambda x: slow_statistic(x, *padded) - 1.96**2, middle, end)
        for end in (-0.999, 0.999)
    ]
    low, high = table.interval(1.96)
    if b and c:
        assert [low, high] == pytest.approx(ends, abs=1e-4)
    assert low <= ends[0] + 1e-4 and high >= ends[1] - 1e-4


def outcomes(n):
    "Wins of A and of B in n items"
    return np.array([(k, m) for k in range(n + 1) for m in range(n + 1 - k)]).T


def log_ways(n, *parts):
    return gammaln(n + 1) - sum(gammaln(part + 1) for part in parts)


def coverage(low, high, n, ahead_all, behind_all, total=None):
    "Sum over all outcomes that hold; rates, or counts in a benchmark of total items"
    ahead, behind = outcomes(n)
    counts = np.array([ahead, behind, n - ahead - behind])
    limits = np.array([ahead_all, behind_all, (total or 1) - ahead_all - behind_all])
    truth = (ahead_all - behind_all) / (total or 1)
    if total is None:
        log_p = log_ways(n, *counts) + xlogy(counts.T, limits).sum(axis=1)
    else:
        kept = np.minimum(counts.T, limits).T
        log_p = sum(log_ways(m, k, m - k) for m, k in zip(limits, kept, strict=True))
        log_p = log_p - log_ways(total, n, total - n)
        log_p = np.where((counts.T <= limits).all(axis=1), log_p, -np.inf)
    return np.exp(log_p)[(low - 1e-9 <= truth) & (truth <= high + 1e-9)].sum()


def own_ends(n, total=math.inf):
    "The product's interval of every outcome, from two tables of answers"
    ends = []
    for ahead, behind in outcomes(n).T:
        d = np.repeat([1.0, -1.0, 0.0], [ahead, behind, n - ahead - behind])
        a = dict(enumerate(np.maximum(d, 0)))
        b = dict(enumerate(np.maximum(-d, 0)))
        ends.append(paired(a, b, total=total).interval)
    return np.array(ends).T


def fast_ends(n, total=math.inf):
    "The same for many outcomes at once"
    left = (total - n) / (total - 1) if math.isfinite(total) else 1.0
    low, high = Disagreements(*outcomes(n) * 1.0, n).interval(1.959964, left)
    return low - BEYOND / total, high + BEYOND / total


SIDES = (0, 0.01, 0.02, 0.03, 0.05, 0.1, 0.15, 0.25, 0.4, 0.5)


def worst_cell(n, total, shares, ends):
    "The lowest coverage over shares of disagreement and sides"
    whole = total if math.isfinite(total) else None
    cells = []
    for share, side in itertools.product(shares, SIDES):
        rates = share * (1 - side), share * side
        if whole:
            behind_all = round(whole * rates[1])
            rates = round(whole * share) - behind_all, behind_all
        cells.append(coverage(*ends, n, *rates, total=whole))
    return min(cells)


@pytest.mark.parametrize("n, total", [(10, math.inf), (20, math.inf), (15, 60)])
def test_rare_disagreements_on_one_side_are_held(n, total):
    "Equation 1 holds .83 here"
    ends = own_ends(n, total)
    assert worst_cell(n, total, [0.02, 0.05, 0.1, 0.2, 0.35, 0.5], ends) >= 0.94
    if math.isinf(total):
        assert np.allclose(ends, fast_ends(n), atol=1e-5)


@pytest.mark.parametrize("n", [4, 5, 7, 10, 15, 20])
def test_differences_on_nearly_all_items_are_held(n):
    "Equation 2 alone holds .82 where A wins 98 of 100"
    shares = np.r_[0.55:0.9:0.05, 0.9:1.0:0.02, 1.0]
    assert worst_cell(n, math.inf, shares, fast_ends(n)) >= 0.94
    low, high = fast_ends(n)
    ahead, behind = outcomes(n)
    turned = np.lexsort((ahead, behind))  # the same outcomes with A and B exchanged
    order = np.lexsort((behind, ahead))
    np.testing.assert_allclose(low[order], -high[turned], atol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize(
    "n, total", [(10, math.inf), (20, math.inf), (50, math.inf), (200, math.inf)]
)
def test_no_cell_of_a_large_grid_is_below_its_promise(n, total):
    shares = np.r_[0.001, 0.005, 0.01:0.5:0.01, 0.5:1.0:0.02, 1.0]
    assert worst_cell(n, total, shares, fast_ends(n, total)) >= 0.94


@pytest.mark.slow
def test_a_part_of_a_benchmark_is_held_too():
    shares = np.r_[0.002, 0.01:0.501:0.01]
    assert worst_cell(50, 500, shares, own_ends(50, 500)) >= 0.94
    for n, total in [(2, 20), (5, 20), (15, 20), (18, 20), (19, 20), (27, 30)]:
        shares = np.arange(0, 0.8 * total) / total
        assert worst_cell(n, total, shares, own_ends(n, total)) >= 0.94


def test_what_one_item_decides_is_not_excluded_and_no_end_is_out_of_reach():
    "Also with unequal weights"
    rng = np.random.default_rng(0)
    names = [f"i{k}" for k in range(30)]
    for asked in (3, 15, 28, 29):
        weights = pd.Series(rng.random(30) + 0.1, names)
        weights /= weights.sum()
        for own in (None, weights):
            w = pd.Series(1 / 30, names) if own is None else own
            d = pd.Series(rng.choice([-1.0, 0.0, 1.0], asked), names[:asked])
            a, b = d.clip(lower=0).to_dict(), (-d).clip(lower=0).to_dict()
            low, high = paired(a, b, weights=own, total=30).interval
            seen = float(w[names[:asked]] @ d)
            rest = w[names[asked:]]
            assert seen - rest.sum() - 1e-9 <= low < high <= seen + rest.sum() + 1e-9
            if asked == 29:
                assert (low, high) == pytest.approx(
                    (seen - rest.iloc[0], seen + rest.iloc[0])
                )
            if own is None:  # the score interval is about the mean of those asked
                assert low <= d.mean() <= high or asked > 27


def test_a_small_part_of_a_large_benchmark_is_not_pulled_to_zero():
    "17 wins in 150 of 1,000 items: nearly what 150 of an endless benchmark say"
    a = dict(enumerate([1.0] * 150))
    b = dict(enumerate([0.0] * 17 + [1.0] * 133))
    part, endless = paired(a, b, total=1000).interval, paired(a, b).interval
    assert 0.06 < endless[0] < part[0] < 17 / 150 < part[1] < endless[1]


KINDS = {
    "a half, rarely": (lambda rng, n: 0.5 * (rng.random(n) < 0.05), 0.025),
    "parts, rarely": (lambda rng, n: rng.random(n) * (rng.random(n) < 0.1), 0.05),
    "on one side": (lambda rng, n: rng.beta(0.2, 1.8, n), 0.1),
    "of two noises": (lambda rng, n: rng.random(n) - rng.random(n), 0.0),
    "small": (lambda rng, n: np.clip(rng.normal(0.05, 0.1, n), -1, 1), 0.05),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", [10, 20, 50])
def test_partial_credit_is_held(kind, n):
    draw, truth = KINDS[kind]
    rng = np.random.default_rng(0)
    held = 0
    for _ in range(600):
        d = draw(rng, n)
        a = dict(enumerate(np.maximum(d, 0)))
        b = dict(enumerate(np.maximum(-d, 0)))
        low, high = paired(a, b).interval
        held += low <= truth <= high
    assert held / 600 >= 0.94 - 2 * math.sqrt(0.95 * 0.05 / 600)


# Items that belong together -----------------------------------------------------------


def test_copies_of_items_narrow_nothing():
    rng = np.random.default_rng(0)
    for n in (6, 20, 60):
        a, b = (dict(enumerate(rng.integers(0, 2, n) * 1.0)) for _ in range(2))
        copies = [{(k, c): x[k] for k in x for c in range(25)} for x in (a, b)]
        once = paired(a, b, clusters={k: k for k in a})
        many = paired(*copies, clusters={name: name[0] for name in copies[0]})
        assert many.interval == pytest.approx(once.interval)
        assert many.better == pytest.approx(once.better)
        width = np.ptp(many.interval)
        assert width >= np.ptp(paired(a, b).interval) - 1e-9
        old, new = np.array([*a.values()]), np.array([*b.values()])
        sizes = np.full(n, 25)
        longer = difference_sequence(
            np.repeat(old, 25), np.repeat(new, 25), 25 * n, sizes=sizes
        )
        assert np.allclose(longer, difference_sequence(old, new, n))
    with pytest.raises(ValueError, match="number of clusters is 4"):
        paired(a, b, clusters={k: k % 4 for k in a})


@pytest.mark.slow
@pytest.mark.parametrize("count", [5, 8, 20])
@pytest.mark.parametrize("shape", ["equal", "unequal", "alike"])
def test_few_clusters_are_held(count, shape):
    "Passages whose differences are normal, or all-or-nothing and rare"
    rng = np.random.default_rng(count)
    sizes = np.full(count, 10) if shape != "unequal" else 2 + 3 * np.arange(count)
    names = np.repeat(np.arange(count), sizes)
    held = 0
    for _ in range(600):
        if shape == "alike":
            own, truth = (rng.random(count) < 0.15) * 1.0, 0.15
            d = own[names]
        else:
            own, truth = rng.normal(0.1, 0.2, count), 0.1
            d = np.clip(own[names] + rng.normal(0, 0.2, len(names)), -1, 1)
        a = dict(enumerate(np.maximum(d, 0)))
        b = dict(enumerate(np.maximum(-d, 0)))
        low, high = paired(a, b, clusters=dict(enumerate(names))).interval
        held += low <= truth <= high
    assert held / 600 >= 0.94 - 2 * math.sqrt(0.95 * 0.05 / 600)


def test_the_gate_counts_whole_clusters():
    "What is not yet whole waits; sizes may differ"
    old = np.array([1.0, 1, 0, 0, 1, 1, 1, 0])
    new = np.array([1.0, 0, 0, 1, 1, 1, 0, 1])
    sizes = np.array([3, 1, 4, 2])
    low, high = difference_sequence(old, new, 10, sizes=sizes)
    assert len(low) == len(high) == 3
    found = gate(old, new, 10, 0.5, sizes=sizes)
    assert found.items in (3, 4, 8) and found.interval[0] <= found.difference
    low, high = difference_sequence(
        np.ones(10), np.zeros(10), 10, sizes=sizes, repeatable=True
    )
    assert (low[-1], high[-1]) == pytest.approx((-1, -1))


# Runs of agents -----------------------------------------------------------------------


def rates_of_agent():
    "Success rates of the agent in the middle of Terminal-Bench's trials"
    runs = load("terminal_bench_trials")
    rates = runs.values[runs.truth().to_numpy().argsort()[len(runs) // 2]]
    return rates[~np.isnan(rates)].astype(float)


def test_two_runs_of_one_agent_differ_by_a_fair_coin():
    "Exactly: the number of disagreements is a sum over tasks, their signs are coins"
    rates = rates_of_agent()
    chances = np.ones(1)
    for p in 2 * rates * (1 - rates):
        chances = np.convolve(chances, [1 - p, p])
    wrong = 0.0
    for m, chance in enumerate(chances):
        ahead = np.arange(m + 1)
        table = Disagreements(ahead * 1.0, m - ahead * 1.0, len(rates))
        low, high = table.interval(1.959964)
        wrong += chance * binom.pmf(ahead, m, 0.5)[(low > 0) | (high < 0)].sum()
    assert wrong <= 0.05


def two_runs(fitted, rates, rng):
    "Evaluations of all tasks, of two runs"
    runs = []
    for _ in range(2):
        run = Evaluation(fitted, len(rates))
        scores = (rng.random(len(rates)) < rates) * 1.0
        runs.append(run.tell(dict(zip(run.items.index, scores, strict=True))))
    return runs


def agents_table(rates, harness):
    rng = np.random.default_rng(1)
    items = pd.DataFrame({"task": "t"}, [f"t{k}" for k in range(len(rates))])
    if harness:
        items["harness"] = harness
    return Scores((rng.random((6, len(rates))) < rates) * 1.0, items)


def test_two_runs_of_one_agent_are_not_told_apart():
    rates = rates_of_agent()
    rng = np.random.default_rng(0)
    fitted = get_method("random").fit(agents_table(rates, "harbor"))
    judged = {"paired": 0, "tell": 0}
    for _ in range(60):
        a, b = two_runs(fitted, rates, rng)
        found = compare_evaluations(a, b)
        assert not found.these_runs and found.about_runs().startswith("for any runs")
        judged["paired"] += found.decided
        stands = judge_standing(a, b)
        assert "for any runs" in stands.sentence()
        judged["tell"] += stands.decided
    assert max(judged.values()) <= 60 * 0.05 + 3 * math.sqrt(60 * 0.05 * 0.95)
    these = compare_evaluations(a, b, repeatable=True)
    assert these.these_runs and these.interval[0] == these.interval[1]
    assert "in these runs" in these.sentence()
    assert "for these runs" in judge_standing(a, b, repeatable=True).sentence()
    assert "for any runs" not in judge_standing(a, within=0.3).sentence()


def test_where_no_harness_of_agents_is_named_the_decision_is_about_these_runs():
    rates = rates_of_agent()
    fitted = get_method("random").fit(agents_table(rates, None))
    a, b = two_runs(fitted, rates, np.random.default_rng(0))
    found = compare_evaluations(a, b)
    assert found.these_runs and found.interval[0] == found.interval[1]
    assert "for these runs" in judge_standing(a, b).sentence()
    assert judge_live_race({"a": a, "b": b}).these_runs
    wide = compare_evaluations(a, b, repeatable=False).interval
    assert np.ptp(wide) > 0.1


def test_an_estimate_of_any_runs_is_wider_than_one_of_these():
    rates = rates_of_agent()
    rng = np.random.default_rng(3)
    for name in ("aipw", "kmeans"):
        method = get_method(name, folds=0) if name == "kmeans" else get_method(name)
        fitted = method.fit(agents_table(rates, None))
        runs = []
        for _ in range(2):
            run = Evaluation(fitted, 30)
            scores = dict(zip(run.items.index, rng.random(88) < rates, strict=True))
            runs.append(run.tell({n: float(scores[n]) for n in run.ask()}))
        these = compare_evaluations(*runs, repeatable=True)
        other = compare_evaluations(*runs, repeatable=False)
        assert np.ptp(other.interval) > np.ptp(these.interval)
        assert abs(other.better - 0.5) <= abs(these.better - 0.5) + 1e-9
        assert other.difference == these.difference


@pytest.mark.slow
def test_a_race_of_equal_agents_names_no_winner_beyond_the_margin():
    "Four agents, of which one is better by ten points; the others may not win"
    rates = np.clip(rates_of_agent(), 0.1, 0.9)
    rng = np.random.default_rng(0)
    skill = np.stack([rates + 0.1, rates, rates, rates])
    names = list("abcd")
    wrong = these = 0
    for seed in range(100):
        table = Scores((rng.random(skill.shape) < skill) * 1.0, models=names)
        winner = race(table, 0.05, seed=seed, repeatable=False).winner
        wrong += winner not in (None, "a")
        these += race(table, 0.05, seed=seed).winner not in (None, "a")
    assert wrong <= 100 * 0.05 + 3 * math.sqrt(100 * 0.05 * 0.95) and these > wrong


def test_a_race_without_a_winner_says_so():
    table = Scores(np.tile([[1.0, 0.0]], (3, 30)), models=list("abc"))
    found = race(table, 0.01, repeatable=False)
    assert found.winner is None and not found.decided
    assert "3 of 3 are in" in found.sentence() and "for any runs" in found.sentence()
    assert "for these runs" in race(table, 0.01).sentence()


# Runs with partial credit -------------------------------------------------------------


@pytest.mark.parametrize("every", [True, False])
def test_pass_k_of_partial_credit_is_refused(every):
    with pytest.raises(ValueError, match="runs that are right or wrong"):
        compute_pass_k(np.array([0.5, 1.0]), np.array([1, 2]), k=1, every=every)
    with pytest.raises(ValueError, match="right or wrong"):
        compute_pass_k(np.array([0.9]), np.array([2]), k=2, every=every)
    third = compute_pass_k(np.array([1 / 3, np.nan]), np.array([3, 1]), 1, every)
    assert third[0] == pytest.approx(1 / 3) and np.isnan(third[1])


@pytest.mark.slow
def test_rare_differences_of_two_random_draws_are_held_by_aipw_too():
    "B is A but for one item in twenty, which it loses; often none of them is asked"
    rng = np.random.default_rng(0)
    source = Scores((rng.random((12, 400)) < rng.random(400)) * 1.0)
    a_scores = (rng.random(400) < 0.7) * 1.0
    b_scores = a_scores.copy()
    b_scores[rng.permutation(np.flatnonzero(a_scores))[:19]] = 0
    fitted = get_method("aipw").fit(source)
    held = 0
    for seed in range(100):
        runs = []
        for scores in (a_scores, b_scores):
            run = Evaluation(copy.copy(fitted), 40, seed=seed)
            own = dict(zip(run.items.index, scores, strict=True))
            while asked := run.ask():
                run.tell({name: own[name] for name in asked})
            runs.append(run)
        low, high = compare_evaluations(*runs).interval
        held += low <= 19 / 400 <= high
    assert held >= 94
