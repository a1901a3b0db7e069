"""The command line as a person meets it: help, widths, files, pipes and Ctrl-C.

Mistakes are in test_bad_input."""

import contextlib
import json
import math
import os
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from fastcore.docments import docments
from helpers.small import METHODS, files_in, table, write_fork

import benchnb
from benchnb.cli.app import main, parse
from benchnb.cli.commands import COMMANDS, Call
from benchnb.cli.compare import format_summary
from benchnb.data.scores import Scores
from benchnb.data.sources import SOURCES, data_sets
from benchnb.evaluation.compare import METRICS, compare, over_trials, summary
from benchnb.papers.published import PAPERS

SCRIPT = Path(sys.executable).with_name("benchnb")
CALL = "import sys; from benchnb.cli.app import main; sys.exit(main())"
QUICK = [name for name in ("random", "stratified") if name in METHODS] or METHODS[:1]
KEYS = "paper table row column published reproduced trials stderr data verdict".split()


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
    "Call a command that must succeed; what it printed"

    def say(*argv):
        try:
            code = main([str(word) for word in argv])
        except SystemExit as stop:
            code = stop.code or 0
        out, err = capsys.readouterr()
        assert code == 0, err
        assert "Traceback" not in err and "error" not in err
        return out

    return say


def process(*argv, **settings):
    "Call a command in a process of its own, which Ctrl-C ends even if we ignore it"
    given = dict(stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) | settings
    given["preexec_fn"] = lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)
    return subprocess.run([sys.executable, "-c", CALL, *map(str, argv)], **given)


def narrow(text):
    "No line is wider than a terminal"
    wide = [line for line in text.splitlines() if len(line) > 80]
    assert not wide, wide
    return text


# Help --------------------------------------------------------------------------


@pytest.mark.parametrize("command", COMMANDS)
def test_help_has_an_example_and_fits_the_terminal(command, call):
    text = narrow(call(command, "--help"))
    assert text.startswith(f"Usage: benchnb {command}")
    assert COMMANDS[command].run.__doc__ in text
    assert "example" in text and f"benchnb {command}" in text.split("example")[-1]


def test_help_lists_all_commands(call):
    text = narrow(call("--help"))
    listed = text.partition("Commands:\n")[2].partition("\n\n")[0]
    there = {line.split()[0] for line in listed.splitlines() if line[2] != " "}
    assert there == set(COMMANDS)
    assert "example: benchnb" in text


@pytest.mark.parametrize("command", COMMANDS)
def test_every_option_is_explained_once_beside_its_parameter(command, call):
    text = " ".join(call(command, "--help").split())
    for name, said in docments(COMMANDS[command].run, full=True).items():
        if name != "return":
            assert said.docment, f"{name} has no comment"
            assert " ".join(said.docment.split()) in text


FIGURES = "compare forecast plan tell estimate paired recommend tables data methods"


@pytest.mark.parametrize("command", [*FIGURES.split(), "import"])
def test_every_command_that_prints_figures_can_print_json(command, call):
    assert " --json " in call(command, "--help")


@pytest.mark.parametrize(
    "argv",
    [
        ["compare", "table.parquet", "--budgets=6", "--trials=1", "--methods=random"],
        ["forecast", "table.parquet", "--budgets=6", "--trials=1", "--methods=random"],
        ["recommend", "table.parquet", "--budget=6", "--methods=random", "--trials=2"],
        ["plan", "table.parquet", "--method=random", "--budget=6", "--out=new"],
        ["import", "table", "long.csv", "--out=new.parquet"],
        ["publish", "table.parquet", "--method=random", "--budget=6", "--out=small"],
        ["methods"],
        ["methods", "aipw"],
        ["data"],
    ],
    ids=lambda argv: " ".join(argv[:2]),
)
def test_json_is_valid_and_alone(argv, place, call):
    Path("long.csv").write_text("model,item,score\na,x,1\nb,x,0\n")
    assert json.loads(call(*argv, "--json"), parse_constant=refuse)


def test_figures_are_the_same_in_json_and_in_the_table(call):
    (row,) = json.loads(
        call(*COMPARE[:2], "--methods=aipw", *FEW[2:], "--budgets=6", "--json")
    )
    text = call(*COMPARE[:2], "--methods=aipw", *FEW[2:], "--budgets=6")
    assert f" {100 * row['mae']:.2f} ±" in text and row["budget"] == 6


