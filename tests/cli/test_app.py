"""The command line as a person meets it: help, widths, files, pipes and Ctrl-C."""

import contextlib
import json
import os
import re
import shlex
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from helpers.forked import forked
from helpers.small import files_in, table, write_fork

import benchnb
from benchnb.cli.app import COMMANDS, ORDER, CommandCall, main, parse
from benchnb.data.scores import Scores
from benchnb.evaluation.compare import compare, summarize_trials
from benchnb.evaluation.registry import find_class
from benchnb.papers.published import PAPERS

SCRIPT = Path(sys.executable).with_name("benchnb")
CALL = "import sys; from benchnb.cli.app import main; sys.exit(main())"
QUICK = ["random", "stratified"]
COMPARE = ["compare", "table.parquet", "--methods", "random,stratified"]
FEW = ["--budgets", "6,12", "--trials", "2", "--seed", "1"]


@pytest.fixture
def place(tmp_path, monkeypatch):
    "A folder of its own with the small table, where the commands are given"
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("BENCHNB_DATA", raising=False)
    monkeypatch.setenv("COLUMNS", "80")
    table().to_parquet("table.parquet")
    return tmp_path


@pytest.fixture
def call(place, capsys):
    "Give a command that must succeed; what it printed, which fits a terminal"

    def give(*argv):
        try:
            code = main([str(word) for word in argv])
        except SystemExit as stop:
            code = stop.code or 0
        out, err = capsys.readouterr()
        assert code == 0 and "error" not in err, err
        wide = [
            line for line in out.splitlines() if len(line) > int(os.environ["COLUMNS"])
        ]
        assert not wide or "--json" in argv or "lm_eval --model" in out, wide
        return out

    return give


@pytest.fixture
def refused(place, capsys):
    "Give a command that must fail with one line; that line"

    def give(line):
        assert main(line.split()) == 2
        out, err = capsys.readouterr()
        assert (out, err.count("\n")) == ("", 1) and err.startswith("benchnb: error: ")
        return err

    return give


def process(*argv, **settings):
    "Give a command in a process of its own, which Ctrl-C ends even if we ignore it"
    given = dict(stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) | settings
    given["preexec_fn"] = lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)
    return subprocess.run([sys.executable, "-c", CALL, *map(str, argv)], **given)


# Help and JSON -------------------------------------------------------------------


@pytest.mark.parametrize("command", ORDER)
def test_help_fits_the_terminal_and_its_example_is_valid(command, call):
    text = call(command, "--help")
    assert text.startswith(f"Usage: benchnb {command}")
    assert COMMANDS[command].run.__doc__ in text
    example = text.split("example")[-1].partition(":")[2].replace("\\\n", " ")
    words = example.partition(">")[0].split()
    typed = [word.strip("'") for word in words[words.index("benchnb") + 1 :]]
    assert isinstance(parse(typed), CommandCall)


