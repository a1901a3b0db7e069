"""check_method: methods of the library keep the contract, and each rule finds a method
that breaks it."""

from dataclasses import dataclass

import numpy as np
import pytest
from helpers.small import METHODS, table

from benchnb.data.scores import Scores
from benchnb.evaluation import registry
from benchnb.evaluation.checks import BrokenRule, check_method
from benchnb.evaluation.method import Coreset, Estimate, Flag
from benchnb.evaluation.registry import get_method
from benchnb.evaluation.simulate import simulate


@pytest.fixture(autouse=True)
def fresh_registry(monkeypatch):
    "Names that a test registers are forgotten after it"
    monkeypatch.setattr(registry, "_METHODS", dict(registry._METHODS))


SLOW = """essence_bench sparse_eval disco metabench p_irt collaborative_filtering atlas
gp_irt anchor_irt adaptive_irt""".split()  # what is checked is shared: these take long
EACH = [pytest.param(n, marks=[pytest.mark.slow] * (n in SLOW)) for n in METHODS]


@pytest.mark.parametrize("name", EACH)
def test_methods_of_the_library_keep_the_contract(name):
    check_method(get_method(name), scores=table())


@dataclass(eq=False)
class Honest(Coreset):
    "The mean of a random subset"

    name = "honest"

    def prepare(self, budget, rng):
        super().prepare(budget, rng)
        self.coreset_ = np.sort(rng.permutation(len(self.items_))[:budget])
        return self

    def estimate(self, seen):
        weights = self.weights_[self.coreset_] * ~np.isnan(seen)
        total = weights.sum()
        return Estimate(float(np.nansum(weights * seen) / total) if total else 0.5)


class Careless(Honest):
    name = "careless"

    def estimate(self, seen):
        assert not np.isnan(seen).any()
        return Honest.estimate(self, seen)


class Gapless(Honest):
    name = "gapless"

    def estimate(self, seen):
        return Estimate(float(np.mean(seen)))


class Lucky(Honest):
    name = "lucky"

    def estimate(self, seen):
        return Estimate(float(np.random.default_rng().random()))


class Forgetful(Honest):
    name = "forgetful"

    def prepare(self, budget, rng):
        super().prepare(budget, rng)
        self.secret = {"bias": 0.25}
        return self

    def estimate(self, seen):
        return Estimate(getattr(self, "secret", {}).get("bias", 0.75))


class Tipsy(Honest):
    name = "tipsy"

    def prepare(self, budget, rng):
        return super().prepare(budget, np.random.default_rng())


class Meddler(Honest):
    name = "meddler"

    def fit(self, source, side=None):
        super().fit(source)


class Greedy(Honest):
    name = "greedy"

    def run(self, rng):
        yield np.arange(self.budget_ + 1)
        return Estimate(0.5)


class Unsaved(Honest):
    name = "unsaved"

    def fit(self, source, side=None):
        self.ease = source.values.mean(axis=0)
        return super().fit(source)

    def estimate(self, seen):
        return Estimate(float(self.ease.mean()))


class Rootless(Honest):
    name = "rootless"

    def fit(self, source, side=None):
        return self


class Loud(Honest):
    name = "Loud"


class Needy(Honest):
    name = "needy"

    def __init__(self, size):
        self.size = size


def test_an_honest_method_passes():
    check_method(Honest)
    check_method(Honest())


def test_a_score_that_is_no_number_is_said_as_such():
    source, target = table().split("random", seed=0)
    values = target.values.astype(float)
    values[:, ::5] = np.nan
    gapped = Scores(values, target.items, target.models)
    for found in simulate(Gapless().fit(source), gapped, 25):
        scored = 25 - len(found.unscored)
        assert 0 < scored < 25 and Flag.NOT_FINITE in found.flags
        assert f"gapless returned nan, though {scored} of 25 items" in found.notes[0]
        assert Flag.NOTHING_SCORED not in found.flags and np.isnan(found.rank)


def test_per_task_names_the_task_in_which_nothing_was_scored():
    source, target = table().split("random", seed=0)
    values, task = target.values.astype(float), target.items["task"].iloc[0]
    values[:, target.items["task"] == task] = np.nan
    gapped = Scores(values, target.items, target.models)
    note, *_ = simulate(get_method("per_task(random)").fit(source), gapped, 25)[0].notes
    assert note.startswith(f"{task}: no item was scored")


@pytest.mark.parametrize(
    "cls, words",
    [
        (Careless, "items without a score fail"),
        (Gapless, "its score is NaN or infinite: NaN is an answer .asked"),
        (Lucky, "two runs differ: take random numbers from rng alone"),
        (Forgetful, "a saved copy differs: what fit and prepare find out ends in an"),
        (Tipsy, "prepare is not repeatable: prepare must draw from rng alone"),
        (Meddler, "fit returns nothing: return self"),
        (dict, "is no Method: inherit from"),
        (
            Greedy,
            "a run fails .ValueError: Greedy asked for 14 items, its budget is 13",
        ),
        (Unsaved, "a saved copy differs: what fit and prepare find out ends in an"),
        (Rootless, "fit forgets the items: begin it with super"),
        (Loud, "the name 'Loud' is not snake_case: write it in lower case"),
        (Needy, "it cannot be made without arguments: give every field a default"),
    ],
)
def test_a_broken_rule_is_named(cls, words):
    with pytest.raises(BrokenRule, match=words):
        check_method(cls)


def with_function(name, function):
    "An honest method but for one function"
    kind = type("Odd", (Honest,), {"name": "odd", name: function})
    return dataclass(eq=False)(kind)


SIGNATURES = {
    "fit": (
        lambda self, source: Honest.fit(self, source),
        "it has fit(self, source): write fit(self, source, side=None); side is what",
    ),
    "prepare": (
        lambda self, budget: self,
        "it has prepare(self, budget): write prepare(self, budget, rng)",
    ),
    "run": (lambda self: (yield [0]), "it has run(self): write run(self, rng)"),
    "estimate": (lambda self: Estimate(0.5), "it has estimate(self): write estimate("),
    "inclusion_probabilities": (
        lambda self: None,
        "it has inclusion_probabilities(self): write inclusion_probabilities(self, ask",
    ),
}


@pytest.mark.parametrize("name", SIGNATURES)
def test_a_wrong_signature_is_one_line_that_says_what_to_write(name):
    function, words = SIGNATURES[name]
    with pytest.raises(BrokenRule) as caught:
        check_method(with_function(name, function))
    text = str(caught.value)
    assert text.startswith(words) and "\n" not in text
