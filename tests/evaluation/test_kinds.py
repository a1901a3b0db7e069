"Six kinds of models: what intervals, labels and flags are worth, simulated and stored"

import numpy as np
import pandas as pd
import pytest

from benchnb.evaluation.registry import list_methods
from tools.kinds import KINDS, METHODS, RESULT, TABLES, cell, simulate_kind

SAFE = ["random", "difference", "aipw", "faq", "guarded_irt"]


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
    assert (table["silent_misses"] <= 0.07 + noise).all()
    drawn = table["method"] != "guarded_irt"
    assert (drawn <= (table["label"] == "design-based")).all()
    assert (table["coverage"] >= 0.93 - noise)[drawn].all()
    known = table[~drawn].query(
        "kind != 'weaker'"
    )  # of which two thirds are not ranked
    assert (known["coverage"] >= 0.93).all()


def test_an_interval_that_misses_often_is_flagged_and_has_no_rank():
    table = stored()
    noise = 2 * np.sqrt(0.93 * 0.07 / 300)  # the 20 runs of a draw share their items
    assert set(METHODS) == set(table["method"])
    assert (table["silent_misses"] <= 0.07 + noise).all()


def test_unlike_models_are_ranked_by_their_draw_only():
    table = stored()
    learned = table.query(
        "label != 'design-based' and not method.str.contains('guard')"
    )
    unlike = learned.query("kind in ['stronger', 'weaker', 'other profile']")
    assert (unlike["flagged"] > 0.9).all() and (unlike["ranked"] < 0.1).all()
    like = table.query("kind == 'like'").groupby("method")["ranked"].mean()
    assert like["guarded_irt"] > 0.85 and like["atlas"] == 0


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
