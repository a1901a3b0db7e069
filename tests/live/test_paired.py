"Two models compared: by single items where these are a random draw, else by the method"

import numpy as np
import pandas as pd
import pytest
from helpers.evaluations import evaluate
from helpers.small import table

from benchnb.data.render import format_points
from benchnb.data.scores import Scores
from benchnb.data.sources import load
from benchnb.evaluation.left_out import left_out_errors
from benchnb.evaluation.registry import get_method
from benchnb.evaluation.simulate import prepare_method
from benchnb.live.comparison import Evidence, fewest_items, fewest_wins
from benchnb.live.evaluation import Evaluation
from benchnb.live.paired import (
    PairedResult,
    compare_evaluations,
    paired,
    residual_variance,
)
from benchnb.stats.intervals import difference_interval


@pytest.mark.slow
def test_two_runs_are_compared_by_their_method(tmp_path):
    runs = [evaluate("kmeans", row=row, many=True) for row in (0, 5)]
    found, back = compare_evaluations(*runs), compare_evaluations(*runs[::-1])
    estimates = [run.conversation.estimate.score for run in runs]
    assert found.difference == pytest.approx(estimates[0] - estimates[1])
    assert found.how.startswith("a heuristic: kmeans's own estimates")
    assert "drawn" not in found.note
    assert found.interval[0] == pytest.approx(-back.interval[1])
    assert found.better == pytest.approx(1 - back.better)
    count = len(runs[0].left_out(20))
    assert found.least == pytest.approx(1 / (count + 2))
    few = [evaluate("kmeans", row=row) for row in (0, 5)]
    assert "18 left-out sources are too few for 95%" in compare_evaluations(*few).note
    other = evaluate("kmeans", row=5, seed=1, many=True)
    assert "different seeds" in compare_evaluations(runs[0], other).note
    drawn = [evaluate("random", row=row, errors=False) for row in (0, 5)]
    assert (
        compare_evaluations(*drawn).how == "single items"
        and not compare_evaluations(*drawn).note
    )
    bare = evaluate("kmeans", row=5, errors=False, many=True)
    assert "own estimates" in compare_evaluations(runs[0], bare).how  # made when needed
    bare.source, bare.left_out_by_budget = None, {}
    found = compare_evaluations(runs[0], bare)
    assert "their intervals" in found.how and "no sources were left out" in found.note


def test_adaptive_runs_without_left_out_sources_are_compared_by_their_intervals():
    "On the few items that both were asked, unlike models look alike"
    source, target = table(1, 80).split("random", seed=0)
    order = np.argsort(target.truth().to_numpy())
    weak, strong = (
        evaluate("guarded_irt", row=int(row), errors=False, many=True)
        for row in (order[2], order[-3])
    )
    for run in (weak, strong):
        run.source = None
    found = compare_evaluations(strong, weak)
    one, two = strong.estimate(), weak.estimate()
    assert (
        found.how
        == "a heuristic: both estimates with their intervals, as if independent"
    )
    assert found.difference == pytest.approx(one.score - two.score)
    halves = [max(e.score - e.interval[0], e.interval[1] - e.score) for e in (one, two)]
    width = found.interval[1] - found.interval[0]
    assert width == pytest.approx(2 * np.hypot(*halves), abs=1e-6)
    truth = target.truth().iloc[order[-3]] - target.truth().iloc[order[2]]
    assert found.interval[0] <= truth <= found.interval[1] and found.better > 0.95
    assert "no sources were left out" in found.note


def test_an_exact_score_needs_no_estimate():
    "All items of B have results: A's interval less B's score, not two estimates"
    a, b = (evaluate("kmeans", row=row, many=True) for row in (0, 5))
    row = table(1, 80).split("random", seed=0)[1].values[5].tolist()
    b.tell(dict(zip(b.items.index, row, strict=True)))
    found, back, one = (
        compare_evaluations(a, b),
        compare_evaluations(b, a),
        a.estimate(),
    )
    assert found.difference == pytest.approx(one.score - b.full_score())
    ends = [end - b.full_score() for end in one.interval]
    assert found.interval == pytest.approx(ends)
    assert back.interval == pytest.approx([-end for end in ends[::-1]])
    assert "the exact score of B" in found.how and "of A" in back.how
    assert found.better == pytest.approx(1 - back.better)


