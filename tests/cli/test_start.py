"""The first word of a command: its groups, and what is imported before it is said."""

import importlib
import inspect
import json
import re
import subprocess
import sys

import pytest
from fastcore.docments import docments
from helpers.small import table

from benchnb.cli.app import COMMANDS, GROUPS, MODULES, ORDER, RARE, SYNONYMS, main

CALL = """
import contextlib, io, sys
from benchnb.cli.app import main
silent = io.StringIO()
with contextlib.redirect_stdout(silent), contextlib.redirect_stderr(silent):
    code = main(sys.argv[1:])
print(code, *sys.modules)
"""
HEAVY = "numpy pandas scipy pyarrow joblib tqdm rich benchnb.data benchnb.live".split()
OURS = [name for name in ORDER if name not in {*GROUPS["Decide"], *GROUPS["Study"]}]
OURS = [name for name in OURS if name not in GROUPS["Fork"]]
HOME = {name: f"benchnb.cli.{MODULES[g]}" for g in GROUPS for name in GROUPS[g]}


def imported(*argv, cwd=None, code=0):
    "The modules that a command in a fresh process has imported"
    words = [sys.executable, "-c", CALL, *argv]
    done = subprocess.run(words, capture_output=True, text=True, cwd=cwd)
    assert done.returncode == 0, done.stderr
    first, *names = done.stdout.split()
    assert int(first) == code, argv
    return {*names}


def test_the_version_needs_no_parser():
    assert not imported("--version") & {"typer", *HEAVY}


@pytest.mark.parametrize(
    "argv", [["--help"], [], ["--colour"], ["nonsense"]], ids=" ".join
)
def test_the_list_of_commands_imports_none_of_them(argv):
    names = imported(*argv, code=0 if argv in (["--help"], []) else 2)
    own = {n for n in names if n.startswith("benchnb.cli.")}
    assert own == {"benchnb.cli.app"}
    assert not names & {*HEAVY}


# a fresh process that has imported what comes before the first word, and no more; it
# forks for each command
EACH = """
import json, os, sys
import benchnb.cli.app
for words in json.loads(sys.argv[1]):
    sys.stdout.flush()
    child = os.fork()
    if not child:
        sys.argv[1:] = words
        exec(CALL)
        sys.stdout.flush()
        os._exit(0)
    os.waitpid(child, 0)
"""


