"Records: what is refused and how, the features"

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from benchnb.prediction.records import (
    COLUMNS,
    KEY,
    METRIC_RANGES,
    NUMERIC_FEATURES,
    PARAMS,
    RecordFeatures,
    check_records,
    describe_records,
    made_records,
    record_numbers,
    unit_scores,
)


@pytest.fixture
def made():
    return made_records()


def with_value(column, value, row=3):
    "Made-up records with one wrong cell"
    frame = made_records().astype({column: object})
    frame.loc[row, column] = value
    return frame


def one_line(error):
    "The message of an error, which must be one line"
    assert "\n" not in str(error.value)
    return str(error.value)


# the table

CELLS = {
    "family": (None, "row 3 .*has no family: name it"),
    "task": ("  ", "row 3 .*has no task"),
    "metric": ("vibes", "unknown metric 'vibes'"),
    "shots": (1.5, "row 3 .*shots must be 0, 1, 2, ..., got 1.5"),
    "score": (np.nan, "row 3 .*has no score: drop"),
    "total_params": (0, "row 3 .*total_params must be above 0; unknown is NaN"),
}


@pytest.mark.parametrize("column", CELLS)
def test_a_wrong_cell_is_refused_by_name(column):
    value, words = CELLS[column]
    with pytest.raises(ValueError, match=words) as error:
        check_records(with_value(column, value))
    one_line(error)


@pytest.mark.parametrize("shots", [-1, np.inf, np.nan])
def test_shots_are_whole_numbers(shots):
    with pytest.raises(ValueError, match="shots must be 0, 1, 2"):
        check_records(with_value("shots", shots))


@pytest.mark.parametrize("score", [-0.2, 1.3, np.inf, 250])
def test_a_score_outside_is_refused(score):
    with pytest.raises(ValueError, match=r"row 3 \(A-0.1b, t1\) has score") as error:
        check_records(with_value("score", score))
    one_line(error)


@pytest.mark.parametrize("column", ["score", "shots", "total_params"])
def test_words_for_numbers_are_refused(column):
    with pytest.raises(ValueError, match=f"column '{column}' holds no numbers"):
        check_records(with_value(column, "many"))


def test_two_shots_as_a_number_in_words():
    assert check_records(with_value("shots", "7"))["shots"][3] == 7


def test_percent_is_refused_or_converted(made):
    percent = made.assign(score=100 * made["score"])
    with pytest.raises(ValueError, match="as if on 0-100; .*pass scale='percent'"):
        check_records(percent)
    again = check_records(percent, scale="percent")
    np.testing.assert_allclose(again["score"], made["score"], atol=1e-12)
    with pytest.raises(ValueError, match="scale is unit, percent or metric"):
        check_records(made, scale="per mille")


def test_each_metric_has_its_range(made):
    mixed = made.assign(metric=np.where(made["shots"] == 0, "rougeLsum", "acc"))
    mixed["score"] *= np.where(made["shots"] == 0, 100, 1)
    again = check_records(mixed, scale="metric")
    np.testing.assert_allclose(again["score"], made["score"], atol=1e-12)


@pytest.mark.parametrize("scale, metric", [("percent", "acc"), ("metric", "rouge1")])
def test_unit_scores_are_not_divided(made, scale, metric):
    named = made.assign(metric=metric)
    with pytest.raises(
        ValueError, match=f"of '{metric}' is above 1.*scale='unit'"
    ) as e:
        check_records(named, scale)
    one_line(e)
    both = pd.concat([named, made.assign(metric="f1", score=100 * made["score"])])
    with pytest.raises(ValueError, match=f"of '{metric}' is above 1"):
        check_records(both, scale, metrics=METRIC_RANGES | {"f1": (0, 100)})
    for small in (named[:2], named.assign(score=0.0)):  # too few to tell; nobody knows
        found = check_records(small, scale)["score"]
        np.testing.assert_allclose(found, small["score"] / 100)
    one_above = named.assign(score=named["score"].where(named.index > 0, 1.5))
    assert check_records(one_above, scale)["score"].max() == 0.015


def test_a_new_metric_needs_a_range(made):
    named = made.assign(metric="logprob", score=10 * made["score"] - 10)
    metrics = METRIC_RANGES | {"logprob": (-10, 0)}
    again = check_records(named, scale="metric", metrics=metrics)
    np.testing.assert_allclose(again["score"], made["score"], atol=1e-12)
    assert "logprob" not in METRIC_RANGES


