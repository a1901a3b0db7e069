"""What the site is built from: processing changes nothing, links lead somewhere.

tools/pages.py has the checks; a fault of each kind is planted here, and must be found.
"""

import re
import shutil
from pathlib import Path
from urllib.parse import unquote

import nbformat
import pytest
import yaml
from helpers.faults import none_of
from nbdev.config import get_config

from tools.assets import own_mathjax, used_icons
from tools.chapters import fold, imported, plain_output, relink
from tools.docs import SIGNATURE, TABLE, tidy_table, write_texts
from tools.pages import Site, undocumented
from tools.preview import (
    finish_page,
    front_matter,
    process,
    quarto_config,
    read_processed,
    render,
)
from tools.reference import Entry, Parameter, entries, entry_text
from tools.run import ROOT, notebooks

SKIP = [".*", "_proc", "_docs", "_html", "build", "dist", "out", "*.egg-info"]
SKIP += ["__pycache__", "tests"]
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
    shutil.copytree(ROOT, copy, symlinks=True, ignore=shutil.ignore_patterns(*SKIP))
    before = contents(copy)
    proc = process(copy)
    return before, contents(copy), proc


@pytest.fixture(scope="module")
def book(site):
    "The processed notebooks, read by pandoc"
    return Site(site[2], quarto_config())


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


def test_sidebar_lists_every_notebook_once(book):
    none_of(book.sidebar_faults(), "mend _quarto.yml:")
    none_of(book.missing_files(), "mend _quarto.yml:")


def test_links_and_pictures_are_there(book):
    none_of(book.broken_links(), "links and pictures that lead nowhere:")


def test_references_are_defined(book):
    none_of(book.unknown_references(), "references that lead nowhere:")


def test_pandoc_reads_every_page(book):
    none_of(book.warnings(), "what pandoc says of the text:")


def test_every_page_is_linked_from_another(book):
    none_of(book.orphans(), "name these chapters where readers come by:")


def test_every_page_opens_in_colab(book):
    none_of(book.without_colab(), "finish_page left these out:")


def test_every_figure_has_a_caption_and_an_alternative_text(book):
    none_of(book.unreadable_options(), "options that are no YAML:")
    none_of(book.figures_without_words(), "`#| fig-alt:` and `#| fig-cap:` for:")


def test_every_exported_name_is_documented_on_its_page(book):
    faults = []
    for path, page in book.pages.items():
        nb = nbformat.read(ROOT / "nbs" / path, as_version=4)
        faults += [f"{path}: {fault}" for fault in undocumented(nb, page.nb)]
    none_of(faults, "exported definitions that a reader does not find:")


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


def preview(proc, tmp_path):
    "Pages without Quarto, each with its links inside the site followed"
    names = render(proc, tmp_path)
    for path, page in names.items():
        html = (tmp_path / page).read_text("utf-8")
        assert "<h1" in html and "<nav" in html
        assert ("Open in Colab" in html) == path.endswith(".ipynb")
        inside = re.findall(r'(?:href|src)="(?!#|[a-z]+:)([^"#]+)', html)
        there = [(tmp_path / page).parent / Path(to) for to in inside]
        assert not [to for to in there if not to.exists()]
    return names


@pytest.mark.slow  # three small pages are looked at below
def test_pages_can_be_looked_at_without_quarto(site, tmp_path):
    preview(site[2], tmp_path)


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
    side = {"contents": ["index.ipynb", part, outside]}
    return tmp_path, {
        "format": {"html": {"theme": {"light": ["cosmo", "site.scss"]}}},
        "website": {"sidebar": side},
    }


def found(small):
    return list(Site(*small).faults())


def test_a_sound_site_has_no_fault(small):
    assert found(small) == []


def test_an_attachment_is_known(small):
    nb = read_processed(small[0] / "index.ipynb")
    nb.cells[1].source += " ![x](attachment:a%20b.png)"
    nb.cells[1]["attachments"] = {"a b.png": {"image/png": "aaaa"}}
    nbformat.write(nb, small[0] / "index.ipynb")
    assert found(small) == []
    nb.cells[1]["attachments"] = {"other.png": {"image/png": "aaaa"}}
    nbformat.write(nb, small[0] / "index.ipynb")
    assert len(found(small)) == 1


