"Predicting BIG-bench remade, on a small made-up BIG-bench"

import json
import os
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from benchnb.bigbench.matrix_completion import ModelTask, evaluate_predictions
from benchnb.bigbench.records import make_synthetic_records
from benchnb.bigbench.regressors import GRIDS
from benchnb.bigbench.small_bench import published_small_bench
from benchnb.bigbench.splits import split_records
from benchnb.papers import predicting_big_bench as chapter
from benchnb.papers import recovering_big_bench as recovering
from benchnb.papers.predicting_big_bench import ReproductionSettings
from benchnb.papers.published import (
    RunSettings,
    add_published_reasons,
    store_results,
    table_cells,
)
from benchnb.papers.recovering_big_bench import PAPER
from benchnb.papers.verdicts import Verdict

FAMILIES = {"A": "PaLM", "B": "GPT", "C": "Gopher", "D": "BIG-G T=0", "E": "BIG-G T=1"}


@pytest.fixture
def records():
    "Five families of three sizes on eight tasks, with 0, 1 and 3 shots"
    return make_synthetic_records(families=5)


@pytest.fixture
def quick_grids(monkeypatch):
    "One small setting for each predictor"
    quick = {"mlp": {"epochs": [2], "hidden": [[8]]}}
    quick |= dict.fromkeys(["random_forest", "boosted_trees"], {"n_estimators": [5]})
    quick |= {"svd": {"factors": [2], "epochs": [2]}}
    quick |= {"logit_factors": {"starts": [1], "rounds": [5]}}
    for name, grid in quick.items():
        monkeypatch.setitem(GRIDS, name, grid)


@pytest.fixture
def big_bench(tmp_path, monkeypatch, quick_grids):
    "A folder with made-up records as BIG-bench's score files; one small setting each"
    frame = make_synthetic_records(families=5)
    frame["subtask"] = "sums:" + frame["subtask"].str[1:]
    frame = frame.assign(task="sums", family=frame["family"].map(FAMILIES))
    gopher = frame["family"] == "Gopher"  # asked with five shots only
    frame = frame[~gopher | (frame["shots"] == 3)]
    frame["shots"] = frame["shots"].where(frame["family"] != "Gopher", 5)
    rouge = frame["subtask"] == "sums:7"
    frame["metric"] = np.where(rouge, "rougeLsum", "exact_str_match")
    frame.loc[rouge, "score"] *= 100
    results = tmp_path / "bigbench/benchmark_tasks/sums/results"
    results.mkdir(parents=True)
    for (family, name), rows in frame.groupby(["family", "model"]):
        size = rows["total_params"].iloc[0]
        facts = dict(model_family=family, model_name=name, total_params=size)
        facts["non_embedding_params"] = 0.9 * size
        facts["flop_matched_non_embedding_params"] = 0.9 * size
        keys = ["subtask_description", "number_of_shots", "preferred_score"]
        scores = [
            {**dict(zip(keys, row[:3], strict=True)), "score_dict": {row[2]: row[3]}}
            for row in rows[["subtask", "shots", "metric", "score"]].values.tolist()
        ]
        found = json.dumps({"model": facts, "scores": scores})
        (results / f"scores_{family}_{name}.json").write_text(found)
    monkeypatch.setenv("BENCHNB_DATA", str(tmp_path))
    plans = {"bigbench": recovering.RecoveryPlan((2, 3), "subtask")}
    monkeypatch.setattr(recovering, "RECOVERY_PLANS", plans)
    return tmp_path / "new"


@pytest.mark.slow
def test_bigbenchs_own_file_makes_the_papers_numbers(big_bench):
    found = chapter.measured_cells(RunSettings(2), epochs=2)
    store_results(add_published_reasons(found, PAPER), PAPER, big_bench)
    key = ["table", "row", "column"]
    cells = table_cells("predicting_big_bench", big_bench).set_index(key)
    cells = cells.drop(index="figure 7", level="table")  # read off a picture, kept
    measured = cells[cells["reproduced"].notna()]
    assert set(measured["data"]) == {"bigbench", "arithmetic"}
    table_6 = cells.loc["table 6"].dropna(subset="published")
    assert len(table_6) == 280 and table_6["reproduced"].notna().all()
    words = {Verdict.REPRODUCED, Verdict.PARTLY, Verdict.DIFFERS}
    assert set(table_6["verdict"]) <= words
    value = cells["reproduced"]
    assert value["table 1", "BIG-bench subtasks", "count"] == 8
    for run in ("E1, hold out 3 shots", "E2.1, hold out GPT-3 200B"):
        for row in (run, f"{run}, without the model's name"):
            assert np.isfinite(value["table 4", row, "S1 / r2"])
    reason = cells.loc[("table 4", "E1, hold out 3 shots", "S1 / r2"), "reason"]
    assert reason == "held out: 3 shots"  # and not Gopher's five
    for row in ("Greedy search", "Random"):
        assert np.isfinite(value["figure 6", row, "2 tasks / r2"])
    assert value["section D.3", "Greedy search", "predictor fits"] == 12326
    assert value["figure 6", "Best of 5000", "3 tasks / r2"] < 1


