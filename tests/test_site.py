"""What the site is built from: processing changes nothing, links lead somewhere.

tools/pages.py has the checks; a fault of each kind is planted here, and must be found.
"""

import json
import re
import shutil
import subprocess
from pathlib import Path
from urllib.parse import unquote

import nbformat
import pytest
import yaml
from helpers.faults import none_of

from tools.assets import install, own_mathjax, used_icons
from tools.chapters import (
    finish,
    imported,
    plain_output,
    present,
    relink,
    shown_code,
    terminal,
)
from tools.docs import TABLE, tidy_table
from tools.export import chapters
from tools.pages import Site, undocumented
from tools.process import (
    PAGE_LETTERS,
    addresses,
    finish_page,
    letter_figures,
    process,
    quarto_config,
    read_processed,
)
from tools.reference import entries, entry_text
from tools.run import HEAVIEST, ROOT, notebooks, one_format
from tools.search import WORDS, page_sections, search_index

SKIP = [".*", "_proc", "_docs", "build", "dist", "out", "*.egg-info", "__pycache__"]
LINK = re.compile(r"\]\(\s*<?([^()\s>]+(?:\([^()\s]*\))?)>?(?:\s+[\"'][^()]*)?\)")
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
    skip = shutil.ignore_patterns(*SKIP, "tests")
    shutil.copytree(ROOT, copy, symlinks=True, ignore=skip)
    before = contents(copy)
    proc = process(copy)
    return before, contents(copy), proc


@pytest.fixture(scope="module")
def book(site):
    "The processed notebooks, read by pandoc"
    return Site(site[2], quarto_config())


@pytest.mark.slow
def test_processing_leaves_no_difference(site):
    before, after, proc = site
    changed = [str(n) for n in before | after if before.get(n) != after.get(n)]
    none_of(changed, "run `make format`; docs processing changes these files:")
    there = {path.relative_to(proc) for path in notebooks(proc)}
    assert there == {path.relative_to(ROOT / "nbs") for path in notebooks()}


@pytest.mark.slow
def test_every_notebook_has_a_title_and_a_claim(book):
    keys = {"title", "description"}
    poor = [path for path, page in book.pages.items() if not keys <= set(page.front)]
    none_of(poor, "the first cell is `# Title`, an empty line, `> a claim`; not in:")


@pytest.mark.slow
@pytest.mark.parametrize(
    "part, remedy",
    {
        "config_faults": "mend _quarto.yml:",
        "page_faults": "links, references and text:",
        "orphans": "name these chapters where readers come by:",
        "cell_faults": "options of cells, `#| fig-alt:` and `#| fig-cap:`:",
    }.items(),
)
def test_the_site_has_no_fault(book, part, remedy):
    none_of(getattr(book, part)(), remedy)


@pytest.mark.slow
def test_every_exported_name_is_documented_on_its_page(book):
    faults = []
    for path, page in book.pages.items():
        nb = nbformat.read(ROOT / "nbs" / path, as_version=4)
        faults += [f"{path}: {fault}" for fault in undocumented(nb, page.nb)]
    none_of(faults, "exported definitions that a reader does not find:")


@pytest.mark.slow
def test_every_public_name_is_in_the_reference(site):
    import benchnb

    folder = site[2] / "reference"
    index = (folder / "index.qmd").read_text("utf-8")
    for name, module in benchnb._HOME.items():
        notebooks = chapters(ROOT / "benchnb" / f"{module.replace('.', '/')}.py")
        pages = [(folder / notebook).with_suffix(".qmd") for notebook in notebooks]
        text = "".join(page.read_text("utf-8") for page in pages if page.exists())
        assert f"[`{name}`]" in index and f"# {name} {{#{name.lower()} " in text


