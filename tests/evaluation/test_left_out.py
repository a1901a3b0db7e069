"""Errors on sources that were left out: who is left out with whom, and which interval
they give to a method without one."""

from dataclasses import dataclass

import numpy as np
import pytest
from helpers.evaluations import evaluate
from helpers.small import halves, table

from benchnb.data.scores import Scores
from benchnb.evaluation.left_out import (
    left_out_errors,
    select_task_errors,
)
from benchnb.evaluation.method import Coreset, Estimate, IntervalKind
from benchnb.evaluation.registry import get_method
from benchnb.live.evaluation import Evaluation
from benchnb.methods.guarded_irt import GuardedIRT


class Nosy(Coreset):
    "Remembers what it was fitted on; its estimate is the mean of the answers"

    name, fits = "nosy", []

    def fit(self, source, side=None):
        self.fits.append(set(source.models.index))
        return super().fit(source)

    def prepare(self, budget, rng):
        super().prepare(budget, rng)
        self.coreset_ = rng.choice(len(self.items_), budget, replace=False)
        return self

    def estimate(self, seen):
        return Estimate(float(np.nanmean(seen)))


@dataclass(eq=False)
class Calibrated(GuardedIRT):
    "Calibrates its interval in every fold"

    fits = []

    def estimates_only(self):
        self.fits.append(3)
        return GuardedIRT(folds=3, rounds=self.rounds)


def test_every_source_is_left_out_once_and_never_seen():
    source = halves()[0]
    Nosy.fits.clear()
    errors = left_out_errors(Nosy(), source, 12, folds=4)
    assert sorted(errors.index) == sorted(source.models.index)
    everyone = set(source.models.index)
    left = [everyone - seen for seen in Nosy.fits]
    assert len(left) == 4 and sum(map(len, left)) == len(everyone)
    np.testing.assert_allclose(errors["truth"], source.truth()[errors.index])
    assert errors["low"].isna().all()
    with pytest.raises(ValueError, match="too few to leave out any"):
        left_out_errors(Nosy(), table().select(models=[0, 1]), 12)


def test_near_copies_are_left_out_together():
    values = np.repeat(table().values[:8], 2, axis=0)
    source = Scores(values, table().items, [f"m{n}" for n in range(16)])
    Nosy.fits.clear()
    left_out_errors(Nosy(), source, 12, folds=8)
    for seen in Nosy.fits:
        assert all((f"m{2 * n}" in seen) == (f"m{2 * n + 1}" in seen) for n in range(8))


def test_tasks_of_sources_that_were_left_out():
    source = halves()[0]
    errors = left_out_errors(get_method("aipw"), source, 12, 4)
    for task in source.items["task"].unique():
        part = select_task_errors(errors, task)
        known = source.performance(by="task")[task][part.index]
        np.testing.assert_allclose(part["truth"], known)
    assert select_task_errors(errors, "no such task") is None
    assert select_task_errors(left_out_errors(Nosy(), source, 12, 4), "algebra") is None


def test_a_method_without_an_interval_gets_one_that_is_kept(tmp_path):
    evaluate("tailored_bench", tmp_path / "a")
    live = Evaluation.load(tmp_path / "a")
    found = live.estimate()
    assert np.isnan(found.interval).all() and found.kind is IntervalKind.NONE
    assert "few sources" in found.flags  # 18 are too few for 95%
    assert live.report()["interval"] == live.report()["rank_interval"] == [None, None]
    (low, high), found = live.report(0.9)["interval"], live.report(0.9)
    assert 0 < high - low < 1 and low <= found["score"] <= high
    bare = evaluate("tailored_bench", errors=False).estimate()
    assert bare.kind is IntervalKind.NONE and "no interval" in bare.notes[-1]


def test_left_out_errors_are_those_of_the_method_itself():
    "What only an interval needs is left out in the folds, and changes no estimate"
    source = table(1, 40)
    quick = left_out_errors(GuardedIRT(rounds=5), source, 20, folds=2)
    slow = left_out_errors(Calibrated(rounds=5), source, 20, folds=2)
    columns = ["estimate", "truth", "fit", "correction", "fold"]
    np.testing.assert_allclose(quick[columns], slow[columns], atol=1e-12)
    assert GuardedIRT().estimates_only().folds == 0 and Calibrated.fits == [3]
