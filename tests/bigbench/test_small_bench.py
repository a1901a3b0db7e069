"Small-bench: searches, interrupted searches, clusters, printed lists"

import numpy as np
import pytest

from benchnb.bigbench.recovery import draw_distinct_subsets
from benchnb.bigbench.small_bench import (
    AUTHORS_ANNEALING,
    CachedObjective,
    beam_search,
    best_of,
    greedy_search,
    kmeans_subset,
    published_small_bench,
    rescore_best,
    simulated_annealing,
    task_value,
)
from benchnb.evaluation.journal import Journal

VALUE = np.random.default_rng(7).random(10)
GIVEN = (10, 4)


def total_value(subsets):
    "The sum of the values of the chosen tasks"
    return VALUE[np.asarray(subsets)].sum(axis=1)


@pytest.mark.equation("predicting_big_bench", "section 5.2 d")
def test_searches_find_the_best_of_an_additive_objective():
    best = sorted(np.argsort(-VALUE)[:4].tolist())
    cached = CachedObjective(total_value)
    found = best_of(cached, *GIVEN), greedy_search(cached, *GIVEN)[-1]
    found += simulated_annealing(cached, *GIVEN, steps=200), rescore_best(
        cached, total_value, 4
    )
    assert [one.tasks.tolist() for one in found] == [best] * 4


@pytest.mark.parametrize("search", [best_of, simulated_annealing, beam_search])
@pytest.mark.parametrize("seed", range(2))
def test_searches_are_seeded_and_choose_distinct_tasks(seed, search):
    one, two = (search(total_value, *GIVEN, seed=seed) for _ in range(2))
    if search is beam_search:
        one, two = one[-1], two[-1]
    assert one.tasks.tolist() == two.tasks.tolist() == sorted(set(one.tasks))
    assert len(one.tasks) == 4
    assert one.score == pytest.approx(VALUE[one.tasks].sum())


@pytest.mark.parametrize("size, changes", [(24, 2), (4, 1)])
def test_a_step_of_annealing_replaces_a_tenth(size, changes):
    searched = CachedObjective(lambda some: np.zeros(len(some)))  # all are accepted
    given = AUTHORS_ANNEALING | dict(steps=20, chains=1)
    simulated_annealing(searched, 60, size, **given)
    asked = [set(subset) for subset in searched.known]
    steps = [len(b - a) for a, b in zip(asked[:-1], asked[1:], strict=True)]
    assert set(map(len, asked)) == {size} and max(steps) == changes


def test_a_killed_search_goes_on(tmp_path):
    path, calls = tmp_path / "journal.db", []

    def dies(subsets):
        calls.append(len(subsets))
        if len(calls) == 5:
            raise KeyboardInterrupt
        return total_value(subsets)

    with pytest.raises(KeyboardInterrupt), Journal(path, "x") as journal:
        simulated_annealing(CachedObjective(dies, journal), *GIVEN, steps=30)
    with Journal(path, "x") as journal:
        cached = CachedObjective(total_value, journal)
        assert len(cached.known) == sum(map(len, journal.done.values())) > 0
        found = simulated_annealing(cached, *GIVEN, steps=30)
    whole = simulated_annealing(total_value, *GIVEN, steps=30)
    assert found.tasks.tolist() == whole.tasks.tolist()


@pytest.mark.equation("predicting_big_bench", "section 5.2 g")
def test_task_value_by_a_loop():
    draws = draw_distinct_subsets(10, 3, 40)
    scores = total_value(draws)
    value = task_value(draws, scores, 11)
    for task in range(10):
        held = [s for row, s in zip(draws, scores, strict=True) if task in row]
        assert value[task] == pytest.approx(np.mean(held))
    assert np.isnan(value[10])


def test_kmeans_chooses_distinct_valuable_tasks():
    vectors = np.random.default_rng(0).normal(size=(20, 5))
    value = np.arange(20.0)
    for size in (1, 5, 9, 19):
        chosen = kmeans_subset(vectors, size, value)
        assert len(set(chosen)) == size and min(chosen) >= min(15, 20 - size)
        assert len(set(kmeans_subset(vectors, size))) == size


@pytest.mark.parametrize(
    "call, words",
    [
        (lambda: best_of(total_value, 10, 11), "11 of 10 tasks"),
        (lambda: greedy_search(total_value, 10, 10), "10 of 10 tasks"),
        (lambda: simulated_annealing(total_value, 10, 0), "0 of 10 tasks"),
        (lambda: kmeans_subset(np.eye(4), 4), "4 of 4 tasks"),
        (lambda: published_small_bench("light"), "no list 'light'"),
    ],
)
def test_bad_input_is_refused(call, words):
    with pytest.raises(ValueError, match=words):
        call()
