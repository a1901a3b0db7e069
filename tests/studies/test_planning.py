"""Plans: how many items, how many sources, from the sources alone.

The page shows the curves; here are bad input, the stored table, what is drawn for whom,
and equality with slow references."""

import inspect
from math import comb

import numpy as np
import pandas as pd
import pytest
from helpers.small import files_in, table

from benchnb.cli.app import main
from benchnb.data.scores import Scores
from benchnb.evaluation.compare import compare, summary
from benchnb.evaluation.registry import get_method, list_methods
from benchnb.evaluation.simulate import ready, simulate
from benchnb.stats.sample_size import (
    score_spread,
    textbook_items,
    textbook_width,
    width_of_error,
)
from benchnb.studies.all_methods import FIELD, store_table
from benchnb.studies.planning import (
    PLAN_BUDGETS,
    FewSources,
    excess_error,
    hold_out,
    items_curve,
    items_needed,
    plan_budgets,
    plan_methods,
    plot_plan,
    reach,
    source_counts,
    sources_curve,
    sources_needed,
)
from benchnb.studies.planning_results import (
    items_table,
    measure_planning,
    planning,
    relative_to_random,
    sources_table,
)

QUICK = ["random", "stratified", "aipw"]


@pytest.fixture(scope="module")
def items():
    return items_curve(table(), QUICK, [10, 20, 40], trials=3)


@pytest.fixture(scope="module")
def sources():
    return sources_curve(table(), QUICK, [4, 8, 16], budget=15, trials=3)


# the textbook


@pytest.mark.parametrize("total", [10, 60, 1319, np.inf])
@pytest.mark.parametrize("width", [0.02, 0.1, 0.5, 1])
@pytest.mark.parametrize("spread", [0.1, 0.5])
def test_textbook_number_is_the_smallest_that_reaches_the_width(total, width, spread):
    n = textbook_items(width, total, spread)
    assert 1 <= n <= total
    assert textbook_width(n, total, spread) <= width + 1e-9
    assert n == 1 or textbook_width(n - 1, total, spread) > width


def test_textbook_width_is_the_spread_of_all_draws():
    total, right, n = 8, 3, 4
    k = np.arange(n + 1)
    chance = np.array([comb(right, i) * comb(total - right, n - i) for i in k])
    chance = chance / comb(total, n)
    mean = chance @ (k / n)
    error = np.sqrt(chance @ (k / n - mean) ** 2)
    spread = np.sqrt(right / total * (1 - right / total))
    assert textbook_width(n, total, spread) == pytest.approx(2 * 1.959964 * error)


def test_width_of_an_error_is_that_of_the_bell_curve():
    rng = np.random.default_rng(0)
    error = np.abs(rng.normal(0, 0.03, 200_000)).mean()
    assert width_of_error(error) == pytest.approx(2 * 1.96 * 0.03, rel=0.01)


def test_spread_counts_weights_and_leaves_gaps_out():
    facts = pd.DataFrame({"weight": [3, 1, 1]}, index=["x", "y", "z"])
    mean = 3 / 4
    want = np.sqrt(0.75 * (1 - mean) ** 2 + 0.25 * mean**2)
    assert score_spread(Scores([[1, 0, np.nan]], facts)) == pytest.approx(want)
    assert score_spread(Scores([[0.25, 0.75]])) == pytest.approx(0.25)


# what is held out


@pytest.mark.parametrize("split", ["random", "family", "ability", "date", "given"])
def test_few_models_are_held_out_and_the_input_stays(split):
    scores = table()
    before = scores.models.copy()
    small, how = hold_out(scores, split, targets=3, most=10)
    source, target = small.split(how["split"], sources=how["sources"])
    assert len(target) >= 1 and not set(source.models.index) & set(target.models.index)
    if how["split"] == "given":
        assert len(target) <= 3 and len(source) <= 10
        whole = [set(part.models.index) for part in scores.split(split)]
        assert set(source.models.index) <= whole[0]
        assert set(target.models.index) <= whole[1]
    else:
        assert len(small) <= 13
    pd.testing.assert_frame_equal(scores.models, before)


def test_what_is_left_out_depends_on_the_seed_alone():
    names = [
        hold_out(table(), targets=3, most=9, seed=s)[0].models.index for s in (1, 1, 2)
    ]
    assert names[0].equals(names[1]) and not names[0].equals(names[2])


# few sources


