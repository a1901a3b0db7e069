"""The rendered site, looked at in Chromium: `make look`, after `make docs`.

Nothing is loaded from elsewhere: what a page asks for from another site is refused."""

import functools
import gzip
import http.server
import json
import os
import re
import shutil
import threading
from pathlib import Path

import pytest
from helpers.faults import none_of
from nbdev.config import get_config

from benchnb.data.sources import load
from tools.run import ROOT

pytestmark = pytest.mark.slow
LONGEST = {1280: 15_000, 390: 10_000}  # pixels of a page, by the width of the window
FOLDS = 4  # on a page that somebody reads
HEAVIEST = {"index.html": 600_000, "": 1_500_000}  # bytes that are sent for a page
AXE = ROOT / ".npm/node_modules/axe-core/axe.min.js"
LOOK = (ROOT / "tests/helpers/look.js").read_text("utf-8")


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def docs():
    "The site that `make docs` rendered"
    if not (ROOT / "_docs/index.html").exists():
        pytest.skip("no site in _docs: make docs")
    return ROOT / "_docs"


def pages(docs):
    found = sorted(path for path in docs.rglob("*.html"))
    names = [p.relative_to(docs).as_posix() for p in found]
    return [n for n in names if "site_libs/" not in n and "/slides/" not in n]


@pytest.fixture(scope="module")
def browser():
    player = pytest.importorskip("playwright.sync_api")
    path = shutil.which("chromium") or shutil.which("google-chrome")
    if not path:
        pytest.skip("no Chromium")
    with player.sync_playwright() as play:
        flags = ["--no-sandbox", "--disable-gpu"]
        made = play.chromium.launch(executable_path=path, args=flags)
        yield made
        made.close()


@pytest.fixture(scope="module")
def address(docs):
    handler = functools.partial(Quiet, directory=docs)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()


@pytest.fixture
def visit(browser, address):
    "Open a page in a window of some width, without a network"
    contexts = []

    def go(page, width=1280, theme="light"):
        size = {"width": width, "height": 900}
        context = browser.new_context(
            viewport=size, color_scheme=theme, is_mobile=width < 500
        )
        context.route(
            lambda url: not url.startswith(address), lambda route: route.abort()
        )
        contexts.append(context)
        tab = context.new_page()
        tab.goto(address + page, wait_until="load")
        return tab

    yield go
    for context in contexts:
        context.close()


SET = "window.MathJax && MathJax.startup ? MathJax.startup.promise.then(() => 1) : 0"


def looked_at(visit, address, docs, width):
    "What is seen of every page, after its formulas are set"
    tab = visit("index.html", width)
    for page in pages(docs):
        if "<main" not in (docs / page).read_text("utf-8"):
            continue  # slides
        tab.goto(address + page, wait_until="load")
        tab.evaluate(SET)
        yield page, tab.evaluate(LOOK)


@pytest.mark.parametrize("width", LONGEST)
def test_nothing_is_cut_off_hidden_or_printed_over(visit, address, docs, width):
    faults = []
    for page, seen in looked_at(visit, address, docs, width):
        high, folds = seen.pop("height"), seen.pop("folds")
        wide = seen.pop("width")
        faults += [f"{page} is {high} pixels high"] * (high > LONGEST[width])
        faults += [f"{page} is {wide} wide"] * (wide > width)
        read = not page.startswith("reference/")
        faults += [f"{page} has {folds} folds"] * (read and folds > FOLDS)
        faults += [f"{page}, {key}: {what}" for key in seen for what in seen[key]]
    none_of(faults, f"at {width} pixels:")


def test_a_printed_page_shows_all_columns(visit, address, docs):
    tab, faults = visit("index.html", 794), []  # A4 at 96 dots an inch
    tab.emulate_media(media="print")
    ends = "cells => cells.map((cell) => cell.getBoundingClientRect().right)"
    for page in pages(docs):
        if page.startswith(("papers/", "studies/", "tutorials/")):
            tab.goto(address + page, wait_until="load")
            right = max([0, *tab.locator("main :is(td, th)").evaluate_all(ends)])
            faults += [f"{page}: a cell ends at {right:.0f} pixels"] * (right > 794)
    none_of(faults, "cut off on paper:")


