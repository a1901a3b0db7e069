"""`benchnb new` and `benchnb copy`: what they write, and (slow) that it works where
only the wheel is installed."""

import ast
import importlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from configparser import ConfigParser
from pathlib import Path

import pytest
from helpers.harnesses import PIP, build_wheel
from helpers.small import table
from nbdev.export import nb_export

import benchnb
from benchnb.cli.app import main
from benchnb.cli.fork import FLAGGED, find_chapter, new_names, own_cells, read_chapters
from benchnb.evaluation.registry import LIBRARY_METHODS, get_method, unregister
from benchnb.evaluation.simulate import method_rng
from tools.project import TEMPLATE
from tools.run import ROOT, apart, run_apart


def code_cells(path):
    "Source of each code cell"
    cells = json.loads(path.read_text("utf-8"))["cells"]
    return ["".join(c["source"]) for c in cells if c["cell_type"] == "code"]


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    "A new project with names that a careless template would break"
    place = tmp_path_factory.mktemp("new") / "our-exam"
    given = ["--title", 'Our "100%" exam', "--author", "Ada & co", "--user", "ada"]
    assert main(["new", str(place), *given]) == 0
    return place


def test_a_project_has_its_names_everywhere(project):
    facts = tomllib.loads((project / "pyproject.toml").read_text())
    entry = facts["project"]["entry-points"]["benchnb.methods"]
    assert entry == {"my_method": "our_exam.my_method:MyMethod"}
    assert facts["project"]["authors"] == [{"name": "Ada & co"}]
    assert f"benchnb[plots]>={benchnb.__version__}" in facts["project"]["dependencies"]
    settings = ConfigParser(delimiters=["="])
    settings.read(project / "settings.ini")
    both = settings["DEFAULT"]["title"], facts["tool"]["nbdev"]["title"]
    assert both == ("Our '100%' exam",) * 2
    assert settings["DEFAULT"]["lib_path"] == "our_exam"
    assert "Ada & co" in (project / "LICENSE").read_text()
    assert (project / "our_exam" / "my_method.py").is_file()


def test_a_project_needs_nothing_of_this_repository(project):
    "No word of this repository, nothing left of the template, all of it Python"
    files = [path for path in project.rglob("*") if path.is_file()]
    for path in files:
        text = path.read_text("utf-8")
        assert "@[" not in text and "@%" not in text, path
        found = re.search(
            r"from tools|helpers|make test|/work/|shared/|\.venv/bin", text
        )
        assert not found, (path, found)
        for source in code_cells(path) if path.suffix == ".ipynb" else [text]:
            if path.suffix in (".ipynb", ".py"):
                ast.parse(source)
    assert project / ".gitignore" in files
    readme = (project / "README.md").read_text()
    assert 'pip install -e ".[dev]"' in readme and "pytest" in readme
    assert "pip wheel --no-deps -w wheels" in readme  # where the workflows look for it
    for workflow in (project / ".github" / "workflows").iterdir():
        installs = re.findall(r"pip install (.*)", workflow.read_text())
        links = r"--find-links (base/)?wheels "
        assert installs and all(re.match(links, line) for line in installs)


def test_the_projects_method_is_found_and_keeps_the_rules(project):
    code = """
import sys; sys.path.insert(0, "our-exam")
from our_exam.my_method import MyMethod
from benchnb.evaluation.checks import check_method
check_method(MyMethod)
"""
    subprocess.run([sys.executable, "-c", code], cwd=project.parent, check=True)


