"benchnb paired: what it says of missing rows, of clusters and of runs"

import json

import numpy as np
import pandas as pd
import pytest

from benchnb.cli.app import main

ITEMS = [f"{book}/{k}" for book in "abcdefgh" for k in range(25)]


@pytest.fixture
def call(tmp_path, monkeypatch, capsys):
    "Run a line in a folder with two tables of eight books, one of which B fails"
    monkeypatch.chdir(tmp_path)
    books = [name[0] for name in ITEMS]
    for name, failed in (("one", ""), ("two", "c")):
        scores = [float(book not in failed) for book in books]
        frame = pd.DataFrame({"item": ITEMS, "score": scores, "book": books})
        frame.to_csv(f"{name}.csv", index=False)

    def run(*words):
        code = main([*map(str, words)])
        out, err = capsys.readouterr()
        return code, out + err

    return run


def test_rows_that_one_table_lacks_are_named_and_not_counted(call):
    "B's table has only the rows that it got right"
    frame = pd.read_csv("two.csv").query("score == 1")
    frame.to_csv("right.csv", index=False)
    code, out = call("paired", "one.csv", "right.csv")
    text = " ".join(out.split())
    assert code == 0 and "175 in common" in text
    assert "25 items of A have no score in B, such as 'c/0'" in text
    assert "if missing rows are wrong answers, A - B is 12.5 points" in text
    code, out = call("paired", "right.csv", "one.csv")
    assert "25 items of B have no score in A" in " ".join(out.split())
    assert "missing rows" not in call("paired", "one.csv", "two.csv")[1]


@pytest.mark.parametrize("cluster", ["book", "prefix"])
def test_items_of_one_cluster_count_once(call, cluster):
    words = ["paired", "one.csv", "two.csv", "--json"]
    alone = json.loads(call(*words)[1])
    found = json.loads(call(*words, "--cluster", cluster)[1])
    assert alone["interval"][0] > 0.05 and alone["difference"] == 0.125
    assert found["interval"][0] < 0 and found["difference"] == 0.125
    assert (
        found["how"] == "8 clusters of items" and "takes the clusters" in found["note"]
    )
    code, out = call("gate", "one.csv", "two.csv", "--cluster", cluster)
    text = " ".join(out.split())
    assert code == 3 and f"Tasks count in 8 clusters of one {cluster} each" in text
    assert call("gate", "one.csv", "two.csv")[0] == 1
    code, out = call("gate", "one.csv", "two.csv", "--cluster", cluster, "--json")
    assert json.loads(out)["common"]["interval"][0] == -found["interval"][1]


def test_items_that_are_alike_are_said_to_be(call):
    "A whole book is lost, in 25 items; no word where the losses are scattered"
    text = " ".join(call("paired", "one.csv", "two.csv")[1].split())
    assert "items of one prefix are alike" in text
    assert "--cluster prefix counts each of the 8 once" in text
    frame = pd.read_csv("two.csv")
    frame["score"] = np.random.default_rng(0).permutation(frame["score"])
    frame.to_csv("mixed.csv", index=False)
    assert "are alike" not in call("paired", "one.csv", "mixed.csv")[1]
    words = ["paired", "one.csv", "two.csv", "--cluster", "book"]
    assert "are alike" not in call(*words)[1]


def test_the_gate_asks_for_whole_clusters(call):
    order = pd.read_csv("two.csv").head(0)
    order.to_csv("none.csv", index=False)
    part = pd.read_csv("two.csv").query("book in ['c', 'd', 'e', 'f', 'g', 'h']")
    part.iloc[1:].to_csv("part.csv", index=False)
    code, out = call("gate", "one.csv", "part.csv", "--cluster", "book", "--next", 99)
    names = out.split()
    assert code == 0 and len(names) == 51 and {name[0] for name in names} == {*"abc"}
    books = [name[0] for name in names]
    assert sum(x != y for x, y in zip(books, books[1:], strict=False)) == 2


MISTAKES = {
    "paired one.csv two.csv --cluster shelf": "neither of the two has such a column",
    "paired one.csv odd.csv --cluster book": "item 'a/0' of 'odd.csv' has two values",
    "paired one.csv x.csv --cluster book": "item 'x' of 'x.csv' has no 'book'",
    "paired one.csv two.csv --cluster score": "the number of clusters is",
    "paired one.csv two.csv --runs all": "--runs is these or any, got 'all'",
    "paired one.csv two.csv --runs these": "--runs these takes an evaluation",
    "race helm_medqa --models a,b --learn --runs any": "--learn is about these runs",
    "gate one.csv two.csv --cluster book --data helm_medqa": "predicts single tasks",
}


@pytest.mark.parametrize("line", MISTAKES)
def test_a_mistake_is_one_line(call, line):
    frame = pd.read_csv("one.csv")
    twice = pd.concat([frame, frame.head(1).assign(book="z")])
    twice.to_csv("odd.csv", index=False)
    more = pd.DataFrame({"item": ["x"], "score": [1.0]})
    pd.concat([frame, more]).to_csv("x.csv", index=False)
    code, out = call(*line.split())
    assert (code, out.count("\n")) == (2, 1) and MISTAKES[line] in out


def test_a_table_of_agents_is_raced_for_any_runs(call):
    "The four best agents of Terminal-Bench: each has one run in the table"
    table = pd.DataFrame(
        np.random.default_rng(0).integers(0, 2, (3, 40)) * 1.0,
        index=list("abc"),
        columns=[f"t{k}" for k in range(40)],
    )
    table.index.name = "model"
    table.reset_index().to_csv("plain.csv", index=False)
    code, out = call("race", "plain.csv", "--models", "a,b,c")
    assert code == 0 and "for these runs" in " ".join(out.split())
    code, out = call("race", "plain.csv", "--models", "a,b,c", "--runs", "any")
    text = " ".join(out.split())
    assert "for any runs" in text and "not decided" in text
    found = json.loads(
        call("race", "plain.csv", "--models", "a,b", "--runs", "any", "--json")[1]
    )
    assert found["best"] is None and found["these_runs"] is False
