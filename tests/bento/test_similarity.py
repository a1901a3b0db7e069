"""What the chapter on similar tasks does not show: references, faults, properties."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchnb.bento.similarity import (
    SCALES,
    TASK_DISTANCES,
    bm25_matrix,
    check_square,
    eigengaps,
    eigenmaps,
    embedding_stability,
    laplacian,
    load_transfer,
    normalise_columns,
    okapi_matrix,
    stable_dims,
    transfer_similarity,
)


def accuracies(seed, tasks=9, draws=4):
    return np.random.default_rng(seed).uniform(0.2, 0.9, (draws, tasks, tasks))


seeds = st.integers(0, 10_000)


@pytest.mark.parametrize(
    "matrix, message",
    [
        (np.zeros((2, 3, 4)), r"got the shape \(2, 3, 4\)"),
        ([[1.0]], "of two tasks or more"),
        ([[1, 2], [np.nan, 1]], "from task 1 to task 0 is not a finite number"),
    ],
)
def test_what_is_no_transfer_matrix(matrix, message):
    for function in (check_square, normalise_columns, transfer_similarity):
        with pytest.raises(ValueError, match=message):
            function(matrix)


@given(seeds, st.sampled_from(list(SCALES)), st.sampled_from(list(TASK_DISTANCES)))
@settings(max_examples=30, deadline=None)
def test_similarity_is_symmetric_and_follows_the_tasks(seed, scale, metric):
    matrix = accuracies(seed)
    found = transfer_similarity(matrix, scale, metric)
    assert np.array_equal(found, found.T) and found.min() >= 0
    assert np.allclose(found.diagonal(), found.max())
    order = np.random.default_rng(seed).permutation(9)
    shuffled = transfer_similarity(matrix[:, order][:, :, order], scale, metric)
    assert np.allclose(shuffled, found[np.ix_(order, order)])


@pytest.mark.equation("bento", "4")
@given(seeds)
@settings(max_examples=20, deadline=None)
def test_eigenmaps_solve_the_eigenproblem(seed):
    S = transfer_similarity(accuracies(seed))
    L = laplacian(S)
    values = np.linalg.eigvalsh(L)
    assert abs(values[0]) < 1e-9 and values[-1] <= 2
    points = eigenmaps(S, 5)
    assert np.allclose(L @ points, points * values[:5])
    assert (points[np.abs(points).argmax(axis=0), range(5)] > 0).all()
    later = eigenmaps(S, 4, skip_first=True)
    assert np.allclose(later, points[:, 1:])
    gaps = eigengaps(S)
    assert np.isclose(gaps[3], values[3] - values[2])
    assert gaps.index.tolist() == list(range(2, 9))


def test_what_is_no_similarity():
    with pytest.raises(ValueError, match="not symmetric"):
        laplacian([[1, 2], [1, 1]])
    with pytest.raises(ValueError, match="tasks 0 and 1 is negative: raise c"):
        eigenmaps([[1, -0.1], [-0.1, 1]], 1)
    for dims in (0, 10, 2.0):
        with pytest.raises(ValueError, match="choose from 1 to 9"):
            eigenmaps(transfer_similarity(accuracies(0)), dims)
    with pytest.raises(ValueError, match="choose from 1 to 8"):
        eigenmaps(transfer_similarity(accuracies(0)), 9, skip_first=True)


def test_noise_is_not_stable_and_all_dimensions_mean_nothing():
    table = embedding_stability(accuracies(0, draws=6), range(1, 9), splits=10)
    assert abs(table[3].mean()) < 0.4 and table[8].isna().all()
    assert stable_dims(pd.DataFrame({1: [0.5], 2: [0.9], 3: [0.7], 4: [0.2]})) == 3
    assert stable_dims(pd.DataFrame({1: [0.5], 2: [0.1]})) == 1
    again = embedding_stability(accuracies(0, draws=6), range(1, 9), splits=10)
    pd.testing.assert_frame_equal(table, again)


TEXTS = {
    "lucene": ["cat mat", "cat dog dog fox", "sun"],
    "okapi": ["x. x b", "x c", "c d d x.", "e f"],  # words split at whitespace
}


@pytest.mark.parametrize("kind", TEXTS)
def test_bm25_agrees_with_its_formula(kind):
    split, weigh = [t.split() for t in TEXTS[kind]], {}
    for word in {word for text in split for word in text}:
        there = sum(word in text for text in split)
        odds = (len(split) - there + 0.5) / (there + 0.5)
        weigh[word] = np.log(odds if kind == "okapi" else 1 + odds)
    mean, length = np.mean(list(weigh.values())), np.mean([len(t) for t in split])
    weigh = {word: value if value >= 0 else mean / 4 for word, value in weigh.items()}
    slow = np.zeros((len(split), len(split)))
    for i, query in enumerate(split):
        for j, text in enumerate(split):
            for word in query:
                tf = text.count(word)
                below = tf + 1.5 * (0.25 + 0.75 * len(text) / length)
                slow[i, j] += weigh[word] * tf / below
    found = {"lucene": bm25_matrix, "okapi": okapi_matrix}[kind](TEXTS[kind])
    np.testing.assert_allclose(found, slow * (2.5 if kind == "okapi" else 1), atol=1e-5)


def test_transfer_matrices_that_are_not_here(tmp_path):
    with pytest.raises(FileNotFoundError, match="set BENCHNB_DATA to a folder with"):
        load_transfer("mmlu", tmp_path)
    folder = tmp_path / "mmlu-ict"
    folder.mkdir()
    np.savez(folder / "ict_matrices.npz", flan=np.eye(2), flan_tasks=np.array([*"ab"]))
    found = load_transfer("flan", tmp_path)
    assert found.tasks == ("a", "b") and found.values.shape == (1, 2, 2)
    with pytest.raises(ValueError, match="has no array 'mmlu'"):
        load_transfer("mmlu", tmp_path)
