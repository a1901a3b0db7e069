"Budgets in tokens are never exceeded; budgets for a width grow until they are enough"

from helpers.small import estimates, fitted, halves, prepared
from hypothesis import given
from hypothesis import strategies as st

from benchnb.data.costs import Amount, Unit
from benchnb.live.budgets import items_within, next_budget


def test_tokens_are_never_exceeded():
    for name in ("random", "kmeans", "adaptive_irt", "tailored_bench"):
        method = fitted(name)
        cost = method.items_["cost"]
        for tokens in (600, 3000, 6000):
            budget = items_within(method, Amount(tokens, Unit.TOKENS))
            for found in estimates(prepared(method, budget), halves()[1], None):
                assert cost[found.items].sum() <= tokens
    assert items_within(fitted("random"), Amount(10**9, Unit.TOKENS)) == 60


@given(st.integers(1, 500), st.floats(0.01, 1), st.floats(0.01, 0.99))
def test_the_next_budget_grows_until_it_is_enough(budget, width, wanted):
    found = next_budget(budget, width, wanted, 500)
    assert budget <= found <= 500
    assert (found == budget) == (width <= wanted or budget == 500)


@given(st.integers(20, 150), st.floats(1.3, 4))
def test_the_next_budget_is_the_least_that_is_enough(budget, narrower):
    "The variance of a sample without replacement is in proportion to 1/n - 1/N"
    found = next_budget(budget, narrower, 1, 500)
    widths = [(1 / n - 1 / 500) / (1 / budget - 1 / 500) for n in (found - 1, found)]
    assert widths[0] * narrower**2 > 1 >= widths[1] * narrower**2 - 1e-9
