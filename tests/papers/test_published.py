"Files of the papers: printed numbers, and the results that are stored beside them"

import json
import math
import os

import numpy as np
import pandas as pd
import pytest
from helpers.published import COUNTS
from hypothesis import given
from hypothesis import strategies as st

from benchnb.papers.published import (
    BY_TRIAL,
    CELL,
    PAPERS,
    RESULT_COLUMNS,
    RunSettings,
    cells_to_json,
    count_verdicts,
    format_cells,
    published_cells,
    read_ledger,
    read_stored_results,
    side_by_side,
    store_results,
    table_cells,
)
from benchnb.papers.verdicts import Verdict, parse_printed_unit, parse_printed_value

PAPER = "tailored_bench"
ADDRESS = "GSM8K / TailoredBench", "30 items / kendall"
FACTS = dict(paper="tailored_bench", table="table 6", data="made up")
FACTS |= dict(row=ADDRESS[0], column=ADDRESS[1], verdict="", reason="")
FACTS |= dict(reproduced=0.8647, trials=100, stderr=0.0021)
FACTS |= dict(draws="", by_trial="", ceiling=math.nan)


def results(*changes):
    "Stored results: one that is right in every respect, changed in turn"
    return pd.DataFrame([FACTS | one for one in changes or [{}]])[RESULT_COLUMNS]


def cell(cells, column=ADDRESS[1]):
    "The one cell of our row of table 6"
    mine = (cells["table"] == "table 6") & (cells["row"] == ADDRESS[0])
    (place,) = np.flatnonzero(mine & (cells["column"] == column))
    return cells.iloc[place]


@pytest.mark.parametrize("paper", PAPERS)
def test_every_table_has_all_its_cells(paper):
    cells = published_cells(paper)
    assert cells.groupby("table", sort=False).size().to_dict() == COUNTS[paper]
    assert (cells["paper"] == paper).all()


def test_no_cell_comes_twice_or_is_blank():
    cells = published_cells()
    assert not cells.duplicated(CELL).any()
    for name in [*CELL, "published"]:
        assert (cells[name] != "").all()
        assert (cells[name] == cells[name].str.strip()).all()


@pytest.mark.parametrize("name", ["TailoredBench", "../bento", "", "foo"])
def test_unknown_paper(name):
    remedy = "did you mean '(tailored_bench|bento)'|there are bento, "
    with pytest.raises(ValueError, match=rf"no paper '{name}': ({remedy})"):
        published_cells(name)


@given(st.integers(-(10**6), 10**6), st.integers(0, 6))
def test_printing_loses_at_most_half_a_unit(number, decimals):
    exact = number / 10**4
    text = f"{exact:.{decimals}f}"
    assert parse_printed_unit(text) == pytest.approx(10.0**-decimals)
    assert abs(parse_printed_value(text) - exact) <= parse_printed_unit(text) * (
        0.5 + 1e-6
    )


WORDS = ["", "yes", ">7", "0.86.3", "0, 1, 2", "1e3", "nan", " 1", "2.8T tokens", "5."]


@pytest.mark.parametrize("text", WORDS)
def test_text_is_no_number(text):
    assert math.isnan(parse_printed_value(text)) and math.isnan(
        parse_printed_unit(text)
    )


# ---- results


def test_finished_pieces_are_kept(tmp_path):
    runs, work = RunSettings(journals=tmp_path), {"a": (sum, [1, 2])}
    assert runs.once("sums", "x", work) == [3]
    more = {"b": (sum, [3, 4]), "a": (None,)}  # a is not computed again
    assert runs.once("sums", "x", more) == [7, 3]
    with pytest.raises(ValueError, match="another computation"):
        runs.once("sums", "y", work)


# ---- stored results


