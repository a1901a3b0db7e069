"""What the site shows of a chapter: argument, figures and tables.

nbdev processes the notebooks; here they become pages that are read from top to bottom.
All code stands where it belongs: short cells open, longer ones folded in place, what
the shown code imports in one cell at the top. So a page that is copied from top to
bottom runs (tests/test_copied.py). Links lead to what the chapter itself means,
commands are those of a terminal, and numbers have the digits that somebody reads.
"""

import ast
import json
import os
import re
import sys
from functools import cache
from textwrap import fill

import nbformat
import numpy as np

from tools.export import PACKAGE, chapter, chapters
from tools.in_page import names_in
from tools.reference import entries, modules, patched_classes

OPEN = 15  # lines of code, at most, that are not folded
# sections for those who want to know how it was made: closed until somebody opens them
DETAILS = (
    "Appendix.*|How it is made|How a table is judged|Three ways to compare|Stored"
    "|The catalogue|One line per table|The page as text|Measuring again|Measuring"
    "|Storing results"
    "|As JSON and in the terminal|A quick check|Cells that could not be measured"
    "|Reproducing the published row|Check: three models made again|Making all of it"
    "|BenchPress's matrix|A row of a published table|In-sample residuals .*|How sure?"
    "|Every row on the same scale|Nothing leaks|Falling curves"
    "|A table that was not used in development|What each part contributes"
    "|How large should K be?|Without a model: BM25|Pictures of many tasks"
    "|Settings|One trial|One experiment, one line|How the work is organised"
    "|Two baselines from practice|Four kinds of new agents|Old sources"
    "|Two small benchmarks|How many abilities?|The paper's Table 1"
    "|Does it find groups that are known?|Training and marking|Reproducing the paper"
    "|How the cells were measured|Figure 8: the seven hyper-parameters|Large clouds"
    "|Table 3: seconds for one model|Ranks, SMART, and HellaSwag at 50"
    "|All settings by name|Keys|What each idea buys|Side by side|On a leaderboard"
    "|Items that no model was trained on|Which pairs are hard?|What the exam gains"
    "|Items that are only a part|A function and its options|Methods of your own"
    "|Putting the commands together|One line for every mistake|Running a command"
    "|What the commands share"
)
EXERCISE = re.compile(r"^check\(", flags=re.M)  # it tells the hint, and more
FOLDED = re.compile(f"^## ({DETAILS.replace('?', '[?]')})$", flags=re.M)
LINK = re.compile(r"\\?\[`([^`\]]+)`\]\((https?://[^)#\s]+)#([^)\s]+)\)")
# nbdev links a backticked name also where it is the text of a link
NESTED = re.compile(r"\[\[(`[^`]+`)\]\([^)\s]*\)\]\(([^)\s]+)\)")
DECIMALS = re.compile(r"(?<![\w.])-?\d*\.\d{5,}(?:e[+-]?\d+)?(?![\w.])")
TERMINAL = r"(shell|give|benchnb|make_tutorial_terminal\(.*\))(\(| = )"
SCALAR = re.compile(r"np\.(?:(?:float|int|uint)\d+|str_)\((['\"]?)([^()]*?)\1\)")


def few_digits(match):
    "A number of five or more decimals, as somebody reads it; an arXiv number stays"
    x = float(match[0])
    if re.fullmatch(r"\d{4}\.\d{5}", match[0]) or not np.isfinite(x):
        return match[0]
    if x == 0 or abs(x) >= 0.001:
        return f"{x:.4f}" if abs(x) < 100 else f"{x:.1f}"
    return f"{x:.1e}"


def plain_output(text):
    "Text that a cell printed, without np.float64(...) around its numbers"
    text = re.sub(r"np\.(True|False)_", r"\1", SCALAR.sub(r"\1\2\1", text))
    return DECIMALS.sub(few_digits, text)


def parsed(source):
    "Statements of a cell; none where it is no Python (magics)"
    try:
        return ast.parse(source).body
    except SyntaxError:
        return []


def is_check(node):
    "Whether a statement only tests: an assertion, test_eq(...), with expect_fail(...)"
    if isinstance(node, ast.Assert):
        return True
    call = node.value if isinstance(node, ast.Expr) else None
    if isinstance(node, ast.With):
        call = node.items[0].context_expr
    name = ast.unparse(call.func) if isinstance(call, ast.Call) else ""
    return bool(re.match(r"(test_|expect_fail|.*assert_|pytest\.raises)", name))


def has_picture(cell):
    kinds = [kind for output in cell.outputs for kind in output.get("data", {})]
    return any(kind.startswith("image/") for kind in kinds)


