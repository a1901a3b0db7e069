"""Intervals from sources that were left out: who is left out with whom, what the radius
is, and that the promise is kept where models are alike."""

import numpy as np
import pandas as pd
import pytest
from helpers.small import halves, table
from hypothesis import given
from hypothesis import strategies as st

from benchnb.data.scores import Scores
from benchnb.evaluation.method import Coreset, Estimate
from benchnb.evaluation.registry import get_method
from benchnb.evaluation.simulate import ready
from benchnb.live.evaluation import Live, errors_if_needed, start
from benchnb.live.shift import (
    conformal_interval,
    drawn_by_lot,
    left_out_errors,
    local_radius,
    pair_errors,
    pair_interval,
    rests_on_lot,
    shift_notes,
    source_fit,
    strangeness,
    stranger_notes,
    survey_instead,
    task_errors,
    weighted_radius,
)
from benchnb.stats.intervals import conformal_radius


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


# Pairs, tasks, strangers -----------------------------------------------------------


def made_up(seed, count=60, folds=5):
    "Left-out errors of sources whose errors have a part in common"
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


def test_two_budgets_make_one_pair():
    first, second = made_up(0, 8, 2), made_up(1, 8, 2)
    off = pair_errors(first, second.sample(frac=1, random_state=0))
    apart = [(e["estimate"] - e["truth"]).to_numpy() for e in (first, second)]
    assert np.isclose(off, apart[0][0] - apart[1][2]).any()
    assert not np.isclose(off, apart[0][0] - apart[1][1]).any()  # of two folds


def test_the_promise_is_kept_for_pairs_though_all_estimates_lean():
    rng, held = np.random.default_rng(0), []
    for seed in range(400):
        errors, off = made_up(seed), rng.normal(0, 0.03, 2)
        low, high, better = pair_interval(0.02 + off[0] - off[1], errors)
        held.append(low <= 0.02 <= high)
        assert 0 < better < 1
    assert 0.92 <= np.mean(held) <= 0.995


def test_too_few_pairs_promise_nothing():
    assert pair_interval(0.1, made_up(0, 37))[:2] == (-1, 1)
    assert pair_interval(0.1, made_up(0, 38))[:2] != (-1, 1)
    assert pair_interval(0.1, made_up(0, 37), level=0.8)[:2] != (-1, 1)
    assert pair_interval(0.0, made_up(0, 3, 3))[2] == 0.5  # no pair at all


def test_tasks_of_sources_that_were_left_out():
    source = halves()[0]
    errors = left_out_errors(get_method("aipw"), source, 12, 4)
    for task in source.items["task"].unique():
        part = task_errors(errors, task)
        known = source.performance(by="task")[task][part.index]
        np.testing.assert_allclose(part["truth"], known)
    assert task_errors(errors, "no such task") is None
    assert task_errors(left_out_errors(Nosy(), source, 12, 4), "algebra") is None


@given(st.integers(0, 99))
def test_answers_in_the_order_of_easiness_fit(seed):
    rng = np.random.default_rng(seed)
    ease = rng.uniform(0.1, 0.9, 40)
    seen = (rng.random(40) < ease).astype(float)
    fit, against = source_fit(ease, seen), source_fit(1 - ease, seen)
    assert np.isfinite(fit) and fit > against
    np.testing.assert_allclose(source_fit(ease, np.ones(40)), 0, atol=2)
    assert np.isnan(source_fit(ease[:4], seen[:4]))


def test_what_is_unknown_is_left_out_of_the_figures():
    rng = np.random.default_rng(0)
    ease, weights = rng.uniform(0.1, 0.9, 50), np.full(50, 0.02)
    asked, seen = np.arange(20), (rng.random(20) < 0.5).astype(float)
    gap = seen.copy()
    gap[3] = np.nan
    rest = np.delete(asked, 3)
    found = strangeness(0.5, ease, weights, asked, gap)
    assert found == strangeness(0.5, ease, weights, rest, seen[rest])
    few = strangeness(0.5, ease, weights, asked[:4], seen[:4])
    assert np.isnan(few).all()
    errors = pd.DataFrame({"fit": np.zeros(30), "correction": np.zeros(30)})
    assert stranger_notes(*few, errors) == []
    assert stranger_notes(-9, 0.0, errors[:19]) == []  # too few to compare with
    assert "unlike" in stranger_notes(-9, 0.0, errors)[0]
    assert "correction: +0.400" in stranger_notes(0, 0.4, errors)[0]


@pytest.mark.parametrize("name", ["random", "aipw", "per_task(stratified)"])
def test_methods_of_sampling_draw_by_lot(name):
    method = ready(get_method(name).fit(halves()[0]), 12)
    items, chance = drawn_by_lot(method, np.zeros(0, int))
    assert rests_on_lot(method) and len(items) == 12 and np.isclose(chance.sum(), 12)
    assert ((chance >= 0) & (chance <= 1 + 1e-12)).all()


@pytest.mark.parametrize("name", ["kmeans", "anchor_points", "tailored_bench"])
def test_methods_that_choose_have_no_lot(name):
    method = ready(get_method(name).fit(halves()[0]), 12)
    assert not rests_on_lot(method) and drawn_by_lot(method, np.arange(12)) is None


def test_aipw_in_the_place_of_an_estimate_is_right_on_average():
    off, held = [], []
    source, target = table(2, 60).split("random", seed=0)
    ease, weights = source.values.mean(axis=0), source.weights
    row = 1 - target.values[0].astype(float)  # nothing like the sources
    truth = row @ weights
    for seed in range(200):
        method = ready(get_method("random").fit(source), 25, seed)
        seen = row[method.coreset_]
        found = survey_instead(Estimate(0.9), method, ease, method.coreset_, seen)
        off.append(found[0] - truth)
        held.append(abs(off[-1]) <= found[1])
    assert abs(np.mean(off)) < 0.02 and np.mean(held) > 0.9
