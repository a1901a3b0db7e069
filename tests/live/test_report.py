"The report of an evaluation: its tasks, and what was asked of them"

import numpy as np
import pytest
from helpers.evaluations import evaluate, known_answers, tell_all
from helpers.small import table

from benchnb.cli.report import task_results
from benchnb.data.sources import load
from benchnb.evaluation.left_out import left_out_errors
from benchnb.evaluation.registry import get_method
from benchnb.live.evaluation import Evaluation


def test_tasks_have_intervals_and_counts():
    run = evaluate("aipw", many=True)
    rows = run.report()["tasks"]
    for task, part in rows.items():
        low, high = part["interval"]
        assert 0 <= low <= part["score"] <= high <= 1
        names = run.items["task"][list(run.answers)]
        assert part["items"] == (names == task).sum()
        assert part["few"] == (part["items"] < 5)
    assert run.method.budget_ == sum(part["items"] for part in rows.values())
    bare = evaluate("kmeans", errors=False).report()
    for part in bare["tasks"].values():  # a task that was asked whole is known
        assert part["interval"] == [None, None] or part["kind"] == "exact"


def test_a_test_that_changes_its_table_changes_no_other():
    "Full scores that one test wrote into a shared table left others without intervals"
    scores = table(1, 80)
    scores.models["full_score"], scores.values[:] = 0.5, 0
    again = table(1, 80)
    assert "full_score" not in again.models and again.values.any()


@pytest.mark.parametrize("method", ["aipw", "per_task(random)", "guarded_irt"])
def test_few_sources_leave_tasks_an_interval_from_their_random_items(method):
    source, target = table(1, 80).split("random", seed=0)
    few, truth = source.select(models=np.arange(12)), target.performance(by="task")
    errors, holds = left_out_errors(get_method(method), few, 40, 6), []
    for row, model in enumerate(target.models.index):
        live = Evaluation(get_method(method).fit(few), 40, errors=errors, source=few)
        tell_all(live, known_answers(row, target))
        for task, part in live.report()["tasks"].items():
            low, high = part["interval"]
            if part["items"] >= 5 and part["kind"] != "exact":
                assert part["kind"] == "design-based" and high - low < 0.95
                score = truth.loc[model, task]
                holds.append(low - 1e-6 <= score <= high + 1e-6)  # of 6 digits
    assert len(holds) > 30 and np.mean(holds) >= 0.93


def test_errors_of_the_sources_give_no_interval_to_a_model_unlike_them():
    source, target = table(1, 80).split("random", seed=0)
    errors = left_out_errors(get_method("guarded_irt"), source, 40, 5)
    live = Evaluation(
        get_method("guarded_irt").fit(source), 40, errors=errors, source=source
    )
    answers = known_answers(0, target)
    hard_first = source.values.mean(axis=0) < np.median(source.values.mean(axis=0))
    odd = dict(zip(target.items.index, hard_first.astype(float), strict=True))
    like = Evaluation(
        get_method("guarded_irt").fit(source), 40, errors=errors, source=source
    )
    tell_all(like, answers)
    kinds = {part["kind"] for part in like.report()["tasks"].values()}
    assert "conformal" in kinds
    tell_all(live, odd)
    report = live.report()
    assert "misfit" in report["flags"]
    for part in report["tasks"].values():
        assert part["kind"] != "conformal"
        if part["kind"] == "none":
            assert part["interval"] == [None, None]
    shown = task_results(report)
    some = any(part["kind"] == "none" for part in report["tasks"].values())
    assert some == any("unlike the sources" in note for note in shown.notes)


def test_where_neither_sources_nor_items_suffice_the_kind_says_so():
    few = table().select(models=np.arange(12))
    errors = left_out_errors(get_method("kmeans"), few, 20, 6)
    live = Evaluation(get_method("kmeans").fit(few), 20, errors=errors, source=few)
    tell_all(live, known_answers(row=12, scores=table()))  # a model like the sources
    for part in live.report()["tasks"].values():
        assert part["kind"] == "none" and part["interval"] == [0, 1]


@pytest.mark.parametrize("name", ["random", "aipw", "kmeans"])
def test_a_task_without_any_answer_has_no_score_and_no_rank(name):
    source, target = load("swebench_verified").split("random", seed=0)
    live = Evaluation(get_method(name).fit(source), 12, source=source)
    middle = int(np.argsort(target.truth().to_numpy())[len(target) // 2])
    tell_all(live, dict(zip(target.items.index, target.values[middle], strict=True)))
    report = live.report()
    shown = task_results(report).cells.set_index("task")
    unseen = [task for task, row in report["tasks"].items() if not row["items"]]
    assert 0 < len(unseen) < len(shown)
    for task, row in report["tasks"].items():
        known = task not in unseen
        ranked = known and "unchecked" not in report["flags"]
        assert ((row["score"] is not None), (row["rank"] is not None)) == (
            known,
            ranked,
        )
        assert (shown.loc[task, "score"] != "-") == known
    for task in unseen:
        assert report["tasks"][task]["interval"] == [None, None]


def test_missing_answers_make_no_ordinary_model_unlike_the_sources():
    "With half of the answers both figures of the guard vary more by chance"
    source, target = table(1, 80).split("random", seed=0)
    method = get_method("guarded_irt").fit(source)
    errors = left_out_errors(get_method("guarded_irt"), source, 30, 5)
    rng = np.random.default_rng(0)
    odd = []
    for row in range(len(target)):
        live = Evaluation(method, 30, errors=errors, source=source)
        answers = known_answers(row, target)
        for name in rng.choice(live.ask(), 14, replace=False):
            answers[name] = np.nan
        tell_all(live, answers)
        report = live.report()
        odd.append("misfit" in report["flags"])
        assert "all unscored wrong to all right" in report["how"]
    assert np.mean(odd) <= 0.1