def without_directives(source):
    "The code of a cell without the lines that begin with #|"
    return re.sub(r"^#\|.*\n?", "", source, flags=re.M).strip()


def imports_of(node):
    "Import statements that a statement stands for: itself, or those for type checkers"
    if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
        return node.body
    return [node] if isinstance(node, ast.Import | ast.ImportFrom) else []


def lift_imports(nb):
    """Take the imports out of the cells of a notebook; the statements. What replaces a
    definition of the page by the library's stays in its place"""
    nodes, given = [], set()
    for cell in nb.cells:
        body = parsed(cell.source) if cell.cell_type == "code" else []
        lines = cell.source.split("\n")
        for node in reversed(body):
            names = {alias.name for part in imports_of(node) for alias in part.names}
            if names and not names & given:
                nodes += imports_of(node)
                del lines[node.lineno - 1 : node.end_lineno]
        if body:
            cell.source = "\n".join(lines).strip()
            given |= names_in(cell.source)[0]
    return nodes


def quoted_types(code):
    "Names in annotations that are strings, because they are defined later"
    for node in ast.walk(ast.Module(parsed(code), [])):
        for kind in ("annotation", "returns"):
            types = getattr(node, kind, None)
            for part in ast.walk(types) if types else ():
                if isinstance(part, ast.Constant) and isinstance(part.value, str):
                    yield from re.findall(r"[A-Za-z_]\w*", part.value)


def names_used(code):
    "Names that a piece of code takes from others"
    if not parsed(code):
        return set()
    return names_in(code)[1] | {*quoted_types(code)}


def is_own(module):
    return module.partition(".")[0] == PACKAGE.name


def import_group(statement):
    "Standard library, packages, benchnb: where an import stands, and in which order"
    word, module = statement.split()[:2]
    root = module.partition(".")[0]
    place = 3 if is_own(module) else 1 if root in sys.stdlib_module_names else 2
    return 0 if module == "__future__" else place, word == "from", module


def gather_imports(nodes, shown):
    "One block with those import statements that the code of a page uses"
    used, here = set(), set()  # here: what the page defines before it uses it
    for code in shown:
        here |= {name for name in defined(code) if name not in used}
        used |= names_used(code)
    plain, from_modules = set(), {}
    for node in nodes:
        for alias in node.names:
            written = ast.unparse(alias)
            name = alias.asname or alias.name
            if isinstance(node, ast.Import):
                if name.partition(".")[0] in used and any(name in c for c in shown):
                    plain.add(f"import {written}")
            elif node.module == "__future__" or (
                name in used and not (name in here and is_own(node.module))
            ):
                from_modules.setdefault(node.module, set()).add(written)

    def by_type(name):  # CONSTANTS, Classes, functions
        return not name.isupper(), not name[0].isupper(), name

    for module, names in from_modules.items():
        names = ", ".join(sorted(names, key=by_type))
        line = f"from {module} import {names}"
        if len(line) > 88:
            inside = fill(names, 88, initial_indent="    ", subsequent_indent="    ")
            line = f"from {module} import (\n{inside}\n)"
        plain.add(line)
    groups = {}
    for line in sorted(plain, key=import_group):
        groups.setdefault(import_group(line)[0], []).append(line)
    return "\n\n".join("\n".join(lines) for lines in groups.values())


def defined(code):
    "Names of functions and classes that a cell defines, with those of their methods"
    for node in parsed(code):
        if isinstance(node, ast.ClassDef):
            methods = [n for n in node.body if isinstance(n, ast.FunctionDef)]
            yield from [node.name, *(f"{node.name}.{n.name}" for n in methods)]
        elif isinstance(node, ast.FunctionDef):
            owners = patched_classes(node)
            yield from [f"{owner}.{node.name}" for owner in owners] or [node.name]


def docstrings(code):
    "What a cell defines, as a text: names with their docstrings"
    kinds = ast.FunctionDef | ast.ClassDef
    nodes = [n for n in ast.walk(ast.Module(parsed(code), [])) if isinstance(n, kinds)]
    docs = {n.name: ast.get_docstring(n) for n in nodes}
    return "\n\n".join(f"`{name}`: {doc}" for name, doc in docs.items() if doc)


