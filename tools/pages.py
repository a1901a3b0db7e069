"""What the processed notebooks say, as pandoc reads them, and what is wrong with them.

Quarto reports success on broken links and unresolved references; these checks do not.
"""

import ast
import copy
import json
import os
import re
from collections import Counter
from functools import cached_property
from urllib.parse import unquote

import nbformat
import yaml
from nbdev.config import get_config

from tools.chapters import has_picture
from tools.preview import (
    READ,
    as_text,
    colab_address,
    front_matter,
    is_lecture,
    page_names,
    pandoc,
    read_processed,
    sidebar,
)
from tools.reference import patched_classes
from tools.run import ROOT, notebooks

TAG = re.compile(r"<(?:img|a)\b[^>]*?\b(?:src|href)=[\"']([^\"']+)")


def plain(nb):
    "A processed notebook without pictures: tables that it printed are text too"
    nb = as_text(copy.deepcopy(nb), ["text/markdown", "text/html"])
    for cell in nb.cells:
        cell.pop("attachments", None)  # pandoc would give the pictures other names
        if cell.cell_type == "code":
            cell.outputs = []
    return nbformat.writes(nb)


def nodes(tree):
    "Type and content of every element that pandoc found, the outer ones first"
    if isinstance(tree, dict):
        if "t" in tree:
            yield tree["t"], tree.get("c")
        tree = list(tree.values())
    for part in tree if isinstance(tree, list) else []:
        yield from nodes(part)


class Page:
    "A processed notebook: links, what they may point to, and references"

    def __init__(self, path):
        self.nb = read_processed(path)
        self.links, self.ids, self.references = [], set(), set()
        cells = (
            self.nb.cells
        )  # pandoc puts a cell's id before the name of an attachment
        pairs = [(c.id, name) for c in cells for name in c.get("attachments", {})]
        self.attachments = {f"{cell}-{name}" for cell, name in pairs}
        tree, self.warnings = pandoc(plain(self.nb), f"-f{READ}", "-tjson")
        for kind, content in nodes(json.loads(tree)):
            self.take(kind, content)
        code = "\n".join(c.source for c in self.nb.cells if c.cell_type == "code")
        self.labels = re.findall(r"^#\| *label: *([\w-]+)", code, flags=re.M)
        told = "\n".join(c.source for c in self.nb.cells if c.cell_type == "markdown")
        given = re.findall(r"\{#([\w:.-]+)", re.sub(r"`[^`\n]*`", "", told))
        self.ids |= {*self.labels, *given}  # those of formulas and tables are Quarto's

    def take(self, kind, content):
        "Note what one element of the page links to, is called, or refers to"
        if kind in ("Link", "Image"):
            self.links.append(content[2][0])
        elif kind in ("RawInline", "RawBlock") and content[0] == "html":
            self.links += TAG.findall(content[1])
            self.ids |= set(re.findall(r"\bid=[\"']([^\"']+)", content[1]))
        elif kind == "Cite":
            self.references |= {cited["citationId"] for cited in content[0]}
        if kind in ("Header", "Div", "Span"):
            self.ids.add((content[1] if kind == "Header" else content[0])[0])


