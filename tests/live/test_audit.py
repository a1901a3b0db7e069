"The audit: each class found where it is planted, and not where it is not"

import warnings

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
    flaky_p,
    flaky_share,
    measure_without_flagged_items,
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


def in_families(sizes, items=150, seed=0, known=True, flip=0.05):
    "Near-copies in families with a day each; nothing can be memorised in them"
    rng = np.random.default_rng(seed)
    family = np.repeat(np.arange(len(sizes)), sizes)
    ability = rng.normal(0, 1.2, (len(sizes), 1))
    answers = rng.random((len(sizes), items)) < expit(ability - rng.normal(size=items))
    answers = answers[family]
    answers ^= rng.random(answers.shape) < flip
    days = pd.date_range("2023-01-01", periods=len(sizes), freq="7D")
    facts = {"released": rng.permutation(days)[family]}
    if known:
        facts["family"] = family.astype(str)
    return Scores(answers * 1.0, models=pd.DataFrame(facts))


FAMILIES = (
    {  # name -> sizes of families, whether they are known, share of other answers
        "few": ([4] * 25, True, 0.05),
        "many": ([4] * 40, True, 0.05),
        "unlike": ([20, 15, 10, 8, 6] + [2] * 30, True, 0.05),
        "a large one": ([30, 20] + [3] * 38, True, 0.05),
        "not known": ([4] * 40, False, 0.2),
        "of one": ([1] * 60, False, 0.0),
    }
)


@pytest.mark.parametrize("name", FAMILIES)
def test_families_of_clean_items_memorise_nothing(name):
    sizes, known, flip = FAMILIES[name]
    called, p = 0, []
    for seed in range(12):
        scores = in_families(sizes, seed=seed, known=known, flip=flip)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            found = audit(scores)
        assert len(caught) == (len(sizes) < 30)
        called += len(named(found, "memorised")) > 0
        p.append(found["memorised_p"])
    assert called <= 1
    p = pd.concat(p).dropna()
    assert len(p) == 0 if len(sizes) < 30 else (p < 0.05).mean() < 0.07


def test_too_few_groups_are_said():
    with pytest.warns(UserWarning, match="count once: 25 groups, it takes 30"):
        found = audit(in_families([4] * 25))
    assert found["memorised_p"].isna().all() and found["newer_r"].notna().any()


def test_what_families_have_memorised_is_found():
    scores = in_families([3] * 60)
    days = scores.models["released"]
    scores.values[:, 11] = days > days.median()
    assert named(audit(scores), "memorised") == [11]


KNOWN_FAMILIES = {
    "swebench_verified": "llm",
    "terminal_bench": "llm",
    "ifeval": "family",
}


@pytest.mark.parametrize("name", KNOWN_FAMILIES)
def test_real_items_are_not_memorised_when_days_are_shuffled_between_families(name):
    scores = load(name)
    rng = np.random.default_rng(0)
    family = pd.factorize(scores.models[KNOWN_FAMILIES[name]])[0]
    family[family < 0] = family.max() + 1 + np.arange((family < 0).sum())
    called = 0
    for _ in range(8):
        day = rng.permutation(family.max() + 1)[family]  # one of each family
        released = pd.Timestamp("2023-01-01") + pd.to_timedelta(7 * day, "D")
        models = scores.models.assign(released=released)
        shuffled = Scores(scores.values, scores.items, models)
        called += audit(shuffled)["classes"].str.contains("memorised").any()
    assert called <= 1


@pytest.mark.slow
@pytest.mark.parametrize("agents", [8, 12, 30])
@pytest.mark.parametrize("runs", [2, 5, 10])
def test_few_agents_make_no_task_flaky(agents, runs):
    "Both parts of the variance are equal: 20,000 tasks"
    rng = np.random.default_rng(agents * runs)
    chance = rng.beta(0.5, 0.5, (agents, 20_000))
    trials = np.full(chance.shape, runs)
    _, _, z = flaky_share(rng.binomial(runs, chance) / runs, trials)
    p = np.nan_to_num(flaky_p(z, np.full(20_000, agents)), nan=1)
    for level in (0.05, 0.01, 0.001):
        assert (p < level).mean() < level + 4 * np.sqrt(level / 20_000)


def test_seven_agents_say_nothing_of_flaky_tasks():
    assert np.isnan(flaky_p(np.array([9.0]), np.array([7]))).all()
    assert flaky_p(np.array([9.0]), np.array([8]))[0] < 0.001


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
    effects = measure_without_flagged_items(faulty, audit(faulty))
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