def test_links_of_the_other_pages_lead_somewhere():
    faults = []
    for page in ROOT.glob("*.md"):
        text = CODE.sub(
            lambda m: "code" if m[0][:3] != "```" else "", page.read_text("utf-8")
        )
        for target in LINK.findall(text):
            file = unquote(target).partition("#")[0]
            if file and not re.match(r"[a-z]+:", file) and not (ROOT / file).exists():
                faults.append(f"{page.name}: {target}")
    none_of(faults, "links that lead nowhere:")


def test_workflows_call_what_there_is():
    targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), flags=re.M)
    for path in sorted((ROOT / ".github/workflows").glob("*.yml")):
        text = path.read_text("utf-8")
        jobs = yaml.safe_load(text)["jobs"]
        assert all("timeout-minutes" in job for job in jobs.values()), path.name
        assert set(re.findall(r"run: make ([\w-]+)", text)) <= set(targets)
        for file in re.findall(r"(?<![\w/])(?:tests|\.ci)/[\w./]+", text):
            assert (ROOT / file).exists(), f"{path.name}: there is no {file}"


FRONT = "---\ntitle: {0}\ndescription: a claim\noutput-file: {0}.html\n---"
SMALL = {
    "index.ipynb": "[one](part/01_one.ipynb#sec-start) and [two](part/02_two.ipynb)",
    "part/01_one.ipynb": "# Start {#sec-start}\n\nSee @sec-start, ![dot](../dot.png), "
    "[a name](#a-name), `@code` and $x@y$.\n\n## A name",
    "part/02_two.ipynb": "<a href='01_one.ipynb'>one</a>, [home](../index.ipynb)",
}


def write_page(folder, path, text):
    "A processed notebook with one cell of text"
    make = nbformat.v4
    name = Path(path).stem.lstrip("0123456789_")
    cells = [make.new_raw_cell(FRONT.format(name)), make.new_markdown_cell(text)]
    (folder / path).parent.mkdir(exist_ok=True)
    nbformat.write(make.new_notebook(cells=cells), folder / path)
    finish_page(folder / path, folder)


@pytest.fixture
def small(tmp_path):
    "A site of three pages without a fault, and what its _quarto.yml says"
    for path, text in SMALL.items():
        write_page(tmp_path, path, text)
    (tmp_path / "dot.png").write_bytes(b"a picture")
    (tmp_path / "site.scss").write_text("")
    part = {"section": "Part", "contents": list(SMALL)[1:]}
    outside = {"text": "Elsewhere", "href": "https://example.org"}
    side = [{"contents": ["index.ipynb", part, outside]}]
    return tmp_path, {
        "format": {"html": {"theme": {"light": ["cosmo", "site.scss"]}}},
        "website": {"sidebar": side},
    }


def found(small):
    return Site(*small).faults()


def add_cells(small, *cells):
    "Put cells below those of the first page"
    nb = read_processed(small[0] / "index.ipynb")
    nb.cells += cells
    nbformat.write(nb, small[0] / "index.ipynb")


def code(source, *outputs):
    make = nbformat.v4
    made = [make.new_output("display_data", data) for data in outputs]
    return make.new_code_cell(source, outputs=made)


def test_a_sound_site_has_no_fault(small):
    assert found(small) == []
    attached = nbformat.v4.new_markdown_cell("![x](attachment:a%20b.png)")
    attached["attachments"] = {"a b.png": {"image/png": "aaaa"}}
    add_cells(small, attached)
    assert found(small) == []


PLANTED = {  # text on the second page, and what is found
    "[x](03_three.ipynb)": "03_three.ipynb: there is no part/03_three.ipynb",
    "[x](01_one.ipynb#gone)": "there is no #gone in part/01_one.ipynb",
    "[x](#gone)": "#gone: there is no #gone in part/02_two.ipynb",
    "<a href='../gone.ipynb'>x</a>": "../gone.ipynb: there is no gone.ipynb",
    "![x](gone.png)": "gone.png: there is no part/gone.png",
    "<img src='gone.png'>": "gone.png: there is no part/gone.png",
    "![x](attachment:gone.png)": "is attached nowhere on the page",
    "See @sec-gone.": "@sec-gone is defined nowhere on the page",
    "See @sec-start.": "@sec-start is defined nowhere on the page",
    "# A {#sec-a}\n\n# B {#sec-a}": "Duplicate identifier 'sec-a'",
    "::: {.note}\nopen": "unclosed at",
    "[x]({site}part/one.html#gone)": "there is no #gone in part/01_one.ipynb",
    "[x]({site}part/gone.html)": "there is no part/gone.html",
    "[x]({git}GONE.md)": "there is no GONE.md",
}


