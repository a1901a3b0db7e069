"""An interval holds too where only some of the items that were asked have a score"""

import warnings

import numpy as np
import pandas as pd
import pytest
from helpers.small import halves
from helpers.small import table as small_table

from benchnb import get_method, load
from benchnb.evaluation.guard import Guard
from benchnb.evaluation.left_out import calibrate_guard, left_out_errors
from benchnb.evaluation.method import Flag, IntervalKind
from benchnb.evaluation.simulate import AskTellSession, prepare_method, run_session
from benchnb.live.evaluation import Evaluation

SCORED = (1, 3, 5, 10, 25, 50)  # of 50 items asked
METHODS = ["random", "stratified", "difference", "aipw", "guarded_irt"]
METHODS += ["p_irt", "gp_irt", "anchor_irt", "kmeans", "anchor_points"]
METHODS += ["sort_and_search", "metabench", "essence_bench", "proeval"]
METHODS += ["guarded_irt(rounds=5)", "adaptive_irt", "faq", "tailored_bench"]
METHODS += ["tailored_bench_published", "collaborative_filtering"]
METHODS += ["disco", "sparse_eval", "atlas", "lego_irt"]


def some_scored(row, keep):
    "Answers of which only those at the positions `keep` in the order asked are known"

    def answer(conversation):
        place = len(conversation.asked) + np.arange(len(conversation.wanted))
        answers = row[conversation.wanted]
        return np.where(np.isin(place, keep), answers, np.nan), None, None

    return answer


def wrong_blank(row, size, budget):
    "Answers of which the first `budget - size` wrong ones are not known"
    hidden = [0]

    def answer(conversation):
        answers = row[conversation.wanted]
        blank = np.cumsum(answers < 0.5) + hidden[0] <= budget - size
        hidden[0] += (blank & (answers < 0.5)).sum()
        return np.where(blank & (answers < 0.5), np.nan, answers), None, None

    return answer


def estimates(
    name, table, sizes=SCORED, budget=50, splits=2, policy="aipw", blank=False
):
    "Scores and intervals of new models, with `sizes` of their answers"
    found = []
    for seed in range(splits):
        rng = np.random.default_rng([seed, 36])
        order = rng.permutation(len(table))
        old, new = (table.select(models=np.sort(x)) for x in np.array_split(order, 2))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            method = prepare_method(get_method(name).fit(old), budget, seed)
            guard = calibrate_guard(get_method(name), old, budget, policy, folds=5)
            for row, truth in zip(new.values.astype(float), new.truth(), strict=True):
                for size in sizes:
                    keep = rng.choice(budget, size, replace=False)
                    run = AskTellSession(method)
                    given = wrong_blank(row, size, budget) if blank else None
                    run_session(run, given or some_scored(row, keep))
                    e = (guard or Guard(None))(run)
                    found.append((size, truth, e.score, *e.interval))
    return np.array(found)


def coverage(found):
    "Share of the intervals that hold, for each number of scored items; NaN: none"
    size, truth, _, low, high = found.T
    holds = np.where(np.isnan(low), np.nan, (low <= truth) & (truth <= high))
    width = high - low
    return {
        int(n): (np.nanmean(holds[size == n]), np.nanmean(width[size == n]))
        for n in np.unique(size)
    }


@pytest.mark.night
@pytest.mark.parametrize("blank", [False, True])
@pytest.mark.parametrize("name", ["random", "p_irt", "kmeans", "guarded_irt"])
def test_intervals_hold_however_few_items_are_scored(name, blank):
    "At random, or only right answers as far as there are any"
    table = load("swebench_verified").select(models=np.arange(0, 134, 3))
    found = coverage(estimates(name, table, (1, 10, 25, 50), splits=3, blank=blank))
    assert found[25][0] >= max(0.93, found[50][0] - 1e-9)
    if not blank:  # else a model with few wrong answers has more than these
        assert np.isnan(found[1][0]) and np.isnan(found[10][0])


