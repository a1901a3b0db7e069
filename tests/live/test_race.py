"The best of several candidates: who is out, who has won, and that the promise is kept"

from itertools import permutations

import numpy as np
import pandas as pd
import pytest
from scipy.stats import beta

from benchnb.data.scores import Scores
from benchnb.evaluation.registry import get_method
from benchnb.live.evaluation import Evaluation
from benchnb.live.race import (
    SHARPNESS,
    STAKES,
    AskedItems,
    Contest,
    Rival,
    ask_rivals,
    batches,
    draw_items,
    item_chances,
    judge_live_race,
    judge_order,
    learn_capital,
    race,
    races_right,
)


def models(number, items=200, seed=0, step=0.03):
    "Models whose chances are so far apart; easy items are easy for all"
    rng = np.random.default_rng(seed)
    ease = rng.uniform(-0.4, 0.4, items)
    chance = np.clip(0.4 + step * np.arange(number)[:, np.newaxis] + ease, 0, 1)
    values = (rng.random((number, items)) < chance).astype(float)
    return Scores(values, models=pd.DataFrame(index=[f"m{n}" for n in range(number)]))


def upper_bound(wrong, of):
    "The largest share of wrong races that is compatible with so many (exact, 95%)"
    return beta.ppf(0.95, wrong + 1, of - wrong)


def nearly_equal(seed, items=300, ahead=0.03):
    "Five candidates: the second is best by a little more than the margin"
    rng = np.random.default_rng(seed)
    values = np.tile(rng.random(items) < 0.6, (5, 1)).astype(float)
    for row in values:  # each differs from the common answers on its own items
        solved, failed = (np.flatnonzero(row == score) for score in (1, 0))
        row[rng.permutation(solved)[:40]] = 0
        row[rng.permutation(failed)[:40]] = 1
    gained = rng.permutation(np.flatnonzero(values[1] == 0))[: round(ahead * items)]
    values[1, gained] = 1
    return Scores(values, models=pd.DataFrame(index=list("abcde")))


def misleading(table, seed):
    "Sources that agree where the candidates differ, and differ where they agree"
    rng = np.random.default_rng(seed)
    agree = np.ptp(table.values, axis=0) == 0
    values = np.where(agree, rng.random((20, len(agree))) < 0.5, 1.0)
    names = [f"s{n}" for n in range(20)]
    return Scores(values, items=table.items, models=pd.DataFrame(index=names))


def fair_capitals(chances=None):
    "Mean capital against a true claim, over all orders of five items"
    values = np.array([[1.0, 0, 1, 0, 0], [0, 1.0, 1, 0, 0], [0, 0, 0, 1.0, 0]])
    chances = np.ones(5) if chances is None else chances
    mean = np.zeros((5, 2))
    for order in map(list, permutations(range(5))):
        drawn = chances[order]
        left = drawn[::-1].cumsum()[::-1]
        smallest = np.minimum.accumulate(drawn[::-1])[::-1]
        rest = 5 - np.arange(5)
        items = AskedItems(5, rest, left / drawn / rest, left / smallest / rest)
        contest = Contest(values[:, order], items, enough=np.inf, within=0.4)
        for until in range(1, 6):
            contest.advance(until)
            capital = np.exp(contest.growth[:, 1]).mean()  # b is the best
            margin = np.exp(contest.growth[:, 1] + contest.extra[:, 2, 1]).mean()
            mean[until - 1] += np.prod(drawn / left) * np.array([capital, margin])
    return mean


@pytest.mark.parametrize("chances", [None, np.array([1.0, 2.0, 1.0, 3.0, 5.0])])
def test_a_true_claim_is_a_fair_game(chances):
    "The second candidate is the best, and the third is worse by 0.2 < the margin"
    capital, margin = fair_capitals(chances).T
    assert (capital <= 1 + 1e-9).all()
    assert (margin >= capital - 1e-9).all()  # so one error counts for both claims


def factor(items, t, ahead, past, claim):
    "By what a claim's stakes multiply their capital at item t"
    weight = np.broadcast_to(items.weight, items.left.shape)[t]
    heaviest = np.broadcast_to(items.heaviest, items.left.shape)[t]
    expected = (items.total * claim - past) / items.left[t]
    most = 0.9 / max(expected + heaviest, 1e-9)
    stakes = np.minimum(STAKES * items.total / items.left[t], most)
    return 1 + stakes * max(weight * ahead - expected, -1 / most)


