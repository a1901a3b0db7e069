"The shape of the package: arrows point downward, and short journeys through it"

import ast
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from helpers.logs import lm_eval, right_or_wrong, write_lm_eval
from helpers.small import table

import benchnb
from benchnb.cli.app import main as command
from benchnb.data.sources import load
from benchnb.evaluation.compare import compare
from benchnb.evaluation.registry import LIBRARY_METHODS, find_class, get_method
from benchnb.live.evaluation import Evaluation
from tools.run import ROOT

PACKAGE = Path(benchnb.__file__).parent


def python(*words, cwd=ROOT, status=0, **env):
    "What a fresh Python prints"
    command = [sys.executable, "-P", *map(str, words)]
    settings = dict(cwd=cwd, env=os.environ | env, capture_output=True, text=True)
    done = subprocess.run(command, **settings)
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout


def test_arrows_point_downward():
    python(
        "-c", "from importlinter.cli import lint_imports as f; raise SystemExit(f())"
    )


def test_an_upward_import_and_a_method_that_imports_another_are_found(tmp_path):
    skip = shutil.ignore_patterns("__pycache__", "resources")
    shutil.copytree(PACKAGE, tmp_path / "benchnb", ignore=skip)
    shutil.copy(ROOT / ".importlinter", tmp_path)
    for path, planted in {
        "stats/metrics.py": "from benchnb.methods import sampling",
        "methods/sort_and_search.py": "from benchnb.methods import clustering",
    }.items():
        with open(tmp_path / "benchnb" / path, "a") as file:
            file.write(f"\n{planted}\n")
    code = "from importlinter.cli import lint_imports as f; raise SystemExit(f())"
    settings = dict(cwd=tmp_path, status=1, PYTHONPATH=str(tmp_path))
    assert "0 kept, 2 broken" in python("-c", code, **settings)


WRITERS = {  # what changes a file where it stands
    *("write_bytes", "to_csv", "to_parquet", "savez", "savez_compressed", "truncate"),
    *("rmtree", "unlink", "copy2", "copyfile", "copytree"),
}
IN_PLACE = {  # where it is called -> why nothing that a user has told us can be lost
    "cli/app.py main": "os.devnull",
    "cli/data.py import_command": "Scores.to_parquet writes beside",
    "cli/decide.py _write_result": "adds to the page of a workflow",
    "cli/score.py Rounds.run_one": "logs of a round that runs again",
    "cli/score.py Rounds.rescue": "a copy in a temporary folder",
    "cli/small_benchmark.py print_advice": "a journal, after its table is written",
    "cli/study.py compare_command": "a journal, after its table is written",
    "cli/study.py transfer_command": "Transfer.to_csv writes beside",
    "data/files.py clear_unfinished": "unfinished files of processes that are gone",
    "data/sources.py fetch_source": "a download that is not finished",
    "data/untrusted.py write_csv": "given the name to write to",
    "evaluation/left_out.py write_left_out_errors": "in memory",
    "evaluation/registry.py save_method": "in memory",
    "harnesses/checks.py survives_corruption": "a copy that is damaged on purpose",
    "harnesses/harness.py export_scores.write": "given the name to write to",
    "live/evaluation.py Evaluation._begin": "a folder beside its place",
    "live/in_inspect.py note_outcome": "a copy beside the log",
    "stats/genetic_search.py Search.save.write": "given the name to write to",
}


def writes_in_place(tree, within=""):
    "Names of functions that call what changes a file where it stands"
    for node in ast.iter_child_nodes(tree):
        name = within
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            name = f"{within}.{node.name}".lstrip(".")
        if isinstance(node, ast.Call):
            text = ast.unparse(node.func)
            last = text.rpartition(".")[2]
            if last == "replace_file":  # what it is given writes beside the final name
                continue
            modes = [x.value for x in node.args if isinstance(x, ast.Constant)]
            opens = last == "open" and any({*str(m)[:2]} & {*"wax+"} for m in modes)
            on_path = last == "write_text" and text != last  # ours writes beside
            if last in WRITERS or opens or on_path or text == "os.remove":
                yield name
        yield from writes_in_place(node, name)


