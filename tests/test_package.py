"""What people install: a package that starts fast, and ships its data.

The wheel holds benchnb/resources: the embedded data sets and the published tables."""

import ast
import json
import os
import pydoc
import re
import shutil
import subprocess
import sys
import tarfile
from configparser import ConfigParser
from dataclasses import fields
from inspect import signature

import pytest
from fastcore.docments import docments
from helpers.harnesses import copy_sources, wheel_unpacked

import benchnb
from benchnb.cli.app import COMMANDS, ORDER, as_flag, make_app, user_error_text
from benchnb.data.files import INSTALL_SOURCE, SITE_ADDRESS, pip_install_command
from benchnb.evaluation.method import format_allowed_values
from benchnb.evaluation.registry import LIBRARY_METHODS, find_class
from tools.project import INSTALL, texts, with_address
from tools.run import ROOT, notebooks

HEAVY = ["torch", "transformers", "sklearn", "ot", "interpret", "pygam", "kmedoids"]
HEAVY += ["matplotlib", "seaborn"]
LOADED = f"\nimport sys; print(*[m for m in {HEAVY} if m in sys.modules])"
HELP = """
import contextlib, io
from benchnb.cli.app import main
with contextlib.suppress(SystemExit), contextlib.redirect_stdout(io.StringIO()) as out:
    main(["--help"])
assert "compare" in out.getvalue()
"""


