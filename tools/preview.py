"""The site without Quarto (`make preview`): notebooks in _proc, pages in _html.

Quarto builds the real site. This shows the same cells in the same order, so that text,
formulas, tables, pictures and links can be looked at on any machine."""

import copy
import json
import os
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from html import escape

import nbformat
import yaml
from nbdev.config import get_config

from tools.run import ROOT, notebooks

ENV = {key: value for key, value in os.environ.items() if key != "IN_TEST"}
READ = "ipynb-gfm_auto_identifiers+citations+footnotes+header_attributes"
READ += "+link_attributes+fenced_divs+bracketed_spans+native_divs+native_spans"
SLIDES = {  # how a lecture is shown; its formulas need nothing from elsewhere
    "theme": ["default", "slides.scss"],
    "width": 1280,
    "height": 720,
    "margin": 0.04,
    "slide-number": True,
    "html-math-method": "mathml",
    "code-line-numbers": False,
}
# a page is named like its file without the number before it
LINK = re.compile(r'(href="(?:[^":#/]*/)*)[\d_]*([^":#/]*)\.(?:ipynb|qmd)(?=["#])')
PROCESS = """
from nbdev.quarto import refresh_quarto_yml
from nbdev.serve import proc_nbs

refresh_quarto_yml()
proc_nbs(force=True, n_workers=2)
"""


def colab_address(path):
    "Where Colab opens a notebook, given its path under nbs/"
    cfg = get_config(path=ROOT)
    place = (
        f"{cfg['user']}/{cfg['repo']}/blob/{cfg['branch']}/{cfg.nbs_path.name}/{path}"
    )
    return f"https://colab.research.google.com/github/{place}"


def finish_page(path, proc):
    "Fold, link and clean a processed notebook; its margin opens the source in Colab"
    from tools.chapters import finish

    nb, cfg = read_processed(path), get_config(path=ROOT)
    here = path.relative_to(proc).as_posix()
    site = cfg["doc_host"] + cfg["doc_baseurl"] + "/"
    finish(nb, here, site, f"{cfg['git_url']}/blob/{cfg['branch']}")
    front = front_matter(nb)
    page = os.path.basename(front["output-file"])
    colab = {
        "text": "Open in Colab",
        "icon": "play-circle",
        "href": colab_address(here),
    }
    text = {"text": "This page as Markdown", "icon": "markdown", "href": f"{page}.md"}
    front |= {"code-links": [colab], "other-links": [text]}
    if is_lecture(front):
        front |= {"format": {"revealjs": SLIDES}, "execute": {"echo": False}}
        front |= {"subtitle": front["description"]}
        nb.cells = [c for c in nb.cells if not c.source.startswith("<!--")]
    nb.cells[0].source = f"---\n{yaml.safe_dump(front, sort_keys=False)}---"
    path.write_text(nbformat.writes(nb), encoding="utf-8")


def add_reference(proc):
    "Write the reference, and its sidebar into the _quarto.yml beside the pages"
    from tools.reference import write_reference

    cfg, config = get_config(path=ROOT), quarto_config(proc)
    fronts = {p: front_matter(read_processed(p)) for p in notebooks(proc)}
    titles = {p.relative_to(proc).as_posix(): f["title"] for p, f in fronts.items()}
    pages = write_reference(proc, titles, f"{cfg['git_url']}/blob/{cfg['branch']}")
    parts = {}
    for page in pages[1:]:
        _, part, name = page.removesuffix(".qmd").split("/", 2)
        parts.setdefault(part, []).append({"text": name, "href": page})
    contents = [{"section": part, "contents": rows} for part, rows in parts.items()]
    contents.insert(0, {"text": "All names", "href": pages[0]})
    side = {"id": "reference", "style": "docked", "collapse-level": 1}
    config["website"]["sidebar"].append(side | {"contents": contents})
    text = yaml.safe_dump(config, sort_keys=False, allow_unicode=True)
    (proc / "_quarto.yml").write_text(text, encoding="utf-8")


