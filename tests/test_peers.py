"""Other programs beside this one (tools/peers.py): what is counted, and what is left
out where a program cannot be had."""

import math

import numpy as np
import pytest

from tools import peers


def test_a_row_counts_what_holds_and_what_has_no_interval():
    row = peers.summary(
        "f",
        items=5,
        total_ms=8.0,
        errors=[0.1, 0.3, np.nan, 0.2],
        low=[0.0, 0.6, np.nan, 0.2],
        high=[0.5, 0.8, np.nan, 0.4],
        truth=[0.4, 0.5, 0.3, 0.2],
    )
    assert row["trials"] == 4
    assert row["ms"] == pytest.approx(8 / 3)  # of three answers
    assert row["error"] == pytest.approx(0.2)
    assert row["covered"] == 0.5  # an interval that is missing holds nothing
    assert row["none"] == 0.25
    assert row["width"] == pytest.approx(0.9 / 3)


def test_made_up_pairs_have_the_differences_that_they_are_said_to_have():
    pairs = peers.made_up_pairs(2000)
    measured = (pairs["a50"] - pairs["b50"]).mean(axis=1)
    assert abs(np.mean(measured - pairs["truth"])) < 4 * 0.1 / math.sqrt(2000)


def test_a_program_without_a_package_is_left_out_with_the_remedy(monkeypatch, tmp_path):
    monkeypatch.delenv("PEER_SOURCES", raising=False)
    reason = peers.make_environment("cBMM", tmp_path)
    assert "set PEER_SOURCES" in reason
    assert not any(tmp_path.iterdir())


@pytest.mark.slow
def test_what_cannot_be_installed_is_a_line_and_the_rest_is_measured(
    monkeypatch, tmp_path, capsys
):
    monkeypatch.setenv("PIP_INDEX_URL", tmp_path.as_uri())
    monkeypatch.setenv("PIP_EXTRA_INDEX_URL", "")
    monkeypatch.delenv("PEER_ENVIRONMENTS", raising=False)
    pairs = {"evalsig", "benchnb"}
    work = [("difference", "made up", lambda: peers.made_up_pairs(3), sorted(pairs))]
    table = peers.main(tmp_path / "peers.csv", ["evalsig"], work)
    assert {*table["program"]} == {"benchnb"}
    assert (tmp_path / "peers.csv").read_text("utf-8").startswith("question,data,")
    said = [s for s in capsys.readouterr().out.splitlines() if s.startswith("evalsig")]
    assert len(said) == 1 and said[0].startswith("evalsig: left out: ")
