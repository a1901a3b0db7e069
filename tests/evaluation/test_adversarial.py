"""No method gives an interval that is a point and wrong, nor one that often misses
without a flag, on tables that nobody would tune on."""

import warnings

import numpy as np
import pytest
from helpers.adversarial import TABLES, adversarial

from benchnb.data.scores import Scores
from benchnb.evaluation.left_out import calibrate_guard, left_out_errors
from benchnb.evaluation.registry import get_method, list_methods
from benchnb.evaluation.simulate import prepare_method, simulate
from benchnb.stats.intervals import (
    conformal_interval,
    conformal_radius,
    drop_copies,
    residual_interval,
)

NAMES = list_methods(adversarial("like", 5)[0])
NAMES.remove("tailored_bench_published")  # the same method, for its printed figures
# seeds, each with its own sources; together 200 targets, of the guarded forms 800
SLOW = ("essence_bench", "collaborative_filtering")
SEEDS = dict.fromkeys(NAMES, 4) | dict.fromkeys(SLOW, 1)
SEEDS |= dict.fromkeys(
    ("adaptive_irt", "anchor_irt", "gp_irt", "p_irt", "metabench"), 2
)
UNLIKE = ("other_family",)  # where a guard has to tell: errors of left-out sources


def outcome(name, kind, seed, targets, budget=20):
    "By target: whether the interval is a wrong point; whether it misses without a flag"
    source, target = adversarial(kind, targets, seed)
    folds = 2 if kind in UNLIKE or name.startswith("tailored") else 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        guard = calibrate_guard(get_method(name), source, budget, folds=folds)
        method = prepare_method(get_method(name).fit(source), budget, seed)
        found = simulate(method, target, guard=guard)
    truth, score = target.truth().to_numpy(), np.array([e.score for e in found])
    low, high = np.array([e.interval for e in found]).T
    flagged = np.array([bool(e.flags) for e in found])
    misses = (truth < low - 1e-9) | (truth > high + 1e-9)  # False where there is none
    return (high - low < 1e-9) & (np.abs(score - truth) > 1e-9), misses & ~flagged


MORE = ("missing", "near_copies", "like")  # of the method that everybody runs
TRIED = [  # of the other methods two kinds in every run, and all by night
    pytest.param(name, kind, marks=getattr(pytest.mark, "slow" if now else "night"))
    for name in NAMES
    for kind in TABLES
    for now in [
        kind in (*UNLIKE, "constant_answers")
        or (name == "guarded_irt" and kind in MORE)
    ]
]


@pytest.mark.parametrize("name, kind", TRIED)
def test_an_interval_is_no_wrong_point_and_rarely_misses_without_a_flag(name, kind):
    seeds = SEEDS[name]
    targets = 200 if name.startswith("guarded") else 200 // seeds
    parts = [outcome(name, kind, seed, targets) for seed in range(seeds)]
    points, misses = np.concatenate(parts, axis=1)
    assert len(points) == seeds * targets and not points.any()
    assert misses.mean() <= 0.15


QUICK = [name for name in NAMES if SEEDS[name] == 4]


@pytest.mark.parametrize("kind", ["all_alike", "constant_answers", "ceiling"])
@pytest.mark.parametrize("name", QUICK)
def test_no_interval_is_a_wrong_point(name, kind):
    points, misses = outcome(name, kind, 0, 20)
    assert not points.any() and misses.mean() <= 0.25


def test_near_copies_count_once():
    source, _ = adversarial("near_copies")
    errors = left_out_errors(get_method("kmeans", folds=0), source, 20, folds=3)
    assert len(errors) == 24 and len(drop_copies(errors)) == 6
    assert conformal_interval(0.5, errors) == (0, 1)  # six are too few for 95%
    bare = errors.drop(columns="copies")
    assert conformal_interval(0.5, bare) != (0, 1)
    off, groups = np.append(np.arange(20.0), np.zeros(980)), np.arange(1000)
    groups[20:] = 0  # a model without an error in 981 copies hides no other's error
    assert conformal_radius(off, 0.95, groups=groups) == 19
    assert conformal_radius(off, 0.95) == 0
    assert np.isinf(conformal_radius(off[15:], 0.95, groups=groups[15:]))


@pytest.mark.parametrize("name", ["kmeans", "p_irt", "proeval", "results_sim"])
def test_copies_of_the_sources_make_no_interval_narrower(name):
    "Five times the same sources are no more sources"
    source, target = adversarial("like", 5)
    source = source.select(models=np.arange(8))
    names = [f"copy {n}" for n in range(40)]
    many = Scores(np.repeat(source.values, 5, axis=0), source.items, names)
    for table in (source, many):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = simulate(prepare_method(get_method(name).fit(table), 20), target)
        for e in found:
            assert np.isnan(e.interval[0]) or e.interval == (0, 1) or e.flags


def test_answers_that_are_all_right_rule_no_perfect_score_out():
    for score in (0.8, 0.97, 1.0):
        low, high = residual_interval(score, np.ones(15), 0.01, 20.0)
        assert high == 1 and low < score
        low, high = residual_interval(1 - score, np.zeros(15), 0.01, 20.0)
        assert low == 0 and high > 1 - score
