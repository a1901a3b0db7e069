"All methods on all data: the stored table"

import pandas as pd

from benchnb.studies.all_methods import field, field_table, store_table


def test_field_is_stored_and_read_back(tmp_path):
    stored = field()
    path = store_table(stored, tmp_path / "field.csv")
    pd.testing.assert_frame_equal(pd.read_csv(path), stored)
    for split in ("random", "ability"):
        means = field_table(stored, split, 50)
        assert means.loc["random"].round(6).eq(1).all()  # relative to itself
        assert means["mean"].dropna().is_monotonic_increasing