@pytest.mark.parametrize("text, fault", PLANTED.items())
def test_a_planted_fault_is_found(small, text, fault):
    site, repository, _ = addresses()
    text = text.replace("{site}", site).replace("{git}", repository)
    before = SMALL["part/02_two.ipynb"]
    write_page(small[0], "part/02_two.ipynb", f"{before}\n\n{text}")
    (line,) = found(small)
    assert line.startswith("part/02_two.ipynb: ") and fault in line


def test_faults_of_the_sidebar_are_found(small):
    pages = small[1]["website"]["sidebar"][0]["contents"][1]["contents"]
    pages.append("part/03_three.ipynb")
    assert found(small) == [
        "_quarto.yml lists part/03_three.ipynb, which does not exist"
    ]
    pages[-1] = "part/01_one.ipynb"
    assert found(small) == ["_quarto.yml lists part/01_one.ipynb 2 times"]
    del pages[0], pages[-1]
    assert found(small) == ["_quarto.yml does not list part/01_one.ipynb"]


def test_an_orphan_a_name_taken_twice_and_a_missing_style_sheet_are_found(small):
    write_page(
        small[0], "part/04_two.ipynb", "Nobody comes here. [home](../index.ipynb)"
    )
    small[1]["website"]["sidebar"][0]["contents"].append("part/04_two.ipynb")
    (small[0] / "site.scss").unlink()
    assert found(small) == [
        "2 notebooks become part/two.html",
        "_quarto.yml names site.scss, which does not exist",
        "no page links to part/04_two.ipynb",
    ]


def test_labels_options_and_figures_without_words_are_found(small):
    picture = {"image/png": "aaaa"}
    good = '#| label: fig-a\n#| fig-alt: "A: one"\n#| fig-cap: B\nplot()'
    add_cells(small, code(good, picture))
    assert found(small) == []
    add_cells(small, code("#| label: fig-a\n#| fig-alt: two: words\nplot()", picture))
    label, option, figure = found(small)
    assert label == "index.ipynb: 2 cells have the label fig-a"
    assert option.endswith("put quotes around the value of `fig-alt: two: words`")
    assert figure.endswith("has no fig-cap")


LONG_CODE = "x = 1\n" * 16
FOLDS = {  # code of a cell and its result, and what is said of it where it is folded
    "def f():\n    1": ("", None),
    "test_eq(f(), 1)\nwith expect_fail(ValueError):\n    f(2)": ("", None),
    "f(1)": ("text/plain", None),
    "import re\nplot()": ("image/png", "Code of the figure"),
    f"{LONG_CODE}x": ("text/plain", "Code of the result"),
    f"{LONG_CODE}assert x == 1": ("", "Checks"),
    "check(exercise_1, answer)": ("text/plain", "The check"),
    f"x = ...  # your code\n{LONG_CODE}": ("", None),
    f'def f():\n    "Half of x"\n{LONG_CODE}': ("", "`f`: Half of x"),
    f'class A:\n    "An a"\n\n\ndef f():\n    1\n{LONG_CODE}': (
        "",
        "`A`: An a, with `f`",
    ),
}


