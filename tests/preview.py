"""The site without Quarto (`make preview`): notebooks in _proc, pages in _html.

Quarto builds the real site. This shows the same cells in the same order, so that text,
formulas, tables, pictures and links can be looked at on any machine."""

import os
import re
import subprocess
import sys
from html import escape
from pathlib import Path

import nbformat
import yaml
from run import ROOT, notebooks

ENV = {key: value for key, value in os.environ.items() if key != "IN_TEST"}
PROCESS = """
from nbdev.quarto import refresh_quarto_yml
from nbdev.serve import proc_nbs

refresh_quarto_yml()
proc_nbs(force=True, n_workers=2)
"""


def process(folder):
    "Let nbdev process the notebooks of a checkout into its folder _proc"
    warnings = ["ignore:Found cells containing", "error:Failed to create YAML"]
    flags = [word for warning in warnings for word in ("-W", warning)]
    command = [sys.executable, *flags, "-c", PROCESS]
    done = subprocess.run(command, cwd=folder, env=ENV, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"docs processing stopped:\n{done.stderr[-2500:]}")
    return folder / "_proc"


def sidebar(folder=ROOT):
    "Section and path of each page that _quarto.yml lists, in its order"
    text = (folder / "_quarto.yml").read_text("utf-8")

    def pages(contents, section=""):
        for entry in contents:
            if isinstance(entry, str):
                yield section, entry
            else:
                yield from pages(entry["contents"], entry["section"])

    return list(pages(yaml.safe_load(text)["website"]["sidebar"]["contents"]))


def read_processed(path):
    "A processed notebook, without the mark that nbdev leaves in some cells"
    nb = nbformat.v4.reads(path.read_text("utf-8"))
    for cell in nb.cells:
        cell.pop("has_sd", None)
    return nb


def front_matter(nb):
    "What nbdev puts into the first cell of a processed notebook: title and the like"
    return yaml.safe_load(nb.cells[0].source.strip().strip("-"))


def page_names(proc):
    "Where each processed notebook is rendered: core/01_x.ipynb -> core/x.html"
    names = {}
    for path in notebooks(proc):
        front = front_matter(read_processed(path))
        page = path.relative_to(proc).with_name(front["output-file"])
        names[path.relative_to(proc).as_posix()] = page.as_posix()
    return names


def readable(nb):
    "The notebook as a page: title on top, directives and echo-less code left out"
    front = front_matter(nb)
    head = f"# {front['title']}\n\n> {front.get('description', '')}"
    cells = [nbformat.v4.new_markdown_cell(head)]
    for cell in nb.cells[1:]:
        if cell.cell_type == "code":
            cell.setdefault("outputs", [])
            silent = "#| echo: false" in cell.source
            code = re.sub(r"^#\|.*\n?", "", cell.source, flags=re.M)
            cell.source = "" if silent else code
        cells.append(cell)
    nb.cells = cells
    return nb


def menu(names, here):
    "Links to all pages, as seen from the page `here`"
    start = os.path.dirname(here)
    rows = {}
    for section, path in sidebar():
        if path in names:
            to = os.path.relpath(names[path], start or ".")
            name = escape(Path(path).stem)
            rows.setdefault(section, []).append(f'<a href="{to}">{name}</a>')
    lines = [f"<b>{escape(s)}</b> {' · '.join(links)}" for s, links in rows.items()]
    return f"<nav style='padding:1em 3em'>{'<br>'.join(lines)}</nav>"


def render(proc, out):
    "Write a page for each processed notebook"
    from nbconvert import HTMLExporter
    from nbdev.config import get_config

    cfg = get_config(path=ROOT)
    site = cfg["doc_host"] + cfg["doc_baseurl"] + "/"
    names = page_names(proc)
    for path, page in names.items():
        nb = readable(read_processed(proc / path))
        exporter = HTMLExporter(exclude_input_prompt=True, exclude_output_prompt=True)
        html, _ = exporter.from_notebook_node(nb)
        up = "../" * page.count("/")
        html = html.replace(f'href="{site}', f'href="{up}')
        for other, there in names.items():
            old, new = Path(other).name, Path(there).name
            html = re.sub(rf'(href="[^":]*){re.escape(old)}', rf"\g<1>{new}", html)
        body = re.search(r"<body[^>]*>", html).end()
        html = html[:body] + menu(names, page) + html[body:]
        (out / page).parent.mkdir(parents=True, exist_ok=True)
        (out / page).write_text(html, encoding="utf-8")
    return names


if __name__ == "__main__":
    pages = render(process(ROOT), ROOT / "_html")
    print(f"{len(pages)} pages in _html")