def write_explorer(proc):
    "The stored results behind the explorer, as one JSON file"
    import pandas as pd

    stored = ROOT / "benchnb/resources"
    field, agents, plan, sets = (
        pd.read_csv(stored / f"{name}.csv")
        for name in ("field", "agents_methods", "planning", "data_sets")
    )
    known = field[["data", "split", "budget"]].agg(tuple, axis=1)
    plan = plan[plan["curve"] == "items"]
    plan = plan[~plan[["data", "split", "budget"]].agg(tuple, axis=1).isin(known)]
    measures = ["mae", "relative", "kendall", "coverage", "width"]
    columns = ["data", "split", "method", "budget", "trials"]
    columns += [c for name in measures for c in (name, f"{name}_se")]
    rows = pd.concat([agents, field, plan]).reindex(columns=columns).round(5)
    table = json.loads(rows.to_json(orient="split", index=False))
    told = sets.set_index("name")["what"]
    names = {name: f"{name} ({what})" for name, what in told.items()}
    found = {"columns": columns, "rows": table["data"], "names": names}
    (proc / "explorer.json").write_text(json.dumps(found), encoding="utf-8")


def process(folder):
    "Let nbdev process the notebooks of a checkout into _proc, and make pages of them"
    warnings = ["ignore:Found cells containing", "error:Failed to create YAML"]
    flags = [word for warning in warnings for word in ("-W", warning)]
    command = [sys.executable, *flags, "-c", PROCESS]
    done = subprocess.run(command, cwd=folder, env=ENV, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"docs processing stopped:\n{done.stderr[-2500:]}")
    for path in notebooks(folder / "_proc"):
        finish_page(path, folder / "_proc")
    add_reference(folder / "_proc")
    write_explorer(folder / "_proc")
    return folder / "_proc"


def quarto_config(folder=ROOT):
    "What _quarto.yml says"
    return yaml.safe_load((folder / "_quarto.yml").read_text("utf-8"))


def sidebar(config):
    "Section and path of each notebook that _quarto.yml lists, in its order"

    def pages(contents, section=""):
        for entry in contents:
            if isinstance(entry, str):
                yield section, entry
            elif "contents" in entry:
                yield from pages(entry["contents"], entry["section"])
            elif not entry["href"].startswith("https:"):
                yield section, entry["href"]

    bars = config["website"]["sidebar"]
    bars = bars if isinstance(bars, list) else [bars]
    return [row for bar in bars for row in pages(bar["contents"])]


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


def lectures(proc):
    "The processed notebooks that are slides: their unit links them, no sidebar does"
    fronts = {path: front_matter(read_processed(path)) for path in notebooks(proc)}
    found = [path for path, front in fronts.items() if is_lecture(front)]
    return [path.relative_to(proc).as_posix() for path in found]


def page_names(proc):
    "Where each processed notebook is rendered: stats/irt.ipynb -> stats/irt.html"
    names = {}
    for path in notebooks(proc):
        front = front_matter(read_processed(path))
        page = path.relative_to(proc).with_name(front["output-file"])
        names[path.relative_to(proc).as_posix()] = page.as_posix()
    return names


def pandoc(text, *options):
    "What pandoc makes of a text, and its warnings"
    try:
        import pypandoc
    except ImportError as error:
        raise ImportError('pandoc is missing: pip install -e ".[dev]"') from error
    command = [pypandoc.get_pandoc_path(), *options]
    done = subprocess.run(command, input=text.encode(), capture_output=True)
    said = done.stderr.decode().strip()
    if done.returncode:
        raise ValueError(said)
    return done.stdout.decode(), re.findall(r"\[WARNING\] *(.*)", said)


def as_text(nb, kinds):
    "A notebook in which what cells printed as Markdown, say, is text of the page"
    cells = []
    for cell in nb.cells:
        cells.append(cell)
        if cell.cell_type != "code":
            continue
        cell.execution_count = 0  # pandoc wants no null
        outputs = cell.pop("outputs", [])
        given = [next((k for k in kinds if k in o.get("data", {})), 0) for o in outputs]
        pairs = list(zip(outputs, given, strict=True))
        cell.outputs = [output for output, kind in pairs if not kind]
        for output in cell.outputs:
            if "execution_count" in output:
                output.execution_count = 0
        texts = [output["data"][kind] for output, kind in pairs if kind]
        cells += [nbformat.v4.new_markdown_cell(text) for text in texts]
    nb.cells = cells
    return nb