def test_small_pages_can_be_looked_at_without_quarto(small, tmp_path):
    folder, config = small
    config |= {"project": {"resources": ["site.scss", "dot.png"]}}
    (folder / "_quarto.yml").write_text(yaml.safe_dump(config))
    names = preview(folder, tmp_path / "html")
    assert [*names] == [*SMALL] and "part/two.html" in names.values()


PLANTED = {  # text on the second page, and what is said of it
    "[x](03_three.ipynb)": "03_three.ipynb: there is no part/03_three.ipynb",
    "[x](01_one.ipynb#gone)": "there is no #gone in part/01_one.ipynb",
    "[x](#gone)": "#gone: there is no #gone in part/02_two.ipynb",
    "<a href='../gone.ipynb'>x</a>": "../gone.ipynb: there is no gone.ipynb",
    "![x](gone.png)": "gone.png: there is no part/gone.png",
    "<img src='gone.png'>": "gone.png: there is no part/gone.png",
    "![x](attachment:gone.png)": "-gone.png",
    "See @sec-gone.": "@sec-gone is defined nowhere on the page",
    "See @sec-start.": "@sec-start is defined nowhere on the page",
    "See @fig-gone.": "@fig-gone is defined nowhere on the page",
    "# A {#sec-a}\n\n# B {#sec-a}": "Duplicate identifier 'sec-a' at line 8 column 1",
    "::: {.note}\nopen": "Div at line 3 column 1 unclosed at line 7 column 1, closing "
    "implicitly.",
    "[x]({site}part/one.html#gone)": "there is no #gone in part/01_one.ipynb",
    "[x]({site}part/gone.html)": "there is no part/gone.html",
    "[x]({git}/blob/main/GONE.md)": "there is no GONE.md",
}


@pytest.mark.parametrize("text, said", PLANTED.items())
def test_a_planted_fault_is_found(small, text, said):
    cfg = get_config(path=ROOT)
    site = cfg["doc_host"] + cfg["doc_baseurl"] + "/"
    text = text.replace("{site}", site).replace("{git}", cfg["git_url"])
    before = SMALL["part/02_two.ipynb"]
    write_page(small[0], "part/02_two.ipynb", f"{before}\n\n{text}")
    (fault,) = found(small)
    assert fault.startswith("part/02_two.ipynb: ") and fault.endswith(said)


def test_faults_of_the_sidebar_are_found(small):
    pages = small[1]["website"]["sidebar"]["contents"][1]["contents"]
    pages.append("part/03_three.ipynb")
    assert found(small) == [
        "_quarto.yml lists part/03_three.ipynb, which does not exist"
    ]
    pages[-1] = "part/01_one.ipynb"
    assert found(small) == ["_quarto.yml lists part/01_one.ipynb 2 times"]
    del pages[0], pages[-1]
    assert found(small) == ["_quarto.yml does not list part/01_one.ipynb"]


def test_an_orphan_and_a_name_taken_twice_are_found(small):
    write_page(
        small[0], "part/04_two.ipynb", "Nobody comes here. [home](../index.ipynb)"
    )
    small[1]["website"]["sidebar"]["contents"].append("part/04_two.ipynb")
    assert found(small) == [
        "2 notebooks become part/two.html",
        "no page links to part/04_two.ipynb",
    ]


def test_a_missing_style_sheet_and_a_missing_colab_link_are_found(small):
    (small[0] / "site.scss").unlink()
    nb = read_processed(small[0] / "index.ipynb")
    nb.cells[0].source = FRONT.format("index")
    nbformat.write(nb, small[0] / "index.ipynb")
    assert found(small) == [
        "_quarto.yml names site.scss, which does not exist",
        "index.ipynb has no link that opens it in Colab",
    ]


