"""What the chapter on filters does not show: against pandas, gaps, weights, ties."""

import numpy as np
import pandas as pd
import pytest

from benchnb.data.scores import Scores
from benchnb.stats.item_filters import (
    FILTERS,
    drop_redundant,
    filter_items,
    first_broken,
    item_redundancy,
    item_spread,
    not_lowest,
    part_whole_correlation,
)
from benchnb.stats.text import scale_rows_to_length_one


def marks(seed=0, models=40, items=30, gaps=0.2):
    "Part marks with gaps; the last two items are easy and flat"
    rng = np.random.default_rng(seed)
    skill = rng.normal(size=(models, 1))
    values = 1 / (1 + np.exp(rng.normal(size=items) - skill))
    values = 0.7 * values + 0.3 * rng.random(values.shape)
    values[:, -2] = rng.choice([0.97, 1], models)
    values[:, -1] = 0.5
    values[rng.random(values.shape) < gaps] = np.nan
    return values


@pytest.mark.parametrize("gaps", [0, 0.2, 0.7])
@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_spread_and_correlation_are_those_of_pandas(gaps, kind):
    values = marks(gaps=gaps).astype(kind)
    score = np.random.default_rng(1).random(len(values))
    score[3] = np.nan
    frame = pd.DataFrame(values.astype(float))
    spread = item_spread(values)
    np.testing.assert_allclose(spread, frame.std(ddof=0), atol=1e-6)
    related = part_whole_correlation(values, score)
    expected = frame.corrwith(pd.Series(score))
    np.testing.assert_allclose(related[:-1], expected[:-1], atol=1e-5)
    assert np.isnan(related[-1])


def test_the_lowest_models_go_together_and_never_all():
    score = np.repeat([0.0, 0.1, 0.5], [3, 4, 3])
    assert not_lowest(score, 0.1).sum() == 7
    assert not_lowest(score, 0.09).all()
    assert not_lowest(np.full(10, 0.4), 0.5).all()
    assert not_lowest(np.full(4, np.nan), 0.5).all()
    assert not_lowest(np.zeros(0)).shape == (0,)
    for wrong in (-0.1, 1, np.nan):
        with pytest.raises(ValueError, match="share"):
            not_lowest(score, wrong)


def test_every_item_falls_to_the_first_rule_it_breaks():
    rng = np.random.default_rng(0)
    facts = pd.DataFrame(
        {
            "weight": rng.choice([0, 1.0], 300),
            "mean": rng.choice([0.5, 0.96], 300),
            "spread": rng.choice([np.nan, 0.01, 0.3], 300),
            "correlation": rng.choice([np.nan, -0.04, -0.5, 0.05], 300),
        }
    )
    for (_, row), rule in zip(facts.iterrows(), first_broken(facts), strict=True):
        broken = [
            row["weight"] == 0,
            np.isnan(row["spread"]),
            row["spread"] <= 0.01,
            row["mean"] > 0.95,
            abs(row["correlation"]) < 0.05,
        ]
        assert rule == (broken.index(True) if any(broken) else len(FILTERS))


def test_needed_items_come_back_in_the_order_that_is_promised():
    values = marks()
    values[:, 4] = np.nan
    weight = np.ones(30)
    weight[7] = 0
    scores = Scores(values, pd.DataFrame({"weight": weight}))
    free = filter_items(scores)
    assert free.note == "" and len(free.items) == (free.rule == 5).sum()
    for need in range(1, 31):
        kept = filter_items(scores, need)
        assert len(kept.items) == max(need, len(free.items))
        assert set(free.items) <= set(kept.items)
        assert (kept.note == "") == (need <= len(free.items))
    assert 7 not in filter_items(scores, 29).items
    assert not {4, 7} & set(filter_items(scores, 28).items)
    assert not {4, 7, 29} & set(filter_items(scores, 27).items)


# Copies of items ------------------------------------------------------------------


def slow_filter(text, rank, text_limit, rank_limit):
    "The printed product, pair by pair, over all earlier items"
    kept = []
    for i in range(len(text)):
        pairs = [
            text[j, i] <= text_limit + 1e-6 and rank[j, i] <= rank_limit + 1e-6
            for j in range(i)
        ]
        kept += [i] if all(pairs) else []
    return kept


@pytest.mark.equation("essence_bench", "coarse filter")
@pytest.mark.parametrize("limits", [(0.5, 0.5), (0.95, 0.3), (1, 0.8), (0.3, 1)])
@pytest.mark.parametrize("seed", range(3))
def test_copies_fall_as_in_the_slow_reference(seed, limits):
    rng = np.random.default_rng(seed)
    values = rng.integers(2, size=(25, 40)).astype(float)
    values[:, 20:25] = values[:, :5]
    values[:, 30] = 1  # constant: correlated with nothing
    points = scale_rows_to_length_one(rng.normal(size=(40, 3)))
    with np.errstate(invalid="ignore", divide="ignore"):
        rank = np.nan_to_num(np.corrcoef(values.T))
    expected = slow_filter(points @ points.T, rank, *limits)
    found, note = drop_redundant(item_redundancy(values, points), *limits)
    assert found.tolist() == expected and note == ""
    assert 30 in drop_redundant(item_redundancy(values), 1, 0.1)[0]
