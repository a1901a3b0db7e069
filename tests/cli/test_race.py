"benchnb race: on a table, and live in folders"

import json
from pathlib import Path

import pandas as pd
import pytest
from helpers.logs import write_lm_eval_run
from helpers.small import table

from benchnb.cli.app import main
from benchnb.data.scores import Scores
from benchnb.live.evaluation import Evaluation


@pytest.fixture
def call(tmp_path, monkeypatch, capsys):
    "Give a command; what it printed, or the line of its error"
    monkeypatch.chdir(tmp_path)
    scores = table(1, 80)
    Scores(scores.values, models=scores.models).to_parquet("s.parquet")

    def give(line):
        code = main(line.split())
        out, err = capsys.readouterr()
        return err if code else out

    return give


@pytest.mark.slow
def test_on_a_table(call):
    play = "race s.parquet --models model-05,model-40,model-79"
    assert "winner    model-79 is the best of 3" in call(play)
    found = json.loads(call(f"{play} --json"))
    assert found["best"] == "model-79" and len(found["items"]) == 3
    learned = json.loads(call(f"{play} --learn --json"))
    assert learned["best"] == "model-79" and learned["share"] <= found["share"]
    assert "'nobody'" in call("race s.parquet --models nobody,model-05")
    assert "name one table" in call("race s.parquet b --models a,b")


def test_an_order_and_earlier_models_on_a_table(call):
    play = "race s.parquet --models model-05,model-40,model-79 --within 5"
    found = json.loads(call(f"{play} --order --json"))
    assert found["order"] == ["model-79", "model-40", "model-05"]
    assert found["undecided"] == []
    text = call(f"{play} --order")
    assert text.index("model-79") < text.index("model-40") < text.index("model-05")
    assert "order     the order is model-79, model-40, model-05 (95%)" in text
    told = json.loads(call(f"{play} --data s.parquet --json"))
    assert told["best"] == "model-79"
    assert "leave --order, --data out" in call(f"{play} --learn --order")
    assert "add --runs these" in call(f"{play} --data s.parquet --runs any")
    assert "--data is for a race on a table" in call("race a b --data s.parquet")
    assert "name the candidates in it with --models" in call("race s.parquet")


def test_the_leader_may_answer_first_on_a_table(call):
    play = "race s.parquet --models model-77,model-78,model-79 --within 5"
    first = json.loads(call(f"{play} --allocation leader-first --json"))
    assert first["best"] is not None
    assert "allocation must be all or leader-first" in call(f"{play} --allocation x")
    for line in (
        f"{play} --allocation leader-first --order",
        f"{play} --allocation leader-first --learn",
        "race a b --allocation leader-first",
    ):
        assert "is for the winner of a race on a table" in call(line)
    line = f"{play} --allocation leader-first --runs any"
    assert "of these runs: add --runs these" in call(line)


def test_live(call):
    plan = "plan s.parquet --method random --budget 60 --folds 0 --batch 20"
    for name in "abc":
        call(f"{plan} --harness list --out {name}")
    out = call("race a b c")
    assert "not decided: 3 candidates to go on with" in out
    assert all(f"benchnb tell {name} {name}/answers.csv" in out for name in "abc")
    for name, score in zip("abc", (0.0, 0.0, 1.0), strict=True):
        live = Evaluation.load(name)
        live.tell(pd.Series(score, live.ask()))
    out = call("race a b c")
    assert "winner    c is the best" in out and "out: c is better" in out
    found = json.loads(call("race a b c --json"))
    assert found["winner"] == "c" and found["ask"] == {}
    ranked = json.loads(call("race a b c --order --json"))
    assert ranked["order"][0] == "c" and {*ranked["ask"]} == {"a", "b"}
    assert ranked["undecided"] == [["a", "b"]]
    assert "not told apart: a and b" in " ".join(call("race a b c --order").split())
    assert "named twice" in call("race a a")
    assert "two candidates or more, got 1" in call("race a")
    call(f"{plan} --harness list --seed 1 --out d")
    assert "are asked different items: plan both" in call("race a d")


def test_spent_budgets_that_decide_nothing_say_what_is_next(call):
    for name in "ab":
        words = "--method random --budget 20 --folds 0 --batch 20 --harness list"
        call(f"plan s.parquet {words} --out {name}")
        live = Evaluation.load(name)
        live.tell(pd.Series([0.0, 1.0] * 10, live.ask()))
    out = " ".join(call("race a b").split())
    assert "all budgets are spent" in out and "benchnb paired" in out
    assert "to go on with" not in out


def test_a_race_on_logs_and_on_a_table_with_a_metric(call):
    for model, scores in (("org/a", [0.0] * 30), ("org/b", [1.0] * 30)):
        about = {"higher_is_better": {"t": {"wer": False}}}
        folder = Path("logs", model[-1])
        write_lm_eval_run(folder, model, {"t": scores}, metric="wer", **about)
    line = "race logs --models org/a,org/b"
    assert "--direction lower" in call(line)
    assert "org/a is the best of 2" in call(f"{line} --direction lower")
    frame = pd.DataFrame({"item": [f"q{k}" for k in range(30)]})
    parts = [frame.assign(model=name, score=x) for name, x in (("a", 0), ("b", 1))]
    pd.concat(parts).assign(metric="wer").to_csv("wer.csv", index=False)
    line = "race wer.csv --models a,b"
    assert "--direction lower" in call(line)
    assert "a is the best of 2" in call(f"{line} --direction lower")
    refused = call("race s.parquet --models m0,m1 --scale 0,10")
    assert "nothing is read from logs: leave --scale out" in refused


def test_two_metrics_are_asked_about_before_a_race(call):
    frame = pd.DataFrame({"model": ["a", "b"] * 2, "item": "q", "score": 1})
    frame.assign(metric=["acc", "acc", "f1", "f1"]).to_csv("two.csv", index=False)
    assert "--metric acc or f1" in call("race two.csv --models a,b")