def test_wrong_answers_left_blank_do_not_narrow_the_interval():
    table = load("swebench_verified")
    old, new = table.select(models=np.arange(133)), table.select(models=[133])
    for name in ("random", "kmeans"):
        method = prepare_method(get_method(name).fit(old), 50)
        run = AskTellSession(method)
        row = new.values[0].astype(float)
        run_session(
            run, lambda c, row=row: (np.where(row[c.wanted] > 0, 1, np.nan), None)
        )
        found = Guard("aipw", np.nanmean(old.values, axis=0))(run)
        assert found.bounds[0] < found.score == 1
        assert not any("all the same" in note for note in found.notes)
        full = AskTellSession(method)
        run_session(full, lambda c, row=row: (row[c.wanted], None))
        np.testing.assert_allclose(found.bounds[0], full.estimate.score)
        low, high = full.estimate.interval  # of the same run, had it hidden nothing
        assert found.interval[0] <= low < high <= found.interval[1]


def test_no_interval_and_no_rank_where_fewer_than_half_are_scored():
    table = load("swebench_verified")
    old, row = table.select(models=np.arange(133)), table.values[133].astype(float)
    ease = np.nanmean(old.values, axis=0)
    for name, policy in (("random", "aipw"), ("kmeans", "aipw"), ("kmeans", None)):
        method = prepare_method(get_method(name).fit(old), 50)
        for size in (24, 25):
            run = AskTellSession(method)
            run_session(run, some_scored(row, np.arange(size)))
            found = Guard(policy, ease)(run)
            assert (Flag.FEW_ITEMS in found.flags) == (size == 24)
            assert size == 25 or found.kind is IntervalKind.NONE
            bare = name == "kmeans" and Flag.OUT_OF_RANGE in found.flags
            assert np.isnan(found.rank) == (size == 24 or bare)
            assert size == 25 or np.isnan(found.interval).all()
            assert found.bounds[1] - found.bounds[0] > 0.3


LATE = pytest.param("adaptive_irt", marks=pytest.mark.slow)


@pytest.mark.parametrize("name", ["aipw", "kmeans", "per_task(random)", LATE])
def test_an_interval_of_a_task_holds_with_its_wrong_answers_left_blank(name):
    source, target = halves(small_table(1, 80))
    errors, holds = left_out_errors(get_method(name), source, 40, 6), []
    fitted, truth = get_method(name).fit(source), target.performance(by="task")
    for row, model in enumerate(target.models.index):
        live = Evaluation(fitted, 40, errors=errors, source=source)
        known = pd.Series(target.values[row].astype(float), target.items.index)
        task = target.items["task"]
        first = task == task.iloc[0]  # of this task the wrong answers are hidden
        live_answers = known.where(~first | (known > 0.5))
        while asked := live.ask():
            live.tell(live_answers[asked])
        part = live.report()["tasks"][task.iloc[0]]
        low, high = part["interval"]
        if low is not None:
            holds.append(low <= truth.loc[model, task.iloc[0]] <= high)
    assert not holds or np.mean(holds) >= 0.93


@pytest.mark.parametrize("name", ["kmeans", LATE])
def test_a_task_of_which_hardly_anything_was_scored_has_no_interval(name):
    source, target = halves(small_table(1, 80))
    errors = left_out_errors(get_method(name), source, 40, 6)
    live = Evaluation(get_method(name).fit(source), 40, errors=errors, source=source)
    known = pd.Series(target.values[0].astype(float), target.items.index)
    task = target.items["task"]
    live_answers = known.where(task != task.iloc[0])
    while asked := live.ask():
        live.tell(live_answers[asked])
    tasks = live.report()["tasks"]
    first = tasks.pop(task.iloc[0])
    assert first["interval"] == [None, None] and first["kind"] == "none"
    assert all(part["interval"][0] is not None for part in tasks.values())