def summary(cell, code):
    "What stands at a folded cell: name and docstring, or what the code makes"
    if re.search(EXERCISE, code):
        return "The check"
    kinds = ast.FunctionDef | ast.ClassDef
    documented = [n for n in parsed(code) if isinstance(n, kinds)]
    if documented:
        doc = (ast.get_docstring(documented[0]) or "").partition("\n\n")[0]
        first, *rest = [name for name in defined(code) if "." not in name] or [
            *defined(code)
        ]
        also = f", with {', '.join(f'`{name}`' for name in rest)}" if rest else ""
        return f"`{first}`: {' '.join(doc.split())}{also}"
    if has_picture(cell):
        return "Code of the figure"
    if cell.outputs:
        return "Code of the result"
    return "Checks" if any(map(is_check, parsed(code))) else "Code"


def present(cell, here):
    "A cell as its page shows it: code open or folded in place; none without any"
    code = without_directives(cell.source)
    if is_silent(cell) and not cell.metadata.get("needed"):
        return [cell]
    if not code:
        return []
    head = re.findall(r"^#\| *(?!echo)\S+:.*\n", cell.source, flags=re.M)
    long = sum(bool(line.strip()) for line in code.split("\n")) > OPEN
    result = has_picture(cell) or here.startswith(("papers/", "studies/"))
    result |= bool(cell.metadata.get("needed") or re.search(EXERCISE, code))
    if (long or result) and "...  # your code" not in code:
        told = json.dumps(summary(cell, code), ensure_ascii=False)
        head += ["#| code-fold: true\n", f"#| code-summary: {told}\n"]
    cell.source = "".join(head) + code
    return [cell]


def anchors(cell, here):
    "Where links to the definitions of an exported cell lead"
    known = catalogue().get(here, {})
    names = [n for n in defined(without_directives(cell.source)) if n in known]
    if not any(word.startswith("export") for word in directives(cell)):
        return []
    marks = [f"::: {{#{known[name].anchor()} .anchor}}\n:::" for name in names]
    made = nbformat.v4.new_markdown_cell("\n\n".join(marks), id=f"{cell.id}-a")
    return [made] * bool(marks)


def directives(cell):
    "Words of nbdev at a cell: export, hide, slow"
    return cell.metadata.get("directives", [])


def keep_directives(cell):
    "For nbdev: a processed cell remembers the directives that nbdev takes out"
    if cell.cell_type == "code":
        words = [word for word in cell.directives_ if word[-1:] != ":"]
        cell.metadata["directives"] = words


def is_silent(cell):
    "Whether a cell shows its result alone"
    return bool(re.search(r"^#\| *echo: *false", cell.source, flags=re.M))


def is_hidden(cell):
    return bool({"hide", "default_exp"} & {*directives(cell)})


def mark_needed(nb):
    "Hidden cells that define what shown code uses are folded instead"
    needed = set()
    for cell in reversed(nb.cells):
        if cell.cell_type != "code" or not parsed(cell.source):
            continue
        given, used = names_in(cell.source)
        if is_hidden(cell) or is_silent(cell):
            if not given & needed:
                continue
            cell.metadata["needed"] = True
            if is_hidden(cell):
                cell.outputs = []
        needed = (needed - given) | used


def shown_code(nb):
    "The code on a page: cells that are open or folded"
    for cell in nb.cells:
        if cell.cell_type == "code" and not is_silent(cell):
            yield cell


def command_block(text):
    "A command and what it printed, as in a terminal"
    command, _, printed = text.partition("\n")
    block = f"``` {{.bash .terminal}}\n{command}\n```"
    if printed.strip():
        block += f"\n\n``` {{.printed}}\n{printed.strip(chr(10))}\n```"
    return nbformat.v4.new_markdown_cell(block)


def terminal(cell):
    "A cell with shell(...): its code, and each command with its output in its place"
    body = parsed(cell.source)
    text = "".join(o.get("text", "") for o in cell.outputs)
    if not text.startswith("$ ") or not body:
        return [cell]
    blocks = [command_block(part) for part in re.split(r"^\$ ", text, flags=re.M)[1:]]
    typed = [n for n in body if re.match(TERMINAL, ast.unparse(n))]
    calls = [n for n in typed if not isinstance(n, ast.Assign)]
    last = (calls or body)[-1]
    lines = cell.source.split("\n")
    cells, code, given = [], [], []
    start = 0

    def put_code():
        if without_directives("\n".join(code)):
            source = "\n".join(code).strip("\n")
            cells.append(nbformat.v4.new_code_cell(source))
        code.clear()

    for node in body:  # each with the comments above it
        (given if node in typed else code).extend(lines[start : node.end_lineno])
        start = node.end_lineno
        alone = node in calls and len(calls) == len(blocks)
        if alone or node is last:
            put_code()
            blocks[0].metadata["terminal"] = "\n".join(given)  # what the reader types
            given.clear()
            cells += [blocks.pop(0)] if alone else blocks
    put_code()
    if results := [o for o in cell.outputs if "data" in o]:
        if cells[-1].cell_type != "code":
            cells.append(nbformat.v4.new_code_cell("#| echo: false"))
        cells[-1].outputs = results
    for number, part in enumerate(cells):
        part.id = f"{cell.id}-{number}" if number else cell.id
        part.metadata["directives"] = directives(cell)
    return cells


