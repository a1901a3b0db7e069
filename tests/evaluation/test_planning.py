"Plans from the sources alone: slow references, what is drawn for whom, bad input"

from math import comb

import numpy as np
import pandas as pd
import pytest
from helpers.small import files_in, table

from benchnb.cli.app import main
from benchnb.data.scores import Scores
from benchnb.evaluation.compare import compare, summarize_trials
from benchnb.evaluation.planning import (
    PLAN_METHODS,
    FewSources,
    difference_spread,
    error_for_power,
    items_curve,
    items_for_difference,
    items_for_error,
    items_needed,
    power_curve,
    reach,
    select_small_table,
    sources_curve,
)
from benchnb.evaluation.registry import get_method
from benchnb.evaluation.simulate import prepare_method, simulate
from benchnb.stats.sample_size import (
    score_spread,
    textbook_half_width,
    textbook_items,
)

QUICK = ["random", "stratified", "aipw"]


@pytest.fixture(scope="module")
def items():
    return items_curve(table(), QUICK, [10, 20, 40], trials=3)


@pytest.fixture(scope="module")
def sources():
    return sources_curve(table(), QUICK, [4, 8, 16], budget=15, trials=3)


# the textbook


def test_the_textbooks_half_width_is_the_spread_of_all_draws():
    total, right, n = 8, 3, 4
    k = np.arange(n + 1)
    chance = np.array([comb(right, i) * comb(total - right, n - i) for i in k])
    chance = chance / comb(total, n)
    mean = chance @ (k / n)
    error = np.sqrt(chance @ (k / n - mean) ** 2)
    spread = np.sqrt(right / total * (1 - right / total))
    assert textbook_half_width(n, total, spread) == pytest.approx(1.959964 * error)


def test_spread_counts_weights_and_leaves_gaps_out():
    facts = pd.DataFrame({"weight": [3, 1, 1]}, index=["x", "y", "z"])
    want = np.sqrt(0.75 * 0.25**2 + 0.25 * 0.75**2)
    assert score_spread(Scores([[1, 0, np.nan]], facts)) == pytest.approx(want)


# what is held out


@pytest.mark.parametrize("split", ["random", "family", "ability", "date", "given"])
def test_few_models_are_held_out_and_the_input_stays(split):
    scores = table()
    before = scores.models.copy()
    small = select_small_table(scores, split, targets=3, most=10)
    source, target = small.first_split(seed=0)
    assert len(target) >= 1 and not set(source.models.index) & set(target.models.index)
    assert len(small.scores) <= 13
    if small.split == "given":
        whole = [set(part.models.index) for part in scores.split(split)]
        assert set(source.models.index) <= whole[0]
        assert set(target.models.index) <= whole[1]
    pd.testing.assert_frame_equal(scores.models, before)


def test_all_sources_are_as_good_as_no_wrapper():
    source, target = table().split("given")
    few = prepare_method(FewSources(get_method("aipw"), len(source)).fit(source), 15)
    plain = [e.score for e in simulate(few.inner_, target)]
    assert [e.score for e in simulate(few, target)] == plain


@pytest.mark.parametrize("name", PLAN_METHODS)
def test_five_sources_are_enough_to_run(name):
    curve = sources_curve(table(), [name], [5], budget=20, trials=1)
    assert curve["mae"].between(0, 1).all()


# curves


def test_items_curve_is_what_compare_measures(items):
    small, split, share = select_small_table(table())
    frame = compare(small, QUICK, [10, 20, 40], 3, split=split, sources=share).frame
    mae = summarize_trials(frame).groupby(["method", "budget"])["mae"].mean()
    got = items.set_index(["method", "budget"])["mae"]
    assert got.to_dict() == pytest.approx(mae.to_dict())


@pytest.mark.slow
def test_curves_do_not_depend_on_jobs_or_a_journal(tmp_path, sources):
    settings = dict(methods=QUICK, counts=[4, 8, 16], budget=15, trials=3)
    for journal in [tmp_path / "plan.sqlite"] * 2:  # the second run reads the first's
        again = sources_curve(table(), journal=journal, **settings)
        pd.testing.assert_frame_equal(again, sources)
    two = sources_curve(table(), n_jobs=2, **settings)
    pd.testing.assert_frame_equal(two, sources)


# reading off


def test_reach_follows_the_finite_population():
    budgets = np.array([20, 200])
    for total in (277, 1319, 1e6):
        half_width = textbook_half_width(budgets, total)
        for goal in (0.1, 0.15):
            want = textbook_items(goal, total)
            assert reach(budgets, half_width, goal, total) == pytest.approx(want, abs=1)


def test_reach_is_monotone_in_the_goal():
    budgets, values = np.array([20, 50, 100, 200]), [0.3, 0.2, 0.22, 0.1]
    found = [reach(budgets, values, goal, 1000) for goal in np.linspace(0.1, 0.35, 40)]
    assert (np.diff(found) <= 0).all() and found[-1] == 20 and found[0] == 200