def test_what_a_user_told_is_written_beside_and_renamed():
    "No file is changed where it stands, but in the functions of this list"
    places = set()
    for path in PACKAGE.rglob("*.py"):
        functions = {*writes_in_place(ast.parse(path.read_text()))}
        places |= {f"{path.relative_to(PACKAGE)} {name}" for name in functions}
    assert places == IN_PLACE.keys()
    planted = (
        "def f(p):\n  p.write_text('')\n  with open(p, 'r+') as file: file.truncate()"
    )
    assert [*writes_in_place(ast.parse(planted))] == ["f"] * 3


JOURNEY = """
evaluation/compare.py evaluation/registry.py evaluation/simulate.py
evaluation/method.py data/scores.py data/splits.py
methods/sampling.py stats/intervals.py
"""


def journey(work):
    "Our files with functions that are executed"
    seen, here = set(), str(PACKAGE) + os.sep

    def note(frame, event, arg):
        code = frame.f_code
        if code.co_filename.startswith(here) and code.co_name != "<module>":
            seen.add(code.co_filename.removeprefix(here))

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(before)
    return seen


def test_a_comparison_passes_through_these_files_only():
    "To follow a comparison from the call to its figures, read these"
    get_method("random")  # to import is no part of the journey
    seen = journey(lambda: compare(table(), ["random"], [30], trials=1))
    assert seen <= set(JOURNEY.split())


def test_a_comparison_of_the_default_method_passes_through_thirteen_files():
    "Those of any method, how sources are held out, and the item response model"
    get_method("guarded_irt")
    scores = load("terminal_bench")
    scores = scores.select(models=scores.models.index[:40])
    seen = journey(lambda: compare(scores, ["guarded_irt"], [25], trials=1))
    assert "stats/irt.py" in seen and len(seen) <= 13


def test_an_answer_passes_through_twelve_files(tmp_path):
    "From `tell` to the method and to the disk"
    run = Evaluation(get_method("aipw").fit(table()), 12, folder=tmp_path / "a")
    answers = dict.fromkeys(run.ask(), 1.0)
    assert 5 < len(journey(lambda: run.tell(answers))) <= 12


def test_an_import_passes_through_ten_files(tmp_path):
    "From the command to the table on disk"
    lm_eval(tmp_path / "logs")
    line = ["import", "lm-eval", str(tmp_path / "logs"), "--repeated", "mean"]
    line += ["--out", str(tmp_path / "scores.parquet")]
    assert command(line) == 0  # what happens once is no part of the journey
    assert len(journey(lambda: command(line))) <= 10


IMPORTED = """
import sys
from benchnb.cli.app import main
for line in sys.argv[1:]:
    code = main(line.split())
    names = [name for name in sys.modules if name.startswith("benchnb.harnesses.")]
    print("imported:", code, *names)
"""
SHARED = {f"benchnb.harnesses.{name}" for name in ("harness", "logs", "measured")}


def test_a_harness_is_imported_when_it_is_named(tmp_path):
    "To find a name, or to plan, no other harness is imported"
    lm_eval(tmp_path / "logs")
    table().to_parquet(tmp_path / "table.parquet")
    plan = "plan table.parquet --method aipw --budget 20 --harness list --out mine"
    lines = [plan, "estimate mine", "import openllm"]
    lines += ["import lm-eval logs --repeated mean --out scores.parquet"]
    printed = python("-c", IMPORTED, *lines, cwd=tmp_path)  # one after another
    rows = [line.split()[1:] for line in printed.splitlines() if "imported:" in line]
    codes, names = zip(*[(int(row[0]), {*row[1:]}) for row in rows], strict=True)
    assert codes[0] == codes[3] == 0 and len(codes) == 4
    assert all(imported <= SHARED for imported in names[:3])
    assert names[3] == SHARED | {"benchnb.harnesses.lm_eval"}


FILES = {  # method -> our files passed: by a tell of a part, by the last tell, after it
    "aipw": (19, 26, 20),
    "guarded_irt": (19, 27, 21),
}


