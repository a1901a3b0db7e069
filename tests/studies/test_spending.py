"Error against money: what the forecast prints, and what a table without costs says"

import json

import numpy as np
import pytest
from helpers.small import table

from benchnb.cli.app import main
from benchnb.data.scores import Scores
from benchnb.studies.planning import items_curve, items_needed, spend_curve


@pytest.fixture(scope="module")
def curve():
    return items_curve(table(), ["random", "aipw"], ["2ktokens", "8ktokens"], trials=3)


def test_the_curve_has_what_was_spent_and_what_can_be_seen(curve):
    found = spend_curve(curve)
    assert found.columns.tolist() == "method spend items mae mae_se visible".split()
    assert found["method"].tolist() == ["random"] * 2 + ["aipw"] * 2
    assert (found["spend"] <= [2000, 8000] * 2).all() and (found["items"] >= 5).all()
    rmse = curve.set_index(["method", "budget"])["rmse"]["random", 2000]
    visible = found["visible"].iloc[0]
    assert visible == pytest.approx((1.959964 + 0.841621) * 2**0.5 * rmse, rel=1e-5)
    assert np.all(found["visible"] < spend_curve(curve, power=0.95)["visible"])


def test_amounts_are_read_off_in_items(curve):
    needed = items_needed(curve, mae=0.2)
    assert needed["items"]["random"] == curve["asked"].iloc[0].round()


def test_without_costs_there_is_no_such_curve(curve):
    bare = Scores(table().values, table().items.drop(columns="cost"), table().models)
    plain = items_curve(bare, ["random"], [10, 20], trials=2)
    for one in (plain, curve.drop(columns="cost")):
        with pytest.raises(ValueError, match="no costs: import its logs with --cost"):
            spend_curve(one)


def test_a_forecast_prints_the_error_against_money(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    table().to_parquet("table.parquet")
    argv = ["forecast", "table.parquet", "--methods", "random", "--trials", "2"]
    argv += ["--dollars", "2/ktokens", "--budgets"]
    assert main([*argv, "3usd,9usd"]) == 0
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) <= 80
    part = out[out.index("error against money spent on one model") :].splitlines()
    assert part[1].split() == "method spend items error difference".split()
    assert part[2].split()[0] == "random" and part[2].split()[1].startswith("$")
    assert main([*argv, "3usd,9usd", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["spend"]
    assert all(row["spend"] <= 9 for row in rows) and len(rows) == 2
    assert main([*argv, "3min"]) == 2
    assert "its costs in usd, not in seconds" in capsys.readouterr().err
