"Marks of validity and metrics of plain tables, in import, tell, estimate, paired, gate"

import json

import numpy as np
import pandas as pd
import pytest

from benchnb.cli.app import main
from benchnb.data.scores import Scores

ITEMS = [f"q{k:02}" for k in range(40)]


@pytest.fixture
def call(tmp_path, monkeypatch, capsys):
    "Fourteen earlier models in sources.csv; gives the exit code and what was printed"
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    names = [f"m{k}" for k in range(14)]
    rows = [(model, item) for model in names for item in ITEMS]
    frame = pd.DataFrame(rows, columns=["model", "item"])
    frame["score"] = (rng.random(len(frame)) < 0.6).astype(int)
    frame.to_csv("sources.csv", index=False)

    def give(*words, status=0):
        assert main([*map(str, words)]) == status
        return "".join(capsys.readouterr())

    return give


def answers(name, **columns):
    "A table of one model: wrong on every fourth item"
    frame = pd.DataFrame({"item": ITEMS, "score": [int(k % 4 > 0) for k in range(40)]})
    frame.assign(**columns).to_csv(name, index=False)


def test_import_says_how_many_rows_do_not_count(call):
    frame = pd.read_csv("sources.csv").assign(valid=True)
    frame.loc[:2, "valid"] = False
    frame.to_csv("marked.csv", index=False)
    out = call("import", "table", "marked.csv", "--out", "marked.parquet")
    assert "rows without a score: 3, which do not count by the column 'valid'" in out
    assert np.isnan(Scores.from_parquet("marked.parquet").values).sum() == 3
    frame.assign(error="Timeout").drop(columns="valid").to_csv("e.csv", index=False)
    out = call("import", "table", "e.csv", "--out", "e.parquet", status=2)
    assert "(--columns invalid=error or valid=score)" in out
    line = ["import", "table", "e.csv", "--out", "e.parquet", "--columns"]
    call(*line, "valid=score")
    assert not np.isnan(Scores.from_parquet("e.parquet").values).any()


def test_tell_and_estimate_keep_the_reason(call):
    call("plan", "sources.csv", "--method", "aipw", "--budget", 10, "--out", "run")
    answers("new.csv", is_valid=[k % 4 > 0 for k in range(40)])
    assert "rows without a score: 10" in call("tell", "run", "new.csv")
    report = json.loads(call("estimate", "run", "--json"))
    assert report["failures"] == {"invalid": len(report["unscored"])}
    assert report["unscored"]
    answers("broken.csv", exception=["" if k % 4 else "x" for k in range(40)])
    call("plan", "sources.csv", "--method", "aipw", "--budget", 10, "--out", "two")
    out = call("tell", "two", "broken.csv", status=2)
    assert "benchnb import list broken.csv --columns invalid=exception" in out


def test_trials_keep_the_reason_too(call):
    call("plan", "sources.csv", "--method", "aipw", "--budget", 10, "--out", "run")
    answers("new.csv", trials=1, is_valid=[k % 4 > 0 for k in range(40)])
    call("tell", "run", "new.csv")
    report = json.loads(call("estimate", "run", "--json"))
    assert report["failures"] == {"invalid": len(report["unscored"])} != {"invalid": 0}


def test_paired_and_gate_leave_invalid_rows_out(call):
    answers("old.csv")
    answers("new.csv", status=["ok" if k % 4 else "infra_error" for k in range(40)])
    out = call("paired", "new.csv", "old.csv")
    assert "30 in common" in out and "rows without a score: 10" in out
    out = call("gate", "old.csv", "new.csv", status=3)
    assert "Tasks without a score, which count as right and wrong: 10" in out
    answers("doubt.csv", status=["ok" if k % 4 else "timeout" for k in range(40)])
    for line in (["paired", "doubt.csv", "old.csv"], ["gate", "old.csv", "doubt.csv"]):
        assert "--columns invalid=status or valid=score" in call(*line, status=2)
    read = ["import", "list", "doubt.csv", "--columns", "valid=score", "--model", "n"]
    call(*read, "--out", "read.parquet")
    assert "40 in common" in call("paired", "read.parquet", "old.csv")


