"""What the chapter on small-bench does not show: loops that say what is meant, kills"""

import json
from itertools import combinations

import numpy as np
import pytest

from benchnb.prediction.records import made_records
from benchnb.prediction.regressors import ModelTask
from benchnb.prediction.small_bench import (
    Journal,
    NetworkRecovery,
    Surrogate,
    annealing,
    beam_search,
    best_of,
    evaluate_many,
    evaluate_subset,
    evaluation_parts,
    family_pairs,
    finalists,
    greedy_search,
    kmeans_subset,
    moments,
    published_small_bench,
    random_subsets,
    recovery,
    recovery_parts,
    task_table,
    task_value,
)

RECORDS = made_records(families=5, sizes=4, tasks=8, shots=(0, 2), seed=1)
VALUE = np.random.default_rng(7).random(10)


def total_value(subsets):
    "The sum of the values of the chosen tasks"
    return VALUE[np.asarray(subsets)].sum(axis=1)


# The objective --------------------------------------------------------------------


def test_nothing_of_the_test_family_is_seen():
    learned, asked = recovery_parts(RECORDS, ["t1", "t3"], "A", "B")
    seen = RECORDS[learned]
    assert "B" not in set(seen["family"]) | set(RECORDS[asked]["family"])
    assert set(seen["task"][seen["family"] == "A"]) == {"t1", "t3"}
    assert set(RECORDS[asked]["task"]) == {f"t{i}" for i in range(8)} - {"t1", "t3"}


def test_the_search_does_not_depend_on_the_test_family():
    draws = random_subsets(8, 3, 20)
    other = RECORDS.copy()
    other.loc[other["family"] == "B", "score"] = 0.5
    for kind in (Surrogate, NetworkRecovery):
        more = {} if kind is Surrogate else {"epochs": 2, "hidden": (4,)}
        pair = [kind(some, "A", "B", **more)(draws[:3]) for some in (RECORDS, other)]
        np.testing.assert_array_equal(*pair)


def test_evaluation_parts_are_a_partition():
    for dev, test in family_pairs(RECORDS):
        learned, watched, asked = evaluation_parts(RECORDS, ["t0"], dev, test)
        assert (learned.astype(int) + watched + asked == 1).all()
        assert set(RECORDS[asked]["family"]) == {test}
        assert set(RECORDS[watched]["family"]) == {dev}


def test_evaluate_many_is_evaluate_subset_for_networks():
    pairs = family_pairs(RECORDS, 3)
    assert pairs == family_pairs(RECORDS, 3) and len(pairs) == 3
    found = evaluate_many(RECORDS, [["t0"], [1, 2]], pairs, epochs=3, hidden=(8,))
    assert found.shape == (2, 3) and np.isfinite(found).all()
    one = evaluate_subset(RECORDS, ["t0"], ModelTask(), pairs)
    assert one.mean == pytest.approx(one.each["r2"].mean())
    assert one.error == pytest.approx(one.each["r2"].std(ddof=1) / 3**0.5)


# The surrogate --------------------------------------------------------------------


def slow_surrogate(records, subset, dev, shrinkage):
    "One subset, by loops and an inverse"
    table = task_table(records)
    inside = table.family == dev
    mean, cov = moments(table.values[~inside], shrinkage)
    known = np.isin(table.task, [*subset, -1])
    rest = np.flatnonzero(~known)
    truth, guess = [], []
    for row in table.values[inside]:
        weight = np.linalg.inv(cov[np.ix_(known, known)]) @ (row - mean)[known]
        for column in rest:
            truth.append(row[column])
            guess.append(np.clip(mean[column] + cov[column, known] @ weight, 0, 1))
    truth, guess = np.array(truth), np.array(guess)
    return 1 - ((truth - guess) ** 2).mean() / truth.var()


@pytest.mark.parametrize("size", [1, 3, 7])
def test_surrogate_against_loops(size):
    draws = random_subsets(8, size, 6, seed=size)
    fast = Surrogate(RECORDS, ["A", "C"], shrinkage=0.2).each(draws)
    for subset, values in zip(draws, fast, strict=True):
        for dev, value in zip("AC", values, strict=True):
            assert value == pytest.approx(slow_surrogate(RECORDS, subset, dev, 0.2))


def test_surrogate_with_parts_of_unequal_size():
    some = RECORDS[(RECORDS["task"] != "t0") | (RECORDS["shots"] == 0)]
    draws = random_subsets(8, 2, 28)
    fast = Surrogate(some, "A", shrinkage=0.2)(draws)
    slow = [slow_surrogate(some, subset, "A", 0.2) for subset in draws]
    np.testing.assert_allclose(fast, slow)


