"Holding out: every kind once, copies never apart, and the dealing in words"

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchnb.evaluation.left_out import assign_held_out


@given(
    st.lists(st.integers(0, 9), min_size=1, max_size=30), st.integers(0, 6), st.data()
)
def test_every_source_is_held_out_once_and_no_copy_is_fitted_on(groups, folds, data):
    groups, values = np.array(groups), np.zeros((len(groups), 3))
    rng = data.draw(st.sampled_from([None, np.random.default_rng(0)]))
    parts = assign_held_out(values, folds, rng, groups=groups)
    if not folds or len(set(groups)) < 2:
        assert parts == []
        return
    assert len(parts) == min(folds, len(set(groups)))
    assert sorted(np.concatenate([held for _, held in parts])) == [*range(len(groups))]
    for fit, held in parts:
        assert not set(groups[fit]) & set(groups[held])
        assert fit.sum() + len(held) == len(groups)


@pytest.mark.parametrize("count, sizes", [(40, [8] * 5), (134, [25] * 4), (600, [100])])
def test_as_many_as_are_wanted_from_strong_to_weak(count, sizes):
    strength = np.random.default_rng(0).permutation(count)
    settings = dict(most=100, groups=np.arange(count), strength=strength)
    parts = assign_held_out(np.zeros((count, 2)), 5, **settings)
    assert [len(held) for _, held in parts] == sizes
    held = strength[np.concatenate([held for _, held in parts])]
    assert {0, count - 1} <= set(held)  # the weakest and the strongest