MISTAKES = {
    "new full": "'full' is not empty: name a new folder",
    "new 7th": "'7th' cannot name a package: use letters, digits and _",
    "new json": "'json' is a package already: choose another folder name",
    "new NumPy": "'NumPy' is a package already: choose another folder name",
    "copy random full --name random": "'random' is a method already: give another --na",
    "copy random full --name Random": "'Random' is a method already: give another --na",
    "copy random full --name aipw": "'aipw' is a method already: give another --name",
    "copy random full --name numpy": "'numpy' is a module already: give another --name",
    "copy bento/bento full --name results": "'results_sim' is a method already",
    "copy guarded_ir full": "no chapter 'guarded_ir': did you mean 'guarded_irt'?",
    "copy xyz full": "no chapter 'xyz': take the last word of a page's address",
    "copy metrics full/a.txt": "'full/a.txt' is a file: name a folder",
    "copy metrics . --name a-b": "'a-b' is no name of a module: use letters and _",
}


@pytest.mark.parametrize("line", MISTAKES)
def test_a_mistake_is_one_line(line, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("full").mkdir()
    Path("full", "a.txt").touch()
    assert main(line.split()) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1) and MISTAKES[line] in err
    assert [p.name for p in tmp_path.rglob("*")] == ["full", "a.txt"]


def test_a_folder_is_quoted_as_it_was_typed(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["new", "mein Ordner"]) == 2
    assert "'mein Ordner' cannot name a package" in capsys.readouterr().err


def test_a_copy_says_how_its_method_is_compared(tmp_path, monkeypatch, capsys):
    "The last lines, with a table in place of DATA, compare the module that was written"
    monkeypatch.chdir(tmp_path)
    table().to_parquet("table.parquet")
    assert main(["copy", "random", "my folder"]) == 0
    out = capsys.readouterr().out
    line = out[out.index("benchnb compare DATA") :].replace("\\\n", "")
    words = shlex.split(line)
    assert words[1:5] == ["compare", "DATA", "--methods", "random,my_random"]
    nb_export("my folder/my_random.ipynb", "my folder", name="my_random")
    given = [*words[1:], "--budgets", "5", "--trials", "1"]
    given[1] = "table.parquet"
    try:
        assert main(given) == 0
    finally:
        for name in ("random", "aipw", "difference", "stratified"):
            unregister(new_names("methods/sampling", "my_random")[name])
        sys.modules.pop("my_random", None)
    assert "my_random" in capsys.readouterr().out


@pytest.mark.slow
def test_a_method_without_its_entry_point_is_noticed(project):
    text = (project / "our_exam" / "my_method.py").read_text()
    (project / "our_exam" / "my_other.py").write_text(
        text.replace('"my_method"', '"my_other"')
    )
    argv = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", "entry_point"]
    env = os.environ | {"PYTHONPATH": os.pathsep.join(map(str, [project, ROOT]))}
    command = [sys.executable, *argv, "tests"]
    done = subprocess.run(command, cwd=project, env=env, capture_output=True, text=True)
    (project / "our_exam" / "my_other.py").unlink()
    assert done.returncode == 1 and "'my_other'" in done.stdout, done.stdout


def test_a_copied_methods_entry_point_is_printed_whole(project, capsys):
    assert main(["copy", "stratified", str(project)]) == 0
    line = 'my_stratified = "our_exam.my_stratified:StratifiedSampling"'
    assert line in capsys.readouterr().out


def test_a_copy_goes_to_a_projects_notebooks(project, capsys):
    assert main(["copy", "irt", str(project)]) == 0
    copy = project / "nbs" / "my_irt.ipynb"
    assert f"written: {copy}" in capsys.readouterr().out
    text = "\n".join(code_cells(copy))
    assert "#| default_exp my_irt" in text and 'nb_export("my_irt.ipynb"' in text
    assert main(["copy", "irt", str(project)]) == 2
    assert "exists: give the copy another --name" in capsys.readouterr().err


@pytest.mark.parametrize("name", [*LIBRARY_METHODS])
def test_a_methods_name_is_as_good_as_its_chapters(name):
    chapter = find_chapter(name, BOOK)
    assert chapter.replace("/", ".") == LIBRARY_METHODS[name].partition(":")[0]


