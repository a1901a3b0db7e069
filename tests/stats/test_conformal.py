"""Conformal intervals: which errors count, what the radius is, and that the promise is
kept where models are alike."""

import itertools

import numpy as np
import pandas as pd
from hypothesis import given
from hypothesis import strategies as st

from benchnb.stats.intervals import (
    conformal_interval,
    conformal_radius,
    difference_interval,
    pair_errors,
)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=60), st.floats(0.5, 0.99))
def test_the_radius_holds_enough_errors_and_no_more(errors, level):
    errors = np.array(errors)
    found, wanted = conformal_radius(errors, level), level * (len(errors) + 1)
    if np.isinf(found):
        assert len(errors) < wanted
    else:
        assert (errors <= found).sum() >= wanted - 1e-6
        assert (errors < found).sum() < wanted


def test_the_promise_is_kept_where_models_are_alike():
    rng, held = np.random.default_rng(0), []
    for _ in range(400):
        truth = rng.uniform(0.2, 0.8, 61)
        estimate = truth + rng.normal(0, 0.02 + 0.1 * (truth - 0.2), 61)
        errors = pd.DataFrame({"truth": truth[1:], "estimate": estimate[1:]})
        low, high = conformal_interval(estimate[0], errors)
        held.append(low <= truth[0] <= high)
    assert 0.92 <= np.mean(held) <= 0.99


def made_up(seed, count=60, folds=5):
    "Left-out errors of models whose errors have a part in common"
    rng = np.random.default_rng(seed)
    truth = rng.uniform(0.3, 0.7, count)
    estimate = truth + 0.1 + rng.normal(0, 0.03, count)  # all are told too much
    frame = pd.DataFrame({"truth": truth, "estimate": estimate})
    return frame.assign(fold=np.arange(count) % folds)


def test_pairs_are_those_of_one_fold():
    errors = made_up(0, 7, 3)
    off = pair_errors(errors)
    apart = (errors["estimate"] - errors["truth"]).to_numpy()
    wanted = [
        apart[i] - apart[j]
        for i in range(7)
        for j in range(7)
        if i != j and i % 3 == j % 3
    ]
    np.testing.assert_allclose(np.sort(off), np.sort(wanted))
    np.testing.assert_allclose(np.sort(off), np.sort(-off), atol=1e-12)


def test_the_promise_is_kept_for_pairs_though_all_estimates_lean():
    rng, held = np.random.default_rng(0), []
    for seed in range(400):
        errors, off = made_up(seed), rng.normal(0, 0.03, 2)
        low, high, better = difference_interval(0.02 + off[0] - off[1], errors)
        held.append(low <= 0.02 <= high)
        assert 0 < better < 1
    assert 0.92 <= np.mean(held) <= 0.995


def test_near_pairs_are_those_whose_estimates_differ_as_much():
    errors = made_up(0)
    said, all_off = [], []
    for _, part in errors.groupby("fold"):
        for i, j in itertools.permutations(part.index, 2):
            one, two = errors.loc[i], errors.loc[j]
            said.append(one["estimate"] - two["estimate"])
            all_off.append(said[-1] - one["truth"] + two["truth"])
    far, count = np.abs(np.array(said) - 0.05), len(said)
    near = np.array(all_off)[np.argsort(far)[: round(count / 3)]]
    found = pair_errors(errors, near=0.05)
    assert abs(len(found) - count / 3) <= 2
    assert np.isin(near.round(9), found.round(9)).mean() > 0.98
    low, high, better = difference_interval(0.05, errors)
    back = difference_interval(-0.05, errors)
    np.testing.assert_allclose((low, high, better), (-back[1], -back[0], 1 - back[2]))
