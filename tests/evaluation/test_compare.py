"""Comparisons: the frame, the splits, the journal of a run that is killed, and a method
that somebody else wrote."""

import importlib
import itertools
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from helpers.small import (
    METHODS,
    TASKS,
    files_in,
    table,
    with_values,
    write_fork,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import kendalltau, spearmanr

from benchnb.cli.app import main
from benchnb.data.render import progress_bar
from benchnb.data.scores import Scores
from benchnb.data.splits import SPLITS
from benchnb.evaluation import registry
from benchnb.evaluation.compare import (
    METRICS,
    average_over_trials,
    compare,
    summarize_trials,
)
from benchnb.evaluation.method import Estimate, Method
from benchnb.evaluation.recommend import recommend, recommend_tasks
from benchnb.evaluation.registry import get_method, list_methods, register
from benchnb.evaluation.simulate import prepare_method, simulate

COLUMNS = "method budget trial target truth score low high asked cost kind".split()
COLUMNS += ["notes", "flags", "seconds"]
NUMBERS = itertools.count()  # every module of somebody else's has another name
FIGURES = "mae rmse kendall pearson spearman coverage half_width seconds".split()


@pytest.fixture
def fork(tmp_path, monkeypatch):
    "The class of somebody else's module, which is in a folder of its own"
    spelled = write_fork(tmp_path / "fork", f"Fork{next(NUMBERS)}")
    monkeypatch.syspath_prepend(tmp_path / "fork")
    monkeypatch.setattr(registry, "_METHODS", dict(registry._METHODS))
    module, name = spelled.split(":")
    return getattr(importlib.import_module(module), name)


def spelled(kind):
    "package.module:Class"
    return f"{kind.__module__}:{kind.__qualname__}"


def untimed(frame):
    "Without the one column that is not repeatable"
    return frame.drop(columns="seconds")


def same(a, b):
    "Equal frames, times aside"
    pd.testing.assert_frame_equal(untimed(a), untimed(b))


QUICK = [name for name in ("random", "stratified") if name in METHODS] or METHODS[:1]


def quick(**changes):
    "The estimates of a comparison that takes no time"
    given = dict(methods=QUICK, budgets=[6, 12], trials=2, seed=1) | changes
    return compare(table(), **given).frame


# The frame ---------------------------------------------------------------------


def test_there_is_one_row_per_method_budget_trial_and_target():
    frame = quick()
    assert list(frame.columns) == COLUMNS
    assert frame.index.equals(pd.RangeIndex(len(frame)))
    assert not frame.duplicated(["method", "budget", "trial", "target"]).any()
    targets = {t: set(table().split(seed=1 + t)[1].models.index) for t in range(2)}
    groups = frame.groupby(["method", "budget", "trial"])
    assert len(groups) == len(QUICK) * 2 * 2
    for (_, _, trial), rows in groups:
        assert set(rows["target"]) == targets[trial]


def test_the_frame_holds_what_is_true():
    frame, scores = quick(), table()
    truth, cost = scores.truth(), scores.items["cost"]
    assert np.allclose(frame["truth"], truth[frame["target"]])
    assert (frame["asked"] == frame["budget"]).all()  # these two spend all they may
    assert frame["cost"].between(frame["asked"] * cost.min(), cost.sum()).all()
    assert frame["score"].between(0, 1).all()
    assert (frame["low"] <= frame["score"]).all()
    assert (frame["score"] <= frame["high"]).all()
    assert (frame["seconds"] > 0).all()
    dtypes = frame.dtypes.astype(str).to_dict()
    assert {dtypes[c] for c in ("truth", "score", "low", "high", "cost")} == {"float64"}
    assert {dtypes[c] for c in ("budget", "trial", "asked")} == {"int64"}


def test_targets_without_a_truth_are_left_out():
    models = table().models.assign(full_score=table().performance())
    models.loc["model-03", "full_score"] = np.nan
    scores = Scores(table().values, table().items, models)
    frame = compare(scores, QUICK, [6], 6).frame
    assert "model-03" not in set(frame["target"])
    assert frame["truth"].notna().all()
    with_it = set(compare(table(), QUICK, [6], 6).frame["target"])
    assert set(frame["target"]) == with_it - {"model-03"}


def test_labels_tell_variants_apart(fork):
    variants = {"as it is": fork(), "higher": fork(shift=0.01), QUICK[0]: QUICK[0]}
    frame = quick(methods=variants)
    assert list(frame["method"].unique()) == list(variants)
    scores = frame.set_index("method")["score"]
    raised = (scores["as it is"].to_numpy() + 0.01).clip(0, 1)
    assert np.allclose(scores["higher"], raised)
    assert not any(key.endswith("_") for key in vars(variants["higher"]))  # untouched


def test_summary_has_one_row_of_figures_per_trial():
    frame = quick()
    figures = summarize_trials(frame)
    assert list(figures.columns) == ["method", "budget", "trial", *FIGURES]
    assert list(METRICS) == FIGURES
    keys = ["method", "budget", "trial"]
    assert not figures.duplicated(keys).any()
    for key, rows in frame.groupby(keys):
        figure = figures.set_index(keys).loc[key]
        apart = rows["score"] - rows["truth"]
        assert figure["mae"] == pytest.approx(apart.abs().mean())
        assert figure["rmse"] == pytest.approx((apart**2).mean() ** 0.5)
        ranked = rows[["truth", "score"]].round(10)  # so that equal scores are ties
        kendall = kendalltau(ranked["truth"], ranked["score"]).statistic
        assert figure["kendall"] == pytest.approx(kendall)
        pearson = np.corrcoef(rows["truth"], rows["score"])[0, 1]
        assert figure["pearson"] == pytest.approx(pearson)
        spearman = spearmanr(ranked["truth"], ranked["score"]).statistic
        assert figure["spearman"] == pytest.approx(spearman)
        inside = rows["truth"].between(rows["low"], rows["high"])
        assert figure["coverage"] == inside.mean()
        half = (rows["high"] - rows["low"]).mean() / 2
        assert figure["half_width"] == pytest.approx(half)
        assert figure["seconds"] == pytest.approx(rows["seconds"].mean())


def test_over_trials_gives_means_and_standard_errors():
    figures = summarize_trials(quick(trials=3))
    table = average_over_trials(figures).set_index(["method", "budget"])
    rows = figures[(figures["method"] == QUICK[0]) & (figures["budget"] == 12)]
    means = table.loc[(QUICK[0], 12)]
    assert means["trials"] == 3
    for name in FIGURES:
        assert means[name] == pytest.approx(rows[name].mean())
        assert means[f"{name}_se"] == pytest.approx(rows[name].std(ddof=1) / 3**0.5)
    one = average_over_trials(summarize_trials(quick(trials=1)))
    assert one[[f"{name}_se" for name in FIGURES]].isna().all(axis=None)


@pytest.mark.parametrize("split", [s for s in SPLITS if s not in ("llm", "scaffold")])
def test_every_split_can_be_compared(split):
    frame = quick(split=split)
    truth = table().truth()
    targets = set(table().split(split, seed=1)[1].models.index)
    assert set(frame.query("trial == 0")["target"]) == targets
    assert np.allclose(frame["truth"], truth[frame["target"]])
    repeated = frame.groupby("trial")["target"].agg(set)
    assert (repeated[0] == repeated[1]) == (split not in ("random", "family"))
    scores = [rows["score"].tolist() for _, rows in frame.groupby("trial")]
    assert scores[0] != scores[1]  # trials differ in what is drawn


def test_a_comparison_shows_its_means_in_points_and_draws_itself():
    found = compare(table(), QUICK, [6, 12], 3, seed=1)
    assert len(found.by_trial) == len(QUICK) * 2 * 3 < len(found.frame)
    means = average_over_trials(summarize_trials(found.frame))
    pd.testing.assert_frame_equal(found.table, means[[*found.table]])
    assert {"mae", "mae_se", "kendall", "coverage", "half_width"} <= {*found.table}
    assert "width" not in found.table
    lines = str(found).splitlines()
    assert len(lines) == 1 + len(found.table) and max(map(len, lines)) <= 80
    best = found.table[found.table["budget"] == 6].nsmallest(1, "mae").iloc[0]
    assert lines[1].split()[:3] == ["6", best["method"], f"{100 * best['mae']:.2f}"]
    assert f"± {100 * best['half_width']:.1f}" in lines[1]
    assert f"± {100 * best['half_width']:.1f}" in found._repr_html_()
    panels = found.plot().axes
    assert [len(ax.containers) for ax in panels] == [len(QUICK)] * 2
    assert panels[0].get_ylabel() == "mean absolute error (points)"


# Splits: near-copies never on both sides ---------------------------------------


def with_copies(seed):
    "A table in which some models are copies, or merges, of others"
    rng = np.random.default_rng(seed)
    scores = table(seed=seed % 5)
    values = scores.values.copy()
    for copy, original in zip([3, 9, 14, 21, 22], [16, 1, 5, 7, 7], strict=True):
        values[copy] = values[original]
        flipped = rng.choice(60, rng.integers(0, 2), replace=False)
        values[copy, flipped] = 1 - values[copy, flipped]
    return with_values(scores, values)


@pytest.mark.parametrize("how", ["random", "family", "date", "ability"])
@given(st.integers(0, 10_000))
@settings(max_examples=25, deadline=None, derandomize=True, database=None)
def test_no_target_is_a_near_copy_of_a_source(how, seed):
    scores = with_copies(seed)
    groups = pd.Series(scores.near_copies(), scores.models.index)
    assert groups["model-03"] == groups["model-16"]  # the planted ones are found
    assert groups["model-21"] == groups["model-07"] == groups["model-22"]
    source, target = scores.split(how, seed=seed)
    assert not set(groups[source.models.index]) & set(groups[target.models.index])
    assert not set(source.models.index) & set(target.models.index)
    families = set(source.models["family"]) & set(target.models["family"])
    assert how != "family" or not families
    if how == "date":
        assert source.models["released"].max() < target.models["released"].min()
    if how == "ability":
        assert source.truth().max() <= target.truth().min()
    again = scores.split(how, seed=seed)
    assert again[0].models.index.equals(source.models.index)


# Fitting once ------------------------------------------------------------------


def fits(kind, **changes):
    "How often a class was fitted and prepared in a comparison"
    kind.fits = kind.prepares = 0
    quick(methods=[kind()], trials=3, **changes)
    return kind.fits, kind.prepares


@pytest.mark.parametrize("split", [s for s in SPLITS if s not in ("llm", "scaffold")])
def test_a_method_is_fitted_once_per_split(split, fork):
    once = 3 if split in ("random", "family") else 1
    assert fits(fork, split=split) == (once, 3 * 2)


def test_what_is_finished_is_not_fitted_again(fork, tmp_path):
    journal = tmp_path / "journal"
    assert fits(fork, journal=journal) == (3, 6)
    assert fits(fork, journal=journal) == (0, 0)
    with closing(sqlite3.connect(journal)) as base, base:  # the last trial's last piece
        base.execute("DELETE FROM pieces WHERE rowid = (SELECT max(rowid) FROM pieces)")
    assert fits(fork, journal=journal) == (1, 1)


# The journal -------------------------------------------------------------------


def pieces(journal):
    "The pieces of a journal, and their keys, in the order of writing"
    with closing(sqlite3.connect(journal)) as base:
        rows = base.execute("SELECT * FROM pieces ORDER BY rowid").fetchall()
    return rows, [key for key, _ in rows]


RUN = """
import sys
sys.path[:0] = sys.argv[1:4]
from test_compare import quick
quick(methods=[sys.argv[4]], trials=3, journal=sys.argv[5])
"""
TESTS = Path(__file__).parent


@pytest.mark.slow
def test_a_killed_comparison_goes_on_where_it_was(fork, tmp_path, monkeypatch):
    journal = tmp_path / "new folder" / "journal"
    monkeypatch.setenv("FORK_AT", "4")  # of 6 pieces
    monkeypatch.setenv("FORK_SIGNAL", str(int(signal.SIGKILL)))
    folder = Path(sys.modules[fork.__module__].__file__).parent
    paths = [str(path) for path in (TESTS, TESTS.parent, folder)]
    command = [sys.executable, "-c", RUN, *paths, spelled(fork), str(journal)]
    settings = dict(capture_output=True, text=True, start_new_session=True)
    done = subprocess.run(command, **settings)
    assert done.returncode == -signal.SIGKILL, done.stderr
    lines, _ = pieces(journal)
    assert len(lines) == 3
    monkeypatch.delenv("FORK_AT")
    wanted = quick(methods=[spelled(fork)], trials=3)
    fork.fits = fork.prepares = 0
    same(quick(methods=[spelled(fork)], trials=3, journal=journal), wanted)
    assert fork.prepares == 3
    all_lines, keys = pieces(journal)
    assert all_lines[:3] == lines and len(set(keys)) == len(keys) == 6


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    "The bytes of a whole journal, and the frame"
    journal = tmp_path_factory.mktemp("journal") / "journal"
    frame = quick(journal=journal)
    return journal.read_bytes(), frame


CHANGES = {
    "a score": lambda s: with_values(s, np.where(np.arange(60) == 5, 1, s.values)),
    "a name": lambda s: Scores(s.values, s.items, s.models.rename({"model-03": "x"})),
    "a weight": lambda s: Scores(s.values, s.items.assign(weight=1), s.models),
    "a date": lambda s: Scores(
        s.values,
        s.items,
        s.models.assign(released=s.models["released"].iloc[::-1].values),
    ),
    "a truth": lambda s: Scores(s.values, s.items, s.models.assign(full_score=0.5)),
}


OTHERS = [dict(seed=2), dict(split="date"), dict(sources=0.5)]


@pytest.mark.parametrize("case", [*CHANGES, *map(str, range(len(OTHERS)))])
def test_the_journal_of_another_comparison_is_refused(case, written, tmp_path):
    "Of another table, or with other settings"
    journal, scores, how = tmp_path / "journal", table(), dict(seed=1)
    journal.write_bytes(written[0])
    if case in CHANGES:
        scores = CHANGES[case](scores)
    else:
        how |= OTHERS[int(case)]
    with pytest.raises(ValueError, match="another computation: delete it") as caught:
        compare(scores, QUICK, [6, 12], 2, journal=journal, **how)
    assert str(journal) in str(caught.value)
    assert files_in(tmp_path) == {"journal": written[0]}


def test_a_journal_serves_more_budgets_trials_methods_and_parameters(fork, tmp_path):
    journal = tmp_path / "journal"
    settings = dict(seed=1, journal=journal)
    compare(table(), {"mine": fork()}, [6], 1, **settings)
    more = {"mine": fork(), QUICK[0]: QUICK[0]}
    frame = compare(table(), more, [6, 12], 2, **settings).frame
    assert len(pieces(journal)[0]) == 2 * 2 * 2
    same(frame, compare(table(), more, [6, 12], 2, seed=1).frame)
    fork.prepares = 0
    other = compare(table(), {"mine": fork(shift=0.2)}, [6], 1, **settings).frame
    assert fork.prepares == 1  # other parameters are another piece
    assert other["score"].mean() > frame.query("method == 'mine'")["score"].mean()


# A method of somebody else's ---------------------------------------------------


def test_a_registered_method_is_found_everywhere(fork, tmp_path, capsys):
    assert fork.name in list_methods()
    assert type(get_method(fork.name, shift=0.1)) is fork
    frame = quick(methods=[fork.name, spelled(fork)])
    by_name, by_path = (
        untimed(frame[frame["method"] == label]).iloc[:, 1:].reset_index(drop=True)
        for label in (fork.name, spelled(fork))
    )
    pd.testing.assert_frame_equal(by_name, by_path)
    table().to_parquet(tmp_path / "table.parquet")
    for label in (fork.name, spelled(fork)):
        argv = ["compare", str(tmp_path / "table.parquet"), "--methods", label]
        assert main([*argv, "--trials", "1", "--budgets", "6"]) == 0
        assert label[:23] in capsys.readouterr().out
    with pytest.raises(ValueError, match=f"did you mean '{fork.name}'"):
        get_method(fork.name + "s")


def test_a_name_belongs_to_one_class(fork):
    taken = type("Other", (Method,), {"name": QUICK[0]})
    with pytest.raises(ValueError, match=f"{QUICK[0]!r} belongs to"):
        register(taken)
    assert register(fork) is fork  # twice the same is no harm
    for name in ("Loud Name", "", "two-words", "a.b", "CamelCase"):
        with pytest.raises(ValueError, match="snake_case"):
            register(type("Odd", (Method,), {"name": name}))


def test_a_method_that_breaks_the_rules_is_named():
    def asks(*rounds):
        def run(self, rng):
            for wanted in rounds:
                yield np.array(wanted)
            return Estimate(0.5)

        return type("Greedy", (Method,), {"name": "greedy", "run": run})()

    for rounds, words in {
        ((0, 1), (1, 2)): "asked for an item twice",
        ((0, 0),): "asked for an item twice",
        (tuple(range(7)),): "asked for 7 items, its budget is 6",
        ((60,),): "outside 0..59",
        ((-1,),): "outside 0..59",
        ((0.5,),): "list of item positions",
        (((0, 1),),): "list of item positions",
    }.items():
        with pytest.raises((ValueError, TypeError), match=f"Greedy.*{words}"):
            quick(methods=[asks(*rounds)], budgets=[6])


def test_a_broken_estimate_is_repaired():
    def giving(score, **more):
        def run(self, rng):
            yield np.arange(6)
            return Estimate(score, **more)

        return type("Odd", (Method,), {"name": "odd", "run": run})()

    source, target = table().split("given")
    share = target.weights[:6]  # what the answers leave possible:
    least = target.values[:, :6] @ share
    most = 1 - (1 - target.values[:, :6]) @ share
    mean = np.clip(source.performance().mean(), least, most)
    for score, wanted in [(np.nan, mean), (1.7, most), (-0.2, least)]:
        frame = quick(methods=[giving(score)], budgets=[6], split="given", trials=1)
        assert frame["score"].to_numpy() == pytest.approx(wanted, abs=1e-6)
    outside = quick(methods=[giving(0.5, interval=(0.6, 7))], budgets=[6])
    assert (outside["low"] == 0.5).all() and outside["high"].between(0.9, 1).all()


def test_new_code_does_not_go_on_with_old_pieces(tmp_path, monkeypatch):
    "The pieces of a method whose source has changed are done again"
    from benchnb.evaluation.compare import trial_key
    from benchnb.evaluation.registry import get_method

    monkeypatch.syspath_prepend(tmp_path)
    code = "from benchnb import Coreset\n\n\nclass Mine(Coreset):\n    name = 'mine'\n"
    (tmp_path / "changing.py").write_text(code)
    key = trial_key("mine", get_method("changing:Mine"), 5, 0)
    import linecache
    import sys

    (tmp_path / "changing.py").write_text(code + "    answer = 1\n")
    del sys.modules["changing"]
    linecache.clearcache()
    assert trial_key("mine", get_method("changing:Mine"), 5, 0) != key


def test_by_task_adds_a_row_for_every_task_and_changes_nothing_else():
    plain, tasks = (quick(methods=["random", "aipw"], by=by) for by in (None, "task"))
    whole = tasks[tasks["task"] == "all"].drop(columns="task").reset_index(drop=True)
    same(whole[plain.columns], plain)
    assert len(tasks) == len(plain) * (1 + len(TASKS))
    counts = tasks.groupby(["method", "budget", "trial", "target"])["asked"]
    assert (counts.max() * 2 == counts.sum()).all()  # the tasks' items sum to all
    figures = average_over_trials(summarize_trials(tasks))
    assert set(figures["task"]) == {"all", *TASKS}
    truth = table().performance(by="task")
    row = tasks[tasks["task"] == "logic"].iloc[0]
    assert row["truth"] == pytest.approx(truth.loc[row["target"], "logic"])


def test_a_method_without_task_scores_gets_nan():
    class Whole(registry.find_class("random")):
        def estimate(self, seen):
            return Estimate(float(np.nanmean(seen)))

    frame = compare(table(), {"whole": Whole()}, [10], trials=1, by="task").frame
    assert frame.loc[frame["task"] != "all", "score"].isna().all()
    figures = summarize_trials(frame).set_index("task")["mae"]
    assert figures.drop("all").isna().all() and figures["all"] < 0.5
    with pytest.raises(ValueError, match="by must be None or 'task'"):
        compare(table(), ["random"], [10], trials=1, by="family")


# What is taken, and what is shown --------------------------------------------------


@pytest.mark.slow
def test_compare_simulate_and_recommend_take_what_load_table_takes(tmp_path, capsys):
    scores = with_values(table(), table().values)
    scores = Scores(scores.values, scores.items[["task"]], list(scores.models.index))
    scores.to_parquet(tmp_path / "a.parquet")
    wide = pd.DataFrame(scores.values, scores.models.index, scores.items.index)
    long = wide.rename_axis("model").reset_index()
    long = long.melt("model", var_name="item", value_name="score")
    long["task"] = long["item"].map(scores.items["task"])
    method = prepare_method(get_method("random").fit(scores), 6)
    settings = {"methods": QUICK, "budgets": [6], "trials": 2}
    wanted = compare(scores, **settings).frame
    assert capsys.readouterr().err == ""
    for form in (long, tmp_path / "a.parquet", str(tmp_path / "a.parquet"), wide):
        found = compare(form, **settings).frame
        pd.testing.assert_frame_equal(untimed(found), untimed(wanted))
        assert "24 models x 60 items" in capsys.readouterr().err
    same = [repr(e) for e in simulate(method, long)]
    assert same == [repr(e) for e in simulate(method, scores)]
    how = dict(budget=6, methods=QUICK, trials=2)
    one, other = (recommend(form, **how).table for form in (wide, scores))
    pd.testing.assert_frame_equal(untimed(one), untimed(other))
    assert recommend_tasks(long, 1, 2)["keep"] == recommend_tasks(scores, 1, 2)["keep"]
    with pytest.raises(ValueError, match="did you mean 'ifeval'"):
        compare("ifevall", QUICK)
    with pytest.raises(TypeError, match="fit needs Scores: load_table makes"):
        get_method("random").fit(wide)


@pytest.mark.parametrize("jupyter", [True, False])
@pytest.mark.parametrize("progress", [None, True, False])
def test_a_bar_is_shown_where_it_is_wanted_and_in_jupyter(
    jupyter, progress, monkeypatch
):
    bars = []

    def bar(total, what, shown=True, **how):
        if shown:
            bars.append((total, what))
        return progress_bar(total, what, shown=False, **how)

    monkeypatch.setattr("benchnb.evaluation.compare.progress_bar", bar)
    monkeypatch.delitem(sys.modules, "ipykernel", raising=False)
    if jupyter:
        monkeypatch.setitem(sys.modules, "ipykernel", sys)
    quick(progress=progress, split="ability")
    wanted = jupyter if progress is None else progress
    assert bars == [(8, "runs (ability split)")] * wanted
