"""The reference: a page per module, and one with a line per name, from the docments.

Chapters tell; here signatures stand. What a definition says of itself is read from the
exported modules: names, types, defaults, and the comment behind each parameter."""

import ast
import io
import re
import tokenize
from dataclasses import dataclass, field
from functools import cache
from html import escape

import yaml

from tools.export import PACKAGE, chapter, chapters, modules_of

SUMMARY = "<summary>Parameters</summary>"
HEAD = ["| name | |", "|:--|:-----|"]


@dataclass
class Parameter:
    "A parameter, a field of a class, or (without a name) what is returned"

    name: str
    type: str = ""
    default: str = ""
    meaning: str = ""

    def text(self):
        "As in the code: `level: float = 0.95`"
        typed = f"{self.name}: {self.type}" if self.type else self.name
        return f"{typed} = {self.default}" if self.default else typed


@dataclass
class Entry:
    "What a reader wants to know of a class, function or method"

    name: str  # Scores.select for a method
    kind: str  # class, method, property or function
    doc: str
    line: int
    parameters: list = field(default_factory=list)
    returns: Parameter | None = None
    twin: bool = False  # a class beside a function of the same letters

    def signature(self):
        "The call, without types: compare(scores, methods, budgets=(20, 50, 100))"
        if self.kind == "property":
            return self.name
        given = [
            f"{p.name}={p.default}" if p.default else p.name for p in self.parameters
        ]
        return f"{self.name}({', '.join(given)})"

    def anchor(self):
        "Where it stands on its page, as nbdev writes it"
        return self.name.lower() + "-class" * self.twin


def comments(text):
    "The comment on each line of a module"
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    found = {
        t.start[0]: t.string.lstrip("# ") for t in tokens if t.type == tokenize.COMMENT
    }
    return {
        line: "" if re.match(r"(%%|noqa|type:)", t) else t for line, t in found.items()
    }


def written(node):
    "The code of a default"
    return ast.unparse(node) if node else ""


def annotation(node):
    "A type, without the quotes around a name that is defined later"
    return written(node).replace('"', "").strip("'")


def parameters(node, comment):
    "Parameters of a function, with the comments behind them"
    args = node.args
    plain = [*args.posonlyargs, *args.args]
    defaults = [None] * (len(plain) - len(args.defaults)) + args.defaults
    rows = [("", *pair) for pair in zip(plain, defaults, strict=True)]
    rows += [("*", args.vararg, None)] * bool(args.vararg)
    rows += [("", *p) for p in zip(args.kwonlyargs, args.kw_defaults, strict=True)]
    rows += [("**", args.kwarg, None)] * bool(args.kwarg)
    lines = [(default or arg).end_lineno for _, arg, default in rows]
    found = []
    for (mark, arg, default), line in zip(rows, lines, strict=True):
        own = lines.count(line) == 1 and line != node.lineno
        meaning = comment.get(line, "") if own else ""
        typed = annotation(arg.annotation)
        found.append(Parameter(mark + arg.arg, typed, written(default), meaning))
    return found


def from_function(node, comment, owner=""):
    "The entry of a function, or of a method of `owner`"
    marks = [ast.unparse(mark) for mark in node.decorator_list]
    kind = "method" if owner else "function"
    if any(re.search(r"property|patch\(as_prop", mark) for mark in marks):
        kind = "property"
    given = parameters(node, comment)
    if owner and "staticmethod" not in marks:
        given = given[1:]
    name = f"{owner}.{node.name}" if owner else node.name
    back, doc = None, ast.get_docstring(node) or ""
    if node.returns:
        meaning = comment.get(node.returns.end_lineno, "")
        back = Parameter("", annotation(node.returns), "", meaning)
    return Entry(name, kind, doc, node.lineno, given, back)


def from_field(node, comment):
    "A field of a class; `param(0.95, 'meaning')` holds the meaning itself"
    default, meaning = written(node.value), comment.get(node.end_lineno, "")
    if default.startswith("param("):
        values = node.value.args
        default = written(values[0]) if values else ""
        texts = [v.value for v in values[1:] if isinstance(v, ast.Constant)]
        meaning = next((text for text in texts if isinstance(text, str)), meaning)
    return Parameter(node.target.id, annotation(node.annotation), default, meaning)


