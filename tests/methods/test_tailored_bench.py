"""TailoredBench beside a slow reference that follows the paper's equations"""

import numpy as np
import pytest

from benchnb.data.scores import Scores
from benchnb.evaluation.registry import get_method
from benchnb.evaluation.simulate import AskTellSession, prepare_method, simulate
from benchnb.methods.tailored_bench import (
    TailoredBench,
    calibrate_by_difficulty,
    model_distances,
    native_number,
)
from benchnb.stats.medoids import Medoids, choose_medoids, standardize


@pytest.fixture(scope="module")
def tables():
    "Sources and targets with two kinds of skill, right or wrong answers"
    rng = np.random.default_rng(0)
    skill, need = rng.normal(size=(40, 2)), rng.normal(size=(2, 120))
    logit = skill @ need + rng.normal(size=(40, 1))
    answers = (rng.random((40, 120)) < 1 / (1 + np.exp(-logit))).astype(float)
    models = [f"m{i}" for i in range(40)]
    return Scores(answers[:30], models=models[:30]), Scores(
        answers[30:], models=models[30:]
    )


def slow_distances(answers):
    "Equation 4 on standardised probe items, in loops"
    models, items = answers.shape
    described = np.zeros_like(answers, dtype=float)
    for i in range(items):
        column = answers[:, i].astype(float)
        if column.std() > 0:
            described[:, i] = (column - column.mean()) / column.std()
    distance = np.zeros((models, models))
    for j in range(models):
        for k in range(models):
            distance[j, k] = sum(
                abs(described[j, i] - described[k, i]) for i in range(items)
            )
    return distance


@pytest.mark.equation("tailored_bench", "5")
@pytest.mark.parametrize("by_targets", [True, False])
def test_number_of_natives_is_equation_5(tables, by_targets):
    source, target = tables
    answers = np.vstack([source.values[:, :10], target.values[:, :10]])
    distance = np.round(slow_distances(answers), 4)
    total, pairs = 0.0, 0
    for j in range(len(distance)):
        for k in range(j):
            total, pairs = total + distance[j, k], pairs + 1
    d_bar, counts = total / pairs, []
    players = range(30, 40) if by_targets else range(30)
    for player in players:
        counts.append(
            sum(distance[player, s] <= d_bar for s in range(30) if s != player)
        )
    number, line = native_number(model_distances(answers), 30, by_targets)
    assert number == int(np.mean(counts))
    assert line == pytest.approx(d_bar, abs=1e-4)


def slow_calibrated(means, clusters, answers):
    "Equations 8 and 9, item by item"
    predicted = np.zeros(len(means))
    for item, label in enumerate(clusters.labels):
        medoid = clusters.medoids[label]
        if item == medoid:
            predicted[item] = answers[label]
        else:
            scale = (means[item] + 0.5) / (means[medoid] + 0.5)
            predicted[item] = min((answers[label] + 0.5) * scale - 0.5, 1)
    return predicted


@pytest.mark.equation("tailored_bench", "8, 9")
def test_calibration_is_equations_8_and_9(tables):
    values = tables[0].values
    clusters = choose_medoids(standardize(values), 12, rng=3)
    answers = tables[1].values[0, clusters.medoids].astype(float)
    means = values.mean(axis=0, dtype=float)
    np.testing.assert_allclose(
        calibrate_by_difficulty(means, clusters, answers),
        slow_calibrated(means, clusters, answers),
    )


@pytest.mark.equation("tailored_bench", "10", "3, 4")
@pytest.mark.parametrize("transductive", [True, False])
def test_estimate_is_the_paper_step_by_step(tables, transductive):
    "The whole conversation, retold with the slow pieces around the same clustering"
    source, target = tables
    method = TailoredBench(probe_size=8, transductive=transductive).fit(source)
    estimate = simulate(method, target, budget=20, seed=4)[0]
    probe, asked = method.probe_, target.items.index.get_indexer(estimate.items)
    assert asked[:8].tolist() == probe.tolist() and len(asked) == 20

    rows = target.values if transductive else target.values[:1]
    distance = np.round(slow_distances(np.vstack([source.values, rows])[:, probe]), 4)
    number, _ = native_number(distance, 30, transductive)
    strength = source.values.mean(axis=1)
    native = sorted(range(30), key=lambda s: (distance[30, s], -strength[s]))[:number]

    described = standardize(source.values[native])
    apart = np.abs(described[:, :, None] - described[:, None, asked]).sum(axis=0)
    answers = target.values[0, asked].astype(float)
    means = source.values[native].mean(axis=0)
    best = []
    for item in range(120):
        near = np.flatnonzero(apart[item] <= apart[item].min() + 1e-4)
        guesses = [
            slow_calibrated(
                means[[asked[n], item]] if asked[n] != item else means[[item]],
                Medoids(
                    np.array([0]), np.array([0, 0] if asked[n] != item else [0]), 0.0
                ),
                answers[[n]],
            )[-1]
            for n in near
        ]
        best.append((min(guesses), max(guesses)))
        if item in asked:
            best[-1] = (target.values[0, item],) * 2
    low, high = np.mean(best, axis=0)
    assert low - 1e-6 <= estimate.score <= high + 1e-6


def test_order_of_sources_changes_nothing_but_the_start(tables):
    "The natives are the same models, whatever the order of the table"
    source, target = tables
    turned = source.select(models=np.arange(len(source))[::-1])
    row = target.values[0]
    names = []
    for table in (source, turned):
        method = prepare_method(TailoredBench(probe_size=8).fit(table), 20)
        method.probe_ = np.arange(8)  # the same probe
        native = method.native_sources(row[np.newaxis, :8], np.random.default_rng(0))
        names.append(list(table.models.index[native]))
    assert names[0] == names[1]


def test_other_targets_count_only_when_transductive(tables):
    source, target = tables
    pair, single = target.select(models=[0, 5]), target.select(models=[0])
    method = TailoredBench(probe_size=8).fit(source)
    assert simulate(method, pair, 20)[0].score == simulate(method, single, 20)[0].score
    method = TailoredBench(probe_size=8, transductive=True).fit(source)
    prepare_method(method, 20)
    part = AskTellSession(method)
    assert part.cohort
    part.tell(target.values[0, part.wanted].astype(float))  # no others: still answers
    assert len(part.wanted) == 12


def test_free_probe_stays_within_the_budget(tables):
    source, target = tables
    estimate = simulate(
        TailoredBench(probe_size=8, keep_probe=False).fit(source), target, 20
    )
    assert all(len(one.items) <= 20 for one in estimate)


def asked_by_two_equal_targets(method, tables):
    "The items that two targets with the same answers were asked"
    source, target = tables
    twins = Scores(target.values[[0, 0]], models=["one", "two"])
    found = simulate(method.fit(source), twins, 20, seed=1)
    return [one.items for one in found]


def test_the_published_setting_draws_anew_for_every_target(tables):
    one, two = asked_by_two_equal_targets(TailoredBench(), tables)
    assert one == two
    published = get_method("tailored_bench_published")
    one, two = asked_by_two_equal_targets(published, tables)
    assert one[:10] == two[:10] == sorted(one[:10], key=lambda name: int(name[4:]))
    assert set(one) != set(two)
    assert [one, two] == asked_by_two_equal_targets(published, tables)


def test_a_small_probe_is_reported_at_the_callers_line(tables):
    source, _ = tables
    with pytest.warns(UserWarning, match="pays a probe of 2 items") as seen:
        prepare_method(get_method("tailored_bench").fit(source), 4)
    assert {warning.filename for warning in seen} == {__file__}
