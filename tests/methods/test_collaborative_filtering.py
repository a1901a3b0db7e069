"""Collaborative filtering beside a slow retelling of the paper in plain loops"""

import math

import numpy as np
import ot
import pandas as pd
import pytest

from benchnb.data.scores import Scores
from benchnb.evaluation import simulate as simulating
from benchnb.evaluation.per_task import PerTask, ratio_budget, split_budget
from benchnb.evaluation.registry import get_method
from benchnb.evaluation.simulate import (
    AskTellSession,
    method_rng,
    prepare_method,
    simulate,
)
from benchnb.methods.collaborative_filtering import (
    GRID_OF_SETTINGS,
    CollaborativeFiltering,
    importance,
    item_neighbours,
    most_important_items,
    nearest_models,
)
from benchnb.stats import transport
from benchnb.stats.balanced_sampling import regression_estimate
from benchnb.stats.intervals import combine_unbiased_estimates

_, UNIMPORTANCE, QUANTILES = GRID_OF_SETTINGS

SIZES = {"arithmetic": 30, "spelling": 20, "chess": 10, "haiku": 4}
LEAST = 6


def world(seed, binary, sizes=SIZES, models=26, weights=True):
    "Sources and targets whose skills differ a little from task to task"
    rng = np.random.default_rng(seed)
    task = np.repeat(np.arange(len(sizes)), list(sizes.values()))
    skill = rng.normal(0, 1, (models, 1)) + rng.normal(0, 0.4, (models, len(sizes)))
    chance = 1 / (1 + np.exp(2 * (rng.normal(0, 1, len(task)) - skill[:, task])))
    values = rng.random(chance.shape) < chance if binary else chance
    items = pd.DataFrame({"task": np.array(list(sizes))[task]})
    if weights:
        items["weight"] = rng.integers(1, 4, len(task))
    mixed = rng.permutation(len(task))  # tasks lie scattered over the table
    table = Scores(np.float32(values)[:, mixed], items.iloc[mixed])
    return table.select(models=range(models - 4)), table.select(
        models=range(models - 4, models)
    )


# The paper, retold -------------------------------------------------------------


def variance(column, how="variance"):
    "Equation 7, or equation 14 with half a vote for an even split"
    if how == "split":
        right = sum(1 for s in column if s == 1)
        wrong = sum(1 for s in column if s == 0)
        return 1 / abs(right - wrong) if right != wrong else 2.0
    mean = sum(column) / len(column)
    return sum((s - mean) ** 2 for s in column) / (len(column) - 1)


def cosine(x, y):
    "Of two lists; two lists of zeros are alike, one is like nothing"
    length = [math.sqrt(sum(a * a for a in v)) for v in (x, y)]
    if 0 in length:
        return float(length[0] == length[1])
    return sum(a * b for a, b in zip(x, y, strict=True)) / (length[0] * length[1])


