"""Every notebook runs, is clean and formatted, and is the source of its module.

A notebook runs with the data that ship; where BENCHNB_DATA names a folder, its cells
that are marked `data` run in a test of their own. NBDEV_FLAGS="slow" runs slow ones.
"""

import ast
import json
import os
import platform
import re
import shutil
import subprocess
import sys
from configparser import ConfigParser

import pytest
from helpers.faults import none_of

from tools.readme import readme
from tools.run import ROOT, notebooks, run_apart
from tools.tidy import format_cell

NBS = {path.relative_to(ROOT / "nbs").as_posix(): path for path in notebooks()}
ENV = {k: v for k, v in os.environ.items() if k not in ("IN_TEST", "BENCHNB_DATA")}
SETTINGS = ConfigParser(delimiters=["="])
SETTINGS.read(ROOT / "settings.ini", encoding="utf-8")
SETTINGS = SETTINGS["DEFAULT"]


def python(*args, cwd=ROOT):
    "Run Python afresh; what it printed is shown when it fails"
    command = [sys.executable, *args]
    done = subprocess.run(command, cwd=cwd, env=ENV, capture_output=True, text=True)
    if done.returncode:
        pytest.fail(done.stdout + done.stderr, pytrace=False)


HEAVY = """
bento/bento bento/facility_location bento/local_model bento/similarity bento/transfer
bigbench/held_out bigbench/records bigbench/recovery bigbench/regressors
bigbench/small_bench bigbench/splits cli/app cli/decide cli/fork cli/report cli/score
cli/small_benchmark cli/study course/slides/coresets course/slides/decisions
course/slides/irt course/slides/sampling course/slides/shift course/slides/tasks
data/files data/leaderboards evaluation/compare evaluation/guard evaluation/left_out
evaluation/planning evaluation/recommend live/bundles live/certificate
live/paired live/race live/stopping methods/adaptive_irt methods/atlas
methods/clustering
methods/collaborative_filtering methods/disco methods/essence_bench methods/faq
methods/guarded_irt methods/lego_irt methods/metabench methods/proeval methods/sampling
methods/sparse_eval methods/tailored_bench methods/tiny_benchmarks
papers/collaborative_filtering papers/predicting_big_bench papers/recovering_big_bench
papers/reproduced papers/tailored_bench stats/balanced_sampling stats/intervals
stats/irt stats/text studies/agents studies/all_methods tutorials/which_method
tutorials/your_agent tutorials/your_benchmark tutorials/your_method tutorials/your_model
tutorials/your_tasks
""".split()  # three seconds or more, each
LATE = [pytest.param(f"{n}.ipynb", marks=pytest.mark.slow) for n in HEAVY]
EACH = [name for name in NBS if name.removesuffix(".ipynb") not in HEAVY] + LATE


def test_the_list_of_heavy_notebooks_names_notebooks():
    assert {f"{name}.ipynb" for name in HEAVY} <= NBS.keys()


FLAGS = {*os.environ.get("NBDEV_FLAGS", "").split()}


def runs(path, flags):
    try:
        count = run_apart(path, flags)
    except RuntimeError as error:
        pytest.fail(str(error), pytrace=False)
    return count


@pytest.mark.parametrize("name", EACH)
def test_notebook_runs(name):
    "Without a network, and without results that do not ship"
    assert runs(NBS[name], FLAGS - {"data"}) > 0


def flags_of_cells(path):
    "The flags of each code cell of a notebook"
    known = {*SETTINGS["tst_flags"].split()}
    for cell in json.loads(path.read_text("utf-8"))["cells"]:
        if cell["cell_type"] == "code":
            heads = [line[2:].strip() for line in cell["source"] if line[:2] == "#|"]
            yield known & {*heads}


CELL_FLAGS = {name: [*flags_of_cells(path)] for name, path in NBS.items()}
DATA = [name for name, each in CELL_FLAGS.items() if any("data" in f for f in each)]


@pytest.mark.data
@pytest.mark.parametrize("name", [n for n in DATA if {"data"} in CELL_FLAGS[n]])
def test_notebook_runs_with_its_data(name):
    assert runs(NBS[name], FLAGS | {"data"}) > 0