def test_surrogate_leaves_models_with_gaps_out():
    some = RECORDS.drop(index=0)
    assert len(task_table(some).values) == len(task_table(RECORDS).values) - 1


# Searches -------------------------------------------------------------------------


def test_searches_find_the_best_of_an_additive_objective():
    best = sorted(np.argsort(-VALUE)[:4].tolist())
    journal = Journal(total_value)
    assert best_of(journal, 10, 4).tasks.tolist() == best  # all 210 are tried
    assert greedy_search(journal, 10, 4)[-1].tasks.tolist() == best
    assert annealing(journal, 10, 4, steps=200).tasks.tolist() == best
    assert finalists(journal, total_value, 4).tasks.tolist() == best
    course = annealing(total_value, 10, 4, steps=50, seed=3).course
    assert (np.diff(course) >= 0).all()


@pytest.mark.parametrize("seed", range(3))
def test_searches_are_seeded_and_choose_distinct_tasks(seed):
    for search in (best_of, annealing, lambda *a, seed: beam_search(*a, seed=seed)[-1]):
        one, two = (search(total_value, 10, 4, seed=seed) for _ in range(2))
        assert one.tasks.tolist() == two.tasks.tolist() == sorted(set(one.tasks))
        assert len(one.tasks) == 4
        assert one.score == pytest.approx(VALUE[one.tasks].sum())


def test_greedy_counts():
    journal = Journal(total_value)
    greedy_search(journal, 10, 4)
    assert len(journal.kept) == 10 + 9 + 8 + 7  # no task twice
    again = Journal(total_value)
    beam_search(again, 10, 4, seed=0)
    assert len(again.kept) <= 10 + 4 * (3 + 2 + 2)


def test_random_subsets_are_distinct_or_all():
    assert len(random_subsets(10, 3, 1000)) == 120
    some = random_subsets(30, 3, 200, seed=1)
    assert len({tuple(row) for row in some}) == 200
    assert (np.diff(some, axis=1) > 0).all()


def test_a_killed_search_goes_on(tmp_path):
    path, calls = tmp_path / "journal.jsonl", []

    def dies(subsets):
        calls.append(len(subsets))
        if len(calls) == 5:
            raise KeyboardInterrupt
        return total_value(subsets)

    with pytest.raises(KeyboardInterrupt):
        annealing(Journal(dies, path, "x"), 10, 4, steps=30)
    with open(path, "a") as file:
        file.write('{"tas')
    before = len(path.read_text().splitlines()) - 2
    journal = Journal(total_value, path, "x")
    assert len(journal.kept) == before > 0
    found = annealing(journal, 10, 4, steps=30)
    whole = annealing(total_value, 10, 4, steps=30)
    assert found.tasks.tolist() == whole.tasks.tolist()
    lines = [json.loads(line) for line in path.read_text().splitlines()[1:]]
    assert len({tuple(line["tasks"]) for line in lines}) == len(lines)


def test_a_journal_in_parallel(tmp_path):
    draws = random_subsets(10, 3, 60)
    two = Journal(total_value, tmp_path / "j", "totals", batch=16, jobs=2)
    np.testing.assert_allclose(two(draws), total_value(draws))
    np.testing.assert_allclose(
        Journal(None, tmp_path / "j", "totals")(draws), two(draws)
    )


def test_a_journal_refuses(tmp_path):
    path = tmp_path / "j"
    path.write_text('{"about": "totals"}\nnonsense\n')
    with pytest.raises(ValueError, match="is no journal: name another file"):
        Journal(total_value, path, "totals")
    with pytest.raises(ValueError, match="needs about"):
        Journal(total_value, path)
    with pytest.raises(ValueError, match="gave no number"):
        Journal(lambda subsets: np.full(len(subsets), np.nan))([[0, 1]])


@pytest.mark.parametrize("text", ["my notes", '{"a": 1}\n{"b": 2}', "[1]\nx", "\n"])
def test_a_journal_leaves_other_files_alone(tmp_path, text):
    path = tmp_path / "notes.txt"
    path.write_text(text)
    with pytest.raises(ValueError, match="is no journal"):
        Journal(total_value, path, "totals")
    assert path.read_text() == text


def test_a_journal_forgives_blank_lines_and_a_torn_head(tmp_path):
    path = tmp_path / "j"
    path.write_text('{"about": "totals"}\n\n{"tasks": [0, 1], "score": 7}\n')
    assert Journal(None, path, "totals")([[1, 0]]) == [7]
    path.write_text('{"about": "to')  # killed while it was made
    assert Journal(total_value, path, "totals").kept == {}


