"""What the chapter on clustering does not show: a slow reference, odd tables."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchnb.data.scores import Scores
from benchnb.evaluation.registry import (
    list_methods,
)
from benchnb.evaluation.simulate import prepare_method, simulate
from benchnb.methods.clustering import Clustering, TextClustering, k_means_items
from benchnb.stats.intervals import conformal_radius
from benchnb.stats.text import text_embeddings


def answers(seed=0, models=24, items=60, tasks=2):
    "Right or wrong answers; later models are stronger"
    rng = np.random.default_rng(seed)
    gap = np.linspace(-1, 1.5, models)[:, None] - rng.normal(size=items)
    values = (rng.random(gap.shape) < 1 / (1 + np.exp(-2 * gap))).astype(float)
    facts = {"task": [f"t{i % tasks}" for i in range(items)]}
    facts = pd.DataFrame(facts, [f"q{i}" for i in range(items)])
    return Scores(values, facts, [f"m{i}" for i in range(models)])


def test_the_representative_is_the_member_nearest_to_the_mean():
    points = np.random.default_rng(0).random((5, 80)).astype(np.float32)
    found = k_means_items(points, 7, rng=0)
    for cluster, item in enumerate(found.medoids):
        members = np.flatnonzero(found.labels == cluster)
        middle = points[:, members].mean(axis=1, keepdims=True)
        away = np.linalg.norm(points[:, members] - middle, axis=0)
        assert item == members[away.argmin()]


def test_an_empty_cluster_is_filled_with_the_farthest_item():
    from benchnb.methods.clustering import nearest_to_centroids

    away, rng = np.array([0.1, 0.2, 0.9, 0.3, 0.0]), np.random.default_rng(0)
    medoids, labels = nearest_to_centroids(np.array([0, 0, 2, 2, 2]), away, 3, rng)
    assert medoids.tolist() == [0, 4, 2] and labels.tolist() == [0, 0, 2, 1, 1]


def test_the_estimate_is_equation_6_with_item_weights():
    scores = answers()
    facts = scores.items.assign(weight=np.random.default_rng(1).random(60))
    scores = Scores(scores.values, facts, scores.models)
    method = prepare_method(
        Clustering().fit(scores.select(models=range(18))), 9, seed=3
    )
    target = scores.values[20]
    mass = [method.weights_[method.labels_ == j].sum() for j in range(9)]
    expected = np.average(target[method.coreset_], weights=mass)
    assert np.isclose(method.estimate(target[method.coreset_]).score, expected)


@pytest.mark.filterwarnings("ignore:Number of distinct clusters")
@settings(max_examples=40, deadline=None)
@given(st.integers(1, 15), st.integers(0, 1000), st.sampled_from([1, 2, 8]))
def test_always_as_many_distinct_items_as_asked_for(k, seed, models):
    "Also with fewer kinds of items than items to choose"
    rng = np.random.default_rng(seed)
    points = rng.integers(0, 2, (models, 15))
    found = k_means_items(points, k, seed, weights=rng.integers(0, 3, 15) + 0.0)
    assert len(set(found.medoids)) == k == len(found.medoids)
    np.testing.assert_array_equal(found.labels[found.medoids], np.arange(k))
    assert found.labels.min() >= 0 and found.labels.max() < k


def test_intervals_hold_their_promise_for_models_like_the_sources():
    held = []
    for seed in range(12):
        source, target = answers(seed, models=80, items=150).split("random", seed=seed)
        truth = target.truth().to_numpy()
        for one, true in zip(
            simulate(Clustering().fit(source), target, 15, seed), truth, strict=True
        ):
            held.append(one.interval[0] <= true <= one.interval[1])
    assert 0.9 < np.mean(held) <= 1


def test_items_described_from_outside():
    scores = answers()
    side = np.eye(2)[np.arange(60) % 2]  # the task, and nothing else
    method = prepare_method(Clustering(space="side").fit(scores, side), 2)
    assert set(scores.items["task"].iloc[method.coreset_]) == {"t0", "t1"}
    for bad in (None, np.zeros((3, 2)), np.zeros(60)):
        with pytest.raises(ValueError, match="an array of 60 items x features"):
            Clustering(space="side").fit(scores, bad)
    with pytest.raises(ValueError, match="NaN or infinite"):
        Clustering(space="side").fit(scores, np.full((60, 2), np.nan))
    with pytest.raises(ValueError, match="space must be one of"):
        Clustering(space="words").fit(scores)


def with_texts(scores):
    "Items about three things, in turn"
    things = ["pens at the shop", "a train to town", "roses in the garden"]
    texts = [f"{i} {things[i % 3]}" for i in range(scores.shape[1])]
    return Scores(scores.values, scores.items.assign(text=texts), scores.models)


def test_items_described_by_their_texts():
    scores = with_texts(answers())
    source, target = scores.split("random", seed=1)
    method = prepare_method(TextClustering().fit(source), 3)
    assert sorted(method.coreset_ % 3) == [0, 1, 2]
    np.testing.assert_array_equal(np.bincount(method.labels_), [20, 20, 20])
    assert (method.labels_ == method.labels_[np.arange(60) % 3]).all()
    assert "text" not in method.items_
    same = prepare_method(
        TextClustering().fit(source, text_embeddings(scores.items["text"])), 3
    )
    np.testing.assert_array_equal(same.coreset_, method.coreset_)
    for one, other in zip(
        simulate(method, target), simulate(same, target), strict=True
    ):
        assert one.score == other.score and one.interval == other.interval


@pytest.mark.parametrize("space", ["text", "side"])
def test_items_not_chosen_by_scores_are_tried_on_every_source(space, monkeypatch):
    def never(*args, **settings):
        raise AssertionError("there is nothing to cluster anew")

    monkeypatch.setattr("benchnb.evaluation.learned_coresets.assign_held_out", never)
    scores = with_texts(answers(models=70))
    facts = scores.items.assign(weight=np.random.default_rng(1).random(60))
    scores = Scores(scores.values, facts, scores.models)
    side = text_embeddings(facts["text"], 5) if space == "side" else None
    method = prepare_method(Clustering(space).fit(scores, side), 9)
    errors = []
    for row in scores.values:
        estimate = method.estimate(row[method.coreset_]).score
        errors.append(estimate - row @ scores.weights)
    assert np.isclose(method.radius_, conformal_radius(errors, 0.95), atol=1e-6)
    assert np.isnan(
        prepare_method(Clustering(space, folds=0).fit(scores, side), 9).radius_
    )


def test_tables_without_texts():
    scores = answers()
    with pytest.raises(ValueError, match="needs the items' texts: give .* 'text'"):
        TextClustering().fit(scores)
    side = np.random.default_rng(0).random((60, 4))
    assert len(simulate(TextClustering().fit(scores, side), scores, 5)) == 24
    assert "kmeans_text" not in list_methods(scores)
    assert {"kmeans", "kmeans_text"} <= set(list_methods(with_texts(scores)))
