"""What the processed notebooks hold, as pandoc reads them, and what is wrong with them.

Quarto reports success on broken links and unresolved references; these checks do not.
"""

import ast
import json
import os
import re
import subprocess
from collections import Counter
from functools import cached_property
from urllib.parse import unquote

import yaml

from tools.chapters import defined, has_picture, shown_code
from tools.process import (
    addresses,
    front_matter,
    is_lecture,
    read_processed,
    sidebar,
)
from tools.reference import patched_classes
from tools.run import ROOT, notebooks

READ = "-fmarkdown-example_lists+gfm_auto_identifiers"
TAG = re.compile(r"<(?:img|a)\b[^>]*?\b(?:src|href)=[\"']([^\"']+)")


def pandoc(text):
    "What pandoc reads in a Markdown text, and its warnings"
    import pypandoc

    command = [pypandoc.get_pandoc_path(), READ, "-tjson"]
    done = subprocess.run(command, input=text.encode(), capture_output=True, check=True)
    return json.loads(done.stdout), re.findall(
        r"\[WARNING\] *(.*)", done.stderr.decode()
    )


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
        self.front = front_matter(self.nb)
        self.code = [c for c in self.nb.cells if c.cell_type == "code"]
        self.links, self.ids, self.references, texts = [], set(), set(), []
        for cell in self.nb.cells[1:]:
            if cell.cell_type == "markdown":
                texts.append(cell.source)
                names = cell.get("attachments", {})
                self.ids |= {f"attachment:{name}" for name in names}
            for output in cell.get("outputs", []):  # tables that it printed
                data = output.get("data", {})
                texts.append(data.get("text/markdown") or data.get("text/html", ""))
        tree, self.warnings = pandoc("\n\n".join(texts))
        for kind, content in nodes(tree):
            self.take(kind, content)
        source = "\n".join(cell.source for cell in self.code)
        self.labels = re.findall(r"^#\| *label: *([\w-]+)", source, flags=re.M)
        given = re.findall(r"\{#([\w:.-]+)", re.sub(r"`[^`\n]*`", "", "\n".join(texts)))
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
        if kind in ("Header", "Div", "Span", "Link"):
            self.ids.add((content[1] if kind == "Header" else content[0])[0])


class Site:
    "All processed notebooks of a folder, and the faults of the site made of them"

    def __init__(self, proc, config):
        self.proc, self.config = proc, config  # config: what _quarto.yml says
        self.address, self.repository, _ = addresses()

    @cached_property
    def pages(self):
        paths = notebooks(self.proc)
        return {path.relative_to(self.proc).as_posix(): Page(path) for path in paths}

    @cached_property
    def rendered(self):
        "Where each notebook is rendered: stats/irt.ipynb -> stats/irt.html"
        files = {path: page.front["output-file"] for path, page in self.pages.items()}
        return {p: os.path.join(os.path.dirname(p), file) for p, file in files.items()}

    def goal(self, path, target):
        "File and anchor that a link leads to; no file where it leads outside"
        inside = target.removeprefix(self.address)
        folder = os.path.dirname(path) if inside == target else ""
        if re.match(r"//|[a-zA-Z+]+:", inside):
            return None, ""  # another site, or data in the page
        file, _, anchor = unquote(inside).partition("#")
        file = os.path.normpath(os.path.join(folder, file)) if file else path
        sources = {page: source for source, page in self.rendered.items()}
        return sources.get(file, file), anchor

    def fault(self, path, target):
        "Why a link on a page leads nowhere; None where it leads somewhere or outside"
        if target.startswith("attachment:"):
            known = unquote(target) in self.pages[path].ids
            return None if known else "is attached nowhere on the page"
        if target.startswith(self.repository):
            file = unquote(target.removeprefix(self.repository)).partition("#")[0]
            return None if (ROOT / file).exists() else f"there is no {file}"
        file, anchor = self.goal(path, target)
        if file is not None and not (self.proc / file).is_file():
            return f"there is no {file}"
        known = not anchor or file not in self.pages or anchor in self.pages[file].ids
        return None if known else f"there is no #{anchor} in {file}"

    def page_faults(self):
        "Broken links, references to nothing, and what pandoc finds strange"
        for path, page in self.pages.items():
            for target in page.links:
                if fault := self.fault(path, target):
                    yield f"{path}: {target}: {fault}"
            for name in sorted(page.references - page.ids):
                yield f"{path}: @{name} is defined nowhere on the page"
            for name, count in Counter(page.labels).items():
                if count > 1:
                    yield f"{path}: {count} cells have the label {name}"
            yield from (f"{path}: {warning}" for warning in page.warnings)

    def config_faults(self):
        "Pages that _quarto.yml lists twice or not at all, files that do not exist"
        listed = Counter(sidebar(self.config))
        for path, count in listed.items():
            if not (self.proc / path).is_file():
                yield f"_quarto.yml lists {path}, which does not exist"
            if count > 1:
                yield f"_quarto.yml lists {path} {count} times"
        for path, page in self.pages.items():
            if path not in listed and not is_lecture(page.front):
                yield f"_quarto.yml does not list {path}"
        for page, count in Counter(self.rendered.values()).items():
            if count > 1:
                yield f"{count} notebooks become {page}"
        html = self.config["format"]["html"]  # built-in themes have no dot
        themes = [html["theme"].values(), html.get("include-after-body", [])]
        for file in re.findall(r"[\w/-]+\.\w+", str(themes)):
            if not (self.proc / file).is_file():
                yield f"_quarto.yml names {file}, which does not exist"

    def orphans(self):
        "Pages that no other page links to"
        linked = {"index.ipynb"}
        for path, page in self.pages.items():
            linked |= {self.goal(path, target)[0] for target in page.links} - {path}
        return [f"no page links to {path}" for path in self.pages if path not in linked]

    def cell_faults(self):
        """Options of a cell that are no YAML: Quarto stops at the first of them; and
        figures that a screen reader, or someone who leafs through, cannot use"""
        for path, page in self.pages.items():
            slide = is_lecture(page.front)  # its title is the caption
            for cell in page.code:
                heads = re.findall(r"^#\| *([a-z-]+: .*)$", cell.source, flags=re.M)
                for line in heads:
                    try:
                        yaml.safe_load(line)
                    except yaml.YAMLError:
                        yield f"{path}: put quotes around the value of `{line}`"
                for key in ("fig-alt: ", "fig-cap: ") if has_picture(cell) else ():
                    if key != "fig-cap: " * slide and not any(
                        line.startswith(key) for line in heads
                    ):
                        yield f"{path}: the figure of cell {cell.id} has no {key[:7]}"

    def faults(self):
        "Everything that is wrong with the site"
        parts = self.config_faults, self.page_faults, self.orphans, self.cell_faults
        return [fault for part in parts for fault in part()]


def definitions(nb):
    "Public name and syntax tree of each exported function, class and method"
    for cell in nb.cells:
        if cell.cell_type != "code" or not re.match(r"#\| *export[is]?\b", cell.source):
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
    shown = {name for cell in shown_code(processed) for name in defined(cell.source)}
    for name, node in definitions(nb):
        if not ast.get_docstring(node):
            yield f"{name} has no docstring"
        if name not in shown:
            yield f"{name} is not on its page"
