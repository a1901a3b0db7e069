"""What people get wrong, and what they are told: one line with the culprit and the
remedy, in Python and on the command line, and nothing left behind."""

import os
import stat

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from helpers.small import METHODS, files_in, fitted, halves, table, with_values

from benchnb.cli.app import main
from benchnb.data.files import replace_file
from benchnb.data.scores import Scores
from benchnb.evaluation.compare import compare
from benchnb.evaluation.method import Method
from benchnb.evaluation.registry import get_method
from benchnb.evaluation.simulate import AskTellSession, prepare_method, simulate
from benchnb.live.evaluation import Evaluation

GOOD = [[0, 1, 0.5], [1, 0, np.nan]]
NAMES = ["alpha", "beta"]
ITEMS = ["x", "y", "z"]
SOME = [
    "kmeans",
    "tailored_bench",
    "guarded_irt(rounds=5)",
]  # a Coreset and two that adapt


def facts(index, **columns):
    "A frame of facts"
    return pd.DataFrame(columns, index=index)


def cell(value, kind=float):
    "A good table with one other value, of model beta on item y"
    values = np.array(GOOD, dtype=kind)
    values[1, 1] = value
    return Scores(values, ITEMS, NAMES)


def long(**columns):
    "A long table: two models, one item; columns may be replaced, or None: left out"
    frame = {"model": ["alpha", "beta"], "item": ["x", "x"], "score": [0.0, 1.0]}
    frame |= columns
    kept = {name: value for name, value in frame.items() if value is not None}
    return Scores.from_long(pd.DataFrame(kept))


def about(**columns):
    "A good table with these facts about its items"
    return lambda: Scores(GOOD, facts(ITEMS, **columns), NAMES)


TABLES = {
    "no models": (lambda: Scores(np.zeros((0, 3))), "models x items (0, 3)"),
    "text": (lambda: cell("0.5", object), "'0.5' 'beta' 'y' text"),
    "infinite": (lambda: cell(np.inf), "inf 'beta' 'y' [0, 1]"),
    "percent": (lambda: cell(62.5), "62.5 'beta' 'y' divide by 100"),
    "points": (lambda: cell(800), "800 'beta' 'y' scale it to [0, 1]"),
    "two of a name": (lambda: Scores(GOOD, ITEMS, ["a", "a"]), "model 'a' twice"),
    "too few names": (lambda: Scores(GOOD, ["x"], NAMES), "items has 1 3 items"),
    "a negative weight": (about(weight=[1, -1, 1]), "weight 'y' >= 0"),
    "weights of nothing": (about(weight=[0, 0, 0]), "weights above 0"),
    "an item without a task": (about(task=["a", None, "b"]), "item 'y' task"),
    "no column of items": (lambda: long(item=None), "'item' 'score'"),
    "two scores": (lambda: long(model=["beta", "beta"]), "'beta' 'x' two"),
    # requests that cannot be met
    "no such model": (lambda: table().select(models=["model-99"]), "'model-99'"),
    "no such column": (lambda: table().performance(by="subject"), "'subject' task"),
    "no such split": (lambda: table().split("dates"), "'dates' date, ability"),
    "no dates": (lambda: no_facts().split("date"), "'date' 'released' random"),
    "no sources": (lambda: table().split(sources=0), "sources between 0 and 1"),
    "copies only": (
        lambda: Scores(np.repeat(table().values[:1], 5, axis=0)).split(),
        "5 models near-copies",
    ),
}


@pytest.mark.parametrize("name", TABLES)
def test_a_table_that_is_none_is_refused_by_name(name):
    make, words = TABLES[name]
    refused_in_a_line(make, words)


def refused_in_a_line(make, words="", kinds=(ValueError, TypeError, OSError)):
    "The error is of these kinds, and its one line holds each of these words"
    with pytest.raises(kinds) as caught:
        make()
    message = str(caught.value)
    assert message and "\n" not in message
    assert not [word for word in words.split() if word not in message], message


def no_facts():
    "A table without dates, families and parts"
    return table(facts=False)


def unknown(row=None, column=None):
    "The small table with one row or column that nobody knows"
    values = table().values.copy()
    if row is not None:
        values[row] = np.nan
    if column is not None:
        values[:, column] = np.nan
    return with_values(table(), values)


def run(scores=None, methods=METHODS[0], budgets=(10,), trials=1, **settings):
    "A comparison that is small when it is not refused"
    scores = table() if scores is None else scores
    return compare(scores, methods, budgets, trials, **settings).frame


