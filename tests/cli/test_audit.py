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
        code = main(line.split())
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
    "audit scores.csv --after 2024-01-01": "needs models with a column 'released'",
    "audit scores.csv --out scores.csv": "named twice",
    "audit nothing.csv": "nothing.csv",
}


@pytest.mark.parametrize("line", MISTAKES)
def test_a_mistake_is_one_line_and_exit_code_2(call, line):
    code, out = call(line)
    assert (code, out.count("\n")) == (2, 1) and MISTAKES[line] in out