def test_what_is_stored_comes_back(tmp_path):
    none = dict.fromkeys(["reproduced", "trials", "stderr"], math.nan)
    none |= dict(column="30 items / mae", data="", reason='no, "data"\nhere')
    first = dict(reproduced=0.123456789, stderr=0.000123456789)
    other = dict(column="20 items / mae", verdict="on other data", reason="π ≈ 3")
    rows = results(first, none, other)
    mixed = rows.sample(frac=1, axis=1, random_state=0)
    path = store_results(mixed, PAPER, tmp_path / "new")
    back = read_stored_results(tmp_path / "new")
    rows.loc[0, ["reproduced", "stderr"]] = 0.123457, 0.000123457
    found = back.set_index("column").loc[rows["column"]].reset_index()[RESULT_COLUMNS]
    pd.testing.assert_frame_equal(found, rows, check_dtype=False)
    first = path.read_bytes()
    store_results(back, PAPER, tmp_path / "new")
    assert path.read_bytes() == first and b",0.123457,100,0.000123457," in first


BAD = [  # changes to a right result, and what the error names
    (dict(paper="tailored"), "'tailored_bench'"),
    (dict(row=None), "empty"),
    (dict(verdict="reproduced"), "verdict"),
    (dict(reproduced=math.inf), "finite"),
    (dict(stderr=-0.1), "stderr"),
    (dict(trials=1.5), "trials"),
    (dict(verdict="cannot be told", reason="x"), "told"),
    (dict(reproduced=math.nan), "reason"),
    (dict(reproduced=math.nan, verdict="on other data", reason="x"), "cannot be told"),
    (dict(by_trial="0.8 0.9", draws="splits"), "each trial"),
    (dict(by_trial=" ".join(["0.8"] * 100)), "draws"),
    (dict(verdict="on other data", data=""), "data"),
]


@pytest.mark.parametrize("changes, words", BAD, ids=lambda x: str(x)[:40])
def test_a_bad_result_is_named_and_nothing_is_written(tmp_path, changes, words):
    old = store_results(results(), PAPER, tmp_path).read_bytes()
    with pytest.raises(ValueError, match=PAPER + ".*" + words):
        store_results(results(changes), PAPER, tmp_path)
    assert [p.read_bytes() for p in tmp_path.iterdir()] == [old]


def test_what_is_printed_stays_and_a_new_measure_says_which_way_is_better(tmp_path):
    with pytest.raises(ValueError, match="wit: a new column: say better"):
        store_results(results(dict(column="wit")), PAPER, tmp_path)
    rows = results(dict(column="wit")).assign(better="higher", best="1")
    store_results(rows, PAPER, tmp_path)
    mine, own = read_ledger(PAPER, tmp_path), read_ledger(PAPER)
    new = mine[mine["column"] == "wit"]
    assert new[["better", "best", "published"]].to_numpy().tolist() == [
        ["higher", 1, ""]
    ]
    printed = ["kind", "table", "row", "column", "published", "better", "best", "claim"]
    was, now = (b.loc[b["published"] != "", printed].reset_index() for b in (own, mine))
    assert now[printed].equals(was[printed])
    assert mine["reproduced"].notna().sum() == 1  # the others are not yet measured


def test_a_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
    old = store_results(results(), PAPER, tmp_path).read_bytes()

    def fail(*_):
        raise OSError("disk full")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError):
        store_results(results(dict(reproduced=0.1)), PAPER, tmp_path)
    assert [p.read_bytes() for p in tmp_path.iterdir()] == [old]


# ---- joined


@pytest.fixture
def joined(tmp_path):
    "A folder with one result of each kind"
    other = dict(verdict="on other data")
    rows = [{}, dict(column="30 items / mae", reproduced=0.05, stderr=0.0005)]
    rows += [dict(column="20 items / mae", reproduced=0.9) | other]
    rows += [dict(column="25 items / mae", reproduced=math.nan, reason="no models")]
    rows += [dict(row="GSM8K / AIPW"), dict(table="ours", row="x", column="mae")]
    store_results(results(*rows), PAPER, tmp_path)
    essence = dict(paper="essence_bench", table="section: Main Results", reproduced=8)
    essence |= dict(column="300 items / rmse")
    rows = essence | dict(row="MMLU / PPL"), essence | other | dict(row="MMLU / GraNd")
    store_results(results(*rows), "essence_bench", tmp_path)
    return tmp_path


