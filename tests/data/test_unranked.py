"No rank among sources whose holes depend on scores, or for answers of another kind"

import numpy as np
import pytest
from helpers.evaluations import evaluate
from helpers.small import halves, table

from benchnb.cli.report import format_report
from benchnb.data.scores import Scores
from benchnb.data.sources import load
from benchnb.data.splits import missing_by_easiness, reason_not_to_rank
from benchnb.evaluation.registry import get_method
from benchnb.evaluation.simulate import prepare_method, simulate
from benchnb.live.evaluation import Evaluation


def many(seed=0):
    "80 models x 60 items, without the facts that a test does not need"
    return Scores(table(seed, 80).values)


def losing(scores, lost):
    "The same without some of the scores"
    return Scores(np.where(lost, np.nan, scores.values), scores.items, scores.models)


HALF = (np.arange(80) % 2 == 0)[:, np.newaxis]


def losses(values, seed=0):
    "Ways in which scores are lost, and whether a rank remains"
    rng = np.random.default_rng(seed)
    chance = rng.random(values.shape)
    hard = values.mean(axis=0) < 0.5
    return {
        "none": (np.zeros(values.shape, bool), True),
        "at random": (chance < 0.3, True),
        "at random, of half": ((chance < 0.5) & HALF, True),
        "the same items of half": ((chance[0] < 0.3) & HALF, True),
        "at random, few": (chance < 0.02, True),
        "wrong ones of half": (HALF & (values == 0), False),
        "most wrong ones of half": (HALF & (values == 0) & (chance < 0.7), False),
        "some wrong ones": ((values == 0) & (chance < 0.4), False),
        "right ones": ((values == 1) & (chance < 0.4), False),
        "hard items of half": (HALF & hard, False),
        "hard items, in part": (HALF & hard & (chance < 0.5), False),
        "hard items of two": ((np.arange(80) < 2)[:, np.newaxis] & hard, True),
    }


@pytest.mark.parametrize("name", losses(many().values))
def test_holes_that_depend_on_scores_leave_no_rank(name):
    scores = many()
    lost, is_ranked = losses(scores.values)[name]
    line = reason_not_to_rank(losing(scores, lost))
    assert bool(line) != is_ranked, line
    assert "\n" not in line and len(line) < 300


@pytest.mark.slow
@pytest.mark.parametrize("name", ["swebench_verified", "ifeval", "helm_medqa"])
def test_holes_at_random_leave_the_rank(name):
    "In real tables, 200 times"
    scores = load(name)
    rng = np.random.default_rng(0)
    for trial in range(200):
        share = rng.choice([0.01, 0.1, 0.5])
        rows = rng.random(len(scores)) < rng.choice([0.1, 0.5, 1])
        lost = (rng.random(scores.shape) < share) & rows[:, np.newaxis]
        assert not reason_not_to_rank(
            Scores(np.where(lost, np.nan, scores.values))
        ), trial


def test_sources_that_are_right_wherever_they_have_a_score_are_named():
    scores = many()
    lost = (scores.values == 0) & np.isin(np.arange(80), [50, 53])[:, np.newaxis]
    line = reason_not_to_rank(losing(scores, lost))
    assert line.startswith("no rank: 2 of 80 sources are right wherever they have a ")
    assert "(model50, model53)" in line
    every = reason_not_to_rank(losing(scores, HALF & (scores.values == 0)))
    assert "12 of 80" in every and every.count("model") == 3 and ", ...)" in every


def test_a_perfect_model_with_holes_is_believed_where_another_was_perfect():
    values = many().values.copy()
    values[:2] = 1
    values[0, ::3] = np.nan
    assert not reason_not_to_rank(Scores(values))
    values[1, 0] = 0
    assert not reason_not_to_rank(Scores(values))  # the first model has no score there
    values[1, 1] = 0
    assert "(model0)" in reason_not_to_rank(Scores(values))


def test_the_test_of_holes_is_one_of_items_drawn_at_random():
    "z of a slow version that draws them"
    values = many().values.copy()
    rng = np.random.default_rng(1)
    missing = rng.random(60) < 0.3
    values[0, missing] = np.nan
    easiness = values[1:].mean(axis=0)
    drawn = [rng.permutation(easiness)[missing].mean() for _ in range(20_000)]
    slow = (easiness[missing].mean() - easiness.mean()) / np.std(drawn)
    z, (bias,) = missing_by_easiness(values)
    assert z == pytest.approx(slow, rel=0.03)
    assert bias == pytest.approx(easiness[~missing].mean() - easiness.mean(), rel=1e-3)


def test_full_scores_of_the_sources_need_no_items():
    scores = many()
    lost = HALF & (scores.values == 0)
    models = scores.models.assign(full_score=scores.performance())
    assert not reason_not_to_rank(
        Scores(np.where(lost, np.nan, scores.values), models=models)
    )


@pytest.mark.parametrize("method", ["random", "guarded_irt", "aipw"])
def test_an_estimate_says_so_and_has_no_rank(method, tmp_path):
    source, target = table(1, 80).split("random", seed=0)
    lost = (source.values == 0) & (np.arange(len(source)) % 2 == 0)[:, np.newaxis]
    with_holes = losing(source, lost)
    run = Evaluation(get_method(method).fit(with_holes), 20, folder=tmp_path / "e")
    while asked := run.ask():
        run.tell(
            {
                n: float(x)
                for n, x in zip(target.items.index, target.values[0], strict=True)
                if n in asked
            }
        )
    for live in (run, Evaluation.load(tmp_path / "e")):
        estimate, report = live.estimate(), live.report()
        assert np.isnan(estimate.rank) and estimate.task_ranks is None
        assert report["rank"] is None and report["rank_interval"] == [None, None]
        assert (
            sum("right wherever they have a score" in n for n in report["notes"]) == 1
        )
        assert "rank   " not in format_report(report)
    rest = {
        n: float(x) for n, x in zip(target.items.index, target.values[0], strict=True)
    }
    run.tell({n: x for n, x in rest.items() if n not in run.answers})
    report = run.report()
    assert report["exact"] is not None and report["exact_rank"] is None
    assert "rank " not in format_report(report).partition("no rank")[0]


def test_confidences_are_not_ranked_among_what_is_right_or_wrong():
    source, target = halves()
    method = prepare_method(get_method("random").fit(source), 20, 0)
    confident = Scores(0.1 + 0.8 * target.values, target.items, target.models)
    for estimate in simulate(method, confident, 20):
        assert np.isnan(estimate.rank)
        assert "20 of the 20 answers lie between 0 and 1" in estimate.notes[-1]
    for estimate in simulate(method, target, 20):
        assert estimate.rank > 0 and not estimate.unranked
    graded = Scores(0.1 + 0.8 * source.values, source.items, source.models)
    method = prepare_method(get_method("random").fit(graded), 20, 0)
    assert not any(x.unranked for x in simulate(method, confident, 20))


def test_means_over_runs_are_ranked_where_the_runs_are_told():
    source, target = halves()
    live = Evaluation(get_method("random").fit(source), 20)
    live.tell({name: {"1": 1, "2": 0} for name in live.ask()})
    assert live.estimate().rank > 0
    live = Evaluation(get_method("random").fit(source), 20)
    live.tell(dict.fromkeys(live.ask(), 0.5))
    assert (
        np.isnan(live.estimate().rank) and "or every run" in live.report()["notes"][-1]
    )


def test_ranks_of_the_small_table_stay():
    assert evaluate("guarded_irt").report()["rank"] is not None