@pytest.mark.parametrize("source, case", FOLDS.items())
def test_short_code_is_open_and_long_code_is_folded_in_place(source, case):
    kind, told = case
    cell = code(source, *[{kind: "1"}] * bool(kind))
    (shown,) = present(cell, "stats/irt.ipynb")
    assert ("code-fold: true" in shown.source) == (told is not None)
    assert told is None or f'#| code-summary: "{told}"' in shown.source
    assert source.replace("import re\n", "").strip() in shown.source
    assert shown.outputs == cell.outputs


def test_results_are_read_for_their_numbers_and_silent_cells_for_their_result():
    (shown,) = present(code("f(1)", {"text/plain": "1"}), "papers/bento.ipynb")
    assert shown.source.startswith("#| code-fold: true")
    silent = code("#| echo: false\nplot()", {"image/png": "aaaa"})
    assert present(silent, "stats/irt.ipynb") == [silent] and "plot" in silent.source


CHAPTER = {  # cells of a notebook; hide: its page leaves them out
    "import numpy as np\nfrom re import match, sub": "",
    "from pandas import Series": "hide",
    "import json\n\nif TYPE_CHECKING:\n    from benchnb import Scores": "",
    'def top(scores: "Scores"):\n    return np.max(scores)': "export",
    "def helper(x):\n    return Series(sub('a', 'b', x))": "hide",
    "set_style()": "hide",
    "helper('a')": "",
}


def finished(cells, here="stats/irt.ipynb"):
    "A page that is made of cells, each with a directive"
    made = [code(source) for source in cells]
    for cell, word in zip(made, cells.values(), strict=True):
        cell.metadata["directives"] = [word] * bool(word)
    nb = nbformat.v4.new_notebook(cells=made)
    finish(nb, here, "https://example.org/")
    return [cell.source for cell in shown_code(nb)]


def test_imports_stand_in_one_cell_and_needed_cells_are_not_hidden():
    imports, definition, helper, call = finished(CHAPTER)
    assert imports.split("\n") == [
        "from re import sub",
        "",
        "import numpy as np",
        "from pandas import Series",
        "",
        "from benchnb import Scores",
    ]
    assert definition.startswith("def top") and call == "helper('a')"
    assert helper.startswith("#| code-fold: true") and "def helper" in helper


def test_a_page_imports_what_it_defines_only_where_it_uses_it_before():
    define = "def load(name):\n    return name"
    cells = {"from benchnb import load": "", define: "", "load('a')": ""}
    assert finished(cells) == [define, "load('a')"]
    cells = {"from benchnb import load": "", "load('a')": "", define: ""}
    assert finished(cells)[0] == "from benchnb import load"


def test_commands_are_those_of_a_terminal():
    cell = code('x = 1\nshell("benchnb plan")')
    cell.outputs = [nbformat.v4.new_output("stream", text="$ benchnb plan\n9 of 10\n")]
    kept, block = terminal(cell)
    assert (kept.source, kept.outputs) == ("x = 1", [])
    assert "``` {.bash .terminal}\nbenchnb plan\n```" in block.source
    assert "``` {.printed}\n9 of 10\n```" in block.source
    assert block.metadata["terminal"] == 'shell("benchnb plan")'
    other = code("print(1)")
    assert terminal(other) == [other]


SITE = "https://example.org/b/"
LINKS = {  # a link of nbdev, and what becomes of it on the page stats/irt.ipynb
    f"[`coverage`]({SITE}tasks/facility.html#coverage)": "`coverage`",
    f"[`metric`]({SITE}stats/metrics.html#metric)": "[`metric`](metrics.ipynb#metric)",
    f"[`far_off`]({SITE}tasks/a.html#far_off)": "[`far_off`](../tasks/a.ipynb#far_off)",
    f"[`compare`]({SITE}evaluation/compare.html#compare)": (
        "[`compare`](../evaluation/compare.ipynb#compare)"
    ),
    f"[`own`]({SITE}stats/irt.html#own)": "[`own`](#own)",
    f"[[`own`]({SITE}stats/irt.html#own)](irt.ipynb)": "[`own`](irt.ipynb)",
    "[`else`](https://example.com/x.html#else)": (
        "[`else`](https://example.com/x.html#else)"
    ),
}