def test_a_label_given_twice_is_found(small):
    nb = read_processed(small[0] / "index.ipynb")
    nb.cells += [code("#| label: fig-a\n1") for _ in range(2)]
    nbformat.write(nb, small[0] / "index.ipynb")
    assert found(small) == ["index.ipynb: 2 cells have the label fig-a"]


def code(source, *outputs):
    make = nbformat.v4
    made = [make.new_output("display_data", data) for data in outputs]
    return make.new_code_cell(source, outputs=made)


def test_a_figure_without_words_and_an_option_that_is_no_yaml_are_found(small):
    nb = read_processed(small[0] / "index.ipynb")
    picture = {"image/png": "aaaa"}
    nb.cells += [code('#| fig-alt: "A: one"\n#| fig-cap: B\nplot()', picture)]
    nbformat.write(nb, small[0] / "index.ipynb")
    assert found(small) == []
    nb.cells += [code("#| fig-alt: two words: one\nplot()", picture)]
    nbformat.write(nb, small[0] / "index.ipynb")
    option, figure = found(small)
    assert option.endswith("put quotes around the value of `fig-alt: two words: one`")
    assert figure.endswith(f"the figure of cell {nb.cells[-1].id} has no fig-cap")


FOLDS = {  # code of a cell, whether it has a result, and what its fold is called
    "import numpy as np": (False, "Imports"),
    '#| code-fold: show\n#| code-summary: "Exported source"\ndef f(): 1': (
        True,
        "Source of f",
    ),
    "assert f() == 1": (False, "Checks"),
    "test_eq(f(), 1)\nwith expect_fail(ValueError):\n    f(2)": (False, "Checks"),
    "def helper():\n    return 1": (False, "Code: helper"),
    "f(1)": (True, None),
    "x = 1": (False, None),
    "\n".join(f"x{i} = {i}" for i in range(20)): (True, "Code"),
}


@pytest.mark.parametrize("source, told", FOLDS.items())
def test_what_is_not_prose_is_folded(source, told):
    result, name = told
    cell = code(source, *[{"text/plain": "1"}] * result)
    fold(cell)
    options = yaml.safe_load(
        "\n".join(re.findall(r"^#\| (.*)", cell.source, flags=re.M)) or "{}"
    )
    wanted = {"code-fold": True, "code-summary": name} if name else {}
    assert options == wanted
    assert cell.source.endswith(source.split("\n")[-1])


def test_the_code_of_a_figure_is_folded_and_unseen_code_left_alone():
    cell = code("plot()", {"image/png": "aaaa"})
    fold(cell)
    assert 'code-summary: "Code of the figure"' in cell.source
    cell = code("#| echo: false\nplot()", {"image/png": "aaaa"})
    fold(cell)
    assert cell.source == "#| echo: false\nplot()"


SITE = "https://example.org/b/"
LINKS = {  # a link of nbdev, and what becomes of it on the page stats/irt.ipynb
    f"[`coverage`]({SITE}tasks/facility.html#coverage)": "`coverage`",
    f"[`metric`]({SITE}stats/metrics.html#metric)": "[`metric`](metrics.ipynb#metric)",
    f"[`far_off`]({SITE}tasks/a.html#far_off)": "[`far_off`](../tasks/a.ipynb#far_off)",
    f"[`compare`]({SITE}evaluation/compare.html#compare)": (
        "[`compare`](../evaluation/compare.ipynb#compare)"
    ),
    f"[`own`]({SITE}stats/irt.html#own)": "[`own`](#own)",
    "[`else`](https://example.com/x.html#else)": (
        "[`else`](https://example.com/x.html#else)"
    ),
}


@pytest.mark.parametrize("before, after", LINKS.items())
def test_words_link_only_to_what_the_chapter_means(before, after):
    text = "from benchnb import compare\nfrom benchnb.stats.metrics import metric\n"
    nb = nbformat.v4.new_notebook(cells=[code(text + "def own(): 1")])
    assert relink(before, "stats/irt.ipynb", SITE, imported(nb)) == after


