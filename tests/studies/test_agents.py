"Coding agents: made-up data with known answers, and what the stored figures say"

import numpy as np
import pandas as pd
import pytest

from benchnb.data.scores import Scores
from benchnb.data.sources import load
from benchnb.stats.irt import fit_irt
from benchnb.stats.irt_posterior import log_likelihood, sample_posterior
from benchnb.stats.logistic import NormalPrior
from benchnb.studies.agents import (
    SINCE,
    PassFilter,
    RepositorySampling,
    additive_prior,
    aged_table,
    agent_split,
    error_of_runs,
    filter_check,
    likely_variances,
    resumed,
    variance_components,
    with_run_noise,
)


def test_variance_components_by_hand():
    rates, trials = np.array([[1, 0, 0.5, 1]]), np.array([[5, 5, 2, 1]])
    found = variance_components(rates, trials).iloc[0]
    assert found["score"] == 0.5  # the task that was run once is left out
    assert np.isclose(found["run"], 0.5 / 3)  # 0, 0 and 2 * .25 / 1
    assert np.isclose(found["task"], 0.25 - 0.25 / 3)


def test_variance_components_are_unbiased():
    rng = np.random.default_rng(0)
    chance = rng.beta(1, 2, size=(400, 200))
    trials = rng.integers(1, 6, size=chance.shape)
    found = variance_components(rng.binomial(trials, chance) / trials, trials).mean()
    assert abs(found["task"] - 1 / 18) < 0.001  # Beta(1, 2): 2 / (9 * 4)
    assert abs(found["run"] - (1 / 3 - 1 / 9 - 1 / 18)) < 0.001


def test_single_runs_tell_nothing_about_noise():
    found = variance_components(
        np.array([[1, 0, 1.0], [0.5, 0, 1]]), np.array([[1] * 3, [2] * 3])
    )
    assert found.iloc[0].isna().all() and found.iloc[1].notna().all()


@pytest.mark.parametrize("tasks, repeats", [(12, 1), (4, 3), (40, 2)])
def test_error_of_runs_is_that_of_a_simulation(tasks, repeats):
    rng = np.random.default_rng(0)
    chance = rng.beta(1, 1, size=40)
    means = []
    for _ in range(4000):
        drawn = rng.permutation(40)[:tasks]
        means.append((rng.binomial(repeats, chance[drawn]) / repeats).mean())
    run = (chance * (1 - chance)).mean()
    said = error_of_runs(chance.var(ddof=1), run, tasks, repeats, 40)
    assert abs(np.std(means) / said - 1) < 0.05
    assert abs(np.mean(means) - chance.mean()) < 4 * said / np.sqrt(4000)


def test_a_widened_interval_holds_the_expected_score():
    rng = np.random.default_rng(0)
    chance = rng.beta(1, 1, size=(2000, 90))
    score = (rng.random(chance.shape) < chance).mean(axis=1)  # every task, once
    run = (chance * (1 - chance)).mean()
    low, high = with_run_noise(score, score, score, run, 90)
    truth = chance.mean(axis=1)
    assert 0.935 < ((low <= truth) & (truth <= high)).mean() < 0.965
    wide = with_run_noise(0.5, 0.3, 0.8, run, 90)
    assert wide[0] < 0.3 and wide[1] > 0.8


