"""The reference: a page per module, and one with a line per name, from the docments.

Chapters tell; here signatures stand. What a definition says of itself is read from the
exported modules: names, types, defaults, and the comment behind each parameter."""

import ast
import io
import json
import re
import tokenize
from dataclasses import dataclass, field
from functools import cache
from html import escape

from tools.run import ROOT

PACKAGE = ROOT / "benchnb"
SUMMARY = "<summary>Parameters</summary>"


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
    "The code of an annotation or a default; quotes around a name of a type go"
    if node is None:
        return ""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return repr(node.value)
    return ast.unparse(node)


def annotation(node):
    "A type, without the quotes around a name that is defined later"
    return written(node).replace('"', "").strip("'")


def parameters(node, said):
    "Parameters of a function, with the comments behind them"
    args = node.args
    plain = [*args.posonlyargs, *args.args]
    defaults = [None] * (len(plain) - len(args.defaults)) + args.defaults
    pairs = list(zip(plain, defaults, strict=True))
    named = list(zip(args.kwonlyargs, args.kw_defaults, strict=True))
    star = [(args.vararg, None)] if args.vararg else []
    more = [(args.kwarg, None)] if args.kwarg else []
    lines = [(d or a).end_lineno for a, d in [*pairs, *star, *named, *more]]
    found = []
    for arg, default in [*pairs, *star, *named, *more]:
        line = (default or arg).end_lineno
        alone = lines.count(line) == 1 and line != node.lineno
        mark = "*" if arg is args.vararg else "**" if arg is args.kwarg else ""
        known = said.get(line, "") if alone else ""
        name = mark + arg.arg
        found.append(
            Parameter(name, annotation(arg.annotation), written(default), known)
        )
    return found


def from_function(node, said, owner=""):
    "The entry of a function, or of a method of `owner`"
    marks = [ast.unparse(mark) for mark in node.decorator_list]
    kind = "method" if owner else "function"
    if any(re.search(r"property|patch\(as_prop", mark) for mark in marks):
        kind = "property"
    given = parameters(node, said)
    if owner and "staticmethod" not in marks:
        given = given[1:]
    name = f"{owner}.{node.name}" if owner else node.name
    back = Parameter("", annotation(node.returns))
    back.meaning = said.get(node.returns.end_lineno, "") if node.returns else ""
    doc = ast.get_docstring(node) or ""
    return Entry(name, kind, doc, node.lineno, given, back if node.returns else None)


def from_field(node, said):
    "A field of a class; `param(0.95, 'meaning')` says the meaning itself"
    default, meaning = written(node.value), said.get(node.end_lineno, "")
    if isinstance(node.value, ast.Call) and ast.unparse(node.value.func) == "param":
        values = [a for a in node.value.args if isinstance(a, ast.Constant)]
        default = written(node.value.args[0]) if node.value.args else ""
        texts = [a.value for a in values[1:] if isinstance(a.value, str)]
        meaning = texts[0] if texts else meaning
    return Parameter(node.target.id, annotation(node.annotation), default, meaning)


def from_class(node, said):
    "Entries of a class: itself with what makes it, then its public methods"
    functions = [n for n in node.body if isinstance(n, ast.FunctionDef)]
    start = next((n for n in functions if n.name == "__init__"), None)
    fields = [n for n in node.body if isinstance(n, ast.AnnAssign)]
    given = [from_field(n, said) for n in fields if n.target.id[0] != "_"]
    if start:
        given = parameters(start, said)[1:]
    doc = ast.get_docstring(node) or ""
    yield Entry(node.name, "class", doc, node.lineno, given)
    for method in functions:
        if method.name[0] != "_":
            yield from_function(method, said, node.name)


def entries(path):
    "All public definitions of a module, in its order; patched methods at their class"
    text = path.read_text("utf-8")
    said, found = comments(text), []
    for node in ast.parse(text).body:
        if isinstance(node, ast.ClassDef) and node.name[0] != "_":
            found += from_class(node, said)
        elif isinstance(node, ast.FunctionDef) and node.name[0] != "_":
            owners = patched_classes(node)
            found += [from_function(node, said, owner) for owner in owners or [""]]
    classes = [e.name for e in found if e.kind == "class"]

    def place(entry):
        owner = entry.name.partition(".")[0]
        return next(n for n, e in enumerate(found) if e.name == owner or e is entry)

    found = [e for e in found if "._" not in e.name]
    functions = {e.name for e in found if e.kind == "function"}
    for entry in found:
        entry.twin = entry.kind == "class" and entry.name.lower() in functions
    return sorted(found, key=place) if classes else found


def patched_classes(node):
    "Names of the classes to which `@patch` adds a method; none for other functions"
    marks = [ast.unparse(mark).partition("(")[0] for mark in node.decorator_list]
    if "patch" not in marks or not node.args.args:
        return []
    return re.findall(r"\w+", ast.unparse(node.args.args[0].annotation))