class Retold:
    "One target, item by item, in the order of sections 4.1 and 4.2"

    def __init__(self, method, source, row, numbers, rng, plans=()):
        self.m, self.D, self.row = method, source.values.astype(float).tolist(), row
        self.plans = iter(plans)  # those taken, in the order of tasks
        self.tasks = {}
        for place, name in enumerate(source.items["task"]):
            self.tasks.setdefault(name, []).append(place)
        self.names = list(source.items.index)
        self.w, self.numbers = source.items["weight"].tolist(), numbers
        self.order = rng.permutation(len(self.D)).tolist()
        self.tie_breaks = rng.random(source.shape[1]).tolist()
        self.binary = all(s in (0, 1) for scores in self.D for s in scores)
        self.v = [variance(self.column(j), method.how) for j in range(source.shape[1])]
        self.asked, self.ways = [], set()

    def column(self, item, models=None):
        rows = self.D if models is None else [self.D[k] for k in models]
        return [row[item] for row in rows]

    def of(self, name):
        "Items of the task that were asked"
        return [j for j in self.asked if j in self.tasks[name]]

    def alike(self, items, number):
        "The models most similar to the target on these items"
        received = [self.row[j] for j in items]
        near = {}
        for k, scores in enumerate(self.D):
            near[k] = round(cosine([scores[j] for j in items], received), 9)
        return sorted(near, key=lambda k: (-near[k], self.order.index(k)))[:number]

    def select(self):
        "Stage 1: figure 3"
        for turn in range(1, self.m.rounds + 1):
            wanted = []
            for name, place in self.tasks.items():
                probe = self.of(name)
                score = {j: self.v[j] for j in place if j not in probe}
                if probe:
                    S = self.alike(probe, max(self.m.similar, 2))
                    for j in score:
                        a = self.m.general
                        among = variance(self.column(j, S), self.m.how)
                        if self.m.centre == "all":  # equation 9 as printed
                            mean = sum(self.column(j)) / len(self.column(j))
                            apart = [(x - mean) ** 2 for x in self.column(j, S)]
                            among = sum(apart) / (len(apart) - 1)
                        score[j] = a * self.v[j] + (1 - a) * among
                ranked = sorted(
                    score, key=lambda j: (-round(score[j], 9), self.tie_breaks[j])
                )
                goal = math.ceil(turn * self.numbers[name] / self.m.rounds - 1e-9)
                wanted += ranked[: goal - len(probe)]
            self.asked += wanted

    def partners(self, name):
        "Tasks whose mean vectors are similar, the nearest first"
        mean = {}
        for other in self.tasks:
            own = self.of(other)
            mean[other] = [sum(s[j] for j in own) / len(own) for s in self.D]
        near = {o: round(cosine(mean[name], mean[o]), 9) for o in mean if o != name}
        names = list(self.tasks)
        ranked = sorted(near, key=lambda o: (-near[o], names.index(o)))
        return [o for o in ranked if near[o] >= self.m.task_similarity]

    def synthetic(self, name, rest):
        "Equation 12: columns of the sources, and what the target would have scored"
        st = [j for o in self.partners(name) for j in self.of(o)][: self.m.pool]
        if not self.m.transport or not st or not rest:
            return []
        if self.binary:  # many plans are equally cheap: it must be one of them
            st, rest = (
                sorted(js, key=lambda j: sum(self.column(j))) for js in (st, rest)
            )
        cost = [[math.dist(self.column(j), self.column(k)) for k in rest] for j in st]
        P = ot.emd(ot.unif(len(st)), ot.unif(len(rest)), cost)
        best, taken = np.sum(P * cost), next(self.plans)
        if self.binary:
            P = taken
            assert np.sum(P * cost) == pytest.approx(best, abs=1e-6)
        made = []
        for b in range(len(rest)):
            mass = len(rest) * P[:, b]
            column = [
                sum(mass[a] * scores[j] for a, j in enumerate(st)) for scores in self.D
            ]
            received = sum(mass[a] * self.row[j] for a, j in enumerate(st))
            if self.binary:
                cut = [float(round(s, 6) >= 0.5) for s in [*column, received]]
                column, received = cut[:-1], cut[-1]
            made.append((rest[b], column, received))
            self.ways.add("borrowed")
        return made

    def predict(self, name):
        "Stage 2: figure 4. The lowest and the highest score that ties allow, by item"
        place, own = self.tasks[name], self.of(name)
        rest = [j for j in place if j not in own]
        made = self.synthetic(name, rest)
        selected = [(self.column(j), self.row[j]) for j in own]
        selected += [(column, received) for _, column, received in made]
        v_bar = sum(variance(c, self.m.how) for c, _ in selected) / len(selected)
        S = self.alike(own, self.m.similar)
        found = {j: (self.row[j], self.row[j]) for j in own}
        near = {}
        for j in rest:
            if self.v[j] < v_bar / self.m.unimportance:
                mean = sum(self.column(j)) / len(self.D)
                found[j] = (mean, mean)
                self.ways.add("mean")
            else:
                near[j] = top_three(
                    [(cosine(self.column(j), c), a) for c, a in selected]
                )
        bars = sorted(c for c, _, _ in near.values())
        for j, (c_bar, low, high) in near.items():
            by_model = sum(self.column(j, S)) / len(S)
            apart = c_bar - max(self.m.item_similarity, quantile(bars, self.m.quantile))
            if apart < -2e-6:
                low = high = by_model
                self.ways.add("models")
            elif self.binary and apart < 2e-6:  # near the edge: either
                low, high = min(low, by_model), max(high, by_model)
            else:
                self.ways.add("items")
            found[j] = low, high
        return found, made

    def scores(self):
        "Equation 11 for every task: lowest, highest"
        self.found, scores = {}, {}
        for name, place in self.tasks.items():
            found, made = self.predict(name)
            self.found |= found
            total, mass = np.zeros(2), 0.0
            for j in place:
                total, mass = total + self.w[j] * np.array(found[j]), mass + self.w[j]
            for j, _, received in made if self.m.count_synthetic else []:
                total, mass = total + self.w[j] * received, mass + self.w[j]
            scores[name] = total / mass
        return scores


