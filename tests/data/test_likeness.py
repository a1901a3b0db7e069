"How alike the models of a table are: a slow reference, and what the report says"

import numpy as np
import pandas as pd
import pytest

from benchnb.data import splits
from benchnb.data.scores import Scores
from benchnb.data.splits import (
    effective_models,
    near_copy_pairs,
    relative_disagreement,
)


@pytest.mark.parametrize("share", [0.0, 0.3])
def test_the_number_of_models_is_the_participation_ratio(share):
    rng = np.random.default_rng(0)
    values = (rng.random((12, 4000)) < rng.random((1, 4000))).astype(float)
    values[6:] = values[:6]  # six models, twice each
    whole = values.copy()
    values[rng.random(values.shape) < share] = np.nan
    rest = whole - whole.mean(axis=0)
    spectrum = np.linalg.eigvalsh(np.corrcoef(rest))
    slow = 1 + spectrum.sum() ** 2 / (spectrum**2).sum()
    assert effective_models(values) == pytest.approx(slow, rel=0.1 if share else 0.02)


def test_what_is_said_of_the_models():
    rng = np.random.default_rng(0)
    values = rng.integers(0, 2, (6, 300)).astype(float)
    values[5] = values[0]
    values[0, 0] = np.nan
    facts = {"family": ["a", "a", "a", "b", None, "a"]}
    facts["released"] = ["2024-01-03", None, "2025-06", "2023-05-31", None, None]
    models = pd.DataFrame(facts, [f"m{n}" for n in range(6)])
    found = Scores(values, models=models).likeness()
    assert (found.models, found.copies, found.families) == (6, 1, 2)
    assert found.largest == 0.8 and 0 < found.missing < 0.001
    assert (found.oldest, found.newest) == ("2023-05", "2025-06")
    assert 4 < found.effective < 6
    assert "1 near-copies, 2 families (the largest 80%)" in str(found)
    bare = Scores(values).likeness()
    assert (bare.families, bare.largest, bare.newest) == (None, None, None)


@pytest.mark.parametrize("graded", [False, True])
def test_copies_among_similar_scores_are_those_among_all(graded, monkeypatch):
    monkeypatch.setattr(splits, "BLOCK", 7)
    rng = np.random.default_rng(4)
    skill = rng.normal(size=(60, 1))
    values = (rng.random((60, 80)) < 1 / (1 + np.exp(-skill))).astype(float)
    values[40:] = values[:20]
    other = rng.random(values.shape) < rng.choice([0.01, 0.04, 0.1], (60, 1))
    values = np.where(other, 1 - values, values)
    values[:2] = 0  # nothing and everything right
    values[2:4] = 1
    if graded:
        values = 0.8 * values + 0.1
    for limit in (0.1, 0.3, 1.0):
        close = relative_disagreement(values) <= limit
        pairs = np.zeros_like(close)
        pairs[near_copy_pairs(values, limit)] = True
        np.testing.assert_array_equal(pairs | pairs.T, close)
