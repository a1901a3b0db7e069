"The best of several candidates: who is out, who has won, and that the promise is kept"

import numpy as np
import pandas as pd
import pytest

from benchnb.data.scores import Scores
from benchnb.evaluation.registry import get_method
from benchnb.live.evaluation import Evaluation
from benchnb.live.race import (
    judge_live_race,
    judge_race,
    learn_capital,
    race,
    races_right,
)
from benchnb.live.stopping import judge_standing


def models(number, items=200, seed=0, step=0.03):
    "Models whose chances are so far apart; easy items are easy for all"
    rng = np.random.default_rng(seed)
    ease = rng.uniform(-0.4, 0.4, items)
    chance = np.clip(0.4 + step * np.arange(number)[:, np.newaxis] + ease, 0, 1)
    values = (rng.random((number, items)) < chance).astype(float)
    return Scores(values, models=pd.DataFrame(index=[f"m{n}" for n in range(number)]))


def test_the_promise_is_kept_when_all_are_nearly_equal():
    right = []
    for seed in range(60):
        table = models(6, seed=seed, step=0.01)
        found, truth = race(table, within=0.01, seed=seed), table.truth()
        right.append(truth[found.winner] >= truth.max() - 0.01 - 1e-9)
    assert np.mean(right) >= 0.95


def test_weak_candidates_fall_out_early_and_the_winner_is_the_best():
    table = models(6, items=600, step=0.1)
    found = race(table)
    assert found.winner == "m5" and found.share < 0.5
    asked = list(found.answered.values())
    assert asked[0] < asked[5] == max(asked) and min(asked) >= 20
    assert found == race(table) and found != race(table, seed=1)


def test_a_judgement_agrees_with_pairs():
    "The leader against each other is a sequence of its own"
    source = models(40, seed=1)
    fitted, table = get_method("random").fit(source), models(4, seed=2, step=0.12)
    runs = {n: Evaluation(fitted, 200, batch=60) for n in table.models.index}
    for name, row in zip(runs, table.values.astype(float), strict=True):
        runs[name].tell(pd.Series(row, table.items.index)[runs[name].ask()])
    status = judge_live_race(runs)
    order = source.items.index.get_indexer(list(runs["m0"].answers))
    answers = table.values.astype(float)[:, order]
    stay, leader, won = judge_race(answers, 200, enough=3 / 0.05)
    lead = list(runs)[leader]
    low = [
        judge_standing(runs[lead], runs[n], level=1 - 2 * 0.05 / 3).interval[0]
        for n in runs
    ]
    assert [x > 0 for x in low] == list(~stay)
    assert not any(
        status.beaten[n] is None and not s for n, s in zip(runs, stay, strict=True)
    )
    assert (status.winner == lead) == won


def test_a_learned_promise_asks_less_and_is_kept_by_the_sources():
    source = models(30, seed=3, step=0.015)
    enough = learn_capital(source, 5, races=40, within=0.02)
    assert 1 < enough <= 4 / 0.05
    assert races_right(source, 5, enough, 0.02, 40, 0) >= 0.95
    table = models(5, seed=4, step=0.05)
    quick, sure = race(table, 0.02, enough=enough), race(table, 0.02)
    assert quick.share <= sure.share
    with pytest.raises(ValueError, match="30 sources are too few to learn from races"):
        learn_capital(source, 16)


@pytest.mark.parametrize(
    "wrong, message",
    [
        (dict(within=2), "within must lie in"),
        (dict(level=0.2), "level must lie in"),
        (dict(candidates=models(1)), "two candidates or more, got 1"),
    ],
)
def test_what_is_no_race_is_refused(wrong, message):
    with pytest.raises(ValueError, match=message):
        race(**(dict(candidates=models(3)) | wrong))