def authors_table(records):
    "Records under the names of the authors' columns, with a second metric"
    names = {new: old for old, new in chapter.AUTHORS_COLUMNS.items()}
    frame = records.rename(columns=names).assign(is_preferred_metric=1)
    frame["metric_name"] = "exact_str_match"
    other = frame.assign(is_preferred_metric=0, metric_name="bleu", score=50)
    return pd.concat([frame, other], ignore_index=True)


@pytest.mark.parametrize("place", ["data/bigbench", "bigbench", "."])
def test_records_of_the_preferred_metric_are_read(tmp_path, place):
    records = make_synthetic_records(families=3)
    folder = tmp_path / place
    folder.mkdir(parents=True, exist_ok=True)
    authors_table(records).to_csv(folder / "filtered_v2.csv", index=False)
    found = chapter.read_authors_records(tmp_path)
    columns = ["family", "model", "task", "shots", "total_params"]
    pd.testing.assert_frame_equal(found[columns], records[columns])
    assert found["score"].to_numpy() == pytest.approx(records["score"].to_numpy())


@pytest.mark.slow
def test_big_benchs_tables_on_the_authors_file(tmp_path, monkeypatch, quick_grids):
    plans = {"bigbench": recovering.RecoveryPlan((2, 3), "task")}
    monkeypatch.setattr(recovering, "RECOVERY_PLANS", plans)
    records = make_synthetic_records(families=5)
    authors_table(records).to_csv(tmp_path / "filtered_v2.csv", index=False)
    found = chapter.measured_cells(RunSettings(2, authors=tmp_path), epochs=2)
    assert set(found["data"].dropna()) == {"bigbench", "arithmetic"}
    own = found[found["table"] != "table 5"]  # seconds of another machine
    assert not (own["verdict"] == Verdict.OTHER_DATA).any()
    table_6 = found[found["table"] == "table 6"]
    assert len(table_6) and table_6["reproduced"].notna().all()


def test_a_comparison_is_what_its_parts_give(records):
    given = records, "L3", ("svd", "model_task"), ReproductionSettings(1, folds=2)
    found = chapter.compare_predictors(*given)
    fold = split_records(records, "L3")[1]
    train, test = records.iloc[fold.train], records.iloc[fold.test]
    by_hand = ModelTask().fit(train, train["score"]).predict(test)
    rows = found[(found["fold"] == 1) & (found["predictor"] == "model_task")]
    for name, value in evaluate_predictions(test, by_hand).items():
        assert rows[name].item() == pytest.approx(value)


@pytest.mark.slow
def test_finished_work_is_not_done_again(records, tmp_path, monkeypatch):
    given = records, "L1", ("model_task", "svd", "mlp")
    effort = ReproductionSettings(1, folds=2, journals=tmp_path)
    first = chapter.compare_predictors(*given, effort)
    monkeypatch.setattr(chapter.regressors, "random_search", None)  # now they fail
    monkeypatch.setattr(chapter, "clone", None)
    pd.testing.assert_frame_equal(first, chapter.compare_predictors(*given, effort))
    other = records.assign(score=records["score"].to_numpy()[::-1])
    with pytest.raises(TypeError):
        chapter.compare_predictors(other, *given[1:], effort)


@pytest.mark.slow
def test_killed_work_goes_on(tmp_path, records):
    "A run that ends in its second fold keeps the settings and the first fold"
    code = (
        "import os, benchnb.papers.predicting_big_bench as c\n"
        "from benchnb.bigbench.records import make_synthetic_records\n"
        "fit, count = c.fit_fold, []\n"
        "def fit_fold(*given):\n"
        "    if count: os._exit(9)\n"
        "    count.append(1)\n"
        "    return fit(*given)\n"
        "c.fit_fold = fit_fold\n"
        f"effort = c.ReproductionSettings(1, folds=3, journals={str(tmp_path)!r})\n"
        "records = make_synthetic_records(families=5)\n"
        "c.compare_predictors(records, 'L1', ('svd',), effort)"
    )
    ended = subprocess.run([sys.executable, "-c", code], env=dict(os.environ))
    assert ended.returncode == 9
    given = records, "L1", ("svd",)
    effort = ReproductionSettings(1, folds=3, journals=tmp_path)
    found = chapter.compare_predictors(*given, effort)
    again = chapter.compare_predictors(*given, ReproductionSettings(1, folds=3))
    pd.testing.assert_series_equal(found["r2"], again["r2"])