def top_three(pairs):
    "Mean similarity, and the lowest and highest mean answer if the third is not single"
    pairs = sorted(pairs, key=lambda pair: -pair[0])
    number = min(3, len(pairs))
    last = pairs[number - 1][0]
    sure = [a for c, a in pairs if c > last + 2e-6]
    level = sorted(a for c, a in pairs if abs(c - last) <= 2e-6)
    left = number - len(sure)
    ends = [sum(sure) + sum(level[:left]), sum(sure) + sum(level[len(level) - left :])]
    mean = sum(c for c, _ in pairs[:number]) / number
    return mean, ends[0] / number, ends[1] / number


def quantile(ranked, q):
    "With a straight line between neighbours"
    at = q * (len(ranked) - 1)
    low = ranked[math.floor(at)]
    return low + (at - math.floor(at)) * (ranked[math.ceil(at)] - low)


GIVEN = {"similar": 5, "unimportance": 2.0, "quantile": 0.5, "held_out": 0}


def method(**settings):
    "With settings that are given, so that nothing is chosen on held-out sources"
    usual = GIVEN | {"least": LEAST, "task_similarity": 0.9}
    return CollaborativeFiltering(**usual | settings)


def budget_of(source, ratio=0.2):
    return ratio_budget(ratio, source.items["task"].value_counts().to_numpy(), LEAST)


def both_ways(seed, binary, monkeypatch, **settings):
    "A target's estimate, and the same retold"
    source, target = world(seed, binary)
    cf, budget, plans = method(**settings).fit(source), budget_of(source), []
    plan_of = transport.slice_plan  # identical items are one heap in it, and one hole

    def plan(*args):
        plans.append(plan_of(*args))
        return plans[-1]

    monkeypatch.setattr(transport, "slice_plan", plan)
    [estimate] = simulate(cf, target.select(models=[0]), budget, seed)
    numbers = {n: min(size, max(LEAST, round(0.2 * size))) for n, size in SIZES.items()}
    row, rng = target.values[0].astype(float).tolist(), method_rng(cf, budget, seed, 1)
    retold = Retold(cf, source, row, numbers, rng, plans)
    retold.select()
    return estimate, retold, retold.scores()


VARIANTS = {
    "as it is": {},
    "without transport": {"transport": False},
    "synthetic items count": {"count_synthetic": True, "quantile": 1.0},
    "a small pool": {"pool": 8, "task_similarity": 0.0, "count_synthetic": True},
    "users only": {"quantile": 1.0, "similar": 1, "unimportance": 100.0},
    "products only": {"quantile": 0.0, "similar": 10},
    "products if very similar": {"quantile": 0.25, "item_similarity": 0.9},
    "what divides the similar": {"general": 0.0, "rounds": 5, "similar": 3},
    "what divides all": {"general": 1.0, "rounds": 1, "similar": 50},
    "an even split": {"how": "split"},
    "equation 9 as printed": {"centre": "all"},
}


def as_they_are(full, weights, known, score):
    "The predictions before their mean is moved to the score"
    return full