def python(code, path=ROOT, more=()):
    "What a fresh Python prints that runs this code, away from the checkout"
    command, env = [sys.executable, "-P", "-c", code, *more], {"PYTHONPATH": str(path)}
    done = subprocess.run(command, env=os.environ | env, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize("code", ["import benchnb", HELP], ids=["import", "help"])
def test_heavy_packages_are_imported_where_they_are_used(code):
    assert python(code + LOADED) == ""


SMALL = """
import sys
for name in ["sklearn", "kmedoids", "bm25s", "pooch", "httpx"]:
    sys.modules[name] = None  # as if it were not installed
from benchnb.cli.app import main
from benchnb.data.files import resource_path
from benchnb.live.bundles import load_bundle
from benchnb.live.in_inspect import fresh_evaluation
bundle = str(resource_path("bundles/swebench_verified_50"))
with open(sys.argv[1], "w") as file:
    file.write("item,score\\n")
    file.writelines(f"{name},1\\n" for name in load_bundle(bundle).ask())
assert main(["estimate", "--bundle", bundle, sys.argv[1]]) == 0
assert len(fresh_evaluation("swebench_verified", "guarded_irt", 20).ask())
"""


def test_estimating_needs_four_large_packages_only(tmp_path):
    "numpy, scipy, pandas and pyarrow (settings.ini says what they weigh)"
    assert "score  " in python(SMALL, more=[str(tmp_path / "answers.csv")])


PUBLIC = sorted({*benchnb.__all__} - {"Method", "Coreset"})


WANTED = """load load_table Scores compare recommend Method Coreset Estimate param
register get_method list_methods check_method Evaluation paired gate race audit publish
load_bundle Harness check_harness"""


def test_what_is_used_most_stands_at_the_top():
    assert {*WANTED.split()} <= {*benchnb.__all__}
    for name in WANTED.split():
        assert getattr(benchnb, name).__module__.startswith("benchnb.")


@pytest.mark.parametrize("name", PUBLIC)
def test_help_of_a_public_name_says_what_is_given_and_what_returns(name):
    "What stands beside a parameter in the source, which pydoc does not show"
    thing = getattr(benchnb, name)
    comments = docments(thing, full=True)
    text = pydoc.render_doc(thing, renderer=pydoc.plaintext)
    assert "Parameters\n" in text
    for parameter, one in comments.items():
        if parameter not in ("return", "self"):
            assert re.search(rf"(?m)^ *(\| +)?{parameter} : ", text), parameter
        assert not one.docment or one.docment.splitlines()[0] in text
    returns = comments.get("return", {}).get("anno") is not None
    assert not returns or isinstance(thing, type) or "Returns\n" in text


def test_help_of_a_method_and_of_an_evaluation():
    for name in LIBRARY_METHODS:
        text = pydoc.render_doc(find_class(name), renderer=pydoc.plaintext)
        for part in fields(find_class(name)):
            if declared := part.metadata.get("param"):
                assert f"{declared.meaning} ({format_allowed_values(declared)})" in text
    text = pydoc.render_doc(benchnb.Evaluation, renderer=pydoc.plaintext)
    assert text.count("Parameters\n") > 5
    help_it = "import benchnb; help(benchnb.compare)"
    assert "how often each is repeated" in python(help_it)


def test_every_progress_bar_says_what_it_counts():
    counted = "progress_bar|tqdm"
    for path in (ROOT / "benchnb").rglob("*.py"):
        for line in re.findall(
            rf"(?<!def )\b(?:{counted})\((.*)", path.read_text("utf-8")
        ):
            assert re.search(r'"[a-z ]+|desc=|\*\*how|^\)', line), (path, line)


def messages(path):
    "Texts of one line in a module but its docstrings; 'x' stands for what is filled in"
    nodes = [*ast.walk(ast.parse(path.read_text("utf-8")))]
    parts = [n.values for n in nodes if isinstance(n, ast.JoinedStr)]
    found = [[n] for n in nodes if isinstance(n, ast.Constant)] + parts
    left = {id(n.value) for n in nodes if isinstance(n, ast.Expr)}
    left |= {id(n) for some in parts for n in some}
    for some in found:
        words = [
            getattr(n, "value", "") if type(n) is ast.Constant else "'x'" for n in some
        ]
        text = "".join(map(str, words))
        known = len(some) == 1 and id(some[0]) in left
        if " " in text.strip() and "\n" not in text and not known:
            yield text


def test_flags_and_parameters_are_spoken_of_where_they_are_understood():
    "Below the command line no text names its options; on it none is left as `name=`"
    make_app(ORDER)
    names = {n for one in COMMANDS.values() for n in signature(one.run).parameters}
    parameter = re.compile(rf"(?<![-\w.,:])({'|'.join(names)})=")
    flag = re.compile(rf"(?<!\w)({'|'.join(map(as_flag, names))})\b")
    found = []
    for path in sorted((ROOT / "benchnb").rglob("*.py")):
        for text in messages(path) if "resources" not in path.parts else ():
            if path.parent.name == "cli":
                bad = parameter.search(text)
            else:
                text = re.sub(r"-T \w+=\S+", "", text)  # Inspect's, not ours
                shown = user_error_text(ValueError(text), names) or ""
                bad = flag.search(text) or parameter.search(shown)
            found += [(path.name, text)] if bad else []
    assert not found


def test_below_the_command_line_no_text_names_a_command():
    make_app(ORDER)
    named = re.compile(rf"\bbenchnb ({'|'.join(COMMANDS)})\b")
    found = []
    for path in sorted((ROOT / "benchnb").rglob("*.py")):
        if path.parent.name not in ("cli", "live") and "resources" not in path.parts:
            found += [
                (path.name, text) for text in messages(path) if named.search(text)
            ]
    assert not found


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    "The wheel, built from a copy of the sources and unpacked into a folder of its own"
    return wheel_unpacked(tmp_path_factory.mktemp("wheel"))


FOUND = """
import benchnb, json, pathlib, zlib
from benchnb.cli.fork import read_chapters
from benchnb.data.sources import load
from benchnb.papers.published import published_cells
print(pathlib.Path(benchnb.__file__).parent)
print(len(load("helm_gsm8k").values), len(published_cells()))
print(zlib.crc32(json.dumps(read_chapters(), sort_keys=True).encode()))
"""


@pytest.mark.slow
def test_the_wheel_ships_modules_data_and_chapters(installed):
    "`benchnb copy` finds the same text in the wheel as in a checkout"
    kinds = ["*.py", "resources/**/*"]
    files = [path for kind in kinds for path in (ROOT / "benchnb").rglob(kind)]
    names = {path.relative_to(ROOT).as_posix() for path in files if path.is_file()}
    there = {path.relative_to(installed).as_posix() for path in installed.rglob("*")}
    template = "benchnb/resources/project/template"
    assert {"benchnb/resources/helm_gsm8k.parquet", f"{template}/.gitignore"} <= names
    assert not names - there
    where, *found = python(FOUND, installed).splitlines()
    assert where == str(installed / "benchnb")
    assert found == python(FOUND).splitlines()[1:]


RESULTS = ROOT / "nbs/results"
STORED = {path.name for path in RESULTS.iterdir()}


def code_cells(path):
    "The sources of the code cells of a notebook"
    cells = json.loads(path.read_text("utf-8"))["cells"]
    return ["".join(c["source"]) for c in cells if c["cell_type"] == "code"]


def test_every_stored_result_is_read_by_a_notebook_from_where_it_stands():
    named = set()
    for path in notebooks():
        for source in code_cells(path):
            for folder, name in re.findall(r'"((?:\.\./)*results)/([^"]+)"', source):
                assert (path.parent / folder).resolve() == RESULTS, (path, name)
                named.add(name)
    patterns = [re.sub(r"\{\w+\}", "*", name) for name in named]
    read = {file for name in patterns if name[0] != "*" for file in RESULTS.glob(name)}
    assert {path.name for path in read} | {"NOTICE"} == STORED


def test_every_table_that_ships_is_read_by_the_library():
    modules = [*(ROOT / "benchnb").rglob("*.py")]
    code = "".join(path.read_text("utf-8") for path in modules)
    tables = (ROOT / "benchnb/resources").glob("*.[ct][sx][vt]")
    assert [path.name for path in tables if f'"{path.name}"' not in code] == []


SDIST = """
import setuptools.build_meta, sys
print(setuptools.build_meta.build_sdist(sys.argv[1]))
"""


@pytest.mark.slow
def test_stored_results_ship_with_the_sources_and_not_in_the_wheel(installed, tmp_path):
    assert not STORED & {path.name for path in installed.rglob("*")} - {"NOTICE"}
    command = [sys.executable, "-c", SDIST, str(tmp_path)]
    subprocess.run(command, cwd=copy_sources(tmp_path), check=True, capture_output=True)
    [archive] = tmp_path.glob("*.tar.gz")
    with tarfile.open(archive) as file:
        names = {name.partition("/")[2] for name in file.getnames()}
    assert {f"nbs/results/{name}" for name in STORED} <= names
    assert "nbs/studies/all_methods.ipynb" in names


@pytest.mark.slow
def test_metadata_is_that_of_the_settings(installed):
    settings = ConfigParser(delimiters=["="])
    settings.read(ROOT / "settings.ini", encoding="utf-8")
    (folder,) = installed.glob("benchnb-*.dist-info")
    metadata = (folder / "METADATA").read_text("utf-8")
    version = settings["DEFAULT"]["version"]
    assert f"Version: {version}\n" in metadata and "Apache-2.0" in metadata
    assert f"version: {version}\n" in (ROOT / "CITATION.cff").read_text("utf-8")
    assert "benchnb = benchnb.cli.app:main" in (folder / "entry_points.txt").read_text()
    assert list(folder.rglob("LICENSE"))
    site = settings["DEFAULT"]["site"]
    assert (f"Project-URL: Documentation, {site}\n" in metadata) == bool(site)
    workflow = (ROOT / ".github" / "workflows" / "release.yml").read_text("utf-8")
    for one in settings["DEFAULT"]["pythons"].split():
        assert f"Classifier: Programming Language :: Python :: {one}\n" in metadata
        assert f'"{one}"' in workflow
    links = re.findall(r"\]\((.*?)\)", metadata)  # README.md, read somewhere else
    assert [link for link in links if not link.startswith("https://")] == []


EDITABLE = """
import setuptools.build_meta, sys
print(setuptools.build_meta.build_editable(sys.argv[1]))
"""
ORIGIN = """
import importlib.util, site, sys
site.addsitedir(sys.argv[1])
print(importlib.util.find_spec("benchnb").origin)
"""


def test_an_editable_package_is_found_in_the_folder_that_holds_the_checkout(tmp_path):
    "`benchnb`, the folder of the checkout, is no package: it must not hide the package"
    checkout, wheel = tmp_path / "benchnb", tmp_path / "wheel"
    (checkout / "benchnb").mkdir(parents=True)
    wheel.mkdir()
    for name in ("setup.py", "settings.ini", "README.md", "benchnb/__init__.py"):
        shutil.copy(ROOT / name, checkout / name)
    run = dict(capture_output=True, text=True, check=True)
    command = [sys.executable, "-c", EDITABLE, str(wheel)]
    subprocess.run(command, cwd=checkout, **run)
    [file] = wheel.glob("*.whl")
    shutil.unpack_archive(file, wheel / "site", "zip")
    command = [sys.executable, "-S", "-c", ORIGIN, str(wheel / "site")]
    env = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    done = subprocess.run(command, cwd=tmp_path, env=env, **run)
    assert done.stdout.strip() == str(checkout / "benchnb" / "__init__.py")


def test_a_public_name_is_defined_in_one_module():
    homes = {}
    for path in (ROOT / "benchnb").rglob("*.py"):
        for node in ast.parse(path.read_text("utf-8")).body:
            if not isinstance(node, ast.Assign):
                continue
            if (
                ast.unparse(node.targets[0]) == "__all__"
                and path.parent.name != "benchnb"
            ):
                for name in ast.literal_eval(node.value):
                    homes.setdefault(name, set()).add(path.as_posix())
    assert len(homes) > 400
    twice = {name: places for name, places in homes.items() if len(places) > 1}
    assert not twice


# How to install it: one address, which a release on the package index empties ---------


def test_all_texts_install_from_one_address():
    "Run `make format`; README.md is written from nbs/index.ipynb"
    settings = ConfigParser(delimiters=["="])
    settings.read(ROOT / "settings.ini", encoding="utf-8")
    settings = settings["DEFAULT"]
    assert (INSTALL_SOURCE, SITE_ADDRESS) == (
        settings["install_from"],
        settings["site"],
    )
    paths = texts()
    assert [p.name for p in paths if with_address(p) != p.read_text("utf-8")] == []
    names = {p.name for p in paths if INSTALL.search(p.read_text("utf-8"))}
    assert {"fork.ipynb", "index.ipynb", "first_steps.ipynb"} <= names


def test_an_address_that_is_not_there_is_named_nowhere():
    "nbdev's own settings hold where a site and a repository would be"
    settings = ConfigParser(delimiters=["="])
    settings.read(ROOT / "settings.ini", encoding="utf-8")
    settings = settings["DEFAULT"]
    where = {
        "github.com/benchnb": "repository",
        "gh:benchnb": "repository",
        "benchnb.github.io": "site",
    }
    words = [word for word, name in where.items() if not settings[name]]
    words += ["git+https"] if settings["install_from"] == "." else []
    left = ("settings.ini", "_modidx.py", "nbdev.yml")
    command = [
        "git",
        "ls-files",
        "*.md",
        "*.py",
        "*.ipynb",
        "*.cff",
        "*.qmd",
        "*.jinja",
        "*.yml",
    ]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    paths = [
        ROOT / name for name in run.stdout.split() if not name.startswith("tests/")
    ]
    faults = []
    for path in paths:
        if path.name not in left and path.is_file():
            text = path.read_text("utf-8")
            faults += [f"{path}: {word}" for word in words if word in text]
    assert not faults


def test_a_release_changes_one_constant(monkeypatch):
    monkeypatch.setattr("benchnb.data.files.INSTALL_SOURCE", "")
    assert pip_install_command("llm") == 'pip install "benchnb[llm]"'
    for path in texts():
        assert "benchnb @ git+" not in (text := with_address(path)), path
        if ".ipynb" in path.name:
            json.loads(text)


@pytest.mark.slow
def test_mypy_finds_nothing():
    command = [sys.executable, "-m", "mypy", "benchnb"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-2000:]


def test_every_promise_names_a_test_that_there_is():
    "SECURITY.md: at least one test a row"
    text = (ROOT / "SECURITY.md").read_text()
    rows = [line for line in text.split("\n") if line.startswith("| ")][1:]
    assert len(rows) > 10
    for row in rows:
        tests = re.findall(r"`([\w/]+\.py)::(\w+)`", row)
        assert tests, row
        for file, name in tests:
            assert f"def {name}(" in (ROOT / "tests" / file).read_text(), name