def test_groups_cover_the_records(records):
    groups = chapter.groupings(records)
    sizes = records.assign(quarter=groups["size"]).drop_duplicates("model")
    ends = sizes.groupby("quarter")["total_params"].agg(["min", "max"])
    assert (ends["min"].to_numpy()[1:] > ends["max"].to_numpy()[:-1]).all()
    unknown = chapter.groupings(records.assign(total_params=np.nan))
    assert set(unknown["size"]) == {"quarter unknown"}


def test_a_group_trains_on_its_own_records_only(records):
    fold, groups = split_records(records, "L1")[0], chapter.groupings(records)
    sizes = {}
    for column, name, _, part in chapter.group_work(records, [fold], 50):
        member = (groups[column] == name).to_numpy()
        assert member[np.concatenate(part)].all()
        assert len(part.test) == member[fold.test].sum()
        sizes.setdefault((column, name), []).append(len(part.train))
    assert all(few <= whole for whole, few in sizes.values())


def test_shared_part_is_complete(records):
    gaps = records[(records["task"] != "t0") | (records["family"] != "A")]
    only = recovering.shared_part(gaps, ["B", "C", "D"])
    assert len(only) == len(records) * 3 / 5


def test_no_search_sees_the_new_family(records):
    "Other scores of the new family change no choice"
    other, new = records.copy(), records["family"] == "E"
    other.loc[new, "score"] = np.random.default_rng(0).random(new.sum())
    first, second = (
        recovering.subsets_for(r, "E", 3, count=20, epochs=2) for r in (records, other)
    )
    assert list(first) == list(second)
    for name in first:
        for a, b in zip(first[name], second[name], strict=True):
            assert a.tolist() == b.tolist() and len(set(a.tolist())) == 3


@pytest.mark.slow
def test_a_newcomers_network_is_trained_once_for_all_budgets(records, monkeypatch):
    "And chooses what one network for each budget chose"

    def judge(records, subsets, pairs, *given, **options):  # no other network
        return np.array([[sum(tasks)] * len(pairs) for tasks in subsets], float)

    monkeypatch.setattr(recovering, "evaluate_subsets", judge)
    alone = [
        (method, tasks, r2)
        for budget in (2, 3)
        for method, tasks, r2 in recovering.recover(
            records, "E", budget, count=20, seed=4, epochs=2
        )
    ]
    trained = []
    learn = recovering.search.task_vectors
    monkeypatch.setattr(
        recovering.search,
        "task_vectors",
        lambda *given, **options: trained.append(1) or learn(*given, **options),
    )
    effort = ReproductionSettings(subsets=20, epochs=2)
    together = recovering.small_bench_results(
        records, (2, 3), families=["E"], effort=effort
    )
    assert len(trained) == 1
    columns = ["method", "tasks", "r2"]
    assert together[columns].to_numpy().tolist() == [list(row) for row in alone]


def test_wins_and_losses_by_hand(records):
    given = records, ["t0", "t1"], ("A", "B")
    found = recovering.compare_recovered(*given, close=1.0, tie=0.01)
    assert len(found) == 3 * 9 and set(found["family"]) == {"B"}
    row = found.iloc[0]
    wide = records.pivot_table("score", "model", ["subtask", "shots"])
    gap = wide.loc[row["model"]] - wide.loc[row["rival"]]
    assert row["true wins"] == pytest.approx((gap > 0.01).mean())
    assert row["true losses"] == pytest.approx((gap < -0.01).mean())


def test_table_3_where_the_printed_parts_are():
    lists = ("hard",), ("best_of_5000", 24)
    parts = sorted({part for name in lists for part in published_small_bench(*name)})
    parts += ["other:a", "other:b"]
    frame = make_synthetic_records(families=5, sizes=2, tasks=len(parts), shots=(0,))
    frame["subtask"] = [parts[int(name[1:])] for name in frame["subtask"]]
    assert recovering.printed_comparison(frame).empty  # no such families
    frame["family"] = frame["family"].map(FAMILIES)
    rows = recovering.printed_comparison(frame)
    np.testing.assert_allclose(rows.groupby("row")["reproduced"].sum(), 100)
    key = ["table", "row", "column"]
    printed = table_cells("predicting_big_bench").dropna(subset="published")[key]
    assert len(rows.merge(printed, on=key)) == len(rows) == 9


def test_without_records_one_line_names_what_to_set(monkeypatch, tmp_path):
    monkeypatch.setenv("BENCHNB_DATA", str(tmp_path))
    with pytest.raises(FileNotFoundError, match="bbh.*set BENCHNB_DATA"):
        chapter.measured_cells(RunSettings())