def test_a_weighted_random_draw_is_weighed_once():
    "Heavy items are drawn more often: the mean over many draws is the true difference"
    rng = np.random.default_rng(0)
    names = [f"i{n}" for n in range(200)]
    weights = pd.Series(np.exp(rng.normal(size=200)), names)
    weights /= weights.sum()
    a, b = rng.random(200) < 0.3 + 0.6 * (weights.rank(pct=True)), rng.random(200) < 0.4
    a, b = (dict(zip(names, x.astype(float), strict=True)) for x in (a, b))
    truth = sum((a[n] - b[n]) * weights[n] for n in names)
    items = pd.DataFrame({"task": "t", "weight": weights * 200}, names)
    method = get_method("random").fit(Scores(rng.integers(0, 2, (6, 200)), items))
    found = []
    for seed in range(150):
        prepare_method(method, 50, seed)
        draw = method.inclusion_probabilities(method.coreset_)
        mine = {name: a[name] for name in method.items_.index[draw.items]}
        found.append(paired(mine, b, weights, 200, draw=draw).difference)
    assert abs(np.mean(found) - truth) < 4 * np.std(found) / np.sqrt(150) + 0.01
    assert abs(paired(a, b, weights, 200).difference - truth) < 1e-9


def test_paired_is_even_handed():
    rng = np.random.default_rng(0)
    a, b = (dict(enumerate(rng.random(30))) for _ in range(2))
    one, two = paired(a, b, total=200), paired(b, a, total=200)
    assert np.isclose(one.difference, -two.difference)
    assert np.allclose(one.interval, np.negative(two.interval)[::-1])
    assert np.isclose(one.better, 1 - two.better)
    exact = paired(a, b, total=30)
    assert np.allclose(exact.interval, exact.difference)


def test_random_draws_are_compared_whatever_they_have_in_common():
    same = [evaluate("aipw", row=row, many=True) for row in (0, 5)]
    found, back = compare_evaluations(*same), compare_evaluations(*same[::-1])
    estimates = [run.conversation.estimate.score for run in same]
    assert found.difference == pytest.approx(estimates[0] - estimates[1])
    assert found.how.startswith("estimates from random draws") and found.items == 20
    assert found.interval[0] == pytest.approx(-back.interval[1])
    other = evaluate("aipw", row=5, many=True, errors=False, seed=3)
    apart = compare_evaluations(same[0], other)
    assert apart.items < 20 and apart.how == found.how
    plain = [evaluate("random", row=n, errors=False, seed=n) for n in (0, 5)]
    scores = [np.mean(list(run.answers.values())) for run in plain]
    assert compare_evaluations(*plain).difference == pytest.approx(
        scores[0] - scores[1]
    )


def test_the_variance_of_a_difference_is_that_of_many_draws():
    "Equation 3 against a count: same items, half of them, and none in common"
    rng = np.random.default_rng(0)
    a, b = rng.random(400) < 0.6, rng.random(400) < 0.5
    b = np.where(rng.random(400) < 0.5, a, b)
    for step in (0, 20, 40):
        apart, said = [], []
        for _ in range(600):
            order = rng.permutation(400)
            mine, theirs = order[:40], order[step : step + 40]
            one, two = a[mine].astype(float), b[theirs].astype(float)
            apart.append(one.mean() - two.mean())
            parts = pd.Series(one - one.mean(), mine), pd.Series(
                two - two.mean(), theirs
            )
            said.append(residual_variance(*parts, 400))
        assert np.mean(said) == pytest.approx(np.var(apart), rel=0.2)


def hidden(run, row):
    "The same evaluation, told a row of which the wrong answers are left blank"
    twin = Evaluation(
        run.method, source=run.source, errors=run.left_out_by_budget.get(20)
    )
    while asked := twin.ask():
        twin.tell({n: row[n] if row[n] > 0.5 else np.nan for n in asked})
    return twin


LATE = pytest.param("adaptive_irt", marks=pytest.mark.slow)