def test_outputs_lose_the_wrappers_of_numpy():
    text = "(np.float64(0.5), np.int64(-3), np.True_, np.str_('a'), np.float64(nan))"
    assert plain_output(text) == "(0.5, -3, True, 'a', nan)"


def tidied(table):
    return TABLE.sub(tidy_table, table)


def test_tables_scroll_in_boxes_and_errors_stay_whole():
    rows = "".join(f"<tr><td>{n}</td><td>NaN</td></tr>" for n in range(30))
    table = tidied(f'<p><table class="dataframe"><tbody>{rows}</tbody></table>')
    assert '<div class="table-scroll tall" tabindex="0"><table' in table
    assert "NaN" not in table and "<td>29</td>" in table
    assert "0.9&nbsp;±&nbsp;0.1" in tidied("<table><tr><td>0.9 ± 0.1</td></tr></table>")


ROLE = ' data-quarto-table-cell-role="th"'
BODY = f"<tbody><tr><td{ROLE}>random</td><td>0.1</td></tr></tbody>"


@pytest.mark.parametrize(
    "over, kept",
    [("<th></th><th>mae</th>", 1), ("<th>data</th><th>zoo</th>", 1)]
    + [("<th>budget</th><th>20</th>", 2)],  # a number alone says nothing
)
def test_names_of_labels_stand_in_one_row_with_the_others(over, kept):
    head = f"<thead><tr>{over}</tr><tr><th>method</th><th></th></tr></thead>"
    table = tidied(f"<table>{head}{BODY}</table>")
    assert table.count("<tr>") == kept + 1
    assert '<th class="label">method</th>' in table
    assert '<th class="label">mae' not in table and ">0.1<" in table


def test_a_signature_does_not_say_its_name_twice():
    shown = SIGNATURE.sub(r"\1[\2]", '<code class="signature">class Box(size=1)</code>')
    assert shown == '<code class="signature">[class Box](size=1)</code>'


def test_parameters_of_what_people_type_are_open():
    given = [Parameter("level", "float", "0.95", "of the interval")]
    entry = Entry("put", "function", "Put it", 3, given)
    closed, shown = entry_text(entry, "x.py"), entry_text(entry, "x.py", shown=True)
    assert '<details class="parameters">' in closed
    assert '<details class="parameters" open>' in shown
    assert "level: float = 0.95" in closed and "of the interval" in closed


@pytest.fixture
def rendered(tmp_path):
    "A site of one page, and the packages that npm would bring"
    place = tmp_path / "site/site_libs/bootstrap"
    place.mkdir(parents=True)
    address = "https://cdn.jsdelivr.net/npm/mathjax@3/es5/tex-chtml-full.js"
    old = "https://cdnjs.cloudflare.com/polyfill/v3/polyfill.min.js?features=es6"
    page = '<i class="bi bi-github"></i>'
    page += "".join(f'<script src="{place}"></script>' for place in (old, address))
    (tmp_path / "site/a").mkdir()
    (tmp_path / "site/a/b.html").write_text(page)
    fonts = tmp_path / "npm/mathjax/es5/output/chtml/fonts/woff-v2"
    fonts.mkdir(parents=True)
    (fonts / "MathJax_Zero.woff").write_text("a font")
    (fonts.parents[3] / "tex-chtml-full.js").write_text("a script")
    return tmp_path / "site", tmp_path / "npm"


def test_formulas_need_no_other_site(rendered):
    site, packages = rendered
    own_mathjax(site, packages)
    page = (site / "a/b.html").read_text()
    assert 'src="../site_libs/mathjax/tex-chtml-full.js"' in page
    assert "https" not in page
    assert (site / "site_libs/mathjax/tex-chtml-full.js").exists()
    assert list((site / "site_libs/mathjax").rglob("*.woff"))