@pytest.mark.parametrize("column", sorted({*COLUMNS} - {"subtask", *PARAMS[1:]}))
def test_a_missing_column_is_refused(made, column):
    with pytest.raises(ValueError, match=f"no column '{column}'"):
        check_records(made.drop(columns=column).drop(columns="subtask"))


def test_what_may_be_missing_is_filled(made):
    short = made.drop(columns=["subtask", *PARAMS[1:]]).assign(note="x")
    pd.testing.assert_frame_equal(check_records(short), made)


def test_no_table_and_no_rows_are_refused(made):
    with pytest.raises(TypeError, match="pandas DataFrame, got list"):
        check_records([1, 2])
    with pytest.raises(ValueError, match="no records"):
        check_records(made[:0])


def test_the_given_table_is_not_changed(made):
    percent = made.assign(score=100 * made["score"]).sample(frac=1, random_state=0)
    before = percent.copy()
    found = check_records(percent, "percent")
    pd.testing.assert_frame_equal(percent, before)
    assert found.index.tolist() == list(range(len(made)))


def test_duplicates_are_refused_or_merged(made):
    twice = pd.concat([made, made[5:7].assign(score=[0.9, 0.9])])
    with pytest.raises(ValueError, match="row 288 .*2 duplicated records") as error:
        check_records(twice)
    one_line(error)
    first = check_records(twice, duplicates="first")
    pd.testing.assert_frame_equal(first, made)
    mean = check_records(twice, duplicates="mean")
    expected = made["score"].copy()
    expected[5:7] = (expected[5:7] + 0.9) / 2
    np.testing.assert_allclose(mean["score"], expected, atol=1e-12)
    with pytest.raises(ValueError, match="duplicates is refuse, first or mean"):
        check_records(made, duplicates="last")


def test_other_shots_metric_or_family_is_no_duplicate(made):
    one = made[:1]
    others = [one, one.assign(shots=9), one.assign(metric="f1"), one.assign(family="Z")]
    assert len(check_records(pd.concat(others))) == 4


def test_parts_of_one_name_in_two_tasks_are_no_duplicates(made):
    two = pd.concat([made[:3].assign(subtask="law"), made[:3].assign(subtask="law")])
    two["task"] = ["mmlu"] * 3 + ["agieval"] * 3
    for how in ("refuse", "first", "mean"):
        found = check_records(two, duplicates=how)
        assert found["task"].value_counts().to_dict() == {"mmlu": 3, "agieval": 3}
    assert KEY[2] == "task"


def test_blanks_around_names_do_not_count(made):
    spoilt = made.assign(family=made["family"] + " ", metric=" acc\t")
    spoilt.loc[::2, "family"] = made["family"][::2]
    pd.testing.assert_frame_equal(check_records(spoilt), made)
    twice = pd.concat([made, made[:1].assign(family=" A")])
    with pytest.raises(ValueError, match="1 duplicated records"):
        check_records(twice)


def test_unknown_sizes_as_told(made):
    holes = made.assign(total_params=made["total_params"].where(made["family"] != "B"))
    with pytest.raises(
        ValueError, match="no total_params for model 'B-0.11b'"
    ) as error:
        check_records(holes)
    one_line(error)
    kept = check_records(holes, unknown_size="keep")
    assert kept["total_params"].isna().sum() == (made["family"] == "B").sum()
    assert "B" not in set(check_records(holes, unknown_size="drop")["family"])
    nothing = made.assign(total_params=np.nan)
    with pytest.raises(ValueError, match="no model has a known size"):
        check_records(nothing, unknown_size="drop")
    with pytest.raises(ValueError, match="unknown_size is refuse, keep or drop"):
        check_records(made, unknown_size="zero")


def test_a_model_with_two_sizes_is_refused():
    with pytest.raises(ValueError, match="A/A-0.1b has two sizes"):
        check_records(with_value("total_params", 7e9))
    half = with_value("total_params", np.nan)
    with pytest.raises(ValueError, match="A/A-0.1b has two sizes"):
        check_records(half, unknown_size="keep")


def test_scores_of_an_unknown_scale():
    with pytest.raises(ValueError, match="unknown metric 'elo': drop its records"):
        unit_scores([1200.0], ["elo"], "metric")


# features


