"Which method for a table: the rule by hand, and the whole on a small table"

import numpy as np
import pandas as pd
import pytest
from small import table

from benchnb.compare import compare, summary
from benchnb.planning import hold_out
from benchnb.recommend import CHEAP, Advice, choose, distance, exam, recommend


def exam_of(**errors):
    "Relative errors of methods in a few trials, as an exam"
    rows = [(name, t, r) for name, some in errors.items() for t, r in enumerate(some)]
    return pd.DataFrame(rows, columns=["method", "trial", "relative"])


def test_an_exam_is_a_comparison_on_held_out_sources():
    found = exam(table(), 20, "random", ["aipw"], trials=3)
    held, how = hold_out(table(), "random")
    figures = summary(compare(held, ["random", "aipw"], [20], 3, **how))
    np.testing.assert_allclose(found["mae"], figures["mae"])
    chance = figures.loc[figures["method"] == "random", "mae"].mean()
    np.testing.assert_allclose(found["relative"], figures["mae"] / chance)


def test_distance_is_paired():
    found = exam_of(a=[0.5, 0.9], random=[0.8, 1.2])
    mean, error = distance(found, "a", "random")
    assert mean == pytest.approx(-0.3) and error == pytest.approx(0, abs=1e-12)
    assert distance(exam_of(a=[1.5], random=[1.0]), "a", "random") == (0.5, 0.0)


@pytest.mark.parametrize(
    "random, ability, expected",
    [
        (dict(aipw=[1, 1], a=[0.5, 0.5]), dict(aipw=[1, 1], a=[2, 2]), "aipw"),
        (dict(aipw=[1, 1], a=[0.5, 0.5]), dict(aipw=[1, 1], a=[1, 0.9]), "a"),
        (  # worse at random, though safe
            dict(aipw=[1, 1], a=[1.2, 1.3]),
            dict(aipw=[1, 1], a=[0.2, 0.2]),
            "aipw",
        ),
        (  # better at random, but within two standard errors
            dict(aipw=[1, 1], a=[0.7, 1.1]),
            dict(aipw=[1, 1], a=[0.2, 0.2]),
            "aipw",
        ),
        (  # a tie at random goes to the better one in the other exam
            dict(aipw=[1, 1], a=[0.5, 0.6], b=[0.6, 0.5]),
            dict(aipw=[1, 1], a=[0.9, 0.9], b=[0.8, 0.8]),
            "b",
        ),
    ],
)
def test_the_rule(random, ability, expected):
    assert choose(exam_of(**random), exam_of(**ability))[0] == expected


def test_advice_on_a_small_table(tmp_path):
    advice = recommend(table(), 20, ["aipw", "stratified", "kmeans"], trials=2)
    assert isinstance(advice, Advice) and advice.method in advice.table.index
    assert (advice.table["verdict"] == "use this").sum() == 1
    assert advice.table.loc["random", "random"] == pytest.approx(1)
    assert f"Use {advice.method} with 20 items" in str(advice)
    again = recommend(
        table(), 20, ["aipw", "stratified", "kmeans"], 2, journal=tmp_path / "j"
    )
    steady = ["random", "ability", "mae", "verdict"]
    pd.testing.assert_frame_equal(again.table[steady], advice.table[steady])


def test_by_itself_it_takes_the_cheap_methods():
    advice = recommend(table(), 20, trials=1)
    assert set(advice.table.index) <= set(CHEAP) and "aipw" in advice.table.index


def test_targets_are_never_looked_at():
    "Whoever is held out plays; the table's own targets are sources of the advice alone"
    few = table().select(models=np.arange(5))
    with pytest.raises(ValueError, match="only 5 models"):
        recommend(few, 20)


@pytest.mark.parametrize("budget", [0, 61, 2.5])
def test_a_bad_budget_is_refused(budget):
    with pytest.raises((ValueError, TypeError)) as error:
        recommend(table(), budget, ["aipw"], trials=1)
    assert "\n" not in str(error.value)
