"""Models unlike the sources: what is noticed, what is said of it for each kind of
interval, and that the estimate in its place is right."""

import copy
from dataclasses import replace
from itertools import product

import numpy as np
import pandas as pd
import pytest
from helpers.small import fit, halves, table
from hypothesis import given
from hypothesis import strategies as st

from benchnb.data.scores import Scores
from benchnb.evaluation.compare import compare
from benchnb.evaluation.guard import (
    MAX_OUTSIDE,
    MIN_PROFILE,
    POLICIES,
    Guard,
    Likeness,
    fit_to_easiness,
    measure_fit_and_correction,
    measure_likeness,
    misfit_flags,
    random_part_estimate,
    range_flags,
)
from benchnb.evaluation.left_out import calibrate_guard
from benchnb.evaluation.method import Flag, IntervalKind
from benchnb.evaluation.registry import get_method, list_methods
from benchnb.evaluation.simulate import AskTellSession, prepare_method, simulate
from benchnb.live.evaluation import Evaluation
from benchnb.live.report import drop_empty_interval


def test_models_beyond_the_sources_are_flagged():
    known = np.array([0.4, 0.6, np.nan])
    assert range_flags(0.5, known) == range_flags(0.5, known[2:]) == []
    for score, word in ((0.7, "stronger"), (0.3, "weaker")):
        for kind in IntervalKind:
            ((flag, text),) = range_flags(score, known, kind)
            assert flag is Flag.OUT_OF_RANGE and word in text and "half" not in text
            assert ("less often than promised" in text) == (
                kind not in (IntervalKind.DESIGN, IntervalKind.NONE)
            )


@given(st.integers(0, 99))
def test_answers_in_the_order_of_easiness_fit(seed):
    rng = np.random.default_rng(seed)
    ease = rng.uniform(0.1, 0.9, 40)
    seen = (rng.random(40) < ease).astype(float)
    fit, against = fit_to_easiness(ease, seen), fit_to_easiness(1 - ease, seen)
    assert np.isfinite(fit) and fit > against
    np.testing.assert_allclose(fit_to_easiness(ease, np.ones(40)), 0, atol=2)
    assert np.isnan(fit_to_easiness(ease[:4], seen[:4]))


def test_what_is_unknown_is_left_out_of_the_figures():
    rng = np.random.default_rng(0)
    ease, weights = rng.uniform(0.1, 0.9, 50), np.full(50, 0.02)
    asked, seen = np.arange(20), (rng.random(20) < 0.5).astype(float)
    gap = seen.copy()
    gap[3] = np.nan
    rest = np.delete(asked, 3)
    found = measure_fit_and_correction(0.5, ease, weights, asked, gap)
    assert found == measure_fit_and_correction(0.5, ease, weights, rest, seen[rest])
    few = measure_fit_and_correction(0.5, ease, weights, asked[:4], seen[:4])
    assert np.isnan(few).all()
    errors = pd.DataFrame({"fit": np.zeros(30), "correction": np.zeros(30)})
    assert misfit_flags(*few, errors) == []
    assert misfit_flags(-9, 0.0, errors[:19]) == []  # too few to compare with
    for figures, words in (
        ((-9, 0.0), "another pattern"),
        ((0, 0.4), "by +40.0 points"),
    ):
        ((flag, text),) = misfit_flags(*figures, errors)
        assert flag is Flag.MISFIT and words in text and "holds" not in text
        assert (
            "holds all the same"
            in misfit_flags(*figures, errors, IntervalKind.DESIGN)[0][1]
        )


@pytest.mark.parametrize("name", ["random", "aipw", "per_task(stratified)"])
def test_methods_of_sampling_draw_at_random(name):
    method = prepare_method(get_method(name).fit(halves()[0]), 12)
    draw = method.inclusion_probabilities(AskTellSession(method).wanted)
    assert method.design_based and len(draw.items) == 12
    assert np.isclose(draw.probabilities.sum(), 12)
    assert ((draw.probabilities >= 0) & (draw.probabilities <= 1 + 1e-12)).all()


@pytest.mark.parametrize("name", ["kmeans", "anchor_points", "tailored_bench"])
def test_methods_that_choose_have_no_draw(name):
    method = prepare_method(get_method(name).fit(halves()[0]), 12)
    assert not method.design_based
    assert method.inclusion_probabilities(np.arange(12)) is None


def test_aipw_in_the_place_of_an_estimate_is_right_on_average():
    off, held = [], []
    source, target = table(2, 60).split("random", seed=0)
    ease, weights = source.values.mean(axis=0), source.weights
    row = 1 - target.values[0].astype(float)  # nothing like the sources
    truth = row @ weights
    for seed in range(200):
        method = prepare_method(get_method("random").fit(source), 25, seed)
        asked = method.coreset_
        found = random_part_estimate(method, 0.95, ease, asked, row[asked])
        off.append(found.score - truth)
        held.append(found.interval[0] <= truth <= found.interval[1])
    assert abs(np.mean(off)) < 0.02 and np.mean(held) > 0.9


QUICK = "random", "aipw", "p_irt", "guarded_irt(rounds=5)", "tailored_bench"
NAMES = [
    n if n in QUICK else pytest.param(n, marks=pytest.mark.slow)
    for n in list_methods(table())
]


