"""What people get wrong, and what they are told: one line with the culprit and the
remedy, in Python and on the command line, and nothing left behind."""

import os
import stat
import subprocess
import sys
import textwrap

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from helpers.small import METHODS, files_in, fitted, halves, table, with_values

from benchnb.cli.app import main
from benchnb.data.files import replace_file
from benchnb.data.scores import Scores
from benchnb.evaluation.compare import compare, summary
from benchnb.evaluation.method import Method
from benchnb.evaluation.registry import get_method
from benchnb.evaluation.simulate import Conversation, ready, simulate
from benchnb.live.evaluation import Evaluation

CALL = "import sys; from benchnb.cli.app import main; sys.exit(main())"
GOOD = [[0, 1, 0.5], [1, 0, np.nan]]
NAMES = ["alpha", "beta"]
ITEMS = ["x", "y", "z"]
SOME = ["kmeans", "tailored_bench", "guarded_irt"]  # a Coreset and two that adapt


def facts(index, **columns):
    "A frame of facts"
    return pd.DataFrame(columns, index=index)


def cell(value, kind=float):
    "A good table with one other value, of model beta on item y"
    values = np.array(GOOD, dtype=kind)
    values[1, 1] = value
    return Scores(values, ITEMS, NAMES)


def weighted(*weight):
    "A good table with these item weights"
    return Scores(GOOD, facts(ITEMS, weight=list(weight)), NAMES)


def long(**columns):
    "A long table: two models, one item; columns may be replaced, or None: left out"
    frame = {"model": ["alpha", "beta"], "item": ["x", "x"], "score": [0.0, 1.0]}
    frame |= columns
    kept = {name: value for name, value in frame.items() if value is not None}
    return Scores.from_long(pd.DataFrame(kept))


TABLES = {
    "no models": (lambda: Scores(np.zeros((0, 3))), ["models x items", "(0, 3)"]),
    "ragged rows": (lambda: Scores([[0, 1], [1]]), ["models x items"]),
    "text": (lambda: cell("0.5", object), ["'0.5'", "'beta'", "'y'", "text"]),
    "infinite": (lambda: cell(np.inf), ["inf", "'beta'", "'y'", "[0, 1]"]),
    "percent": (lambda: cell(62.5), ["62.5", "'beta'", "'y'", "divide by 100"]),
    "points": (lambda: cell(800), ["800", "'beta'", "'y'", "scale it to [0, 1]"]),
    "two models of a name": (
        lambda: Scores(GOOD, ITEMS, ["alpha", "alpha"]),
        ["model 'alpha'", "twice", "unique"],
    ),
    "too few names": (lambda: Scores(GOOD, ["x"], NAMES), ["items has 1", "3 items"]),
    "a negative weight": (lambda: weighted(1, -1, 1), ["weight", "'y'", ">= 0"]),
    "a weight in words": (lambda: weighted(1, "much", 1), ["weight", "'y'", "number"]),
    "weights of nothing": (lambda: weighted(0, 0, 0), ["weights", "above 0"]),
    "an item without a task": (
        lambda: Scores(GOOD, facts(ITEMS, task=["a", None, "b"]), NAMES),
        ["item 'y'", "task"],
    ),
    "a negative cost": (
        lambda: Scores(GOOD, facts(ITEMS, cost=[1, -5, 2]), NAMES),
        ["cost", "'y'", ">= 0"],
    ),
    "full scores in percent": (
        lambda: Scores(GOOD, ITEMS, facts(NAMES, full_score=[0.5, 57.0])),
        ["full_score", "57", "'beta'", "[0, 1]"],
    ),
    "no column of items": (lambda: long(item=None), ["'item'", "'score'"]),
    "two scores": (lambda: long(model=["beta", "beta"]), ["'beta'", "'x'", "two"]),
}


@pytest.mark.parametrize("name", TABLES)
def test_a_table_that_is_none_is_refused_by_name(name):
    make, words = TABLES[name]
    says_in_one_line(make, words)


def says_in_one_line(make, words, kinds=(ValueError, TypeError, OSError)):
    "The error, which must be of these kinds, be one line and name all these words"
    with pytest.raises(kinds) as caught:
        make()
    message = str(caught.value)
    assert message and "\n" not in message
    missing = [word for word in words if word not in message]
    assert not missing, message
    return message


def no_facts():
    "A table without dates, families and parts"
    return table(facts=False)


