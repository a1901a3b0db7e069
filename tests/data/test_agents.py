"The coding agents that ship: facts, numbers of runs, grouped splits"

import numpy as np
import pandas as pd
import pytest

from benchnb.data.scores import Scores
from benchnb.data.sources import load


@pytest.mark.parametrize("how", ["llm", "scaffold"])
def test_grouped_splits_keep_groups_together(how):
    scores = load("terminal_bench")
    for seed in range(5):
        source, target = scores.split(how, seed=seed)
        assert not set(source.models[how]) & set(target.models[how])


def test_trials_are_kept_and_checked(tmp_path):
    scores = load("terminal_bench_trials")
    assert scores.trials.shape == scores.shape and scores.trials.min() >= 1
    part = scores.select(models=[3, 1], items=[5, 2])
    np.testing.assert_array_equal(part.trials, scores.trials[np.ix_([3, 1], [5, 2])])
    successes = scores.values * scores.trials
    np.testing.assert_allclose(successes, np.round(successes), atol=1e-4)
    assert scores.fingerprint() != Scores(scores.values).fingerprint()
    for bad in (np.zeros((1, 1)), np.full((1, 1), 1.5), np.ones((2, 1))):
        with pytest.raises(ValueError, match="trials"):
            Scores([[0.5]], trials=bad)


def test_tasks_keep_the_runs():
    values = [[1, 0.5, 0.25], [0, np.nan, 0.5]]
    items = pd.DataFrame({"task": ["a", "a", "b"]})
    models = pd.DataFrame({"full_score": [0.5, 0.3]}, ["m", "n"])
    scores = Scores(values, items, models, [[5, 2, 4], [3, 0, 6]])
    tasks = scores.by_task()  # as often as the item that ran least
    assert tasks.trials.tolist() == [[2, 4], [3, 6]]
    assert Scores(values, items).by_task().trials is None
