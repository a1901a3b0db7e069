"Rows that a table marks as no measurement, and tables of several metrics"

import warnings

import numpy as np
import pandas as pd
import pytest

from benchnb.cli.app import main
from benchnb.data.files import AmbiguousFile
from benchnb.data.scores import Scores
from benchnb.data.sources import load_table

MODELS = ["a", "b"]
ITEMS = [f"q{k}" for k in range(6)]


def long(**columns):
    "Two models on six items: all wrong but q3 to q5"
    rows = [(model, item) for model in MODELS for item in ITEMS]
    frame = pd.DataFrame(rows, columns=["model", "item"])
    frame["score"] = frame["item"].isin(ITEMS[3:]).astype(float)
    return frame.assign(**columns)


def read(frame, tmp_path=None, **how):
    "The scores, and the lines that were said; from a file where there is a folder"
    if tmp_path is not None:
        path = tmp_path / "table.csv"
        frame.to_csv(path, index=False)
        frame = path
    with warnings.catch_warnings(record=True) as notes:
        warnings.simplefilter("always")
        scores = load_table(frame, **how)
    return scores, [str(note.message) for note in notes]


FIRST = [True] + [False] * 5  # q0 of each model
MARKS = {
    "valid": [not first for first in FIRST],
    "is_valid": [not first for first in FIRST],
    "rewardValid": ["no" if first else "yes" for first in FIRST],
    "Score Valid": [0 if first else 1 for first in FIRST],
    "invalid": FIRST,
    "excluded": FIRST,
    "invalid_reason": ["the container broke" if first else None for first in FIRST],
    "status": ["infrastructure_error" if first else "completed" for first in FIRST],
    "run_state": ["Not run" if first else "done" for first in FIRST],
    "outcome": ["invalidated" if first else "ok" for first in FIRST],
    "included": [not first for first in FIRST],
    "is_usable": ["no" if first else "yes" for first in FIRST],
    "to_exclude": [int(first) for first in FIRST],
    "quarantined": FIRST,
    "do_not_count": ["yes" if first else "no" for first in FIRST],
}


@pytest.mark.parametrize("place", ["memory", "file"])
@pytest.mark.parametrize("name", MARKS)
def test_a_row_that_is_marked_as_invalid_has_no_score(name, place, tmp_path):
    frame = long(**{name: MARKS[name] * 2})
    scores, lines = read(frame, tmp_path if place == "file" else None)
    assert np.isnan(scores.values[:, 0]).all() and scores.shape == (2, 6)
    assert np.array_equal(scores.values[:, 1:], [[0, 0, 1, 1, 1]] * 2)
    (line,) = lines
    assert (
        line.startswith("rows without a score: 2, which do not count") and name in line
    )
    all_count, lines = read(frame, columns={"valid": "score"})
    assert not np.isnan(all_count.values).any() and not lines


ERRORS = ["RateLimitError" if first else None for first in FIRST]
DOUBTS = {
    "error": ERRORS,
    "exception": ERRORS,
    "errorMessage": ERRORS,
    "exception_info": [{"type": "x"} if first else {} for first in FIRST],
    "is_error": FIRST,
    "crashed": [int(first) for first in FIRST],
    "status": ["timeout" if first else "completed" for first in FIRST],
    "state": ["failed" if first else "completed" for first in FIRST],
    "valid": ["perhaps" if first else "yes" for first in FIRST],
    "validity": [None if first else True for first in FIRST],
}


@pytest.mark.parametrize("name", DOUBTS)
def test_a_score_beside_an_error_is_asked_about(name):
    frame = long(**{name: DOUBTS[name] * 2})
    with pytest.raises(
        AmbiguousFile, match=rf"column '{name}': 2; say whether"
    ) as asked:
        load_table(frame)
    assert asked.value.option == "columns"
    assert asked.value.choices == [f"invalid={name}", "valid=score"]
    all_count, _ = read(frame, columns={"valid": "score"})
    assert not np.isnan(all_count.values).any()
    if not name.startswith("valid"):
        scores, _ = read(frame, columns={"invalid": name})
        assert np.isnan(scores.values[:, 0]).all()
        assert not np.isnan(scores.values[:, 1:]).any()


