"The tables of TailoredBench: their pieces on a table small enough to count by hand"

import numpy as np
import pandas as pd
import pytest

from benchnb.data.scores import Scores
from benchnb.evaluation.compare import compare
from benchnb.evaluation.simulate import ready
from benchnb.methods.tailored_bench import TailoredBench
from benchnb.papers.tailored_bench import (
    PARTS,
    OtherNatives,
    Variant,
    gsm8k_cells,
    scatter,
    setting_cells,
    setting_methods,
    with_and_without,
)
from benchnb.papers.verdicts import Verdict, table_cells


@pytest.fixture(scope="module")
def table():
    "Twenty models of two families, dealt to sources and targets"
    rng = np.random.default_rng(5)
    answers = (rng.random((20, 40)) < rng.uniform(0.2, 0.9, (20, 1))).astype(float)
    facts = pd.DataFrame(
        {
            "part": ["source", "target"] * 10,
            "family": ["llama"] * 8 + ["other"] * 12,
        },
        index=[f"m{i}" for i in range(20)],
    )
    return Scores(answers, models=facts)


def test_with_and_without_have_equally_many_sources(table):
    tables = with_and_without(table, "llama", seed=0)
    sizes = {name: (t.models["part"] == "source").sum() for name, t in tables.items()}
    assert sizes["with"] == sizes["without"] == 6
    for name, part in tables.items():
        source, target = part.split("given")
        assert (target.models["family"] == "llama").all() and len(target) == 4
        assert source.models["family"].eq("llama").sum() == (4 if name == "with" else 0)
    assert set(table.models["part"]) == {"source", "target"}  # the input stays


def test_cells_are_means_and_errors_of_trials(table):
    frame = compare(table, ["random"], [5], trials=4, split="given")
    cells = gsm8k_cells(frame, "table 6", {"random": "GSM8K / Random"}).set_index(
        "column"
    )
    errors = (frame["score"] - frame["truth"]).abs().groupby(frame["trial"]).mean()
    mae = cells.loc["5 items / mae"]
    assert mae["reproduced"] == pytest.approx(errors.mean())
    assert mae["stderr"] == pytest.approx(errors.std() / 2)
    assert mae["trials"] == 4 and mae["data"] == "gsm8k, given split"


@pytest.mark.parametrize(
    "settings, size", [({"count": 3}, 3), ({"first": 0.2, "last": 0.5}, 3)]
)
def test_other_natives_take_what_the_figure_asks(table, settings, size):
    source, target = table.split("given")
    methods = [TailoredBench(probe_size=5), OtherNatives(probe_size=5, **settings)]
    probes = np.arange(5)
    natives = []
    for method in methods:
        method.fit(source).probe_ = probes
        rows = target.values[:1, probes]
        natives.append(method.native_sources(rows, np.random.default_rng(0)))
    order, _ = methods[0].ranked_sources(target.values[:1, probes], None)
    start = round(settings.get("first", 0) * len(order))
    assert natives[1].tolist() == order[start : start + size].tolist()


def stored(table, row):
    "Stored cells of one row, with columns items and metric"
    cells = table_cells("tailored_bench")
    cells = cells[(cells["table"] == table) & (cells["row"] == row)].copy()
    names = cells["column"].str.extract(r"(?P<items>\d+) items / (?P<metric>.+)")
    return cells.join(names)


def test_the_printed_row_of_gsm8k_is_reached():
    "100 trials: the mean distance and that of each budget, in tau and in the error"
    row = stored("table 6", "GSM8K / TailoredBench")
    assert (row["trials"] >= 100).all() and len(row) == 10
    assert (row["verdict"] == Verdict.REPRODUCED).all()
    gap = row.set_index("metric")["difference"].abs().groupby("metric")
    assert gap.mean()["kendall"] <= 0.006 and gap.mean()["mae"] <= 0.001
    assert gap.max()["kendall"] <= 0.009 and gap.max()["mae"] <= 0.002


def test_scatter_is_the_deviation_that_the_errors_imply():
    trials = pd.Series([0.80, 0.84, 0.82, 0.90])
    cell = dict(table="table 6", row="GSM8K / Random", column="20 items / kendall")
    facts = dict(data="gsm8k, given split", reason="why", trials=4)
    cells = pd.DataFrame([cell | facts | dict(stderr=trials.sem(), reproduced=0.84)])
    found = scatter(pd.concat([cells, cells.assign(table="table 1")]))
    assert found["reproduced"].item() == pytest.approx(trials.std())
    assert found["stderr"].item() == pytest.approx(trials.std() / np.sqrt(6))
    assert found["column"].item() == "20 items / kendall sd"


def test_figure_7_compares_ours_with_anchor_points_at_every_budget():
    rows = [
        stored("figure 7", f"GSM8K / {name}") for name in ("TailoredBench", "Random")
    ]
    rows.append(stored("figure 7", "GSM8K / AnchorPoints"))
    assert all(len(row) == 10 for row in rows)
    ours, chance, anchor = (row.set_index("column")["reproduced"] for row in rows)
    assert (ours < chance).all()
    assert ours["20 items / kendall sd"] > anchor["20 items / kendall sd"]
    assert ours["20 items / mae sd"] < anchor["20 items / mae sd"]


def test_a_part_is_worth_its_mean_effect_over_the_other_parts():
    methods = setting_methods()
    assert len(methods) == 2 ** len(PARTS) + 3
    rng, rows = np.random.default_rng(0), []
    for name, method in methods.items():
        for trial, noise in enumerate(rng.normal(size=4)):
            gain = 2 * (method.probe_order == "position") - 3 * (method.search == "pam")
            tau = gain + 0.01 * noise
            rows.append(dict(method=name, trial=trial, kendall=tau, mae=-tau))
    cells = setting_cells(pd.DataFrame(rows)).set_index(["row", "column"])["reproduced"]
    assert cells["probe: sorted, not as drawn", "20 items / kendall"] == pytest.approx(
        2, abs=0.05
    )
    assert cells["items: PAM, not FasterPAM", "20 items / mae"] == pytest.approx(
        3, abs=0.05
    )
    assert cells["equal items: any, not the first", "20 items / mae"] == pytest.approx(
        0, abs=0.05
    )


def test_orders_of_the_probe_hold_the_same_items(table):
    source, _ = table.split("given")
    probes = {}
    for order in ("drawn", "position", "reversed", "hard first", "easy first"):
        method = Variant(probe_size=5, probe_order=order).fit(source)
        probes[order] = ready(method, 12, 3).probe_
    assert all(set(probe) == set(probes["drawn"]) for probe in probes.values())
    assert probes["position"].tolist() == sorted(probes["drawn"])
    assert probes["reversed"].tolist() == sorted(probes["drawn"])[::-1]
    ease = source.values[:, probes["hard first"]].mean(axis=0)
    assert (np.diff(ease) >= 0).all()