REQUESTS = {
    "a model that is not there": (
        lambda: table().select(models=["model-99"]),
        ["model", "'model-99'"],
    ),
    "a column that is not there": (
        lambda: table().performance(by="subject"),
        ["'subject'", "task"],
    ),
    "an unknown split": (lambda: table().split("dates"), ["'dates'", "date, ability"]),
    "no dates": (lambda: no_facts().split("date"), ["'date'", "'released'", "random"]),
    "a date that is none": (
        lambda: Scores(
            table().values, models=facts(table().models.index, released="soon")
        ).split("date"),
        ["'date'", "released", "'soon'"],
    ),
    "no sources": (lambda: table().split(sources=0), ["sources", "between 0 and 1"]),
    "copies only": (
        lambda: Scores(np.repeat(table().values[:1], 5, axis=0)).split(),
        ["5 models", "near-copies"],
    ),
}


@pytest.mark.parametrize("name", REQUESTS)
def test_a_request_that_cannot_be_met_is_refused_by_name(name):
    make, words = REQUESTS[name]
    says_in_one_line(make, words, ValueError)


def one_column():
    "Every item like every other"
    return Scores(np.repeat(table().values[:, :1], 60, axis=1))


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
    return compare(scores, methods, budgets, trials, **settings)


WHOLE = ["whole number", "1 to 60"]
COMPARISONS = {
    "one model": (lambda: run(table().select(models=[0])), ["one model", "2"]),
    "equal columns": (lambda: run(one_column()), ["columns", "equal"]),
    "a row of NaN": (lambda: run(unknown(row=3)), ["'model-03'", "leave it out"]),
    "a budget above all": (lambda: run(budgets=[10, 61]), ["budget", *WHOLE, "61"]),
    "half an item": (lambda: run(budgets=[2.5]), ["budget", *WHOLE, "2.5"]),
    "a budget in words": (lambda: run(budgets=["ten"]), ["'ten'", "20usd"]),
    "no trials": (lambda: run(trials=0), ["trials", "at least 1", "0"]),
    "fewer items than tasks": (
        lambda: run(methods=f"per_task({METHODS[0]})", budgets=[2]),
        ["budget of 2", "3 tasks", "at least 3"],
    ),
    "a negative seed": (lambda: run(seed=-1), ["seed", "-1"]),
    "no processors": (lambda: run(n_jobs=0), ["n_jobs", "0"]),
    "no methods": (lambda: run(methods=[]), ["no methods", "at least one"]),
    "a method twice": (
        lambda: run(methods=[METHODS[0], METHODS[0]]),
        [METHODS[0], "twice", "labels"],
    ),
    "an unknown method": (
        lambda: run(methods=[METHODS[0][:-1]]),
        [f"'{METHODS[0][:-1]}'", f"did you mean '{METHODS[0]}'"],
    ),
    "no table": (lambda: run(table().values), ["Scores"]),
}


@pytest.mark.parametrize("name", COMPARISONS)
def test_a_comparison_that_cannot_be_made_never_starts(name, tmp_path):
    make, words = COMPARISONS[name]
    says_in_one_line(make, words)


@pytest.mark.parametrize("how", ["given", "date", "family"])
def test_a_refused_comparison_leaves_no_journal(how, tmp_path):
    with pytest.raises(ValueError, match=how):
        run(no_facts(), split=how, journal=tmp_path / "journal")
    assert files_in(tmp_path) == {}


def test_a_method_that_cannot_be_fitted_leaves_no_journal(tmp_path):
    class Broken(Method):
        name = "broken"

        def fit(self, source, side=None):
            raise ValueError("broken needs a transfer matrix: give side=")

    with pytest.raises(ValueError, match="transfer matrix"):
        run(methods=Broken(), journal=tmp_path / "journal")
    assert files_in(tmp_path) == {}


def test_a_journal_that_cannot_be_written_is_named_before_the_work(tmp_path):
    (tmp_path / "file").write_text("old")

    class Worker(Method):
        name = "worker"

        def fit(self, source, side=None):
            raise AssertionError("the work has begun")

    for place in (tmp_path / "file" / "journal", tmp_path):
        says_in_one_line(
            lambda place=place: run(methods=Worker(), journal=place),
            [str(place), "choose another"],
            OSError,
        )
    assert files_in(tmp_path) == {"file": b"old"}


def test_summary_wants_the_frame_of_compare():
    says_in_one_line(
        lambda: summary(pd.DataFrame({"method": []})), ["trial", "compare"]
    )


