"The verdict on a cell and on the comparisons of a table"

import math

import numpy as np
import pandas as pd
from hypothesis import given
from hypothesis import strategies as st

from benchnb.papers.verdicts import (
    LEVEL,
    MIN_TRIALS,
    Direction,
    PairErrors,
    Verdict,
    WhyNot,
    allowed_difference,
    join_values,
    judge,
    judge_cell,
    judge_item,
)


@given(
    st.floats(0, 1),
    st.floats(-0.1, 0.1),
    st.floats(0, 0.05),
    st.sampled_from([1e-4, 1e-3, 1e-2]),
)
def test_a_verdict_is_symmetric_and_more_noise_never_fails(value, shift, error, unit):
    up, down = (judge_cell(value, value + s, error, unit) for s in (shift, -shift))
    band = float(allowed_difference(error, unit))
    if abs(abs(shift) - band) > 1e-6 and abs(abs(shift) - value / 10) > 1e-6:
        near = Verdict.PARTLY if abs(shift) <= value / 10 else Verdict.DIFFERS
        assert up == down == (Verdict.REPRODUCED if abs(shift) <= band else near)
    if up == Verdict.REPRODUCED:
        assert judge_cell(value, value + shift, 2 * error, unit) == Verdict.REPRODUCED


def test_the_band_has_the_error_of_both_sides_and_rounding():
    ours = allowed_difference(0.01, 0.0, 100, 1e9)  # a print of endless trials
    same = allowed_difference(0.01, 0.0, 100, 100)
    few = allowed_difference(0.01, 0.0, 100, 25)  # a print of fewer trials than ours
    np.testing.assert_allclose([same / ours, few / ours], [2**0.5, 5**0.5], rtol=1e-6)
    assert allowed_difference(0.01, 0.0, 100) == same  # not stated: as many as ours
    assert allowed_difference(0.01, 0.002, 100, 100) == same + 0.001
    assert allowed_difference(math.nan, 0.001) == 0.0005


def test_a_correct_number_is_inside_its_band_as_often_as_promised():
    rng = np.random.default_rng(0)
    for trials, printed_trials in [(4, 100), (20, 5), (100, 100)]:
        ours = rng.normal(0.5, 0.1, (4000, trials))
        theirs = rng.normal(0.5, 0.1 / printed_trials**0.5, 4000)
        stderr = ours.std(axis=1, ddof=1) / trials**0.5
        band = allowed_difference(stderr, 0.0, trials, printed_trials)
        inside = (abs(ours.mean(axis=1) - theirs) <= band).mean()
        assert abs(inside - (1 - LEVEL)) < 0.008, (trials, printed_trials)


def test_a_perfect_table_keeps_its_name_and_one_wrong_cell_is_found():
    "Cells that share half of their variance, 100 trials on each side"
    rng = np.random.default_rng(1)
    for cells, found in {2: 0.97, 4: 0.955, 10: 0.93, 280: 0.72}.items():
        shape = 3000, cells
        shared = rng.normal(size=(2, 3000, 1))
        noise = (shared + rng.normal(size=(2, *shape))) * 0.01 / 2**0.5
        stderr = 0.01 * np.sqrt(rng.chisquare(99, shape) / 99)
        band = allowed_difference(stderr, 0, 100, 100, cells)
        gap = noise[0] - noise[1]
        assert (abs(gap) <= band).all(axis=1).mean() >= 1 - 1.5 * LEVEL
        gap[:, 0] += 5 * 0.01 * 2**0.5
        assert (abs(gap) > band).any(axis=1).mean() > found


