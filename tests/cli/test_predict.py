"benchnb predict: a table of records with gaps, and what can be wrong with it"

import json

import numpy as np
import pandas as pd
import pytest

from benchnb.bigbench.records import make_synthetic_records
from benchnb.cli.app import main

QUICK = ["--predictors", "model_task,model_knn"]


@pytest.fixture
def truth(tmp_path, monkeypatch):
    "Records in a file, every fifth without a score"
    monkeypatch.chdir(tmp_path)
    made = make_synthetic_records(noise=0.03)
    gaps = made.index % 5 == 0
    made.assign(score=made["score"].mask(gaps)).to_csv("records.csv", index=False)
    return made[gaps]


def failed(words, capsys):
    "The one line of a command that fails"
    assert main(["predict", *words]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    return said


def test_the_best_predictor_fills_the_gaps(truth, capsys):
    words = ["predict", "records.csv", *QUICK, "--out", "new.csv", "--plot", "a.png"]
    assert main(words) == 0
    said = capsys.readouterr().out
    assert "held out  by record, in 10 parts" in said and "best      model_knn" in said
    assert "above or below all others of their task" in " ".join(said.split())
    assert "10 trials" in said and "written: new.csv, a.png" in said
    assert max(map(len, said.split("\n"))) <= 80
    filled = pd.read_csv("new.csv")
    assert [*filled["model"]] == [*truth["model"]]
    assert np.abs(filled["predicted"] - truth["score"].to_numpy()).mean() < 0.1
    assert main(["predict", "records.csv", *QUICK, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [row["predictor"] for row in found["errors"]] == ["model_knn", "model_task"]
    assert len(found["predictions"]) == len(truth) and found["split"] == "record"


def test_three_columns_with_other_names_are_enough(truth, capsys):
    table = pd.read_csv("records.csv").query("shots == 0")
    table = table[["model", "task", "score"]].assign(score=100 * table["score"])
    table = table.rename(columns={"model": "name", "task": "exam"})
    table["name"] = pd.factorize(table["name"])[0]
    table["family"] = np.where(table["name"] < 4, "", "known")
    table.to_csv("own.csv", index=False)  # names that look like numbers
    words = ["own.csv", "--columns", "model=name,task=exam", "--scale", "percent"]
    assert main(["predict", *words, *QUICK, "--split", "model", "--out", "a.csv"]) == 0
    said = capsys.readouterr().out
    assert "by model" in said and "not given total_params, metric, shots" in said
    assert "have no interval: --split record" in " ".join(said.split())
    assert pd.read_csv("a.csv")["low"].isna().all()


def test_all_that_is_missing_is_one_message(truth, capsys):
    table = pd.read_csv("records.csv")
    table.drop(columns=["task", "score"]).to_csv("a.csv", index=False)
    said = failed(["a.csv", "--features", "year"], capsys)
    assert "no column 'task', 'score', 'year': found 'family', 'model'" in said
    assert "(--columns task=NAME,score=NAME)" in said
    table = table.astype({"score": object, "shots": object})
    table.loc[3, "model"], table.loc[4, "score"], table.loc[7, "shots"] = (
        "",
        "good",
        0.5,
    )
    pd.concat([table, table[:1]]).to_csv("b.csv", index=False)
    said = failed(["b.csv"], capsys)
    for part in ("no model", "'good', no number", "shots must be", "--duplicates"):
        assert part in said


@pytest.mark.parametrize(
    "words, message",
    [
        (["--split", "size"], "--split is one of record, gaps, family"),
        (["--split", "metric"], "1 of metric in the records with scores, too few"),
        (["--predictors", "magic"], "no predictor 'magic'; there are model_task"),
        (["--features", "score"], "'score' is read anyway"),
        (["--columns", "item=task"], "'item' is no column here: choose from family"),
        (["--plot", "a.txt"], "must end in .png"),
        (["--folds", "0"], "--folds must be 2 or more"),
    ],
)
def test_mistakes_are_one_line(words, message, truth, capsys):
    assert message in failed(["records.csv", *QUICK, *words], capsys)


@pytest.mark.slow
def test_too_little_is_said(truth, capsys):
    table = pd.read_csv("records.csv")[["model", "task", "shots", "score"]]
    table.assign(lab="a").to_csv("lab.csv", index=False)
    assert "shots, lab, L1" in failed(["lab.csv", "--split", "size"], capsys)
    table.assign(score="").to_csv("none.csv", index=False)
    assert "no record has a score: there is nothing" in failed(["none.csv"], capsys)
    noise = np.random.default_rng(0).random(len(table)).round(3)
    table.assign(score=noise).to_csv("noise.csv", index=False)
    words = [
        "predict",
        "noise.csv",
        "--split",
        "model",
        "--predictors",
        "random_forest",
    ]
    assert main(words) == 0
    assert "no better than the mean" in capsys.readouterr().out


def test_a_table_without_gaps_gives_errors_only(truth, capsys):
    table = pd.read_csv("records.csv").dropna(subset="score")
    table.to_csv("full.csv", index=False)
    assert main(["predict", "full.csv", *QUICK]) == 0
    said = capsys.readouterr().out
    assert "0 rows without a score" in said and "predicted " not in said


def test_rows_have_the_numbers_of_the_file(truth, capsys):
    table = pd.read_csv("records.csv")
    table.loc[3, "score"] = 7.0
    table.to_csv("b.csv", index=False)
    table.to_json("b.jsonl", orient="records", lines=True)
    for path, row in (("b.csv", 5), ("b.jsonl", 4)):
        with open(path) as file:
            assert "7.0" in file.readlines()[row - 1]
        assert f"row {row} (" in failed([path], capsys)


def test_a_wide_table_is_recognised(truth, capsys):
    wide = pd.read_csv("records.csv").pivot_table("score", "model", "task")
    wide.to_csv("wide.csv")
    assert "this is a wide table: a row is a model" in failed(["wide.csv"], capsys)


def test_what_is_not_shown_is_counted_beside_a_file(truth, capsys):
    for more, end in (
        ([], ": --out filled.csv writes all\n"),
        (["--out", "a.csv"], "\n"),
    ):
        assert main(["predict", "records.csv", *QUICK, *more]) == 0
        assert f"and {len(truth) - 12} more rows{end}" in capsys.readouterr().out


def test_the_file_has_the_columns_and_the_scale_of_the_input(truth, capsys):
    table = pd.read_csv("records.csv").query("shots == 0")
    table = table[["task", "score", "model"]].assign(note=range(len(table)))
    table["score"] *= 100
    table.columns = ["exam", "points", "name", "note"]
    table.to_csv("own.csv", index=False)
    words = ["own.csv", "--columns", "model=name,task=exam,score=points", *QUICK]
    words += ["--scale", "percent", "--out", "a.csv"]
    assert main(["predict", *words]) == 0
    filled, gaps = pd.read_csv("a.csv"), table[table["points"].isna()]
    ends = ["predicted", "low", "high"]
    assert [*filled] == ["exam", "name", "note", *ends]
    assert filled["note"].tolist() == gaps["note"].tolist()
    assert 20 < filled["predicted"].median() < 80 and filled["high"].max() <= 100
    one = filled.iloc[0]
    assert "{:.1f}  {:.1f} to {:.1f}".format(*one[ends]) in capsys.readouterr().out


def test_gaps_in_a_pattern_are_held_out_so(truth, capsys):
    "A new model with two scores; and what is better than all others has no interval"
    made = make_synthetic_records(families=8, noise=0.03)
    tasks = sorted(made["task"].unique())
    middle = made.groupby("model")["score"].mean().sort_values().index[12]
    new = (made["model"] == middle) & ~made["task"].isin(tasks[:2])
    made.assign(score=made["score"].mask(new)).to_csv("new.csv", index=False)
    assert main(["predict", "new.csv", *QUICK, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["split"] == "gaps"
    best = made.groupby("model")["score"].mean().idxmax()
    new = (made["model"] == best) & ~made["task"].isin(tasks[:2])
    made.assign(score=made["score"].mask(new)).to_csv("best.csv", index=False)
    assert main(["predict", "best.csv", *QUICK, "--out", "out.csv"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert (
        "held out by gaps" in said and "better or worse than all other models" in said
    )
    assert pd.read_csv("out.csv")["low"].isna().all()
