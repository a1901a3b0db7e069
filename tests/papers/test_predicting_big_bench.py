"Predicting BIG-bench remade, on a small made-up file of the authors' schema"

import os
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from benchnb.reproduce import predicting_big_bench as chapter

from benchnb.papers.verdicts import stored_results, table_cells
from benchnb.prediction.records import load_records, made_records
from benchnb.prediction.regressors import ModelTask, evaluate
from benchnb.prediction.small_bench import published_small_bench
from benchnb.prediction.splits import split_records
from benchnb.studies.all_methods import recompute

FAMILIES = {"A": "PaLM", "B": "GPT", "C": "Gopher", "D": "BIG-G T=0", "E": "BIG-G T=1"}
AUTHORS = {
    "family": "model_family",
    "model": "model_name",
    "flop_matched_params": "flop_matched_non_embedding_params",
    "shots": "n_shot",
    "metric": "metric_name",
}


@pytest.fixture
def records():
    "Five families of three sizes on eight tasks, with 0, 1 and 3 shots"
    return made_records(families=5)


def write_authors_csv(path, parts=None):
    "The made-up records as the authors' CSV file, one part with ROUGE"
    frame = made_records(families=5, tasks=8 if parts is None else len(parts))
    names = [f"sums:{i}" for i in range(8)] if parts is None else parts
    frame["subtask"] = frame["subtask"].str[1:].astype(int).map(dict(enumerate(names)))
    frame["task"] = frame["subtask"].str.split(":").str[0]
    frame["family"] = frame["family"].map(FAMILIES)
    frame["metric"] = "exact_str_match"
    last = frame["subtask"] == names[-1]
    frame.loc[last, "metric"] = "rougeLsum"
    frame.loc[last, "score"] *= 100
    for column in ("non_embedding_params", "flop_matched_params"):
        frame[column] = 0.9 * frame["total_params"]
    path.parent.mkdir(parents=True, exist_ok=True)
    frame.rename(columns=AUTHORS).to_csv(path, index=False)


def test_bigbenchs_own_file_makes_the_papers_numbers(tmp_path, monkeypatch):
    write_authors_csv(tmp_path / "bigbench" / "filtered_v2.csv")
    monkeypatch.setenv("BENCHNB_DATA", str(tmp_path))
    small = {"bigbench": ((2, 4), "subtask", None, None)}
    monkeypatch.setattr(chapter, "SMALL", small)
    new = tmp_path / "new"
    recompute("predicting_big_bench", trials=2, folder=new)
    cells = table_cells("predicting_big_bench", new).set_index(
        ["table", "row", "column"]
    )
    measured = cells[cells["reproduced"].notna()]
    assert set(measured["data"]) == {"bigbench", "arithmetic"}
    table_6 = cells.loc["table 6"].dropna(subset="published")
    assert len(table_6) == 280 and table_6["reproduced"].notna().all()
    assert set(table_6["verdict"]) <= {"reproduced", "contradicted"}
    assert cells.loc[("table 1", "BIG-bench subtasks", "count"), "reproduced"] == 8
    for run in ("E1, hold out 3 shots", "E2.1, hold out GPT-3 200B"):
        found = cells.loc[("table 4", run, "S1 / r2")]
        assert found["published"] and np.isfinite(found["reproduced"])
    best = cells.loc[("figure 6", "Best of 5000", "4 tasks / r2"), "reproduced"]
    assert 0 < best < 1


def test_contest_is_what_the_parts_say(records):
    found = chapter.contest(records, "L3", ("model_task",), draws=1, most=2)
    fold = split_records(records, "L3")[1]
    train, test = records.iloc[fold.train], records.iloc[fold.test]
    by_hand = ModelTask().fit(train, train["score"]).predict(test)
    row = found[found["fold"] == 1].iloc[0]
    for name, value in evaluate(test, by_hand).items():
        assert row[name] == pytest.approx(value)


def test_finished_work_is_not_done_again(records, tmp_path, monkeypatch):
    given = (records, "L1", ("model_task", "svd"), 2, 2, 1, tmp_path)
    first = chapter.contest(*given)
    monkeypatch.setattr(chapter, "search", None)  # whoever searches or fits now, fails
    monkeypatch.setattr(chapter, "clone", None)
    pd.testing.assert_frame_equal(first, chapter.contest(*given))
    other = records.assign(score=records["score"].to_numpy()[::-1])
    with pytest.raises(TypeError):
        chapter.contest(other, *given[1:])


def test_a_torn_file_is_made_again(tmp_path):
    calls = []

    def work():
        calls.append(1)
        return {"x": np.arange(3)}

    first = chapter.remembered(tmp_path, ["a"], work)
    (path,) = tmp_path.glob("*.npz")
    path.write_bytes(path.read_bytes()[:40])
    again = chapter.remembered(tmp_path, ["a"], work)
    np.testing.assert_array_equal(first["x"], again["x"])
    np.testing.assert_array_equal(
        chapter.remembered(tmp_path, ["a"], work)["x"], [0, 1, 2]
    )
    assert len(calls) == 2
    assert not list(tmp_path.glob("*.tmp"))


