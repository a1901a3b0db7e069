"A project's own method on the command line, as the tutorial has it"

import os
import subprocess
import sys
from pathlib import Path

import pytest
from helpers.small import table

from benchnb.cli.app import main
from tools.run import ROOT

CALL = "import sys; from benchnb.cli.app import main; sys.exit(main())"


def python(*words, cwd, **more):
    "Run Python afresh in a folder, with no trace of the test run"
    env = {k: v for k, v in os.environ.items() if k not in ("IN_TEST", "BENCHNB_DATA")}
    env |= {"PYTHONPATH": str(ROOT), "COLUMNS": "80"} | more
    words = [sys.executable, *map(str, words)]
    return subprocess.run(words, cwd=cwd, env=env, capture_output=True, text=True)


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    "A new project, and a small table beside it"
    place = tmp_path_factory.mktemp("fork") / "mine"
    assert main(["new", str(place)]) == 0
    table().to_parquet(place / "table.parquet")
    return place


def command(project, *words, **more):
    "Give a command in the project; what it printed"
    done = python("-c", CALL, *words, cwd=project, **more)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_fork_stands_in_the_list_of_methods(project):
    assert "my_method" not in command(project, "methods")
    listed = command(project, "methods", "--plugin", "mine/my_method.py")
    line = next(row for row in listed.splitlines() if row.startswith("my_method "))
    assert "adaptive" in line and "Find the sources" in line
    same = command(project, "methods", BENCHNB_PLUGIN="mine/my_method.py")
    assert same == listed


@pytest.mark.parametrize("jobs", [1, 2])
def test_the_fork_is_compared_on_the_command_line(project, jobs):
    words = [
        "compare",
        "table.parquet",
        "--methods",
        "random,my_method",
        "--jobs",
        jobs,
    ]
    words += ["--budgets", "10", "--trials", "2", "--plugin", "mine/my_method.py"]
    rows = [line.split() for line in command(project, *words).splitlines()]
    assert any("my_method" in row[:2] for row in rows)
    assert any("random" in row[:2] for row in rows)


def test_the_fork_is_compared_in_python(project):
    code = """
from benchnb.evaluation.compare import compare
from benchnb.data.scores import Scores
import mine.my_method

frame = compare(Scores.from_parquet("table.parquet"), ["random", "my_method"], [10], 2)
print(sorted(set(frame["method"])), frame["score"].notna().all())
"""
    done = python("-c", code, cwd=project)
    assert done.stdout.strip() == "['my_method', 'random'] True", done.stderr


def test_the_fork_evaluates_a_new_model_over_several_commands(project):
    plugin = {"BENCHNB_PLUGIN": "mine/my_method.py"}
    words = ["plan", "table.parquet", "--method", "my_method", "--budget", "8"]
    command(project, *words, "--harness", "list", "--out", "new", **plugin)
    for number in (1, 2):
        asked = (project / "new" / f"items_{number}.txt").read_text().splitlines()[1:]
        rows = ["item,score", *(f"{name},1" for name in asked)]
        (project / "answers.csv").write_text("\n".join(rows))
        said = command(project, "tell", "new", "answers.csv", **plugin)
    assert "score " in said and "8 of 60" in said
    alone = python("-c", CALL, "estimate", "new", cwd=project)
    assert alone.returncode == 2 and "'my_method' is not known" in alone.stderr
    assert "--plugin F.py" in alone.stderr


FAULTS = {
    "missing.py": (None, "name a Python file that exists"),
    "text.txt": ("", "name a Python file that exists"),
    "broken.py": ("1 / 0", "cannot be imported (ZeroDivisionError"),
    "half.py": ("def (", "cannot be imported (SyntaxError"),
    "empty.py": ("answer = 42", "registers no method: write @register"),
    "json.py": ("answer = 42", "has the name of another module: rename it"),
    "stop.py": ("import sys; sys.exit(3)", "cannot be imported (SystemExit: 3)"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_wrong_plugin_is_one_line(name, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delenv("BENCHNB_PLUGIN", raising=False)
    text, says = FAULTS[name]
    if text is not None:
        Path(name).write_text(text)
    assert main(["methods", "--plugin", name]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert err.startswith("benchnb: error: ") and name in err and says in err


METHOD = """
import numpy as np
from benchnb.evaluation.method import Coreset, Estimate
from benchnb.evaluation.registry import register

@register
class {name}(Coreset):
    "Fails"
    name = "{called}"
{body}
"""
FAILS = {
    "unprepared.py": ("    pass", "no attribute 'coreset_'"),
    "broken_run.py": (
        "    def run(self, rng):\n        yield {}['x']",
        "KeyError: 'x'",
    ),
    "broken_sum.py": (
        "    def fit(self, source, side=None):\n        np.ones(2) + np.ones(3)",
        "ValueError: operands could not be broadcast",
    ),
}


@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.parametrize("file", FAILS)
def test_a_method_that_fails_is_named(file, jobs, project):
    body, says = FAILS[file]
    called = file.removesuffix(".py")
    text = METHOD.format(name=called.title().replace("_", ""), called=called, body=body)
    (project / file).write_text(text)
    words = ["compare", "table.parquet", "--methods", called, "--budgets", "5"]
    words += ["--trials", "2", "--jobs", jobs, "--plugin", file]
    failed = python("-c", CALL, *map(str, words), cwd=project)
    assert failed.returncode == 2 and failed.stderr.count("\n") == 1, failed.stderr
    assert f"the method {called!r} of {file} failed" in failed.stderr
    assert says in failed.stderr and "BENCHNB_TRACEBACK=1" in failed.stderr
    whole = python("-c", CALL, *map(str, words), cwd=project, BENCHNB_TRACEBACK="1")
    assert "Traceback" in whole.stderr


@pytest.mark.parametrize("name", ["Mine", "RandomSampling"])
def test_a_name_of_the_library_is_refused(name, tmp_path, monkeypatch, capsys):
    from benchnb.evaluation.registry import get_method
    from benchnb.methods.sampling import RandomSampling

    monkeypatch.setattr(sys, "path", list(sys.path))
    path = tmp_path / f"taken_{name.lower()}.py"
    path.write_text(METHOD.format(name=name, called="random", body="    pass"))
    assert main(["methods", "--plugin", str(path)]) == 2
    err = capsys.readouterr().err
    assert "'random'" in err and "belongs to" in err and "choose another" in err
    assert err.count("\n") == 1 and path.name in err
    assert type(get_method("random")) is RandomSampling
