"""What the site is built from: processing changes nothing, links lead somewhere.

Quarto reports success on broken links and unresolved references; these tests do not."""

import os
import re
import shutil
from pathlib import Path
from urllib.parse import unquote

import pytest
from faults import none_of
from nbdev.config import get_config
from preview import (
    front_matter,
    page_names,
    process,
    read_processed,
    render,
    sidebar,
)
from run import ROOT, notebooks

SKIP = [".*", "_proc", "_docs", "_html", "build", "dist", "out", "*.egg-info"]
SKIP += ["__pycache__", "tests"]
LINK = re.compile(r"\]\(\s*<?([^()\s>]+(?:\([^()\s]*\))?)>?(?:\s+[\"'][^()]*)?\)")
TAG = re.compile(r"<(?:img|a)\b[^>]*?\b(?:src|href)=[\"']([^\"']+)")
CODE = re.compile(r"^```.*?^```|`[^`\n]*`", flags=re.M | re.S)


def contents(folder):
    "The bytes of every file, but for what processing makes"
    files = [path for path in folder.rglob("*") if path.is_file()]
    names = {path.relative_to(folder): path for path in files}
    skip = {"_proc", "__pycache__"}
    return {n: p.read_bytes() for n, p in names.items() if not skip & set(n.parts)}


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    "A copy of the checkout before and after processing, and what was made of it"
    copy = tmp_path_factory.mktemp("site") / "benchnb"
    shutil.copytree(ROOT, copy, symlinks=True, ignore=shutil.ignore_patterns(*SKIP))
    before = contents(copy)
    proc = process(copy)
    return before, contents(copy), proc


def test_processing_leaves_no_difference(site):
    before, after, _ = site
    changed = [str(n) for n in before | after if before.get(n) != after.get(n)]
    none_of(changed, "run `make format`; docs processing changes these files:")


def test_every_notebook_is_processed(site):
    there = {path.relative_to(site[2]) for path in notebooks(site[2])}
    assert there == {path.relative_to(ROOT / "nbs") for path in notebooks()}


def test_every_notebook_has_a_title_and_a_claim(site):
    fronts = {p: front_matter(read_processed(p)) for p in notebooks(site[2])}
    poor = [p.name for p, f in fronts.items() if not {"title", "description"} <= set(f)]
    none_of(poor, "the first cell is `# Title`, an empty line, `> a claim`; not in:")


def test_sidebar_lists_every_notebook_once():
    listed = [path for _, path in sidebar()]
    there = {path.relative_to(ROOT / "nbs").as_posix() for path in notebooks()}
    none_of(there - set(listed), "add these notebooks to _quarto.yml:")
    none_of(set(listed) - there, "_quarto.yml lists notebooks that do not exist:")
    assert len(listed) == len(there), "_quarto.yml lists a notebook twice"


def text_of(cell):
    "The Markdown of a processed cell and of its outputs"
    if cell.cell_type == "markdown":
        yield cell.source
    for output in cell.get("outputs", []):
        data = output.get("data", {})
        yield from ("".join(data.get(k, "")) for k in ["text/markdown", "text/html"])


def links(text):
    "Targets of the links and pictures in Markdown, code left out"
    plain = CODE.sub(lambda m: "code" if m[0][:3] != "```" else "", text)
    return LINK.findall(plain) + TAG.findall(plain)


def anchors(nb):
    "What `#name` may point to on a page: headings, as pandoc names them, and given ids"
    for text in (text for cell in nb.cells for text in text_of(cell)):
        yield from re.findall(r"\{#([\w:.-]+)", text)
        yield from re.findall(r"\bid=[\"']([^\"']+)", text)
        for heading in re.findall(r"^#{1,6} +(.*?)(?: *\{.*\})? *$", text, flags=re.M):
            plain = re.sub(r"[^\w\s.-]", "", heading.lower())
            yield re.sub(r"^[^a-z]+", "", re.sub(r"\s+", "-", plain.strip()))


class Pages:
    "The processed notebooks, and what a link can point to in them"

    def __init__(self, proc):
        cfg = get_config(path=ROOT)
        self.proc, self.names = proc, page_names(proc)
        self.address = cfg["doc_host"] + cfg["doc_baseurl"] + "/"
        self.books = {path: read_processed(proc / path) for path in self.names}
        self.ids = {path: set(anchors(nb)) for path, nb in self.books.items()}
        self.sources = {page: path for path, page in self.names.items()}

    def fault(self, path, target, attachments):
        "Why a link on a page leads nowhere; None where it leads somewhere or outside"
        inside = target.removeprefix(self.address)
        folder = os.path.dirname(path) if inside == target else ""
        kind, colon, rest = inside.partition(":")
        if kind == "attachment":
            return None if rest in attachments else f"no attachment {rest}"
        if colon and kind.isalpha():  # another site, or data in the page
            return None
        file, _, anchor = unquote(inside).partition("#")
        file = os.path.normpath(os.path.join(folder, file)) if file else path
        file = self.sources.get(file, file)
        if not (self.proc / file).exists():
            return f"there is no {file}"
        known = not anchor or anchor in self.ids.get(file, [anchor])
        return None if known else f"there is no #{anchor} in {file}"

    def broken_links(self):
        for path, nb in self.books.items():
            for cell in nb.cells:
                attachments = cell.get("attachments", {})
                for target in (t for text in text_of(cell) for t in links(text)):
                    if fault := self.fault(path, target, attachments):
                        yield f"{path}: {target}: {fault}"

    def unknown_references(self):
        for path, nb in self.books.items():
            text = "\n".join(text for cell in nb.cells for text in text_of(cell))
            code = "\n".join(c.source for c in nb.cells if c.cell_type == "code")
            kinds = r"(?<![\w/])@((?:fig|tbl|eq|sec|lst)-[\w-]+)"
            given = self.ids[path] | set(re.findall(r"#\| *label: *([\w-]+)", code))
            for name in set(re.findall(kinds, CODE.sub("", text))) - given:
                yield f"{path}: @{name} is defined nowhere"


def test_links_and_references_lead_somewhere(site):
    pages = Pages(site[2])
    none_of(pages.broken_links(), "links that lead nowhere:")
    none_of(pages.unknown_references(), "references that lead nowhere:")


def test_links_of_the_other_pages_lead_somewhere():
    faults = []
    for page in ROOT.glob("*.md"):
        for target in links(page.read_text("utf-8")):
            file = unquote(target).partition("#")[0]
            if file and not re.match(r"[a-z]+:", file) and not (ROOT / file).exists():
                faults.append(f"{page.name}: {target}")
    none_of(faults, "links that lead nowhere:")


def test_pages_can_be_looked_at_without_quarto(site, tmp_path):
    names = render(site[2], tmp_path)
    for page in names.values():
        html = (tmp_path / page).read_text("utf-8")
        assert "<h1" in html and "<nav" in html
        inside = re.findall(r'href="(?!#|[a-z]+:)([^"#]+)', html)
        there = [(tmp_path / page).parent / Path(to) for to in inside]
        assert not [to for to in there if not to.exists()]