def test_all_sources_are_as_good_as_no_wrapper():
    source, target = table().split("given")
    few = FewSources(get_method("aipw"), len(source)).fit(source)
    inner = ready(few, 15).inner_
    rows = simulate(few, target)
    assert [e.score for e in rows] == [e.score for e in simulate(inner, target)]
    assert inner.fingerprint_ == source.fingerprint()


def test_sources_are_nested_and_drawn_anew_in_every_trial():
    source, _ = table().split("given")
    pair = [
        FewSources(get_method(name), n).fit(source)
        for name, n in [("random", 4), ("aipw", 9)]
    ]
    first = [ready(few, 15, seed=0).chosen_.tolist() for few in pair]
    again = [ready(few, 15, seed=1).chosen_.tolist() for few in pair]
    assert first[0] == first[1][:4] and again[0] == again[1][:4]
    assert first[0] != again[0]


def test_preparing_leaves_the_fitted_method_alone():
    source, _ = table().split("given")
    method = get_method("aipw")
    few = FewSources(method, 5).fit(source)
    ready(few, 15)
    assert not hasattr(method, "items_")
    assert few.source_.fingerprint() == source.fingerprint()


@pytest.mark.parametrize("name", plan_methods())
def test_five_sources_are_enough_to_run(name):
    curve = sources_curve(table(), [name], [5], budget=20, trials=1)
    assert curve["mae"].between(0, 1).all()


# curves


def test_items_curve_is_what_compare_says(items):
    small, how = hold_out(table())
    frame = compare(small, QUICK, [10, 20, 40], 3, **how)
    mae = summary(frame).groupby(["method", "budget"])["mae"].mean()
    got = items.set_index(["method", "budget"])["mae"]
    assert got.to_dict() == pytest.approx(mae.to_dict())
    assert items["items"].eq(60).all() and items["trials"].eq(3).all()


def test_random_does_not_depend_on_the_number_of_sources(sources):
    mae = sources[sources["method"] == "random"]
    assert mae["mae"].nunique() == 1 and mae["excess"].eq(0).all()
    assert sources["sources"].tolist() == [4, 8, 16] * 3


def test_curves_do_not_depend_on_jobs_or_a_journal(tmp_path, sources):
    settings = dict(methods=QUICK, counts=[4, 8, 16], budget=15, trials=3)
    for journal in [tmp_path / "plan.sqlite"] * 2:  # the second run reads the first's
        again = sources_curve(table(), journal=journal, **settings)
        pd.testing.assert_frame_equal(again, sources)
    two = sources_curve(table(), n_jobs=2, **settings)
    pd.testing.assert_frame_equal(two, sources)


def test_labels_are_kept():
    methods = {"a, b": get_method("random"), "20 sources": get_method("stratified")}
    curve = sources_curve(table(), methods, [4, 8], budget=15, trials=1)
    assert curve["method"].tolist() == ["a, b"] * 2 + ["20 sources"] * 2
    assert curve["excess_se"].isna().all()  # one trial: unknown
    assert "error unknown" in sources_needed(curve)["says"]["20 sources"] or (
        sources_needed(curve)["says"]["20 sources"] == "any number"
    )


def test_excess_is_paired():
    rng = np.random.default_rng(0)
    shared = rng.normal(0, 0.01, (200, 1))
    mae = pd.DataFrame(0.05 + shared + [0.02, 0.0] + rng.normal(0, 1e-4, (200, 2)))
    got = excess_error(mae)
    assert got.loc[0, "excess"] == pytest.approx(0.4, rel=0.05)
    assert got.loc[0, "excess_se"] < 1e-3  # noise shared within a trial cancels


# reading off


def test_reach_follows_the_finite_population():
    budgets = np.array([20, 200])
    for total in (277, 1319, 1e6):
        width = textbook_width(budgets, total)
        for goal in (0.2, 0.3):
            want = textbook_items(goal, total)
            assert reach(budgets, width, goal, total) == pytest.approx(want, abs=1)


def test_reach_is_monotone_in_the_goal():
    budgets = np.array([20, 50, 100, 200])
    values = np.array([0.3, 0.2, 0.22, 0.1])  # rises by chance
    goals = np.linspace(0.1, 0.35, 40)
    found = [reach(budgets, values, goal, 1000) for goal in goals]
    assert (np.diff(found) <= 0).all() and found[-1] == 20 and found[0] == 200