def test_words_link_only_to_what_the_chapter_means():
    text = "from benchnb import compare\nfrom benchnb.stats.metrics import metric\n"
    known = imported(nbformat.v4.new_notebook(cells=[code(text + "def own(): 1")]))
    for before, after in LINKS.items():
        assert relink(before, "stats/irt.ipynb", SITE, known) == after


def test_outputs_lose_the_wrappers_of_numpy():
    text = "(np.float64(0.5), np.int64(-3), np.True_, np.str_('a'), np.float64(nan))"
    assert plain_output(text) == "(0.5, -3, True, 'a', nan)"


def test_numbers_have_the_digits_that_somebody_reads():
    text = "0.123456 -12.345678 1319.123456 0.00001234 1.234567e-08 0.1234 2510.10457"
    short = "0.1235 -12.3457 1319.1 1.2e-05 1.2e-08 0.1234 2510.10457"
    assert plain_output(text) == short


def tidied(table):
    return TABLE.sub(tidy_table, table)


def test_tables_stand_in_boxes_and_errors_stay_whole():
    rows = "".join(f"<tr><td>{n}</td><td>NaN</td></tr>" for n in range(30))
    table = tidied(f'<p><table class="dataframe"><tbody>{rows}</tbody></table>')
    assert '<div class="table-scroll"><table' in table
    assert "NaN" not in table and "<td>29</td>" in table
    assert "0.9&nbsp;±&nbsp;0.1" in tidied("<table><tr><td>0.9 ± 0.1</td></tr></table>")


BODY = '<tr><td data-quarto-table-cell-role="th">random</td><td>0.1</td></tr>'


@pytest.mark.parametrize(
    "over, kept",
    [("<th></th><th>mae</th>", 1), ("<th>data</th><th>ifeval</th>", 1)]
    + [("<th>budget</th><th>20</th>", 2)],  # a number by itself is no name
)
def test_names_of_labels_stand_in_one_row_with_the_others(over, kept):
    head = f"<thead><tr>{over}</tr><tr><th>method</th><th></th></tr></thead>"
    table = tidied(f"<table>{head}<tbody>{BODY}</tbody></table>")
    assert table.count("<tr>") == kept + 1
    assert '<th class="label">method</th>' in table
    assert '<th class="label">mae' not in table and ">0.1<" in table
    assert not re.search(r"<th\b[^>]*></th>", table)  # a head that heads nothing


