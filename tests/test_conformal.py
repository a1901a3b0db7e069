"""Intervals from sources that were left out: who is left out with whom, what the radius
is, and that the promise is kept where models are alike."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from small import halves, table

from benchnb.ideas.intervals import conformal_radius
from benchnb.method import Coreset, Estimate, get_method
from benchnb.road.conformal import (
    conformal_interval,
    left_out_errors,
    local_radius,
    shift_notes,
    weighted_radius,
)
from benchnb.road.live import Live, errors_if_needed, start
from benchnb.scores import Scores


class Nosy(Coreset):
    "Remembers what it was fitted on; its estimate is the mean of the answers"

    name, fits = "nosy", []

    def fit(self, source, side=None):
        self.fits.append(set(source.models.index))
        return super().fit(source)

    def prepare(self, budget, rng):
        super().prepare(budget, rng)
        self.coreset_ = rng.choice(len(self.items_), budget, replace=False)
        return self

    def estimate(self, seen):
        return Estimate(float(np.nanmean(seen)))


def test_every_source_is_left_out_once_and_never_seen():
    source = halves()[0]
    Nosy.fits.clear()
    errors = left_out_errors(Nosy(), source, 12, folds=4)
    assert sorted(errors.index) == sorted(source.models.index)
    everyone = set(source.models.index)
    left = [everyone - seen for seen in Nosy.fits]
    assert len(left) == 4 and sum(map(len, left)) == len(everyone)
    np.testing.assert_allclose(errors["truth"], source.truth()[errors.index])
    assert errors["low"].isna().all()


def test_near_copies_are_left_out_together():
    values = np.repeat(table().values[:8], 2, axis=0)
    source = Scores(values, table().items, [f"m{n}" for n in range(16)])
    Nosy.fits.clear()
    left_out_errors(Nosy(), source, 12, folds=8)
    for seen in Nosy.fits:
        assert all((f"m{2 * n}" in seen) == (f"m{2 * n + 1}" in seen) for n in range(8))


@given(st.lists(st.floats(0, 1), min_size=1, max_size=60), st.floats(0.5, 0.99))
def test_equal_weights_are_plain_conformal(errors, level):
    errors = np.array(errors)
    found = weighted_radius(errors, np.ones(len(errors)), level)
    assert found == conformal_radius(errors, level)


@given(st.integers(0, 9), st.floats(0.5, 0.99))
def test_the_radius_holds_enough_weight_and_no_more(seed, level):
    rng = np.random.default_rng(seed)
    errors, weights = rng.random(40), rng.random(40)
    found = weighted_radius(errors, weights, level)
    wanted = level * (1 + weights.sum())
    if np.isinf(found):
        assert weights.sum() < wanted
    else:
        assert weights[errors <= found].sum() >= wanted - 1e-6
        assert weights[errors < found].sum() < wanted


def test_the_promise_is_kept_where_models_are_alike():
    rng, held = np.random.default_rng(0), []
    for _ in range(400):
        truth = rng.uniform(0.2, 0.8, 61)
        estimate = truth + rng.normal(0, 0.02 + 0.1 * (truth - 0.2), 61)
        errors = pd.DataFrame({"truth": truth[1:], "estimate": estimate[1:]})
        low, high = conformal_interval(estimate[0], errors)
        held.append(low <= truth[0] <= high)
    assert 0.92 <= np.mean(held) <= 0.99


def test_too_few_sources_promise_nothing():
    errors = pd.DataFrame({"truth": [0.5] * 10, "estimate": [0.4] * 10})
    assert conformal_interval(0.4, errors) == (0, 1)
    with pytest.raises(ValueError, match="too few to leave out any"):
        left_out_errors(Nosy(), table().select(models=[0, 1]), 12)


def test_models_beyond_the_sources_are_flagged(tmp_path):
    assert shift_notes(0.5, np.array([0.4, 0.6, np.nan])) == []
    assert "stronger" in shift_notes(0.7, np.array([0.4, 0.6]))[0]
    assert "weaker" in shift_notes(0.3, np.array([0.4, 0.6]))[0]
    source = halves()[0]
    live = start(get_method("random").fit(source), tmp_path / "a", 20)
    live.tell(dict.fromkeys(live.ask(), 1.0))
    assert any("stronger" in note for note in live.report()["notes"])


def test_a_method_without_an_interval_gets_one_that_is_kept(tmp_path):
    source, target = halves()
    method = get_method("tailored_bench")
    errors = errors_if_needed(method, source, 20, folds=6)
    live = start(method.fit(source), tmp_path / "a", 20, errors=errors)
    row = dict(zip(target.items.index, target.values[0].astype(float), strict=True))
    while live.ask():
        live.tell({name: row[name] for name in live.ask()})
    found = Live(tmp_path / "a").report()
    low, high = found["interval"]
    assert 0 <= low <= found["score"] <= high <= 1 and "conformal" in found["how"]
    assert errors_if_needed(get_method("aipw"), source, 20) is None


def test_who_counted_is_said():
    rng = np.random.default_rng(0)
    truth = np.r_[rng.uniform(0.2, 0.4, 60), 0.95]
    estimate = truth + rng.normal(0, 0.02, 61)
    errors = pd.DataFrame({"truth": truth, "estimate": estimate})
    assert local_radius(0.3, errors)[1] == "near ones count more"
    assert local_radius(0.95, errors)[1] == "all count alike, few are near"
    assert local_radius(0.3, errors, width=np.inf)[1] == "all count alike"
    assert local_radius(0.3, errors[:9]) == (1, "too few for this level")
