"""Scores as people read them: points, and an interval behind each"""

import math
import threading

import pytest

from benchnb.data.render import format_points, progress_bar, score_with_interval

NAN = math.nan


@pytest.mark.parametrize(
    ("value", "digits", "text"),
    [
        (0.555, 1, "55.5"),
        (0, 1, "0.0"),
        (1, 0, "100"),
        (-0.0479, 2, "-4.79"),
        (NAN, 1, "-"),
        (None, 1, "-"),
        (-0.0001, 1, "0.0"),  # no minus before nothing
    ],
)
def test_points(value, digits, text):
    assert format_points(value, digits) == text


@pytest.mark.parametrize(
    ("score", "low", "high", "text"),
    [
        (0.555, 0.466, 0.644, "55.5 ± 8.9 points"),
        (0.555, 0.467, 0.644, "55.5 ± 8.8 points"),  # a tenth apart is rounding
        (0.555, 0.46, 0.652, "55.5 points (46.0 to 65.2)"),
        (0.0, 0.0, 0.031, "0.0 points (0.0 to 3.1)"),
        (0.536, 0.536, 0.536, "53.6 points"),  # exact
        (0.536, NAN, NAN, "53.6 points"),
        (NAN, NAN, NAN, "-"),
    ],
)
def test_score_with_interval(score, low, high, text):
    assert score_with_interval(score, low, high) == text


def test_what_is_written_lies_within_a_tenth_of_the_interval():
    for upper in (0.0885, 0.0886, 0.0894, 0.0895):
        text = score_with_interval(0.5, 0.5 - 0.089, 0.5 + upper)
        half = float(text.split("±")[1].split()[0])
        assert abs(half - 100 * upper) <= 0.1 and abs(half - 8.9) <= 0.1


def test_many_bars_have_one_thread(capsys):
    "A thread of tqdm watches each class of bars: for hundreds of files, hundreds"
    before = threading.active_count()
    for _ in range(20):
        with progress_bar(1, "steps") as bar:
            bar.update()
    assert threading.active_count() <= before + 1