def test_cells_stand_beside_the_printed_ones(joined):
    cells = table_cells("tailored_bench", joined)
    assert len(cells) == sum(COUNTS["tailored_bench"].values()) + 2
    words = {
        "20 items / mae": Verdict.OTHER_DATA,
        "25 items / kendall": Verdict.CANNOT_TELL,
        "25 items / mae": Verdict.CANNOT_TELL,
        "30 items / kendall": Verdict.REPRODUCED,
        "30 items / mae": Verdict.DIFFERS,
    }
    assert {column: cell(cells, column)["verdict"] for column in words} == words
    assert cell(cells)["difference"] == 0.0017 and cell(cells)["published"] == "0.863"
    ours = cells[cells["verdict"] == Verdict.NOT_PUBLISHED]
    assert ours["row"].tolist() == ["GSM8K / AIPW", "x"]
    tables = cells["table"]  # a variant stands at the end of its table
    assert tables.nunique() == (tables != tables.shift()).sum()
    everything = table_cells(folder=joined)
    text = everything[everything["published"] == ">7"].set_index("row")["verdict"]
    assert text.to_dict() == {
        "MMLU / PPL": Verdict.CANNOT_TELL,
        "MMLU / GraNd": Verdict.OTHER_DATA,
    }
    assert count_verdicts(everything).sum() == len(everything)


def test_json_is_strict(joined):
    def no_constant(name):
        raise AssertionError(name)

    cells = table_cells(folder=joined)
    rows = json.loads(cells_to_json(cells), parse_constant=no_constant)
    shown = [name for name in cells if name not in BY_TRIAL]
    assert [list(row) for row in rows] == [shown] * len(cells)
    by_address = {tuple(row[name] for name in CELL): row for row in rows}
    mine = by_address["tailored_bench", "table 6", *ADDRESS]
    numbers = ["published", "reproduced", "difference", "trials"]
    assert [mine[name] for name in numbers] == [0.863, 0.8647, 0.0017, 100]
    variant = by_address["tailored_bench", "table 6", "GSM8K / AIPW", ADDRESS[1]]
    assert variant["published"] is None and variant["difference"] is None
    counts = "predicting_big_bench", "table 1", "experiment records", "count"
    assert by_address[counts]["published"] == 56143
    assert json.loads(cells_to_json(cells.iloc[:0])) == []


@pytest.mark.parametrize("paper", PAPERS)
def test_side_by_side_has_every_cell(paper, tmp_path):
    for table, count in COUNTS[paper].items():
        wide = side_by_side(paper, table, tmp_path)
        published = wide.xs("published", axis=1, level=1)
        assert (published != "").to_numpy().sum() == count
        assert (wide.drop(columns="published", level=1) == "").all(axis=None)


def test_side_by_side_shows_one_digit_more(joined):
    wide = side_by_side("tailored_bench", "table 6", joined)
    assert wide.loc[ADDRESS].tolist() == ["0.863", "0.8647", "+0.0017"]
    assert wide.loc["GSM8K / AIPW", ADDRESS[1]].tolist() == ["", "0.8647", ""]
    with pytest.raises(ValueError, match="no table 'Table6': did you mean 'table 6'"):
        side_by_side("tailored_bench", "Table6", joined)


def test_terminal_text_fits_and_holds_every_cell(tmp_path):
    long = "a reason that goes on " * 8
    tiny = dict(paper="collaborative_filtering", table="table 3", row="MMLU / Random")
    tiny |= dict(column="predict / seconds", reproduced=0.00078123, stderr=1.2e-7)
    large = dict(paper="predicting_big_bench", table="table 1", column="count")
    large |= dict(row="experiment records", reproduced=1234567.8)
    store_results(results(dict(reason=long), dict(row="GSM8K / AIPW")), PAPER, tmp_path)
    for one in (tiny, large):
        store_results(results(one), one["paper"], tmp_path)
    cells = table_cells(folder=tmp_path)
    text = format_cells(cells)
    assert max(map(len, text.splitlines())) <= 80
    assert text.startswith(f"{len(cells)} cells: ")
    words = " ".join(text.split())
    assert "0.863 0.8647 ±0.0021 +0.0017 reproduced" in words and long.strip() in words
    tables = cells.groupby(["paper", "table"]).ngroups
    assert sum(line.startswith("---") for line in text.splitlines()) == tables
    assert format_cells(cells.iloc[:0]).startswith("0 cells\n")
    short = format_cells(cells, all=False)
    assert len(short) < len(text) and "without a number here" in short