def slow_contest(answers, items, enough, within, counts):
    "Item by item and candidate by candidate: out, and the winner"
    number, total = len(answers), items.total
    growth = {j: np.ones(len(STAKES)) for j in range(number)}
    extra = {(i, j): np.ones(len(STAKES)) for i in range(number) for j in range(number)}
    running, close = list(range(number)), set()
    merit = np.zeros(number)
    t = 0
    high = {}
    while True:
        sums = answers[:, :t].sum(axis=1)
        weight = np.broadcast_to(items.weight, items.left.shape)[t]
        before = merit.copy()
        for j in running:
            others = [i for i in running if i != j]
            power = np.array(
                [np.exp(SHARPNESS * (merit[i] - merit.max())) for i in others]
            )
            part = power / power.sum()
            ahead = sum(
                p * (answers[i, t] - answers[j, t])
                for p, i in zip(part, others, strict=True)
            )
            past = sum(
                p * (sums[i] - sums[j]) for p, i in zip(part, others, strict=True)
            )

            plain = factor(items, t, ahead, past, 0.0)
            growth[j] = growth[j] * plain
            for p, i in zip(part, others, strict=True):
                extra[i, j] = (
                    extra[i, j] * factor(items, t, ahead, past, -within * p) / plain
                )
            for i in others:
                capital = (growth[j] * extra[i, j]).mean()
                high[i, j] = max(high.get((i, j), 0), capital)
        whole = sums + answers[:, t] * weight * items.left[t]
        merit = merit + (answers[:, t] if np.ndim(items.weight) == 0 else whole / total)
        after = sums + answers[:, t]
        left = items.left[t] - 1
        out = [
            j
            for j in running
            if growth[j].mean() >= enough
            or max(after[i] for i in running if i != j) - after[j] > left + 1e-6
        ]
        t += 1
        if out or t in counts:
            lead = after if np.ndim(items.weight) == 0 or left == 0 else before
            leader = max(running, key=lambda i: (lead[i], -i))
            for j in running:
                room = left + 1e-6 - within * total
                if j != leader and (
                    high[leader, j] >= enough or after[leader] - after[j] > room
                ):
                    close.add((leader, j))
            high = {}
            running = [j for j in running if j not in out]
            if leader in running and all(
                (leader, j) in close for j in running if j != leader
            ):
                return t, running, leader
            if len(running) == 1:
                return t, running, running[0]


@pytest.mark.parametrize("unequal", [False, True])
def test_the_contest_is_the_slow_one(unequal):
    for seed in range(6):
        table = models(5, items=120, seed=seed, step=0.06)
        chances = item_chances(models(20, 120, seed=90).values) if unequal else None
        order, items = draw_items(120, np.random.default_rng(seed), chances)
        answers = table.values.astype(float)[:, order]
        counts = list(batches(120, 20))
        contest = Contest(answers, items, 20, within=0.05)
        for count in counts:
            contest.advance(count)
        expected = slow_contest(answers, items, 20, 0.05, counts)
        assert (contest.asked, [*contest.running], contest.winner) == expected


@pytest.mark.slow
def test_wrong_winners_are_rarer_than_promised_even_if_sources_mislead():
    "The hardest case: all others are worse than the best by just over the margin"
    wrong = {"none": 0, "like the candidates": 0, "misleading": 0}
    races = 300
    runs = dict.fromkeys(wrong, 0)
    for seed in range(races):
        table = nearly_equal(seed)
        alike = Scores(
            nearly_equal(seed + 10_000).values[[0, 2, 3, 4, 1] * 2],
            items=table.items,
            models=pd.DataFrame(index=[f"s{n}" for n in range(10)]),
        )
        sources = (None, alike, misleading(table, seed))
        for kind, source in zip(wrong, sources, strict=True):
            result = race(table, 0.02, seed=seed, sources=source)
            truth = table.truth()
            wrong[kind] += truth[result.winner] < truth.max() - 0.02 - 1e-9
            runs[kind] += result.runs
    assert all(upper_bound(count, races) <= 0.05 for count in wrong.values()), wrong
    assert runs["misleading"] > runs["none"]  # only slower