@pytest.mark.equation("collaborative_filtering", "9, 10", "11", "13")
@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("kind", ["binary", "parts"])
def test_the_method_is_the_paper_retold(kind, variant, monkeypatch):
    "Items, predictions and task scores; where items are equally similar, any choice"
    if kind == "parts" and variant == "an even split":
        pytest.skip("for right or wrong only")
    monkeypatch.setattr(simulating, "shift_predictions_to_mean", as_they_are)
    ways, loose, total = set(), 0, 0
    for seed in (0, 1, 2, 3, 5):
        estimate, retold, scores = both_ways(
            seed, kind == "binary", monkeypatch, **VARIANTS[variant]
        )
        assert estimate.items == [retold.names[j] for j in retold.asked], seed
        low, high = np.array([retold.found[j] for j in range(64)]).T
        assert (low - 1e-6 <= estimate.predicted).all(), seed
        assert (estimate.predicted <= high + 1e-6).all(), seed
        for name, (least, most) in scores.items():
            assert least - 1e-6 <= estimate.per_task[name] <= most + 1e-6, (seed, name)
        assert next(retold.plans, None) is None  # each plan was retold
        ways |= retold.ways
        loose, total = loose + (high - low > 1e-6).sum(), total + 64
    assert loose <= (0.12 * total if kind == "binary" else 0)
    assert ways >= WAYS.get(variant, {"mean", "items"})


WAYS = {
    "as it is": {"mean", "items", "models", "borrowed"},
    "without transport": {"mean", "items", "models"},
    "synthetic items count": {"mean", "models", "borrowed"},
    "users only": {"models", "borrowed"},
    "products only": {"mean", "items", "borrowed"},
}


# The pieces --------------------------------------------------------------------


@pytest.mark.equation("collaborative_filtering", "7, 8, 14")
@pytest.mark.parametrize("how", ["variance", "split"])
@pytest.mark.parametrize("seed", range(4))
def test_importance_is_of_those_who_answered(seed, how):
    rng = np.random.default_rng(seed)
    values = rng.integers(0, 2, (9, 40)).astype(np.float32)
    values[rng.random(values.shape) < 0.5] = np.nan
    values[:, 0], values[1:, 1] = np.nan, np.nan
    for item, found in enumerate(importance(values, how)):
        known = [float(s) for s in values[:, item] if not np.isnan(s)]
        slow = variance(known, how) if len(known) > 1 else 0
        assert found == pytest.approx(slow, abs=1e-6)


def test_models_that_are_equally_similar_are_a_tie():
    "One shares 3 of its 18 right answers, the other 1 of its 2: 3 / 18**.5 = 1 / 2**.5"
    rows, row = np.zeros((2, 36), np.float32), np.zeros(36)
    row[:3] = rows[0, :18] = 1
    rows[1, [0, 35]] = 1
    for order in ([0, 1], [1, 0]):
        assert nearest_models(rows, row, 2, np.array(order)).tolist() == order


def test_ties_of_models_and_of_items_fall_to_everybody():
    rng, rows = np.random.default_rng(0), np.ones((6, 3), np.float32)
    first = [
        nearest_models(rows, np.ones(3), 1, rng.permutation(6))[0] for _ in range(99)
    ]
    assert set(first) == set(range(6))
    none = np.zeros(0, int)
    first = [
        most_important_items(np.ones(6), none, 1, rng.random(6))[0] for _ in range(99)
    ]
    assert set(first) == set(range(6))


@pytest.mark.equation("collaborative_filtering", "section 4.2.2, step 2")
@pytest.mark.parametrize("seed", range(6))
def test_the_most_similar_items_are_counted_in_loops(seed):
    "Without ties: part marks"
    rng = np.random.default_rng(seed)
    chosen, rest = np.float32(rng.random((8, 2 + seed))), np.float32(rng.random((8, 9)))
    answers = rng.random(2 + seed)
    mean, similarity = item_neighbours(chosen, answers, rest)
    for item in range(9):
        column = rest[:, item].astype(float).tolist()
        near = [cosine(column, c) for c in chosen.T.astype(float).tolist()]
        slow = top_three(list(zip(near, answers, strict=True)))
        assert (similarity[item], mean[item]) == pytest.approx(slow[:2], abs=1e-5)


# Held-out sources --------------------------------------------------------------


