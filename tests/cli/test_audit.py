"benchnb audit and publish --without"

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from benchnb.cli.app import main


@pytest.fixture
def call(tmp_path, monkeypatch, capsys):
    "A table with an item that weak models solve; gives exit code and what was printed"
    monkeypatch.chdir(tmp_path)
    rng, chance = np.random.default_rng(0), np.linspace(0.1, 0.9, 60)[:, np.newaxis]
    values = (rng.random((60, 40)) < chance) * 1.0
    values[:, 7], values[:, 8] = 1 - chance[:, 0].round(), 0
    frame = pd.DataFrame(values, columns=[f"=q{k}" for k in range(40)])
    frame.insert(0, "model", [f"m{k}" for k in range(60)])
    frame.to_csv("scores.csv", index=False)

    def give(line):
        code = main(line.split(" "))
        out, err = capsys.readouterr()
        return code, out + err

    return give


def test_a_list_is_written_and_leaves_items_out(call):
    code, out = call("audit scores.csv --out audit.csv --first 3")
    assert code == 0 and "2 of 40 items have a class, written: audit.csv" in out
    rows = pd.read_csv("audit.csv", keep_default_na=False)
    assert [*rows["classes"][[0, 39]]] == ["against", "dead"]
    assert rows["item"][0] == "'=q7"  # no formula in a spreadsheet
    few = "publish scores.csv --method random --budget 10 --folds 0 --without"
    code, out = call(f"{few} audit.csv --out small")
    assert code == 0 and "60 models x 38 items" in out
    assert "without 2 items of audit.csv" in out
    rows[["item"]].to_csv("all.csv", index=False)
    code, out = call(f"{few} all.csv --out other")
    assert code == 2 and out.count("\n") == 1 and not Path("other").exists()
    code, out = call(f"{few} none.csv --out other")
    assert code == 2 and "none.csv" in out


def test_json_has_items_and_effects(call):
    code, out = call("audit scores.csv --json")
    found = json.loads(out)
    assert code == 0 and found["items"][0]["item"] == "=q7"
    assert [row["without"] for row in found["without"]][1:] == [
        "against",
        "dead",
        "all",
    ]


MISTAKES = {
    "audit scores.csv --level 2": "--level 2.0",
    "audit scores.csv --after 2024-01-01": "10 models with a day in the column",
    "audit scores.csv --after soon": "to be a day, such as 2024-05-31",
    "audit scores.csv --first -1": "--first is a number of items",
    "publish scores.csv --method random --budget 9 --out p --without ": "check",
    "audit scores.csv --out scores.csv": "named twice",
    "audit nothing.csv": "nothing.csv",
}


@pytest.mark.parametrize("line", MISTAKES)
def test_a_mistake_is_one_line_and_exit_code_2(call, line):
    code, out = call(line)
    assert (code, out.count("\n")) == (2, 1) and MISTAKES[line] in out


LISTS = {  # a file for --without -> what is said of it
    "item,classes\n=q1,dead,\n": "a row has more cells than the line of column names",
    "name\n=q1\n": "no column 'item'",
    "item\nq1\nq2\n": "names 2 items that are not in the table, such as 'q1'",
    "": "it is empty",
}


@pytest.mark.parametrize("text", LISTS)
def test_a_list_of_another_form_leaves_nothing_out(call, text):
    Path("odd.csv").write_text(text)
    publish = "publish scores.csv --method random --budget 9 --folds 0 --out p"
    code, out = call(f"{publish} --without odd.csv")
    assert (code, out.count("\n")) == (2, 1) and LISTS[text] in out and "odd.csv" in out


@pytest.mark.parametrize("days", ["2021-01-{:02}", "202101{:02}", "20{:02}"])
def test_days_are_read_however_they_are_written(call, days):
    frame = pd.read_csv("scores.csv").set_index("model")
    long = frame.reset_index().melt("model", var_name="item", value_name="score")
    names = {name: k // 2 + 1 for k, name in enumerate(frame.index)}
    long["released"] = long["model"].map(names).map(days.format)
    long.loc[long["item"] == "=q3", "score"] = 1.0 * (long["model"].map(names) > 15)
    long.to_csv("dated.csv", index=False)
    assert call("audit dated.csv --out found.csv")[0] == 0
    assert pd.read_csv("found.csv")["newer_r"].notna().any()
    long["released"] = "soon"
    long.to_csv("dated.csv", index=False)
    code, out = call("audit dated.csv")
    assert code == 2 and "released of model 'm0' is 'soon'" in out


def test_a_narrow_terminal_is_no_error(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "20")
    rows = [f"m{m},item-{i},{(m + i) % 2}" for m in range(25) for i in range(9)]
    Path("a.csv").write_text("\n".join(["model,item,score", *rows]))
    assert main(["audit", "a.csv"]) == 0
    assert "to read first" in capsys.readouterr().out
    assert main(["audit", "a.csv", "--out", "a.parquet"]) == 2
    assert "must end in .csv" in capsys.readouterr().err