def rivals_of(table, seed, after=40, enough=20.0, within=0.02):
    "The leader answers everything after so many items, whether it pays or not"
    values, total = table.values.astype(float), table.shape[1]
    rng = np.random.default_rng(seed)
    drawn, items = draw_items(total, rng)
    contest = Contest(values[:, drawn], items, enough, within)
    contest.advance(after)
    near = contest.close[contest.leader]
    rivals = np.array([j for j in contest.running if not near[j]], dtype=int)
    answered = {}
    if contest.winner is None:
        answered = ask_rivals(values, drawn, contest, rivals, rng)
    return contest, answered


@pytest.mark.slow
def test_wrong_winners_are_rarer_than_promised_if_the_leader_answers_first():
    "Whenever the leader is made to finish, and where the race itself decides"
    races = 600
    wrong = dict.fromkeys(["after 20", "after 100", "when it pays"], 0)
    changed = 0
    for seed in range(races):
        table = nearly_equal(seed)
        truth = table.truth().to_numpy()
        far = truth.max() - 0.02 - 1e-9
        for after in (20, 100):
            contest, _ = rivals_of(table, seed, after)
            wrong[f"after {after}"] += truth[contest.winner] < far
        found = race(table, 0.02, seed=seed, allocation="leader-first")
        wrong["when it pays"] += table.truth()[found.winner] < far
        changed += found != race(table, 0.02, seed=seed)
    assert all(upper_bound(count, races) <= 0.05 for count in wrong.values()), wrong
    assert changed > 50


def test_a_wrong_winner_is_seen_if_little_capital_is_enough():
    "So the test above can fail"
    wrong = 0
    for seed in range(100):
        table = nearly_equal(seed)
        contest, _ = rivals_of(table, seed, after=20, enough=1.2)
        truth = table.truth().to_numpy()
        wrong += truth[contest.winner] < truth.max() - 0.02 - 1e-9
    assert wrong > 10


@pytest.mark.parametrize("batch", [1, 2])
def test_a_rivals_game_is_fair(batch):
    "Mean capital over all orders; the leader is worse by exactly the margin"
    leader = np.array([1.0, 0, 1, 0, 0])
    answers = np.array([1.0, 1, 0, 1, 0])
    solved = np.array([0.9, 0.4, 0.6, 0.3, 0.2])
    mean = np.zeros(5)
    for order in permutations(range(5)):
        rival = Rival(answers, np.array(order), 0, np.zeros(len(STAKES)))
        while rival.asked < 5:
            until = min(5, rival.asked + batch)
            rival.ask(until, [leader, solved], np.inf, within=0.2)
            mean[until - 1] += np.exp(rival.growth).mean() / 120
    np.testing.assert_allclose(mean[mean > 0], 1, rtol=1e-9)


def slow_rival(leader, answers, order, begin, batch, growth, within, enough):
    "Item by item: the capitals after each batch, until the claim is refuted"
    total, capitals = len(order), []
    growth = np.exp(growth)
    while begin < total:
        past = order[:begin]
        rows = np.column_stack([np.ones(total), leader])
        penalty = np.diag([1e-3, 3.0])
        apart = leader - answers
        slopes = np.linalg.solve(
            rows[past].T @ rows[past] + penalty,
            rows[past].T @ apart[past] + penalty @ [0, 0.3],
        )
        guess = [slopes[0] + slopes[1] * score for score in leader]
        lowest = min(leader[i] - 1 - guess[i] for i in order[begin:])
        until, refuted = min(total, begin + batch), False
        for t in range(begin, until):
            left = [guess[i] for i in order[t:]]
            rest = sum(left) / len(left)
            done = sum(apart[i] for i in order[:t])
            expected = (-within * total - done) / len(left)
            surprise = apart[order[t]] - guess[order[t]] + rest - expected
            most = 0.9 / max(expected - lowest - rest, 1e-9)
            stakes = np.minimum(STAKES * total / len(left), most)
            growth = growth * (1 + stakes * max(surprise, -1 / most))
            certain = done + apart[order[t]] + within * total > len(left) - 1 + 1e-6
            refuted |= growth.mean() >= enough or certain
        begin = until
        capitals.append(growth)
        if refuted:
            break
    return begin, np.array(capitals)