def made(width, error=0.0, coverage=0.95):
    "A curve of one method at 20, 50 and 100 of 1,000 items"
    facts = {"method": "m", "budget": [20, 50, 100], "items": 1000, "spread": 0.5}
    facts |= {"width": width, "width_se": error, "mae": 0.05, "mae_se": 0.0}
    return pd.DataFrame(facts | {"coverage": coverage})


@pytest.mark.parametrize(
    "curve, says",
    [
        (made([0.4, 0.3, 0.2]), "more than 100"),
        (made([0.03, 0.02, 0.01]), "20 or fewer"),
        (made([0.4, 0.3, 0.04]), "100 (100 to 100)"),
        (made([0.4, 0.3, 0.04], 0.001), "100 (100 to more than 100)"),
        (made([0.4, 0.3, 0.02], np.nan), "96 (error unknown)"),
        (made([np.nan] * 3, np.nan), "no width"),
        (made([0.03, 0.02, 0.01], coverage=0.5), "20 or fewer, holds 50%"),
    ],
)
def test_what_is_said(curve, says):
    said = items_needed(curve, width=0.04)["says"]["m"]
    if says.startswith("96"):
        assert said.endswith("(error unknown)")
    else:
        assert said == says


def test_unsorted_curves_read_the_same(items, sources):
    for read, curve in [(items_needed, items), (sources_needed, sources)]:
        want = read(curve)
        got = read(curve.iloc[::-1]).reindex(want.index)
        pd.testing.assert_frame_equal(got, want)


def test_numbers_of_a_plan():
    assert plan_budgets(15) == [3, 7, 11] and plan_budgets(1) == [1]
    assert plan_budgets(10**6) == list(PLAN_BUDGETS)
    assert source_counts(6) == [6] and source_counts(300)[-1] == 300
    for left in range(1, 200):
        counts = source_counts(left)
        assert counts == sorted(set(counts)) and counts[-1] == left


# mistakes


@pytest.mark.parametrize("width", [0, -0.1, 1.5, 4, np.nan, "4", None, True])
def test_a_width_that_is_none(items, width):
    with pytest.raises(ValueError, match=r"width must lie in \(0, 1\], got .*0.04"):
        items_needed(items, width=width)


def test_an_error_and_a_slack_that_are_none(items, sources):
    with pytest.raises(ValueError, match=r"mae must lie in \(0, 1\], got 2"):
        items_needed(items, mae=2)
    with pytest.raises(ValueError, match=r"slack must lie in \(0, 1\], got 5"):
        sources_needed(sources, slack=5)


def test_the_wrong_frame():
    with pytest.raises(ValueError, match="lacks .*give what items_curve returned"):
        items_needed(pd.DataFrame({"method": ["random"]}))
    with pytest.raises(ValueError, match="lacks .*give what sources_curve returned"):
        sources_needed(made([0.1, 0.1, 0.1]))


MISTAKES = {
    "few models": (dict(scores="seven"), "only 7 models in the table: .* at least 8"),
    "no table": (dict(scores=[[0, 1]]), "a plan needs Scores, got list"),
    "unknown method": (dict(methods=["randon"]), "did you mean 'random'"),
    "no method": (dict(methods=[]), "no methods to compare"),
    "unknown split": (dict(split="other"), "no split 'other'"),
    "no trials": (dict(trials=0), "trials must be a whole number"),
    "half a trial": (dict(trials=2.5), "trials must be a whole number"),
    "negative seed": (dict(seed=-1), "seed must be a whole number"),
    "no targets": (dict(targets=0), "targets must be a whole number"),
    "no sources left": (dict(most=0), "most must be a whole number"),
}
ITEMS = {"large budget": (dict(budgets=[20, 61]), "from 1 to 60")}
SOURCES = {
    "large budget": (dict(budget=61), "from 1 to 60"),
    "many sources": (dict(counts=[5, 99]), "whole numbers from 1 to .*99"),
    "no sources": (dict(counts=[0, 5]), "whole numbers from 1 to"),
    "part of a source": (dict(counts=[2.5]), "whole numbers from 1 to"),
    "empty list": (dict(counts=[]), "whole numbers from 1 to"),
}
CASES = [(items_curve, *case) for case in (MISTAKES | ITEMS).values()]
CASES += [(sources_curve, *case) for case in (MISTAKES | SOURCES).values()]


