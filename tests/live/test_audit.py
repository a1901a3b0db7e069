"The audit: each class found where it is planted, and not where it is not"

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit
from scipy.stats import pearsonr

from benchnb.data.scores import Scores
from benchnb.data.sources import load
from benchnb.live.audit import (
    audit,
    drop_items,
    flaky_share,
    measure_without_classes,
    rest_scores,
    similar_text,
)
from benchnb.stats.item_filters import part_whole_correlation
from tools.run import ROOT


def rasch(models=120, items=200, seed=0, **facts):
    "Answers of models of rising ability; nothing is wrong with them"
    rng = np.random.default_rng(seed)
    ability = np.linspace(-2, 2, models)[:, np.newaxis]
    values = rng.random((models, items)) < expit(ability - rng.normal(size=items))
    names = [f"m{k:03}" for k in range(models)]
    return Scores(values * 1.0, models=pd.DataFrame(facts, names))


def named(found, name):
    "Positions of the items in a class"
    flagged = found.index[found["classes"].str.split().map(lambda x: name in x)]
    return sorted(int(item.removeprefix("item")) for item in flagged)


@pytest.fixture(scope="module")
def faulty():
    "A table with one item of each of four kinds, days that follow ability"
    days = pd.date_range("2023-01-01", periods=120, freq="7D")
    scores = rasch(released=days)
    values, ranks = scores.values.copy(), np.arange(120)
    values[:, 3] = 1 - (ranks > 60)
    values[:, 5] = 0
    values[:, 9] = values[:, 8]
    models = scores.models.assign(released=np.random.default_rng(1).permutation(days))
    values[:, 11] = models["released"] > pd.Timestamp("2024-06-01")
    items = pd.DataFrame(index=[f"item{k}" for k in range(200)])
    return Scores(values, items, models)


def test_planted_faults_are_found_and_nothing_else(faulty):
    found = audit(faulty)
    assert named(found, "against") == [3] and found.index[0] == "item3"
    assert named(found, "dead") == [5] and found.index[-1] == "item5"
    assert named(found, "copy") == [9] and found.loc["item9", "copy_of"] == "item8"
    assert (
        named(found, "memorised")
        == [11]
        == named(audit(faulty, after="2024-06-01"), "memorised")
    )
    assert named(found, "flaky") == [] and set(found["copy_of"]) == {"", "item8"}


def test_answers_without_a_fault_are_rarely_flagged():
    days = pd.date_range("2023-01-01", periods=120, freq="7D")
    for seed in range(5):  # the newer the stronger: ability explains it all
        found = audit(rasch(seed=seed, released=days))
        assert (found["classes"].replace("dead", "") != "").sum() <= 1
        assert 0.02 < (found["memorised_p"] < 0.05).mean() < 0.1


def test_rest_scores_and_correlations_are_those_of_a_loop():
    values = np.random.default_rng(0).random((30, 7))
    values[:9, 2] = values[3, 5] = np.nan
    r = part_whole_correlation(values, rest_scores(values))
    for item in range(7):
        known = ~np.isnan(values[:, item])
        rest = np.nanmean(np.delete(values, item, axis=1), axis=1)
        slow = pearsonr(values[known, item], rest[known])
        np.testing.assert_allclose(r[item], slow.statistic)
    assert np.isnan(rest_scores(np.ones((2, 1)))).all()


def test_texts_are_compared_in_full():
    texts = [f"What is {k} plus {k * 7}, in words and in full?" for k in range(300)]
    texts[200], texts[7] = texts[100], np.nan
    cosine, other = similar_text(pd.Series(texts))
    assert (cosine > 0.99).nonzero()[0].tolist() == [200] and other[200] == 100
    assert np.isnan(cosine[7]) and other[7] == -1 and cosine[0] == 0
    assert np.isnan(similar_text(pd.Series([None, " "]))[0]).all()


def test_the_share_within_is_that_of_a_loop_and_right_on_average():
    rng = np.random.default_rng(2)
    chance = rng.beta(2, 2, (4000, 3))  # variance 0.05, and 0.2 within
    trials = np.full(chance.shape, 5)
    share, error, z = flaky_share(rng.binomial(5, chance) / 5, trials)
    assert (np.abs(share - 0.8) < 4 * error).all() and (error < 0.02).all()
    rates, runs = rng.binomial(4, chance[:6]) / 4, trials[:6] - 1
    assert (z > 4).all()
    whole, error, _ = flaky_share(rates, runs)
    parts = [flaky_share(*np.delete([rates, runs], k, axis=1))[0] for k in range(6)]
    slow = np.sqrt(((np.array(parts) - whole) ** 2).sum(axis=0) * 5 / 6)
    np.testing.assert_allclose(error, slow)
    assert np.isnan(flaky_share(rates, runs * 0 + 1)).all()


def test_two_lucky_runs_do_not_make_a_task_flaky():
    rates, runs = np.zeros((100, 1)), np.full((100, 1), 5)
    rates[:2] = 0.2
    share, _, z = flaky_share(rates, runs)
    assert share[0] > 0.99 and 0 < z[0] < 2


def test_what_is_left_and_how_well_it_measures(faulty):
    effects = measure_without_classes(faulty, audit(faulty))
    assert [*effects.index] == "nothing against dead copy memorised all".split()
    assert effects.loc["nothing", ["items", "shift", "kendall"]].tolist() == [200, 0, 1]
    assert effects.loc["all", "items"] == 196 and effects.loc["dead", "shift"] > 0
    assert effects.loc["all", "reliability"] > effects.loc["nothing", "reliability"]


def test_gaps_and_few_models_are_no_error(faulty):
    values = faulty.values.copy()
    values[::3, :50] = values[:, 60] = np.nan
    found = audit(Scores(values, faulty.items, faulty.models))
    assert found.loc["item60", ["solved", "r", "against_p"]].isna().all()
    assert not named(audit(faulty.select(models=[0, 1, 2])), "against")


@pytest.mark.parametrize(
    "text, says", [("", "it is empty"), ("a\n1\n", "'item'"), ("item\nno\n", "'no'")]
)
def test_a_wrong_list_is_named(tmp_path, faulty, text, says):
    (tmp_path / "a.csv").write_text(text)
    with pytest.raises(ValueError, match=says):
        drop_items(faulty, str(tmp_path / "a.csv"))


def test_the_published_lists_name_items_of_their_tables():
    lists = pd.read_csv(ROOT / "nbs/results/known_errors.csv")
    assert not lists.duplicated(["list", "item"]).any() and lists.notna().all(axis=None)
    for name, data in [("swebench_gold", "swebench_verified"), ("mmlu", "mmlu_pro")]:
        items = lists["item"][lists["list"].str.startswith(name)]
        assert items.isin(load(data).items.index).all() and len(items) > 30
