"Whether a comparison is decided, at any moment of two evaluations"

import numpy as np
import pandas as pd
import pytest
from helpers.small import table

from benchnb.data.scores import Scores
from benchnb.evaluation.registry import get_method
from benchnb.live.comparison import Outcome
from benchnb.live.evaluation import Evaluation
from benchnb.live.race import judge_live_race
from benchnb.live.stopping import answers_in_order, judge_standing, shared_order


def equal(scores=None):
    "The small table of 80 models with equal weights"
    scores = scores or table(1, 80)
    return Scores(scores.values, scores.items.assign(weight=1.0), scores.models)


def begun(method="aipw", budget=60, batch=10, seed=0, folder=None):
    "An evaluation in batches"
    source = equal().split("random", seed=0)[0]
    fitted, how = get_method(method).fit(source), dict(batch=batch, source=source)
    return Evaluation(fitted, budget, seed=seed, folder=folder, **how)


def tell(run, row, batches=1):
    "Answer some batches; a row is a number, or the share of right answers"
    for _ in range(batches):
        asked = run.ask()
        run.tell(pd.Series(row, run.items.index, dtype=float)[asked])


def test_batches_follow_the_draw(tmp_path):
    run = begun(folder=tmp_path / "a")
    drawn = list(run.items.index[run.method.coreset_])
    assert run.ask() == drawn[:10]
    tell(run, 1.0, 2)
    assert run.ask() == drawn[20:30] and answers_in_order(run) == drawn[:20]
    run.tell({drawn[25]: 0.0})  # early
    assert answers_in_order(run) == drawn[:20]
    again = Evaluation.load(tmp_path / "a")
    assert again.plan.batch == 10 and again.ask() == run.ask()
    assert again.sources().fingerprint() == run.source.fingerprint()
    assert judge_standing(again, within=0.05) == judge_standing(run, within=0.05)


def test_the_better_model_is_named_in_both_directions():
    strong, weak = begun(), begun()
    assert judge_standing(strong, weak).outcome is Outcome.OPEN
    for run, row in ((strong, 1.0), (weak, 0.0)):
        tell(run, row, 2)
    one, two = judge_standing(strong, weak), judge_standing(weak, strong)
    assert one.outcome is Outcome.A_BETTER and two.outcome is Outcome.B_BETTER
    np.testing.assert_allclose(one.interval, np.negative(two.interval)[::-1], atol=1e-9)
    assert one.decided and not judge_standing(begun(), begun()).decided
    assert one.sentence("new", "old").startswith(
        "You may stop: new is better than old. After 20 of "
    )
    assert "B scores " in two.sentence() and "points more than A" in two.sentence()
    tell(weak, 0.0)
    assert judge_standing(strong, weak).items == 20  # what both have answered


def test_the_same_model_is_within_the_margin_when_much_was_asked():
    total = table(1, 80).shape[1]
    runs = [begun(budget=total, batch=total - 2) for _ in range(2)]
    for run in runs:
        tell(run, 1.0)
    assert judge_standing(*runs).outcome is Outcome.OPEN  # no margin was named
    found = judge_standing(*runs, within=0.1)
    assert found.outcome is Outcome.WITHIN
    assert "You may stop: A and B are within 10 points" in found.sentence()
    score = judge_standing(runs[0], within=0.1)
    assert score.outcome is Outcome.WITHIN and "the score lies" in score.sentence()


def test_unscored_items_are_left_out():
    one, two = begun(), begun()
    for run in (one, two):
        tell(run, 1.0 if run is one else 0.0)
    asked = one.ask()
    one.tell(dict.fromkeys(asked, np.nan))
    two.tell(dict.fromkeys(asked, 0.0))
    found = judge_standing(one, two)
    assert found.items == 20 and found.interval[0] <= 1 <= found.interval[1]


def test_what_cannot_be_compared_is_refused():
    one, other = begun(), begun(seed=1)
    for run in (one, other):
        tell(run, 1.0)
    with pytest.raises(ValueError, match="the same method, budget and seed"):
        shared_order(one, other)
    weighted = get_method("aipw").fit(table(1, 80))
    with pytest.raises(ValueError, match="equal items in random order"):
        judge_standing(Evaluation(weighted, 20))


def test_wrong_answers_left_blank_decide_nothing():
    "A is right on half of the items, B on a third, and hides its wrong answers"
    runs, number = [begun(), begun()], np.arange(len(begun().items))
    half, third = number % 2 == 0, number % 3 == 0
    for run, row in zip(runs, (half, np.where(third, 1, np.nan)), strict=True):
        tell(run, row, 6)
    found, (low, high) = judge_standing(*runs), judge_standing(runs[1]).interval
    assert found.interval[0] <= half.mean() - third.mean() <= found.interval[1]
    assert found.outcome is not Outcome.B_BETTER and low <= third.mean() < high
    race = judge_live_race(dict(zip("ab", runs, strict=True)))
    assert race.beaten["a"] is None and race.winner != "b"


@pytest.mark.parametrize("method", ["kmeans", "aipw"])
def test_an_exact_score_decides_by_the_items_that_the_other_was_asked(method):
    a, source = begun(), begun().source
    other = Evaluation(get_method(method).fit(source), 20, seed=9, source=source)
    other.tell(pd.Series(0.0, other.items.index))  # all 60 items, 20 of them asked
    assert other.full_score() == 0 and len(other.answers) == 20
    tell(a, 1.0, 2)
    found, back = judge_standing(a, other), judge_standing(other, a)
    assert found.outcome is Outcome.A_BETTER and found.items == 20
    assert back.outcome is Outcome.B_BETTER