@pytest.mark.parametrize("command", COMMANDS)
def test_the_examples_of_the_help_are_valid(command, call):
    example = call(command, "--help").split("example")[-1].partition(":")[2]
    lines = example.replace("\\\n", " ").strip().splitlines()
    for line in lines:
        words = line.partition(">")[0].split()
        call = parse([word.strip("'") for word in words[words.index("benchnb") + 1 :]])
        assert isinstance(call, Call)


def test_version(call):
    assert call("--version") == f"benchnb {benchnb.__version__}\n"


def test_the_installed_script_is_this_command():
    done = subprocess.run([SCRIPT, "--version"], capture_output=True, text=True)
    assert done.stdout == f"benchnb {benchnb.__version__}\n", done.stderr
    assert (done.returncode, done.stderr) == (0, "")


def test_the_interpreter_finds_it_too():
    argv = [sys.executable, "-m", "benchnb", "--version"]
    done = subprocess.run(argv, capture_output=True, text=True)
    assert done.stdout == f"benchnb {benchnb.__version__}\n", done.stderr


# compare -----------------------------------------------------------------------

COMPARE = ["compare", "table.parquet", "--methods", ",".join(QUICK)]
FEW = ["--budgets", "6,12", "--trials", "2", "--seed", "1"]


def test_compare_prints_every_method_at_every_budget(call):
    text = narrow(call(*COMPARE, *FEW))
    assert "24 models x 60 items, 3 tasks" in text
    assert "random split, 6 targets a trial, 2 trials" in text
    figures = over_trials(summary(compare(table(), QUICK, [6, 12], 2, seed=1)))
    lines = text.splitlines()
    head = next(n for n, line in enumerate(lines) if line.startswith("items"))
    rows = lines[head + 1 :][: len(figures)]
    for budget, group in figures.groupby("budget"):
        order = group.sort_values("mae")
        for row, line in zip(order.itertuples(), rows[: len(group)], strict=True):
            assert row.method in line
            assert f" {100 * row.mae:.2f} ±" in line
            assert f"{row.coverage:.0%}" in line
        assert rows[0].startswith(f"{budget:>5}")
        rows = rows[len(group) :]


def test_compare_leaves_no_file_that_was_not_asked_for(place, call):
    before = files_in(place)
    call(*COMPARE, *FEW)
    assert files_in(place) == before


@pytest.mark.filterwarnings("ignore")
def test_every_method_can_be_compared_by_its_name(call):
    text = narrow(call("compare", "table.parquet", "--budgets", "12", "--trials", "1"))
    assert all(f" {name}" in text for name in METHODS)


def test_compare_reads_long_csv_and_jsonl(place, call):
    values = pd.DataFrame(table().values, table().models.index, table().items.index)
    long = values.rename_axis("model").reset_index().melt("model", var_name="item")
    long = long.rename(columns={"value": "score"})
    long["task"] = long["item"].map(table().items["task"])
    long["weight"] = long["item"].map(table().items["weight"])
    long.to_csv("long.csv", index=False)
    lines = [json.dumps(row) + "\n" for row in long.to_dict("records")]
    Path("long.jsonl").write_text("".join(lines))
    wanted = call(*COMPARE, *FEW, "--split", "ability").splitlines()[3:]
    wanted = [line.rsplit(None, 1)[:1] for line in wanted]  # all but the times
    for file in ("long.csv", "long.jsonl"):
        text = call("compare", file, *COMPARE[2:], *FEW, "--split", "ability")
        assert [line.rsplit(None, 1)[:1] for line in text.splitlines()[3:]] == wanted


def test_compare_writes_what_was_asked_for(place, call):
    files = ["--out", "out/a.csv", "--rows", "out/deep/b.parquet", "--plot", "c.png"]
    text = call(*COMPARE, *FEW, *files)
    assert text.endswith("written: out/a.csv, out/deep/b.parquet, c.png\n")
    assert sorted(files_in(place)) == [
        "c.png",
        "out/a.csv",
        "out/deep/b.parquet",
        "table.parquet",
    ]
    frame = compare(table(), QUICK, [6, 12], 2, seed=1)
    rows = pd.read_parquet("out/deep/b.parquet")
    pd.testing.assert_frame_equal(
        rows.drop(columns="seconds"), frame.drop(columns="seconds")
    )
    figures = pd.read_csv("out/a.csv")
    assert list(figures.columns) == ["method", "budget", "trial", *METRICS]
    pd.testing.assert_frame_equal(
        figures.drop(columns="seconds"),
        summary(frame).drop(columns="seconds"),
        check_dtype=False,
    )
    assert Path("c.png").read_bytes().startswith(b"\x89PNG\r\n")
    assert len(Path("c.png").read_bytes()) > 5000


