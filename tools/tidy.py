"""Bring the checkout into the form that the tests ask for: `make format`.

Code is formatted with black, notebooks are cleaned, modules exported,
README.md and nbs/nbdev.yml written. A second run changes nothing.

python -m tools.tidy nbs/stats/irt.ipynb tests/stats/test_irt.py   these files alone
"""

import os
import re
import subprocess
import sys
from pathlib import Path

from tools.export import export_notebooks
from tools.project import TEMPLATE, export_template, write_address
from tools.readme import write_readme
from tools.run import ROOT, notebooks


def format_cell(source):
    "A code cell as black writes it; leading `#|` lines and a final `;` stay"
    import black

    lines = source.split("\n")
    head = 0
    while head < len(lines) and (lines[head][:2] == "#|" or not lines[head].strip()):
        head += 1
    body = "\n".join(lines[head:]).rstrip()
    if not body or re.search(r"^\s*[%!]", body, flags=re.M):  # IPython's own language
        return source
    try:
        code = black.format_str(body, mode=black.Mode()).rstrip()
    except black.InvalidInput:
        return source  # running the notebook names the error
    quiet = ";" if body.endswith(";") and not code.endswith(";") else ""
    return "\n".join([*lines[:head], code]).strip("\n") + quiet


def tidy_notebook(path):
    "Format the code cells of a notebook"
    from execnb.nbio import read_nb, write_nb

    nb, changed = read_nb(path), False
    for cell in nb.cells:
        if cell.cell_type == "code":
            old, cell.source = cell.source, format_cell(cell.source)
            changed |= cell.source != old
    if changed:
        write_nb(nb, path)


def tidy_files(paths):
    "Format these notebooks and Python files, and export: quick, while writing"
    import black
    from nbdev.clean import nbdev_clean

    for path in paths:
        if path.suffix == ".py":
            black.format_file_in_place(path, True, black.Mode(), black.WriteBack.YES)
            continue
        tidy_notebook(path)
        nbdev_clean(str(path))
    export_notebooks([path for path in paths if path.suffix != ".py"], notebooks())


def main():
    if paths := [Path(name).resolve() for name in sys.argv[1:]]:
        return tidy_files(paths)
    write_address()
    for path in [*notebooks(), *notebooks(TEMPLATE / "nbs")]:
        tidy_notebook(path)
    python = [sys.executable, "-m"]
    subprocess.run(
        [*python, "black", "-q", "tests", "tools", "setup.py"], cwd=ROOT, check=True
    )
    steps = [  # cleaning gives every cell the id that export needs
        "from nbdev.clean import nbdev_clean; nbdev_clean()",
        "from tools.export import main; main()",
        "from nbdev.quarto import refresh_quarto_yml; refresh_quarto_yml()",
    ]
    env = {key: value for key, value in os.environ.items() if key != "IN_TEST"}
    for step in steps:
        subprocess.run([sys.executable, "-c", step], cwd=ROOT, env=env, check=True)
    export_template()
    write_readme()


if __name__ == "__main__":
    main()