@pytest.fixture
def logged(tmp_path, monkeypatch):
    "A table read from logs, and a function that writes the new model's log"
    monkeypatch.chdir(tmp_path)
    right = {"sums": right_or_wrong(21, 30), "logic": right_or_wrong(21, 20, seed=1)}
    for number in range(20):
        answers = {task: rows[number].tolist() for task, rows in right.items()}
        write_lm_eval("logs", f"m{number}", answers)
    assert command("import lm-eval logs --out s.parquet".split()) == 0

    def log(place, items):
        ids = {task: [n for n in items if n.startswith(f"{task}/")] for task in right}
        numbers = {t: sorted(int(n.split("/")[1]) for n in ids[t]) for t in ids}
        answers = {t: {n: int(right[t][20][n]) for n in numbers[t]} for t in ids}
        write_lm_eval(place, "new", {t: x for t, x in answers.items() if x})

    return log


@pytest.mark.parametrize("method", FILES)
def test_tell_and_estimate_pass_through_so_many_files(method, logged):
    "The statistics of an estimate are the larger part of the longer journeys"
    plan = f"plan s.parquet --method {method} --budget 20 --folds 3 --out".split()
    seen = []
    for name in ("imports", "mine"):  # to import is no part of a journey
        assert command([*plan, name]) == 0
        asked = Evaluation.load(name).ask()
        logged(f"{name} part", asked[:8])
        logged(f"{name} rest", asked[8:])
        lines = ["tell", name, f"{name} part"], ["tell", name, f"{name} rest"]
        seen = [journey(lambda w=w: command(w)) for w in (*lines, ["estimate", name])]
    counts = [len(files) for files in seen]
    most = FILES[method]
    assert all(n <= top for n, top in zip(counts, most, strict=True)), (counts, seen)
    for files in seen[:2]:
        assert {f for f in files if f.startswith("harnesses/")} == {
            "harnesses/harness.py",
            "harnesses/lm_eval.py",
            "harnesses/logs.py",
            "harnesses/measured.py",
        }
    assert not any(file.startswith("harnesses/") for file in seen[2])


TELL = """
import sys
from benchnb.cli.app import main
assert main(["tell", *sys.argv[1:]]) == 0
rooms = "methods", "bento", "bigbench", "harnesses"
names = tuple(f"benchnb.{room}." for room in rooms)
print(*sorted(name for name in sys.modules if name.startswith(names)))
"""
HARNESSES = sorted(SHARED)  # of all of them


def test_an_evaluation_imports_its_own_method_and_harness_only(tmp_path, monkeypatch):
    scores = table()
    scores.to_parquet(tmp_path / "scores.parquet")
    lines = [f"new,{name},{k % 2}" for k, name in enumerate(scores.items.index)]
    (tmp_path / "log.csv").write_text("\n".join(["model,item,score", *lines]))
    plan = "plan scores.parquet --method aipw --budget 20 --harness list --out mine"
    monkeypatch.chdir(tmp_path)
    assert command(plan.split()) == 0
    printed = python("-c", TELL, "mine", "log.csv", cwd=tmp_path)
    imported = [*HARNESSES, "benchnb.methods.sampling"]
    assert printed.splitlines()[-1].split() == imported


def test_an_evaluation_with_a_harness_imports_no_other(logged, tmp_path):
    plan = "plan s.parquet --method aipw --budget 20 --out mine"
    assert command(plan.split()) == 0
    logged("new", Evaluation.load("mine").ask())
    printed = python("-c", TELL, "mine", "new", cwd=tmp_path)
    imported = [*HARNESSES, "benchnb.methods.sampling"]
    imported.insert(1, "benchnb.harnesses.lm_eval")
    assert printed.splitlines()[-1].split() == imported


COMPLETE = """
import importlib, pkgutil, benchnb.methods, benchnb.bento
from benchnb.evaluation.registry import LIBRARY_METHODS, _METHODS
for part in (benchnb.methods, benchnb.bento):
    for module in pkgutil.iter_modules(part.__path__, part.__name__ + "."):
        importlib.import_module(module.name)
print(*sorted(set(_METHODS) - set(LIBRARY_METHODS)))
"""


@pytest.mark.slow
def test_the_list_of_methods_is_right_and_complete():
    "Whatever a chapter of methods or tasks registers is in the list"
    for name in LIBRARY_METHODS:
        cls = find_class(name)
        assert cls.name == name and cls.__module__.startswith("benchnb.")
    assert python("-c", COMPLETE).split() == []