def test_results_replace_older_ones(place, call):
    Path("a.csv").write_text("old")
    call(*COMPARE, *FEW, "--out", "a.csv")
    assert Path("a.csv").read_text().startswith("method,budget,trial,mae")


def test_jobs_and_order_change_nothing(place, call):
    call(*COMPARE, *FEW, "--rows", "one.parquet")
    call(*COMPARE, *FEW, "--rows", "two.parquet", "--jobs", "2")
    one, two = (pd.read_parquet(f"{n}.parquet") for n in ("one", "two"))
    pd.testing.assert_frame_equal(one.iloc[:, :-1], two.iloc[:, :-1])


@pytest.mark.parametrize("split", ["given", "random", "date", "family", "ability"])
def test_every_split_can_be_named(split, call):
    assert f"\n{split} split, " in call(*COMPARE, *FEW, "--split", split)


def test_the_share_of_sources_is_used(call):
    assert ", 12 targets a trial" in call(*COMPARE, *FEW, "--sources", "0.5")


def test_the_zoo_is_a_table(call):
    argv = ["compare", "zoo", "--methods", QUICK[0], "--trials", "1", "--budgets", "20"]
    assert "317 models x 2,400 items" in call(*argv)


def test_the_table_is_narrow_whatever_the_figures():
    rows = {"method": ["a_method_with_a_very_long_name_indeed", "b"], "budget": 14_042}
    for value in (0.0, 0.5, 1.0, -1.0, np.nan):
        for error in (0.0, 0.25, np.nan):
            figures = pd.DataFrame(rows)
            for name in METRICS:
                figures[name], figures[f"{name}_se"] = value, error
            figures["seconds"] = 99.0
            lines = narrow(format_summary(figures)).splitlines()
            assert len({line.index(" .") for line in lines[1:] if " ." in line}) <= 1
            assert {len(line) for line in lines} == {len(lines[0])}  # columns in line


def pieces(journal):
    "How many finished pieces a journal holds"
    with contextlib.closing(sqlite3.connect(journal)) as base:
        return base.execute("SELECT count(*) FROM pieces").fetchone()[0]


# Interrupted -------------------------------------------------------------------


@pytest.mark.parametrize("jobs", [1, 2])
def test_ctrl_c_keeps_what_is_finished(jobs, place):
    fork = write_fork(place, f"Stopped{jobs}")
    argv = ["compare", "table.parquet", "--methods", fork, "--budgets", "6,12"]
    argv += ["--trials", "4", "--out", "a.csv", "--jobs", str(jobs)]
    stop = os.environ | {"FORK_AT": "4", "FORK_SIGNAL": str(int(signal.SIGINT))}
    stop["FORK_WORKERS"] = str(jobs)  # all of them are at work by then
    done = process(*argv, env=stop, start_new_session=True, timeout=100)
    assert (done.returncode, done.stdout) == (130, ""), done.stderr
    assert "Traceback" not in done.stderr
    assert done.stderr == "benchnb: stopped; the same command goes on from here\n"
    assert 1 <= pieces("a.csv.journal") < 8
    assert not Path("a.csv").exists()

    again = process(*argv)
    assert again.returncode == 0, again.stderr
    assert len(pd.read_csv("a.csv")) == 8
    assert not Path("a.csv.journal").exists()
    assert not [name for name in files_in(place) if name.startswith(".")]


def test_ctrl_c_without_a_file_promises_nothing(place):
    fork = write_fork(place, "Lost")
    stop = os.environ | {"FORK_AT": "1", "FORK_SIGNAL": str(int(signal.SIGINT))}
    argv = [*COMPARE[:2], "--methods", fork, *FEW]
    done = process(*argv, env=stop, start_new_session=True)
    assert (done.returncode, done.stderr) == (130, "benchnb: stopped\n")


def test_a_killed_command_goes_on_when_given_again(place):
    fork = write_fork(place, "Killed")
    argv = ["compare", "table.parquet", "--methods", fork, "--rows", "b.parquet", *FEW]
    stop = os.environ | {"FORK_AT": "3", "FORK_SIGNAL": str(int(signal.SIGKILL))}
    done = process(*argv, env=stop, start_new_session=True)
    assert (done.returncode, done.stdout) == (-signal.SIGKILL, "")
    assert pieces("b.parquet.journal") == 2
    # the pieces that are left: if one that is finished came again, this would kill it
    stop["FORK_AT"] = "3"
    again = process(*argv, env=stop, start_new_session=True)
    assert again.returncode == 0, again.stderr
    whole = process(*argv[:-6], "--rows", "c.parquet", *FEW)
    assert whole.returncode == 0, whole.stderr
    b, c = (pd.read_parquet(f"{n}.parquet").iloc[:, :-1] for n in "bc")
    pd.testing.assert_frame_equal(b, c)


