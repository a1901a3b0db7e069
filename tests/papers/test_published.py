"The papers' tables as data: all cells, each a number or text"

import math

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
    assert printed_unit(text) == pytest.approx(10.0**-decimals)
    assert abs(printed_value(text) - exact) <= printed_unit(text) * (0.5 + 1e-6)


WORDS = ["", "yes", ">7", "0.86.3", "0, 1, 2", "1e3", "nan", " 1", "2.8T tokens", "5."]


@pytest.mark.parametrize("text", WORDS)
def test_text_is_no_number(text):
    assert math.isnan(printed_value(text)) and math.isnan(printed_unit(text))