@pytest.mark.parametrize("name", ["random", "aipw", "kmeans", LATE])
def test_wrong_answers_left_blank_decide_no_comparison(name):
    "The other model is better, and the interval holds the difference of the two"
    target = table(1, 80).split("random", seed=0)[1]
    rows = [dict(zip(target.items.index, x, strict=True)) for x in target.values * 1.0]
    rank = np.argsort(target.truth().to_numpy())
    for worse, better in zip(rank[:2], rank[::-1][:2], strict=True):
        b = evaluate(name, row=int(better), many=True)
        a = hidden(evaluate(name, row=int(worse), many=True), rows[worse])
        truth = target.truth().iloc[worse] - target.truth().iloc[better]
        for found, sign in (
            (compare_evaluations(a, b), 1),
            (compare_evaluations(b, a), -1),
        ):
            low, high = found.interval
            assert low <= sign * truth <= high and "no score" in found.note
            assert sign * (found.better - 0.5) < 0.475


def test_an_unscored_item_of_one_may_be_worth_0_or_1():
    "Ten items: all right, and six right of which the four wrong ones are blank"
    names = "abcdefghij"
    a = dict.fromkeys(names, 1.0) | dict.fromkeys("abcd", 0.0)
    b = dict.fromkeys(names, 1.0) | dict.fromkeys("abcd", np.nan)
    one, two = paired(a, b, total=10), paired(b, a, total=10)
    assert one.interval == pytest.approx((-0.4, 0.0)) and one.better == 0.5
    assert two.interval == pytest.approx((0.0, 0.4)) and "4 items" in two.note
    both = paired(b, b)
    assert both.interval[0] < 0 < both.interval[1]


def test_answers_that_the_other_lacks_are_counted():
    "Two random plans of 20 items, one of them short of 5 answers"
    a, b = (evaluate("random", row=row, many=True) for row in (0, 1))
    short = Evaluation(b.method, source=b.source)
    short.tell({n: b.answers[n] for n in short.ask()[:15]})
    found = compare_evaluations(a, short)
    assert found.items == 15 and "5 items of A have no score in B" in found.note
    assert "wrong answers" not in found.note
    assert "no score" not in compare_evaluations(a, b).note


# The probability that A is better: the share of pairs with such answers ------------


def as_said(said, right):
    "In every band of probabilities, what is said to hold holds as often"
    said, right = np.array(said), np.array(right)
    right = np.where(said >= 0.5, right, 1 - right)
    said = np.maximum(said, 1 - said)
    for low, high in ((0.55, 0.75), (0.75, 0.9), (0.9, 0.97), (0.97, 1.0)):
        some = (low <= said) & (said <= high)
        assert some.sum() >= 20
        noise = 3 * np.sqrt(said[some].mean() * (1 - said[some].mean()) / some.sum())
        assert abs(said[some].mean() - right[some].mean()) < 0.02 + noise


@pytest.mark.parametrize("name", ["helm_medqa", "ifeval", "swebench_verified"])
def test_a_probability_from_single_items_is_right_as_often_as_it_says(name):
    table, rng, said, right = load(name), np.random.default_rng(0), [], []
    values, truth = table.values.astype(float), table.truth().to_numpy()
    for size in (20, 50) * 400:
        pair = rng.choice(len(values), 2, replace=False)
        some = rng.choice(table.shape[1], size, replace=False)
        a, b = (dict(zip(some, values[row, some], strict=True)) for row in pair)
        said.append(paired(a, b, total=table.shape[1]).better)
        right.append(np.sign(truth[pair[0]] - truth[pair[1]]) / 2 + 0.5)
    as_said(said, right)


@pytest.mark.slow
def test_a_probability_from_estimates_is_right_as_often_as_it_says():
    "Over pairs of models that had no part in the errors that it is made from"
    said, right, rng = [], [], np.random.default_rng(0)
    for name in ("helm_gsm8k", "helm_medqa", "swebench_verified"):
        for method in ("kmeans", "p_irt"):
            errors = left_out_errors(get_method(method, folds=0), load(name), 30, 5)
            for _ in range(20):
                drawn = rng.permutation(len(errors))
                new, old = errors.iloc[drawn[:20]], errors.iloc[drawn[20:]]
                for _, part in new.groupby("fold"):
                    for one, two in zip(
                        part.index[:-1:2], part.index[1::2], strict=True
                    ):
                        both = part[["estimate", "truth"]].astype(float)
                        apart = both.loc[one] - both.loc[two]
                        said.append(difference_interval(apart["estimate"], old)[2])
                        right.append(np.sign(apart["truth"]) / 2 + 0.5)
    as_said(said, right)


