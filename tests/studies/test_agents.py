"Coding agents: the journal of long runs, and a prior of one's own"

import numpy as np
import pandas as pd

from benchnb.stats.irt import fit_irt
from benchnb.stats.irt_posterior import log_likelihood, sample_posterior
from benchnb.stats.logistic import NormalPrior
from benchnb.studies.agents import resumed


def test_a_posterior_with_a_prior_of_its_own_is_that_on_a_grid():
    rng = np.random.default_rng(1)
    bank = fit_irt((rng.random((24, 40)) < rng.random(40)).astype(float))
    items, seen = np.arange(6), np.array([1.0, 1, 0, 1, 1, 1])
    prior = NormalPrior(np.array([-1.0]), np.array([[6.0]]))
    found = sample_posterior(bank, items, seen, prior=prior)
    grid = np.linspace(-6, 6, 4001)[:, np.newaxis]
    chance = bank.attenuated(grid, items)[0]
    log = log_likelihood(chance, seen) - 3 * (grid[:, 0] + 1) ** 2
    exact = np.exp(log - log.max())
    mean = (exact / exact.sum()) @ grid[:, 0]
    assert abs(found.weights @ found.theta[:, 0] - mean) < 0.01


def test_what_is_measured_is_not_measured_again(tmp_path):
    asked = []

    def measure(name, trial):
        asked.append((name, trial))
        return pd.DataFrame({"value": [trial / 3, np.nan]})

    todo = [dict(name=name, trial=trial) for name in "ab" for trial in (0, 1)]
    first = resumed(tmp_path / "done.sqlite", todo[:2], measure)
    again = resumed(tmp_path / "done.sqlite", todo, measure)
    assert asked == [("a", 0), ("a", 1), ("b", 0), ("b", 1)]
    assert len(first) == 4 and again["name"].tolist() == [*"aaaabbbb"]
    assert again["value"].isna().sum() == 4 and again["value"].max() == 1 / 3
