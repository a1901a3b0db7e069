"Task recovery: slow references of the formula, what a search may see, what is refused"

import numpy as np
import pytest

from benchnb.bigbench.records import make_synthetic_records
from benchnb.bigbench.recovery import (
    RecoverySurrogate,
    draw_distinct_subsets,
    evaluate_subsets,
    fill_parts,
    moments,
    pivot_records,
    recovery_masks,
)

RECORDS = make_synthetic_records(families=5, sizes=4, tasks=8, shots=(0, 2), seed=1)
QUICK = dict(epochs=5, hidden=(16,), lr=0.01)


def test_only_chosen_tasks_of_the_new_family_are_seen():
    left = RECORDS[RECORDS["family"] != "B"]
    learned, asked = recovery_masks(left, ["t1", "t3"], ["A"])
    seen = left[learned]
    assert set(seen["task"][seen["family"] == "A"]) == {"t1", "t3"}
    assert set(left[asked]["task"]) == {f"t{i}" for i in range(8)} - {"t1", "t3"}


def test_the_search_does_not_depend_on_the_test_family():
    draws, other = draw_distinct_subsets(8, 3, 20), RECORDS.copy()
    other.loc[other["family"] == "B", "score"] = 0.5
    pair = [RecoverySurrogate(some, "A", "B")(draws) for some in (RECORDS, other)]
    np.testing.assert_array_equal(*pair)


def slow_surrogate(records, subset, dev, shrinkage):
    "One subset, model by model, from what the model was asked, by loops and an inverse"
    table = pivot_records(records)
    inside = table.family == dev
    learned = fill_parts(table.values[~inside], table.part)
    mean, cov = moments(learned, shrinkage)
    chosen, truth, guess = np.isin(table.task, [*subset, -1]), [], []
    for row in table.values[inside]:
        known = chosen & ~np.isnan(row)
        weight = np.linalg.inv(cov[np.ix_(known, known)]) @ (row - mean)[known]
        for column in np.flatnonzero(~chosen & ~np.isnan(row)):
            truth.append(row[column])
            guess.append(np.clip(mean[column] + cov[column, known] @ weight, 0, 1))
    truth, guess = np.array(truth), np.array(guess)
    return 1 - ((truth - guess) ** 2).mean() / truth.var()


def unequal():
    "Task t0 with one number of shots only"
    return RECORDS[(RECORDS["task"] != "t0") | (RECORDS["shots"] == 0)]


def ragged():
    "Family A with its own number of shots, one model without t0, and a single gap"
    some = RECORDS[(RECORDS["family"] != "A") | (RECORDS["shots"] == 2)]
    some = some.assign(shots=some["shots"].where(some["family"] != "A", 5))
    lacking = (some["model"] == some["model"].iloc[-1]) & (some["task"] == "t0")
    return some[~lacking].drop(some.index[30]).reset_index(drop=True)


@pytest.mark.equation("predicting_big_bench", "section 5.1")
@pytest.mark.parametrize("records", [RECORDS, unequal(), ragged()])
@pytest.mark.parametrize("size", [1, 3, 7])
def test_surrogate_against_loops(size, records):
    draws, families = draw_distinct_subsets(8, size, 4, seed=size), "ABE"
    fast = RecoverySurrogate(records, list(families), shrinkage=0.2).each(draws)
    for subset, values in zip(draws, fast, strict=True):
        for dev, value in zip(families, values, strict=True):
            slow = slow_surrogate(records, subset, dev, 0.2)
            assert value == pytest.approx(slow)


def test_gaps_are_filled_from_the_part_first():
    table = pivot_records(ragged())
    filled = fill_parts(table.values, table.part)
    known = ~np.isnan(table.values)
    assert not np.isnan(filled).any() and not known.all()
    np.testing.assert_array_equal(filled[known], table.values[known])
    for row, column in zip(*np.nonzero(~known), strict=True):
        same = known[row] & (table.part == table.part[column])
        if same.any():
            assert filled[row, column] == pytest.approx(table.values[row, same].mean())


def test_the_papers_objective_does_not_look_at_the_rest_of_the_test_family():
    def objective(records):
        return evaluate_subsets(records, [["t0"]], [("A", "B")], on_dev=True, **QUICK)

    other, first = RECORDS.copy(), objective(RECORDS)
    of_b, chosen = RECORDS["family"] == "B", RECORDS["task"] == "t0"
    other.loc[of_b & ~chosen, "score"] = 0.5
    np.testing.assert_allclose(objective(other), first)
    other.loc[of_b & chosen, "score"] = 0.5
    assert objective(other) != first


@pytest.mark.parametrize(
    "subset, words",
    [
        ([0, 0], "names a task twice"),
        ([0, -1], "unknown task -1"),
        (["nothing", "t0"], "unknown task nothing"),
        (range(8), "8 of 8 tasks"),
        ([], "0 of 8 tasks"),
    ],
)
def test_what_is_no_subset_is_refused(subset, words):
    with pytest.raises(ValueError, match=words):
        RecoverySurrogate(RECORDS)([list(subset)])
    with pytest.raises(ValueError, match=words):
        recovery_masks(RECORDS, subset, ["A"])


@pytest.mark.parametrize("pairs", [[("A", "A")], [("A", "Q")], []])
def test_no_family_judges_itself(pairs):
    with pytest.raises(ValueError, match="recovery needs|no pairs of families"):
        evaluate_subsets(RECORDS, [[0, 1]], pairs)


def test_a_family_with_one_model_and_too_few_families():
    single = RECORDS[(RECORDS["family"] != "A") | (RECORDS["model"] == "A-0.1b")]
    for records, words in ((single, r"\(B, C, D, E\)"), (RECORDS[:128], "here 2")):
        with pytest.raises(ValueError, match=words):
            RecoverySurrogate(records, "A")
    with pytest.raises(ValueError, match="unit is task or subtask"):
        RecoverySurrogate(RECORDS, unit="part")
