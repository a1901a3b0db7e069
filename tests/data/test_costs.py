"Amounts, units and costs: what is typed, what a table has, and what does not fit"

import numpy as np
import pandas as pd
import pytest

from benchnb.data.costs import (
    Amount,
    Unit,
    cost_unit,
    count_items_in_order,
    parse_amount,
    parse_price,
)
from benchnb.data.scores import Scores

AMOUNTS = {"50": (50, "items"), "20k tokens": (20_000, "tokens")}
AMOUNTS |= {"1.5Mtokens": (1_500_000, "tokens"), "50,000tokens": (50_000, "tokens")}
AMOUNTS |= {"15min": (900, "seconds"), "2h": (7200, "seconds"), "$20": (20, "usd")}


@pytest.mark.parametrize("text", AMOUNTS)
def test_an_amount_is_read_and_written_as_it_is_typed(text):
    found, (value, unit) = parse_amount(text), AMOUNTS[text]
    assert found == Amount(value, Unit(unit))
    assert parse_amount(str(found)) == found


@pytest.mark.parametrize("text", ["", "-3", "0usd", "2.5", "$5tokens", "20€", "1e3"])
def test_what_is_no_amount_is_refused_in_one_line(text):
    with pytest.raises(ValueError, match="no amount|no budget") as caught:
        parse_amount(text)
    assert str(caught.value).startswith(repr(text)) and "\n" not in str(caught.value)


@pytest.mark.parametrize("text", ["", "free", "-1", "0", "3/usd", "1/0tokens"])
def test_what_is_no_price_is_refused_in_one_line(text):
    with pytest.raises(ValueError, match="a price is what an item costs"):
        parse_price(text)


def test_items_are_taken_in_order_until_the_next_would_overspend():
    rng = np.random.default_rng(0)
    costs = rng.integers(1, 50, 200).astype(float)
    for amount in (0.5, 10, 333, 2000, 1e9):
        spent, count = 0.0, 0
        for cost in costs:
            if spent + cost > amount:
                break
            spent, count = spent + cost, count + 1
        assert count_items_in_order(amount, costs) == count
        assert count_items_in_order(Amount(amount, Unit.USD), costs) == count


def test_the_unit_travels_with_the_table(tmp_path):
    items = pd.DataFrame(
        {"task": ["a", "a", "b"], "cost": [1, 2, 4], "cost_unit": "usd"}
    )
    scores = Scores([[1, 0, 1], [0, 1, 1]], items)
    scores.to_parquet(tmp_path / "s.parquet")
    again = Scores.from_parquet(tmp_path / "s.parquet")
    assert cost_unit(again.items) == cost_unit(again.select(items=[0]).items) == "usd"
    assert cost_unit(again.by_task().items) == Unit.USD
    assert again.by_task().items["cost"].tolist() == [3, 4]