def test_without_the_flag_a_cell_has_neither_data_nor_network(tmp_path, monkeypatch):
    "Where CI has set BENCHNB_DATA, a cell that needs it and has no flag fails"
    monkeypatch.setenv("BENCHNB_DATA", str(tmp_path))
    path = tmp_path / "page.ipynb"
    for source, error in {
        "import os; os.environ['BENCHNB_DATA']": "KeyError: 'BENCHNB_DATA'",
        "import benchnb; benchnb.load('gsm8k')": "cannot download",
        "import httpx; httpx.get('http://192.0.2.1')": "asked for 192.0.2.1",
        "import benchnb; benchnb.load('musr')": "musr is not here",
    }.items():
        cell = dict(cell_type="code", id="a", metadata={}, outputs=[], source=[source])
        nb = dict(cells=[cell], metadata={}, nbformat=4, nbformat_minor=5)
        path.write_text(json.dumps(nb), "utf-8")
        with pytest.raises(RuntimeError, match=error):
            run_apart(path)


def test_a_cell_that_shows_nothing_keeps_no_output(tmp_path):
    "execnb leaves what the cell showed before it was edited"
    path = tmp_path / "page.ipynb"
    output = dict(output_type="execute_result", execution_count=1, metadata={})
    output["data"] = {"text/plain": ["3"]}
    cell = dict(cell_type="code", id="a", metadata={}, source=["x = 4"])
    nb = dict(cells=[cell | {"outputs": [output]}], nbformat=4, nbformat_minor=5)
    path.write_text(json.dumps(nb | {"metadata": {}}), "utf-8")
    run_apart(path, store=True)
    assert json.loads(path.read_text("utf-8"))["cells"][0]["outputs"] == []


def test_a_notebook_with_data_cells_skips_them_where_the_data_are_missing():
    call = "skip_data_cells()"
    faults = []
    for name in DATA:
        cells = json.loads(NBS[name].read_text("utf-8"))["cells"]
        code = ["".join(c["source"]) for c in cells if c["cell_type"] == "code"]
        calls = [number for number, text in enumerate(code) if text.endswith(call)]
        first = [number for number, f in enumerate(CELL_FLAGS[name]) if "data" in f][0]
        faults += [name] * (not calls or calls[0] > first)
    none_of(faults, f"a hidden cell before the first data cell must call {call}:")


@pytest.mark.slow
def test_run_all_in_jupyter_comes_to_the_end_of_the_first_chapter(tmp_path):
    path, made = NBS["data/leaderboards.ipynb"], tmp_path / "made.ipynb"
    command = ["-m", "nbconvert", "--to", "notebook", "--execute", str(path)]
    python(*command, "--output", str(made), cwd=tmp_path)
    cells = json.loads(made.read_text("utf-8"))["cells"]
    texts = ["".join(o.get("text", "")) for c in cells for o in c.get("outputs", [])]
    assert sum(text.startswith("skipped: needs data") for text in texts) == 1


@pytest.fixture(scope="module")
def cells():
    "Where it stands, cell and source, over all notebooks"
    found = []
    for name, path in NBS.items():
        for number, cell in enumerate(json.loads(path.read_text("utf-8"))["cells"]):
            found.append((f"{name}, cell {number}", cell, "".join(cell["source"])))
    return found


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    "The notebooks and settings, cleaned and exported in a folder of their own"
    folder = tmp_path_factory.mktemp("copy") / "benchnb"
    skip = shutil.ignore_patterns(".*", "_*")
    shutil.copytree(ROOT / "nbs", folder / "nbs", symlinks=True, ignore=skip)
    (folder / "benchnb/data").mkdir(parents=True)
    written = ["__init__.py", "__main__.py", "data/__init__.py"]  # by hand
    for file in ["_quarto.yml", *(f"benchnb/{name}" for name in written)]:
        shutil.copy(ROOT / file, folder / file)
    # the cells are formatted: black would change nothing, in ten times the time
    text = (ROOT / "settings.ini").read_text("utf-8")
    text = text.replace("black_formatting = True", "black_formatting = False")
    (folder / "settings.ini").write_text(text, "utf-8")
    python("-c", "from nbdev.clean import nbdev_clean as f; f()", cwd=folder)
    python("-m", "tools.export", cwd=folder)
    return folder