@pytest.mark.parametrize("curve, given, line", CASES)
def test_mistakes_are_one_clear_line_and_leave_nothing(tmp_path, curve, given, line):
    given = {"scores": table(), "methods": ["random"], "trials": 1} | given
    if isinstance(given["scores"], str):
        given["scores"] = table().select(models=range(7))
    with pytest.raises((ValueError, TypeError), match=line) as error:
        curve(**given, journal=tmp_path / "plan.jsonl")
    assert "\n" not in str(error.value)
    assert files_in(tmp_path) == {}


@pytest.mark.parametrize(
    "given, line",
    [
        (["--width", "4"], "width must lie in (0, 1], got 4.0: write 0.04"),
        (["--width", "nan"], "width must lie in (0, 1]"),
        (["--mae", "2"], "mae must lie in (0, 1], got 2.0"),
        (["--methods", "randon"], "did you mean 'random'"),
        (["--budgets", "20,61"], "from 1 to 60"),
        (["--trials", "0"], "trials must be a whole number"),
        (["--out", "plan.txt"], "must end in .csv"),
        (["--out", "table.parquet"], "is named twice"),
    ],
)
def test_the_command_refuses_in_one_line(given, line, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    table().to_parquet("table.parquet")
    before = files_in(tmp_path)
    assert main(["forecast", "table.parquet", *given]) == 2
    out, err = capsys.readouterr()
    assert out == "" and err.count("\n") == 1 and line in err
    assert files_in(tmp_path) == before


# the stored curves


def test_stored_curves_are_whole():
    plan = planning()
    assert set(plan["data"]) == set(FIELD)
    kinds = (
        plan.groupby("data")[["split", "curve"]].value_counts().groupby("data").size()
    )
    assert (kinds == 4).all()
    keys = ["data", "split", "curve", "method", "budget", "sources"]
    assert not plan.duplicated(keys).any()
    assert {"random", "stratified", "aipw"} <= set(plan["method"])
    assert (plan["trials"] > 1).all() and plan["mae_se"].notna().all()
    flat = plan[(plan["curve"] == "sources") & (plan["method"] == "random")]
    assert flat["excess"].eq(0).all()


def test_stored_curves_are_read_back(tmp_path):
    path = store_table(planning(), tmp_path / "plan.csv", digits=4)
    pd.testing.assert_frame_equal(pd.read_csv(path), planning())
    assert path.stat().st_size < 300_000


def test_tables_name_every_data_set():
    plan = planning()
    for made_table in (items_table(plan), sources_table(plan, "ability")):
        assert list(made_table.index) == list(FIELD)
        assert made_table.notna().all(axis=None)


def test_textbook_agrees_with_random_sampling_where_sources_are_like_targets():
    plan = planning()
    part = plan[(plan["curve"] == "items") & (plan["split"] == "random")]
    part = part[(part["method"] == "random") & (part["budget"] >= 100)]
    book = [
        textbook_width(n, N, s)
        for n, N, s in part[["budget", "items", "spread"]].to_numpy()
    ]
    assert (part["width"] / book).between(0.75, 1.35).all()


def test_one_command_measures_again(tmp_path):
    names = inspect.signature(measure_planning).parameters
    assert {"names", "methods", "n_jobs", "journals", "trials"} <= set(names)
    frame = measure_planning(["zoo"], ["random"], journals=tmp_path, trials=2)
    assert set(frame["curve"]) == {"items", "sources"}
    assert set(frame["split"]) == {"random", "ability"}
    assert set(planning().columns) <= set(frame.columns)
    assert len(files_in(tmp_path)) == 4


def test_default_methods_are_registered():
    assert set(plan_methods()) <= set(list_methods())
    assert plan_methods()[0] == "random"


# pictures


def test_plot_has_a_panel_per_data_set(items, sources):
    import matplotlib.pyplot as plt

    plan = planning()
    part = relative_to_random(
        plan[(plan["curve"] == "sources") & (plan["split"] == "random")]
    )
    shown = [
        ax for ax in plot_plan(part, "relative", "sources", 1).axes if ax.get_visible()
    ]
    assert [ax.get_title() for ax in shown] == list(FIELD)
    for curve, over in [(items, "budget"), (sources, "sources")]:
        (ax,) = plot_plan(curve, "mae", over).axes
        assert len(ax.containers) == 3  # one per method
    plt.close("all")


def test_relative_errors_are_one_for_random(items, sources):
    for curve in (items, sources):
        relative = relative_to_random(curve)
        rows = relative[relative["method"] == "random"]["relative"]
        assert np.allclose(rows, 1)
