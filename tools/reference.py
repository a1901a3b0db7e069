"""The reference: a page per module, and one of all names, from the docments.

Chapters tell; here signatures stand. What a definition says of itself is read from the
exported modules: its docstring, and its parameters as they are written, with the
comment behind each. The names that `benchnb` itself offers come first, each with an
example (benchnb/resources/examples.md) and the chapters that use it."""

import ast
import doctest
import json
import re
from dataclasses import dataclass
from functools import cache
from html import escape
from textwrap import dedent

import yaml

from tools.export import PACKAGE, chapter, chapters, modules_of

ROOT = PACKAGE.parent
EXAMPLES = ROOT / "benchnb/resources/examples.md"
MOST_CHAPTERS = 5  # that use a name, which its entry links
HEAD = ["| name | |", "|:--|:-----|"]


@dataclass
class Entry:
    "What a reader wants to know of a class, function or method"

    name: str  # Scores.select for a method
    is_class: bool
    doc: str
    line: int
    signature: str  # as it is written
    twin: bool = False  # a class beside a function of the same letters

    def anchor(self):
        "Where it stands on its page, as nbdev writes it"
        return self.name.lower() + "-class" * self.twin


def head_of(node, lines):
    "The lines of a function up to its docstring"
    end = max(node.lineno, node.body[0].lineno - 1)
    return dedent("\n".join(lines[node.lineno - 1 : end]))


def from_class(node, lines):
    "Entries of a class: itself with what makes it, then its methods"
    functions = [n for n in node.body if isinstance(n, ast.FunctionDef)]
    signature = [lines[node.lineno - 1]]
    for part in node.body:
        if isinstance(part, ast.AnnAssign) and ast.unparse(part.target)[0] != "_":
            signature += lines[part.lineno - 1 : part.end_lineno]
    for start in (n for n in functions if n.name == "__init__"):
        end = max(start.lineno, start.body[0].lineno - 1)
        signature += lines[start.lineno - 1 : end]
    doc = ast.get_docstring(node) or ""
    yield Entry(node.name, True, doc, node.lineno, "\n".join(signature))
    yield from (from_function(method, lines, node.name) for method in functions)


def from_function(node, lines, owner=""):
    "The entry of a function, or of a method of `owner`"
    name = f"{owner}.{node.name}" if owner else node.name
    doc = ast.get_docstring(node) or ""
    return Entry(name, False, doc, node.lineno, head_of(node, lines))


def entries(path):
    "All public definitions of a module, in its order; patched methods at their class"
    text = path.read_text("utf-8")
    lines = text.split("\n")
    found = []
    for node in ast.parse(text).body:
        if isinstance(node, ast.ClassDef):
            found += from_class(node, lines)
        elif isinstance(node, ast.FunctionDef):
            owners = patched_classes(node) or [""]
            found += [from_function(node, lines, owner) for owner in owners]
    found = [e for e in found if e.name[0] != "_" and "._" not in e.name]

    def place(entry):
        owner = entry.name.partition(".")[0]
        return next(n for n, e in enumerate(found) if e.name == owner or e is entry)

    functions = {e.name for e in found if not e.is_class}
    for entry in found:
        entry.twin = entry.is_class and entry.name.lower() in functions
    return sorted(found, key=place)


def patched_classes(node):
    "Names of the classes to which `@patch` adds a method; none for other functions"
    marks = [ast.unparse(mark).partition("(")[0] for mark in node.decorator_list]
    if "patch" not in marks or not node.args.args:
        return []
    return re.findall(r"\w+", ast.unparse(node.args.args[0].annotation))


def modules():
    "Path of each module of the package that a chapter exports"
    for path in sorted(PACKAGE.rglob("*.py")):
        if path.stem[0] != "_" and chapter(path):
            yield path


def entries_of(path, here):
    "What a module takes from one of its notebooks"
    return [entry for entry in entries(path) if chapter(path, entry.line) == here]


def place_of(path):
    "Where a module stands in the package: harnesses/helm"
    return path.relative_to(PACKAGE).with_suffix("").as_posix()


def cell(text):
    "A text as a cell of a Markdown table"
    return escape(text, quote=False).replace("|", "&#124;")


