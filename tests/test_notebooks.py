"""Every notebook runs, is clean and formatted, and is the source of its module.

NBDEV_FLAGS="data" also runs the cells with that flag (they need BENCHNB_DATA)."""

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
from tools.run import ROOT, notebooks
from tools.tidy import format_cell

NBS = notebooks()
NAMES = [path.relative_to(ROOT / "nbs").as_posix() for path in NBS]
ENV = {key: value for key, value in os.environ.items() if key != "IN_TEST"}
SETTINGS = ConfigParser(delimiters=["="])
SETTINGS.read(ROOT / "settings.ini", encoding="utf-8")
SETTINGS = SETTINGS["DEFAULT"]


def python(*args, cwd=ROOT):
    "Run Python afresh; return what it printed, and show it when it fails"
    command = [sys.executable, *args]
    done = subprocess.run(command, cwd=cwd, env=ENV, capture_output=True, text=True)
    if done.returncode:
        pytest.fail(done.stdout + done.stderr, pytrace=False)
    return done.stdout


def nbdev(name, cwd=ROOT, **kwargs):
    "Call one of nbdev's commands, such as clean.nbdev_clean"
    module, function = name.split(".")
    call = f"from nbdev.{module} import {function}; {function}(**{kwargs!r})"
    return python("-c", call, cwd=cwd)


def cells(path):
    "Number, cell and source of each cell of a notebook"
    for number, cell in enumerate(json.loads(path.read_text("utf-8"))["cells"]):
        yield number, cell, "".join(cell["source"])


def every_cell():
    "Where it stands, cell and source, over all notebooks"
    for path, name in zip(NBS, NAMES, strict=True):
        for number, cell, source in cells(path):
            yield f"{name}, cell {number}", cell, source


def test_there_are_notebooks():
    assert NBS


@pytest.mark.parametrize("name", NAMES)
def test_notebook_runs(name):
    flags = os.environ.get("NBDEV_FLAGS", "")
    path = str(ROOT / "nbs" / name)
    printed = nbdev("test.nbdev_test", path=path, flags=flags, n_workers=0)
    assert "Success." in printed  # nbdev is content when it finds nothing to run


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    "The notebooks and settings alone, in a folder of their own"
    folder = tmp_path_factory.mktemp("copy") / "benchnb"
    skip = shutil.ignore_patterns(".*", "_*")
    shutil.copytree(ROOT / "nbs", folder / "nbs", symlinks=True, ignore=skip)
    (folder / "benchnb").mkdir()
    for file in [
        "settings.ini",
        "_quarto.yml",
        "benchnb/__init__.py",
        "benchnb/__main__.py",
    ]:
        shutil.copy(ROOT / file, folder / file)
    return folder


def test_notebooks_are_clean(copy):
    nbdev("clean.nbdev_clean", cwd=copy)
    there = [copy / "nbs" / name for name in NAMES]
    pairs = zip(NAMES, NBS, there, strict=True)
    changed = [name for name, a, b in pairs if a.read_bytes() != b.read_bytes()]
    none_of(changed, "run `make format`; not clean:")


def modules(folder):
    return {path.relative_to(folder): path.read_text() for path in folder.rglob("*.py")}


def test_package_is_what_the_notebooks_export(copy):
    nbdev("doclinks.nbdev_export", cwd=copy)
    here, there = modules(ROOT / "benchnb"), modules(copy / "benchnb")
    differ = [path for path in here | there if here.get(path) != there.get(path)]
    none_of(differ, "run `make format`; not what the notebooks export:")


def test_version_is_that_of_settings():
    here = (ROOT / "benchnb/__init__.py").read_text()
    assert f'__version__ = "{SETTINGS["version"]}"' in here


def test_readme_is_the_index_notebook():
    text, pictures = readme()
    assert (ROOT / "README.md").read_text("utf-8") == text, "run `make format`"
    stored = {f"nbs/images/{p.name}": p for p in ROOT.glob("nbs/images/readme-*.png")}
    same = {path: file.read_bytes() for path, file in stored.items()} == pictures
    assert same, "run `make format`: the pictures of README.md are others"
    assert all("![]" not in line for line in text.splitlines()), "give fig-alt"
    assert (
        len(text.splitlines()) < 150
    ), "README.md is longer than its readers' patience"


