"`benchnb compare`: what it leaves behind"

import json

import pandas as pd
import pytest
from helpers.small import table

from benchnb.cli.app import main
from benchnb.data.scores import Scores


def test_a_comparison_without_results_touches_no_file(tmp_path, monkeypatch, capsys):
    "A file that only looks like a journal of nothing stays"
    monkeypatch.chdir(tmp_path)
    table().to_parquet("table.parquet")
    (tmp_path / "None.journal").write_text("mine")
    few = ["--methods", "random", "--budgets", "6", "--trials", "1"]
    assert main(["compare", "table.parquet", *few]) == 0
    assert (tmp_path / "None.journal").read_text() == "mine"
    assert main(["compare", "table.parquet", *few, "--out", "out.csv"]) == 0
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["None.journal", "out.csv", "table.parquet"]


def compared(capsys, *words):
    few = ["--methods", "random", "--budgets", "6,12", "--trials", "1"]
    code = main(["compare", "table.parquet", *few, *words])
    return code, *capsys.readouterr()


def test_dollars_are_those_of_an_item(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    scores = table()
    scores.to_parquet("table.parquet")
    code, out, _ = compared(capsys)
    assert code == 0 and "$" not in out and "cost" not in out
    code, out, _ = compared(capsys, "--dollars", "2.5")
    assert "all items cost $150: $2.50 each" in out  # 60 items
    assert [line.split()[:2] for line in out.splitlines() if " random " in line] == [
        ["6", "$15"],
        ["12", "$30"],
    ]
    code, out, _ = compared(capsys, "--dollars", "2.5", "--json")
    assert [row["cost"] for row in json.loads(out)] == [15, 30]
    assert {row["cost_unit"] for row in json.loads(out)} == {"usd"}
    agents = scores.models.assign(llm="one")  # a dollar each, if nothing is said
    bare = scores.items.drop(columns="cost")
    Scores(scores.values, bare, agents).to_parquet("table.parquet")
    assert "all items cost $60: $1.00 each" in compared(capsys)[1]


@pytest.mark.parametrize("price", ["0", "-1", "nan", "inf", "3/bananas"])
def test_an_impossible_price_is_one_line(price, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    table().to_parquet("table.parquet")
    code, out, err = compared(capsys, "--dollars", price)
    assert (code, out, err.count("\n")) == (2, "", 1) and "--dollars" in err


def test_errors_and_widths_are_in_points(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    table().to_parquet("table.parquet")
    code, out, _ = compared(capsys, "--out", "out.csv")
    rows = [line.split() for line in out.splitlines() if " random " in line]
    stored = pd.read_csv("out.csv").set_index("budget")
    for row in rows:
        mae, width = stored.loc[int(row[0]), ["mae", "width"]]
        assert float(row[2]) == pytest.approx(100 * mae, abs=0.006)
        assert float(row[-2]) == pytest.approx(100 * width, abs=0.06)


def test_amounts_in_place_of_items(tmp_path, monkeypatch, capsys):
    "Items and spend of every method, in 80 columns; a wrong unit is one line"
    monkeypatch.chdir(tmp_path)
    table().to_parquet("table.parquet")
    few = ["compare", "table.parquet", "--methods", "random,guarded_irt_static"]
    few += ["--trials", "1", "--budgets"]
    assert main([*few, "3ktokens,12ktokens", "--plot", "a.svg"]) == 0
    out, _ = capsys.readouterr()
    lines = out.splitlines()
    assert max(map(len, lines)) <= 80
    (head,) = (line for line in lines if "MAE" in line and "tokens" in line)
    assert head.split()[:3] == ["tokens", "items", "spent"]
    assert head.split()[-1] == "width"  # the times have no room
    rows = lines[lines.index(head) + 1 :][:4]
    assert [row[:8].strip() for row in rows] == ["3,000", "", "12k", ""]
    assert main([*few, "3usd", "--dollars", "0.5", "--json"]) == 0
    for row in json.loads(capsys.readouterr().out):
        assert (row["asked"], row["cost"], row["unit"]) == (6, 3, "usd")
    for wrong, says in {
        "3usd": "its costs in tokens, not in usd: give the budget in items or tokens",
        "10,3usd": "--budgets 10,3usd is in items and usd: give all in one unit",
        "3bananas": "--budgets: '3bananas' is no amount: write 50 (items)",
    }.items():
        assert main([*few, wrong]) == 2
        err = capsys.readouterr().err
        assert says in err and err.count("\n") == 1