def entry_text(entry, page):
    "A definition on the page of its module, with a link to its code on another page"
    level = "###" if "." in entry.name else "##"
    link = f"[[code]({page}#{entry.anchor()})]{{.sources}}"
    return (
        f"{level} {entry.name} {{#{entry.anchor()} .definition}}\n\n"
        f"{escape(entry.doc, quote=False)} {link}\n\n"
        f"``` python\n{entry.signature}\n```"
    )


def has_reference(here):
    "Whether a notebook defines anything that its page of the reference would list"
    return any(entries_of(module, here) for module in modules_of(here))


def module_page(here, title):
    "Signatures of a notebook's definitions, which link to their code"
    names = []
    texts = []
    chapter_page = "../" * (here.count("/") + 1) + here
    for module in modules_of(here):
        place = place_of(module)
        own = entries_of(module, here)
        names += [f"benchnb.{place.replace('/', '.')}"] * bool(own)
        texts += [entry_text(entry, chapter_page) for entry in own]
    front = {"title": ", ".join(names), "description": title, "toc-depth": 3}
    return "\n\n".join(
        [f"---\n{yaml.safe_dump(front, sort_keys=False)}---"]
        + [f"The code is in [{title}]({chapter_page}).", *texts]
    )


def exported(path):
    "The names in `__all__` of a module"
    for node in ast.parse(path.read_text("utf-8")).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return ast.literal_eval(node.value)
    return []


@cache
def public_names():
    "What `benchnb` itself offers, and the module of each name"
    import benchnb

    return {name: benchnb._HOME[name].replace(".", "/") for name in benchnb.__all__}


def read_examples():
    "What examples.md has: group -> name -> its statements, as doctest reads them"
    _, *groups = re.split(r"^# ", EXAMPLES.read_text("utf-8"), flags=re.M)
    parser = doctest.DocTestParser()
    examples = {}
    for group in groups:
        title, *parts = re.split(r"^## ", group, flags=re.M)
        sections = (part.partition("\n") for part in parts)
        examples[title.strip()] = {
            name: parser.get_examples(body) for name, _, body in sections
        }
    return examples


def example_imports(code):
    "The imports that the code of an example needs"
    used = {n.id for n in ast.walk(ast.parse(code)) if isinstance(n, ast.Name)}
    packages = {
        "dataclass": "from dataclasses import dataclass",
        "np": "import numpy as np",
        "pd": "import pandas as pd",
    }
    own = ", ".join(sorted(used & {*public_names()}))
    lines = [line for name, line in packages.items() if name in used]
    return "\n".join([*lines, "" * bool(lines), f"from benchnb import {own}"]).strip()


def example_text(statements):
    "An example as its page shows it: code that can be copied, what it prints, errors"
    works = [part for part in statements if not part.exc_msg]
    code = "".join(part.source for part in works)
    printed = "".join(part.want for part in works).strip()
    shown = [f"``` python\n{example_imports(code)}\n\n{code.strip()}\n```"]
    if printed:
        shown.append(f"``` {{.printed}}\n{printed}\n```")
    for part in statements:
        if part.exc_msg:
            path, _, message = part.exc_msg.strip().partition(": ")
            error = f"{path.rpartition('.')[2]}: {message}"
            shown.append(f"``` {{.printed}}\n{part.source}{error}\n```")
    return "\n\n".join(shown)


def sidebar_order():
    "The notebooks of the site as its sidebars have them: guide, book, course, ..."
    sidebars = (ROOT / "_quarto.yml").read_text("utf-8").partition("\n  sidebar:")[2]
    return re.findall(r"href: (\S+\.ipynb)", sidebars)


def called_names(tree):
    "Names that code calls, decorates with or inherits from; of `a.b()` the first"
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            heads = [node.func]
        elif isinstance(node, ast.ClassDef):
            heads = [*node.bases, *node.decorator_list]
        else:
            continue
        for head in heads:
            while isinstance(head, ast.Attribute):
                head = head.value
            if isinstance(head, ast.Name):
                yield head.id