def test_home_is_short(visit):
    tab = visit("index.html")
    assert tab.evaluate("document.documentElement.scrollHeight") <= 2000
    tab.evaluate("document.querySelectorAll('select').forEach((e) => e.remove())")
    assert len(tab.inner_text("main").split()) <= 450
    assert tab.locator("main a").count() <= 25


def test_a_cell_of_a_stacked_table_says_what_it_is(visit):
    cell = visit("explorer.html", 390).locator("table.stacked td").first
    before = "cell => getComputedStyle(cell, '::before').content"
    assert cell.evaluate(before).strip('"') == "error in points: "


def test_five_clicks_lead_to_one_method(visit, browser, address):
    page = "tutorials/which_method.html"
    tab = visit(page)
    shown = tab.locator("ul.answers li:visible")
    assert shown.count() == 1 and "Take guarded_irt" in shown.inner_text()
    tab.click("form.which >> text=a score for each of many small tasks")
    assert shown.count() == 1 and "collaborative_filtering" in shown.inner_text()
    again = visit(page + tab.evaluate("location.hash")).locator("ul.answers li:visible")
    assert again.all_inner_texts() == shown.all_inner_texts()
    still = browser.new_context(java_script_enabled=False).new_page()
    still.goto(address + page)
    assert still.locator("ul.answers li:visible").count() > 20
    assert not still.locator("form.which").is_visible()
    still.context.close()


ALL_CHOICES = """(form) => {
  const named = (name) =>
    [...form.elements[name].options].map((option) => option.value);
  const answers = [];
  for (const data of named('data')) for (const points of named('points'))
    for (const sources of named('sources')) for (const kind of named('kind')) {
      Object.entries({data, points, sources, kind})
        .forEach(([name, value]) => (form.elements[name].value = value));
      form.dispatchEvent(new Event('input'));
      const text = (name) => form.querySelector(`[data-answer=${name}]`).textContent;
      answers.push(['items', 'command', 'note'].map(text));
    }
  return answers;
}"""


def test_every_choice_of_how_many_has_a_sentence_and_a_command(visit):
    tab = visit("tutorials/how_many.html")
    answers = tab.locator("form.how-many").evaluate(ALL_CHOICES)
    assert len(answers) > 500
    for items, command, note in answers:
        total = int(re.search(r"of ([\d,]+) items", items)[1].replace(",", ""))
        budget = int(re.search(r"--budget (\d+) --out new$", command)[1])
        assert 1 <= budget <= total and "NaN" not in items + note
        counts = re.findall(r"([\d,]+) at random", items)  # never more than at random
        assert all(budget <= int(count.replace(",", "")) for count in counts)
        assert items.count("not known") <= 2


@pytest.mark.parametrize(
    "name, value", [("items", ""), ("items", "0"), ("score", "150"), ("score", "0")]
)
def test_how_many_says_which_number_is_wrong(visit, name, value):
    tab = visit("tutorials/how_many.html")
    tab.select_option("form.how-many [name=data]", "")
    tab.fill(f"form.how-many [name={name}]", value)
    answer = tab.inner_text("[data-answer=items]")
    assert answer.startswith({"items": "Its items", "score": "The score"}[name])
    assert not tab.locator("[data-answer=command]").is_visible()


def test_the_skip_link_is_the_first_stop(visit):
    tab = visit("stats/intervals.html")
    tab.keyboard.press("Tab")
    assert tab.evaluate("document.activeElement.className") == "skip"
    tab.keyboard.press("Enter")
    assert tab.url.endswith("#quarto-document-content")


def test_one_door_is_lit(visit):
    doors = {"index": "Guide", "stats/intervals": "Book", "reference/index": "Library"}
    for page, door in doors.items():
        lit = visit(f"{page}.html").locator("#navbarCollapse [aria-current]")
        assert lit.all_inner_texts() == [door]


def test_a_command_is_copied_alone_and_a_page_as_markdown(visit):
    tab = visit("tutorials/your_records.html")
    tab.context.grant_permissions(["clipboard-read", "clipboard-write"])
    block = tab.locator("div.sourceCode:has(pre.terminal)").first
    block.hover()
    block.locator("button").click()
    read = "navigator.clipboard.readText()"
    assert tab.evaluate(read) == "benchnb predict bad.csv"
    tab.click(".copy-page")
    tab.wait_for_selector("text=Copied")
    text = tab.evaluate(read)
    assert text.startswith("# ") and "```\nbenchnb predict bad.csv" in text
    assert "| --- |" in text


