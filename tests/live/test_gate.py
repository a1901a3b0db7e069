"The gate: its mistakes under peeking, its ends, and its beginnings"

import itertools

import numpy as np
import pandas as pd
import pytest

from benchnb.live.comparison import Outcome
from benchnb.live.gate import compute_pass_k, difference_sequence, gate
from tools.run import ROOT


def stories(total, apart, flaky, count, rng):
    "Random answers of two versions, of a true difference, in random order"
    old = rng.permutation(np.arange(total) < 0.6 * total) * 1.0
    new = old.copy()
    change = rng.permutation(total)[: total // 4]  # a quarter of the tasks differ
    new[change] = 1 - new[change]
    lose, win = np.flatnonzero(new < old), np.flatnonzero(new > old)
    gap = round(new.sum() - old.sum() - apart * total)
    some = win[:gap] if gap > 0 else lose[:-gap]
    new[some] = old[some]
    assert abs(new.mean() - old.mean() - apart) < 1.5 / total
    for _ in range(count):
        order = rng.permutation(total)
        runs = np.stack([old, new])[:, order]
        noise = 0.15 * flaky
        yield (rng.random(runs.shape) < noise + (1 - 2 * noise) * runs) * 1.0


@pytest.mark.slow
@pytest.mark.parametrize("flaky, repeatable", [(False, True), (True, False)])
def test_at_the_margin_both_mistakes_are_rare(flaky, repeatable):
    rng, margin = np.random.default_rng(0), 0.1
    apart = -margin / (1 - 0.3 * flaky)  # noise shrinks a difference
    passed = failed = 0
    for pair in stories(120, apart, flaky, 200, rng):
        below, above = (
            gate(*pair, 120, margin + shift, repeatable=repeatable).outcome
            for shift in (-1e-6, 1e-6)  # at the margin itself neither is a mistake
        )
        passed += below is Outcome.PASS
        failed += above is Outcome.FAIL
    # 200 stories of at most 5%: 19 and more have a probability below .01
    assert max(passed, failed) < 19


@pytest.mark.parametrize("apart, says", [(0.3, Outcome.PASS), (-0.4, Outcome.FAIL)])
def test_a_large_difference_is_decided_early(apart, says):
    rng = np.random.default_rng(1)
    old = (rng.random(300) < 0.5 - apart / 2) * 1.0
    new = (rng.random(300) < 0.5 + apart / 2) * 1.0
    found = gate(old, new, 300)
    assert found.outcome == says and found.items < 150
    # what came after the decision changes nothing of it
    again = gate(old[: found.items], new[: found.items], 300)
    assert again == found


def test_the_interval_of_a_repeatable_run_ends_at_its_difference():
    rng = np.random.default_rng(2)
    old, new = rng.random((2, 60))
    low, high = difference_sequence(old, new, 60, repeatable=True)
    assert low[-1] - 0.005 <= (new - old).mean() <= high[-1] + 0.005
    assert high[-1] - low[-1] < 0.01
    assert (np.diff(low) >= 0).all() and (np.diff(high) <= 0).all()


def test_an_unscored_task_never_helps():
    rng = np.random.default_rng(3)
    old, new = (rng.random((2, 80)) < 0.5) * 1.0
    blank = new.copy()
    blank[::9] = np.nan
    full = [difference_sequence(old, x, 80) for x in (new, blank)]
    assert (full[1][0] <= full[0][0]).all() and (full[1][1] >= full[0][1]).all()
    assert (
        "Tasks without a score, which count as right and wrong: 9"
        in gate(old, blank, 80).note
    )
    nothing = gate(old, np.full(80, np.nan), 80)
    assert nothing.outcome == Outcome.INCONCLUSIVE and np.isnan(nothing.new)


@pytest.mark.slow
def test_sources_leave_a_valid_interval():
    rng = np.random.default_rng(4)
    ease = rng.normal(size=150)
    table = (rng.random((40, 150)) < 1 / (1 + np.exp(-ease))) * 1.0
    wrong = 0
    for _ in range(100):
        order = rng.permutation(150)
        old, new = (x[order] for x in table[rng.choice(40, 2, replace=False)])
        known = dict(source=table, order=order, repeatable=True)
        low, high = difference_sequence(old, new, 150, 0.9, **known)
        truth = (new - old).mean()
        wrong += ((low > truth + 0.003) | (high < truth - 0.003)).any()
    assert wrong < 32  # of 100 at most 20%; .2% of such counts are larger


@pytest.mark.parametrize("n, c, k", [(1, 1, 1), (5, 3, 2), (6, 0, 3), (4, 4, 4)])
@pytest.mark.parametrize("every", [True, False])
def test_repeats_are_counted_as_by_hand(n, c, k, every):
    runs, join = [1] * c + [0] * (n - c), all if every else any
    slow = np.mean([join(some) for some in itertools.combinations(runs, k)])
    found = compute_pass_k(np.array([c / n, np.nan]), np.array([n, 0]), k, every)
    np.testing.assert_allclose(found, [slow, np.nan])


@pytest.mark.parametrize("wrong", [dict(margin=0), dict(margin=5), dict(level=0.5)])
def test_bad_settings_are_named(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        gate(np.ones(3), np.ones(3), 3, **wrong)


def test_no_answers_decide_nothing():
    found = gate(np.ones(0), np.ones(0), 50)
    assert (found.outcome, found.interval) == ("INCONCLUSIVE", (-1, 1))


def test_the_stored_figures_keep_their_promise():
    stored = pd.read_csv(ROOT / "nbs/results/gate.csv")
    gates = stored.dropna(subset="false_fail")
    assert gates["pairs"].min() >= 2000 and gates["data"].nunique() == 6
    assert gates[["false_pass", "false_fail"]].max(axis=None) < 0.05


@pytest.mark.parametrize(
    "old, new, more, words",
    [
        ([1, 0, 1], [1, 0], {}, "old has 3 scores, new 2: give those of the same"),
        ([1, 0], [1, 70], {}, r"new\[1\] is 70: scores lie in \[0, 1\]"),
        ([-1, 0], [1, 0], {}, r"old\[0\] is -1"),
        ([1, np.inf], [1, 0], {}, r"old\[1\] is inf"),
        ([[1, 0]], [1, 0], {}, r"old has the shape \(1, 2\)"),
        ({"t": 1}, [1], {}, "old holds no numbers"),
        (["right"], [1], {}, "old holds no numbers"),
        ([1, 0], [1, 0], {"total": 1}, "total=1 is less than the 2 tasks"),
        ([1, 0], [1, 0], {"level": 0.2}, "0.95 is usual"),
        ([1, 0], [1, 0], {"margin": np.nan}, "write 0.05 for 5 points"),
    ],
)
def test_what_cannot_be_scores_is_one_line(old, new, more, words):
    with pytest.raises((ValueError, TypeError), match=words) as refused:
        gate(old, new, **more)
    assert "\n" not in str(refused.value)


def test_without_a_total_these_are_all_tasks_and_a_gap_counts_both_ways():
    result = gate([1.0, np.nan, 0], [1, 1, np.nan])
    assert result.total == 3 and "count as right and wrong: 2" in result.note
    low, high = result.interval
    assert low < -0.6 and high > 0.6
