"Six kinds of models: what intervals, labels and flags are worth, simulated and stored"

import numpy as np
import pandas as pd
import pytest

from benchnb.evaluation.registry import list_methods
from tools.kinds import KINDS, METHODS, RESULT, TABLES, cell, simulate_kind

SAFE = ["random", "difference", "aipw", "faq", "guarded_irt"]
CHECKED = [
    *SAFE,
    "stratified",
    "adaptive_irt",
    "atlas",
]  # they look, or say they do not


def stored():
    return pd.read_csv(RESULT)


def test_every_cell_of_the_stored_table_rests_on_300_runs():
    table = stored()
    assert set(table["kind"]) == set(KINDS) and set(table["data"]) <= set(TABLES)
    assert (table["runs"] >= 300).all()
    assert set(SAFE) <= set(table["method"]) <= set(METHODS)
    assert {name.split("(")[0] for name in METHODS} <= set(list_methods())


def test_methods_that_are_labelled_by_their_draw_hold_for_every_kind():
    table = stored().query("method in @SAFE")
    noise = 2 * np.sqrt(0.93 * 0.07 / table["runs"])
    assert (table["coverage"] >= 0.93 - noise).all()
    assert (table["silent_misses"] <= 0.07 + noise).all()
    drawn = table[table["method"] != "guarded_irt"]
    assert (drawn["label"] == "design-based").all()


def test_an_interval_that_misses_often_is_flagged_and_has_no_rank():
    table = stored().query("method in @CHECKED")
    noise = 3 * np.sqrt(
        0.93 * 0.07 / table["runs"]
    )  # the 20 runs of a trial share items
    assert (table["silent_misses"] <= 0.07 + noise).all()


@pytest.mark.parametrize("name", ["random", "faq", "guarded_irt", "atlas"])
def test_one_trial_of_each_kind(name):
    for kind in KINDS:
        figures = cell([simulate_kind(name, "helm_medqa", kind, 0)])
        assert figures["runs"] == 20
        if kind == "constant":
            assert figures["coverage"] == 1
        if name in ("random", "faq"):
            assert figures["label"] == "design-based" and figures["ranked"] == 1
        if name == "atlas":
            assert figures["flagged"] == 1 and figures["ranked"] == 0
    assert simulate_kind(name, "helm_medqa", "like", 0) == simulate_kind(
        name, "helm_medqa", "like", 0
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", SAFE)
@pytest.mark.parametrize("kind", KINDS)
def test_coverage_of_each_kind_once_more(name, kind):
    "Other trials than those of the stored table"
    pieces = [simulate_kind(name, "ifeval", kind, trial) for trial in range(90, 96)]
    figures = cell(pieces)
    assert figures["coverage"] >= 0.86  # of 120, six draws
