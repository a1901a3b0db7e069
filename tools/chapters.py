"""What the site shows of a chapter: idea, call and result; the rest is folded.

nbdev processes the notebooks; here they become pages that are read from top to bottom.
Definitions shrink to a signature (the reference has the rest), code that is not prose
folds, links lead to what the chapter itself means, and outputs lose numpy's wrappers.
"""

import ast
import os
import re
from functools import cache

import nbformat

from tools.reference import call, chapter, entries, modules

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
SCALAR = re.compile(r"np\.(?:(?:float|int|uint)\d+|str_)\((['\"]?)([^()]*?)\1\)")


def plain_output(text):
    "Text that a cell printed, without np.float64(...) around its numbers"
    return re.sub(r"np\.(True|False)_", r"\1", SCALAR.sub(r"\1\2\1", text))


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


def summary(cell):
    "What the fold of a cell is called; None where its code stays open"
    code = re.sub(r"^#\|.*\n?", "", cell.source, flags=re.M)
    if "...  # your code" in code:
        return None  # an exercise
    body = parsed(code)
    names = [n.name for n in body if isinstance(n, ast.FunctionDef | ast.ClassDef)]
    if body and all(isinstance(n, ast.Import | ast.ImportFrom) for n in body):
        return "Imports"
    if "Exported source" in cell.source:
        return f"Source of {', '.join(names)}" if names else "Source"
    if has_picture(cell):
        return "Code of the figure"
    if not cell.outputs and any(map(is_check, body)):
        return "Checks"
    if not cell.outputs and names:
        return f"Code: {', '.join(names)}"
    return "Code" if code.strip().count("\n") + 1 > LONG else None


def fold(cell, here=""):
    "Fold the code of a cell that is not prose; guides show what is to be typed"
    if re.search(r"^#\| *echo: *false", cell.source, flags=re.M):
        return
    name = summary(cell)
    guide = here.startswith(("index", "tutorials/your_", "course/"))
    if guide and name in ("Imports", "Code"):
        name = None
    kept = re.sub(r"^#\| *code-(fold|summary):.*\n", "", cell.source, flags=re.M)
    head = f'#| code-fold: true\n#| code-summary: "{name}"\n' if name else ""
    cell.source = head + kept


def definition(entry, path, here, repository):
    "A definition in its chapter: heading, call and docstring"
    reference = "../" * here.count("/") + f"reference/{path.replace('.ipynb', '.qmd')}"
    source = f"{repository}benchnb/{path.replace('.ipynb', '.py')}#L{entry.line}"
    links = (
        f"[[reference]({reference}#{entry.anchor()}) [source]({source})]{{.sources}}"
    )
    name = entry.name.replace("_", "\\_")
    head = f"### {name} {{#{entry.anchor()} .definition}}"
    return f"{head}\n\n{call(entry)} {links}\n\n{entry.doc}"


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
    return module in ("here", "benchnb") or module.endswith(page.replace("/", "."))


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
    "Every public definition of the package, by module: chapter -> name -> entry"
    return {chapter(path): {e.name: e for e in entries(path)} for path in modules()}


def shown_entries(cell, here):
    "The definitions that a cell with show_doc shows, each with its chapter"
    known = catalogue()
    order = [path for path in [here, *known] if path in known]
    for name in re.findall(r"^show_doc\(([\w.]+)", cell.source, flags=re.M):
        found = [(known[path][name], path) for path in order if name in known[path]]
        yield from found[:1]


def finish(nb, here, site, repository):
    "Make of a processed notebook what its page shows"
    known = imported(nb)
    for n, cell in enumerate(nb.cells):
        if cell.cell_type == "markdown":
            text = FOLDED.sub(r"## \1 {.folded}", cell.source)
            cell.source = relink(text, here, site, known)
        if cell.cell_type != "code":
            continue
        if shown := [
            definition(*e, here, repository) for e in shown_entries(cell, here)
        ]:
            text = "\n\n".join(shown)
            nb.cells[n] = nbformat.v4.new_markdown_cell(text, id=cell.id)
            continue
        for output in cell.outputs:
            data = output.get("data", output)
            for kind in {"text/plain", "text"} & data.keys():
                data[kind] = plain_output(data[kind])
            if "text/markdown" in data:
                data["text/markdown"] = relink(data["text/markdown"], here, site, known)
        if "/slides/" not in here:  # a slide has no room for what can be opened
            fold(cell, here)
