"""Tables that nobody would tune on: what goes wrong in them has gone wrong somewhere.

Each has 24 earlier models unless it says otherwise, 60 items, and new models of which
all answers are known."""

import numpy as np
import pandas as pd
from scipy.special import expit

from benchnb.data.scores import Scores

ITEMS = 60


def curves(theta, rng, slopes=None):
    "Answers of models that follow item response curves"
    difficulty = rng.normal(0, 1, ITEMS)
    slopes = rng.uniform(0.7, 2, ITEMS) if slopes is None else slopes
    return lambda theta: rng.random((len(theta), ITEMS)) < expit(
        slopes * (theta[:, np.newaxis] - difficulty)
    )


def like(rng, sources, targets):
    "Models that follow curves, in no order"
    answer = curves(None, rng)
    return answer(rng.normal(size=sources)), answer(rng.normal(size=targets))


def near_chance(rng, sources, targets):
    "Two answers to every question; most models guess, some do worse"
    right = rng.normal(0.5, 0.05, sources + targets).clip(0.3, 0.7)
    ease = rng.normal(0, 0.05, ITEMS)
    values = rng.random((len(right), ITEMS)) < right[:, np.newaxis] + ease
    return np.split(values, [sources])


def constant_answers(rng, sources, targets, share=1.0):
    "Classification: this share of the sources always answers one of four classes"
    classes = rng.choice(4, ITEMS, p=[0.4, 0.3, 0.2, 0.1])
    constant = classes == rng.integers(4, size=(sources, 1))
    able = rng.random((sources + targets, ITEMS)) < rng.uniform(
        0.2, 0.95, (sources + targets, 1)
    )
    mine = np.where(np.arange(sources)[:, np.newaxis] < share * sources, constant, 0)
    some = np.arange(sources) < share * sources
    return np.where(some[:, np.newaxis], mine, able[:sources]), able[sources:]


def half_constant(rng, sources, targets):
    "The same with half of the sources"
    return constant_answers(rng, sources, targets, 0.5)


def many_tasks(rng, sources, targets):
    "Twelve tasks of five items; every model has an ability of its own in each"
    theta = np.repeat(rng.normal(0, 1.5, (sources + targets, 12)), 5, axis=1)
    values = rng.random(theta.shape) < expit(theta - rng.normal(0, 1, ITEMS))
    return np.split(values, [sources])


def graded(rng, sources, targets):
    "Fractions of full marks"
    theta = rng.normal(0, 1, (sources + targets, 1)) + rng.normal(0, 1, ITEMS)
    values = expit(theta + rng.normal(0, 0.7, theta.shape)).round(1)
    return np.split(values, [sources])


def other_family(rng, sources, targets):
    "Stronger than all sources, and no item is harder for them than another"
    answer = curves(None, rng, np.full(ITEMS, 2.5))
    strong = rng.random((targets, ITEMS)) < rng.uniform(0.75, 0.95, (targets, 1))
    return answer(rng.normal(-1, 0.7, sources)), strong


def near_copies(rng, sources, targets):
    "Six models, each four times with a few other answers"
    old, new = like(rng, -(-sources // 4), targets)
    old = np.repeat(old, 4, axis=0)[:sources]
    return np.where(rng.random(old.shape) < 0.01, ~old, old), new


def all_alike(rng, sources, targets):
    "One model so many times"
    old, new = like(rng, 1, targets)
    return np.repeat(old, sources, axis=0), new


def ceiling(rng, sources, targets):
    "Nearly everybody answers nearly everything"
    right = 1 - rng.exponential(0.02, (sources + targets, 1))
    values = rng.random((len(right), ITEMS)) < right
    return np.split(values, [sources])


def missing(rng, sources, targets):
    "A fifth of the sources' answers is unknown"
    old, new = like(rng, sources, targets)
    return np.where(rng.random(old.shape) < 0.2, np.nan, old), new


KINDS = (like, near_chance, constant_answers, half_constant, many_tasks, graded)
KINDS += (other_family, near_copies, all_alike, ceiling, missing)
TABLES = {kind.__name__: (kind, 24) for kind in KINDS}
TABLES |= {f"like_{n}": (like, n) for n in (5, 10, 20)}


def adversarial(
    name: str,  # one of TABLES
    targets: int = 40,
    seed: int = 0,
) -> tuple[Scores, Scores]:  # sources and targets
    "A table of its kind, made anew for every seed"
    make, sources = TABLES[name]
    rng = np.random.default_rng([seed, *map(ord, name)])
    tasks = np.repeat([f"task {n}" for n in range(12)], 5)
    items = pd.DataFrame({"task": tasks}, index=[f"item {n}" for n in range(ITEMS)])
    old, new = (np.asarray(part, dtype=float) for part in make(rng, sources, targets))
    names = [f"old {n}" for n in range(sources)], [f"new {n}" for n in range(targets)]
    return tuple(
        Scores(v, items, pd.DataFrame(index=n))
        for v, n in zip((old, new), names, strict=True)
    )