def imported(nb):
    "Names that the code of a notebook defines or imports, and from which module"
    known = {}
    for cell in nb.cells:
        if cell.cell_type != "code":
            continue
        for node in ast.walk(ast.Module(parsed(cell.source), [])):
            if isinstance(node, ast.ImportFrom):
                known |= {a.asname or a.name: node.module or "" for a in node.names}
            elif isinstance(node, ast.FunctionDef | ast.ClassDef):
                known[node.name] = "here"
    return known


def means(name, page, known):
    "Whether a word in backticks means the definition of that name on that page"
    first = name.partition("(")[0].partition(".")[0]
    if not re.fullmatch(r"[a-z]+", first) or "." in name:
        return True  # no ordinary word
    module = known.get(first, "")
    home = PACKAGE / f"{module.removeprefix('benchnb.').replace('.', '/')}.py"
    homes = [module]
    if home.is_file() and chapters(home):
        homes = [nb.removesuffix(".ipynb").replace("/", ".") for nb in chapters(home)]
    ending = page.replace("/", ".")
    return module in ("here", "benchnb") or any(h.endswith(ending) for h in homes)


def relink(text, here, site, known):
    "Links of backticked words, from page to page; those that mislead are words again"

    def link(match):
        name, address, anchor = match.groups()
        if not address.startswith(site):
            return match[0]
        page = address.removeprefix(site).removesuffix(".html")
        if not means(name, page, known):
            return f"`{name}`"
        entry = catalogue().get(f"{page}.ipynb", {}).get(name.partition("(")[0])
        to = os.path.relpath(f"{page}.ipynb", os.path.dirname(here) or ".")
        to = "" if f"{page}.ipynb" == here else to
        return f"[`{name}`]({to}#{entry.anchor() if entry else anchor})"

    return NESTED.sub(r"[\1](\2)", LINK.sub(link, text))


@cache
def catalogue():
    "Every public definition of the package, by chapter: chapter -> name -> entry"
    found = {}
    for path in modules():
        for entry in entries(path):
            here = chapter(path, entry.line)
            found.setdefault(here, {})[entry.name] = entry
    return found


def add_imports(nb, nodes, place, here):
    "Put what the code of a page imports into one cell"
    shown = [without_directives(cell.source) for cell in shown_code(nb)]
    if text := gather_imports(nodes, shown):
        cell = nbformat.v4.new_code_cell(text, id="page-imports")
        if here.startswith(("papers/", "studies/", "cli/")):
            fold = "#| code-fold: true\n#| code-summary: Imports\n"
            cell.source = fold + cell.source
        nb.cells.insert(place, cell)


def finish(nb, here, site):
    "Make of a processed notebook what its page shows"
    known, cells, closed = imported(nb), [], False
    top = None  # where the imports stand
    whole = here == "index.ipynb" or "/slides/" in here  # shown as they are
    if not whole:
        nodes = lift_imports(nb)
        mark_needed(nb)
    for cell in nb.cells:
        if cell.cell_type == "markdown":
            text, lines = relink(cell.source, here, site, known), []
            for line in text.split("\n"):  # neighbours that are folded share a fold
                if line.startswith("## "):
                    more = FOLDED.match(line)
                    if more:
                        line = f"#{line}" if closed else f"{line} {{.folded}}"
                    closed = bool(more)
                lines.append(line)
            cell.source = "\n".join(lines)
        if cell.cell_type != "code":
            cells.append(cell)
            continue
        if is_hidden(cell) and not cell.metadata.get("needed"):
            continue
        for output in cell.outputs:
            data = output.get("data", output)
            for kind in {"text/plain", "text", "text/markdown"} & data.keys():
                data[kind] = plain_output(data[kind])
            if "text/html" in data:
                data["text/html"] = re.sub(
                    r">[^<>]+<", lambda m: plain_output(m[0]), data["text/html"]
                )
            if "text/markdown" in data:
                data["text/markdown"] = relink(data["text/markdown"], here, site, known)
        if whole:
            cells.append(cell)
            continue
        top = len(cells) if top is None else top
        cells += anchors(cell, here)
        for part in terminal(cell):
            cells += present(part, here) if part.cell_type == "code" else [part]
    nb.cells = cells
    if top is not None:
        add_imports(nb, nodes, top, here)