def readable(nb):
    "The notebook as a page: title on top, directives and echo-less code left out"
    front = front_matter(nb)
    nb = as_text(copy.deepcopy(nb), ["text/markdown"])
    head = f"# {front['title']}\n\n> {front.get('description', '')}"
    for link in front.get("code-links", []):
        head += f"\n\n[{link['text']}]({link['href']})"
    cells = [nbformat.v4.new_markdown_cell(head)]
    for cell in nb.cells[1:]:
        if cell.cell_type == "code":
            silent = "#| echo: false" in cell.source
            code = re.sub(r"^#\|.*\n?", "", cell.source, flags=re.M)
            cell.source = "" if silent else code
        if cell.source or cell.get("outputs"):
            cells.append(cell)
    nb.cells = cells
    return nbformat.writes(nb)


STYLE = """
html { font-family: sans-serif; font-size: 16px; line-height: 1.5; color: #222; }
body { max-width: 860px; margin: 0 auto; padding: 1em; hyphens: manual; }
nav { font-size: 0.85em; }
pre { background: #f4f4f4; padding: 0.5em; font-size: 0.85em; }
table { border-collapse: collapse; margin: 1em 0; display: block; overflow-x: auto; }
img, pre, table { max-width: 100%; overflow-x: auto; }
table.dataframe { border: 0; }
td, th { padding: 0.2em 0.6em; border: 0; border-bottom: 1px solid #ddd; }
blockquote { margin: 1em 0; padding-left: 1em; border-left: 4px solid #ddd; }
:root { color-scheme: light dark; }
@media (prefers-color-scheme: dark) {
  html { background: #222; color: #eee; }
  pre { background: #333; }
  img { background: white; }
}
"""


def menu(titles, names, here):
    "Links to all pages, as seen from the page `here`"
    start = os.path.dirname(here)
    rows = {}
    for section, path in sidebar(quarto_config()):
        if path in names:
            to = os.path.relpath(names[path], start or ".")
            link = f'<a href="{to}">{escape(titles[path].partition(": ")[0])}</a>'
            rows.setdefault(section, []).append(link)
    lines = [f"<b>{escape(s)}</b> {' · '.join(links)}" for s, links in rows.items()]
    shown = "<br>".join(lines)
    return f"<nav><details><summary>All chapters</summary>{shown}</details></nav>"


def page_html(proc, path, title):
    "One processed notebook or text as a page, pictures and formulas in it"
    folder, options, form = (proc / path).parent, [], READ
    if path.endswith(".qmd"):
        text, form = (proc / path).read_text("utf-8"), "markdown"
    else:
        text, options = readable(read_processed(proc / path)), ["--embed-resources"]
    options += [f"--resource-path={folder}", f"--metadata=pagetitle:{title}"]
    options += ["--standalone", "--mathml", "--wrap=none", f"-f{form}", "-thtml"]
    return pandoc(text, *options)[0]


def text_pages(proc):
    "Where the pages without code are rendered, and their titles"
    paths = [path.relative_to(proc).as_posix() for path in sorted(proc.rglob("*.qmd"))]
    found = {p: re.search(r"^title: (.*)", (proc / p).read_text(), re.M) for p in paths}
    return {p: p.replace(".qmd", ".html") for p in paths}, {
        path: title[1] for path, title in found.items()
    }


def render(proc, out):
    "Write a page for each processed notebook and text"
    cfg = get_config(path=ROOT)
    site = cfg["doc_host"] + cfg["doc_baseurl"] + "/"
    chapters, (texts, titles) = page_names(proc), text_pages(proc)
    fronts = {path: front_matter(read_processed(proc / path)) for path in chapters}
    titles |= {path: front["title"] for path, front in fronts.items()}
    names = chapters | texts
    with ThreadPoolExecutor(2) as pool:
        made = pool.map(lambda path: page_html(proc, path, titles[path]), names)
    for page, html in zip(names.values(), made, strict=True):
        up = "../" * page.count("/")
        html = html.replace(f'href="{site}', f'href="{up}').replace('="/', f'="{up}')
        html = LINK.sub(r"\g<1>\g<2>.html", html)
        html = html.replace("</head>", f"<style>{STYLE}</style></head>", 1)
        body = re.search(r"<body[^>]*>", html).end()
        html = html[:body] + menu(titles, names, page) + html[body:]
        (out / page).parent.mkdir(parents=True, exist_ok=True)
        (out / page).write_text(html, encoding="utf-8")
    for file in quarto_config(proc)["project"]["resources"]:
        shutil.copy(proc / file, out / file)
    return names


if __name__ == "__main__":
    pages = render(process(ROOT), ROOT / "_html")
    print(f"{len(pages)} pages in _html")