def names_used(path):
    "Public names that the code of a notebook imports and calls"
    imported, called = {}, set()
    for cell in json.loads(path.read_text("utf-8"))["cells"]:
        if cell["cell_type"] != "code":
            continue
        try:
            tree = ast.parse("".join(cell["source"]))
        except SyntaxError:  # a magic
            continue
        called |= {*called_names(tree)}
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom):
                names = {a.asname or a.name: (node.module, a.name) for a in node.names}
                imported |= names
    homes = {name: place.replace("/", ".") for name, place in public_names().items()}
    for local, (module, name) in imported.items():
        known = ("benchnb", f"benchnb.{homes.get(name)}")
        if name in homes and module in known and local in called:
            yield name


@cache
def chapters_using():
    "For each public name the chapters that use it, its own left out, in their order"
    using = {name: [] for name in public_names()}
    for page in sidebar_order():
        if page == "index.ipynb" or "homework" in page:
            continue
        for name in names_used(ROOT / "nbs" / page):
            if page not in chapters(PACKAGE / f"{public_names()[name]}.py"):
                using[name].append(page)
    return using


def public_entry(name, statements, titles):
    "A public name: what it is, an example, its parameters, who uses it"
    module = PACKAGE / f"{public_names()[name]}.py"
    (here, entry), *_ = [
        (page, entry)
        for page in chapters(module)
        for entry in entries_of(module, page)
        if entry.name == name
    ]
    place = f"{here.removesuffix('.ipynb')}.qmd#{entry.anchor()}"
    using = chapters_using()[name][:MOST_CHAPTERS]
    links = [f"[{titles[page].partition(':')[0]}](../{page})" for page in using]
    told = f"[Parameters]({place}), told in [{titles[here]}](../{here})"
    used = f"; used in {', '.join(links)}" if links else ""
    return (
        f"### {name} {{#{entry.anchor()} .definition}}\n\n"
        f"{cell(entry.doc.partition(chr(10))[0])}\n\n"
        f"{example_text(statements)}\n\n{told}{used}."
    )


def rows_of(found, place):
    "A line for each of these definitions, which links to the page of its module"
    rows = [(f"[`{e.name}`]({place}.qmd#{e.anchor()})", e.doc) for e in found]
    return [f"| {link} | {cell(doc.partition(chr(10))[0])} |" for link, doc in rows]


def index_page(titles):
    "What `benchnb` offers, with examples; then one line per name, grouped by module"
    parts = ["---", "title: Reference", "description: Every public name, with a line"]
    parts += ["toc-depth: 3", "---", ""]
    parts += ["What people type comes from `benchnb` itself: these names, each with an"]
    parts += ["example that runs. [All names of its modules](#modules) are below.", ""]
    for number, (group, examples) in enumerate(read_examples().items()):
        parts += [f"## {group} {{#group-{number}}}", ""]
        for name, statements in examples.items():
            parts += [public_entry(name, statements, titles), ""]
    parts += ["## The names of each module {#modules}", ""]
    parts += ["What the methods, readers and commands are made of, by package."]
    package = None
    for path in modules():
        place = place_of(path)
        offered = exported(path)
        for here in chapters(path):
            page = here.removesuffix(".ipynb")
            found = [e for e in entries_of(path, here) if e.name in offered]
            if found and place.split("/")[0] != package:
                package = place.split("/")[0]
                parts += ["", f"## benchnb.{package} {{.folded}}"]
            if found:
                link = f"[`benchnb.{place.replace('/', '.')}`]({page}.qmd)"
                parts += ["", f"{link}: {cell(titles[here])}", "", *HEAD]
                parts += rows_of(found, page)
    return "\n".join(parts) + "\n"


def write_reference(proc, titles):
    "Write the reference into the folder of processed notebooks; its pages, in order"
    pages = {"reference/index.qmd": index_page(titles)}
    for path, title in titles.items():
        if has_reference(path):
            place = f"reference/{path.replace('.ipynb', '.qmd')}"
            pages[place] = module_page(path, title)
    for page, text in pages.items():
        (proc / page).parent.mkdir(parents=True, exist_ok=True)
        (proc / page).write_text(text, encoding="utf-8")
    return list(pages)