def test_help_and_a_wrong_option_import_one_command():
    given = [[name, word] for name in OURS for word in ("--help", "--colour")]
    code = EACH.replace("CALL", repr(CALL))
    command = [sys.executable, "-c", code, json.dumps(given)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    for (name, word), line in zip(given, lines, strict=True):
        code, *names = line.split()
        assert int(code) == (0 if word == "--help" else 2), (name, word)
        own = {n for n in names if n.startswith("benchnb.cli.")}
        assert own == {"benchnb.cli.app", HOME[name]}, (name, word, own)
        assert not {*names} & {*HEAVY}, (name, word, sorted({*names} & {*HEAVY}))


@pytest.fixture(scope="module")
def begun(tmp_path_factory):
    "An evaluation of a list of items, and its answers"
    folder = tmp_path_factory.mktemp("begun")
    table().to_parquet(folder / "s.parquet")
    how = "--method random --budget 12 --folds 0 --harness list --out"
    assert main(["plan", f"{folder}/s.parquet", *how.split(), f"{folder}/new"]) == 0
    asked = (folder / "new" / "items_1.txt").read_text().split()
    lines = ["item,score", *(f"{name},{n % 2}" for n, name in enumerate(asked))]
    (folder / "answers.csv").write_text("\n".join(lines))
    return folder


@pytest.mark.parametrize("argv", ["tell new answers.csv", "estimate new"])
def test_tell_and_estimate_import_what_they_use(argv, begun):
    names = imported(*argv.split(), cwd=begun)
    assert not names & {"scipy.stats", "sklearn", "matplotlib", "benchnb.cli.study"}
    read = {n for n in names if n.startswith("benchnb.harnesses.")}
    shared = ("harness", "logs", "measured", "parsing")
    read -= {f"benchnb.harnesses.{n}" for n in shared}
    assert not read, sorted(read)
    assert {n for n in names if n.startswith("benchnb.methods.")} == {
        "benchnb.methods.sampling"
    }


# The list and the commands --------------------------------------------------------


def test_the_list_says_what_the_commands_say():
    assert len(ORDER) == len({*ORDER}) == 20 and len(GROUPS) == 6
    for group in GROUPS.values():
        for name, line in group.items():
            importlib.import_module(HOME[name])
            assert COMMANDS[name].run.__doc__ == line
    assert {*COMMANDS} == {*ORDER}
    for word, line in SYNONYMS.items():
        assert word not in ORDER and line.split()[0] in ORDER


def test_every_option_has_a_help_and_rare_ones_exist():
    for name in ORDER:
        importlib.import_module(HOME[name])
        run, rare = COMMANDS[name].run, COMMANDS[name].rare.split()
        comments, names = docments(run, full=True), [*inspect.signature(run).parameters]
        assert all(comments[part].docment for part in names), name
        assert {*rare} <= {*names}, name


def test_the_help_shows_groups_in_80_columns(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    for terminal in (False, True):
        monkeypatch.setattr(sys.stdout, "isatty", lambda t=terminal: t)
        assert main(["--help"]) == 0
        text = re.sub(r"\x1b\[[\d;]*m", "", capsys.readouterr().out)
        places = [text.index(group) for group in GROUPS]
        assert places == sorted(places)
        assert max(map(len, text.splitlines())) <= 80
        assert main(["plan", "--help"]) == 0
        text = re.sub(r"\x1b\[[\d;]*m", "", capsys.readouterr().out)
        assert text.index("--budget") < text.index(RARE) < text.index("--folds")


def test_list_says_how_many(capsys):
    assert main(["list"]) == 0
    text = capsys.readouterr().out
    for kind in ("methods", "data", "bundles", "papers"):
        assert f" {kind} " in text
        assert main(["list", kind, "--json"]) == 0
    assert capsys.readouterr().out


def test_reading_options_are_those_of_the_import():
    "Other commands read logs as the table or the folder remembers"
    read = {"metric", "filter", "split", "reducer", "value", "interrupted", "match"}
    read |= {"columns", "columns_are", "skip_empty", "cost", "task"}
    for name in ("plan", "run", "tell", "estimate", "publish", "audit", "recommend"):
        importlib.import_module(HOME[name])
        names = {*inspect.signature(COMMANDS[name].run).parameters}
        assert not names & (read - {"split"}), (name, names & read)


def test_a_table_needs_no_import_and_a_guessed_format_is_said(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    rows = [f"m{m},{m % 2},{m % 3 > 0:d},1" for m in range(1, 25)]
    (tmp_path / "mine.csv").write_text("\n".join(["model,a,b,c", *rows]))
    assert main(["import", "mine.csv", "--out", "s.parquet"]) == 0
    text = capsys.readouterr().out
    assert "format: table (guessed from the files)" in text
    assert "no import was needed: every command takes mine.csv as it is" in text
    assert main(["import", "table", "mine.csv", "--out", "t.parquet"]) == 0
    assert "guessed" not in capsys.readouterr().out
    assert main(["audit", "mine.csv"]) == 0  # so it does


def test_the_printed_line_has_a_blank_that_is_seen_and_says_what_may_be_added(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    table().to_parquet("s.parquet")
    how = "plan s.parquet --method random --budget 9 --folds 0 --harness lm-eval --out"
    for words in ([*how.split(), "a"], [*how.split(), "b", "--model", "org/new"]):
        assert main(words) == 0
        text = " ".join(capsys.readouterr().out.split())
        assert "You may add --batch_size 8, --device cuda:0 and" in text
        blank = "--model" not in words
        assert ("pretrained=YOUR_MODEL " in text) == blank
        assert ("YOUR_MODEL is a blank: write your model's name" in text) == blank


def test_tasks_of_few_answers_are_listed_on_request(begun, monkeypatch, capsys):
    monkeypatch.chdir(begun)
    monkeypatch.setattr("benchnb.live.report.FEWEST_ANSWERS", 9)
    assert main(["tell", "new", "answers.csv"]) == 0
    capsys.readouterr()
    assert main(["estimate", "new"]) == 0
    short = capsys.readouterr().out
    assert main(["estimate", "new", "--tasks"]) == 0
    assert "\ntask " in capsys.readouterr().out and "\ntask " not in short
    assert " points" in short.splitlines()[0] and "$" not in short