def answered(cf, row, rng):
    "The estimate for a target with these scores"
    part = AskTellSession(cf, rng)
    while part.estimate is None:
        part.tell(row[part.wanted])
    return part.estimate


def holding_out(source, **settings):
    "Fitted and prepared, with held-out sources"
    settings = {"least": LEAST, "task_similarity": 0.9, "held_out": 6} | settings
    return prepare_method(
        CollaborativeFiltering(**settings).fit(source), budget_of(source)
    )


VARIED = {
    "as it is": {},
    "synthetic items count": {"count_synthetic": True},
    "very similar items only": {"item_similarity": 0.9},
}


@pytest.mark.parametrize("binary", [True, False])
@pytest.mark.parametrize("name", VARIED)
def test_a_held_out_source_gets_the_estimate_of_a_target(name, binary):
    "The method, fitted on the others and on no copy, with each pair of settings"
    source, _ = world(5, binary)
    changed = {"similar": 3} | VARIED[name]
    cf, copies = holding_out(source, **changed), source.near_copies()
    for row in (2, 11):
        found, overall = cf.held_out_scores(row, seed=row)
        assert found.shape == (4, 1, len(UNIMPORTANCE), len(QUANTILES))
        others = source.select(models=copies != copies[row])
        for i, j in [(0, 0), (1, 3), (3, 6), (5, 1)]:
            pair = {"unimportance": UNIMPORTANCE[i], "quantile": QUANTILES[j]}
            other = prepare_method(method(**changed, **pair).fit(others), cf.budget_)
            row_scores = source.values[row].astype(float)
            estimate = answered(other, row_scores, np.random.default_rng(row))
            np.testing.assert_allclose(found[:, 0, i, j], estimate.per_task, atol=1e-6)
        asked = source.items.index.get_indexer(estimate.items)
        given = other.values_, other.weights_, asked, row_scores[asked]
        assert overall == pytest.approx(regression_estimate(*given), abs=1e-6)


def with_copies(binary=True):
    "Sources of which models 0 and 5 have copies, 20 and 21, with a few other answers"
    source, target = world(1, binary)
    values = source.values.copy()
    for row, copied in ((20, 0), (21, 5)):
        values[row] = values[copied]
        values[row, row : row + 2] = 1 - values[row, row : row + 2]
    return Scores(values, source.items), target


def test_a_held_out_source_and_its_copies_have_no_say_in_their_own_estimate(
    monkeypatch,
):
    "Change its scores on items that it was not asked, and its copies: all is as before"
    source, _ = with_copies()
    cf, asked = holding_out(source), []
    assert cf._copies[20] == cf._copies[0] and cf._copies[21] == cf._copies[5]
    recommend = CollaborativeFiltering.recommend

    def overheard(self, rng):
        found = yield from recommend(self, rng)
        asked.append(found[0])
        return found

    monkeypatch.setattr(CollaborativeFiltering, "recommend", overheard)
    before, overall = cf.held_out_scores(0, 7)
    free = np.setdiff1d(np.arange(64), asked[0])
    assert len(free) == 64 - cf.budget_
    cf.values_[0, free] = 1 - cf.values_[0, free]
    cf.values_[20] = 1 - cf.values_[20]
    again = cf.held_out_scores(0, 7)
    np.testing.assert_array_equal(again[0], before)
    assert again[1] == overall
    cf.values_[5] = 1 - cf.values_[5]  # of others the answers count
    assert (cf.held_out_scores(0, 7)[0] != before).any()


def held_out_of(cf, source, seed=0):
    "Which sources play the target, and with which seeds: the first draws of prepare"
    rng = method_rng(cf, cf.budget_, seed, 0)
    able = np.flatnonzero(~np.isnan(source.values).any(axis=1))
    rows = rng.permutation(able)[: cf.held_out]
    return rows, rng.integers(2**31, size=len(rows))


