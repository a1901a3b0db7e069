"""From the notebooks to the pages in _proc, which Quarto renders and the tests read"""

import json
import os
import re
import subprocess
import sys
from functools import cache

import nbformat
import yaml
from nbdev.config import get_config

from tools.chapters import finish
from tools.demonstration import demonstration, report_data
from tools.reference import has_reference, write_reference
from tools.run import ROOT, notebooks

ENV = {key: value for key, value in os.environ.items() if key != "IN_TEST"}
SLIDES = {  # how a lecture is shown; its formulas need nothing from elsewhere
    "theme": ["default", "slides.scss"],
    "width": 1280,
    "height": 720,
    "margin": 0.04,
    "slide-number": True,
    "html-math-method": "mathml",
    "code-line-numbers": False,
}
PROCESS = """
from nbdev.quarto import refresh_quarto_yml
from nbdev.serve import proc_nbs

refresh_quarto_yml()
proc_nbs(force=True, n_workers=2)
"""


def addresses(path=""):
    "Where the site, a file of the repository and a notebook in Colab are found"
    cfg = get_config(path=ROOT)
    place = f"{cfg['user']}/{cfg['repo']}/blob/{cfg['branch']}"
    notebook = f"{place}/{cfg.nbs_path.name}/{path}"
    return (
        f"{cfg['doc_host']}{cfg['doc_baseurl']}/",
        f"{cfg['git_url']}/blob/{cfg['branch']}/",
        f"https://colab.research.google.com/github/{notebook}",
    )


def read_processed(path):
    "A processed notebook, without the mark that nbdev leaves in some cells"
    nb = nbformat.v4.reads(path.read_text("utf-8"))
    for cell in nb.cells:
        cell.pop("has_sd", None)
    return nb


def front_matter(nb):
    "What nbdev puts into the first cell of a processed notebook: title and the like"
    return yaml.safe_load(nb.cells[0].source.strip().strip("-"))


def is_lecture(front):
    "Whether the front matter of a notebook makes slides of it"
    return "revealjs" in front.get("format", ())


def quarto_config(folder=ROOT):
    "What _quarto.yml says"
    return yaml.safe_load((folder / "_quarto.yml").read_text("utf-8"))


def sidebar(config):
    "Path of each page of this site that _quarto.yml lists, in its order"

    def pages(contents):
        for entry in contents:
            if isinstance(entry, str):
                yield entry
            elif "contents" in entry:
                yield from pages(entry["contents"])
            elif not entry["href"].startswith("https:"):
                yield entry["href"]

    return [*pages(config["website"]["sidebar"])]


LETTERS = re.compile(r"font-family: [^;\"]*sans-serif")
PAGE_LETTERS = (
    "font-family: -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', "
    "'Liberation Sans', Arial, sans-serif"
)


def letter_figures(nb):
    "Text of figures in the letters of the page, as site.scss has them"
    for cell in nb.cells:
        for output in cell.get("outputs", []):
            data = output.get("data", {})
            if "image/svg+xml" in data:
                svg = "".join(data["image/svg+xml"])
                data["image/svg+xml"] = LETTERS.sub(PAGE_LETTERS, svg)


@cache
def book():
    "Number and name of each chapter of the book, as the sidebar has them"
    sides = quarto_config()["website"]["sidebar"]
    parts = next(side for side in sides if side.get("id") == "book")["contents"]
    rows = [row for part in parts for row in part.get("contents", ())]
    return {row["href"]: row["text"].partition(". ")[::2] for row in rows}


def effort(nb):
    "Minutes that a chapter takes to read, and its exercises"
    words = sum(len(c.source.split()) for c in nb.cells[1:])
    blanks = sum("...  # your" in c.source for c in nb.cells)
    return 5 * max(1, round(words / 130 / 5)), blanks


def write_book(proc):
    "The contents of the book: what each chapter tells, minutes and exercises"
    lines = ["---", "title: The book", "toc: false", "---", ""]
    lines += [
        "*Run* works in your browser; on a blank of an exercise it opens an editor."
    ]
    lines += ["[Words and symbols](words.qmd) explains what you meet on the way.", ""]
    lines += ["| chapter | what it tells | minutes | exercises |", "|:-|:--|-:|-:|"]
    for path, (number, name) in book().items():
        nb = read_processed(proc / path)
        told = front_matter(nb)["description"].replace("|", "\\|")
        minutes, blanks = effort(nb)
        link = f"{number}. [{name}]({path})"
        lines.append(f"| {link} | {told} | {minutes} | {blanks or ''} |")
    (proc / "book.qmd").write_text("\n".join(lines) + "\n", encoding="utf-8")


def finish_page(path, proc):
    "Fold, link and clean a processed notebook; its margin opens the source in Colab"
    nb, here = read_processed(path), path.relative_to(proc).as_posix()
    site, _, colab = addresses(here)
    finish(nb, here, site)
    letter_figures(nb)
    repository = get_config(path=ROOT)["repository"]
    front = front_matter(nb)
    links = []
    if has_reference(here):
        place = f"{'../' * here.count('/')}reference/{here.replace('.ipynb', '.html')}"
        names = {"text": "Names of this page", "icon": "list", "href": place}
        links.append(names)
    if repository:
        link = {"text": "Open in Colab", "icon": "play-circle", "href": colab}
        links.append(link)
    if links:
        front["code-links"] = links
    if here in book():
        minutes, blanks = effort(nb)
        told = f"Chapter {book()[here][0]} · {minutes} minutes"
        told += f" · {blanks} exercise{'s' * (blanks > 1)}" if blanks else ""
        front["subtitle"] = told
    if is_lecture(front):
        front |= {"format": {"revealjs": SLIDES}, "execute": {"echo": False}}
        front["subtitle"] = front["description"]
        nb.cells = [c for c in nb.cells if not c.source.startswith("<!--")]
    nb.cells[0].source = f"---\n{yaml.safe_dump(front, sort_keys=False)}---"
    path.write_text(nbformat.writes(nb), encoding="utf-8")