def ask_search(questions, documents, words, tmp_path):
    "What the search of the site finds in these documents, in Node with npm's packages"
    packages = install() if shutil.which("node") else None
    if not packages:
        pytest.skip("node and npm are needed")
    (tmp_path / "index.json").write_text(json.dumps(documents))
    (tmp_path / "words.txt").write_text(words)
    (tmp_path / "search.mjs").write_text((ROOT / "nbs/search.js").read_text("utf-8"))
    script, text = ROOT / "tests/helpers/ask.mjs", "\n".join(questions)
    places = [tmp_path / name for name in ("index.json", "words.txt", "search.mjs")]
    command = ["node", str(script), str(packages), *map(str, places)]
    done = subprocess.run(command, input=text, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.slow
def test_what_people_type_is_found(site, tmp_path):
    lines = (ROOT / "tests/helpers/search_questions.txt").read_text("utf-8").split("\n")
    wanted = dict(line.split(" | ") for line in lines if line)
    assert len(wanted) >= 30
    words = WORDS.read_text("utf-8")
    answers = ask_search(wanted, search_index(site[2]), words, tmp_path)
    faults = [
        f"{question}: {[row['page'] for row in rows[:3]]}, not {wanted[question]}"
        for question, rows in zip(wanted, answers, strict=True)
        if not rows or rows[0]["page"] not in wanted[question].split()
    ]
    none_of(faults, "pages that the search should find first:")


def section(page, text, part="book", **more):
    row = {"page": page, "title": page, "part": part, "anchor": "", "section": ""}
    return row | {"text": text} | more


@pytest.mark.slow
def test_words_in_any_order_stems_and_words_that_mean_the_same(tmp_path):
    rows = [
        section("a.html", "How intervals are computed. " + "Much more text. " * 20),
        section("b.html", "Nothing of it.", title="Comparing models: which is better"),
        section("c.html", "compare: a function", part="reference", title="compare"),
        section("d.html", "The guarded_irt method."),
    ]
    documents = [{"id": number} | row for number, row in enumerate(rows)]
    questions = ["error bar", "computing interval", "interval computed", "better model"]
    questions += ["guarded irt", "guarded_irt", "zzz"]
    asked = ask_search(questions, documents, "interval, error bar\n# a note", tmp_path)
    first = [rows[0]["page"][0] if rows else "" for rows in asked]
    assert "".join(first) == "aaabdd" and not asked[-1]
    marked = [word["text"] for word in asked[2][0]["snippet"]["words"] if word["hit"]]
    assert marked == ["intervals", "computed."]


def test_the_index_has_sections_with_anchors_and_no_code():
    text = "Before.\n\n## One `name` {#sec-x}\n\nWords $\\hat y$, [a link](b.ipynb).\n"
    text += "\n```python\ncode = 1\n```\n\n::: {.door}\nInside.\n:::\n"
    assert page_sections(text) == [
        ("", "", "Before."),
        ("sec-x", "One name", "Words y, a link. Inside."),
    ]


def test_formulas_need_no_other_site(tmp_path):
    fonts = tmp_path / "npm/mathjax/es5/output/chtml/fonts/woff-v2"
    fonts.mkdir(parents=True)
    (fonts / "MathJax_Zero.woff").write_text("a font")
    (fonts.parents[3] / "tex-chtml-full.js").write_text("a script")
    script = "https://cdn.jsdelivr.net/npm/mathjax@3/es5/tex-chtml-full.js"
    old = "https://cdnjs.cloudflare.com/polyfill/v3/polyfill.min.js?features=es6"
    page = tmp_path / "site/a/b.html"
    page.parent.mkdir(parents=True)
    page.write_text(f'<script src="{old}"></script><script src="{script}"></script>')
    own_mathjax(tmp_path / "site", tmp_path / "npm")
    text = '<script defer src="../site_libs/mathjax/tex-chtml-full.js"></script>'
    assert page.read_text() == text
    assert (tmp_path / "site/site_libs/mathjax/tex-chtml-full.js").exists()
    assert list((tmp_path / "site/site_libs/mathjax").rglob("*.woff"))


def test_text_of_figures_has_the_letters_of_the_page():
    svg = '<text style="font-size: 9px; font-family: Arial, sans-serif; fill: #222">a'
    cell = code("plot()", {"image/svg+xml": svg})
    letter_figures(nbformat.v4.new_notebook(cells=[cell]))
    (output,) = cell.outputs
    styles = (ROOT / "nbs/site.scss").read_text("utf-8")
    (stack,) = re.findall(r"font-family-sans-serif: (.*);", styles)
    names = [part.strip("' ") for part in PAGE_LETTERS[13:].split(",")]
    assert f"{PAGE_LETTERS}; fill" in output["data"]["image/svg+xml"]
    assert {*names} <= {name.strip('" ') for name in stack.split(",")}


def test_icons_that_no_page_shows_are_left_out(tmp_path):
    import matplotlib
    from fontTools.ttLib import TTFont

    folder = tmp_path / "site_libs/bootstrap"
    folder.mkdir(parents=True)
    (tmp_path / "page.html").write_text('<i class="bi bi-github"></i>')
    font, sheet = folder / "bootstrap-icons.woff", folder / "bootstrap-icons.css"
    shutil.copy(Path(matplotlib.get_data_path(), "fonts/ttf/DejaVuSans.ttf"), font)
    codes = {"123": "0040", "alarm": "0041", "github": "0042"}
    rules = [f'.bi-{n}::before {{ content: "\\{c}"; }}\n' for n, c in codes.items()]
    sheet.write_text("@font-face {}\n" + "".join(rules))
    used_icons(tmp_path)
    left = sheet.read_text()
    assert "bi-github" in left and "bi-alarm" not in left and "@font-face" in left
    assert list(TTFont(font).getBestCmap()) == [0x42]


MODULE = """
from dataclasses import dataclass
from fastcore.basics import patch
from benchnb.evaluation.method import param


@dataclass
class Box:
    "A box"

    size: float = 1.0  # in metres
    level: float = param(0.95, "promised coverage", low=0)

    def close(self, hard: bool = False) -> "Box":  # itself
        "Close it"

    def _hidden(self):
        pass


def put(
    thing: str,  # what to put
    *more: str,
    where: Box | None = None,  # None: on the table
) -> bool:  # whether it fits
    "Put a thing into a box"


@patch
def open(self: Box):
    "Open it"
"""


def test_the_reference_is_read_from_the_module(tmp_path):
    path = tmp_path / "box.py"
    path.write_text(MODULE, encoding="utf-8")
    found = {entry.name: entry for entry in entries(path)}
    assert list(found) == ["Box", "Box.close", "Box.open", "put"]
    box = found["Box"].signature
    assert box.startswith("class Box:\n    size: float = 1.0  # in metres")
    assert "level: float = param(" in box and "_hidden" not in box
    close = found["Box.close"].signature
    assert close == 'def close(self, hard: bool = False) -> "Box":  # itself'
    put = found["put"].signature
    assert put.startswith("def put(\n    thing: str,  # what to put\n    *more: str,")
    assert put.endswith(") -> bool:  # whether it fits")
    text = entry_text(found["Box.close"], "x.ipynb")
    assert text.startswith("### Box.close {#box.close .definition}\n\nClose it ")
    assert "[[code](x.ipynb#box.close)]" in text


def test_undocumented_names_are_found():
    make = nbformat.v4
    cells = '#| export\ndef known(): "Known"\n\n\ndef _own(): pass'
    cells += "=#| exports\n@patch\ndef bare(self: Box | Other): return 1"
    cells += '=#| export\nclass Box: "A class"\n\n\nCONSTANT'
    source = make.new_notebook(cells=[*map(make.new_code_cell, cells.split("="))])
    shown = make.new_code_cell("def known(): 'Known'")
    silent = make.new_code_cell("#| echo: false\nclass Box: 1")
    assert list(undocumented(source, make.new_notebook(cells=[shown, silent]))) == [
        "Box.bare has no docstring",
        "Box.bare is not on its page",
        "Other.bare has no docstring",
        "Other.bare is not on its page",
        "Box is not on its page",
    ]


def test_charts_have_the_colours_of_the_book():
    from benchnb.evaluation.plots import method_styles

    text = (ROOT / "nbs/charts.js").read_text("utf-8")
    known = json.loads(re.search(r"METHOD_COLOURS = ({.*?})", text)[1])
    looks = method_styles(known)
    assert known == {name: look["color"] for name, look in looks.items()}


@pytest.mark.parametrize("heavy, kept", [(False, "image/svg+xml"), (True, "image/png")])
def test_a_figure_is_stored_once(heavy, kept):
    svg = "<svg>" + "a" * (HEAVIEST * heavy)
    cell = code(
        "plot()", {"image/png": "aaaa", "image/svg+xml": svg, "text/plain": "F"}
    )
    one_format(cell)
    assert cell.outputs[0]["data"].keys() == {kept, "text/plain"}
    alone = code("plot()", {"image/png": "aaaa"})
    one_format(alone)
    assert alone.outputs[0]["data"] == {"image/png": "aaaa"}
