"Every formula leads to code, and slow versions of those that no other test has"

import numpy as np
import pandas as pd
import pytest

from benchnb.bento.bento import choose_tasks
from benchnb.bento.similarity import (
    cosine_similarity,
    normalise_columns,
    transfer_similarity,
)
from benchnb.papers import equations
from benchnb.papers.published import PAPERS
from benchnb.stats.medoids import item_distances
from benchnb.stats.metrics import mae, nrmse
from tools.run import ROOT


def accuracies(seed, tasks=6):
    return np.random.default_rng(seed).uniform(0.2, 0.8, (tasks, tasks))


def test_every_formula_leads_to_code_and_every_mark_to_a_formula():
    keys = [(formula.paper, formula.number) for formula in equations.FORMULAS]
    assert len(keys) == len(set(keys)) and {paper for paper, _ in keys} == set(PAPERS)
    for formula in equations.FORMULAS:
        assert (ROOT / "nbs" / formula.chapter()).is_file()
        assert formula.resolve().__doc__
    marked = equations.marked_tests(ROOT / "tests")
    assert set(marked) <= set(keys)
    untested = [key for key in keys if key not in marked]
    assert not untested


@pytest.mark.parametrize("paper", PAPERS)
def test_tables_have_a_row_for_each_formula_and_parameter(paper):
    rows = equations.formula_table(paper, ROOT / "tests").splitlines()
    assert len(rows) == 2 + sum(f.paper == paper for f in equations.FORMULAS)
    assert len(equations.parameter_table(paper).splitlines()) > 8


def test_a_name_that_is_gone_is_an_error():
    gone = equations.Formula("bento", "9", "", "bento.bento.no_such_name")
    with pytest.raises(AttributeError, match="no_such_name"):
        gone.resolve()


@pytest.mark.equation("tailored_bench", "1")
@pytest.mark.parametrize("right_or_wrong", [True, False])
def test_an_item_is_the_vector_of_its_scores_by_each_source(right_or_wrong):
    rng = np.random.default_rng(0)
    table = rng.random((4, 7))  # sources x items
    if right_or_wrong:
        table = (table < 0.5).astype(float)
    vectors = [[table[source, item] for source in range(4)] for item in range(7)]
    distances = item_distances(table)
    for one, first in enumerate(vectors):
        for two, second in enumerate(vectors):
            gaps = [abs(a - b) for a, b in zip(first, second, strict=True)]
            assert distances[one, two] == pytest.approx(sum(gaps), abs=1e-5)


@pytest.mark.equation("bento", "2")
@pytest.mark.parametrize("seed", range(3))
def test_columns_less_their_means(seed):
    matrix = accuracies(seed)
    centred = normalise_columns(matrix, "centred")
    for j in range(6):
        mean = sum(matrix[i, j] for i in range(6)) / 6
        for i in range(6):
            assert centred[i, j] == pytest.approx(matrix[i, j] - mean)


@pytest.mark.equation("bento", "3")
@pytest.mark.parametrize("seed", range(3))
def test_similarity_is_a_constant_less_the_distance(seed):
    matrix = accuracies(seed)
    centred = normalise_columns(matrix, "centred")
    similar = transfer_similarity(matrix, "centred")
    sums = set()
    for i in range(6):
        for j in range(6):
            squares = sum((centred[i, k] - centred[j, k]) ** 2 for k in range(6))
            sums.add(round(similar[i, j] + squares**0.5, 8))
    assert len(sums) == 1  # c


@pytest.mark.equation("bento", "6")
def test_cosine_of_two_rows():
    points = np.random.default_rng(0).normal(size=(5, 3))
    cosine = cosine_similarity(points)
    for i in range(5):
        for j in range(5):
            product = sum(a * b for a, b in zip(points[i], points[j], strict=True))
            lengths = [sum(a * a for a in points[k]) ** 0.5 for k in (i, j)]
            assert cosine[i, j] == pytest.approx(product / lengths[0] / lengths[1])


@pytest.mark.equation("bento", "7")
def test_nrmse_as_the_authors_compute_it():
    "The print lacks the square below the line; the printed numbers have it"
    truth = [0.5, 0.6, 0.7]
    guess = [0.4, 0.7, 0.7]
    above = sum((s - t) ** 2 for s, t in zip(guess, truth, strict=True))
    below = sum(t**2 for t in truth)
    assert nrmse(np.array(truth), np.array(guess)) == pytest.approx(
        (above / below) ** 0.5
    )


@pytest.mark.equation("bento", "algorithm 1")
def test_algorithm_1_is_equations_3_and_5_in_turn():
    matrix = accuracies(1)
    similar = transfer_similarity(matrix)
    chosen: list[int] = []
    for _ in range(3):
        gains = {}
        for task in set(range(6)) - set(chosen):
            nearest = [max(row[k] for k in [*chosen, task]) for row in similar]
            gains[task] = sum(nearest)
        chosen.append(max(gains, key=gains.get))
    names = [f"task {i}" for i in range(6)]
    steps, _ = choose_tasks(pd.DataFrame(matrix, names, names), 3)
    assert steps["task"].tolist() == [names[task] for task in chosen]


@pytest.mark.equation("collaborative_filtering", "5")
def test_mean_absolute_error_in_a_loop():
    truth = [0.5, 0.6, 0.9]
    guess = [0.4, 0.8, 0.9]
    errors = [abs(p - q) for p, q in zip(truth, guess, strict=True)]
    assert mae(np.array(truth), np.array(guess)) == pytest.approx(sum(errors) / 3)