SLIDE = """() => {
  const box = document.querySelector('.reveal .slides').getBoundingClientRect();
  const over = (e) => {
    const r = e.getBoundingClientRect();
    const out = r.right > box.right + 2 || r.bottom > box.bottom + 2;
    return r.width > 0 && !e.closest('aside.notes') && out;
  };
  const slide = Reveal.getCurrentSlide();
  const shown = slide.querySelectorAll('img, table, pre, #title-slide, .subtitle');
  return {
    over: [...slide.querySelectorAll('*')].filter(over).length,
    notes: slide.querySelectorAll('aside.notes').length,
    shown: shown.length,
    silent: [...slide.querySelectorAll('img')].filter((e) => !e.alt).length,
    title: slide.innerText.slice(0, 50),
  };
}"""


def test_nothing_overflows_a_slide_and_each_has_a_picture_and_notes(browser, docs):
    lectures, faults = sorted((docs / "course/slides").glob("*.html")), []
    assert len(lectures) == len(list((ROOT / "nbs/course/slides").glob("*.ipynb")))
    tab = browser.new_page(viewport={"width": 1280, "height": 720})
    for path in lectures:
        tab.goto(path.as_uri())
        tab.wait_for_function("window.Reveal && Reveal.isReady()")
        number = tab.evaluate("Reveal.getTotalSlides()")
        for at in range(number):
            tab.evaluate(f"Reveal.slide({at})")
            tab.wait_for_function("document.fonts.status === 'loaded'")
            seen = tab.evaluate(SLIDE)
            wrong = seen["over"] or seen["silent"] or not seen["shown"]
            if wrong or (at and not seen["notes"]):
                faults.append(f"{path.stem}, slide {at}: {seen}")
    tab.close()
    none_of(faults, "at 1,280 x 720 pixels:")


def test_links_and_anchors_of_the_rendered_pages_exist(docs):
    html = {page: (docs / page).read_text("utf-8") for page in pages(docs)}
    ids = {
        page: set(re.findall(r'\bid="([^"]+)"', text)) for page, text in html.items()
    }
    faults = []
    for page, text in html.items():
        for target in set(re.findall(r'<a\b[^>]*?\bhref="([^"]+)"', text)):
            if re.match(r"[a-z]+:|//|#?$", target):
                continue
            file, _, anchor = target.partition("#")
            file = (
                file.removeprefix("/benchnb/").removeprefix("/")
                if file[:1] == "/"  # from the top of the site, as 404.html has them
                else (os.path.join(os.path.dirname(page), file or Path(page).name))
            )
            there = os.path.normpath(file)
            there = (
                there if (docs / there).is_file() else os.path.join(there, "index.html")
            )
            there = os.path.normpath(there)
            if not (docs / there).exists():
                faults.append(f"{page}: {target}")
            elif anchor and anchor not in ids.get(there, [anchor]):
                faults.append(f"{page}: there is no #{anchor} in {there}")
    none_of(faults, "links that lead nowhere:")


def test_pages_are_light(docs):
    faults = []
    for page in pages(docs):
        html = (docs / page).read_text("utf-8")
        files = set(re.findall(r'(?:src|href)="(?!#|[a-z]+:)([^"#?]+)"', html))
        parts = [(docs / page).parent / file for file in files]
        loaded = [p for p in parts if p.suffix in (".png", ".svg", ".js", ".css")]
        sizes = [len(gzip.compress(p.read_bytes())) for p in loaded if p.exists()]
        size = len(gzip.compress(html.encode())) + sum(sizes)
        most = HEAVIEST.get(page, HEAVIEST[""])
        faults += [f"{page}: {size:,} bytes"] * (size > most)
    none_of(faults, "heavier than a reader on the road wants:")


def test_the_search_is_light(docs):
    files = ["search_index.json", "search.js", "search_box.js"]
    files += ["minisearch.js", "stemmer.js"]
    size = sum(len(gzip.compress((docs / file).read_bytes())) for file in files)
    assert size < 500_000  # loaded when somebody wants to search