def made(half_width, error=0.0, coverage=0.95):
    "A curve of one method at 20, 50 and 100 of 1,000 items"
    facts = {"method": "m", "budget": [20, 50, 100], "items": 1000, "spread": 0.5}
    facts |= {
        "half_width": half_width,
        "half_width_se": error,
        "mae": 0.05,
        "mae_se": 0.0,
    }
    return pd.DataFrame(facts | {"coverage": coverage})


@pytest.mark.parametrize(
    "curve, text",
    [
        (made([0.2, 0.15, 0.02], 0.0005), "100 (100 to more than 100)"),
        (made([0.2, 0.15, 0.01], np.nan), "95 (error unknown)"),
        (made([np.nan] * 3, np.nan), "no interval"),
        (made([0.015, 0.01, 0.005], coverage=0.5), "20 or fewer, holds 50%"),
    ],
)
def test_an_answer_in_words(curve, text):
    assert items_needed(curve, half_width=0.02)["text"]["m"] == text


def test_amounts_are_read_off_in_items():
    curve = items_curve(table(), ["random"], ["2ktokens", "8ktokens"], trials=3)
    items = items_needed(curve, mae=0.2)["items"]
    assert items["random"] == curve["asked"].iloc[0].round()


# two models


def test_the_wanted_error_gives_the_wanted_power():
    "A normal estimate of the difference, a million times"
    error = error_for_power(0.03, 0.8)
    drawn = np.random.default_rng(0).normal(0.03, error, 1_000_000)
    assert np.mean(drawn > 1.959964 * error) == pytest.approx(0.8, abs=0.002)
    with pytest.raises(ValueError, match="power lies between"):
        error_for_power(0.03, 1.2)
    with pytest.raises(ValueError, match="write 0.04 for 4 points"):
        error_for_power(3)


def test_items_that_both_models_answer_are_enough():
    "Differences of two models on as many shared random items as the formula gives"
    rng = np.random.default_rng(1)
    ease = rng.normal(0, 2, 2000)
    chance = 1 / (1 + np.exp(-ease[None] - np.array([[0.0], [0.2]])))
    values = (rng.random((2, 2000)) < chance).astype(float)
    n = items_for_error(difference_spread(Scores(values)), 0.05, 2000)
    d = values[1] - values[0]
    found = [d[rng.permutation(2000)[:n]].mean() for _ in range(3000)]
    assert np.std(found) == pytest.approx(0.05, rel=0.05)


def test_a_power_curve_by_hand():
    curve = power_curve(table(1, 40), ["random"], [10, 20], trials=2)
    held, split, share = select_small_table(table(1, 40))
    frame = compare(held, ["random"], [10, 20], 2, split=split, sources=share).frame
    frame["error"] = frame["score"] - frame["truth"]
    own, shared = [], []
    for _, part in frame[frame["budget"] == 20].groupby("trial"):
        e = part["error"].to_numpy()
        pairs = np.subtract.outer(e, e)[~np.eye(len(e), dtype=bool)]
        own.append(np.sqrt(2 * np.mean(e**2)))
        shared.append(np.sqrt(np.mean(pairs**2)))
    row = curve[curve["budget"] == 20].iloc[0]
    assert row["own"] == pytest.approx(np.mean(own))
    assert row["shared"] == pytest.approx(np.mean(shared))
    found = items_for_difference(curve, table(1, 40), 1e-4)
    assert np.isnan(found.loc["random", "own"])  # more than were tried


# mistakes


MISTAKES = {
    "few models": (dict(scores=table().select(models=range(7))), "only 7 models"),
    "unknown method": (dict(methods=["randon"]), "did you mean 'random'"),
    "unknown split": (dict(split="other"), "no split 'other'"),
}
SOURCES = {
    "large budget": (dict(budget=61), "from 1 to 60"),
    "many sources": (dict(counts=[5, 99]), "whole numbers from 1 to .*99"),
    "empty list": (dict(counts=[]), "whole numbers from 1 to"),
}
CASES = [(items_curve, *case) for case in MISTAKES.values()]
CASES += [(sources_curve, *case) for case in SOURCES.values()]


@pytest.mark.parametrize("curve, given, line", CASES)
def test_mistakes_are_one_clear_line_and_leave_nothing(tmp_path, curve, given, line):
    given = {"scores": table(), "methods": ["random"], "trials": 1} | given
    with pytest.raises((ValueError, TypeError), match=line) as error:
        curve(**given, journal=tmp_path / "plan.sqlite")
    assert "\n" not in str(error.value)
    assert files_in(tmp_path) == {}


@pytest.mark.parametrize(
    "given, text",
    [
        (["--difference=20", "--power=0.9"], "each its own items"),
        (["--plus-minus=20"], "a score to ± 20 points"),
        (
            ["--plus-minus=5", "--dollars", "2/ktokens", "--budgets=3usd,9usd"],
            "error against money",
        ),
    ],
)
def test_the_command(given, text, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    table(1, 40).to_parquet("t.parquet")
    call = [
        "recommend",
        "t.parquet",
        "--methods=random,aipw",
        "--trials=2",
    ]
    call += ["--budgets=10,40"]
    assert main([*call, *given]) == 0
    out = capsys.readouterr().out
    assert text in out and max(map(len, out.splitlines())) <= 80