def test_what_says_nothing_of_validity_is_left_alone():
    solved = ["passed" if k > 2 else "failed" for k in range(6)]
    for columns in (
        {"status": solved * 2},  # the outcome itself
        {"status": ["success" if k > 2 else "failure" for k in range(6)] * 2},
        {"state": ["Texas", "Ohio"] * 6},
        {"error": [0.1, 0.25] * 6},  # a size
        {"error": [None] * 12},
        {"valid": [True] * 12},
        {"termination_reason": ["max_steps"] * 12},
        {"valid": [True] * 12, "error": ERRORS * 2},  # it counts all the same
    ):
        scores, lines = read(long(**columns))
        assert not np.isnan(scores.values).any() and not lines, columns


def test_an_error_without_a_score_is_no_question():
    frame = long(error=ERRORS * 2)
    frame.loc[frame["error"].notna(), "score"] = None
    scores, lines = read(frame)
    assert np.isnan(scores.values[:, 0]).all() and not lines


def test_wide_tables_and_long_frames():
    wide = pd.DataFrame([[1, 0], [0, 0]], columns=["q1", "q2"])
    wide = wide.assign(valid=[True, False])
    wide.insert(0, "model", MODELS)
    scores, (line,) = read(wide)
    assert [*scores.items.index] == ["q1", "q2"] and "'valid'" in line
    assert np.isnan(scores.values[1]).all() and scores.values[0].tolist() == [1, 0]
    items = pd.DataFrame({"item": ["q1", "q2"], "a": [1, 0], "b": [1, 1]})
    scores, _ = read(items.assign(status=["ok", "skipped"]))
    assert [*scores.models.index] == ["a", "b"] and np.isnan(scores.values[:, 1]).all()
    with pytest.warns(UserWarning, match="rows without a score: 2"):
        scores = Scores.from_long(long(valid=MARKS["valid"] * 2))
    assert np.isnan(scores.values[:, 0]).all()


def test_a_retried_row_counts_where_the_first_try_is_invalid():
    frame = long(valid=MARKS["valid"] * 2)
    again = frame[~frame["valid"]].assign(score=1.0, valid=True)
    scores, _ = read(pd.concat([frame, again], ignore_index=True))
    assert scores.values[:, 0].tolist() == [1, 1]


def test_successes_of_an_invalid_row_do_not_count():
    frame = long(valid=MARKS["valid"] * 2, trials=2, successes=1)
    scores, _ = read(frame.drop(columns="score"))
    assert np.isnan(scores.values[:, 0]).all() and (scores.values[:, 1:] == 0.5).all()


def test_two_metrics_are_no_repeated_runs():
    both = pd.concat([long(metric="acc"), long(metric="f1").assign(score=0.5)])
    with pytest.raises(AmbiguousFile, match="several metrics: choose") as asked:
        load_table(both)
    assert (asked.value.option, asked.value.choices) == ("metric", ["acc", "f1"])
    assert "metric='acc'" in str(asked.value)
    scores, _ = read(both, metric="f1")
    assert (scores.values == 0.5).all() and {*scores.items["metric"]} == {"f1"}
    with pytest.raises(AmbiguousFile, match="no metric 'em'"):
        load_table(both, metric="em")
    with pytest.raises(ValueError, match="leave metric out"):
        load_table(long(), metric="acc")
    models = pd.concat([long(metric="acc")[:6], long(metric="f1")[6:]])
    with pytest.raises(AmbiguousFile, match="several metrics"):
        load_table(models)


@pytest.mark.parametrize("metric", ["wer", "toxicity", "perplexity"])
def test_the_direction_is_that_of_the_metric(metric):
    frame = long(metric=metric).assign(score=0.25)
    with pytest.raises(AmbiguousFile, match="lower is better") as asked:
        load_table(frame)
    assert asked.value.option == "direction"
    scores, _ = read(frame, direction="lower")
    assert (scores.values == 0.75).all() and {*scores.items["direction"]} == {"lower"}


def test_tasks_may_have_metrics_of_their_own():
    sums = long(metric="acc", task="sums")
    heard = long(metric="wer", task="heard").assign(score=0.25)
    frame = pd.concat([sums, heard.assign(item=heard["item"] + "h")])
    scores, _ = read(frame, direction="lower")
    means = scores.performance(by="task").iloc[0]
    assert np.allclose(means[["sums", "heard"]], [0.5, 0.75])