@pytest.mark.parametrize("argv", [[SCRIPT], [sys.executable, "-m", "benchnb"]])
def test_the_script_and_the_module_are_this_command(argv):
    done = subprocess.run([*argv, "--version"], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"benchnb {benchnb.__version__}\n"


def test_the_bare_command_is_the_help(call, place, capsys):
    assert call() == call("--help") and "compare" in call()


def test_methods_fit_the_terminal(call, monkeypatch):
    "Nothing is cut: a description is as wide as the terminal, and goes on below"
    what = find_class("tailored_bench").__doc__.partition("\n")[0]
    for columns in (60, 80, 200):
        monkeypatch.setenv("COLUMNS", str(columns))
        text = call("list", "methods")
        assert "..." not in text and max(map(len, text.splitlines())) <= columns
        assert "".join(what.split()) in "".join(text.split())
        one = call("list", "methods", "aipw").splitlines()
        assert max(map(len, one)) <= columns
    assert what in text


def test_a_model_without_scores_is_left_out_on_request(call):
    given = table().values.copy()
    given[3] = np.nan
    scores = Scores(given, table().items, table().models)
    scores.to_parquet("table.parquet")
    frame = pd.DataFrame(given, scores.models.index, scores.items.index)
    frame.rename_axis("model").to_csv("wide.csv")
    call("import", "wide.csv", "--skip-empty", "--out", "table.parquet")
    assert "23 models x 60 items" in call(*COMPARE, *FEW)


def no_number(name):
    raise AssertionError(f"{name} is no JSON")


ONE = "--budgets=6 --trials=1 --methods=random"
JSON = [
    f"compare table.parquet {ONE}",
    f"recommend table.parquet {ONE} --plus-minus 5",
    f"recommend table.parquet {ONE} --difference 10",
    "recommend table.parquet --budget=6 --methods=random --trials=2",
    "plan table.parquet --method=random --budget=6 --out=new",
    "import table long.csv --out=new.parquet",
    "publish table.parquet --method=random --budget=6 --out=small",
    "list",
    "list methods",
    "list data",
    "list bundles",
    *(f"list papers {paper}" for paper in PAPERS),
]


@pytest.mark.usefixtures("few_trials")
@pytest.mark.parametrize("line", JSON)
def test_json_is_valid_and_nothing_beside_it(line, call):
    Path("long.csv").write_text("model,item,score\na,x,1\nb,x,0\n")
    assert json.loads(call(*line.split(), "--json"), parse_constant=no_number)


# compare -------------------------------------------------------------------------


def test_compare_writes_what_was_asked_for_and_no_more(place, call):
    Path("None.journal").write_text("mine")  # only looks like one
    Path("out").mkdir()
    Path("out/a.csv").write_text("old")
    call(*COMPARE, *FEW)
    assert sorted(files_in(place)) == ["None.journal", "out/a.csv", "table.parquet"]
    files = ["--out", "out/a.csv", "--rows", "out/deep/b.parquet", "--plot", "c.png"]
    text = call(*COMPARE, *FEW, *files, "--jobs", "2")
    assert "\nwritten: out/a.csv, out/deep/b.parquet, c.png\n" in text
    written = {"None.journal", "c.png", "out/a.csv", "out/deep/b.parquet"}
    assert {*files_in(place)} == written | {"table.parquet"}
    frame = compare(table(), QUICK, [6, 12], 2, seed=1).frame
    rows = pd.read_parquet("out/deep/b.parquet").drop(columns="seconds")
    pd.testing.assert_frame_equal(rows, frame.drop(columns="seconds"))
    figures = pd.read_csv("out/a.csv").drop(columns="seconds")
    wanted = summarize_trials(frame).drop(columns="seconds")
    pd.testing.assert_frame_equal(figures, wanted, check_dtype=False)
    assert Path("c.png").read_bytes().startswith(b"\x89PNG\r\n")


def test_costs_in_dollars(call):
    "Of an item; where nobody names a price, there is none"
    assert "$" not in call(*COMPARE, *FEW)
    text = call(*COMPARE, *FEW, "--dollars", "2.5")
    assert "all items cost $150: $2.50 each" in text and "  $15  " in text
    rows = json.loads(call(*COMPARE, *FEW, "--dollars", "2.5", "--json"))
    assert {(row["cost"], row["cost_unit"]) for row in rows} == {
        (15, "usd"),
        (30, "usd"),
    }
    scores = table()
    bare, agents = scores.items.drop(columns="cost"), scores.models.assign(llm="one")
    Scores(scores.values, bare, agents).to_parquet("table.parquet")
    assert "$" not in call(*COMPARE, *FEW)


# Interrupted ---------------------------------------------------------------------


def pieces(journal):
    "How many finished pieces a journal holds"
    with contextlib.closing(sqlite3.connect(journal)) as base:
        return base.execute("SELECT count(*) FROM pieces").fetchone()[0]


@pytest.mark.parametrize("jobs", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_ctrl_c_keeps_what_is_finished(jobs, place):
    fork = write_fork(place, f"Stopped{jobs}")
    argv = ["compare", "table.parquet", "--methods", fork, "--budgets", "6,12"]
    argv += ["--trials", "4", "--out", "a.csv", "--jobs", str(jobs)]
    stop = os.environ | {"FORK_AT": "4", "FORK_SIGNAL": str(int(signal.SIGINT))}
    stop["FORK_WORKERS"] = str(jobs)  # all of them are at work by then
    if jobs == 1:
        done = forked(argv, env=stop, session=True)
    else:
        done = process(*argv, env=stop, start_new_session=True, timeout=100)
    assert (done.returncode, done.stdout) == (130, ""), done.stderr
    assert done.stderr == "benchnb: stopped; the same command goes on from here\n"
    assert 1 <= pieces("a.csv.journal") < 8 and not Path("a.csv").exists()
    again = process(*argv) if jobs > 1 else forked(argv)
    assert again.returncode == 0, again.stderr
    assert len(pd.read_csv("a.csv")) == 8 and not Path("a.csv.journal").exists()
    assert not [name for name in files_in(place) if name.startswith(".")]


def test_a_killed_command_goes_on_when_given_again(place):
    fork = write_fork(place, "Killed")
    argv = [*COMPARE[:3], fork, *FEW, "--rows"]
    stop = os.environ | {"FORK_AT": "3", "FORK_SIGNAL": str(int(signal.SIGKILL))}
    done = forked([*argv, "b.parquet"], env=stop, session=True)
    assert (done.returncode, done.stdout) == (-signal.SIGKILL, "")
    assert pieces("b.parquet.journal") == 2
    # the pieces that are left: if one that is finished came again, this would kill it
    again = forked([*argv, "b.parquet"], env=stop, session=True)
    assert again.returncode == 0, again.stderr
    assert forked([*argv, "c.parquet"]).returncode == 0
    b, c = (pd.read_parquet(f"{n}.parquet").iloc[:, :-1] for n in "bc")
    pd.testing.assert_frame_equal(b, c)


@pytest.mark.slow
def test_the_script_finds_a_module_where_one_is(place):
    "The script's own folder, not this one, is what Python looks through first"
    fork = write_fork(place, "Mine")
    argv = [SCRIPT, *COMPARE[:3], fork, *FEW, "--jobs", "2"]
    done = subprocess.run(argv, capture_output=True, text=True)
    assert done.returncode == 0 and fork[:23] in done.stdout, done.stderr


# Pipes and terminals ---------------------------------------------------------------


@pytest.mark.parametrize("argv", [["list", "papers"], ["compare", "--help"]], ids=str)
def test_a_reader_who_leaves_is_no_error(argv, place):
    "As in `benchnb list papers | head`, but nothing at all is read"
    reading, writing = os.pipe()
    os.close(reading)
    done = process(*argv, stdout=writing)
    os.close(writing)
    assert (done.stderr, done.returncode) == ("", 0)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
def test_a_full_disk_under_the_output_is_one_line(place):
    with open("/dev/full", "w") as full:
        done = process("list", "data", stdout=full)
    assert done.returncode == 2 and "No space left" in done.stderr
    assert done.stderr.startswith("benchnb: error: ") and done.stderr.count("\n") == 1


@pytest.mark.slow
def test_a_terminal_without_unicode_is_no_error(place):
    ascii_only = os.environ | {"PYTHONIOENCODING": "ascii"}
    done = process(*COMPARE, *FEW, env=ascii_only)
    assert (done.returncode, done.stderr) == (0, "") and "random" in done.stdout


def test_colours_on_a_terminal_only(place, capsys, monkeypatch):
    monkeypatch.delenv("NO_COLOR", raising=False)
    for terminal in (True, False):
        for stream in (sys.stdout, sys.stderr):
            monkeypatch.setattr(stream, "isatty", lambda t=terminal: t)
        assert (main(["list", "bundles"]), main(["compare", "x" * 20])) == (0, 2)
        for text in capsys.readouterr():
            assert ("\x1b[" in text) == terminal
        monkeypatch.setenv("NO_COLOR", "1")


MISTAKES = {
    "compare ifeval --methods guardd_irt": "did you mean 'guarded_irt'?",
    "compare ifeval --methods my_guarded_irt": "line --plugin my_guarded_irt.py)",
    "plan ifeval --budget 9 --method my_x --out a": "a command line --plugin my_x.py)",
    "list methods my_x": "import its module; on a command line --plugin my_x.py)",
    "compare ifeval --methods oracle": "'benchnb list methods' shows all",
    "compare ifevall": "did you mean 'ifeval'?",
    "compare nothing.csv": "'benchnb list data' shows all",
    "compare Tabel.parquet": "did you mean 'table.parquet'?",
    "compare logs": "import them first: benchnb import lm-eval logs --out scores.pa",
    "plan logs/ --out a --budget 3": "import them first: benchnb import lm-eval logs/",
    "compare empty": "import them first: benchnb import FORMAT empty --out scores",
    "compare silent.csv --budgets 1": "'m2' has no score at all: benchnb import FILE",
    "compare twice.csv": "benchnb import table twice.csv --repeated first --out read",
    "compare own.csv": "'right'; a long table needs the columns model, item, score (an",
    "list papers foo": "there are bento",
    "list paper": "did you mean 'papers'?",
    "list data foo": "data takes no name",
    "score results.json": "did you mean 'benchnb estimate'?",
    "evaluate new": "did you mean 'benchnb estimate'?",
    "forecast ifeval": "did you mean 'benchnb recommend SCORES --plus-minus 5'?",
    "metods": "did you mean 'benchnb list methods'?",
    "nonsense": "no command 'nonsense': benchnb --help lists all",
    "recommend table.parquet --budget 3 --plus-minus 5": "are two questions",
    "recommend table.parquet --plus-minus 0.05": "--plus-minus is in points",
    "import nothing.csv --out b.parquet": "no harness 'nothing.csv'",
    "import lm-eval --out b.parquet": "name the files: benchnb import lm-eval PATHS",
    "compare table.parquet --trials many": "Invalid value for '--trials'",
    "compare table.parquet --budgets 10,3tokens": "budgets are in items and tokens",
    "compare table.parquet --dollars 3/bananas": "is what an item costs",
    "compare table.parquet --out table.parquet": "is named twice",
    "compare table.parquet --plot a.txt": "must end in .png or .pdf or .svg",
    "import table blank.csv --out b.parquet": "no item was scored",
    "recommend table.parquet": "give --budget 40",
    "estimate nowhere": "benchnb plan",
    "compare table.parquet --budgets -3": "a whole number from 1 to 60, got -3",
    "plan table.parquet --out a --budget three": "'three' is no amount: write 50",
}


@pytest.mark.parametrize("line", MISTAKES)
def test_a_mistake_is_one_line(line, refused):
    Path("blank.csv").write_text("model,item,score\nm1,q1,\nm2,q1,\n")
    Path("silent.csv").write_text("model,item,score\nm1,a,1\nm1,b,0\nm2,a,\nm3,a,1\n")
    Path("twice.csv").write_text("model,item,score\nm1,q1,1\nm1,q1,0\n")
    Path("own.csv").write_text("model,item,right\nm1,q1,1\nm1,q2,0\n")
    Path("logs").mkdir()
    Path("empty").mkdir()
    Path("logs", "samples_gsm8k_2026-01-01T00-00-00.000000.jsonl").touch()
    assert MISTAKES[line] in refused(line)


@pytest.mark.parametrize("budget", ["-3", "0", "500"])
@pytest.mark.parametrize(
    "line", ["plan {} --out a", "publish {} --out a", "recommend {}"]
)
def test_a_budget_outside_the_table_is_refused_with_its_range(
    line, budget, place, capsys
):
    argv = line.format("table.parquet").split()
    assert main([*argv, "--budget", budget]) == 2
    words = f"--budget must be a whole number from 1 to 60, got {budget}\n"
    assert capsys.readouterr().err == f"benchnb: error: {words}"
    assert not Path("a").exists()


def test_compare_names_the_option_of_a_budget_outside_the_table(place, capsys):
    assert main(["compare", "table.parquet", "--budgets", "500"]) == 2
    words = "--budgets must be a whole number from 1 to 60, got 500\n"
    assert capsys.readouterr().err.endswith(words)


def test_a_wrong_option_is_refused_before_pydantic_is_imported():
    script = (
        "import sys\n"
        "from benchnb.cli.app import main\n"
        "code = main(['estimate', 'folder', '--wrong'])\n"
        "sys.exit(code if 'pydantic' not in sys.modules else 1)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True)
    assert (done.returncode, b"No such option: --wrong" in done.stderr) == (2, True)


def test_the_line_that_settles_the_repeated_rows_of_one_model_works(place, capsys):
    Path("old.csv").write_text("item,score\na,1\nb,1\nc,0\n")
    Path("new.csv").write_text("item,score\na,1\na,0\nb,1\nc,1\n")
    assert main(["paired", "old.csv", "new.csv"]) == 2
    line = re.search(r"\(benchnb (.*), then give", capsys.readouterr().err)[1]
    assert main(shlex.split(line.replace("first", "mean"))) == 0
    assert main(["paired", "old.csv", "read.parquet", "--json"]) == 0
    found = capsys.readouterr().out
    assert json.loads(found[found.index("{") :])["difference"] == pytest.approx(-1 / 6)
    assert main(["import", "old.csv", "--out", "old.parquet"]) == 2
    assert "which model it is of (--model MODEL)" in capsys.readouterr().err
    Path("asked.csv").write_text("question,score\nq1,1\nq2,0\n")
    line = ["import", "asked.csv", "--model", "m", "--out", "asked.parquet"]
    assert main(line) == 2
    assert "no column 'item': found 'question', 'score'" in capsys.readouterr().err
    assert main([*line, "--columns", "item=question"]) == 0


def test_a_shell_completes_the_options_of_a_command():
    asked = {"_BENCHNB_COMPLETE": "complete_bash", "COMP_CWORD": "2"}
    words = "benchnb plan --bud"
    asked |= {"_TYPER_COMPLETE_ARGS": words, "COMP_WORDS": words}
    script = "from benchnb.cli.app import main; main([])"
    done = subprocess.run(
        [sys.executable, "-c", script],
        env=os.environ | asked,
        capture_output=True,
        text=True,
    )
    assert done.stdout.split() == ["--budget"], done.stderr


@pytest.mark.parametrize("name", ["import"])
def test_help_says_what_a_wide_table_is(name, capsys):
    assert main([name, "--help"]) == 0
    assert "table with a row for each model: items or tasks" in " ".join(
        capsys.readouterr().out.split()
    )


HELD = """
import os, sys
open({path!r}, "a").write(__name__)
sys.exit(3)
"""


@pytest.mark.slow
def test_code_of_the_working_folder_is_not_run(place):
    "Modules that child processes import before they know where to look"
    for name in ("signal", "struct", "resource", "multiprocessing", "pandas", "numpy"):
        (place / f"{name}.py").write_text(HELD.format(path=str(place / "opened")))
    few = ["--methods", "random", "--budgets", "6", "--trials", "2", "--jobs", "2"]
    pd.DataFrame({"model": ["a"], "q1": [1]}).to_csv("a.csv.gz", index=False)
    packed = ["import", "table", "a.csv.gz", "--out", "b.parquet"]
    for words in (["compare", "table.parquet", *few], packed):
        done = subprocess.run([SCRIPT, *words], capture_output=True, text=True)
        assert not done.returncode, done.stderr
    assert not (place / "opened").exists()


@pytest.mark.parametrize("closed", ["1", "2"])
def test_a_closed_stream_is_no_traceback(closed, place):
    line = f'exec "$0" "$@" {closed}>&-'
    given = ["bash", "-c", line, sys.executable, "-m", "benchnb", "list", "bundles"]
    done = subprocess.run(given, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
