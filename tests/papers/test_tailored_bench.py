"The tables of TailoredBench: their pieces on a table small enough to count by hand"

import numpy as np
import pandas as pd
import pytest

from benchnb.data.scores import Scores
from benchnb.evaluation.compare import compare
from benchnb.methods.tailored_bench import TailoredBench
from benchnb.papers.published import table_cells
from benchnb.papers.tailored_bench import (
    OtherNatives,
    averages,
    gsm8k_cells,
    scatter,
    with_and_without,
)
from benchnb.papers.verdicts import Verdict


@pytest.fixture(scope="module")
def table():
    "Twenty models of two families, dealt to sources and targets"
    rng = np.random.default_rng(5)
    answers = (rng.random((20, 40)) < rng.uniform(0.2, 0.9, (20, 1))).astype(float)
    family = np.repeat(["llama", "other"], [8, 12])
    facts = pd.DataFrame({"part": ["source", "target"] * 10, "family": family})
    return Scores(answers, models=facts.set_axis([f"m{i}" for i in range(20)]))


def test_with_and_without_have_equally_many_sources(table):
    tables = with_and_without(table, "llama", seed=0)
    for name, part in tables.items():
        source, target = part.split("given")
        assert (target.models["family"] == "llama").all() and len(target) == 4
        assert source.models["family"].eq("llama").sum() == 4 * (name == "with")
        assert len(source) == 6
    assert set(table.models["part"]) == {"source", "target"}  # the input stays


def test_cells_are_means_and_errors_of_trials(table):
    frame = compare(table, ["random"], [5], trials=4, split="given").frame
    mae = gsm8k_cells(frame, "table 6").set_index("column").loc["5 items / mae"]
    errors = (frame["score"] - frame["truth"]).abs().groupby(frame["trial"]).mean()
    assert mae["reproduced"] == pytest.approx(errors.mean())
    assert mae["stderr"] == pytest.approx(errors.std() / 2)
    assert mae["trials"] == 4 and mae["data"] == "gsm8k, given split"


@pytest.mark.parametrize("settings", [{"count": 3}, {"band": (0.2, 0.5)}])
def test_other_natives_take_what_the_figure_asks(table, settings):
    source, target = table.split("given")
    usual, method = TailoredBench(probe_size=5), OtherNatives(probe_size=5, **settings)
    for one in (usual, method):
        one.fit(source).probe_ = np.arange(5)
    rows = target.values[:1, :5]
    natives = method.native_sources(rows, np.random.default_rng(0))
    order, _ = usual.ranked_sources(rows, None)
    start = 2 * ("band" in settings)
    assert natives.tolist() == order[start : start + 3].tolist()


def test_the_printed_row_of_gsm8k_is_reached():
    "100 trials: the mean distance and that of each budget, in tau and in the error"
    cells = table_cells("tailored_bench").query("table == 'table 6'")
    row = cells[cells["row"] == "GSM8K / TailoredBench"]
    assert (row["trials"] >= 100).all() and len(row) == 10
    assert (row["verdict"] == Verdict.REPRODUCED).all()
    gap = row["difference"].abs().groupby(row["column"].str.split(" / ").str[1])
    assert gap.mean()["kendall"] <= 0.006 and gap.mean()["mae"] <= 0.001
    assert gap.max()["kendall"] <= 0.009 and gap.max()["mae"] <= 0.002


def test_scatter_is_the_deviation_that_the_errors_imply():
    trials = pd.Series([0.80, 0.84, 0.82, 0.90])
    cell = dict(table="table 6", row="GSM8K / Random", column="20 items / kendall")
    facts = dict(data="gsm8k, given split", reason="why", trials=4)
    cells = pd.DataFrame([cell | facts | dict(stderr=trials.sem(), reproduced=0.84)])
    found = scatter(cells, "figure 7")
    assert found["reproduced"].item() == pytest.approx(trials.std())
    assert found["stderr"].item() == pytest.approx(trials.std() / np.sqrt(6))
    assert found["column"].item() == "20 items / kendall sd"


def test_means_over_benchmarks_keep_the_trials_that_all_have():
    "The ablation's mean is paired: the first two trials of three benchmarks"
    texts = {"ARC": "0.2 0.4", "GSM8K": "0.4 0.6 9.0", "HellaSwag": "0.6 0.8 9.0 9.0"}
    cell = dict(table="table 8", column="mae", stderr=0.1, reproduced=0.3)
    rows = [
        cell | dict(row=f"{name} / calibrated", by_trial=text, trials=len(text.split()))
        for name, text in texts.items()
    ]
    rows += [
        cell | dict(table="table 1", row=f"ARC / {name}", by_trial="", trials=2)
        for name in ("TailoredBench", "Best Baseline")
    ]
    found = pd.concat(averages(pd.DataFrame(rows)))
    mean = found[found["table"] == "table 3"].iloc[0]
    assert mean["by_trial"].split() == ["0.4", "0.6"] and mean["trials"] == 2
    assert mean["reproduced"] == pytest.approx(0.5)
    assert mean["stderr"] == pytest.approx(0.1)
