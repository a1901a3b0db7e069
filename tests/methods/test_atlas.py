"""What the chapter on ATLAS does not show: a test step by step, limits, notes."""

import numpy as np
import pytest
from helpers.small import fit, halves, prepared

from benchnb.evaluation.registry import get_method
from benchnb.evaluation.simulate import prepare_method, simulate
from benchnb.methods.adaptive_irt import simulate_test
from benchnb.methods.atlas import ABILITIES, AtlasTest
from benchnb.stats.irt import IRT
from benchnb.stats.irt_fit import fit_bank


def slow_test(bank, row, rng, budget, among, fewest, target_se):
    "One model, one item after another, by the formulas of the chapter"
    asked, theta = [], 0.0
    a, d = bank.slopes[:, 0], bank.intercepts
    while len(asked) < budget:
        chance = 1 / (1 + np.exp(-a * theta - d))
        worth = a**2 * chance * (1 - chance) - 1e6 * (a < 0)
        worth[asked] = -np.inf
        best = np.sort(np.argsort(-worth)[:among])
        asked.append(int(best[np.argmin(rng.random(among))]))
        density = np.exp(-(ABILITIES**2) / 2)
        for item in asked:
            right = 1 / (1 + np.exp(-a[item] * ABILITIES - d[item]))
            density = density * (right if row[item] else 1 - right)
        density /= density.sum()
        theta = density @ ABILITIES
        if len(asked) >= fewest:
            if np.sqrt(density @ (ABILITIES - theta) ** 2) <= target_se:
                break
    return asked


@pytest.mark.parametrize("target_se", [0.01, 0.45])
def test_items_are_those_of_a_test_step_by_step(target_se):
    source, target = halves()
    bank = fit_bank(source.values)
    rules = dict(among=3, fewest=5, target_se=target_se, budget=20)
    for row in target.values:
        rng = np.random.default_rng(1)
        own = dict(weights=source.weights, penalties=1e6 * (bank.slopes[:, 0] < 0))
        test = AtlasTest(bank=bank, rng=rng, **own, **rules)
        asked, seen = simulate_test(test, row[np.newaxis].astype(float))
        slow = slow_test(bank, row, np.random.default_rng(1), **rules)
        assert asked[0].tolist() == slow
        assert seen[0].tolist() == row[slow].tolist()


def test_nothing_is_asked_twice_where_few_items_rise():
    slopes = np.where(np.arange(12) < 4, 40.0, -1.0)[:, np.newaxis]
    bank = IRT(slopes, np.linspace(-90, 90, 12))
    test = AtlasTest(
        bank, np.full(12, 1 / 12), 1e6 * (slopes[:, 0] < 0), 12, rng=None, among=5
    )
    test.rng = np.random.default_rng(0)
    asked, _ = simulate_test(test, np.tile([1.0, 0], 6)[np.newaxis])
    assert sorted(asked[0]) == list(range(12))


def test_it_stops_early_and_says_its_ability():
    source, target = halves()
    method = get_method("atlas", target_se=0.5, fewest=4).fit(source)
    found = simulate(prepare_method(method, 40), target)
    assert min(len(e.items) for e in found) < 40
    assert all("ability" in e.notes[-1] for e in found)
    whole = simulate(prepared(fit("atlas", source), 60), target)
    assert [e.score for e in whole] == pytest.approx(target.truth().tolist())