ABOUT = {
    "Contributing": "CONTRIBUTING.md",
    "Changelog": "CHANGELOG.md",
    "How to cite": "CITATION.cff",
    "Licence": "LICENSE",
}


def add_addresses(website):
    "Links to the repository and to the site's llms.txt, once these have an address"
    cfg = get_config(path=ROOT)
    if repository := cfg["repository"]:
        website["repo-subdir"] = "nbs"  # "edit this page" leads to the notebook
        website["repo-actions"] = ["edit", "source", "issue"]
        icon = {"icon": "github", "href": repository, "aria-label": "The repository"}
        website["navbar"]["right"] = [icon]
        files = f"{repository}/blob/{cfg['branch']}/"
        rows = [{"text": text, "href": files + file} for text, file in ABOUT.items()]
        library = next(side for side in website["sidebar"] if side["id"] == "library")
        library["contents"].append({"section": "About", "contents": rows})
    if site := cfg["site"]:
        website["page-footer"]["right"] = f"[llms.txt]({site.rstrip('/')}/llms.txt)"


def drop_addresses(website):
    "nbdev writes both addresses, also where settings.ini says that there is none"
    cfg = get_config(path=ROOT)
    if not cfg["repository"]:
        del website["repo-url"], website["repo-branch"]
    if not cfg["site"]:
        del website["site-url"]


def write_yaml(path, content):
    "Write a YAML file with its keys in order"
    text = yaml.safe_dump(content, sort_keys=False, allow_unicode=True)
    path.write_text(text, encoding="utf-8")


def add_reference(proc):
    "Write the reference, and its sidebar into the _quarto.yml beside the pages"
    titles = {
        path.relative_to(proc).as_posix(): front_matter(read_processed(path))["title"]
        for path in notebooks(proc)
        if "slides" not in path.parts and path.stem != "index"
    }
    pages = write_reference(proc, titles)
    parts = {}
    for page in pages[1:]:
        *_, part, name = page.removesuffix(".qmd").split("/")
        parts.setdefault(part, []).append({"text": name, "href": page})
    contents = [{"section": part, "contents": rows} for part, rows in parts.items()]
    library = {"text": "Library", "href": "data/scores.ipynb"}
    contents = [library, {"text": "All names", "href": pages[0]}, *contents]
    side = {"id": "reference", "style": "docked", "collapse-level": 1}
    config = quarto_config(proc)
    config["website"]["sidebar"].append(side | {"contents": contents})
    add_addresses(config["website"])
    write_yaml(proc / "_quarto.yml", config)
    from_nbdev = yaml.safe_load((proc / "nbdev.yml").read_text("utf-8"))
    drop_addresses(from_nbdev["website"])
    write_yaml(proc / "nbdev.yml", from_nbdev)


def explorer_data():
    "The stored results behind the explorer: columns, rows, names of the data sets"
    import pandas as pd

    field, agents, plan = (
        pd.read_csv(ROOT / f"nbs/results/{name}.csv")
        for name in ("field", "agents_methods", "planning")
    )
    sets = pd.read_csv(ROOT / "benchnb/resources/data_sets.csv")
    plan = plan[plan["curve"] == "items"]
    keys = ["data", "split", "method", "budget"]
    widths = ["half_width", "half_width_se"]
    agents = agents.merge(plan[[*keys, *widths]], "left", keys)
    both = pd.concat([field, agents])[["data", "split", "budget"]]
    known = plan[both.columns].agg(tuple, axis=1).isin(both.agg(tuple, axis=1))
    plan = plan[~known]
    measures = ["mae", "relative", "kendall", "coverage", "half_width"]
    columns = ["data", "split", "method", "budget", "trials"]
    columns += [c for name in measures for c in (name, f"{name}_se")]
    rows = pd.concat([agents, field, plan]).reindex(columns=columns).round(5)
    table = json.loads(rows.to_json(orient="split", index=False))
    names = {n: f"{n} ({what})" for n, what in sets.set_index("name")["what"].items()}
    return {"columns": columns, "rows": table["data"], "names": names}


def write_data(proc):
    "What the pages with scripts show, as scripts: they open from disk, too"
    scripts = {
        "explorer_data.js": ("EXPLORER", explorer_data()),
        "score_your_agent_data.js": ("DEMONSTRATION", demonstration()),
        "score_your_agent_report.js": ("REPORTS", report_data()),
    }
    for file, (name, found) in scripts.items():
        text = json.dumps(found, separators=(",", ":"))
        (proc / file).write_text(f"const {name} = {text};\n", encoding="utf-8")


def process(folder):
    "Let nbdev process the notebooks of a checkout into _proc, and make pages of them"
    command = [sys.executable, "-W", "error:Failed to create YAML", "-c", PROCESS]
    done = subprocess.run(command, cwd=folder, env=ENV, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"docs processing stopped:\n{done.stderr[-2500:]}")
    for path in notebooks(folder / "_proc"):
        finish_page(path, folder / "_proc")
    write_book(folder / "_proc")
    add_reference(folder / "_proc")
    write_data(folder / "_proc")
    return folder / "_proc"