def test_metrics_of_tables_in_import_tell_paired_and_gate(call):
    frame = pd.read_csv("sources.csv")
    parts = [frame.assign(metric="acc"), frame.assign(metric="wer", score=0.25)]
    pd.concat(parts).to_csv("both.csv", index=False)
    out = call("import", "table", "both.csv", "--out", "b.parquet", status=2)
    assert "(--metric acc or wer)" in out and "--repeated" not in out
    line = ["import", "table", "both.csv", "--out", "b.parquet", "--metric", "wer"]
    assert "(--direction lower)" in call(*line, status=2)
    call(*line, "--direction", "lower")
    assert (Scores.from_parquet("b.parquet").values == 0.75).all()
    answers("wer.csv", metric="wer")
    answers("acc.csv", metric="acc")
    call("plan", "b.parquet", "--method", "aipw", "--budget", 10, "--out", "run")
    assert "no metric 'wer'" in call("tell", "run", "acc.csv", status=2)
    call("tell", "run", "wer.csv")  # in the direction of the sources
    assert json.loads(call("estimate", "run", "--json"))["exact"] == 0.25
    assert "(--direction lower)" in call("paired", "wer.csv", "acc.csv", status=2)
    out = call("paired", "wer.csv", "acc.csv", "--direction", "lower", status=2)
    assert "metric of all is wer in A, acc in B" in out
    answers("other.csv", metric="wer")
    out = call("gate", "wer.csv", "other.csv", "--direction", "lower", status=3)
    assert "new 25.0, old 25.0" in out


def test_a_second_tell_by_another_metric_is_refused(call):
    call("plan", "sources.csv", "--method", "aipw", "--budget", 10, "--out", "run")
    answers("acc.csv", metric="acc")
    pd.read_csv("acc.csv")[:3].to_csv("first.csv", index=False)
    answers("f1.csv", metric="f1")
    call("tell", "run", "first.csv")
    assert "no metric 'acc'" in call("tell", "run", "f1.csv", status=2)
    call("tell", "run", "acc.csv")


@pytest.mark.parametrize("column", ["hash", "question", "text"])
def test_another_question_under_the_same_name_is_refused(call, column):
    texts = [f"What is {k} + {k}?" for k in range(40)]
    frame = pd.read_csv("sources.csv")
    frame[column] = frame["item"].map(dict(zip(ITEMS, texts, strict=True)))
    frame.to_csv("sources.csv", index=False)
    call("import", "table", "sources.csv", "--out", "s.parquet")
    call("plan", "s.parquet", "--method", "aipw", "--budget", 10, "--out", "run")
    answers("edited.csv", **{column: [*texts[:-2], "Who?", "Why?"]})
    refused = (
        "item q38 is another question in 'edited.csv' than in the sources (2 of 40"
    )
    assert refused in call("tell", "run", "edited.csv", status=2)
    call("import", "list", "edited.csv", "--model", "n", "--out", "edited.parquet")
    assert "'edited.parquet'" in call("tell", "run", "edited.parquet", status=2)
    answers("spaced.csv", **{column: [text.replace(" ", "  ") for text in texts]})
    words = ("paired", "edited.csv", "spaced.csv")
    assert "2 of 40 differ" in call(*words, status=2)
    call("tell", "run", "spaced.csv")


def test_a_hash_of_another_kind_tells_nothing(call):
    frame = pd.read_csv("sources.csv")
    frame["hash"] = frame["item"] + "0" * 16
    frame.to_csv("sources.csv", index=False)
    call("plan", "sources.csv", "--method", "aipw", "--budget", 10, "--out", "run")
    answers("new.csv", question_hash=[f"{name}1{'0' * 15}" for name in ITEMS])
    call("tell", "run", "new.csv")
