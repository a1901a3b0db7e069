"benchnb race: on a table, and live in folders"

import json

import pandas as pd
import pytest
from helpers.small import table

from benchnb.cli.app import main
from benchnb.data.scores import Scores
from benchnb.live.evaluation import Evaluation


@pytest.fixture
def call(tmp_path, monkeypatch, capsys):
    "Give a command; its exit code and what it printed"
    monkeypatch.chdir(tmp_path)
    scores = table(1, 80)
    Scores(scores.values, models=scores.models).to_parquet("s.parquet")

    def say(*argv):
        code = main([str(word) for word in argv])
        out, err = capsys.readouterr()
        assert max(map(len, out.splitlines()), default=0) <= 80 or "--json" in argv
        return code, out, err

    return say


def test_on_a_table(call):
    names = ["model-05", "model-40", "model-79"]
    play = ["race", "s.parquet", "--models", ",".join(names)]
    code, out, err = call(*play)
    assert code == 0 and "winner    model-79 is the best of 3" in out, err
    found = json.loads(call(*play, "--json")[1])
    assert found["best"] == "model-79" and set(found["items"]) == set(names)
    learned = json.loads(call(*play, "--learn", "--json")[1])
    assert learned["best"] == "model-79" and learned["share"] <= found["share"]
    assert "'nobody'" in call("race", "s.parquet", "--models", "nobody,model-05")[2]
    assert "name one table" in call("race", "s.parquet", "b", "--models", "a,b")[2]


def test_live(call):
    plan = ["plan", "s.parquet", "--method", "random", "--budget", 60, "--folds", 0]
    for name in "abc":
        call(*plan, "--batch", 20, "--harness", "list", "--out", name)
    code, out, err = call("race", "a", "b", "c")
    assert code == 0 and "not decided: 3 candidates to go on with" in out, err
    assert out.count("benchnb tell ") == 3
    for name, score in zip("abc", (0.0, 0.0, 1.0), strict=True):
        live = Evaluation.load(name)
        live.tell(pd.Series(score, live.ask()))
    code, out, err = call("race", "a", "b", "c")
    assert code == 0 and "winner    c is the best" in out and "out: c is better" in out
    found = json.loads(call("race", "a", "b", "c", "--json")[1])
    assert found["winner"] == "c" and found["ask"] == {}
    assert "named twice" in call("race", "a", "a")[2]
    assert "two candidates or more, got 1" in call("race", "a")[2]
    call(*plan, "--batch", 20, "--harness", "list", "--seed", 1, "--out", "d")
    assert "are asked other items: plan both" in call("race", "a", "d")[2]
