"Repeated runs that are told to an evaluation: added up, told twice, loaded again"

import json

import numpy as np
import pandas as pd
import pytest

from benchnb.data.scores import Scores
from benchnb.evaluation.method import Estimand
from benchnb.evaluation.registry import get_method
from benchnb.harnesses.harness import get_harness
from benchnb.live.answers import log_answers
from benchnb.live.evaluation import Evaluation
from benchnb.live.store import ANSWERS_FILE, STORE_FILE


def sources():
    rng = np.random.default_rng(0)
    theta, hard = rng.normal(0, 1, (12, 1)), rng.normal(0, 1, 20)
    return Scores(rng.random((12, 20)) < 1 / (1 + np.exp(hard - theta)))


def started(folder=None):
    return Evaluation(get_method("random").fit(sources()), budget=6, folder=folder)


def test_later_runs_add_up_and_a_repeated_run_is_the_same_run(tmp_path):
    live = started(tmp_path / "it")
    asked = live.ask()
    live.tell({name: {"first": 1} for name in asked})
    assert live.report()["interval_of"] == Estimand.RUN
    assert live.estimate().score == 1
    later = {name: {"second": 0, "third": 1} for name in asked[:3]}
    live.tell(later)
    once = live.estimate()
    assert once.score == pytest.approx((3 * 2 / 3 + 3) / 6)
    assert once.estimand is Estimand.EXPECTED
    before = (tmp_path / "it" / STORE_FILE).read_bytes()
    live.tell(later)  # the same report again
    assert (tmp_path / "it" / STORE_FILE).read_bytes() == before
    again = Evaluation.load(tmp_path / "it")
    assert again.told.runs == live.told.runs and again.answers == live.answers
    assert again.estimate().interval == once.interval
    assert again.report()["runs"] == 12
    again.tell({asked[0]: {"second": 1}})  # the file of the second run was mended
    assert again.answers[asked[0]] == 1


def test_a_count_weighs_and_single_answers_stay_as_they_were(tmp_path):
    live = started()
    asked = live.ask()
    live.tell({name: {"all": [0.6, 5], "more": 0} for name in asked})
    assert live.answers[asked[0]] == pytest.approx(0.5)
    with pytest.raises(ValueError, match="begin a new evaluation"):
        live.tell({asked[0]: 1})  # not a run that could be added
    plain = started(tmp_path / "old").tell(dict.fromkeys(asked, 1))
    table = pd.read_csv(tmp_path / "old" / ANSWERS_FILE)
    assert "trials" not in table and {*table["score"]} == {1.0}
    assert Evaluation.load(tmp_path / "old").estimate() is not None
    with pytest.raises(ValueError, match="begin a new evaluation"):
        plain.tell({asked[0]: {"second": 0}})
    plain.tell({asked[0]: {"first": 1}})  # the same answer, now with its run
    plain.tell({asked[0]: {"second": 0}})
    assert plain.answers[asked[0]] == 0.5


def test_harbor_names_its_runs(tmp_path):
    items, live = sources().items, started()
    asked = live.ask()
    logs = []
    for number, reward in enumerate([1.0, 0.0, 1.0]):
        for name in asked:
            folder = tmp_path / f"{name}.{number}"
            folder.mkdir()
            trial = {"task_name": name, "id": f"{name}-{number}"}
            trial["verifier_result"] = {"rewards": {"reward": reward}}
            (folder / "result.json").write_text(json.dumps(trial))
            logs += get_harness("harbor").read(folder / "result.json")
            logs[-1].model = "mine"
    live.tell(log_answers(logs[: len(asked)], items))
    for _ in range(2):  # the whole folder, twice
        live.tell(log_answers(logs, items))
        assert live.answers[asked[0]] == pytest.approx(2 / 3)
        assert live.report()["runs"] == 3 * len(asked)


@pytest.mark.parametrize("name", ["adaptive_irt", "guarded_irt(rounds=5)"])
def test_later_runs_of_an_adaptive_test_give_what_all_at_once_gives(name):
    rng = np.random.default_rng(0)
    ease, theta = rng.normal(0, 1, 40), rng.normal(0, 1, (30, 1))
    table = Scores(rng.random((30, 40)) < 1 / (1 + np.exp(-ease - theta)))
    method = get_method(name, folds=2).fit(table)
    first = dict(zip(table.items.index, table.values[3], strict=True))
    second = dict(zip(table.items.index, table.values[5], strict=True))

    def answered(live, runs):
        while asked := live.ask():
            live.tell({n: {k: run[n] for k, run in runs.items()} for n in asked})
        return live

    together = answered(Evaluation(method, 12), {"a": first, "b": second})
    apart = answered(Evaluation(method, 12), {"a": first})
    once = list(apart.answers)
    apart.tell({n: {"b": second[n]} for n in once})
    assert apart.ask()  # other tasks tell more now, and are asked with both runs
    answered(apart, {"a": first, "b": second})
    assert apart.estimate().score == together.estimate().score
    assert apart.estimate().interval == together.estimate().interval
    assert apart.rounds == together.rounds
