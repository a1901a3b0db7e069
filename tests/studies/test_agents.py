"Coding agents: the journal of long runs, and a prior of one's own"

import numpy as np
import pandas as pd
import pytest

from benchnb.data.scores import Scores
from benchnb.stats.irt import attenuated, fit_irt
from benchnb.stats.irt_posterior import log_likelihood, sample_posterior
from benchnb.stats.logistic import NormalPrior
from benchnb.studies import agents as study
from benchnb.studies.agents import first_estimate, llm_key, resumed


def test_a_posterior_with_a_prior_of_its_own_is_that_on_a_grid():
    rng = np.random.default_rng(1)
    bank = fit_irt((rng.random((24, 40)) < rng.random(40)).astype(float))
    items, seen = np.arange(6)[np.newaxis], np.array([[1.0, 1, 0, 1, 1, 1]])
    prior = NormalPrior(np.array([-1.0]), np.array([[6.0]]))
    found = sample_posterior(bank, items, seen, prior=prior)
    grid = np.linspace(-6, 6, 4001)[:, np.newaxis]
    chance = attenuated(bank, grid[np.newaxis], items)[0]
    log = log_likelihood(chance, seen)[0] - 3 * (grid[:, 0] + 1) ** 2
    exact = np.exp(log - log.max())
    mean = (exact / exact.sum()) @ grid[:, 0]
    assert abs(found.weights[0] @ found.theta[0, :, 0] - mean) < 0.01


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


def agents(llm, scaffold, theta, table=0):
    facts = pd.DataFrame({"llm": llm, "scaffold": scaffold})
    return study.agent_facts(facts, table, theta)


def answers(seed=0):
    "Twelve agents of three language models, 80 tasks"
    chance = np.repeat([0.9, 0.6, 0.2], 4)[:, np.newaxis]
    values = (np.random.default_rng(seed).random((12, 80)) < chance).astype(float)
    models = pd.DataFrame({"llm": np.repeat(["Strong 2", "fair-1", "weak 1"], 4)})
    return Scores(values, pd.DataFrame(index=[f"t{i}" for i in range(80)]), models)


def test_names_of_one_language_model_have_one_key():
    names = ["claude-opus-4.5", "Claude 4.5 Opus - 101325", "claude_opus_4_5_20251101"]
    assert {llm_key(name) for name in names} == {"claude opus 4.5"}
    assert llm_key(llm_key("Gemini 2.5 Pro Preview -- debug")) == "gemini pro 2.5"
    assert llm_key("Multiple") is llm_key(np.nan) is None


def test_an_unknown_fact_is_shared_with_no_other_agent():
    found = study.fact_kernels(agents([None, None, "A"], [None] * 3, [0, 1, 2]))
    assert (found[:4] == np.eye(3)).all()


def test_conditional_abilities_are_those_of_one_known_and_one_new_agent():
    found = study.conditional(np.array([2, np.nan]), np.array([[4, 1], [1, 3]]))
    assert np.allclose(np.ravel(found), [0.5, 2.75])


def test_a_fact_from_another_table_counts():
    here = agents([*"ABAB"] * 3, [*"stuvwxyzabcd"], [1, -1, 0.9, -1.1] * 3)
    there = agents([*"CCDD"] * 3, None, [1.2, 1, -1, -1.2] * 3, table=1)
    new = agents([*"CD"], [None, None], np.nan)
    good, bad = study.facts_prior(pd.concat([here, there, new]))
    assert good.mean[0] > 0.3 and bad.mean[0] < -0.3


def test_the_first_tasks_sharpen_the_first_estimate():
    tables, ran = [answers(), answers(1)], {f"t{i}": 1.0 for i in range(40)}
    before, after = (first_estimate(tables, "strong-2", answers=a) for a in ({}, ran))
    assert before.score > 0.8 and np.ptp(after.interval) < np.ptp(before.interval)
    assert before.notes == ("no earlier agent has this scaffold",)


def test_first_estimate_names_what_is_wrong():
    with pytest.raises(ValueError, match="'x9', no task of the first table"):
        first_estimate([answers()], "fair 1", answers={"t1": 1, "x9": 0})
    with pytest.raises(ValueError, match="needs a table"):
        first_estimate([])