FIRST = METHODS[0]
COMPARISONS = {
    "a row of NaN": (lambda: run(unknown(row=3)), "'model-03' leave it out"),
    "half an item": (lambda: run(budgets=[2.5]), "budget whole number 2.5"),
    "fewer items than tasks": (
        lambda: run(methods=f"per_task({FIRST})", budgets=[2]),
        "budget of 2 3 tasks",
    ),
    "a negative seed": (lambda: run(seed=-1), "seed -1"),
    "no methods": (lambda: run(methods=[]), "no methods at least one"),
    "a method twice": (lambda: run(methods=[FIRST, FIRST]), f"{FIRST} twice labels"),
    "inside per_task": (lambda: run(methods=f"per_task({FIRST}x)"), f"mean '{FIRST}'"),
    "no module": (lambda: run(methods="nosuchmodule:Mine"), "nosuchmodule"),
    "a function": (lambda: run(methods="os:getcwd"), "os:getcwd Method"),
    "no table": (lambda: run({"a": 1}), "dict Scores"),
}


@pytest.mark.parametrize("name", COMPARISONS)
def test_a_comparison_that_cannot_be_made_never_starts(name, tmp_path):
    make, words = COMPARISONS[name]
    refused_in_a_line(make, words)


class Broken(Method):
    name = "broken"

    def fit(self, source, side=None):
        raise ValueError("broken needs a transfer matrix: give side=")


def test_a_refused_comparison_leaves_no_journal(tmp_path):
    "Neither where the table lacks something, nor where a method cannot be fitted"
    with pytest.raises(ValueError, match="date"):
        run(no_facts(), split="date", journal=tmp_path / "journal")
    with pytest.raises(ValueError, match="transfer matrix"):
        run(methods=Broken(), journal=tmp_path / "journal")
    assert files_in(tmp_path) == {}


def test_a_journal_that_cannot_be_written_is_named_before_the_work(tmp_path):
    (tmp_path / "file").write_text("old")
    for place in (tmp_path / "file" / "journal", tmp_path):
        refused_in_a_line(
            lambda place=place: run(methods=Broken(), journal=place),
            f"{place} choose another",
            OSError,
        )
    assert files_in(tmp_path) == {"file": b"old"}