def test_a_rivals_game_is_the_slow_one():
    for seed in range(6):
        table = models(2, items=80, seed=seed, step=0.1)
        answers, leader = table.values.astype(float)
        order = np.random.default_rng(seed).permutation(80)
        start = np.array([0.1, -0.2, 0.3])
        expected = slow_rival(leader, answers, order, 20, 15, start, 0.02, 20)
        rival, capitals, refuted = Rival(answers, order, 20, start), [], False
        while rival.asked < 80 and not refuted:
            until = min(80, rival.asked + 15)
            refuted = rival.ask(until, [leader], np.log(20), 0.02)
            capitals.append(np.exp(rival.growth))
        assert rival.asked == expected[0]
        np.testing.assert_allclose(capitals, expected[1], rtol=1e-9)


def test_the_strongest_rival_is_asked_first_and_may_lead():
    "The leader after 40 items is not the best: who is, answers everything and wins"
    overtaken = 0
    for seed in range(40):
        table = models(6, items=300, seed=seed, step=0.02)
        contest, answered = rivals_of(table, seed, within=0.0)
        if not answered:
            continue
        assert answered[contest.winner] == 300
        first = next(iter(answered))
        overtaken += contest.winner != first
    assert overtaken > 5


def test_close_candidates_need_fewer_runs_if_the_leader_answers_first():
    runs = {"all": 0, "leader-first": 0}
    for seed in range(8):
        table = models(12, items=400, seed=seed, step=0.002)
        for allocation in runs:
            runs[allocation] += race(table, seed=seed, allocation=allocation).runs
    assert runs["leader-first"] < 0.95 * runs["all"]
    far = models(6, items=600, step=0.1)
    assert race(far, allocation="leader-first") == race(far)


def test_a_capital_far_below_the_proof_breaks_the_promise():
    "So the test above can fail"
    wrong = 0
    for seed in range(100):
        table = nearly_equal(seed)
        winner = race(table, 0.02, seed=seed, enough=1.2).winner
        wrong += table.truth()[winner] < table.truth().max() - 0.02 - 1e-9
    assert wrong > 10


def test_weak_candidates_fall_out_early_and_the_winner_is_the_best():
    table = models(6, items=600, step=0.1)
    found = race(table)
    assert found.winner == "m5" and found.share < 0.5
    asked = list(found.answered.values())
    assert asked[0] < asked[5] == max(asked) and min(asked) >= 20
    assert found == race(table) and found != race(table, seed=1)
    assert all(by in table.models.index for by in found.beaten.values() if by)


def test_more_candidates_ask_no_larger_capital():
    table = models(2, items=400, step=0.2)
    crowd = np.vstack([table.values, np.zeros((30, 400))])
    names = pd.DataFrame(index=[f"m{n}" for n in range(32)])
    two, many = race(table), race(Scores(crowd, models=names))
    assert two.winner == many.winner == "m1"
    assert many.answered["m1"] <= two.answered["m1"] + 40


def test_copies_are_not_told_apart():
    row = np.random.default_rng(0).integers(0, 2, 100).astype(float)
    copies = Scores(np.stack([row, row]), models=list("ab"))
    assert race(copies, 0.01).winner is not None  # within the margin, at the end
    found = race(copies, 0.0)
    assert found.winner is None and "2 of 2 are in" in found.sentence()
    found = race(copies, 0.0, order=True)
    assert found.undecided == (("a", "b"),) and not found.decided
    assert "not told apart: a and b" in found.sentence()
    assert race(copies, 0.01, order=True).ties == (("a", "b"),)


def test_an_order_is_right_as_often_as_it_says():
    wrong = spared = 0
    for seed in range(100):
        table = models(4, items=120, seed=seed, step=0.05)
        found, truth = race(table, 0.02, order=True, seed=seed), table.truth()
        assert found.winner == found.order[0] or not found.decided
        open_pairs = {*found.ties, *found.undecided}
        wrong += any(
            truth[b] > truth[a] + (0.02 + 1e-9) * ((a, b) in found.ties)
            for place, a in enumerate(found.order)
            for b in found.order[place + 1 :]
            if (a, b) not in open_pairs or (a, b) in found.ties
        )
        spared += found.share < 1
    assert upper_bound(wrong, 100) <= 0.05 and spared > 30