class Site:
    "All processed notebooks of a folder, and the faults of the site made of them"

    def __init__(self, proc, config):
        self.proc, self.config = proc, config  # config: what _quarto.yml says
        self.paths = [p.relative_to(proc).as_posix() for p in notebooks(proc)]
        cfg = get_config(path=ROOT)
        self.address = cfg["doc_host"] + cfg["doc_baseurl"] + "/"
        self.repository = f"{cfg['git_url']}/blob/{cfg['branch']}/"

    @cached_property
    def names(self):
        return page_names(self.proc)

    @cached_property
    def pages(self):
        return {path: Page(self.proc / path) for path in self.paths}

    @cached_property
    def sources(self):
        return {page: path for path, page in self.names.items()}

    def goal(self, path, target):
        "File and anchor that a link leads to; no file where it leads outside"
        inside = target.removeprefix(self.address)
        folder = os.path.dirname(path) if inside == target else ""
        kind, colon, _ = inside.partition(":")
        if target.startswith("//") or colon and kind.replace("+", "").isalpha():
            return None, ""  # another site, or data in the page
        file, _, anchor = unquote(inside).partition("#")
        file = os.path.normpath(os.path.join(folder, file)) if file else path
        return self.sources.get(file, file), anchor

    def fault(self, path, target):
        "Why a link on a page leads nowhere; None where it leads somewhere or outside"
        if unquote(target) in self.pages[path].attachments:
            return None
        if target.startswith(self.repository):
            file = unquote(target.removeprefix(self.repository)).partition("#")[0]
            return None if (ROOT / file).exists() else f"there is no {file}"
        file, anchor = self.goal(path, target)
        if file is None:
            return None
        if not (self.proc / file).is_file():
            return f"there is no {file}"
        known = not anchor or file not in self.pages or anchor in self.pages[file].ids
        return None if known else f"there is no #{anchor} in {file}"

    def broken_links(self):
        for path, page in self.pages.items():
            for target in page.links:
                if fault := self.fault(path, target):
                    yield f"{path}: {target}: {fault}"

    def unknown_references(self):
        for path, page in self.pages.items():
            for name in sorted(page.references - page.ids):
                yield f"{path}: @{name} is defined nowhere on the page"
            for name, count in Counter(page.labels).items():
                if count > 1:
                    yield f"{path}: {count} cells have the label {name}"

    def warnings(self):
        "What pandoc finds strange: an open div, a name given twice, a lost attachment"
        for path, page in self.pages.items():
            yield from (f"{path}: {warning}" for warning in page.warnings)

    def sidebar_faults(self):
        listed = Counter(path for _, path in sidebar(self.config))
        for path, count in listed.items():
            if not (self.proc / path).is_file():
                yield f"_quarto.yml lists {path}, which does not exist"
            if count > 1:
                yield f"_quarto.yml lists {path} {count} times"
        for path in self.paths:
            if path not in listed and not is_lecture(front_matter(self.pages[path].nb)):
                yield f"_quarto.yml does not list {path}"
        pages = Counter(self.names.values())
        yield from (
            f"{n} notebooks become {page}" for page, n in pages.items() if n > 1
        )

    def orphans(self):
        "Pages that no other page links to"
        linked = {"index.ipynb"}
        for path, page in self.pages.items():
            linked |= {self.goal(path, target)[0] for target in page.links} - {path}
        yield from (
            f"no page links to {path}" for path in self.paths if path not in linked
        )

    def without_colab(self):
        for path, page in self.pages.items():
            links = front_matter(page.nb).get("code-links", [])
            if colab_address(path) not in [link["href"] for link in links]:
                yield f"{path} has no link that opens it in Colab"

    def missing_files(self):
        "Style sheets and the like that _quarto.yml names; built-in themes have no dot"
        html = self.config.get("format", {}).get("html", {})
        named = [html.get(key) or [] for key in ("css", "include-after-body")]
        themes = html.get("theme") or []
        named += themes.values() if isinstance(themes, dict) else [themes]
        for files in named:
            for file in [files] if isinstance(files, str) else files:
                if "." in file and not (self.proc / file).is_file():
                    yield f"_quarto.yml names {file}, which does not exist"

    def unreadable_options(self):
        "Options of a cell that are no YAML: Quarto stops at the first of them"
        for path, page in self.pages.items():
            for cell in page.nb.cells:
                lines = re.findall(r"^#\| *([a-z-]+: .*)$", cell.source, flags=re.M)
                for line in lines if cell.cell_type == "code" else []:
                    try:
                        yaml.safe_load(line)
                    except yaml.YAMLError:
                        yield f"{path}: put quotes around the value of `{line}`"

    def figures_without_words(self):
        "Figures that a screen reader, or someone who leafs through, cannot use"
        for path, page in self.pages.items():
            for cell in page.nb.cells:
                if cell.cell_type == "code" and has_picture(cell):
                    slide = is_lecture(front_matter(page.nb))  # its title says what
                    for key in ("fig-alt",) if slide else ("fig-alt", "fig-cap"):
                        if not re.search(rf"^#\| *{key}: *\S", cell.source, flags=re.M):
                            yield f"{path}: the figure of cell {cell.id} has no {key}"

    def faults(self):
        "Everything that is wrong with the site"
        yield from self.sidebar_faults()
        yield from self.missing_files()
        yield from self.broken_links()
        yield from self.unknown_references()
        yield from self.warnings()
        yield from self.orphans()
        yield from self.without_colab()
        yield from self.unreadable_options()
        yield from self.figures_without_words()


def definitions(nb):
    "Public name and syntax tree of each exported function, class and method"
    for cell in nb.cells:
        if cell.cell_type != "code" or not re.match(r"#\| *exports?\b", cell.source):
            continue
        for node in ast.parse(cell.source).body:
            if not isinstance(node, ast.FunctionDef | ast.ClassDef):
                continue
            owners = patched_classes(node) if isinstance(node, ast.FunctionDef) else []
            for name in [f"{owner}.{node.name}" for owner in owners] or [node.name]:
                if not any(part.startswith("_") for part in name.split(".")):
                    yield name, node


def undocumented(nb, processed):
    "Exported definitions without a docstring, or that their page does not show"
    told = "\n".join(c.source for c in processed.cells if c.cell_type == "markdown")
    heads = re.findall(r"^#+ (\S+) \{#\S+ \.definition\}", told, flags=re.M)
    shown = {head.replace("\\_", "_") for head in heads}
    for name, node in definitions(nb):
        if not ast.get_docstring(node):
            yield f"{name} has no docstring"
        if name not in shown:
            yield f"{name} is not on its page"
