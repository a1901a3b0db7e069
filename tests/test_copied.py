"""What a page shows can be copied: all of its code, in its order, into a new session.

Names are checked on every page; the slow tier runs every page, the fast one a few."""

import json
import os
import re
import subprocess
import sys
from functools import cache

import nbformat
import pytest
from execnb.nbio import nb2str, read_nb
from helpers.faults import none_of
from nbdev.config import get_config
from nbdev.processors import FilterDefaults

from tools.chapters import directives, finish, shown_code
from tools.process import addresses
from tools.run import ROOT, notebooks, run_apart

NBS = ROOT / "nbs"
PAGES = [path.relative_to(NBS).as_posix() for path in notebooks()]
PAGES = [page for page in PAGES if "/slides/" not in page]
QUICK = ["stats/logistic.ipynb", "methods/faq.ipynb", "course/sampling.ipynb"]
FLAGS = {*get_config(path=ROOT).tst_flags.split()}
IMPORT = "from benchnb.cli.app import make_tutorial_terminal"


@cache
def page(here):
    "A notebook as its page shows it"
    made = FilterDefaults().nb_proc(read_nb(NBS / here))
    made.process()
    nb = nbformat.reads(nb2str(made.nb), as_version=4)
    finish(nb, here, addresses()[0])
    return nb


def copied(nb):
    "The code of a page as a notebook: with flags, and what is typed in a terminal"
    shown = {cell.id for cell in shown_code(nb)}
    cells = []
    for cell in nb.cells:
        flags = [f"#| {word}\n" for word in directives(cell) if word in FLAGS]
        if cell.id in shown:
            code = re.sub(r"^#\|.*\n?", "", cell.source, flags=re.M)
        elif command := cell.metadata.get("terminal"):
            code = f"{IMPORT}\n{command}"
        else:
            continue
        cells.append(nbformat.v4.new_code_cell("".join(flags) + code, id=cell.id))
    return nbformat.v4.new_notebook(cells=cells)


def undefined(nbs, folder):
    "Names that the code of pages uses but never defines, as ruff finds them"
    for here, nb in nbs.items():
        place = folder / here
        place.parent.mkdir(parents=True, exist_ok=True)
        nbformat.write(copied(nb), place)
    command = [sys.executable, "-m", "ruff", "check", "--isolated", "--no-cache"]
    command += ["--select", "F821", "--config", "builtins = ['display', 'get_ipython']"]
    command += ["--output-format", "json", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True)
    for fault in json.loads(done.stdout):
        here = os.path.relpath(fault["filename"], folder)
        yield f"{here}: cell {fault['cell']}: {fault['message']}"


def run_copied(nb, here, folder):
    "Run the code of a page where its notebook lies, with the files beside it"
    for path in NBS.iterdir():
        if path.name not in (here.partition("/")[0], ".ipynb_checkpoints"):
            (folder / path.name).symlink_to(path)
    place = folder / here
    place.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(copied(nb), place)
    try:
        run_apart(place)
    except RuntimeError as error:
        pytest.fail(str(error), pytrace=False)


def test_no_page_uses_a_name_that_it_does_not_show(tmp_path):
    faults = undefined({here: page(here) for here in PAGES}, tmp_path)
    none_of([*faults], "show the cell, or fold it, instead of hiding it:")


@pytest.mark.parametrize("here", QUICK)
def test_the_code_of_a_few_pages_runs(here, tmp_path):
    run_copied(page(here), here, tmp_path)


HELPED = """
import numpy as np
---
def helper(x):
    return 2 * np.ones(x)
---
helper(3).sum()
"""


def made_page():
    "A page without a fault, of an import, a helper and its call"
    cells = [*map(nbformat.v4.new_code_cell, HELPED.strip().split("\n---\n"))]
    nb = nbformat.v4.new_notebook(cells=cells)
    finish(nb, "stats/irt.ipynb", addresses()[0])
    return nb


@pytest.mark.parametrize("lacking, name", [(None, ""), (0, "np"), (1, "helper")])
def test_a_hidden_import_and_a_hidden_helper_are_found(lacking, name, tmp_path):
    nb = made_page()
    if lacking is None:
        assert not [*undefined({"stats/irt.ipynb": nb}, tmp_path)]
        return run_copied(nb, "stats/irt.ipynb", tmp_path)
    nb.cells[lacking].source = "#| echo: false\n" + nb.cells[lacking].source
    (fault,) = undefined({"stats/irt.ipynb": nb}, tmp_path)
    assert fault.endswith(f"Undefined name `{name}`")
    with pytest.raises(pytest.fail.Exception, match=f"name '{name}' is not defined"):
        run_copied(nb, "stats/irt.ipynb", tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("here", [here for here in PAGES if here not in QUICK])
def test_the_code_of_every_page_runs(here, tmp_path):
    run_copied(page(here), here, tmp_path)
