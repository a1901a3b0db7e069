"Records: what is refused and how, the features"

import numpy as np
import pandas as pd
import pytest
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from benchnb.bigbench.records import (
    NUMERIC_FEATURES,
    RecordFeatures,
    check_records,
    make_synthetic_records,
    record_numbers,
)


@pytest.fixture
def made():
    return make_synthetic_records()


def with_value(column, value, row=3):
    "Made-up records with one wrong cell"
    frame = make_synthetic_records().astype({column: object})
    frame.loc[row, column] = value
    return frame


@pytest.mark.parametrize(
    "column, value, words",
    [
        ("family", None, "row 3 .*has no family: name it"),
        ("task", "  ", "row 3 .*has no task"),
        ("score", "good", "row 3 .*has score 'good', no number"),
        ("shots", 1.5, "row 3 .*shots must be 0, 1, 2, ..., got 1.5"),
        ("score", np.nan, "row 3 .*has no score: drop"),
        ("score", -0.2, r"row 3 \(A-0.1b, t1\) has score"),
        ("total_params", 0, "row 3 .*total_params must be above 0; unknown is NaN"),
        ("total_params", np.nan, "no total_params for model 'A-0.1b'"),
        ("total_params", 7e9, "A/A-0.1b has two sizes"),
    ],
)
def test_a_wrong_cell_is_refused_by_name(column, value, words):
    with pytest.raises(ValueError, match=words):
        check_records(with_value(column, value))


@pytest.mark.parametrize("column", ["family", "total_params", "score"])
def test_a_missing_column_is_refused(made, column):
    with pytest.raises(ValueError, match=f"need a column '{column}'"):
        check_records(made.drop(columns=[column, "subtask"]))


def test_no_table_and_no_rows_are_refused(made):
    with pytest.raises(TypeError, match="pandas DataFrame, not list"):
        check_records([1, 2])
    with pytest.raises(ValueError, match="no records"):
        check_records(made[:0])


def test_percent_is_refused_or_converted(made):
    percent = made.assign(score=100 * made["score"]).sample(frac=1, random_state=0)
    before = percent.copy()
    with pytest.raises(ValueError, match="as if on 0-100; .*pass scale='percent'"):
        check_records(percent)
    again = check_records(percent, scale="percent")
    np.testing.assert_allclose(again["score"], percent["score"] / 100, atol=1e-12)
    pd.testing.assert_frame_equal(percent, before)  # the given table stays


@pytest.mark.parametrize("scale, metric", [("percent", "acc"), ("metric", "rouge1")])
def test_unit_scores_are_not_divided(made, scale, metric):
    named = made.assign(metric=metric)
    with pytest.raises(ValueError, match=f"of '{metric}' is above 1.*scale='unit'"):
        check_records(named, scale)
    for small in (named[:2], named.assign(score=0.0)):  # too few to know
        found = check_records(small, scale)["score"]
        np.testing.assert_allclose(found, small["score"] / 100)
    one_above = named.assign(score=named["score"].where(named.index > 0, 1.5))
    assert check_records(one_above, scale)["score"].max() == 0.015


def test_duplicates_are_refused_or_merged(made):
    twice = pd.concat([made, made[5:7].assign(score=[0.9, 0.9])])
    with pytest.raises(ValueError, match="row 288 .*duplicates=.*2 such rows"):
        check_records(twice)
    pd.testing.assert_frame_equal(check_records(twice, duplicates="first"), made)
    one = made[:1]  # other shots, metric, family or task: no duplicate
    others = [one, one.assign(shots=9), one.assign(metric="f1"), one.assign(family="Z")]
    assert len(check_records(pd.concat([*others, one.assign(task="other")]))) == 5


def test_blanks_around_names_do_not_count(made):
    spoilt = made.assign(family=made["family"] + " ", metric=" acc\t")
    spoilt.loc[::2, "family"] = made["family"][::2]
    pd.testing.assert_frame_equal(check_records(spoilt), made)


def test_all_that_is_missing_is_one_message(made):
    with pytest.raises(ValueError, match="columns 'family', 'total_params', 'shots'"):
        check_records(made.drop(columns=["family", "total_params", "shots"]))
    spoilt = made.astype({"shots": object})
    spoilt.loc[3, ["family", "score"]] = [None, np.nan]
    spoilt.loc[5, "shots"] = "few"
    spoilt.loc[[6, 7], "total_params"] = np.nan
    with pytest.raises(ValueError) as refused:
        check_records(spoilt)
    parts = "no family", "no score", "shots 'few', no number", "no total_params"
    assert all(part in str(refused.value) for part in parts)
    assert "2 such rows" in str(refused.value)


def test_records_without_a_score_are_kept_to_be_predicted(made):
    gaps = made.assign(score=made["score"].mask(made.index % 5 == 0))
    pd.testing.assert_frame_equal(check_records(gaps, unscored="keep"), gaps)


# features


def test_columns_of_your_own_are_features(made):
    own = made.assign(year=2020.0 + made.index % 3, lab="x" + made["family"])
    own = check_records(own, features=["year", "lab"])
    features = RecordFeatures(features=["year", "lab"]).fit(own)
    labels = features.get_feature_names_out().tolist()
    assert labels[-1] == "year" and "lab_xA" in labels
    found = features.transform(own)
    assert found.shape == (len(own), len(labels))
    assert np.ptp(found[:, -1]) > 2 and not np.isnan(found).any()
    with pytest.raises(ValueError, match="need a column 'lab'"):
        features.transform(made.assign(year=1))


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
    labels = found.get_feature_names_out().tolist()
    assert labels[-7:] == NUMERIC_FEATURES and len(set(labels)) == len(labels)


def test_features_do_not_see_the_score_or_the_order(made):
    features = RecordFeatures().fit(made)
    mixed = made.sample(frac=1, random_state=0)
    other = features.transform(mixed.assign(score=np.nan).iloc[:, ::-1])
    np.testing.assert_array_equal(other, features.transform(made)[mixed.index])


def test_the_total_stands_in_for_unknown_counts(made):
    counts = made.assign(non_embedding_params=made["total_params"] / 2)
    numbers = record_numbers(counts)
    np.testing.assert_allclose(numbers[:, 1], numbers[:, 0] / 2)
    np.testing.assert_array_equal(numbers[:, 2], numbers[:, 0])
    np.testing.assert_allclose(np.exp(numbers[:, 3:6]), numbers[:, :3])