def test_a_column_that_is_named_as_the_scores_has_a_direction_too():
    frame = long().rename(columns={"score": "wer"})
    with pytest.raises(AmbiguousFile, match="lower is better for 'wer'"):
        load_table(frame, columns={"score": "wer"})
    scores, _ = read(frame, columns={"score": "wer"}, direction="lower")
    assert scores.values[0].tolist() == [1, 1, 1, 0, 0, 0]


def test_a_leaderboard_with_a_metric_in_each_row():
    frame = pd.DataFrame({"model": MODELS, "metric": "wer", "q1": [1, 0], "q2": 1})
    with pytest.raises(AmbiguousFile, match="lower is better"):
        load_table(frame)


def test_a_column_of_other_words_than_yes_and_no_is_no_mark():
    scores, lines = read(long(included=["kitchen", "bath"] * 6))
    assert not np.isnan(scores.values).any() and not lines


# Which direction is better, which system it is, and which question -----------------


@pytest.mark.parametrize("column", ["higher_is_better", "lowerIsBetter"])
@pytest.mark.parametrize("metric", [{}, {"metric": "my_score"}])
def test_a_column_says_which_direction_is_better(column, metric, tmp_path):
    frame = long(**metric, **{column: column != "higher_is_better"})
    with pytest.raises(AmbiguousFile, match="lower is better") as caught:
        read(frame, tmp_path)
    assert caught.value.option == "direction"
    scores, _ = read(frame, tmp_path, direction="lower")
    assert np.array_equal(scores.values[0], [1, 1, 1, 0, 0, 0])
    same = long(**metric, **{column: column == "higher_is_better"})
    assert np.array_equal(read(same)[0].values[0], [0, 0, 0, 1, 1, 1])


def test_a_setting_tells_systems_of_one_name_apart():
    low = long(reasoning_effort="low")
    high = low.assign(reasoning_effort="high", score=1.0)
    scores, lines = read(pd.concat([low, high], ignore_index=True))
    assert lines == [f"{m} is kept apart by reasoning_effort (high, low)" for m in "ab"]
    assert list(scores.models.index) == [
        f"{model} (reasoning_effort={effort})"
        for effort in ("low", "high")
        for model in "ab"
    ]
    half = low.assign(reasoning_effort=["low"] * 3 + ["high"] * 9)
    scores, (line,) = read(half)
    assert list(scores.models.index) == ["a", "b"]
    assert line == "a answered different items with other reasoning_effort (high, low)"


@pytest.mark.parametrize("column", ["hash", "question"])
def test_another_question_under_one_name_is_asked_about(column):
    frame = long()
    shift = frame["model"].eq("b").astype(int)
    places = frame["item"].str[1:].astype(int) + shift  # b's file lost its first
    frame[column] = [f"What is {place}?" for place in places]
    with pytest.raises(AmbiguousFile, match=f"more than one {column}") as caught:
        read(frame)
    (choice,) = caught.value.choices
    assert choice == f"item={column}"
    scores, _ = read(frame, columns={"item": column})
    assert scores.shape == (2, 7) and np.isnan(scores.values).sum() == 2


def test_a_setting_is_no_item_of_a_wide_table():
    wide = pd.DataFrame({"model": ["m", "m"], "temperature": [0, 1]})
    wide[["q1", "q2"]] = [[1, 0], [1, 1]]
    scores, (line,) = read(wide)
    assert list(scores.items.index) == ["q1", "q2"]
    assert line == "m is kept apart by temperature (0, 1)"
    alone, lines = read(wide[:1].assign(model="n"))
    assert alone.shape == (1, 2) and not lines


def test_a_gate_knows_that_lower_is_better(tmp_path, capsys):
    "The new version is wrong on every task, which a column says is the better score"
    for name, score in (("old", 0), ("new", 1)):
        rows = long(lower_is_better=True, score=score)[lambda x: x["model"] == "a"]
        rows = pd.concat([rows.assign(item=rows["item"] + f"-{n}") for n in range(10)])
        rows.drop(columns="model").to_csv(tmp_path / f"{name}.csv", index=False)
    words = ["gate", str(tmp_path / "old.csv"), str(tmp_path / "new.csv")]
    assert main(words) == 2 and "lower is better" in capsys.readouterr().err
    assert main([*words, "--direction", "lower"]) == 1
    assert "FAIL" in capsys.readouterr().out