@pytest.mark.parametrize("given", [{}, {"similar": 4}, {"quantile": 0.3}, GIVEN])
def test_the_settings_are_those_with_the_smallest_error_on_held_out_sources(given):
    "And the interval holds the errors that the other sources' choice makes"
    source, _ = world(3, True)
    given = {name: given.get(name) for name in ("similar", "unimportance", "quantile")}
    cf = holding_out(source, held_out=8, level=0.7, total="tasks", **given)
    grids = [
        grid if value is None else (value,)
        for grid, value in zip(GRID_OF_SETTINGS, given.values(), strict=True)
    ]
    truth = source.performance(by="task").to_numpy()
    mass = source.items.groupby("task", sort=False)["weight"].sum().to_numpy()
    errors, total = [], []
    for row, seed in zip(*held_out_of(cf, source), strict=True):
        apart = cf.held_out_scores(row, seed)[0] - truth[row][:, None, None, None]
        errors.append(np.abs(apart).mean(axis=0))
        total.append(np.einsum("t,tabc->abc", mass / mass.sum(), apart))
    errors, total = np.array(errors), np.array(total)
    mean = errors.mean(axis=0)
    chosen = tuple(g.index(s) for g, s in zip(grids, cf.settings_, strict=True))
    assert mean[chosen] == pytest.approx(mean.min())
    own = []
    for k in range(8):
        rest = np.delete(errors, k, axis=0).mean(axis=0).round(9)
        best = np.unravel_index(rest.argmin(), rest.shape)
        assert cf.held_out_errors_[k] == pytest.approx(errors[k][best])
        own.append(abs(total[k][best]))
    assert cf.radius_ == pytest.approx(sorted(own)[math.ceil(9 * 0.7) - 1])


def test_few_complete_sources_give_usual_settings_and_no_interval():
    source, target = world(0, True)
    values = source.values.copy()
    values[1:, 7] = np.nan  # one source is complete
    cf = CollaborativeFiltering(least=LEAST).fit(Scores(values, source.items))
    [estimate, *_] = simulate(cf, target, 20)
    assert np.isnan(estimate.interval).all() and estimate.interval_method == ""
    assert cf.settings_ == [5, 2.0, 0.5]
    assert any("fewer than two sources" in note for note in estimate.notes)


def test_the_overall_score_is_calibrated_and_the_task_scores_are_not():
    "What held-out sources say of the two estimates makes the mixture"
    source, target = world(3, True)
    given = GIVEN | dict(held_out=8, level=0.7)
    cf, plain = (holding_out(source, total=t, **given) for t in ("calibrated", "tasks"))
    truth, mass = source.truth().to_numpy(), np.bincount(cf.task_, cf.weights_)
    first, second = [], []
    for row, seed in zip(*held_out_of(cf, source), strict=True):
        found, overall = cf.held_out_scores(row, seed)
        first.append(mass @ found.ravel() - truth[row])
        second.append(overall - truth[row])
    share, bias, errors = combine_unbiased_estimates(np.array(first), np.array(second))
    assert (cf.share_, cf.bias_) == pytest.approx((share, bias), abs=1e-6)
    assert cf.radius_ == pytest.approx(np.sort(np.abs(errors))[math.ceil(9 * 0.7) - 1])
    for one, other in zip(simulate(cf, target), simulate(plain, target), strict=True):
        np.testing.assert_array_equal(one.per_task, other.per_task)
        assert other.score == pytest.approx(mass @ other.per_task[cf.tasks_])
        assert one.items == other.items and one.score != other.score


# Gaps, and orders that must not matter -----------------------------------------


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_order_of_sources_decides_nothing_but_ties(seed):
    "Worlds of part marks, in which no two items are equally similar to a third"
    source, target = world(seed, False)
    turned = source.select(models=np.random.default_rng(seed).permutation(22))
    budget = budget_of(source)
    both = [simulate(method().fit(s), target, budget) for s in (source, turned)]
    for a, b in zip(*both, strict=True):
        assert a.items == b.items
        np.testing.assert_allclose(a.predicted, b.predicted, atol=1e-5)
        np.testing.assert_allclose(a.per_task, b.per_task, atol=1e-5)


# Awkward tables ----------------------------------------------------------------