@pytest.mark.parametrize(
    "page", ["index.html", "stats/irt.html", "reference/index.html"]
)
def test_the_search_opens_and_leads_from_every_folder(visit, page):
    tab = visit(page)
    tab.keyboard.press("/")
    tab.fill(".search-box input", "how many items do I need")
    tab.wait_for_selector(".hits a")
    assert tab.locator(".hits a").first.get_attribute("href").endswith("how_many.html")
    tab.keyboard.press("ArrowDown")
    assert tab.evaluate("document.activeElement.matches('.hits a')")
    tab.keyboard.press("ArrowUp")
    tab.keyboard.press("Enter")
    tab.wait_for_url("**/tutorials/how_many.html*")
    tab.keyboard.press("Control+k")
    tab.wait_for_selector(".search-box[open]")
    tab.keyboard.press("Escape")
    assert not tab.locator(".search-box").is_visible()


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", LONGEST)
def test_the_search_box_stays_in_the_window(visit, width, theme):
    tab = visit("stats/irt.html", width, theme)
    tab.click(".search-button:visible")
    tab.fill(".search-box input", "interval")
    tab.wait_for_selector(".hits a")
    box = tab.locator(".search-box").bounding_box()
    assert box["x"] >= 0 and box["x"] + box["width"] <= width
    assert box["y"] + box["height"] <= 900
    tab.locator(".hits a").last.scroll_into_view_if_needed()
    assert tab.locator(".search-box input").is_visible()
    if AXE.exists():
        tab.add_script_tag(path=AXE)
        seen = tab.evaluate("axe.run('.search-box')")["violations"]
        none_of([found["id"] for found in seen], "axe-core finds in the search:")


def test_the_header_is_as_high_in_the_dark(visit):
    high = "document.querySelector('header nav.navbar').offsetHeight"
    light, dark = (visit("stats/irt.html", theme=t) for t in ("light", "dark"))
    assert light.evaluate(high) == dark.evaluate(high)


def test_machines_find_every_page(docs):
    site = get_config(path=ROOT)["site"]
    assert (docs / "sitemap.xml").exists() == bool(site)
    if not site:
        pytest.skip("a sitemap has whole addresses, and the site has none")
    listed = {"sitemap.xml": ".html"}
    if (docs / "llms.txt").exists():  # Quarto 1.9 and newer
        listed["llms.txt"] = ".llms.md"
    for file, end in listed.items():
        text = (docs / file).read_text("utf-8")
        names = [page.replace(".html", end) for page in pages(docs)]
        lack = [name for name in names if name not in text and "404" not in name]
        none_of(lack, f"not in {file}:")


def test_formulas_are_set_by_the_site_itself(visit, docs):
    asked = re.compile(r'<(?:script|img)\b[^>]*src="(https?:[^"]+)"')
    sheets = re.compile(r'<link\b[^>]*href="(https?:[^"]+)"[^>]*rel="stylesheet"')
    faults = []
    for page in pages(docs):
        html = (docs / page).read_text("utf-8")
        faults += [f"{page}: {u}" for u in asked.findall(html) + sheets.findall(html)]
    none_of(faults, "asked from elsewhere:")
    tab = visit("stats/irt.html")
    tab.evaluate(SET)
    assert tab.locator("main mjx-container").count() > 20
    assert "$" not in tab.inner_text("main p:has(mjx-container) >> nth=0")


def test_the_best_figures_are_bold(visit):
    table = visit("studies/all_methods.html").locator(".best-low table").first
    best = table.locator("td.best")
    columns = table.locator("thead tr").last.locator("th").count() - 1
    assert best.count() >= columns
    weights = "cells => cells.map((cell) => getComputedStyle(cell).fontWeight)"
    assert set(best.evaluate_all(weights)) == {"700"}


def test_a_link_opens_what_it_leads_to(visit):
    closed = ".anchor + .cell > details.code-fold:not([open])"
    count = visit("stats/irt.html").locator(closed).count()
    tab = visit("stats/irt.html#irt.select")  # a method of a class that is folded
    assert tab.locator(closed).count() == count - 1 > 0


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_nothing_is_left_for_axe_to_find(visit, address, docs, theme):
    "Whole pages, not their text alone; of the reference every tenth"
    axe = Path(os.environ.get("AXE", AXE))
    if not axe.exists():
        pytest.skip("axe-core is missing: `make look` installs it")
    made = [p for p in pages(docs) if "<main" in (docs / p).read_text("utf-8")]
    chosen = [p for p in made if not p.startswith("reference/")]
    chosen += [p for p in made if p.startswith("reference/")][::10]
    tab, faults = visit("index.html", theme=theme), []
    dark = tab.evaluate("document.body.classList.contains('quarto-dark')")
    assert dark == (theme == "dark")  # as the reader's system prefers
    for page in chosen:
        tab.goto(address + page, wait_until="load")
        tab.evaluate(SET)
        tab.add_script_tag(path=axe)
        for found in tab.evaluate("axe.run(document)")["violations"]:
            nodes = [node["target"] for node in found["nodes"]]
            faults += [f"{page}, {found['id']} ({found['impact']}): {nodes[:3]}"]
    none_of(faults, f"axe-core, {theme}:")


