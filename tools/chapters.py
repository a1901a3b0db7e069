"""What the site shows of a chapter: argument, figures and tables.

nbdev processes the notebooks; here they become pages that are read from top to bottom.
Definitions shrink to a line, code that is not prose stands on the notebook's code page
alone (tools/reference.py), links lead to what the chapter itself means, commands are
those of a terminal, and numbers have the digits that somebody reads.
"""

import ast
import os
import re
from functools import cache

import nbformat
import numpy as np

from tools.export import PACKAGE, chapter, chapters
from tools.reference import entries, modules

LONG = 9  # lines of code that stay open where the cell shows a result
# sections for those who want to know how it was made: closed until somebody opens them
DETAILS = (
    "Appendix.*|How a table is judged|Three ways to compare|The catalogue|Stored"
    "|One line per table|The page as text|Measuring again|Storing results|Measuring"
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
    "|Items that no model was trained on|Which pairs are hard?"
)
FOLDED = re.compile(f"^## ({DETAILS.replace('?', '[?]')})$", flags=re.M)
LINK = re.compile(r"\\?\[`([^`\]]+)`\]\((https?://[^)#\s]+)#([^)\s]+)\)")
# nbdev links a backticked name also where it is the text of a link
NESTED = re.compile(r"\[\[(`[^`]+`)\]\([^)\s]*\)\]\(([^)\s]+)\)")
DECIMALS = re.compile(r"(?<![\w.])-?\d*\.\d{5,}(?:e[+-]?\d+)?(?![\w.])")
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


def shown_code(cell, here=""):
    "The code of a cell that its page shows: what a reader types, or an exercise"
    code = re.sub(r"^#\|.*\n?", "", cell.source, flags=re.M)
    if "...  # your code" in code:
        return code
    guide = here.startswith(("index", "tutorials/", "course/"))
    body = parsed(code)
    if body and all(isinstance(n, ast.Import | ast.ImportFrom) for n in body):
        own = [ast.unparse(n) for n in body if "from benchnb" in ast.unparse(n)]
        return "\n".join(own) if guide else ""
    only_checks = not cell.outputs and any(map(is_check, body))
    defines = any(isinstance(n, ast.FunctionDef | ast.ClassDef) for n in body)
    apart = "Exported source" in code or has_picture(cell) or only_checks
    apart |= here.startswith(("papers/", "studies/"))  # read for their numbers
    apart |= not guide and not cell.outputs and defines
    apart |= not guide and code.strip().count("\n") + 1 > LONG
    return "" if apart else code


def terminal(cell):
    "A cell that ends in shell(...): code before it, and each command with its output"
    body = parsed(cell.source)
    text = "".join(o.get("text", "") for o in cell.outputs)
    if not text.startswith("$ ") or not body:
        return [cell]
    lines = cell.source.split("\n")
    for node in reversed(body):
        if re.match(r"shell(\(| = )", ast.unparse(node)):
            del lines[node.lineno - 1 : node.end_lineno]
    make, cells = nbformat.v4, []
    for n, part in enumerate(re.split(r"^\$ ", text, flags=re.M)[1:]):
        command, _, printed = part.partition("\n")
        block = f"``` {{.bash .terminal}}\n{command}\n```"
        if printed.strip():
            block += f"\n\n``` {{.printed}}\n{printed.strip(chr(10))}\n```"
        cells.append(make.new_markdown_cell(block, id=f"{cell.id}-{n}"))
    cell.source, pictures = "\n".join(lines).strip(), cell.outputs
    cell.outputs = []
    rest = make.new_code_cell("#| echo: false", id=f"{cell.id}-p")
    rest.outputs = [o for o in pictures if "data" in o]
    return [cell] * bool(cell.source) + cells + [rest] * bool(rest.outputs)


def hide(cell, here, code_page):
    "Leave out code that is not prose; a small link leads to it where it has a result"
    if re.search(r"^#\| *echo: *false", cell.source, flags=re.M):
        return [cell]
    code = shown_code(cell, here)
    head = re.findall(r"^#\| *(?!code-|echo).*\n?", cell.source, flags=re.M)
    if not code and not cell.outputs and "Exported source" not in cell.source:
        told = [  # what the chapter defines for itself
            f"[`{n.name}`]({code_page}#code-{cell.id}){{.definition}}: {doc}"
            for n in parsed(cell.source)
            if (doc := isinstance(n, ast.FunctionDef) and ast.get_docstring(n))
        ]
        told = (
            [nbformat.v4.new_markdown_cell("\n\n".join(told), id=cell.id)]
            if told
            else []
        )
        return told
    if code or not cell.outputs:
        cell.source = "".join(head) + code
        return [cell] * bool(code)
    cell.source = "#| echo: false\n" + "".join(head) + "pass"
    if here == "index.ipynb":
        return [cell]
    link = f"[[code]({code_page}#code-{cell.id})]{{.code-link}}"
    return [nbformat.v4.new_markdown_cell(link, id=f"{cell.id}-c"), cell]


def code_address(path, here):
    "Where a page finds the code of a notebook"
    up = "../" * here.count("/")
    return f"{up}reference/{path.replace('.ipynb', '.qmd')}"


def definition(entry, path, here):
    "A definition in its chapter: its name, which leads to the call, and what it does"
    link = f"{code_address(path, here)}#{entry.anchor()}"
    doc = entry.doc.partition("\n\n")[0]
    return f"[`{entry.name}`]({link}){{#{entry.anchor()} .definition}}: {doc}"


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


def shown_entries(cell, here):
    "The definitions that a cell with show_doc shows, each with its chapter"
    known = catalogue()
    order = [path for path in [here, *known] if path in known]
    for name in re.findall(r"^show_doc\(([\w.]+)", cell.source, flags=re.M):
        found = [(known[path][name], path) for path in order if name in known[path]]
        yield from found[:1]


def finish(nb, here, site):
    "Make of a processed notebook what its page shows"
    known, cells, closed = imported(nb), [], False
    code_page = code_address(here, here)
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
        if shown := [definition(*e, here) for e in shown_entries(cell, here)]:
            text = "\n\n".join(shown)
            cells.append(nbformat.v4.new_markdown_cell(text, id=cell.id))
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
        if "/slides/" in here:  # a slide has no room for code
            cells.append(cell)
            continue
        for part in terminal(cell):
            made = part.cell_type == "code"
            cells += hide(part, here, code_page) if made else [part]
    nb.cells = cells