def from_class(node, comment):
    "Entries of a class: itself with what makes it, then its methods"
    functions = [n for n in node.body if isinstance(n, ast.FunctionDef)]
    fields = [n for n in node.body if isinstance(n, ast.AnnAssign)]
    given = [from_field(n, comment) for n in fields if n.target.id[0] != "_"]
    for start in (n for n in functions if n.name == "__init__"):
        given = parameters(start, comment)[1:]
    yield Entry(node.name, "class", ast.get_docstring(node) or "", node.lineno, given)
    yield from (from_function(method, comment, node.name) for method in functions)


def entries(path):
    "All public definitions of a module, in its order; patched methods at their class"
    text = path.read_text("utf-8")
    comment, found = comments(text), []
    for node in ast.parse(text).body:
        if isinstance(node, ast.ClassDef):
            found += from_class(node, comment)
        elif isinstance(node, ast.FunctionDef):
            owners = patched_classes(node) or [""]
            found += [from_function(node, comment, owner) for owner in owners]
    found = [e for e in found if e.name[0] != "_" and "._" not in e.name]

    def place(entry):
        owner = entry.name.partition(".")[0]
        return next(n for n, e in enumerate(found) if e.name == owner or e is entry)

    functions = {e.name for e in found if e.kind == "function"}
    for entry in found:
        entry.twin = entry.kind == "class" and entry.name.lower() in functions
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


def call(entry):
    "The signature as a page shows it, with the type of what comes back"
    word = "class " if entry.kind == "class" else ""
    back = f" → {entry.returns.type}" if entry.returns else ""
    return f"`{word}{entry.signature()}{back}`{{.signature}}"


def entry_text(entry, page, shown=False):
    "A definition, which links to its code on a page; parameters open where `shown`"
    level = "###" if entry.kind in ("method", "property") else "##"
    lines = [f"{level} {entry.name} {{#{entry.anchor()} .definition}}", ""]
    link = f"[[code]({page}#{entry.anchor()})]{{.sources}}"
    lines += [f"{call(entry)} {link}", ""]
    lines += [escape(entry.doc, quote=False), ""]
    known = [p for p in entry.parameters if p.type or p.meaning]
    rows = [(f"<code>{cell(p.text())}</code>", cell(p.meaning)) for p in known]
    if entry.returns and entry.returns.meaning:
        rows.append(("returns", cell(entry.returns.meaning)))
    if rows:
        lines += [f'<details class="parameters"{" open" * shown}>', "", SUMMARY, ""]
        lines += ["| parameter | meaning |", "|:--|:-----|"]
        lines += [*(f"| {a} | {b} |" for a, b in rows), "", "</details>"]
    return "\n".join(lines) + "\n"


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
        typed = [name for name, home in public_names().items() if home == place]
        for entry in own:
            shown = entry.name.split(".")[0] in typed
            texts.append(entry_text(entry, chapter_page, shown))
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


def rows_of(found, place):
    "A line for each of these definitions, which links to the page of its module"
    rows = [(f"[`{e.name}`]({place}.qmd#{e.anchor()})", e.doc) for e in found]
    return [f"| {link} | {cell(doc.partition(chr(10))[0])} |" for link, doc in rows]


def index_page(titles):
    "One line per name, grouped by module"
    parts = ["---", "title: Reference", "description: Every public name, with a line"]
    parts += ["toc-depth: 2", "---", ""]
    parts += ["What people type comes from `benchnb` itself, the rest from its module."]
    parts += ["A link leads to parameters, types and defaults.", "", *HEAD]
    for name, place in public_names().items():
        module = PACKAGE / f"{place}.py"
        for page in chapters(module):
            own = [e for e in entries_of(module, page) if e.name == name]
            parts += rows_of(own, page.removesuffix(".ipynb"))
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
