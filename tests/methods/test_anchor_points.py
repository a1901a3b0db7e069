"""What the chapter on anchor points does not show: odd tables, saving, faults."""

import numpy as np
import pandas as pd
import pytest

from benchnb.data.scores import Scores
from benchnb.evaluation.simulate import prepare_method
from benchnb.methods.anchor_points import AnchorPoints
from benchnb.stats.medoids import item_distances, standardize

SETTINGS = ("manhattan", "correlation", "cosine")


def answers(seed=0, models=24, items=60):
    "Right or wrong answers; later models are stronger; items weigh differently"
    rng = np.random.default_rng(seed)
    gap = np.linspace(-1, 1.5, models)[:, None] - rng.normal(size=items)
    values = (rng.random(gap.shape) < 1 / (1 + np.exp(-2 * gap))).astype(float)
    facts = {"task": [f"t{i % 2}" for i in range(items)], "weight": rng.random(items)}
    facts = pd.DataFrame(facts, [f"q{i}" for i in range(items)])
    return Scores(values, facts, [f"m{i}" for i in range(models)])


@pytest.mark.parametrize("distance", SETTINGS)
def test_every_item_belongs_to_a_nearest_anchor(distance):
    source = answers()
    method = prepare_method(AnchorPoints(distance).fit(source), 8)
    table = standardize(source.values) if distance == "manhattan" else source.values
    distances = item_distances(table, distance, to=method.coreset_)
    own = distances[np.arange(60), method.labels_]
    np.testing.assert_allclose(own, distances.min(axis=1), atol=1e-4)


def test_the_estimate_weighs_answers_by_the_weight_of_their_clusters():
    source = answers()
    method = prepare_method(AnchorPoints().fit(source), 8)
    seen = np.array([1, 0, 1, np.nan, 0.5, 1, 0, 0])
    mass = np.array([method.weights_[method.labels_ == j].sum() for j in range(8)])
    scored = ~np.isnan(seen)
    expected = np.average(seen[scored], weights=mass[scored])
    estimate = method.estimate(seen)
    assert np.isclose(estimate.score, expected)
    assert np.isclose(estimate.predicted @ method.weights_, expected)