def test_a_copy_by_a_methods_name_is_called_after_it(tmp_path, capsys):
    assert main(["copy", "aipw", str(tmp_path)]) == 0
    assert "(in the module my_aipw)" in " ".join(capsys.readouterr().out.split())
    assert [path.name for path in tmp_path.iterdir()] == ["my_aipw.ipynb"]
    assert main(["copy", "kmeans", str(tmp_path)]) == 0


BOOK, SAMPLING = read_chapters(), "benchnb.methods.sampling"


def test_every_chapter_can_be_copied():
    "Each copy is Python, has no link inside the book, and changes no other names"
    for chapter, cells in BOOK.items():
        before = {text.replace("../../", "") for kind, text in cells}
        for kind, text in own_cells(cells, chapter, "mine"):
            own = re.search("#[|] export|default_exp|nb_export[(]", text)
            assert kind == "markdown" or own or text in before, text
            assert kind == "markdown" or not FLAGGED.search(text)  # shown, not run
            if kind == "markdown" and not text.startswith("```python"):
                assert not re.search(r"\]\([\w./]+\.ipynb", text), (chapter, text)
            elif kind == "code" and "%" not in text[:2]:
                ast.parse(text)
                assert "../../" not in text, (chapter, text)


def test_an_unchanged_copy_draws_the_same_items():
    "In the module, where it has another name"
    cells = own_cells(BOOK["methods/sampling"], "methods/sampling", "my_aipw")
    (text,) = (text for _, text in cells if 'name = "aipw" if' in text)
    space = {"__name__": "my_aipw", **vars(importlib.import_module(SAMPLING))}
    exec(text.replace("@register\n", ""), space)
    copied, original = space["AIPW"](), get_method("aipw")
    assert copied.name == "my_aipw"
    draws = [method_rng(one, 20, 0, step=0).random() for one in (copied, original)]
    assert draws[0] == draws[1]


# In empty environments ---------------------------------------------------------------


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    return build_wheel(tmp_path_factory.mktemp("wheel"))