def test_icons_that_no_page_shows_are_left_out(rendered):
    import matplotlib
    from fontTools.ttLib import TTFont

    folder = rendered[0] / "site_libs/bootstrap"
    font = folder / "bootstrap-icons.woff"
    shutil.copy(Path(matplotlib.get_data_path(), "fonts/ttf/DejaVuSans.ttf"), font)
    codes = {"123": "0040", "alarm": "0041", "github": "0042"}
    rules = [f'.bi-{n}::before {{ content: "\\{c}"; }}\n' for n, c in codes.items()]
    sheet = folder / "bootstrap-icons.css"
    sheet.write_text("@font-face {}\n" + "".join(rules))
    used_icons(rendered[0])
    left = sheet.read_text()
    assert "bi-github" in left and "bi-alarm" not in left and "@font-face" in left
    assert list(TTFont(font).getBestCmap()) == [0x42]


def test_columns_are_as_wide_as_what_they_hold():
    words = "a sentence that is much longer than all of the others; " * 2
    cells = f"<td>table 10</td><td>{words}</td><td>0.0328 ± 0.0003</td>"
    head = "<thead><tr><th></th><th>why</th><th>ours</th></tr></thead>"
    table = tidied(f"<table>{head}<tbody><tr>{cells}</tr></tbody></table>")
    first, second, third = map(int, re.findall(r"width: (\d+)%", table))
    assert second > third > first >= 10
    assert "<colgroup>" not in tidied("<table><tr><td>1</td></tr></table>")


def test_each_page_is_markdown_too(small):
    (small[0] / "_quarto.yml").write_text(yaml.safe_dump(small[1]), encoding="utf-8")
    write_texts(small[0], small[0] / "out")
    listed = (small[0] / "out/llms.txt").read_text("utf-8")
    files = re.findall(r"benchnb/(\S+?)\): a claim", listed)
    assert files == ["index.html.md", "part/01_one.html.md", "part/02_two.html.md"]
    text = (small[0] / "out/index.html.md").read_text("utf-8")
    assert "[one](part/01_one.html.md#sec-start)" in text


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


def test_the_reference_says_what_the_module_says(tmp_path):
    path = tmp_path / "box.py"
    path.write_text(MODULE, encoding="utf-8")
    found = {entry.name: entry for entry in entries(path)}
    assert list(found) == ["Box", "Box.close", "Box.open", "put"]
    assert [e.kind for e in found.values()] == ["class", "method", "method", "function"]
    assert found["Box"].signature() == "Box(size=1.0, level=0.95)"
    assert [p.meaning for p in found["Box"].parameters] == [
        "in metres",
        "promised coverage",
    ]
    assert found["Box.close"].returns.type == "Box"
    put = found["put"]
    assert put.signature() == "put(thing, *more, where=None)"
    assert [p.text() for p in put.parameters][-1] == "where: Box | None = None"
    told = [p.meaning for p in put.parameters]
    assert told == ["what to put", "", "None: on the table"]
    assert put.returns.meaning == "whether it fits"


def test_every_public_name_is_in_the_reference(site):
    index = (site[2] / "reference/index.qmd").read_text("utf-8")
    import benchnb

    for name, module in benchnb._HOME.items():
        page = (site[2] / f"reference/{module.replace('.', '/')}.qmd").read_text(
            "utf-8"
        )
        assert f"[`{name}`]" in index and f"# {name} {{#{name.lower()} " in page


def test_undocumented_names_are_found():
    make = nbformat.v4
    source = make.new_notebook()
    told = '#| export\ndef told(): "Told"\n\n\ndef _own(): pass'
    untold = "#| exports\n@patch\ndef untold(self: Told | Other): return 1"
    hidden = '#| export\nclass Told: "A class"\n\n\nCONSTANT = 1'
    source.cells = [make.new_code_cell(t) for t in (told, untold, hidden)]
    shown = make.new_markdown_cell("### told {#told .definition}\n\n`told()`")
    other = make.new_markdown_cell("### Told\n\n`Told()`")
    assert list(undocumented(source, make.new_notebook(cells=[shown, other]))) == [
        "Told.untold has no docstring",
        "Told.untold is not on its page",
        "Other.untold has no docstring",
        "Other.untold is not on its page",
        "Told is not on its page",
    ]
