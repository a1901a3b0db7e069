"Which method for a table: the rule by hand, and the whole on a small table"

import numpy as np
import pandas as pd
import pytest
from helpers.small import table

from benchnb.evaluation.compare import MIN_TRIALS, compare
from benchnb.evaluation.planning import select_small_table
from benchnb.evaluation.recommend import (
    LEGEND,
    QUICK_FORM,
    Advice,
    choose_method,
    clearly_better,
    default_method,
    error_ratios,
    format_advice,
    list_candidates,
    measure_held_out_errors,
    recommend,
    rests_on_random_sample,
    too_few,
)
from benchnb.evaluation.registry import get_method
from benchnb.evaluation.simulate import prepare_method
from benchnb.live.bundles import publish
from benchnb.methods.sampling import RandomSampling


def errors_of(**errors):
    "Relative errors of methods in a few trials"
    rows = [(name, t, r) for name, some in errors.items() for t, r in enumerate(some)]
    return pd.DataFrame(rows, columns=["method", "trial", "relative"])


@pytest.mark.slow
def test_a_test_is_a_comparison_on_held_out_sources():
    found = measure_held_out_errors(table(), 20, "random", ["aipw"], trials=3)
    held, split, share = select_small_table(table(), "random")
    how = {"split": split, "sources": share}
    figures = compare(held, ["random", "aipw"], [20], MIN_TRIALS, **how).by_trial
    np.testing.assert_allclose(found["mae"], figures["mae"])
    chance = figures.loc[figures["method"] == "random", "mae"].mean()
    np.testing.assert_allclose(found["relative"], figures["mae"] / chance)


def test_a_lucky_draw_of_random_items_decides_nothing():
    found = measure_held_out_errors(
        table(), 20, "ability", ["aipw", "kmeans"], trials=3
    )
    counts = found["method"].value_counts().to_dict()
    assert counts == {"random": MIN_TRIALS, "aipw": MIN_TRIALS, "kmeans": 3}
    rows = [("a", t, 1.0) for t in range(3)]
    rows += [("random", t, mae) for t, mae in enumerate([1.0, 3.0] * 8)]
    given = pd.DataFrame(rows, columns=["method", "trial", "mae"])
    mean, error = error_ratios(given).loc["a"]
    spread = np.std([1.0, 3.0] * 8, ddof=1) / 4
    assert mean == 0.5 and error == pytest.approx(spread / 4)  # of the baseline
    np.testing.assert_array_equal(error_ratios(given).loc["random"], [1, np.nan])
    assert "no harm" not in LEGEND["safe"]


def test_the_legend_says_how_the_choice_is_made():
    "The most accurate in one test is not taken where its sum is larger"
    like = errors_of(aipw=[0.8, 0.8], difference=[0.4, 0.4], kmeans=[0.2, 0.2])
    stronger = errors_of(aipw=[0.8, 0.8], difference=[1.1, 1.1], kmeans=[1, 1])
    assert choose_method(like, stronger, ["aipw", "difference"]) == "difference"
    assert choose_method(like, stronger, [*like["method"].unique()]) == "kmeans"
    columns = {"random": [0.4, 0.8], "ability": [1.1, 0.8], "mae": [0.02, 0.04]}
    columns |= {"random_se": 0.1, "ability_se": 0.4, "seconds": 0.01}
    columns |= {"verdict": ["safe, use this", "safe"]}
    errors = pd.DataFrame(columns, index=["difference", "aipw"])
    lines = format_advice(Advice("difference", 30, errors, "difference")).splitlines()
    assert max(map(len, lines)) <= 80
    text = " ".join(" ".join(lines).split())
    assert "use this has the smallest sum of 'like' and 'stronger'" in text
    assert "among the safe methods" in text
    assert "standard errors play no part in the choice" in text


SAFE = ["random", "stratified", "difference", "aipw", "guarded_irt"]


def test_clearly_better_needs_two_standard_errors_of_the_paired_difference():
    assert clearly_better(errors_of(a=[0.5, 0.9], b=[0.8, 1.2]), "a", "b")
    assert not clearly_better(errors_of(a=[0.5, 0.9], b=[0.8, 0.8]), "a", "b")
    assert clearly_better(errors_of(a=[0.5], b=[1.0]), "a", "b")  # one trial