# The result in words -----------------------------------------------------------------


def test_no_probability_is_certain_and_a_tie_is_a_tie():
    sure = PairedResult(
        difference=-0.12, interval=(-0.16, -0.08), better=1e-9, items=500
    )
    text = sure.sentence("v1", "v2")
    assert text.startswith("v2 is better than v1 by 12.0 ± 4.0 points (95% interval)")
    assert "probability more than 99.9%" in text and "100.0%" not in text
    assert "B is better (more than 99.9%)" in repr(sure)
    open_ = PairedResult(
        difference=0.03, interval=(-0.02, 0.08), better=0.88, items=60
    ).sentence("v1", "v2")
    assert open_.startswith("Not decided: v1 is ahead of v2 by 3.0 ± 5.0 points")
    assert "better with probability 88.0%" in open_
    tie = PairedResult(difference=0.0, interval=(-0.05, 0.05), better=0.5, items=60)
    assert tie.sentence().startswith("A tie: the difference of A and B is 0.0 ± 5.0")
    assert "better" not in tie.sentence() and "a tie" in repr(tie)
    exact = PairedResult(difference=0.0, interval=(0.0, 0.0), better=0.5, items=60)
    exactly = "v1 and v2 score the same in these runs: every item was run"
    assert exact.sentence("v1", "v2") == exactly
    few = PairedResult(
        difference=0.2, interval=(0.1, 0.4), better=1.0, items=60, least=1 / 42
    )
    assert few.probability() == "more than 97.6%"
    assert "20.0 points (95% interval 10.0 to 40.0)" in few.sentence()


@pytest.mark.parametrize("level", [0.8, 0.95, 0.99])
@pytest.mark.parametrize("asked", [2, 4, 5, 6, 7, 8, 9, 12, 30])
def test_too_few_items_or_differences_are_those_that_no_winner_could_decide(
    asked, level
):
    fewest = fewest_wins(asked, level)
    right = dict.fromkeys(range(asked), 1.0)
    for wins in range(asked + 1):
        other = right | dict.fromkeys(range(wins), 0.0)
        result = paired(right, other, level=level)
        assert result.differ == wins
        decided = result.evidence is Evidence.DIFFERENT
        assert decided == (wins >= fewest) == (result.interval[0] > 0)
        if not decided:
            few = Evidence.FEW_ITEMS if asked < fewest else Evidence.FEW_DIFFER
            assert result.evidence is few
            needed = fewest_items(level) if asked < fewest else fewest
            assert f"takes {needed}" in result.sentence()


def test_balanced_wins_rule_out_what_lies_beyond_the_interval():
    a = {n: float(n % 2) for n in range(100)}
    b = {n: float(n % 2 == 0) if n < 40 else a[n] for n in range(100)}
    result = paired(a, b)
    assert result.evidence is Evidence.BOUNDED
    assert result.rules_out == max(map(abs, result.interval))
    points = format_points(result.rules_out)
    assert f"Differences above {points} points are ruled out" in result.sentence()


def test_a_score_at_its_bound_is_said():
    right = dict.fromkeys(range(20), 1.0)
    most = right | dict.fromkeys(range(8), 0.0)
    text = paired(right, most).sentence("old", "new")
    assert text.endswith("old solved all of the 20 items: harder ones would show more")
    none = dict.fromkeys(range(20), 0.0)
    assert "old and new solved none" in paired(none, none).sentence("old", "new")
    assert "solved" not in paired(most, most | {19: 0.0}).sentence()


def test_where_unscored_items_decide_no_probability_is_printed():
    names = [f"i{k}" for k in range(40)]
    b = {name: float(k % 2) for k, name in enumerate(names)}
    a = b | {names[4]: 1.0}
    b |= dict.fromkeys(names[::3], np.nan)
    found = paired(a, b)
    assert found.unscored == 14 and found.interval[0] < 0 < found.interval[1]
    text = found.sentence()
    assert "the 14 items without a score decide which is better" in text
    assert "probability" not in text
