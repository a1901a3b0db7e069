"The tables of TailoredBench: their pieces on a table small enough to count by hand"

import numpy as np
import pandas as pd
import pytest

from benchnb.data.scores import Scores
from benchnb.evaluation.compare import compare
from benchnb.methods.tailored_bench import TailoredBench
from benchnb.papers.tailored_bench import (
    NO_MATRIX,
    OtherNatives,
    gsm8k_cells,
    with_and_without,
)
from benchnb.papers.verdicts import missing_cells


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


def test_impossible_cells_exclude_what_was_measured():
    done = pd.DataFrame(
        {"table": ["table 7"], "row": ["ARC / Cosine"], "column": ["mae"]}
    )
    cells = missing_cells("tailored_bench", done, {"": NO_MATRIX}).set_index(
        ["table", "row", "column"]
    )
    assert ("table 7", "ARC / Cosine", "mae") not in cells.index
    assert ("table 7", "POPE / Cosine", "mae") in cells.index
    assert (cells["reason"] != "").all()


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
