"""What the chapter on metabench does not show: a slow reference, odd tables, saving."""

import numpy as np
import pandas as pd
import pytest
from pygam import LinearGAM, s

from benchnb.data.scores import Scores
from benchnb.evaluation.learned_coresets import RandomCurve
from benchnb.evaluation.simulate import simulate
from benchnb.methods.metabench import (
    Metabench,
    best_subset,
    one_per_quantile,
    subset_losses,
)
from benchnb.stats.genetic_search import draw_subsets


def answers(seed=0, models=60, items=50, part_marks=False):
    "Answers of models that get stronger from row to row; items weigh differently"
    rng = np.random.default_rng(seed)
    gap = np.linspace(-1, 1.5, models)[:, None] - rng.normal(size=items)
    chance = 1 / (1 + np.exp(-2 * gap))
    values = chance if part_marks else (rng.random(gap.shape) < chance).astype(float)
    facts = {"task": [f"t{i % 2}" for i in range(items)], "weight": rng.random(items)}
    facts = pd.DataFrame(facts, [f"q{i}" for i in range(items)])
    return Scores(values, facts, [f"m{i}" for i in range(models)])


# Against pyGAM -----------------------------------------------------------------


CASES = [(splines, penalty) for splines in (4, 10, 20) for penalty in (0.01, 0.6, 1000)]
LATE = [pytest.param(*case, marks=pytest.mark.slow) for case in CASES if case[0] != 10]


@pytest.mark.parametrize("splines, penalty", [*CASES[3:6], *LATE])
def test_left_out_errors_are_those_of_pygam_refitted_for_every_model(penalty, splines):
    rng = np.random.default_rng(1)
    filled, truth = rng.random((25, 12)), rng.random(25)
    subsets = draw_subsets(12, 5, 3, rng)
    fast = subset_losses(filled, truth, subsets, splines, penalty, at_once=2)
    for loss, subset in zip(fast, subsets, strict=True):
        x = filled[:, subset].mean(axis=1, keepdims=True)
        ends, errors = [x.min(), x.max()], []
        for out in range(len(x)):
            term = s(0, n_splines=splines, lam=penalty, edge_knots=ends)
            rest = np.arange(len(x)) != out
            gam = LinearGAM(term).fit(x[rest], truth[rest])
            errors.append(gam.predict(x[[out]])[0] - truth[out])
        assert loss == pytest.approx(np.sqrt(np.mean(np.square(errors))), rel=1e-4)


def test_the_best_subset_is_the_one_with_the_least_loss():
    table = answers()
    truth = table.truth().to_numpy()
    values = table.values.astype(float)
    best = best_subset(values, truth, 10, 40, np.random.default_rng(3))
    subsets = draw_subsets(50, 10, 40, np.random.default_rng(3))
    losses = subset_losses(values, truth, subsets)
    assert best.tolist() == subsets[losses.argmin()].tolist()


# Pieces ------------------------------------------------------------------------


def test_one_per_quantile_against_a_plain_search():
    information = np.random.default_rng(0).random((8, 12))
    free, expected = list(range(12)), []
    for row in information:
        expected.append(max(free, key=lambda item: row[item]))
        free.remove(expected[-1])
    assert one_per_quantile(information).tolist() == expected


# The method --------------------------------------------------------------------


def test_metabench_beats_random_items_and_a_curve():
    apart = []
    for seed in range(6):
        scores = answers(seed, models=160, items=200)
        source, target = scores.split("random", seed=seed)
        truth = target.truth().to_numpy()
        errors = [
            np.abs([e.score for e in simulate(method.fit(source), target, 15)] - truth)
            for method in (Metabench(folds=0), RandomCurve(folds=0))
        ]
        apart.append(errors[0].mean() - errors[1].mean())
    assert np.mean(apart) < 0


def test_the_full_score_is_what_is_predicted_where_it_is_known():
    scores = answers()
    scores.models["full_score"] = 0.2 + 0.5 * scores.performance()
    scores.models.loc["m3", "full_score"] = np.nan
    source, target = scores.split("random", seed=0)
    estimates = simulate(Metabench().fit(source), target, 20)
    known = target.truth().notna().to_numpy()
    error = np.array([e.score for e in estimates]) - target.truth()
    assert np.abs(error[known]).mean() < 0.05