def some_agents(count=12, items=40, seed=0):
    rng = np.random.default_rng(seed)
    ease = rng.random(items)
    values = (rng.random((count, items)) < ease).astype(float)
    facts = {"llm": list("ABC") * (count // 3), "scaffold": list("xxyy") * (count // 4)}
    facts["released"] = pd.date_range("2024-06-01", periods=count, freq="60D")
    return Scores(values, None, pd.DataFrame(facts, [f"m{i}" for i in range(count)]))


def test_the_filter_keeps_to_its_range_and_fills_with_the_nearest():
    scores = some_agents()
    method = PassFilter().fit(scores)
    inside = np.abs(method.easiness_ - 0.5) <= 0.2 + 1e-9
    few = method.prepare(3, np.random.default_rng(0)).coreset_
    assert inside[few].all()
    count = inside.sum()
    drawn = method.prepare(count + 3, np.random.default_rng(0)).coreset_
    assert inside[drawn[:count]].all() and len(set(drawn)) == count + 3
    apart = np.abs(method.easiness_ - 0.5)
    assert apart[drawn].max() <= np.sort(apart)[count + 2] + 1e-9
    assert method.inclusion_probabilities(drawn) is None


def test_every_repository_has_its_share():
    scores = some_agents(items=40)
    scores.items["task"] = ["big"] * 30 + ["small"] * 10
    method = RepositorySampling().fit(scores)
    for seed in range(5):
        drawn = method.prepare(8, np.random.default_rng(seed)).coreset_
        assert (drawn < 30).sum() == 6


@pytest.mark.parametrize(
    "split, new, known", [("llm", "llm", "scaffold"), ("scaffold", "scaffold", "llm")]
)
def test_one_fact_is_new_and_the_other_is_known(split, new, known):
    table = agent_split(load("terminal_bench"), split, 1)
    source, target = table.split("given")
    assert not target.models[new].isin(source.models[new]).any()
    assert target.models[known].isin(source.models[known]).all()


def test_the_prior_is_the_conditional_normal():
    facts = pd.DataFrame({"llm": ["A", "A", "B", np.nan, np.nan]})
    theta = np.array([1.0, 0.6, -0.8, 0.1, 0.0])
    variances, rest = likely_variances(theta, facts, ("llm",))
    v = variances["llm"]
    same = np.array([[1, 1, 0, 0, 0], [1, 1, 0, 0, 0], *np.eye(5)[2:]])  # nan: alone
    whole = 1 + v * same + rest * np.eye(5)
    across = 1 + v * np.array([1, 1, 0, 0, 0])
    mean = across @ np.linalg.inv(whole) @ theta
    left = 1 + v + rest - across @ np.linalg.inv(whole) @ across
    prior = additive_prior(theta, facts, pd.DataFrame({"llm": ["A"]}), ("llm",))[0]
    assert np.isclose(prior.mean[0], mean) and np.isclose(
        1 / prior.precision[0, 0], left
    )


def test_a_posterior_with_a_prior_of_its_own_is_that_on_a_grid():
    scores = some_agents(count=24, seed=1)
    bank = fit_irt(scores.values)
    items, seen = np.arange(6), np.array([1.0, 1, 0, 1, 1, 1])
    prior = NormalPrior(np.array([-1.0]), np.array([[6.0]]))
    found = sample_posterior(bank, items, seen, prior=prior)
    grid = np.linspace(-6, 6, 4001)[:, np.newaxis]
    log = (
        log_likelihood(bank.attenuated(grid, items)[0], seen)
        - 3 * (grid[:, 0] + 1) ** 2
    )
    exact = np.exp(log - log.max())
    mean = (exact / exact.sum()) @ grid[:, 0]
    assert abs(found.weights @ found.theta[:, 0] - mean) < 0.01


def test_sources_are_as_old_as_asked():
    scores = load("swebench_verified")
    for months, fresh in ((0, 0), (12, 0), (12, 5)):
        source, target = aged_table(scores, months, 20, fresh).split("given")
        days = source.models["released"]
        assert len(source) == 20 + fresh and target.models["released"].min() >= SINCE
        old = days < SINCE - pd.DateOffset(months=months)
        assert old.sum() == 20 + fresh * (months == 0) and days.max() < SINCE


def test_the_filter_changes_scores_on_made_up_agents():
    scores = some_agents(count=24)
    found = filter_check(scores, "random", 0)
    assert 0 < found["fewer"] < 1 and found["error"] >= abs(found["shift"])


def test_what_is_measured_is_not_measured_again(tmp_path):
    asked = []

    def measure(name, trial):
        asked.append((name, trial))
        return pd.DataFrame({"value": [trial / 3, 1.0]})

    todo = [dict(name=name, trial=trial) for name in "ab" for trial in (0, 1)]
    first = resumed(tmp_path / "done.csv", todo[:2], measure)
    again = resumed(tmp_path / "done.csv", todo, measure)
    assert asked == [("a", 0), ("a", 1), ("b", 0), ("b", 1)]
    assert len(first) == 4 and len(again) == 8
    assert (again["name"] == list("aaaabbbb")).all()
