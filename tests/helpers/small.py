"A small made-up table, its methods fitted once, and what several test files ask of it"

import copy
import functools
import warnings

import numpy as np
import pandas as pd

from benchnb.data.scores import Scores
from benchnb.evaluation.registry import find_class, get_method, list_methods
from benchnb.evaluation.simulate import prepare_method, simulate

TASKS = {"algebra": 30, "logic": 20, "reading": 10}


def sentences(number, seed=0):
    "So many made-up questions; some of them are equal"
    rng = np.random.default_rng([seed, 77])
    who = rng.choice(["Ada", "Ben", "Cleo", "Dan"], number)
    what = rng.choice(["pens", "roses", "trains", "pupils"], number)
    how_many = rng.integers(2, 40, number)
    rows = zip(who, how_many, what, strict=True)
    return [f"{name} has {count} {things}. How many?" for name, count, things in rows]


def chances(n_models, sizes, rng):
    "How likely each model is to be right: a skill per model, a difficulty per item"
    skill = np.linspace(-1.5, 2, n_models) + rng.normal(0, 0.3, n_models)
    task = np.repeat(np.arange(len(sizes)), sizes)
    leaning = rng.normal(0, 0.5, (n_models, len(sizes)))[:, task]
    apart = (skill[:, None] + leaning - rng.normal(0, 1, len(task))) * 1.5
    return 1 / (1 + np.exp(-apart))


def table(seed=0, n_models=24, facts=True):
    """24 models x 60 items: 3 tasks of equal weight, costs, texts, dates, families

    A table of one's own: what a test changes in it, no other test sees."""
    return copy.deepcopy(_table(seed, n_models, facts))


@functools.cache
def _table(seed, n_models, facts):
    rng = np.random.default_rng(seed)
    chance = chances(n_models, list(TASKS.values()), rng)
    values = (rng.random(chance.shape) < chance).astype(float)
    items = pd.DataFrame({"task": np.repeat(list(TASKS), list(TASKS.values()))})
    items["weight"] = 1 / items["task"].map(TASKS)
    items["cost"] = rng.integers(50, 500, len(items))
    items["text"] = sentences(len(items), seed)
    items.index = [f"{task}/{number}" for number, task in enumerate(items["task"])]
    models = pd.DataFrame(index=[f"model-{i:02d}" for i in range(n_models)])
    if facts:
        models["family"] = [f"family{i % 6}" for i in range(n_models)]
        models["released"] = pd.date_range("2022-01-01", periods=n_models, freq="30D")
        models["n_params"] = rng.integers(1, 70, n_models) * 1e9
        models["part"] = ["source"] * (n_models - 6) + ["target"] * 6
    return Scores(values, items, models)


METHODS = list_methods(table())  # whatever is registered when tests are collected
ONE_TASK = [name for name in METHODS if "tasks" not in find_class(name).needs]
NESTED = [f"per_task({name})" for name in ONE_TASK]


def halves(scores=None):
    "Sources and targets of a table, by their marks"
    return (table() if scores is None else scores).split("given")


def fit(name, source):
    "A method by its name, or per_task(name), fitted; without what it warns of"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return get_method(name).fit(source)


@functools.cache
def _fitted(name):
    return fit(name, halves()[0])


def fitted(name):
    "A copy of the method fitted on the small table's sources"
    return copy.deepcopy(_fitted(name))


def estimates(method, targets, budget, seed=0):
    "What simulate returns, without the warnings that small budgets earn"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return simulate(method, targets, budget, seed)


def prepared(method, budget, seed=0):
    "The method, prepared, without the warnings that small budgets earn"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return prepare_method(method, budget, seed)


def with_values(scores, values):
    "The same facts with other values"
    return Scores(values, scores.items, scores.models)


def shown(estimate):
    "What an estimate says, as plain values that can be compared; no times"
    lists = [estimate.items, estimate.unscored, list(estimate.notes)]
    arrays = [estimate.predicted, estimate.per_task]
    arrays = [None if a is None else np.asarray(a).tolist() for a in arrays]
    return repr(
        [estimate.score, estimate.interval, estimate.interval_method, *arrays, *lists]
    )


def files_in(folder):
    "Every file below a folder and its bytes"
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths}


# A method as somebody else would write it, in a file of their own. It can be told to
# kill or to interrupt its process group when it is prepared for the n-th time.
FORK = """
import os
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchnb.evaluation.method import Coreset, Estimate
from benchnb.evaluation.registry import register


def meet(workers):
    "Wait here until so many processes have come"
    if workers:
        Path(f"{name}-here-{{os.getpid()}}").touch()
    while len(list(Path().glob("{name}-here-*"))) < workers:
        time.sleep(0.01)


@register
@dataclass(eq=False)
class {name}(Coreset):
    "The plain mean over items drawn at random"

    shift: float = 0.0

    name = "{name}".lower()
    fits = prepares = 0

    def fit(self, source, side=None):
        type(self).fits += 1
        return super().fit(source)

    def prepare(self, budget, rng):
        type(self).prepares += 1
        meet(int(os.environ.get("FORK_WORKERS", 0)))
        if type(self).prepares == int(os.environ.get("FORK_AT", 0)):
            os.killpg(0, int(os.environ["FORK_SIGNAL"]))
        super().prepare(budget, rng)
        self.coreset_ = rng.choice(len(self.items_), budget, replace=False)
        return self

    def estimate(self, seen):
        return Estimate(float(np.clip(np.nanmean(seen) + self.shift, 0, 1)))
"""


def write_fork(folder, name):
    "Write that module; package.module:Class"
    folder.mkdir(exist_ok=True)
    (folder / f"{name.lower()}_module.py").write_text(FORK.format(name=name))
    return f"{name.lower()}_module:{name}"
