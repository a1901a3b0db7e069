"How many random items an interval is worth, and where that cannot be said"

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from benchnb.cli.report import report_rows
from benchnb.data.scores import Scores
from benchnb.data.sources import load
from benchnb.evaluation.method import Estimand, Estimate, Flag, IntervalKind
from benchnb.evaluation.registry import get_method
from benchnb.evaluation.simulate import simulate

CONFORMAL = Estimate(0.5, (0.45, 0.55), kind=IntervalKind.CONFORMAL, total=541)


@pytest.mark.parametrize(("budget", "off"), [(20, 0.01), (100, 0.01), (400, 0.1)])
def test_random_items_are_worth_what_they_are(budget, off):
    "Where most items were asked, an interval ends at whole items, and is a bit wider"
    sources, targets = load("ifeval").split("random", seed=0)
    method = get_method("random").fit(sources)
    estimates = simulate(method, targets.select(models=range(10)), budget)
    for estimate in estimates:
        inside = 0 < estimate.interval[0] and estimate.interval[1] < 1
        assert not inside or abs(estimate.effective_items - budget) < off * budget
    assert any(0 < estimate.interval[0] for estimate in estimates)


@pytest.mark.parametrize(
    "changes",
    [
        {"kind": IntervalKind.MODEL},
        {"kind": IntervalKind.NONE, "interval": (math.nan, math.nan)},
        {"interval": (0.0, 1.0)},
        {"flags": frozenset({Flag.MISFIT})},
        {"flags": frozenset({Flag.OUT_OF_RANGE})},
        {"estimand": Estimand.EXPECTED},
        {"total": math.nan},
    ],
)
def test_where_random_items_are_no_measure_it_is_not_known(changes):
    assert 200 < CONFORMAL.effective_items < 250
    assert math.isnan(replace(CONFORMAL, **changes).effective_items)


def test_scores_in_parts_and_unequal_weights_are_not_compared():
    right = np.random.default_rng(0).random((30, 40)) < 0.5
    sources = Scores(right[:29].astype(float))
    method = get_method("random").fit(sources)
    (plain,) = simulate(method, Scores(right[29:].astype(float)), 10)
    assert plain.total == 40
    (graded,) = simulate(method, Scores(right[29:] * 0.7), 10)
    assert math.isnan(graded.total)
    items = pd.DataFrame({"weight": np.arange(1.0, 41)}, [f"q{n}" for n in range(40)])
    weighted = Scores(right[:29].astype(float), items)
    (estimate,) = simulate(
        get_method("random").fit(weighted), Scores(right[29:].astype(float), items), 10
    )
    assert math.isnan(estimate.effective_items)


@pytest.mark.parametrize(
    ("worth", "shown"), [(91.2, True), (52.0, False), (None, False)]
)
def test_a_report_says_it_where_it_is_more_than_was_asked(worth, shown):
    report = {
        "score": 0.5,
        "interval": [0.4, 0.6],
        "level": 0.95,
        "items": {"spent": 50, "full": 541},
        "rank": None,
        "cost": None,
        "certificate": None,
        "unscored": [],
        "how": "conformal",
        "effective_items": worth,
    }
    (text,) = [text for label, text in report_rows(report) if label == "interval"]
    assert text == "conformal" + "; as narrow as that of 91 random items" * shown
