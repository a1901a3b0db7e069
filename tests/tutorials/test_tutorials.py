"A project's own method on the command line, as the tutorial has it"

import os
import subprocess
import sys
from pathlib import Path

import pytest
from helpers.forked import forked
from helpers.small import table

from benchnb.cli.app import main
from tools.run import ROOT

CALL = "import sys; from benchnb.cli.app import main; sys.exit(main())"


def environment(**more):
    "The variables of a reader, with no trace of the test run"
    env = {k: v for k, v in os.environ.items() if k not in ("IN_TEST", "BENCHNB_DATA")}
    return env | {"PYTHONPATH": str(ROOT), "COLUMNS": "80"} | more


def python(*words, cwd, **more):
    "Run Python afresh in a folder"
    words = [sys.executable, *map(str, words)]
    how = dict(cwd=cwd, env=environment(**more), capture_output=True, text=True)
    return subprocess.run(words, **how)


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    "A new project, and a small table beside it"
    place = tmp_path_factory.mktemp("fork") / "mine"
    assert main(["new", str(place)]) == 0
    table().to_parquet(place / "table.parquet")
    return place


def command(project, line, **more):
    "Give a command in the project; what it printed"
    done = forked(line.split(), cwd=project, env=environment(**more))
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_fork_stands_in_the_list_of_methods(project):
    assert "my_method" not in command(project, "list methods")
    listed = command(project, "list methods --plugin mine/my_method.py")
    assert any(line.startswith("my_method ") for line in listed.splitlines())


COMPARE = "compare table.parquet --methods {} --budgets 5 --trials 2 --jobs 2"


@pytest.mark.slow  # with workers: test_app has it of a module of the working folder
def test_the_fork_is_compared(project):
    line = COMPARE.format("random,my_method") + " --plugin mine/my_method.py"
    done = python("-c", CALL, *line.split(), cwd=project)  # with workers of its own
    assert done.returncode == 0, done.stderr
    printed = done.stdout
    assert "my_method" in printed and "random" in printed


def test_the_fork_evaluates_a_new_model_over_several_commands(project):
    plugin = {"BENCHNB_PLUGIN": "mine/my_method.py"}
    plan = "plan table.parquet --method my_method --budget 8 --harness list --out new"
    command(project, plan, **plugin)
    for number in (1, 2):
        asked = (project / "new" / f"items_{number}.txt").read_text().split()
        rows = ["item,score", *(f"{name},1" for name in asked)]
        (project / "answers.csv").write_text("\n".join(rows))
        printed = command(project, "tell new answers.csv", **plugin)
    assert "8 of 60" in printed
    without = forked(["estimate", "new"], cwd=project, env=environment())
    assert without.returncode == 2 and "my_method" in without.stderr
    assert "--plugin" in without.stderr


FAULTS = {
    "text.txt": "",
    "json.py": "answer = 42",  # the name of another module
    "stop.py": "import sys; sys.exit(3)",
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_wrong_plugin_is_one_line(name, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delenv("BENCHNB_PLUGIN", raising=False)
    Path(name).write_text(FAULTS[name])
    assert main(["list", "methods", "--plugin", name]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert err.startswith("benchnb: error: ") and name in err


METHOD = """
from benchnb.evaluation.method import Coreset
from benchnb.evaluation.registry import register

@register
class {name}(Coreset):
    "Fails"
    name = "{called}"

    def run(self, rng):
        yield {{}}["x"]
"""


def test_a_method_that_fails_is_named(project):
    text = METHOD.format(name="Broken", called="broken")
    (project / "fails.py").write_text(text)
    words = [*COMPARE.format("broken").split(), "--plugin", "fails.py", "--jobs", "1"]
    failed = forked(words, cwd=project, env=environment())
    assert failed.returncode == 2 and failed.stderr.count("\n") == 1, failed.stderr
    for word in ("'broken'", "fails.py", "KeyError: 'x'", "BENCHNB_TRACEBACK=1"):
        assert word in failed.stderr
    traced = environment(BENCHNB_TRACEBACK="1")
    whole = forked(words, cwd=project, env=traced)
    assert "Traceback" in whole.stderr


@pytest.mark.parametrize("name", ["Mine", "RandomSampling"])
def test_a_name_of_the_library_is_refused(name, tmp_path, monkeypatch, capsys):
    from benchnb.evaluation.registry import get_method
    from benchnb.methods.sampling import RandomSampling

    monkeypatch.setattr(sys, "path", list(sys.path))
    path = tmp_path / f"taken_{name.lower()}.py"
    path.write_text(METHOD.format(name=name, called="random"))
    assert main(["list", "methods", "--plugin", str(path)]) == 2
    err = capsys.readouterr().err
    assert "'random'" in err and err.count("\n") == 1 and path.name in err
    assert type(get_method("random")) is RandomSampling
