"Tasks by a transfer matrix: from a file, and in other commands"

import json

import numpy as np
import pandas as pd
import pytest

from benchnb.bento.transfer import Transfer
from benchnb.cli.app import main
from benchnb.data.scores import Scores
from benchnb.evaluation.registry import get_method

NAMES = ["algebra", "logic", "reading", "art"]


def results():
    "24 models on 5 items of each task"
    items = pd.DataFrame({"task": np.repeat(NAMES, 5)}, [f"i{n}" for n in range(20)])
    rng = np.random.default_rng(1)
    return Scores(rng.binomial(1, np.linspace(0.2, 0.8, 24)[:, None], (24, 20)), items)


@pytest.fixture
def matrix(tmp_path, monkeypatch):
    "A made-up matrix in a file, and as a square table"
    monkeypatch.chdir(tmp_path)
    values = np.random.default_rng(0).random((4, 4, 4))
    found = Transfer(tuple(NAMES), values, np.full((4, 4), 9))
    found.to_csv("matrix.csv")
    pd.DataFrame(found.matrix, NAMES, NAMES).to_csv("square.csv")
    return found


@pytest.mark.parametrize("file", ["matrix.csv", "square.csv"])
@pytest.mark.parametrize("method", ["bento_sim", "bento_le"])
def test_it_chooses_as_the_method_does(file, method, matrix, capsys):
    words = ["select", file, "--tasks", "2", "--method", method, "--json"]
    assert main(words) == 0
    found = json.loads(capsys.readouterr().out)
    flat = results()
    one = get_method(method, transfer=file).fit(flat)
    assert found["keep"] == [one.tasks_[n] for n in one.order_[:2]]
    assert sorted(found["keep"] + found["drop"]) == sorted(NAMES)
    covered = [step["coverage"] for step in found["steps"]]
    gains = [step["gain"] for step in found["steps"]]
    assert np.cumsum(gains) == pytest.approx(covered)
    assert covered == sorted(covered)
    assert sum(len(s["stands_for"]) for s in found["steps"]) == 2


def test_a_table_and_a_picture(matrix, capsys):
    words = ["select", "matrix.csv", "--out", "order.csv", "--plot", "tasks.png"]
    assert main(words) == 0
    assert "written: order.csv, tasks.png" in capsys.readouterr().out
    assert main(["select", "square.csv"]) == 0
    assert "exemplars in rows" in capsys.readouterr().out
    order = pd.read_csv("order.csv")
    assert sorted(order["task"]) == sorted(NAMES)
    assert order["coverage"].iloc[-1] == pytest.approx(1)
    with open("tasks.png", "rb") as file:
        assert file.read(4) == b"\x89PNG"


@pytest.mark.parametrize(
    "words, message",
    [
        (["matrix.csv", "--tasks", "9"], "give a whole number from 1 to 4"),
        (["matrix.csv", "--method", "kmeans"], "--method must be bento_sim or"),
        (["."], "name the matrix, a CSV"),
        (["other.csv"], "no file 'other.csv'"),
        (["wide.csv"], "'logic' names a column only"),
        (["nameless.csv"], "names a row only"),
    ],
)
def test_mistakes_are_one_line(words, message, matrix, capsys):
    frame = pd.DataFrame(matrix.matrix, NAMES, NAMES)
    frame.drop(index="logic").to_csv("wide.csv")
    frame.to_csv("nameless.csv", index=False)
    assert main(["select", *words]) == 2
    said = capsys.readouterr().err
    assert message in said and said.count("\n") == 1


def test_transfer_is_an_option_where_tasks_are_chosen(matrix, capsys):
    results().to_parquet("scores.parquet")
    words = ["plan", "scores.parquet", "--budget", "10", "--folds", "0"]
    assert main([*words, "--method", "bento_sim", "--out", "a"]) == 2
    assert "--transfer" in capsys.readouterr().err  # what is named is there:
    assert main([*words, "--transfer", "matrix.csv", "--out", "a"]) == 0
    assert "bento_sim, 10 items" in capsys.readouterr().out
    words = ["publish", "scores.parquet", "--method", "bento_le", "--budget", "10"]
    more = ["--transfer", "matrix.csv", "--folds", "0", "--out", "b"]
    assert main([*words, *more]) == 0
    words[words.index("bento_le")], more[-1] = "aipw", "c"
    assert main([*words, *more]) == 2
    assert "--transfer is for" in capsys.readouterr().err
    words = ["recommend", "scores.parquet", "--tasks", "--trials", "2", "--json"]
    assert main([*words, "--transfer", "matrix.csv"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert {"transfer", "transfer_se"} < {*found["errors"][0]}


def test_of_few_models_it_says_how_many_the_rank_agreement_orders(matrix, capsys):
    results().select(models=np.arange(9)).to_parquet("few.parquet")
    words = ["recommend", "few.parquet", "--tasks", "--trials", "3"]
    assert main(words) == 0
    out = capsys.readouterr().out
    assert "2 models held out in each" in out
    assert "Kendall's tau, of 2 models at a time" in out
    assert "kept: the fewest tried with an error of at most 1 point" in out
    assert main([*words, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["held_out"] == 2 and "kendall_se" in found["errors"][0]
    first = found["errors"][0]
    assert f"{first['kendall']:.3f} ± {first['kendall_se']:.3f}" in out


@pytest.mark.slow
def test_trials_that_hold_out_a_single_model_do_not_count(matrix, capsys):
    table = results().select(models=np.arange(8))
    table.values[7] = table.values[6]  # near-copies are held out together
    table.to_parquet("few.parquet")
    assert main(["recommend", "few.parquet", "--tasks", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["trials"] < 10 and found["held_out"] == 2
    assert main(["recommend", "few.parquet", "--tasks"]) == 0
    out = capsys.readouterr().out
    least, most = found["held_out"], found["most_held_out"]
    held = f"{least} to {most} models" if most > 2 else "2 models"
    assert f"{found['trials']} trials; {held} held out in each" in out
    assert f"Kendall's tau, of {held} at a time" in out