def test_nothing_is_unpickled(tmp_path):
    chapter.remembered(tmp_path, ["a"], lambda: {"x": np.arange(3)})
    (path,) = tmp_path.glob("*.npz")
    np.savez(path, x=np.array([{"a": 1}], dtype=object))
    found = chapter.remembered(tmp_path, ["a"], lambda: {"x": np.arange(2)})
    assert found["x"].tolist() == [0, 1]


def test_groups_cover_the_records(records):
    groups = chapter.groupings(records)
    assert set(groups["shots"]) == {"0", "1", "3"}
    assert set(groups["family"]) == set("ABCDE")
    sizes = records.assign(quarter=groups["size"]).drop_duplicates("model")
    ends = sizes.groupby("quarter")["total_params"].agg(["min", "max"])
    assert (ends["min"].to_numpy()[1:] > ends["max"].to_numpy()[:-1]).all()
    unknown = chapter.groupings(records.assign(total_params=np.nan))
    assert set(unknown["size"]) == {"quarter unknown"}


def test_a_group_trains_on_its_own_records_alone(records):
    fold = split_records(records, "L1")[0]
    member = (records["family"] == "B").to_numpy()
    part = chapter.inside(fold, member)
    assert member[np.concatenate(part)].all()
    assert len(part.test) == member[fold.test].sum()
    few = chapter.inside(fold, member, 5)
    assert len(few.train) == 5 and set(few.train) <= set(part.train)
    assert few.test.tolist() == part.test.tolist()


@pytest.mark.parametrize(
    "task, emergent",
    [
        ("logical_deduction:three_objects", True),
        ("logical_deduction_three_objects", True),
        ("word_sorting", True),
        ("snarks", False),
        ("sports_understanding", True),
        ("boolean_expressions", False),
    ],
)
def test_emergent_tasks(task, emergent):
    assert chapter.is_emergent(pd.Series([task])).tolist() == [emergent]


def test_shared_part_is_complete(records):
    gaps = records.drop(
        records.index[(records["task"] == "t0") & (records["family"] == "A")]
    )
    whole = chapter.shared_part(gaps)
    assert "t0" not in set(whole["task"]) and len(whole) == len(records) * 7 / 8
    only = chapter.shared_part(gaps, ["B", "C", "D"])
    assert len(only) == len(records) * 3 / 5
    apart = records[(records["family"] == "A") == (records["task"] == "t0")]
    with pytest.raises(ValueError, match="no part was asked of all models"):
        chapter.shared_part(apart)


def test_no_search_sees_the_newcomer(records):
    "Other scores of the newcomer change no choice"
    other, new = records.copy(), records["family"] == "E"
    other.loc[new, "score"] = np.random.default_rng(0).random(new.sum())
    first, second = (chapter.subsets_for(r, "E", 3, count=20) for r in (records, other))
    assert list(first) == list(second)
    for name in first:
        for a, b in zip(first[name], second[name], strict=True):
            assert a.tolist() == b.tolist() and len(set(a.tolist())) == 3


def test_the_printed_lists_are_found_where_their_parts_are(records):
    parts = published_small_bench("hard")
    names = dict(enumerate(parts))
    big = made_records(families=3, sizes=2, tasks=26, shots=(0,))
    number = big["task"].str[1:].astype(int)
    big["subtask"] = number.map(lambda i: names.get(i, f"other:{i}"))
    found = chapter.printed_subsets(big, 24, "subtask")
    chosen = np.unique(big["subtask"].to_numpy(str))[found["BIG-bench Hard"][0]]
    assert set(chosen) == set(parts)
    assert not chapter.printed_subsets(big, 8, "subtask")
    assert not chapter.printed_subsets(records, 24, "subtask")


def test_verdicts_by_hand(records):
    found = chapter.verdicts(records, ["t0", "t1"], ("A", "B"), close=1.0, tie=0.01)
    assert len(found) == 3 * 9 and set(found["family"]) == {"B"}
    row = found.iloc[0]
    wide = records.pivot_table("score", "model", ["subtask", "shots"])
    gap = wide.loc[row["model"]] - wide.loc[row["rival"]]
    assert row["true wins"] == pytest.approx((gap > 0.01).mean())
    assert row["true losses"] == pytest.approx((gap < -0.01).mean())
    signs = [
        np.sign(row[f"{k} wins"] - row[f"{k} losses"]) for k in ("true", "recovered")
    ]
    assert row["right"] == (signs[0] == signs[1])