def test_answers_without_a_score_are_predicted_like_items_not_asked(monkeypatch):
    monkeypatch.setattr(simulating, "shift_predictions_to_mean", as_they_are)
    source, target = world(0, True)
    cf = prepare_method(method().fit(source), 29)
    row = target.values[0].astype(float)
    row[::3] = np.nan
    estimate = answered(cf, row, np.random.default_rng(0))
    scored = [n for n in estimate.items if n not in estimate.unscored]
    places = source.items.index.get_indexer(scored)
    np.testing.assert_array_equal(estimate.predicted[places], row[places])
    weights = source.items["weight"].to_numpy()
    for name in SIZES:
        here = (source.items["task"] == name).to_numpy()
        mean = np.average(estimate.predicted[here], weights=weights[here])
        assert estimate.per_task[name] == pytest.approx(mean)


def test_a_task_that_weighs_nothing_has_no_score_and_no_say():
    source, target = world(0, True)
    items = source.items.assign(weight=source.items["weight"])
    items.loc[items["task"] == "chess", "weight"] = 0
    source, target = Scores(source.values, items), Scores(target.values, items)
    for estimate in simulate(holding_out(source), target):
        assert np.isnan(estimate.per_task["chess"])
        assert np.isnan(estimate.task_ranks["chess"])
        assert np.isfinite([estimate.score, *estimate.interval]).all()


def test_an_even_split_needs_right_or_wrong():
    with pytest.raises(ValueError, match="how='split' needs scores of 0 and 1"):
        method(how="split").fit(world(0, False)[0])


# Budgets with a floor ----------------------------------------------------------


@pytest.mark.parametrize("ratio", [0.01, 0.1, 0.25, 0.5, 0.99, 1])
@pytest.mark.parametrize("least", [1, 6, 20])
def test_a_ratio_pays_the_same_share_of_each_task(ratio, least):
    "Appendix C"
    sizes, total = [400, 150, 36, 20, 12, 3], 0
    for size in sizes:
        total += size if size < least else max(least, round(ratio * size))
    assert ratio_budget(ratio, sizes, least) == total
    share = split_budget(total, sizes, least)
    for size, number in zip(sizes, share, strict=True):
        wanted = size if size < least else max(least, ratio * size)
        assert abs(number - wanted) < 1 + 1e-9


def test_per_task_around_it_is_the_method_without_transport():
    "Task by task, with the same numbers of items: no task looks at another"
    source, target = world(0, False)
    given = dict(transport=False, total="tasks")
    whole = simulate(method(**given).fit(source), target, 29)
    parts = simulate(PerTask(method(**given), least=LEAST).fit(source), target, 29)
    for a, b in zip(whole, parts, strict=True):
        assert set(a.items) == set(b.items)
        np.testing.assert_allclose(a.per_task, b.per_task, atol=1e-5)
        assert a.score == pytest.approx(b.score, abs=1e-5)


# Places ------------------------------------------------------------------------


def place(value, among):
    "One more than those above, and half of those that are level"
    if math.isnan(value):
        return math.nan
    among = [other for other in among if not math.isnan(other)]
    above = sum(other > value + 1e-9 for other in among)
    return 1 + above + sum(abs(other - value) <= 1e-9 for other in among) / 2


@pytest.mark.parametrize(
    "name", ["random", "collaborative_filtering", "per_task(random)"]
)
@pytest.mark.parametrize("budget", [12, 64])
def test_places_are_counted_by_hand(name, budget):
    "In all and in every task; a model without a score in a task has no place in it"
    source, target = world(0, True)
    values = source.values.copy()
    values[3] = np.where(source.items["task"] == "chess", np.nan, values[3])
    values[4:7, 5] = np.nan
    source = Scores(values, source.items)
    whole, by_task = source.performance(), source.performance(by="task")
    assert by_task["chess"].isna().sum() == 1
    for estimate in simulate(get_method(name).fit(source), target, budget):
        assert estimate.rank == place(estimate.score, whole)
        if estimate.per_task is None:
            assert estimate.task_ranks is None
            continue
        assert list(estimate.task_ranks.index) == list(estimate.per_task.index)
        for task, score in estimate.per_task.items():
            by_hand = place(score, by_task[task])
            assert estimate.task_ranks[task] == pytest.approx(by_hand, nan_ok=True)
