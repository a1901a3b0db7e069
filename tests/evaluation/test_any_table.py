"""Every registered method on tables of every kind: an estimate within its bounds, or
one line that says what is wrong with the table; no crash, no raw warning."""

import os
import traceback
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from helpers.small import METHODS
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import benchnb
from benchnb.data.scores import Scores
from benchnb.evaluation.checks import is_possible
from benchnb.evaluation.method import Flag
from benchnb.evaluation.registry import get_method
from benchnb.evaluation.simulate import simulate

HERE = str(Path(benchnb.__file__).parent) + os.sep
SIZES = [(2, 2), (3, 2), (2, 9), (4, 5), (9, 12), (13, 30), (30, 8)]
LARGE = [*SIZES, (60, 30), (200, 3), (400, 30), (1000, 30)]
SCORES = ["ability", "chance", "parts", "ones", "zeros", "halves", "items", "models"]
WEIGHTS = ["one", "random", "some zero", "one item", "huge", "huge and tiny"]


def drawn_values(kind, size, rng):
    "Scores of a kind, without gaps"
    chance = 1 / (1 + np.exp(rng.normal(0, 1, size[1]) - rng.normal(0, 1.5, size)))
    return {
        "ability": lambda: rng.random(size) < chance,
        "chance": lambda: rng.random(size) < 0.5,
        "parts": lambda: chance,
        "ones": lambda: np.ones(size),
        "zeros": lambda: np.zeros(size),
        "halves": lambda: np.full(size, 0.5),
        "items": lambda: np.tile(rng.random(size[1]) < 0.5, (size[0], 1)),
        "models": lambda: np.tile(rng.random((size[0], 1)), (1, size[1])),
    }[kind]().astype(float)


def drawn_weights(kind, count, rng):
    "Weights of a kind; one of them at least is above 0"
    weight = {
        "one": np.ones(count),
        "random": rng.random(count),
        "some zero": (rng.random(count) < 0.5).astype(float),
        "one item": np.zeros(count),
        "huge": np.full(count, 1e20),
        "huge and tiny": rng.choice([1e20, 1, 1e-20], count),
    }[kind]
    weight[0] = max(weight[0], 1e-20 if kind == "huge and tiny" else 1)
    return weight


def made_table(seed, size, kind, missing, weight, copies, tasks):
    "A table, the same for the same choices; `copies`: of models, items, both or none"
    rng = np.random.default_rng(seed)
    values = drawn_values(kind, size, rng)
    if copies in ("models", "both"):
        values = values[rng.integers(0, max(1, size[0] // 3), size[0])]
    if copies in ("items", "both"):
        values = values[:, rng.integers(0, max(1, size[1] // 3), size[1])]
    values[rng.random(size) < missing] = np.nan
    facts = {"task": [f"task{n % tasks}" for n in range(size[1])]}
    facts |= {"weight": drawn_weights(weight, size[1], rng)}
    if seed % 2:
        facts |= {"text": [f"question {n % 5}" for n in range(size[1])]}
    return Scores(values, pd.DataFrame(facts, [f"i{n}" for n in range(size[1])]))


def table_strategy(sizes):
    "All choices that make a table, and a share of the items as the budget"
    return st.tuples(
        st.integers(0, 10_000),
        st.sampled_from(sizes),
        st.sampled_from(SCORES),
        st.floats(0, 0.85) | st.just(0.0),
        st.sampled_from(WEIGHTS),
        st.sampled_from(["none", "models", "items", "both"]),
        st.integers(1, 4),
    )


def said_in_one_line(error):
    "A ValueError of ours, in one line with the culprit and, after a colon, the remedy"
    last = traceback.extract_tb(error.__traceback__)[-1]
    text = str(error)
    assert type(error).__module__.startswith(("builtins", "benchnb")), repr(error)
    assert last.filename.startswith(HERE), f"{last.filename}: {error!r}"
    assert "\n" not in text and ": " in text and len(text) > 30, text


def outcome(name, choices, share, seed=0):
    "'estimate' or 'refused'; anything else fails"
    scores = made_table(*choices)
    first = max(1, len(scores) - 2)
    source = scores.select(models=np.arange(first))
    target = scores.select(models=np.arange(first, len(scores)))
    budget = 1 + round(share * (scores.shape[1] - 1))
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        try:
            found = simulate(get_method(name).fit(source), target, budget, seed)
        except ValueError as error:
            said_in_one_line(error)
            return "refused"
    raw = [w for w in warned if w.category is not UserWarning]
    raw += [w for w in warned if "site-packages" in w.filename]
    assert not raw, [f"{w.filename}:{w.lineno} {w.message}" for w in raw]
    is_possible(found, target, budget)
    for estimate in found:
        if len(estimate.unscored) == len(estimate.items):
            assert Flag.NOTHING_SCORED in estimate.flags
    return "estimate"


every_method = pytest.mark.parametrize("name", METHODS)


def looked(number):
    "Settings: so many examples, the same ones in every run"
    number = int(os.environ.get("BENCHNB_EXAMPLES") or number)
    return settings(
        max_examples=number,
        derandomize=True,
        deadline=None,
        database=None,
        phases=(Phase.explicit, Phase.generate),
        suppress_health_check=list(HealthCheck),
    )


GAPS = (1, (30, 8), "ability", 0.5, "one", "none", 1)  # once a crash of splines


TINY = (6766, (9, 12), "halves", 0.0, "huge and tiny", "items", 4)  # weights


@pytest.mark.parametrize("name", ["metabench", "essence_bench"])
def test_a_model_that_answered_nothing_has_no_curve(name):
    assert outcome(name, GAPS, 0.3) == "estimate"


def test_weights_that_no_sum_can_hold_count_as_zero():
    assert outcome("sort_and_search", TINY, 0.88) == "estimate"


# the others take longer: see the test below
QUICK = "aipw kmeans random random_tasks sort_and_search tailored_bench".split()


@pytest.mark.parametrize("name", QUICK)
@given(table_strategy(SIZES), st.floats(0, 1))
@looked(6)
def test_any_table_gives_an_estimate_or_one_line(name, choices, share):
    outcome(name, choices, share)


@pytest.mark.slow
@every_method
@given(table_strategy(LARGE), st.floats(0, 1))
@looked(15)
def test_many_tables_of_any_size_give_an_estimate_or_one_line(name, choices, share):
    outcome(name, choices, share)


def test_an_array_of_targets_is_refused_with_the_frame_that_works():
    frame = pd.DataFrame(np.eye(4, 6), [*"abcd"], [f"q{n}" for n in range(6)])
    method = get_method("random").fit(Scores(frame))
    with pytest.raises(ValueError, match=r"'q0', .*columns are method.items_.index"):
        simulate(method, frame.to_numpy(), 3)
