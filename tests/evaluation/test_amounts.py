"Budgets as amounts: never overspent, whatever the method; nonsense is refused"

import warnings

import numpy as np
import pandas as pd
import pytest
from helpers.small import METHODS, fit, fitted, halves, table

from benchnb.data.costs import Amount, Unit, count_items_in_order, parse_amount
from benchnb.data.scores import Scores
from benchnb.evaluation.compare import (
    average_over_trials,
    compare,
    spending,
    summarize_trials,
)
from benchnb.evaluation.registry import get_method, load_method, save_method
from benchnb.evaluation.simulate import AskTellSession, prepare_method, simulate

NAMES = "random stratified aipw kmeans tailored_bench adaptive_irt guarded_irt".split()
NAMES += ["guarded_irt(rounds=5)", "per_task(stratified)", "per_task(adaptive_irt)"]


def quiet(method, amount, targets, seed=0):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return simulate(method, targets, amount, seed)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("tokens", [900, 4000])
def test_an_amount_is_never_overspent(name, tokens):
    method = fitted(name) if name in METHODS else fit(name, halves()[0])
    cost = method.items_["cost"]
    for found in quiet(method, parse_amount(f"{tokens}tokens"), halves()[1]):
        assert found.cost == cost[found.items].sum() <= tokens
        assert found.cost_unit == "tokens" and 0 <= found.score <= 1
        assert found.items and not found.unscored  # what is not paid is not asked
        assert cost[found.items].sum() > tokens - 2 * cost.max()


def test_a_static_method_gets_the_largest_number_that_was_tried():
    method, amount = fitted("random"), parse_amount("3ktokens")
    cost = method.items_["cost"].to_numpy()
    drawn = prepare_method(method, amount).coreset_
    assert cost[drawn].sum() <= 3000 and method.static
    more = prepare_method(method, len(drawn) + 1).coreset_
    assert cost[more].sum() > 3000
    assert method.limit_ == np.inf


def test_an_adaptive_conversation_stops_before_the_item_that_overspends():
    "A slow reference: the same conversation by hand, cut at the amount"
    method, row = fitted("tailored_bench"), halves()[1].values[0].astype(float)
    conversation = AskTellSession(prepare_method(method, Amount(3000, Unit.TOKENS)))
    cost, number = method.items_["cost"].to_numpy(), method.budget_
    asked = []
    while conversation.estimate is None:
        asked += conversation.wanted.tolist()
        conversation.tell(row[conversation.wanted])
    whole = AskTellSession(prepare_method(method, number))
    while whole.estimate is None:
        whole.tell(row[whole.wanted])
    assert (
        asked == whole.asked[: count_items_in_order(3000, cost[whole.asked])].tolist()
    )


def test_the_next_budget_in_items_knows_no_amount():
    method = fitted("adaptive_irt")
    quiet(method, parse_amount("900tokens"), halves()[1])
    found = quiet(method, 20, halves()[1])[0]
    assert len(found.items) == 20 and found.cost > 900


def test_a_saved_method_keeps_its_amount(tmp_path):
    method = prepare_method(fitted("adaptive_irt"), parse_amount("2ktokens"))
    save_method(method, tmp_path)
    row = halves()[1].values[0].astype(float)
    costs = []
    for one in (method, load_method(tmp_path)):
        conversation = AskTellSession(one)
        while conversation.estimate is None:
            conversation.tell(row[conversation.wanted])
        costs.append(conversation.estimate.cost)
    assert costs[0] == costs[1] <= 2000


def test_costs_that_are_unknown_are_refused():
    bare = Scores(table().values, table().items.drop(columns="cost"), table().models)
    with pytest.raises(ValueError, match="the table has no costs"):
        compare(bare, ["random"], ["900tokens"], trials=1)


def test_a_comparison_reports_items_and_what_was_spent():
    frame = compare(table(), ["random", "adaptive_irt"], ["2ktokens"], trials=2).frame
    assert set(frame["unit"]) == {"tokens"} and set(frame["budget"]) == {2000}
    assert (frame["cost"] <= 2000).all() and len(spending(frame)) == 2
    assert (
        average_over_trials(summarize_trials(frame))["unit"].tolist() == ["tokens"] * 2
    )
    in_items = compare(table(), ["random"], [Amount(7)], trials=1).frame
    assert set(in_items["budget"]) == {7} and "unit" not in in_items
    tasks = compare(table(), ["random"], ["2ktokens"], trials=1, by="task").frame
    assert len(summarize_trials(tasks)) == 4


def twins(cheap=1.0, expensive=9.0, pairs=40, models=120, seed=0):
    "Each item stands there twice, equally informative, once cheap and once expensive"
    rng = np.random.default_rng(seed)
    hard = np.repeat(np.linspace(-2, 2, pairs), 2)
    skill = np.linspace(-2.5, 2.5, models)[:, np.newaxis]
    chance = 1 / (1 + np.exp(-2 * (skill - hard)))
    values = (rng.random(chance.shape) < chance) * 1.0
    items = pd.DataFrame({"cost": np.tile([cheap, expensive], pairs)})
    return Scores(values, items.assign(cost_unit="usd"))


@pytest.mark.slow
@pytest.mark.parametrize("batch", [1, 4])
def test_an_interval_at_an_amount_is_measured_at_that_amount(batch):
    "Held-out sources spend what a target may spend: a small amount, a wide interval"
    method = get_method("adaptive_irt", batch=batch).fit(twins())
    widths = []
    for usd in (8, 40):
        found = simulate(method, twins(seed=1), Amount(usd, Unit.USD))
        assert all(estimate.cost <= usd for estimate in found)
        widths.append(np.mean([np.ptp(estimate.interval) for estimate in found]))
    assert widths[0] > widths[1]
