"All methods on all data: its pieces on tables small enough to count by hand"

import numpy as np
import pandas as pd

from benchnb.data.scores import Scores
from benchnb.studies.all_methods import (
    field,
    field_table,
    measure_policies,
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


def test_policies_change_flagged_estimates_alone():
    rng = np.random.default_rng(0)
    chance = rng.uniform(0.2, 0.9, (60, 1))
    answers = (rng.random((60, 80)) < chance).astype(float)
    rows = measure_policies(Scores(answers), "random", "ability", 0, 20, 9)
    rows = rows.set_index("policy").drop(columns="flagged_inside")
    assert rows["mae"].nunique() == 1 and (rows["given"] == 1).all()  # design-based
    assert rows.loc["none", "flagged_outside"] == 0 < rows.loc["aipw"].flagged_outside
    chosen = measure_policies(Scores(answers), "kmeans", "ability", 0, 20, 9)
    assert chosen.set_index("policy").loc["abstain", "given"] < 1