def run(*words, cwd):
    "A program with nothing of this checkout around it"
    env = {"PATH": "/usr/bin:/bin", "MPLBACKEND": "agg", "HOME": str(cwd)}
    words = [str(word) for word in words]
    done = subprocess.run(words, cwd=cwd, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


def install(python, *packages):
    "Packages for an environment, as if this checkout were not there"
    env = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    words = [python, *PIP[1:], "install", *map(str, packages)]
    subprocess.run(words, env=env, check=True)


def environment(place, *packages):
    "A new virtual environment; its folder of programs"
    run(Path(sys.executable).resolve(), "-m", "venv", place / "env", cwd=place)
    install(place / "env/bin/python", *packages)
    return place / "env" / "bin"


@pytest.mark.slow
@pytest.mark.parametrize(
    "extra", ["dev", pytest.param("nbdev2", marks=pytest.mark.night)]
)
def test_a_project_passes_its_own_gates(extra, wheel, tmp_path):
    "With the newest nbdev and with 2.4; its method stands in the table of a command"
    programs = environment(tmp_path, f"{wheel}[new]")
    run(programs / "benchnb", "new", "my_benchmark", cwd=tmp_path)
    project, python = tmp_path / "my_benchmark", programs / "python"
    install(python, "-e", f"{project}[{extra}]")
    run(python, "-m", "pip", "check", cwd=project)
    assert "8 passed" in run(python, "-m", "pytest", "-q", cwd=project)
    module = project / "my_benchmark" / "my_method.py"
    text = module.read_text().replace("likes: int = 20", "likes: int = 3")
    module.write_text(text)  # a changed method
    table = ["compare", "swebench_verified", "--methods", "random,my_method"]
    table += ["--budgets", "25", "--trials", "2"]
    rows = run(programs / "benchnb", *table, cwd=tmp_path).splitlines()
    assert any(row.split()[:1] == ["my_method"] or "my_method" in row for row in rows)


CHAPTERS = ["guarded_irt", "stats/irt", "data/scores"]
RUN = """
import sys
from execnb.shell import CaptureShell
from fastcore.nbio import read_nb
shell = CaptureShell(sys.argv[1])
shell.run_all(read_nb(sys.argv[1]), exc_stop=True)
"""


FORKED = "methods/sampling methods/guarded_irt stats/irt bento/bento".split()
COPIED = [pytest.param(c, marks=pytest.mark.slow) for c in FORKED]
others = sorted({*BOOK} - {"index", *FORKED})  # all are read above
COPIED += [pytest.param(c, marks=pytest.mark.night) for c in others]


@pytest.mark.parametrize("chapter", COPIED)
def test_a_copied_chapter_runs(chapter, tmp_path):
    "Without data sets, in a folder of its own; its module can be imported"
    assert main(["copy", chapter, str(tmp_path), "--name", "mine"]) == 0
    assert run_apart(tmp_path / "mine.ipynb") > 0
    if (module := tmp_path / "mine.py").exists():
        apart(exec, f"import runpy; runpy.run_path({str(module)!r})", {})


@pytest.mark.night
def test_copied_chapters_run_and_become_modules(wheel, tmp_path):
    programs = environment(tmp_path, f"{wheel}[plots,papers]", "nbdev>=3.3")
    for chapter in CHAPTERS:
        run(programs / "benchnb", "copy", chapter, "mine", cwd=tmp_path)
        name = f"my_{chapter.rpartition('/')[2]}"
        run(programs / "python", "-c", RUN, f"{name}.ipynb", cwd=tmp_path / "mine")
        run(programs / "python", "-c", f"import {name}", cwd=tmp_path / "mine")
    table = ["compare", "helm_gsm8k", "--methods", "my_guarded_irt,guarded_irt"]
    table += [
        "--budgets",
        "30",
        "--trials",
        "1",
        "--plugin",
        "mine/my_guarded_irt.py",
        "--json",
    ]
    rows = json.loads(run(programs / "benchnb", *table, cwd=tmp_path))
    assert {row["method"] for row in rows} == {"my_guarded_irt", "guarded_irt"}
    assert len({row["mae"] for row in rows}) == 1  # the same items are drawn


@pytest.mark.slow
def test_copier_merges_a_newer_template(project, tmp_path):
    "The template in a repository with two tags; the project keeps what it changed"

    def git(*words, cwd):
        names = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "tag.gpgsign=false"]
        subprocess.run(["git", *names, *words], cwd=cwd, check=True)

    source = tmp_path / "benchnb"
    place = source / "benchnb" / "resources" / "project"
    project = shutil.copytree(project, tmp_path / "mine")
    shutil.copytree(TEMPLATE.parent, place)
    (source / "copier.yml").write_text((ROOT / "copier.yml").read_text())
    git("init", "-q", cwd=source)
    git("add", "-A", cwd=source)
    git("commit", "-qm", "one", cwd=source)
    git("tag", f"v{benchnb.__version__}", cwd=source)
    workflow = place / "template" / ".github" / "workflows" / "test.yml"
    workflow.write_text(workflow.read_text().replace("3.12", "3.13"))
    git("commit", "-qam", "two", cwd=source)
    git("tag", "v99.0", cwd=source)

    answers = project / ".copier-answers.yml"  # of a library without an address
    assert "_src_path" not in answers.read_text()
    answers.write_text(answers.read_text() + f"_src_path: {source}\n")
    mine = project / "our_exam" / "__init__.py"
    mine.write_text(mine.read_text().replace("0.0.1", "0.0.2"))
    git("init", "-q", cwd=project)
    git("add", "-A", cwd=project)
    git("commit", "-qm", "mine", cwd=project)
    update = [sys.executable, "-m", "copier", "update", "--defaults", "--quiet"]
    subprocess.run(update, cwd=project, check=True)
    assert "3.13" in (project / ".github/workflows/test.yml").read_text()
    assert "0.0.2" in mine.read_text()
    assert "_commit: v99.0" in (project / ".copier-answers.yml").read_text()
