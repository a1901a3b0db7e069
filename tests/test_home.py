"""The home page: short, and its numbers are those of the explorer and *All methods*."""

import json
import re

import pandas as pd
import pytest

from tools.process import explorer_data
from tools.run import ROOT

README = (ROOT / "README.md").read_text("utf-8")  # written from the home page
ROWS = re.findall(r"^\| `(\w+)` \| (.*) \|$", README, flags=re.M)
TABLE = {name: cells.split(" | ") for name, cells in ROWS}


@pytest.fixture(scope="module")
def explorer():
    found = explorer_data()
    return pd.DataFrame(found["rows"], columns=found["columns"])


def stored_table(cell):
    "A table that *All methods* shows: methods x data sets, and the mean"
    nb = json.loads((ROOT / "nbs/studies/all_methods.ipynb").read_text("utf-8"))
    [found] = [c for c in nb["cells"] if c["id"] == cell]
    html = "".join(found["outputs"][0]["data"]["text/html"])
    rows = [
        re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row, flags=re.S)
        for row in html.split("<tr")
    ]
    [head] = [row[1:] for row in rows if row[:1] == ["data"]]
    body = {row[0]: row[1:] for row in rows if len(row) > 1 and row[1]}
    body.pop("data")
    return pd.DataFrame(body.values(), [*body], head).replace("", "nan").astype(float)


def test_it_is_short():
    text = re.sub(r"<[^>]*>|\]\([^)]*\)", "", README)
    assert len(text.split()) <= 450
    assert len(re.findall(r"\]\(", README)) <= 25
    assert README.count("pip install") == README.count("\nbenchnb ") == 1
    assert README.count("<div>") == 3  # doors


def test_the_headline_names_one_method_and_the_explorer_has_its_numbers(explorer):
    [bold] = re.findall(r"^\*\*(With .*?)\*\*$", README, flags=re.M)
    assert re.findall(r"`(\w+)`", bold) == ["guarded_irt"]
    here = explorer.query("data == 'swebench_verified' and split == 'date'")
    errors = here.set_index(["method", "budget"])["mae"] * 100
    wanted = errors["guarded_irt", 25], errors["random", 25], errors["random", 50]
    assert re.findall(r"\d+\.\d", bold) == [f"{error:.1f}" for error in wanted]
    assert {n: c[0] for n, c in TABLE.items()} == {
        name: f"{errors[name, 25]:.1f} points" for name in TABLE
    }


@pytest.mark.parametrize(
    "split, at, cell", [("random", 1, "6a054564"), ("ability", 2, "5f978c99")]
)
def test_relative_errors_are_those_of_the_explorer_and_of_all_methods(
    explorer, split, at, cell
):
    stored = stored_table(cell)
    known = explorer[(explorer["split"] == split) & (explorer["budget"] == 50)]
    known = known[known["data"].isin(stored.columns)]
    assert "random" in TABLE and known["data"].nunique() == stored.shape[1] - 1
    for name, cells in TABLE.items():
        each = known[known["method"] == name]["relative"]
        figures = [float(n) for n in re.findall(r"[\d.]+", cells[at])]
        wanted = [each.mean(), each.min(), each.max()][: len(figures)]
        assert figures == pytest.approx(wanted, abs=0.00501)
        of_all = stored.loc[name]
        beside = [of_all["mean"], *of_all.drop("mean").agg(["min", "max"])]
        assert figures == beside[: len(figures)]


def test_intervals_are_those_of_the_explorer_and_of_all_methods(explorer):
    stored = stored_table("6302a649")["mean"]
    known = explorer[(explorer["split"] == "ability") & (explorer["budget"] == 50)]
    for name, cells in TABLE.items():
        share = known[known["method"] == name]["coverage"].mean()
        assert cells[3] == f"{share:.0%}" == f"{stored[name]:.0%}"
