"""The chapters of results: their pieces on tables small enough to count by hand"""

import numpy as np
import pandas as pd
import pytest

from benchnb.data.scores import Scores
from benchnb.evaluation.compare import compare
from benchnb.methods.tailored_bench import TailoredBench
from benchnb.papers.tailored_bench import (
    OtherNatives,
    not_possible,
    to_cells,
    with_and_without,
)
from benchnb.studies.all_methods import (
    field,
    field_table,
    measure_coverage,
    promise,
    recompute,
    store_field,
)


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
    cells = to_cells(frame, "table 6", {"random": "GSM8K / Random"}).set_index("column")
    errors = (frame["score"] - frame["truth"]).abs().groupby(frame["trial"]).mean()
    mae = cells.loc["5 items / mae"]
    assert mae["reproduced"] == pytest.approx(errors.mean())
    assert mae["stderr"] == pytest.approx(errors.std() / 2)
    assert mae["trials"] == 4 and mae["data"] == "gsm8k, given split"


def test_impossible_cells_exclude_what_was_measured():
    done = pd.DataFrame(
        {"table": ["table 7"], "row": ["ARC / Cosine"], "column": ["mae"]}
    )
    cells = not_possible(done).set_index(["table", "row", "column"])
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


def test_unknown_paper_cannot_be_recomputed(tmp_path):
    with pytest.raises(ValueError, match="no chapter recomputes 'guarded_irt'"):
        recompute("guarded_irt", folder=tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_field_is_stored_and_read_back(tmp_path):
    stored = field()
    path = store_field(stored, tmp_path / "field.csv")
    pd.testing.assert_frame_equal(pd.read_csv(path), stored)
    for split in ("random", "ability"):
        means = field_table(stored, split, 50)
        assert means.loc["random"].round(6).eq(1).all()  # relative to itself
        assert means["mean"].dropna().is_monotonic_increasing
    assert {"aipw", "random"} <= set(stored["method"])
    several = stored["trials"] > 1
    assert stored.loc[several, "relative_se"].notna().all()


def test_coverage_is_measured_once_and_kept(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    chance = rng.uniform(0.2, 0.9, (60, 1))
    answers = (rng.random((60, 80)) < chance).astype(float)
    tables = {"tiny": Scores(answers)}
    path, names = tmp_path / "coverage.csv", ["random", "tailored_bench"]
    few = dict(trials=2, path=path, budget=20, most=(45, 5), tables=tables)
    first = measure_coverage(None, names, **few)
    assert first[["split", "method"]].apply(tuple, axis=1).tolist() == [
        (split, name) for split in ("random", "ability") for name in names
    ]
    assert (first["targets"] <= 5).all() and (first["sources"] <= 45).all()
    own = first.set_index(["method", "split"])["own"]
    assert own["tailored_bench"].isna().all() and own["random"].between(0, 1).all()
    alike = first[first["split"] == "random"]
    assert (alike["conformal"] >= 0.8).all()
    assert (first["conformal or flagged"] >= first["conformal"]).all()
    monkeypatch.setattr(
        "benchnb.studies.all_methods.target_figures", None
    )  # nothing is left
    pd.testing.assert_frame_equal(measure_coverage(None, names, **few), first)


def test_what_is_held_and_what_is_flagged():
    frame = pd.DataFrame({"truth": [0.2, 0.5, 0.8], "flagged": [False, False, True]})
    frame = frame.assign(low=[0.1, np.nan, 0.1], high=[0.3, np.nan, 0.3])
    frame["conformal low"], frame["conformal high"] = [0.1, 0.6, 0.1], 0.65
    told = promise(frame)
    assert told["own"] == 0.5 and told["own or flagged"] == 1
    assert told["conformal"] == pytest.approx(1 / 3)
    assert told["conformal or flagged"] == pytest.approx(2 / 3)
    assert told["own width"] == pytest.approx(0.2)
