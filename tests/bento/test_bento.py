"Choosing tasks: the queue, the frame, matrices with names, and what is refused"

import numpy as np
import pandas as pd
import pytest
from helpers.small import halves, table

from benchnb.bento.bento import (
    BentoLe,
    BentoSim,
    Bm25Sim,
    RandomTasks,
    ResultsSim,
    TaskList,
    task_queue,
)
from benchnb.bento.transfer import Transfer, read_transfer
from benchnb.data.scores import Scores
from benchnb.evaluation.registry import get_method, load_method, save_method
from benchnb.evaluation.simulate import prepare_method, simulate

NAMES = ["algebra", "logic", "reading"]
SIZES = {"algebra": 30, "logic": 20, "reading": 10}


def transfer(seed=0, draws=4, tasks=NAMES):
    "A made-up transfer matrix"
    values = np.random.default_rng(seed).random((draws, len(tasks), len(tasks)))
    return Transfer(tuple(tasks), values, np.full((draws, len(tasks)), 9))


@pytest.mark.parametrize("seed", range(5))
def test_the_queue_against_a_slow_reference(seed):
    rng = np.random.default_rng(seed)
    task = rng.integers(4, size=40)
    order = rng.permutation(4)
    queue = task_queue(task, order, np.random.default_rng(seed))
    uniforms, slow = np.random.default_rng(seed).random(40), []
    for place in order:
        slow += sorted(np.flatnonzero(task == place), key=lambda i: uniforms[i])
    assert queue.tolist() == slow


def test_whole_tasks_are_exact():
    "With all items of two tasks the estimate is their weighted mean"
    source, target = halves()
    method = prepare_method(TaskList(tasks=["logic", "reading"]).fit(source), 30)
    found = simulate(method, target)
    by_task = target.performance(by="task")
    weight = source.items.groupby("task")["weight"].sum()
    two = ["logic", "reading"]
    expected = by_task[two] @ weight[two] / weight[two].sum()
    np.testing.assert_allclose([e.score for e in found], expected, atol=1e-6)
    assert np.isnan(found[0].per_task["algebra"])


def test_the_interval_holds_as_promised():
    source, target = table(n_models=200).split("random", seed=0)
    for name in ("random_tasks", "results_sim"):
        found = simulate(get_method(name).fit(source), target, 30, 1)
        inside = [
            e.interval[0] <= t <= e.interval[1]
            for e, t in zip(found, target.truth(), strict=True)
        ]
        assert np.mean(inside) > 0.85, name


@pytest.mark.parametrize("kind", [BentoSim, BentoLe])
def test_a_saved_method_needs_no_matrix(kind, tmp_path):
    source, target = halves()
    method = prepare_method(kind().fit(source, transfer()), 20)
    save_method(method, tmp_path)
    again = load_method(tmp_path)
    before, after = (simulate(m, target) for m in (method, again))
    assert [e.score for e in before] == [e.score for e in after]
    prepare_method(again, 30)  # another budget: the order is stored


def test_a_corrected_method_keeps_its_line_but_not_its_sources(tmp_path):
    source, _ = halves()
    save_method(prepare_method(ResultsSim().fit(source), 20), tmp_path)
    with pytest.raises(ValueError, match="loaded without its sources: fit it again"):
        prepare_method(load_method(tmp_path), 30)


def test_tasks_without_weight_come_last():
    source, _ = halves()
    weight = (source.items["task"] != "reading").astype(float)
    source = Scores(source.values, source.items.assign(weight=weight), source.models)
    for seed in range(10):
        method = prepare_method(RandomTasks().fit(source), 50, seed)
        chosen = source.items["task"].iloc[method.coreset_]
        assert "reading" not in set(chosen)


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda: BentoLe(dims=3), "dims must be from 1 to 2, got 3"),
        (lambda: TaskList(tasks=5), "tasks must be a list of names, got 5"),
        (lambda: TaskList(tasks=["logic", "logic"]), "cannot use 'logic'"),
    ],
)
def test_settings_that_are_refused(make, match):
    with pytest.raises((ValueError, TypeError), match=match):
        make().fit(halves()[0], transfer())


@pytest.mark.parametrize(
    ("side", "match"),
    [
        (None, "needs a transfer matrix"),
        (np.ones((2, 2)), "does not fit 3 tasks"),
        (np.full((3, 3), np.nan), "not a finite number"),
        (pd.DataFrame(np.eye(2), ["a", "b"], ["a", "c"]), "the same tasks in rows"),
        ("matrix.csv", "matrix.csv"),
        (transfer(tasks=["algebra", "logic", "soup"]), "has no task 'reading'"),
    ],
)
def test_matrices_that_are_refused(side, match):
    with pytest.raises((ValueError, FileNotFoundError), match=match):
        BentoSim().fit(halves()[0], side)


def test_gaps_in_the_sources_results():
    values = np.random.default_rng(0).random((6, 3))
    items = pd.DataFrame({"task": ["a", "b", "c"]})
    holes = values.copy()
    holes[:, 2] = np.nan  # a task that nobody has a score for
    assert sorted(ResultsSim().fit(Scores(holes, items)).order_) == [0, 1, 2]
    holes = values.copy()
    holes[:5, 1] = holes[5, 0] = np.nan
    with pytest.raises(ValueError, match="leave out task 'b', which 5 sources lack"):
        ResultsSim().fit(Scores(holes, items))


def test_the_command_line_takes_a_matrix(tmp_path, capsys):
    from benchnb.cli.app import main

    table().to_parquet(tmp_path / "table.parquet")
    transfer().to_csv(tmp_path / "matrix.csv")
    given = ["compare", str(tmp_path / "table.parquet"), "--methods", "bento_sim"]
    given += ["--budgets", "20", "--trials", "1"]
    assert main([*given, "--transfer", str(tmp_path / "matrix.csv")]) in (0, None)
    assert "bento_sim" in capsys.readouterr().out
    assert main(given) == 2
    assert "needs a transfer matrix" in capsys.readouterr().err


def test_matrices_from_files(tmp_path):
    side, source = transfer(), halves()[0]
    long, wide = tmp_path / "long.csv", tmp_path / "wide.csv"
    side.to_csv(long)
    pd.DataFrame(side.matrix, NAMES, NAMES).to_csv(wide)
    expected = BentoSim().fit(source, side).order_.tolist()
    for path in (long, wide):
        assert BentoSim(transfer=str(path)).fit(source).order_.tolist() == expected
    with pytest.raises(FileNotFoundError, match="check the path"):
        read_transfer(tmp_path / "none.csv")


def test_tasks_that_are_all_alike():
    items = pd.DataFrame({"task": ["b", "a"], "text": ["same words", "same words"]})
    scores = Scores(np.array([[0.5, 0.5], [0.2, 0.2]]), items)
    for kind in (Bm25Sim, ResultsSim):
        method = kind().fit(scores)
        assert [method.tasks_[i] for i in method.order_] == ["a", "b"]  # by name
