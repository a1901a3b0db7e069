"All methods on all data: its pieces on tables small enough to count by hand"

import numpy as np
import pandas as pd
import pytest

from benchnb.data.scores import Scores
from benchnb.studies.all_methods import (
    field,
    field_table,
    measure_coverage,
    promise,
    store_table,
)


def test_field_is_stored_and_read_back(tmp_path):
    stored = field()
    path = store_table(stored, tmp_path / "field.csv")
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
