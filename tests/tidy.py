"""Bring the checkout into the form that the tests ask for: `make format`.

Code is formatted with black, names of chapters become links, notebooks are cleaned,
modules exported, README.md and nbs/nbdev.yml written. A second run changes nothing."""

import os
import re
import subprocess
import sys
from pathlib import Path

from readme import write_readme
from run import ROOT, notebooks


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


def link_chapters(source, folder, chapters):
    "Markdown in which the name of another chapter, such as `01_metrics`, is a link"
    if source.startswith("# "):
        return source  # nbdev keeps the title and the description of this cell only

    def link(match):
        path = chapters.get(match[1])
        to = path and Path(os.path.relpath(path, folder)).as_posix()
        return f"[`{match[1]}`]({to})" if path else match[0]

    return re.sub(r"(?<!\[)`(\d\d_\w+)`", link, source)


def tidy_notebook(path, chapters):
    "Format the code cells of a notebook and link the chapters that it names"
    from execnb.nbio import read_nb, write_nb

    nb, changed = read_nb(path), False
    others = {name: other for name, other in chapters.items() if other != path}
    for cell in nb.cells:
        old = cell.source
        if cell.cell_type == "code":
            cell.source = format_cell(old)
        elif cell.cell_type == "markdown":
            cell.source = link_chapters(old, path.parent, others)
        changed |= cell.source != old
    if changed:
        write_nb(nb, path)


def main():
    paths = notebooks()
    chapters = {path.stem: path for path in paths}
    for path in paths:
        tidy_notebook(path, chapters)
    python = [sys.executable, "-m"]
    subprocess.run([*python, "black", "-q", "tests", "setup.py"], cwd=ROOT, check=True)
    steps = [  # cleaning gives every cell the id that export needs
        "from nbdev.clean import nbdev_clean; nbdev_clean()",
        "from nbdev.doclinks import nbdev_export; nbdev_export()",
        "from nbdev.quarto import refresh_quarto_yml; refresh_quarto_yml()",
    ]
    env = {key: value for key, value in os.environ.items() if key != "IN_TEST"}
    for step in steps:
        subprocess.run([sys.executable, "-c", step], cwd=ROOT, env=env, check=True)
    write_readme()


if __name__ == "__main__":
    main()