OTHER = {
    "reading/59": lambda t: t.select(items=np.arange(59)),
    "order": lambda t: t.select(items=np.arange(60)[::-1]),
    "logic/33": lambda t: Scores(
        t.values, t.items.rename({"logic/33": "logic/x"}), t.models
    ),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("word", OTHER)
def test_targets_with_other_items_are_refused(word):
    targets, method = OTHER[word](halves()[1]), fitted("kmeans")
    words = f"{word} same items in the same order"
    refused_in_a_line(lambda: simulate(method, targets, 10), words, ValueError)


@pytest.mark.parametrize("method", SOME)
def test_a_method_is_asked_for_what_it_can_do(method):
    "A possible budget, known parameters, and first things first"
    targets, fresh, unprepared = halves()[1], get_method(method), fitted(method)
    for budget in (0, 61, 10.5, "10", True):
        words = "budget whole number from 1 to 60"
        refused_in_a_line(
            lambda b=budget: prepare_method(unprepared, b), words, ValueError
        )
    words = "has no parameter 'colour':"
    refused_in_a_line(lambda: get_method(method, colour=3), words, ValueError)
    for call in (
        lambda: prepare_method(fresh, 10),
        lambda: simulate(fresh, targets, 10),
        lambda: simulate(fresh, targets),
        lambda: Evaluation(fresh, 10),
    ):
        refused_in_a_line(call, "fitted", ValueError)
    for call in (
        lambda: simulate(unprepared, targets),
        lambda: Evaluation(unprepared),
        lambda: AskTellSession(unprepared),
    ):
        refused_in_a_line(call, "budget", ValueError)


# Parquet files ---------------------------------------------------------------


@pytest.fixture(scope="module")
def parquet(tmp_path_factory):
    "The bytes of a good file"
    path = tmp_path_factory.mktemp("good") / "good.parquet"
    table().to_parquet(path)
    return path.read_bytes()


def other_table(path, columns):
    "A Parquet file of something else"
    pq.write_table(pa.table(columns), path)


FILES = {
    "text": lambda path, good: path.write_text("model,item,score\na,b,1\n"),
    "head only": lambda path, good: path.write_bytes(good[:4]),
    "something else": lambda path, good: other_table(path, {"a": [1], "b": [2]}),
    "nothing": lambda path, good: None,
}


@pytest.mark.parametrize("name", FILES)
def test_a_file_that_is_no_table_is_named(name, tmp_path, parquet):
    path = tmp_path / "scores.parquet"
    FILES[name](path, parquet)
    before = files_in(tmp_path)
    refused_in_a_line(lambda: Scores.from_parquet(path), str(path))
    assert files_in(tmp_path) == before


def test_a_file_cut_short_is_named_wherever_it_is_cut(tmp_path, parquet):
    path = tmp_path / "cut.parquet"
    places = {*np.linspace(0, len(parquet) - 1, 30, dtype=int), 1, 4, 8, 12}
    for cut in [*places, *(len(parquet) - np.arange(1, 13))]:
        path.write_bytes(parquet[:cut])
        words = "cut.parquet write it again"
        refused_in_a_line(lambda: Scores.from_parquet(path), words)


# Writing ---------------------------------------------------------------------


def test_no_place_to_write_is_named_and_nothing_is_left(tmp_path):
    (tmp_path / "file").write_text("old")
    (tmp_path / "folder").mkdir()
    pipe = tmp_path / "pipe"  # like a device, nothing that a file may replace
    os.mkfifo(pipe)
    for place in (tmp_path / "file" / "out", tmp_path / "folder", pipe):
        refused_in_a_line(
            lambda place=place: table().to_parquet(place),
            f"{place} choose another place",
            OSError,
        )
    assert files_in(tmp_path) == {"file": b"old"}
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert not list((tmp_path / "folder").iterdir())


def test_a_link_stays_a_link_and_its_file_is_replaced(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "file").write_text("old")
    (tmp_path / "link").symlink_to(tmp_path / "real" / "file")
    replace_file(tmp_path / "link", lambda name: open(name, "w").write("new"))
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real" / "file").read_text() == "new"


@pytest.mark.parametrize("error", [OSError, KeyboardInterrupt])
def test_a_write_that_fails_leaves_the_old_file(tmp_path, error):
    path = tmp_path / "file"
    path.write_text("old")

    def write(name):
        with open(name, "w") as file:
            file.write("half")
        raise error("no space left")

    with pytest.raises(error):
        replace_file(path, write)
    assert files_in(tmp_path) == {"file": b"old"}


# The command line ------------------------------------------------------------


@pytest.fixture
def place(tmp_path, monkeypatch):
    "A folder with good and bad tables, where the command line is called"
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("BENCHNB_DATA", raising=False)
    table().to_parquet("good.parquet")
    no_facts().to_parquet("plain.parquet")
    table().select(models=[0]).to_parquet("one_model.parquet")
    good = (tmp_path / "good.parquet").read_bytes()
    (tmp_path / "cut.parquet").write_bytes(good[: len(good) // 2])
    (tmp_path / "percent.csv").write_text("model,item,score\na,x,50\nb,x,70\n")
    (tmp_path / "odd.jsonl").write_text('{"model": "a"\n')
    (tmp_path / "old.csv").write_text("old")
    os.mkfifo(tmp_path / "pipe")
    return tmp_path


def check_refusal(done, words):
    "Exit code 2, nothing on stdout, one line on stderr that holds the words"
    code, out, err = done
    assert (code, out) == (2, ""), err
    assert err.startswith("benchnb: error: ") and err.count("\n") == 1, err
    assert not [word for word in words.split() if word not in err], err


QUICK = ["--trials", "1", "--budgets", "5", "--methods", FIRST]
GOOD_TABLE = ["compare", "good.parquet", *QUICK]
LATER = ["--out", "old.csv", "--rows", "new/rows.parquet"]
COMMANDS = {
    "an unknown command": (["compar"], "compar compare"),
    "no such file": (["compare", "no.parquet"], "no.parquet"),
    "cut short": (["compare", "cut.parquet", *LATER], "cut.parquet cut short"),
    "percent": (["compare", "percent.csv"], "50 'a' 'x' divide by 100"),
    "broken JSON": (["compare", "odd.jsonl"], "odd.jsonl"),
    "one model": (["compare", "one_model.parquet"], "one model"),
    "a large budget": ([*GOOD_TABLE, *LATER, "--budgets", "5,61"], "budget 60 61"),
    "no dates": (
        ["compare", "plain.parquet", *QUICK, *LATER, "--split", "date"],
        "'date' 'released'",
    ),
    "no such class": ([*GOOD_TABLE, *LATER, "--methods", "json:Mine"], "json Mine"),
    "below a file": ([*GOOD_TABLE, "--out", "old.csv/new.csv"], "old.csv/new.csv"),
    "an unknown option": (["list", "--colour"], "--colour"),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_the_command_line_refuses_in_one_line(name, place, capsys):
    "And older results stay as they are"
    argv, words = COMMANDS[name]
    before, entries = files_in(place), sorted(place.rglob("*"))
    try:
        code = main(argv)
    except SystemExit as stop:
        code = stop.code
    check_refusal((code, *capsys.readouterr()), words)
    assert files_in(place) == before
    assert sorted(place.rglob("*")) == entries


def test_a_journal_that_is_none_is_refused(place, capsys):
    (place / "old.csv.journal").write_text("diary of a nobody\n")
    before = files_in(place)
    code = main([*GOOD_TABLE, "--out", "old.csv"])
    check_refusal((code, *capsys.readouterr()), "old.csv.journal delete")
    assert files_in(place) == before


def test_a_data_folder_that_is_not_there_is_named(place, capsys, monkeypatch):
    monkeypatch.setenv("BENCHNB_DATA", str(place / "nowhere"))
    for argv in (["list", "data"], ["compare", "gsm8k"]):
        check_refusal((main(argv), *capsys.readouterr()), "BENCHNB_DATA nowhere")