def test_safe_methods_declare_it():
    names = list_candidates(table())
    safe = {name for name in names if rests_on_random_sample(name)}
    assert safe == {*SAFE}
    assert {"kmeans", "gp_irt"} <= set(names) - safe


class Foreign(RandomSampling):
    "A method of somebody else, with a name that nobody knows here"

    name = "foreign"


@pytest.mark.slow
def test_a_method_of_somebody_else_counts_by_what_it_declares():
    methods = {"foreign": Foreign(), "kmeans": get_method("kmeans")}
    advice = recommend(table(), 20, methods, trials=2)
    assert advice.method == "foreign"
    assert advice.table.loc["foreign", "verdict"] == "safe, use this"


@pytest.mark.slow
def test_advice_on_a_small_table(tmp_path):
    names = ["aipw", "stratified", "kmeans"]
    advice = recommend(table(), 20, names, trials=2)
    assert sorted(advice.table.index) == sorted(names)
    assert advice.table["verdict"].str.endswith("use this").sum() == 1
    assert f"Use {advice.method} with 20 items" in str(advice)
    assert all(f"\n{name} " in str(advice) for name in names)  # and the table
    again = recommend(table(), 20, names, 2, journal=tmp_path / "j")
    steady = ["random", "ability", "mae", "verdict"]
    pd.testing.assert_frame_equal(again.table[steady], advice.table[steady])
    risky = recommend(table(), 20, ["kmeans"], trials=1)
    assert "None of these methods is safe" in str(risky)


@pytest.mark.usefixtures("few_trials")
def test_static_advice_can_be_published(tmp_path):
    advice = recommend(table(), 20, trials=1, static=True)
    assert "guarded_irt" in advice.table.index
    assert "adaptive_irt" not in advice.table.index
    method = prepare_method(get_method(advice.method).fit(table()), 20)
    assert len(publish(method, tmp_path / "small")) == 20


@pytest.mark.slow
def test_the_quick_form_looks_at_less(monkeypatch):
    monkeypatch.setitem(QUICK_FORM, "items", 30)
    monkeypatch.setitem(QUICK_FORM, "sources", 10)
    seen = []

    def watch(scores, methods, budgets, *, trials, **options):
        seen.append((scores.shape, trials))
        return compare(scores, methods, budgets, trials=trials, **options)

    monkeypatch.setattr("benchnb.evaluation.recommend.compare", watch)
    recommend(table(0, 60), 10, ["aipw", "kmeans"])
    recommend(table(0, 60), 10, ["aipw", "kmeans"], quick=False, trials=2)
    assert [trials for _, trials in seen] == [MIN_TRIALS, 5] * 2 + [MIN_TRIALS, 2] * 2
    assert all(items == 30 and models <= 40 for (models, items), _ in seen[:4])
    assert all(items == 60 for (_, items), _ in seen[4:])


def test_a_bad_budget_and_a_small_table_are_refused():
    for budget in (0, 61, 2.5):
        with pytest.raises((ValueError, TypeError)) as error:
            recommend(table(), budget, ["aipw"], trials=1)
        assert "\n" not in str(error.value)
    with pytest.raises(ValueError, match="only 5 models"):
        recommend(table().select(models=np.arange(5)), 20)


IRT = ["adaptive_irt", "anchor_irt", "gp_irt", "guarded_irt", "p_irt"]


@pytest.mark.slow
def test_below_20_sources_no_item_response_model_is_recommended():
    few, enough = (table().select(models=np.arange(n)) for n in (19, 20))
    assert all(too_few(name, few) and not too_few(name, enough) for name in IRT)
    assert too_few("per_task(guarded_irt)", few) and not too_few("aipw", few)
    assert not {*IRT} & {*list_candidates(few)}
    assert {"gp_irt", "guarded_irt"} < {*list_candidates(enough)}
    advice = recommend(few, 20, ["guarded_irt", "gp_irt", "random"], trials=2)
    assert advice.method == advice.bold == "random"
    assert advice.table.loc["guarded_irt", "verdict"] == "needs 20 sources"
    with pytest.raises(ValueError, match="guarded_irt needs 20 sources, there are 19"):
        recommend(few, 20, ["guarded_irt"], trials=1)
    name, note = default_method(few)
    assert name == "stratified" and "19 sources are fewer than the 20" in note
    assert default_method(enough) == ("guarded_irt", "")