def test_code_cells_are_formatted():
    code = (c for c in every_cell() if c[1]["cell_type"] == "code")
    differ = [where for where, _, source in code if format_cell(source) != source]
    none_of(differ, "run `make format`; not as black writes it:")


def test_python_files_are_formatted():
    python("-m", "black", "--check", "-q", "--diff", "tests", "tools", "setup.py")


def test_ruff_finds_nothing():
    python("-m", "ruff", "check", "--no-cache", "--output-format=concise", ".")


def test_chapters_are_named_by_their_titles():
    "Readers see page titles: the name of a file says nothing to them"
    named = re.compile(r"\[`?[\w./]+\.ipynb`?\]|`\d\d_\w+`")
    faults = [(w, named.search(s)) for w, c, s in every_cell() if named.search(s)]
    none_of((f"{w}: {m[0]}" for w, m in faults), "chapters named by their files:")


def test_the_first_cell_holds_title_and_claim_alone():
    "Docs processing drops whatever else stands there"
    nbs = {path: json.loads(path.read_text("utf-8"))["cells"][0] for path in NBS}
    firsts = {p: "".join(cell["source"]).strip() for p, cell in nbs.items()}
    none_of(
        [p.name for p, text in firsts.items() if len(text.splitlines()) > 3],
        "move the text after the claim behind a code cell, or the page loses it:",
    )


def test_every_cell_has_an_id():
    for path in NBS:
        ids = [cell.get("id") for _, cell, _ in cells(path)]
        assert all(ids), f"run `make format`: a cell without an id in {path.name}"
        assert len(set(ids)) == len(ids), f"an id twice in {path.name}"


def test_imports_stand_apart_from_data_and_accelerators():
    "Docs processing executes every cell that has an import, whatever its flags"
    flags = set(SETTINGS["tst_flags"].split())
    faults = []
    for where, cell, source in every_cell():
        if cell["cell_type"] != "code":
            continue
        heads = [line.split() for line in source.splitlines() if line[:2] == "#|"]
        if not flags & {head[1] for head in heads if len(head) > 1}:
            continue
        imports = [isinstance(n, ast.Import | ast.ImportFrom) for n in walk(source)]
        if any(imports):
            faults.append(where)
    none_of(faults, "move these imports to a cell of their own, without a flag:")


def walk(source):
    "The nodes of a cell's syntax tree; none where it is no plain Python"
    try:
        return list(ast.walk(ast.parse(source)))
    except SyntaxError:
        return []


def test_flags_stand_on_lines_of_their_own():
    "nbdev reads one flag a line: in `#| data slow` it would not see the second"
    two = re.compile(r"^#\| *(data|slow|gpu)\b.*\S *(data|slow|gpu)\b", re.M)
    faults = [place for place, _, source in every_cell() if two.search(source)]
    none_of(faults, "Write each flag of a cell on a line of its own:")


def test_outputs_are_small_and_without_errors():
    faults = []
    for where, cell, _ in every_cell():
        for output in cell.get("outputs", []):
            size = len(json.dumps(output))
            if size > 300_000:
                faults.append(f"{where}: {size // 1000} kB")
            if output["output_type"] == "error":
                faults.append(f"{where}: {output['ename']}")
    none_of(faults, "stored outputs over 300 kB, or with an error:")


def readable(cell, source):
    "The text of a cell and of its stored outputs, pictures left out"
    yield source
    for output in cell.get("outputs", []):
        data = {"text": output.get("text", [])} | output.get("data", {})
        yield from ("".join(v) for k, v in data.items() if not k.startswith("image"))


def test_no_machine_is_named():
    "Paths and hosts of the machine on which a notebook was run mean nothing to others"
    folders = r"(?<![\w.:/~-])/(?:home|mnt|opt|private|root|tmp|Users|var|work)/"
    host = platform.node().split(".")[0]
    if len(host) > 4 and host != "localhost":
        folders += rf"|\b{re.escape(host)}\b"
    texts = [(where, text) for where, *cell in every_cell() for text in readable(*cell)]
    texts += [(path.name, path.read_text("utf-8")) for path in ROOT.glob("*.md")]
    found = [(where, re.search(folders, text)) for where, text in texts]
    none_of((f"{w}: {m[0]}" for w, m in found if m), "names of one machine:")