def test_features_are_those_of_scikit_learn(made):
    "Appendix B by OneHotEncoder and StandardScaler, as in the authors' code"
    train = made.sample(frac=0.6, random_state=1)
    found = RecordFeatures().fit(train)
    named = made.assign(model=made["family"] + "/" + made["model"])
    names = ["task", "subtask", "family", "model", "metric"]
    encoder = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    encoder.fit(named.loc[train.index, names])
    scaler = StandardScaler().fit(record_numbers(train))
    parts = [encoder.transform(named[names]), scaler.transform(record_numbers(made))]
    np.testing.assert_allclose(found.transform(made), np.hstack(parts), atol=1e-5)
    assert found.transform(made).dtype == np.float32


def test_feature_names_fit_the_columns(made):
    features = RecordFeatures().fit(made)
    names = features.get_feature_names_out().tolist()
    table = pd.DataFrame(features.transform(made), columns=names)
    assert names[-7:] == NUMERIC_FEATURES and len(set(names)) == len(names)
    assert (table["family=B"] == (made["family"] == "B")).all()
    assert (table["model=B/B-0.11b"] == (made["model"] == "B-0.11b")).all()


def test_features_can_be_cloned_and_piped(made):
    from sklearn.linear_model import Ridge

    line = make_pipeline(clone(RecordFeatures()), Ridge()).fit(made, made["score"])
    assert line.score(made, made["score"]) > 0.7


def test_same_model_name_in_two_families():
    two = made_records().assign(model=lambda t: t["model"].str[2:])
    names = RecordFeatures().fit(two).get_feature_names_out()
    assert {"model=A/0.1b", "model=B/0.11b"} <= set(names)


def test_features_do_not_see_the_score_or_the_order(made):
    features = RecordFeatures().fit(made)
    mixed = made.sample(frac=1, random_state=0)
    other = features.transform(mixed.assign(score=np.nan).iloc[:, ::-1])
    np.testing.assert_array_equal(other, features.transform(made)[mixed.index])


def test_unknown_names_and_sizes_are_zeros(made):
    features = RecordFeatures().fit(made)
    new = made[:1].assign(task="new", subtask="new", family="new", metric="f1")
    row = features.transform(
        new.assign(total_params=np.nan, shots=made["shots"].mean())
    )
    np.testing.assert_allclose(row, 0, atol=1e-6)


def test_all_sizes_unknown_makes_no_nan(made):
    nothing = made.assign(total_params=np.nan)
    found = RecordFeatures().fit_transform(nothing)
    assert np.isfinite(found).all() and not found[:, -7:-1].any()


def test_other_counts_stand_in_for_nothing(made):
    counts = made.assign(non_embedding_params=made["total_params"] / 2)
    numbers = record_numbers(counts)
    np.testing.assert_allclose(numbers[:, 1], numbers[:, 0] / 2)
    np.testing.assert_array_equal(numbers[:, 2], numbers[:, 0])
    np.testing.assert_allclose(np.exp(numbers[:, 3:6]), numbers[:, :3])


def test_features_refuse_what_is_no_table_of_records(made):
    with pytest.raises(ValueError, match="records need a column 'family'"):
        RecordFeatures().fit(made.drop(columns="family"))
    with pytest.raises(TypeError, match="records are a pandas DataFrame, not ndarray"):
        RecordFeatures().fit(np.zeros((3, 4)))
    with pytest.raises(NotFittedError):
        RecordFeatures().transform(made)


# made-up records and the picture


def test_made_records_follow_the_seed_and_the_law():
    small = made_records(3, 4, 5, [0, 2], noise=0, seed=3)
    pd.testing.assert_frame_equal(small, made_records(3, 4, 5, [0, 2], 0, 3))
    assert not small.equals(made_records(3, 4, 5, [0, 2], 0, 4))
    found = describe_records(small)
    assert [found[k] for k in ("records", "families", "models")] == [120, 3, 12]
    by_size = small.sort_values("total_params").groupby(["family", "task", "shots"])
    assert by_size["score"].apply(lambda s: s.is_monotonic_increasing).all()


def test_many_made_families_have_names():
    many = made_records(60, 1, 1, [0])
    names = many["family"].tolist()
    assert len(set(names)) == 60 and all(name.isalpha() for name in names)
    assert names[25:28] == ["Z", "AA", "AB"]


@pytest.mark.parametrize("column", ["family", "task", "shots", "total_params"])
def test_a_description_needs_its_columns(made, column):
    with pytest.raises(ValueError, match=f"records need a column '{column}'") as e:
        describe_records(made.drop(columns=column))
    one_line(e)
