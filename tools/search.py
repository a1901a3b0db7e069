"""What the search of the site knows: every section of every page, in the words it has.

The pages in _proc are read by pandoc: headings with their anchors, prose, and of the
code what it defines with its docstrings.
In a browser MiniSearch (npm) finds them (nbs/search.js); nbs/search_words.txt has the
words that mean the same."""

import json
import re
from pathlib import Path

import joblib
import yaml

from tools.assets import install
from tools.chapters import docstrings
from tools.export import PACKAGE, chapters
from tools.pages import pandoc
from tools.process import front_matter, is_lecture, quarto_config, read_processed
from tools.reference import entries_of, public_names
from tools.run import ROOT, notebooks

WORDS = ROOT / "nbs/search_words.txt"
INDEX = "search_index.json"
SCRIPTS = {  # what the page loads when somebody begins to search
    "minisearch/dist/es/index.js": "minisearch.js",
    "stemmer/index.js": "stemmer.js",
}
BREAKS = ("Para", "Plain", "Header", "LineBreak", "SoftBreak", "Cell")


def plain_text(node) -> str:
    "The words of what pandoc read, without code blocks, HTML and the marks of LaTeX"
    if isinstance(node, list):
        return "".join(plain_text(part) for part in node)
    if not isinstance(node, dict) or "t" not in node:
        return ""
    kind = node["t"]
    content = node.get("c")
    if kind == "Str":
        return content
    if kind in ("Space", "SoftBreak", "LineBreak"):
        return " "
    if kind == "Code":
        return content[1]
    if kind == "Math":
        return re.sub(r"\\(?:text|mathrm|hat|bar)|[\\{}]", "", content[1])
    if kind in ("CodeBlock", "RawBlock", "RawInline"):
        return ""
    if kind in ("Link", "Image", "Span", "Div", "Quoted", "Header"):
        content = content[2] if kind == "Header" else content[1]
    end = " " if kind in BREAKS else ""
    return plain_text(content) + end


def page_sections(
    text: str,  # Markdown of a page
) -> list[tuple[str, str, str]]:  # anchor, heading and words of each section
    "The sections of a page; what stands before the first heading has none"
    sections = [["", "", ""]]

    def read(blocks: list) -> None:
        for block in blocks:
            if block["t"] == "Header" and block["c"][0] <= 3:
                anchor = block["c"][1][0]
                sections.append([anchor, plain_text(block["c"][2]).strip(), ""])
            elif block["t"] == "Div":
                read(block["c"][1])
            else:
                sections[-1][2] += plain_text(block) + " "

    read(pandoc(text)[0]["blocks"])
    words = [(a, h, re.sub(r"\s+", " ", t).strip()) for a, h, t in sections]
    return [section for section in words if section[1] or section[2]]


def markdown_of(path: Path) -> tuple[str, str, str]:
    "Title, description and Markdown of a page, a notebook or a .qmd"
    if path.suffix == ".ipynb":
        nb = read_processed(path)
        front = front_matter(nb)
        cells = [
            c.source if c.cell_type == "markdown" else docstrings(c.source)
            for c in nb.cells[1:]
        ]
        return front["title"], front.get("description", ""), "\n\n".join(cells)
    _, head, text = path.read_text("utf-8").split("---\n", 2)
    front = yaml.safe_load(head)
    return front["title"], front.get("description", ""), text


def part_of_pages(config: dict) -> dict[str, str]:
    "The sidebar in which each page stands: guide, book, course, results or library"

    def hrefs(entries: list) -> list[str]:
        inside = [hrefs(entry["contents"]) for entry in entries if "contents" in entry]
        own = [entry["href"] for entry in entries if "href" in entry]
        return own + [href for part in inside for href in part]

    sides = config["website"]["sidebar"]
    return {href: side["id"] for side in sides for href in hrefs(side["contents"])}


def name_documents() -> list[dict]:
    "A document for each name that `benchnb` itself offers: what it does, and where"
    rows = []
    for name, place in public_names().items():
        for page in chapters(PACKAGE / f"{place}.py"):
            for entry in entries_of(PACKAGE / f"{place}.py", page):
                if entry.name == name:
                    kind = "class" if entry.is_class else "function"
                    rows.append(
                        {
                            "page": f"reference/{page.removesuffix('.ipynb')}.html",
                            "title": name,
                            "part": "reference",
                            "anchor": entry.anchor(),
                            "section": "",
                            "text": f"{kind} {entry.name}: {entry.doc}",
                        }
                    )
    return rows


def search_index(
    proc: Path,  # the processed pages
) -> list[dict]:  # page, title, part, and anchor, section and text
    "A document for each section of the site, and one for each public name"
    parts = part_of_pages(quarto_config(proc))
    lectures = {
        path
        for path in notebooks(proc)
        if is_lecture(front_matter(read_processed(path)))
    }
    paths = [*notebooks(proc), *sorted(proc.glob("*.qmd"))]
    paths = [p for p in paths if p not in lectures and p.stem not in ("404", "book")]

    def read(path: Path) -> list[dict]:
        here = path.relative_to(proc)
        title, description, text = markdown_of(path)
        page = {
            "page": here.with_suffix(".html").as_posix(),
            "title": title,  # with the name in the sidebar, where that is another
            "part": parts.get(here.as_posix(), "library"),
        }
        rows = page_sections(text)
        if not rows or rows[0][1]:
            rows = [("", "", ""), *rows]
        keys = ("anchor", "section", "text")
        found = [page | dict(zip(keys, row, strict=True)) for row in rows]
        found[0]["summary"] = description
        return found

    # processes: `ast.parse` in two threads at once fails in Python 3.11
    pages = joblib.Parallel(n_jobs=2)(joblib.delayed(read)(path) for path in paths)
    documents = [row for rows in pages for row in rows]
    documents += name_documents()
    return [{"id": number} | row for number, row in enumerate(documents)]


def write_search(proc: Path, site: Path) -> None:
    "The index, the words that mean the same, and the scripts of the search, in a site"
    documents = search_index(proc)
    text = json.dumps({"documents": documents, "words": WORDS.read_text("utf-8")})
    (site / INDEX).write_text(text, encoding="utf-8")
    if packages := install():
        for source, name in SCRIPTS.items():
            code = (packages / source).read_text("utf-8")
            code = re.sub(r"^//# sourceMappingURL.*$", "", code, flags=re.M)
            (site / name).write_text(code, encoding="utf-8")
