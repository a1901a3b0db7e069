"The papers' tables as data: all cells, and the sums that a slip of the pen would break"

import math

import numpy as np
import pytest
from helpers.published import COUNTS
from hypothesis import given
from hypothesis import strategies as st

from benchnb.papers.published import (
    PAPERS,
    printed_unit,
    printed_value,
    published_cells,
)
from benchnb.papers.verdicts import CELL

# plausible values by the last word of the column that names a metric
RANGES = dict.fromkeys(["kendall", "pearson", "spearman", "r2"], (0, 1))
RANGES |= {"nrmse": (0, 8), "seconds": (0, 400)}
RANGES |= {"accuracy %": (20, 100), "difference": (-20, 20)}
BENCHMARKS = ["ARC", "HellaSwag", "GSM8K", "Winogrande", "POPE"]


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


def test_values_are_plausible():
    cells = published_cells().dropna(subset=["value"])
    metric = cells["column"].str.split(" / ").str[-1]
    for name, (low, high) in RANGES.items():
        values = cells.loc[metric == name, "value"]
        assert len(values) and values.between(low, high).all(), name
    errors = cells[metric.isin(["mae", "rmse"]) & (cells["column"] != "ranking / mae")]
    most = errors["paper"].eq("essence_bench") * 9.7 + 0.3  # in percentage points
    assert errors["value"].between(0, most).all()


def grid(paper, table):
    part = published_cells(paper).query("table == @table")
    return part.pivot(index="row", columns="column", values="value")


def test_tailored_best_baseline_is_the_best_of_three():
    best, full = grid("tailored_bench", "table 1"), grid("tailored_bench", "table 6")
    for bench in BENCHMARKS:
        rivals = [f"{bench} / {m}" for m in ("Random", "AnchorPoints", "gp-IRT")]
        for column in best:
            three, tau = full.loc[rivals, column], column.endswith("kendall")
            wanted = three.max() if tau else three.min()
            assert best.loc[f"{bench} / Best Baseline", column] == wanted
            ours = f"{bench} / TailoredBench", column
            assert best.loc[ours] == full.loc[ours]


def test_tailored_default_is_the_same_in_every_ablation():
    full = grid("tailored_bench", "table 6")
    rows = {"table 7": "Manhattan", "table 8": "calibrated"}
    rows |= {"table 9": "standardised number", "table 13": "G-set 10"}
    for table, name in rows.items():
        part = grid("tailored_bench", table)
        for bench in BENCHMARKS:
            for metric in ("kendall", "mae"):
                ours = full.loc[f"{bench} / TailoredBench", f"30 items / {metric}"]
                assert part.loc[f"{bench} / {name}", metric] == ours


@pytest.mark.parametrize("table", ["table 2", "table 3", "table 9", "table 10"])
def test_bento_best_is_the_least_of_its_row(table):
    errors = grid("bento", table)
    least = errors.drop(columns="best / nrmse").min(axis=1)
    assert (least == errors["best / nrmse"]).all()


def test_bento_tables_1_8_and_11_agree():
    one, eight, eleven = (grid("bento", f"table {n}") for n in (1, 8, 11))
    full = one["full benchmark / accuracy %"]
    estimate = (full + one["BENTo / difference"]).round(1)
    assert (eleven["measured / accuracy %"] == full).all()
    assert (eleven["BENTo-estimated / accuracy %"] == estimate).all()
    assert (eight["all tasks / accuracy %"] == full[eight.index]).all()
    assert (eight["selected tasks / accuracy %"] == estimate[eight.index]).all()


def test_sums_hold_within_rounding():
    shares = grid("predicting_big_bench", "table 3").drop(columns="conclusion")
    np.testing.assert_allclose(shares.sum(axis=1), 100, atol=0.051)
    times = grid("collaborative_filtering", "table 3").T
    both = times.loc["select / seconds"] + times.loc["predict / seconds"]
    np.testing.assert_allclose(both, times.loc["total / seconds"], rtol=0.005)


@pytest.mark.parametrize("name", ["TailoredBench", "../bento", "", "foo"])
def test_unknown_paper(name):
    remedy = "did you mean '(tailored_bench|bento)'|there are bento, "
    with pytest.raises(ValueError, match=rf"no paper '{name}': ({remedy})"):
        published_cells(name)


@given(st.integers(-(10**6), 10**6), st.integers(0, 6))
def test_printing_loses_at_most_half_a_unit(number, decimals):
    exact = number / 10**4
    text = f"{exact:.{decimals}f}"
    assert printed_unit(text) == pytest.approx(10.0**-decimals)
    assert abs(printed_value(text) - exact) <= printed_unit(text) * (0.5 + 1e-6)


WORDS = ["", "yes", ">7", "0.86.3", "0, 1, 2", "1e3", "nan", " 1", "2.8T tokens", "5."]


@pytest.mark.parametrize("text", WORDS)
def test_text_is_no_number(text):
    assert math.isnan(printed_value(text)) and math.isnan(printed_unit(text))