@pytest.mark.parametrize("name", NAMES)
def test_an_evaluation_and_a_simulation_give_the_same_estimate(name):
    "One path: what a user is given is what `simulate` and `compare` measure"
    source, target = halves()
    odd = Scores(1 - target.values[:1], target.items, ["odd"])
    fresh = fit(name, source)
    method = prepare_method(copy.deepcopy(fresh), 12)
    any_policy = calibrate_guard(method, source, 12, folds=3)
    for policy, models in product(POLICIES, (target.select(models=[0]), odd)):
        guard = replace(any_policy, policy=policy)
        live = Evaluation(copy.deepcopy(fresh), 12, source=source, shift=policy)
        live.left_out_by_budget[12] = guard.errors
        live.method.fresh_per_target = method.fresh_per_target = False
        answers = dict(zip(models.items.index, models.values[0].tolist(), strict=True))
        while asked := live.ask():
            live.tell({item: answers[item] for item in asked})
        (found,) = map(drop_empty_interval, simulate(method, models, guard=guard))
        given = live.estimate()
        np.testing.assert_allclose(found.score, given.score, atol=1e-12)
        np.testing.assert_allclose(found.interval, given.interval, atol=1e-12)
        assert found.flags == given.flags and found.notes == given.notes
        assert found.kind is given.kind


def test_a_comparison_takes_a_policy():
    bare = compare(table(), ["kmeans", "random"], [12], trials=1, split="ability").frame
    guarded = compare(
        table(), ["kmeans", "random"], [12], 1, split="ability", policy="abstain"
    ).frame
    away = guarded["flags"].str.contains("abstained")
    assert away.any() and guarded.loc[away, "score"].isna().all()
    pd.testing.assert_series_equal(guarded["score"][~away], bare["score"][~away])
    with pytest.raises(ValueError, match="policy must be None or one of report"):
        compare(table(), ["random"], [12], policy="none")


def rasch_sources(n_models=60, n_items=200, seed=0):
    "Sources whose abilities and items are spread; the chance of each answer"
    rng = np.random.default_rng(seed)
    hardness = rng.normal(0, 1.3, n_items)
    ability = rng.normal(0, 0.8, n_models)
    chance = 1 / (1 + np.exp(hardness - ability[:, np.newaxis]))
    values = (rng.random(chance.shape) < chance).astype(float)
    return Scores(values), hardness


KINDS = {  # ability, slope: of a new model's answers on hardness
    "like": (0.0, 1.0),
    "stronger": (4.0, 1.0),
    "weaker": (-4.0, 1.0),
    "other profile": (0.0, -1.0),
    "no profile": (0.0, 0.0),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["kmeans", "gp_irt", "adaptive_irt"])
def test_likeness_must_be_shown(name, kind):
    source, hardness = rasch_sources()
    ability, slope = KINDS[kind]
    rng = np.random.default_rng(1)
    chance = 1 / (1 + np.exp(slope * hardness - ability))
    rows = (rng.random((12, len(chance))) < chance).astype(float)
    method = prepare_method(get_method(name).fit(source), 40)
    guard = Guard("report", source.values.mean(axis=0))
    found = simulate(method, Scores(rows, source.items), guard=guard)
    ranked = np.mean([not np.isnan(e.rank) for e in found])
    most = 0.25 if kind == "no profile" else 0.1  # a tenth of these pass the test
    assert ranked >= 0.6 if kind == "like" else ranked <= most
    for estimate in found:
        assert not (Flag.UNCHECKED in estimate.flags and estimate.has_rank)
        told = [note for note in estimate.notes if note.startswith("unchecked")]
        assert bool(told) == (Flag.UNCHECKED in estimate.flags)
        assert all("stratified" in note and "\n" not in note for note in told)
    bare = simulate(method, Scores(rows, source.items))
    assert [e.score for e in bare] == [e.score for e in found]  # no other number


def test_a_draw_needs_no_proof():
    source, hardness = rasch_sources()
    turned = (hardness > 0)[np.newaxis].astype(float)
    for name in ("random", "stratified", "aipw"):
        method = prepare_method(get_method(name).fit(source), 40)
        guard = Guard("report", source.values.mean(axis=0))
        (estimate,) = simulate(method, Scores(turned, source.items), guard=guard)
        assert Flag.UNCHECKED not in estimate.flags and estimate.has_rank


def test_what_is_not_at_hand_shows_nothing():
    source, _ = rasch_sources()
    method = prepare_method(get_method("kmeans").fit(source), 40)
    (estimate,) = simulate(method, source.select(models=[0]), guard=Guard("report"))
    assert Flag.UNCHECKED in estimate.flags and np.isnan(estimate.rank)
    assert "is not at hand" in estimate.notes[-1]
    (bare,) = simulate(method, source.select(models=[0]), guard=Guard(None))
    assert not bare.flags


def test_answers_that_say_nothing_show_nothing():
    source, _ = rasch_sources()
    method = prepare_method(get_method("kmeans").fit(source), 40)
    ease = source.values.mean(axis=0)
    asked = method.coreset_
    (estimate,) = simulate(method, source.select(models=[0]))
    seen = source.values[0, asked].astype(float)
    whole = measure_likeness(estimate, method, ease, asked, seen)
    assert whole.is_shown
    for answers in (np.ones(40), np.zeros(40), np.full(40, np.nan), np.full(40, 0.5)):
        assert measure_likeness(estimate, method, ease, asked, answers).profile == 0
    few = measure_likeness(estimate, method, ease, asked[:4], seen[:4])
    assert few == Likeness(0.0, 1.0) and not few.is_shown
    flat = measure_likeness(estimate, method, np.full(len(ease), 0.5), asked, seen)
    assert flat.profile == 0
    assert Likeness(MIN_PROFILE + 0.01, MAX_OUTSIDE).is_shown
    assert not Likeness(MIN_PROFILE, 0).is_shown
    assert not Likeness(9, MAX_OUTSIDE + 0.01).is_shown