def test_stored_cells_stand_beside_the_paper():
    cells = table_cells("predicting_big_bench")
    stored = stored_results().query("paper == 'predicting_big_bench'")
    assert len(stored) and not cells.duplicated(["table", "row", "column"]).any()
    l1 = cells[(cells["table"] == "table 6") & (cells["row"] == "L1 / MLP")]
    assert l1["published"].notna().all() and l1["reproduced"].notna().all()


def test_killed_work_goes_on(tmp_path):
    "A run that ends after its first finished piece leaves that piece"
    code = (
        "import os, benchnb.papers.predicting_big_bench as c\n"
        "from benchnb.prediction.records import made_records\n"
        "fit, count = c.fold_guess, []\n"
        "def once(*given):\n"
        "    if count: os._exit(9)\n"
        "    count.append(1)\n"
        "    return fit(*given)\n"
        "c.fold_guess = once\n"
        f"c.contest(made_records(families=5), 'L1', ('svd',), 1, 3, 1, "
        f"{str(tmp_path)!r})"
    )
    ended = subprocess.run([sys.executable, "-c", code], env=dict(os.environ))
    assert ended.returncode == 9
    assert len(list(tmp_path.glob("*.npz"))) == 2  # the settings and one fold
    found = chapter.contest(made_records(families=5), "L1", ("svd",), 1, 3, 1, tmp_path)
    again = chapter.contest(made_records(families=5), "L1", ("svd",), 1, 3, 1)
    pd.testing.assert_series_equal(found["r2"], again["r2"])


def test_records_of_big_bench_are_not_here(monkeypatch, tmp_path):
    monkeypatch.setenv("BENCHNB_DATA", str(tmp_path))
    with pytest.raises(FileNotFoundError, match="bigbench is not here"):
        load_records("bigbench")


def test_table_3_where_the_printed_parts_are():
    parts = set(published_small_bench("hard")) | set(
        published_small_bench("best_of_5000", 24)
    )
    parts = [*sorted(parts), "other:a", "other:b"]
    frame = made_records(families=5, sizes=2, tasks=len(parts), shots=(0,))
    frame["subtask"] = [parts[int(name[1:])] for name in frame["subtask"]]
    assert not chapter.printed_comparison(frame)  # no such families
    frame["family"] = frame["family"].map(FAMILIES)
    rows = pd.DataFrame(chapter.printed_comparison(frame))
    assert len(rows) == 9
    np.testing.assert_allclose(rows.groupby("row")["reproduced"].sum(), 100)
    key = ["table", "row", "column"]
    printed = table_cells("predicting_big_bench").dropna(subset="published")[key]
    assert len(rows.merge(printed, on=key)) == 9
    assert not chapter.printed_comparison(frame[frame["subtask"] != parts[0]])


def test_greedy_counts_no_task_twice():
    "The paper's 12,326 are 41 too many: 313 + 312 + ... for 42 tasks"
    assert chapter.greedy_fits()["reproduced"] == 12326 - 41
    assert chapter.greedy_fits(3, 2)["reproduced"] == 3 + 2


@pytest.mark.parametrize("names", [None, ["bbh"], ["bbh", "harness"]])
def test_without_records_one_line_says_what_to_set(names, monkeypatch, tmp_path):
    monkeypatch.setenv("BENCHNB_DATA", str(tmp_path))
    with pytest.raises(FileNotFoundError, match="bbh.*set BENCHNB_DATA") as error:
        chapter.reproduce_predicting_big_bench(names=names)
    assert "\n" not in str(error.value)
    monkeypatch.delenv("BENCHNB_DATA")
    with pytest.raises(FileNotFoundError, match="no records of bbh.* to measure"):
        chapter.reproduce_predicting_big_bench(names=names)


def test_the_command_says_it_without_a_traceback(monkeypatch, tmp_path, capsys):
    from benchnb.cli.app import main

    monkeypatch.delenv("BENCHNB_DATA", raising=False)
    monkeypatch.chdir(tmp_path)
    code = main(["tables", "predicting_big_bench", "--recompute"])
    said = capsys.readouterr().err
    assert code and "set BENCHNB_DATA" in said and said.count("\n") == 1


def test_unknown_records_and_no_trials_are_named():
    with pytest.raises(ValueError, match="no records 'nope': there are bbh, harness"):
        chapter.reproduce_predicting_big_bench(names=["nope"])
    with pytest.raises(ValueError, match="names is empty: name one or more of bbh"):
        chapter.reproduce_predicting_big_bench(names=[])
    with pytest.raises(ValueError, match="trials is 0: try 1 setting or more"):
        chapter.reproduce_predicting_big_bench(trials=0)


def test_newcomers_that_are_none_are_named(records):
    with pytest.raises(ValueError, match="newcomer 'Q' is no family .* take A, B, C"):
        chapter.small_bench(records, (2,), families=["A", "Q"])
    for given in ({"budgets": ()}, {"budgets": (2,), "families": []}):
        with pytest.raises(ValueError, match="name one budget and one newcomer"):
            chapter.small_bench(records, **given)
