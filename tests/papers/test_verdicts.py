"The verdict on a cell and on the comparisons of a table"

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from benchnb.papers.verdicts import (
    LEVEL,
    Verdict,
    allowed_difference,
    judge,
    judge_cell,
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
        near = Verdict.CLOSE if abs(shift) <= value / 10 else Verdict.NOT_REPRODUCED
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


def test_one_comparison_against_decides():
    assert judge(1, 1) == judge(99, 1) == Verdict.NOT_REPRODUCED
    assert judge(99, 1, other=True) == Verdict.DIFFERS
    assert judge(99, 1, size=0.05) == Verdict.CLOSE
    assert judge(2, 0, 1) == judge(0, 0, 9) == judge(4, 0, 5) == Verdict.NOT_DECIDED
    assert judge(3, 0, 1) == judge(1, 0) == Verdict.REPRODUCED