def modules():
    "Path of each module of the package that a chapter exports: stats/intervals"
    for path in sorted(PACKAGE.rglob("*.py")):
        if path.stem[0] != "_" and (ROOT / "nbs" / chapter(path)).exists():
            yield path


def chapter(path):
    "The notebook that a module is exported from"
    return path.relative_to(PACKAGE).with_suffix(".ipynb").as_posix()


def cell(text):
    "A text as a cell of a Markdown table"
    return escape(text, quote=False).replace("|", "\\|")


def code_cell(text):
    "Code as a cell of a Markdown table"
    return f"<code>{escape(text, quote=False).replace('|', '&#124;')}</code>"


def entry_text(entry, source, shown=False):
    "A definition on the page of its module; its parameters are open where `shown`"
    level = "###" if entry.kind in ("method", "property") else "##"
    back = f" → {entry.returns.type}" if entry.returns and entry.returns.type else ""
    word = "class " if entry.kind == "class" else ""
    link = f"[[source]({source}#L{entry.line})]{{.sources}}"
    lines = [f"{level} {entry.name} {{#{entry.anchor()} .definition}}", ""]
    lines += [f"`{word}{entry.signature()}{back}`{{.signature}} {link}", ""]
    lines += [escape(entry.doc, quote=False), ""]
    told = [p for p in entry.parameters if p.type or p.meaning]
    rows = [(code_cell(p.text()), cell(p.meaning)) for p in told]
    if entry.returns and entry.returns.meaning:
        rows.append(("returns", cell(entry.returns.meaning)))
    if rows:
        lines += [f'<details class="parameters"{" open" * shown}>', "", SUMMARY, ""]
        lines += ["| parameter | meaning |", "|:--|:-----|"]
        lines += [*(f"| {a} | {b} |" for a, b in rows), "", "</details>"]
    return "\n".join(lines) + "\n"


def module_page(path, title, repository):
    "The reference of one module"
    name = path.relative_to(ROOT).with_suffix("").as_posix().replace("/", ".")
    found = entries(path)
    up = "../" * (len(path.relative_to(PACKAGE).parts))
    source = f"{repository}/{path.relative_to(ROOT).as_posix()}"
    told = json.dumps(title, ensure_ascii=False)
    front = f"---\ntitle: {name}\ndescription: {told}\ntoc-depth: 3\n---\n"
    lead = f"Explained in the chapter [{title}]({up}{chapter(path)}).\n"
    place = path.relative_to(PACKAGE).with_suffix("").as_posix()
    typed = [name for name, home in public_names().items() if home == place]
    texts = [entry_text(e, source, e.name.split(".")[0] in typed) for e in found]
    return "\n".join([front, lead, *texts])


@cache
def public_names():
    "What `benchnb` itself offers, and the module of each name"
    import benchnb

    return {name: benchnb._HOME[name].replace(".", "/") for name in benchnb.__all__}


def index_page(titles):
    "One line per name, grouped by module"
    parts = ["---", "title: Reference", "description: Every public name, with a line"]
    parts += ["toc-depth: 2", "---", ""]
    parts += ["What people type comes from `benchnb` itself, the rest from its module."]
    parts += ["A link leads to parameters, types and defaults.", ""]
    parts += ["| name | |", "|:--|:-----|"]
    for name, place in public_names().items():
        found = {e.name: e for e in entries(PACKAGE / f"{place}.py")}
        told = cell(found[name].doc.splitlines()[0])
        parts.append(f"| [`{name}`]({place}.qmd#{found[name].anchor()}) | {told} |")
    package = None
    for path in modules():
        place = path.relative_to(PACKAGE).with_suffix("").as_posix()
        found = [e for e in entries(path) if e.kind in ("class", "function")]
        if not found:
            continue
        if place.split("/")[0] != package:
            package = place.split("/")[0]
            parts += ["", f"## benchnb.{package} {{.folded}}", ""]
        dotted = "benchnb." + place.replace("/", ".")
        parts += ["", f"[`{dotted}`]({place}.qmd): {cell(titles[chapter(path)])}", ""]
        parts += ["| name | |", "|:--|:-----|"]
        for entry in found:
            link = f"[`{entry.name}`]({place}.qmd#{entry.anchor()})"
            parts.append(f"| {link} | {cell(entry.doc.splitlines()[0])} |")
    return "\n".join(parts) + "\n"


def write_reference(proc, titles, repository):
    "Write the reference into the folder of processed notebooks; its pages, in order"
    pages = {"reference/index.qmd": index_page(titles)}
    for path in modules():
        if entries(path):
            place = path.relative_to(PACKAGE).with_suffix(".qmd").as_posix()
            title = titles[chapter(path)]
            pages[f"reference/{place}"] = module_page(path, title, repository)
    for page, text in pages.items():
        (proc / page).parent.mkdir(parents=True, exist_ok=True)
        (proc / page).write_text(text, encoding="utf-8")
    return list(pages)