other = {
    "one item less": (lambda t: t.select(items=np.arange(59)), "reading/59"),
    "another order": (lambda t: t.select(items=np.arange(60)[::-1]), "order"),
    "another name": (
        lambda t: Scores(t.values, t.items.rename({"logic/33": "logic/x"}), t.models),
        "logic/33",
    ),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", other)
@pytest.mark.parametrize("method", SOME)
def test_targets_with_other_items_are_refused(method, name):
    change, word = other[name]
    targets = change(halves()[1])
    says_in_one_line(
        lambda: simulate(fitted(method), targets, 10),
        [word, "same items in the same order"],
        ValueError,
    )


@pytest.mark.parametrize("budget", [0, 61, 10.5, "10", True])
@pytest.mark.parametrize("method", SOME)
def test_no_method_takes_an_impossible_budget(method, budget):
    words = ["budget", "whole number from 1 to 60"]
    says_in_one_line(lambda: ready(fitted(method), budget), words, ValueError)


@pytest.mark.parametrize("method", SOME)
def test_a_method_names_what_must_come_first(method):
    targets = halves()[1]
    fresh, unprepared = get_method(method), fitted(method)
    says_in_one_line(lambda: ready(fresh, 10), ["must be fitted"], ValueError)
    says_in_one_line(lambda: simulate(fresh, targets, 10), ["fitted"], ValueError)
    says_in_one_line(lambda: Evaluation(fresh, 10), ["fitted"], ValueError)
    says_in_one_line(lambda: simulate(fresh, targets), ["fitted"], ValueError)
    says_in_one_line(lambda: simulate(unprepared, targets), ["budget"], ValueError)
    says_in_one_line(lambda: Evaluation(unprepared), ["budget"], ValueError)
    says_in_one_line(lambda: Conversation(unprepared), ["budget"], ValueError)


@pytest.mark.parametrize("method", SOME)
def test_an_unknown_parameter_is_named(method):
    says_in_one_line(lambda: get_method(method, colour=3), ["colour"], TypeError)


NAMED = {
    "a near miss": (METHODS[-1] + "s", [f"did you mean '{METHODS[-1]}'"]),
    "inside per_task": (f"per_task({METHODS[0]}x)", [f"'{METHODS[0]}x'", "did you"]),
    "no module": ("nosuchmodule:Mine", ["nosuchmodule", "module:Class"]),
    "a function": ("os:getcwd", ["os:getcwd", "Method"]),
}


@pytest.mark.parametrize("name", NAMED)
def test_a_method_that_cannot_be_found_is_named(name):
    text, words = NAMED[name]
    says_in_one_line(lambda: run(methods=[text]), words, (ValueError, TypeError))


# Parquet files ---------------------------------------------------------------


@pytest.fixture(scope="module")
def parquet(tmp_path_factory):
    "The bytes of a good file"
    path = tmp_path_factory.mktemp("good") / "good.parquet"
    table().to_parquet(path)
    return path.read_bytes()


def foreign(path, columns):
    "A Parquet file of something else"
    pq.write_table(pa.table(columns), path)


def altered(path, change):
    "A good file whose table `change` has altered"
    table().to_parquet(path)
    pq.write_table(change(pq.read_table(path)), path)


def metadata(text):
    "A change of the facts about models"
    return lambda t: t.replace_schema_metadata({b"benchnb": b"1", b"models": text})


FILES = {
    "text": lambda path, good: path.write_text("model,item,score\na,b,1\n"),
    "head only": lambda path, good: path.write_bytes(good[:4]),
    "something else": lambda path, good: foreign(path, {"a": [1], "b": [2]}),
    "words": lambda path, good: foreign(
        path, {"model": ["a"], "item": ["b"], "score": ["good"]}
    ),
    "odd facts": lambda path, good: altered(path, metadata(b"[1, 2]")),
    "a column less": lambda path, good: altered(
        path, lambda t: t.drop_columns(["model:model-03"])
    ),
    "a wrong score": lambda path, good: altered(
        path,
        lambda t: t.set_column(
            t.column_names.index("model:model-03"), "model:model-03", [[7] * len(t)]
        ),
    ),
}


@pytest.mark.parametrize("name", FILES)
def test_a_file_that_is_no_table_is_named(name, tmp_path, parquet):
    path = tmp_path / "scores.parquet"
    FILES[name](path, parquet)
    before = files_in(tmp_path)
    says_in_one_line(lambda: Scores.from_parquet(path), [str(path)])
    assert files_in(tmp_path) == before


def test_a_file_that_is_not_there_is_named(tmp_path):
    path = tmp_path / "scores.parquet"
    says_in_one_line(lambda: Scores.from_parquet(path), [str(path), "check the path"])


def test_a_file_cut_short_is_named_wherever_it_is_cut(tmp_path, parquet):
    path = tmp_path / "cut.parquet"
    places = {*np.linspace(0, len(parquet) - 1, 60, dtype=int), 1, 3, 4, 7, 8, 11, 12}
    for cut in [*places, *(len(parquet) - np.arange(1, 13))]:
        path.write_bytes(parquet[:cut])
        says_in_one_line(
            lambda: Scores.from_parquet(path), ["cut.parquet", "write it again"]
        )


def test_a_pickle_in_a_file_is_not_opened(tmp_path, monkeypatch):
    import pickle

    def opened(*args, **kwargs):
        raise AssertionError("something was unpickled")

    path = tmp_path / "evil.parquet"
    path.write_bytes(pickle.dumps(table().values))
    for name in ("load", "loads", "Unpickler"):
        monkeypatch.setattr(pickle, name, opened)
    says_in_one_line(lambda: Scores.from_parquet(path), ["evil.parquet"])


# Writing ---------------------------------------------------------------------


def special(folder):
    "A named pipe: like a device, nothing that may be replaced by a file"
    os.mkfifo(folder / "pipe")
    return folder / "pipe"


def test_no_place_to_write_is_named_and_nothing_is_left(tmp_path):
    (tmp_path / "file").write_text("old")
    (tmp_path / "folder").mkdir()
    pipe = special(tmp_path)
    for place in (tmp_path / "file" / "out", tmp_path / "folder", pipe):
        says_in_one_line(
            lambda place=place: table().to_parquet(place),
            [str(place), "choose another place"],
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


@pytest.mark.parametrize("error", [OSError, ValueError, KeyboardInterrupt])
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


def test_a_disk_that_is_full_leaves_the_old_file(tmp_path):
    "A limit on the size of files is what a full disk is to a writer"
    table().to_parquet(tmp_path / "table.parquet")
    before = files_in(tmp_path)
    code = """
        import resource, sys
        from benchnb.data.scores import Scores
        scores = Scores.from_parquet(sys.argv[1])
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
        try:
            scores.to_parquet(sys.argv[1])
        except OSError as error:
            print(error)
    """
    command = [sys.executable, "-c", textwrap.dedent(code), tmp_path / "table.parquet"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "cannot write" in done.stdout and "table.parquet" in done.stdout
    assert files_in(tmp_path) == before


# The command line ------------------------------------------------------------


@pytest.fixture
def place(tmp_path, monkeypatch):
    "A folder with good and bad tables, where the command line is called"
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("BENCHNB_DATA", raising=False)
    table().to_parquet("good.parquet")
    no_facts().to_parquet("plain.parquet")
    table().select(models=[0]).to_parquet("one_model.parquet")
    table().select(items=[0]).to_parquet("one_item.parquet")
    one_column().to_parquet("equal.parquet")
    unknown(row=3).to_parquet("row.parquet")
    unknown(column=3).to_parquet("column.parquet")
    good = (tmp_path / "good.parquet").read_bytes()
    (tmp_path / "cut.parquet").write_bytes(good[: len(good) // 2])
    (tmp_path / "empty.parquet").write_bytes(b"")
    foreign("other.parquet", {"a": [1], "b": [2]})
    (tmp_path / "folder.parquet").mkdir()
    head = "model,item,score\n"
    (tmp_path / "text.csv").write_text(f"{head}a,x,good\nb,x,bad\n")
    (tmp_path / "percent.csv").write_text(f"{head}a,x,50\nb,x,70\n")
    (tmp_path / "infinite.csv").write_text(f"{head}a,x,inf\nb,x,0.7\n")
    (tmp_path / "twice.csv").write_text(f"{head}a,x,0.5\na,x,0.7\n")
    (tmp_path / "weight.csv").write_text(
        "model,item,score,weight\na,x,1,-1\nb,x,0,-1\na,y,0,1\nb,y,1,1\n"
    )
    (tmp_path / "empty.csv").write_text("")
    (tmp_path / "header.csv").write_text(head)
    (tmp_path / "odd.jsonl").write_text('{"model": "a"\n')
    (tmp_path / "binary.csv").write_bytes(bytes(range(256)))
    (tmp_path / "old.csv").write_text("old")
    return tmp_path


def refused(argv, words, capsys):
    "Call the command line: exit code 2, one line on stderr that names all the words"
    try:
        code = main([str(word) for word in argv])
    except SystemExit as stop:
        code = stop.code
    out, err = capsys.readouterr()
    assert (code, out) == (2, ""), err
    assert err.startswith("benchnb: error: ") and err.count("\n") == 1, err
    assert "Traceback" not in err
    missing = [word for word in words if word not in err]
    assert not missing, err
    return err


QUICK = ["--trials", "1", "--budgets", "5", "--methods", METHODS[0]]
GOOD_TABLE = ["compare", "good.parquet", *QUICK]
COMMANDS = {
    "nothing": ([], ["Missing command", "benchnb --help"]),
    "an unknown command": (["compar"], ["compar", "compare"]),
    "an unknown name": (["compare", "zo"], ["'zo'", "did you mean 'zoo'"]),
    "a file that is not there": (["compare", "no.parquet"], ["no.parquet"]),
    "a file cut short": (["compare", "cut.parquet"], ["cut.parquet", "cut short"]),
    "percent": (["compare", "percent.csv"], ["50", "'a'", "'x'", "divide by 100"]),
    "broken JSON": (["compare", "odd.jsonl"], ["odd.jsonl"]),
    "one model": (["compare", "one_model.parquet"], ["one model"]),
    "a budget above all": ([*GOOD_TABLE, "--budgets", "5,61"], ["budget", "60", "61"]),
    "a budget in words": ([*GOOD_TABLE, "--budgets", "ten"], ["--budgets", "ten"]),
    "no budget": ([*GOOD_TABLE, "--budgets", ""], ["--budgets", "at least one"]),
    "trials in words": ([*GOOD_TABLE, "--trials", "x"], ["--trials", "valid integer"]),
    "no dates": (
        ["compare", "plain.parquet", *QUICK, "--split", "date"],
        ["'date'", "'released'"],
    ),
    "an unknown method": (
        ["compare", "good.parquet", "--methods", METHODS[0] + "y"],
        [f"'{METHODS[0]}y'", f"did you mean '{METHODS[0]}'"],
    ),
    "no such class": (
        ["compare", "good.parquet", "--methods", "json:Mine"],
        ["json", "Mine"],
    ),
    "a place below a file": (
        [*GOOD_TABLE, "--out", "old.csv/new.csv"],
        ["old.csv/new.csv"],
    ),
    "one file for two things": (
        [*GOOD_TABLE, "--out", "new", "--rows", "./new"],
        ["new", "--rows"],
    ),
    "an unknown paper": (
        ["tables", "tailored_bensh"],
        ["'tailored_bensh'", "tailored_bench"],
    ),
    "an unknown option": (["data", "--colour"], ["--colour"]),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_the_command_line_refuses_in_one_line(name, place, capsys):
    argv, words = COMMANDS[name]
    special(place)
    before, entries = files_in(place), sorted(place.rglob("*"))
    refused(argv, words, capsys)
    assert files_in(place) == before
    assert sorted(place.rglob("*")) == entries


LATER = ["--split", "given", "--out", "old.csv", "--rows", "new/rows.parquet"]


@pytest.mark.parametrize(
    "argv",
    [
        ["compare", "plain.parquet", *QUICK, *LATER],
        ["compare", "good.parquet", *QUICK, *LATER, "--budgets", "5,61"],
        ["compare", "good.parquet", *QUICK, *LATER, "--methods", "nomethod"],
        ["compare", "cut.parquet", *QUICK, *LATER],
    ],
    ids=["split", "budget", "method", "table"],
)
def test_a_refused_run_leaves_older_results_alone(argv, place, capsys):
    before, entries = files_in(place), sorted(place.rglob("*"))
    refused(argv, [], capsys)
    assert files_in(place) == before
    assert sorted(place.rglob("*")) == entries


def test_a_journal_that_is_none_is_refused_and_left_alone(place, capsys):
    (place / "old.csv.journal").write_text("diary of a nobody\n")
    before = files_in(place)
    refused([*GOOD_TABLE, "--out", "old.csv"], ["old.csv.journal", "delete"], capsys)
    assert files_in(place) == before


def test_a_data_folder_that_is_not_there_is_named(place, capsys, monkeypatch):
    monkeypatch.setenv("BENCHNB_DATA", str(place / "nowhere"))
    for argv in (["data"], ["compare", "gsm8k"]):
        refused(argv, ["BENCHNB_DATA", "nowhere"], capsys)


ALONE = {
    "an unknown name": (["compare", "zo"], "zoo"),
    "a file cut short": (["compare", "cut.parquet"], "cut.parquet"),
    "no such module": (["compare", "zoo", "--methods", "no_module:Mine"], "no_module"),
}


@pytest.mark.parametrize("name", ALONE)
def test_a_process_ends_with_one_line_and_code_2(name, place):
    argv, word = ALONE[name]
    command = [sys.executable, "-c", CALL, *argv]
    before = files_in(place)
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("benchnb: error: ") and word in done.stderr
    assert done.stderr.count("\n") == 1
    assert files_in(place) == before