def test_one_comparison_against_makes_it_partly_and_most_make_it_differ():
    assert judge(1, 1) == judge(1, 9) == judge(37, 2, 161, True) == Verdict.PARTLY
    assert judge(99, 1, size=0.5) == Verdict.PARTLY  # cells
    assert judge(1, 9, size=0.5) == judge(0, 1) == judge(0, 9, 0, True)
    assert judge(0, 1) == Verdict.DIFFERS
    assert judge(0, 1, size=0.05) == Verdict.PARTLY
    assert judge(2, 0, 1) == judge(0, 0, 9) == judge(4, 0, 5) == Verdict.CANNOT_TELL
    assert judge(0, 1, 20, True) == judge(0, 2, 1) == Verdict.CANNOT_TELL
    assert judge(3, 0, 1) == judge(1, 0) == Verdict.REPRODUCED
    assert judge(3, 0, 1, True) == Verdict.SAME_ELSEWHERE
    assert judge(3, 0, 1, True, lean_against=1) == Verdict.CANNOT_TELL
    assert judge(0, 3, 1, True, lean_for=1) == Verdict.CANNOT_TELL


def cells(draws="", trials=20, **facts):
    "Three rows on the same splits, each better than the last by a little"
    rng = np.random.default_rng(0)
    splits = rng.normal(0.5, 0.1, trials)
    lines = []
    for number, row in enumerate("abc"):
        values = splits + 0.01 * number + rng.normal(0, 0.002, trials)
        line = dict(table="t", row=row, column="mae", better="lower", best=0.0)
        line |= dict(reproduced=values.mean(), trials=trials, verdict="on other data")
        line |= dict(stderr=values.std(ddof=1) / trials**0.5, draws=draws)
        line |= dict(printed_trials=math.nan)
        lines.append(line | dict(by_trial=join_values(values) if draws else "") | facts)
    return pd.DataFrame(lines)


CLAIM = dict(table="f", tables="t", row="a", than="b | c", column="", each="", other="")
CLAIM = pd.DataFrame([CLAIM | dict(near=math.nan)])


def verdict_of(numbers, claim=CLAIM):
    return judge_item(claim, pd.DataFrame(), numbers)


def test_paired_errors_decide_what_unpaired_ones_do_not():
    compared, verdict = verdict_of(cells("splits"))
    assert (verdict, compared.errors) == (Verdict.SAME_ELSEWHERE, PairErrors.PAIRED)
    compared, verdict = verdict_of(cells())
    assert (verdict, compared.errors) == (Verdict.CANNOT_TELL, PairErrors.UNPAIRED)
    assert compared.why_not == WhyNot.TRIALS
    other = cells("splits").assign(draws=["splits", "others", "others"])
    assert verdict_of(other)[0].errors == PairErrors.UNPAIRED  # other splits


def test_fewer_than_eight_trials_decide_nothing():
    for trials in (7, 8):
        compared, verdict = verdict_of(cells("splits", trials, stderr=1e-6))
        assert (compared.few > 0) == (trials < MIN_TRIALS)
        assert (verdict == Verdict.CANNOT_TELL) == (trials < MIN_TRIALS)


def test_a_print_that_all_items_do_not_reach_is_not_judged():
    bound = CLAIM.assign(than="0.2")
    for ceiling, why_not in {0.3: WhyNot.CEILING, 0.1: WhyNot.NOTHING}.items():
        compared, verdict = verdict_of(cells(ceiling=ceiling), bound)
        assert compared.why_not == why_not
        assert verdict == (Verdict.CANNOT_TELL if why_not else Verdict.DIFFERS)


def test_one_printed_number_is_near_differs_or_is_out_of_reach():
    printed = dict(published="0.50", value=0.5, verdict="on other data", best=0.0)
    for ours, ceiling, expected in (
        (0.54, 0.1, Verdict.SAME_ELSEWHERE),
        (0.60, 0.1, Verdict.DIFFERS),
        (0.60, 0.55, Verdict.CANNOT_TELL),
    ):
        cell = cells().head(1).assign(**printed, reproduced=ours, ceiling=ceiling)
        compared, verdict = judge_item(pd.DataFrame(), cell, cell)
        assert verdict == expected
        if expected == Verdict.DIFFERS:
            assert compared.direction == Direction.HIGHER