@pytest.mark.parametrize(
    "subsets, words",
    [
        ([[0, 0]], "names a task twice"),
        ([[0, 99]], "unknown task 99"),
        ([[0, -1]], "unknown task -1"),
        ([["nothing", "t0"]], "unknown task 'nothing'"),
    ],
)
def test_a_surrogate_refuses_what_is_no_subset(subsets, words):
    formula = Surrogate(made_records(families=5))
    with pytest.raises(ValueError, match=words):
        formula(subsets)


def test_a_surrogate_takes_names_in_any_order():
    formula = Surrogate(made_records(families=5))
    expected = formula([[1, 4]])
    np.testing.assert_allclose(formula([["t4", "t1"]]), expected)
    np.testing.assert_allclose(formula([[4, 1]]), expected)


def test_nobody_judges_himself():
    records = made_records(families=5)
    for pairs in ([("A", "A")], [("A", "Q")], []):
        with pytest.raises(ValueError):
            evaluate_many(records, [[0, 1]], pairs)
    with pytest.raises(ValueError, match="take two families"):
        evaluate_subset(records, [0, 1], pairs=[("A", "A")])
    with pytest.raises(ValueError, match="take two families"):
        recovery(records, [0, 1], "A", test_family="A")
    with pytest.raises(ValueError, match="shrinkage must lie"):
        Surrogate(records, shrinkage=5)


# Clusters and lists ---------------------------------------------------------------


def test_task_value_by_a_loop():
    draws = random_subsets(10, 3, 40)
    scores = total_value(draws)
    value = task_value(draws, scores, 11)
    for task in range(10):
        held = [s for row, s in zip(draws, scores, strict=True) if task in row]
        assert value[task] == pytest.approx(np.mean(held))
    assert np.isnan(value[10])


def test_kmeans_chooses_distinct_valuable_tasks():
    vectors = np.random.default_rng(0).normal(size=(20, 5))
    value = np.arange(20.0)
    for size in (1, 4, 5, 9, 19):
        chosen = kmeans_subset(vectors, size, value)
        assert len(set(chosen)) == size and min(chosen) >= min(15, 20 - size)
        assert len(set(kmeans_subset(vectors, size))) == size


def test_published_lists():
    for name in ("best_of_5000", "greedy", "beam", "kmeans", "kmeans_value"):
        for budget in (4, 8, 16, 24, 32, 42):
            parts = published_small_bench(name, budget)
            twice = (name, budget) == ("kmeans", 32)  # as printed
            assert len(parts) == budget == len(set(parts)) + twice
    greedy = [published_small_bench("greedy", b) for b in (4, 8, 16, 24, 32, 42)]
    for short, long in combinations(greedy, 2):
        assert long[: len(short)] == short
    with pytest.raises(ValueError, match="there are lite, hard"):
        published_small_bench("light")
    with pytest.raises(ValueError, match="has no budget None"):
        published_small_bench("beam")


# Bad input ------------------------------------------------------------------------


def test_bad_input_in_one_line():
    lone = RECORDS[(RECORDS["family"] != "A") | (RECORDS["model"] == "A-0.1b")]
    few = RECORDS[RECORDS["family"] < "C"]
    cases = [
        (lambda: recovery(RECORDS, range(8), "A"), "a budget of 8 of 8 tasks"),
        (lambda: recovery(RECORDS, [], "A"), "a budget of 0 of 8 tasks"),
        (lambda: recovery(RECORDS, ["t9"], "A"), "unknown task 't9'"),
        (lambda: recovery(RECORDS, [8], "A"), "unknown task 8"),
        (lambda: recovery(RECORDS, [0], "Q"), "no family 'Q'"),
        (lambda: recovery(lone, [0], "A"), "family 'A' has one model"),
        (lambda: Surrogate(lone, "A"), "family 'A' has one model"),
        (lambda: NetworkRecovery(lone, "A"), "family 'A' has one model"),
        (lambda: evaluate_subset(few, [0]), "2 families"),
        (lambda: Surrogate(few, "A"), "2 families"),
        (lambda: recovery(RECORDS, [0], "A", unit="part"), "unit is task or subtask"),
        (lambda: best_of(total_value, 10, 11), "a budget of 11 of 10"),
        (lambda: greedy_search(total_value, 10, 10), "a budget of 10 of 10"),
        (lambda: annealing(total_value, 10, 0), "a budget of 0 of 10"),
        (lambda: kmeans_subset(np.eye(4), 4), "a budget of 4 of 4"),
        (lambda: finalists(Journal(total_value), total_value, 2), "search first"),
    ]
    for call, words in cases:
        with pytest.raises(ValueError, match=words) as caught:
            call()
        assert "\n" not in str(caught.value)