def test_the_script_finds_a_module_where_one_is(place):
    "The script's own folder, not this one, is what Python looks through first"
    fork = write_fork(place, "Mine")
    argv = [SCRIPT, "compare", "table.parquet", "--methods", fork, *FEW, "--jobs", "2"]
    done = subprocess.run(argv, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert fork[:23] in done.stdout


# Pipes -------------------------------------------------------------------------


@pytest.mark.parametrize("argv", [["tables"], ["data"], ["compare", "--help"]], ids=str)
def test_a_reader_who_leaves_is_no_error(argv, place):
    "As in `benchnb tables | head`, but nothing at all is read"
    reading, writing = os.pipe()
    os.close(reading)
    done = process(*argv, stdout=writing)
    os.close(writing)
    assert done.stderr == ""
    assert done.returncode == 0


@pytest.mark.skipif(
    not Path("/dev/full").exists(), reason="this system has no /dev/full"
)
def test_a_full_disk_under_the_output_is_one_line(place):
    with open("/dev/full", "w") as full:
        done = process("tables", stdout=full)
    assert done.returncode == 2
    assert done.stderr.startswith("benchnb: error: ") and done.stderr.count("\n") == 1
    assert "No space left" in done.stderr


def test_a_terminal_without_unicode_is_no_error(place):
    ascii_only = os.environ | {"PYTHONIOENCODING": "ascii"}
    done = process(*COMPARE, *FEW, env=ascii_only)
    assert (done.returncode, done.stderr) == (0, "")
    assert QUICK[0] in done.stdout


# forecast and plan --------------------------------------------------------------

PLAN = ["forecast", "table.parquet", "--methods", ",".join(QUICK), "--trials", "2"]


def test_a_forecast_names_items_and_sources_for_every_method(call):
    text = narrow(call(*PLAN, "--width", "0.3", "--budgets", "10,20,40"))
    assert "24 models x 60 items, 3 tasks" in text
    first, second = text.split("\n\n")[1:3]
    assert first.startswith("items for an interval of 30 points (width 0.3)")
    assert second.startswith("source models that are enough, with 30 items")
    names = [
        [line.split()[0] for line in part.splitlines()[2:]] for part in (first, second)
    ]
    assert names == [["textbook", *QUICK], QUICK]
    assert "mean error of 5 points" in call(
        *PLAN, "--mae", "0.05", "--budgets", "10,40"
    )


def test_a_forecast_leaves_the_file_that_was_asked_for(place, call):
    before = set(files_in(place))
    call(*PLAN, "--budgets", "10,20", "--out", "plan.csv")
    assert set(files_in(place)) - before == {"plan.csv"}
    plan = pd.read_csv(place / "plan.csv")
    assert set(plan["curve"]) == {"items", "sources"}
    assert len(plan[plan["curve"] == "items"]) == 2 * len(QUICK)


@pytest.mark.parametrize("more", [[], ["--width", "0.1"], ["--budget", "6"]])
def test_a_plan_without_a_folder_names_the_forecast(more, place, capsys):
    assert main(["plan", "table.parquet", *more]) == 2
    err = capsys.readouterr().err
    assert "--out DIR" in err and "benchnb forecast" in err and err.count("\n") == 1


# tables and data ---------------------------------------------------------------


def refuse(name):
    "A number that JSON does not have"
    raise AssertionError(f"{name} is no JSON")


@pytest.mark.parametrize("paper", [None, *PAPERS])
def test_tables_are_valid_json_with_these_keys(paper, call):
    argv = ["tables", *([paper] if paper else []), "--json"]
    cells = json.loads(call(*argv), parse_constant=refuse)
    assert cells
    assert {cell["paper"] for cell in cells} == ({paper} if paper else set(PAPERS))
    for cell in cells:
        assert [key for key in cell if key in KEYS] == KEYS
        assert list(cell) == list(cells[0])
        assert isinstance(cell["verdict"], str) and cell["verdict"]
        for key in ("published", "reproduced", "stderr"):
            value = cell[key]
            assert value is None or isinstance(value, str) or math.isfinite(value)


@pytest.mark.parametrize("paper", [None, *PAPERS])
def test_tables_fit_the_terminal(paper, call):
    text = narrow(call("tables", *([paper] if paper else [])))
    for name in [paper] if paper else PAPERS:
        assert f"{name}, " in text


def test_data_lists_every_name_and_where_it_is(place, call, monkeypatch):
    def listed():
        "Name of each data set to the heading that it stands under"
        heading, where = None, {}
        for line in filter(None, narrow(call("data")).splitlines()[1:]):
            if line.startswith("  "):
                where[line.split()[0]] = heading
            else:
                heading = line
        return where

    assert set(listed()) == set(SOURCES.index)
    folder = place / "data"
    name, file = "gsm8k", SOURCES.loc["gsm8k", "file"]
    (folder / file).parent.mkdir(parents=True)
    (folder / file).write_bytes(b"")
    monkeypatch.setenv("BENCHNB_DATA", str(folder))
    where = listed()
    assert where[name] == "BENCHNB_DATA"
    assert where["zoo"] == data_sets().loc["zoo", "where"]


# Long lines ---------------------------------------------------------------------


@pytest.mark.parametrize("terminal", [True, False])
def test_an_error_is_one_line_and_coloured_on_a_terminal_only(
    terminal, place, capsys, monkeypatch
):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert main(["compare", "x" * 20, "--methods", "random"]) == 2
    err = capsys.readouterr().err
    assert ("\x1b[" in err) == terminal and err.count("\n") == 1
    monkeypatch.setenv("NO_COLOR", "1")
    assert main(["compare", "x" * 20, "--methods", "random"]) == 2
    assert "\x1b[3" not in capsys.readouterr().err


def test_headings_are_bold_on_a_terminal_only(place, capsys, monkeypatch):
    monkeypatch.delenv("NO_COLOR", raising=False)
    for terminal in (True, False):
        monkeypatch.setattr(sys.stdout, "isatty", lambda t=terminal: t)
        assert main(["data"]) == 0
        assert ("\x1b[" in capsys.readouterr().out) == terminal


def test_a_long_name_of_a_model_has_its_own_line(place, call):
    name = "a-name-as-long-as-some-have/" + "x" * 50
    rows = [f"{model},q{i},{i % 2}" for model in (name, "b") for i in range(4)]
    Path("long.csv").write_text("\n".join(["model,item,score", *rows]))
    narrow(call("import", "table", "long.csv", "--out", "long.parquet"))


# Tables from which nothing can be learnt ------------------------------------------


def test_tables_without_news_are_told_why(place, capsys):
    empty, equal = np.full((8, 20), np.nan), np.tile(np.arange(20) % 2, (8, 1))
    for values, says in (
        (empty, "no score in the table is known"),
        (equal, "all 8 models give nearly the same answers"),
    ):
        Scores(values).to_parquet("t.parquet")
        assert main(["compare", "t.parquet", "--methods", "random", "--budgets", "5"])
        assert says in capsys.readouterr().err


@pytest.mark.parametrize("budget", ["0", "61", "0tokens"])
def test_a_budget_is_checked_before_anything_is_measured(
    budget, place, capsys, monkeypatch
):
    monkeypatch.setattr(
        "benchnb.studies.recommend.default_method", None
    )  # not to be called
    assert main(["plan", "table.parquet", "--budget", budget, "--out", "new"]) == 2
    out, err = capsys.readouterr()
    assert (
        out == ""
        and "budget" in err
        and err.count("\n") == 1
        and not Path("new").exists()
    )


def test_a_folder_without_an_evaluation_names_the_command(place, capsys):
    assert main(["estimate", "nowhere"]) == 2
    assert "benchnb plan" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        (["compare", "zoo", "--methods", "guardd_irt"], "did you mean 'guarded_irt'?"),
        (["compare", "zoo", "--methods", "oracle"], "'benchnb methods' lists all"),
        (["methods", "colaborative_filtering"], "'collaborative_filtering'?"),
        (["compare", "zooo"], "did you mean 'zoo'?"),
        (["compare", "mine.csv"], "'benchnb data' lists all"),
        (["tables", "foo"], "'benchnb tables --help' lists all"),
    ],
)
def test_an_unknown_name_gets_one_short_line(argv, says, place, capsys):
    assert main([*argv]) == 2
    err = capsys.readouterr().err
    assert err.endswith(f"{says}\n") and f" {argv[-1]!r}: " in err
    assert len(err.rstrip()) <= (94 if "colab" in err else 80)  # a name has 22 letters