def test_a_pair_holds_what_its_gambler_has_refuted():
    "Two candidates: the capital of judge_order is that of one who bets on one alone"
    table = models(2, items=100, step=0.25, seed=3)
    order, items = draw_items(100, np.random.default_rng(0))
    answers = table.values.astype(float)[:, order]
    decided = [
        count
        for count in range(1, 101)
        if judge_order(answers, np.full(2, count), items, 0.05).better[1, 0]
    ]
    contest = Contest(answers, items, 20, within=0.0)
    while contest.winner is None:
        contest.advance(contest.asked + 1)
    assert contest.winner == 1 and decided[0] == contest.asked
    assert decided == list(range(decided[0], 101))


def live(table, source, names, unscored=()):
    "Evaluations of the table's models, told all that they ask"
    fitted = get_method("random").fit(source)
    runs = {n: Evaluation(fitted, 200, batch=60) for n in table.models.index}
    for name, row in zip(runs, table.values.astype(float), strict=True):
        answers = pd.Series(row, table.items.index)[runs[name].ask()]
        answers.iloc[list(unscored)] = np.nan
        runs[name].tell(answers)
    return runs


def test_a_live_race_is_the_one_on_a_table():
    source, table = models(40, seed=1), models(4, seed=2, step=0.12)
    runs = live(table, source, table.models.index)
    order = source.items.index.get_indexer(list(runs["m0"].answers))
    answers = table.values.astype(float)[:, order]
    contest = Contest(answers, AskedItems(200, 200 - np.arange(60)), 20)
    contest.advance(60)
    status = judge_live_race(runs)
    names = [*runs]
    by = {n: status.beaten[n] for n in names}
    assert by == {
        n: names[row] if row >= 0 else None
        for n, row in zip(names, contest.beaten_by, strict=True)
    }
    assert (status.winner is None) == (contest.winner is None)
    ranked = judge_live_race(runs, order=True)
    assert ranked.order[-1] == "m0" and len(ranked.order) == 4


def test_unscored_answers_help_nobody():
    source, table = models(40, seed=1), models(3, seed=2, step=0.3)
    all_scored = judge_live_race(live(table, source, table.models.index))
    none = judge_live_race(live(table, source, table.models.index, range(60)))
    assert any(all_scored.beaten.values()) and not any(none.beaten.values())


def test_a_candidate_that_waits_holds_the_others():
    "Nothing is judged beyond what all who are in have answered"
    source, table = models(40, seed=1), models(3, seed=2, step=0.02)
    runs = live(table, source, table.models.index)
    before = judge_live_race(runs)
    row = pd.Series(1.0, table.items.index)
    runs["m0"].tell(row[runs["m0"].ask()])
    after = judge_live_race(runs)
    assert after.beaten == before.beaten and after.answered["m0"] == 120


def test_a_learned_promise_asks_less_and_is_kept_by_the_sources():
    source = models(30, seed=3, step=0.015)
    enough = learn_capital(source, 5, races=40, within=0.02)
    assert 1 < enough <= 1 / 0.05 + 1e-9
    assert races_right(source, 5, enough, 0.02, 40, 0) >= 0.95
    table = models(5, seed=4, step=0.05)
    quick, sure = race(table, 0.02, enough=enough), race(table, 0.02)
    assert quick.share <= sure.share
    with pytest.raises(ValueError, match="30 sources are too few to learn from races"):
        learn_capital(source, 16)


@pytest.mark.parametrize(
    "wrong, message",
    [
        (dict(within=2), "within must lie in"),
        (dict(level=0.2), "level must lie in"),
        (dict(candidates=models(1)), "two candidates or more, got 1"),
        (dict(enough=2.0, order=True), "a learned capital is for the winner"),
        (dict(sources=models(20), repeatable=False), "such a race is for these runs"),
        (dict(allocation="two"), "allocation must be all or leader-first, got 'two'"),
        (dict(allocation="leader-first", order=True), "is for the winner, with the"),
        (dict(allocation="leader-first", enough=2.0), "is for the winner, with the"),
        (dict(allocation="leader-first", repeatable=False), "for these runs, and says"),
        (dict(sources=models(4)), "1 sources are too few: give five or more"),
        (
            dict(sources=models(20, items=100)),
            "lack 100 of 200 items, such as 'item100'",
        ),
    ],
)
def test_what_is_no_race_is_refused(wrong, message):
    with pytest.raises(ValueError, match=message):
        race(**(dict(candidates=models(3)) | wrong))