@pytest.fixture
def explorer(visit):
    tab = visit("explorer.html")
    tab.wait_for_selector("#bars circle")
    return tab


def test_the_explorer_shows_the_stored_numbers(explorer):
    import pandas as pd

    wanted = {"data": "gsm8k", "split": "ability", "budget": "100"}
    stored = pd.read_csv(ROOT / "nbs/results/field.csv", dtype={"budget": str})
    rows = stored[(stored[[*wanted]] == wanted).all(axis=1)].set_index("method")
    for name, value in wanted.items():
        explorer.select_option(f"#{name}", value)
    explorer.click(".explorer summary")
    explorer.click("#all-methods")
    circle = '#bars circle[data-method="{}"]'
    for measure in ("mae", "kendall", "coverage"):
        explorer.select_option("#measure", measure)
        known = rows[measure].dropna()  # of a method without an interval: no coverage
        for name, value in known.items():
            shown = explorer.get_attribute(circle.format(name), "data-value")
            assert float(shown) == pytest.approx(value, abs=1e-5)
        assert explorer.locator("#bars circle").count() == len(known) > 10


def test_the_explorer_begins_with_what_the_site_recommends(explorer):
    shown = explorer.locator("#bars circle")
    names = shown.evaluate_all("dots => dots.map((dot) => dot.dataset.method)")
    assert sorted(names) == ["guarded_irt", "random", "stratified"]
    assert "error in points: guarded_irt" in explorer.inner_text("#summary")


def test_the_explorer_is_used_with_the_keyboard(explorer):
    before = explorer.inner_text("#summary")
    explorer.focus("#data")
    explorer.keyboard.press("ArrowDown")
    assert explorer.inner_text("#summary") != before
    explorer.focus(".explorer summary")
    explorer.keyboard.press("Enter")
    explorer.click("#all-methods")
    explorer.select_option("#data", "ifeval")
    explorer.select_option("#budget", "50")
    count = explorer.locator("#bars circle").count()
    explorer.focus("#methods input")
    explorer.keyboard.press("Space")
    assert explorer.locator("#bars circle").count() == count - 1


def test_the_chart_at_home_runs_the_list_and_shows_its_guard(visit):
    tab = visit("index.html")
    tab.wait_for_selector(".score-your-agent rect[data-guard]")
    assert "guarded_irt, 25 tasks" in tab.inner_text(".figures")
    assert "random tasks" in tab.inner_text(".figures")
    seen = set()
    for agent in tab.locator(".score-your-agent select option").all()[:8]:
        tab.select_option(".score-your-agent select", agent.get_attribute("value"))
        seen.add(tab.locator(".figures b[class]").get_attribute("class"))
    assert seen == {"in", "out"}


def test_a_report_is_called_what_it_is_and_a_bad_file_clears_it(visit, tmp_path):
    tab = visit("score_your_agent.html")
    tasks = load("swebench_verified").items.index
    two = tmp_path / "two.json"
    report = {"resolved_ids": [tasks[0]], "unresolved_ids": [tasks[7]]}
    two.write_text(json.dumps(report), encoding="utf-8")
    tab.set_input_files("input[type=file]", two)
    tab.wait_for_function(
        "document.querySelector('.notice').textContent.startsWith('two')"
    )
    assert "not a random sample" in tab.inner_text(".notice")
    assert "random tasks" not in tab.inner_text(".figures")
    bad = tmp_path / "bad.json"
    bad.write_text("{", encoding="utf-8")
    tab.set_input_files("input[type=file]", bad)
    tab.wait_for_function(
        "document.querySelector('.notice').textContent.includes('bad')"
    )
    assert not tab.locator(".figures").is_visible()
    assert not tab.locator(".score-your-agent svg").is_visible()