@pytest.mark.parametrize("part, pattern", [("nbs", "*.ipynb"), ("benchnb", "*.py")])
def test_notebooks_are_clean_and_the_package_is_what_they_export(copy, part, pattern):
    here, there = (
        {p.relative_to(place): p.read_bytes() for p in (place / part).rglob(pattern)}
        for place in (ROOT, copy)
    )
    names = [name for name in here | there if name in there or name.suffix == ".py"]
    differ = [name for name in names if here.get(name) != there.get(name)]
    none_of(differ, "run `make format`; not clean, or not what the notebooks export:")


def test_version_is_that_of_settings():
    here = (ROOT / "benchnb/__init__.py").read_text()
    assert f'__version__ = "{SETTINGS["version"]}"' in here


def test_readme_is_the_index_notebook():
    text, pictures = readme()
    assert (ROOT / "README.md").read_text("utf-8") == text, "run `make format`"
    stored = {f"nbs/images/{p.name}": p for p in ROOT.glob("nbs/images/readme-*")}
    same = {path: file.read_bytes() for path, file in stored.items()} == pictures
    assert same, "run `make format`: the pictures of README.md are others"
    assert "![]" not in text, "give fig-alt"


@pytest.mark.slow
def test_code_is_formatted(cells):
    code = [c for c in cells if c[1]["cell_type"] == "code"]
    differ = [where for where, _, source in code if format_cell(source) != source]
    none_of(differ, "run `make format`; not as black writes it:")
    python("-m", "black", "--check", "-q", "--diff", "tests", "tools", "setup.py")


def test_ruff_finds_nothing():
    python("-m", "ruff", "check", "--no-cache", "--output-format=concise", ".")


def test_the_first_cell_holds_title_and_claim_alone(cells):
    "Docs processing drops whatever else stands there"
    firsts = [(w, s.strip()) for w, _, s in cells if w.endswith(", cell 0")]
    none_of(
        [where for where, text in firsts if len(text.splitlines()) > 3],
        "move the text after the claim behind a code cell, or the page loses it:",
    )


def test_flags_are_seen_and_have_no_import(cells):
    """nbdev reads one flag a line: in `#| data slow` it would not see the second.
    Docs processing executes every cell that has an import, whatever its flags."""
    flags, faults = set(SETTINGS["tst_flags"].split()), []
    for where, cell, source in cells:
        heads = [line[2:].split() for line in source.splitlines() if line[:2] == "#|"]
        mine = [head for head in heads if flags & {*head[:1]}]
        if cell["cell_type"] != "code" or not mine:
            continue
        faults += [f"{where}: a line for each flag"] * any(len(h) > 1 for h in mine)
        try:
            nodes = list(ast.walk(ast.parse(source)))
        except SyntaxError:  # no plain Python
            nodes = []
        if any(isinstance(node, ast.Import | ast.ImportFrom) for node in nodes):
            faults.append(f"{where}: move the imports to a cell without a flag")
    none_of(faults, "flags:")


def readable(cell, source):
    "The text of a cell and of its stored outputs, pictures left out"
    yield source
    for output in cell.get("outputs", []):
        data = {"text": output.get("text", [])} | output.get("data", {})
        yield from ("".join(v) for k, v in data.items() if not k.startswith("image"))


def test_outputs_are_small_without_errors_and_name_no_machine(cells):
    "Paths and hosts of the machine on which a notebook was run mean nothing to others"
    folders = r"(?<![\w.:/~-])/(?:home|mnt|opt|private|root|tmp|Users|var|work)/"
    host = platform.node().split(".")[0]
    if len(host) > 4 and host != "localhost":
        folders += rf"|\b{re.escape(host)}\b"
    faults = []
    for where, cell, source in cells:
        for output in cell.get("outputs", []):
            size = len(json.dumps(output)) // 1000
            faults += [f"{where}: {size} kB, over 300"] * (size > 300)
            if output["output_type"] == "error":
                faults.append(f"{where}: {output['ename']}")
        named = [re.search(folders, text) for text in readable(cell, source)]
        faults += [f"{where}: {found[0]}" for found in named if found]
    none_of(faults, "stored outputs:")
