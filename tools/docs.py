"""The site with Quarto (`make docs`): notebooks in _proc, pages in _docs.

As nbdev_docs does it; but pages come from tools/chapters.py and tools/reference.py,
each stands beside its Markdown, and README.md is left alone."""

import os
import re
import shutil
import subprocess
import sys

import nbformat
import yaml
from nbdev.config import get_config

from tools.assets import lighten
from tools.preview import (
    front_matter,
    lectures,
    process,
    quarto_config,
    read_processed,
    readable,
    sidebar,
)
from tools.run import ROOT

TABLE = re.compile(r"<table\b.*?</table>", flags=re.S)
SIGNATURE = re.compile(r'(<code class="signature">)((?:class )?[\w.]+)')
NUMBER = re.compile(r"^[\s\d.,+<>%±–−()*/$-]*$")


def column_widths(table):
    "Columns as wide as what they hold, where one of them holds sentences"
    table = re.sub(r"<colgroup>.*?</colgroup>", "", table, flags=re.S)
    if 'class="words"' not in table or re.search(r"(?:col|row)span", table):
        return table
    rows = re.findall(r"<tr.*?</tr>", table, flags=re.S)
    texts = [
        re.findall(r"<t[dh]\b[^>]*>(.*?)</t[dh]>", row, flags=re.S) for row in rows
    ]
    plain = [
        [re.sub(r"<[^>]*>", "", t).replace("&nbsp;", "_") for t in r] for r in texts
    ]
    if len({len(row) for row in plain}) != 1:
        return table
    columns = list(zip(*plain, strict=True))
    means = [sum(map(len, column)) / len(column) for column in columns]
    if max(means) < 30:
        return table
    short = [max(map(len, column)) <= 12 for column in columns]
    columns = [
        [text.replace(" ", "_") for text in column] if brief else column
        for column, brief in zip(columns, short, strict=True)
    ]
    words = [max(map(len, " ".join(column).split()), default=1) for column in columns]
    sizes = [max(min(m, 45), 1.2 * w, 6) for m, w in zip(means, words, strict=True)]
    cols = [f'<col style="width: {100 * n / sum(sizes):.0f}%">' for n in sizes]
    head, mark, rest = table.partition("<thead")
    return f"{head}<colgroup>{''.join(cols)}</colgroup>{mark}{rest}"


def row_labels(table):
    "Names of the labels of rows stand left, above them, and in a row less"
    head, mark, rest = table.partition("</thead>")
    first = re.search(r"<tr.*?</tr>", rest, flags=re.S)
    if not mark or not first:
        return table
    kinds = re.findall(r"<t[dh]([^>]*)>", first[0])
    count = next((n for n, k in enumerate(kinds) if 'role="th"' not in k), 0)
    cell = r"(<th)(?![^>]*colspan)([^>]*>)(.*?)(</th>)"
    rows = re.findall(r"<tr.*?</tr>", head, flags=re.S)
    texts = [re.findall(r"<th[^>]*>(.*?)</th>", row, flags=re.S) for row in rows]
    alone = len(rows) > 1 and not any(texts[-1][count:])  # only names of the labels
    numbers = alone and NUMBER.match("".join(texts[-2][count:]))
    if alone and not (numbers and any(texts[-2][:count])):
        names = iter(texts[-1][:count])

        def named(found):
            return found[1] + found[2] + next(names) + found[4]

        row = re.sub(cell, named, rows[-2], count=count)
        head = head.replace(rows[-1], "").replace(rows[-2], row)
        rows = [*rows[:-2], row]
    for row in rows if count else []:
        marked = re.sub(cell, r'\1 class="label"\2\3\4', row, count=count, flags=re.S)
        head = head.replace(row, marked)
    return head + mark + rest


def tidy_table(match):
    "A table in a box that scrolls; cells of words wrap, numbers with errors do not"

    def cell(found):
        attributes, text = found.groups()
        words = re.sub(r"<[^>]*>", "", text)
        plain = "" if words.strip() in ("NaN", "nan", "None", "&lt;NA&gt;") else text
        if "±" in words:
            plain = plain.replace(" ± ", "&nbsp;±&nbsp;")
        wide = len(words) > 24 and not NUMBER.match(words)
        mark = ' class="words"' if wide and "class=" not in attributes else ""
        return f"<td{attributes}{mark}>{plain}</td>"

    table = re.sub(r"<td([^>]*)>(.*?)</td>", cell, match[0], flags=re.S)
    table = column_widths(row_labels(table))
    tall = "dataframe" in table[:200] and table.count("<tr") > 17
    box = "table-scroll tall" if tall else "table-scroll"
    return f'<div class="{box}" tabindex="0">{table}</div>'


def tidy_pages(site):
    "What Quarto has no option for: tables in boxes, no scripts that no page needs"
    for path in site.rglob("*.html"):
        if "site_libs" in path.parts:
            continue
        text = path.read_text("utf-8")
        head, main, rest = text.partition("<main")
        rest = SIGNATURE.sub(r'\1<span class="repeated">\2</span>', rest)
        rest = TABLE.sub(tidy_table, rest)
        widgets = r'<script src="[^"]*(?:require|jquery)[^"]*"[^>]*></script>'
        head = re.sub(widgets, "", head)
        head = re.sub(
            r'<script type="application/javascript">define\(.*?</script>', "", head
        )
        path.write_text(head + main + rest, encoding="utf-8")


def chapter_text(path):
    "A processed notebook as Markdown, without its pictures"
    from nbconvert import MarkdownExporter

    nb = nbformat.reads(readable(read_processed(path)), 4)
    nb.metadata["language_info"] = {"name": "python"}
    text = MarkdownExporter().from_notebook_node(nb)[0]
    return re.sub(r"!\[[^]]*\]\(output_[^)]*\)\n*|<!-- WARNING.*-->\n*", "", text)


def page_text(proc, path):
    "A page as Markdown; what it is called, and what it says of itself"
    if path.endswith(".ipynb"):
        front, text = front_matter(read_processed(proc / path)), chapter_text(
            proc / path
        )
    else:
        text = (proc / path).read_text("utf-8")
        front = yaml.safe_load(text.split("---")[1])
    text = re.sub(r"(\]\([^):#]+)\.(?:ipynb|qmd)", r"\1.html.md", text)
    return text, front["title"], front.get("description", "")


def write_texts(proc, site):
    "Each page as Markdown beside it, and llms.txt, which lists them"
    cfg = get_config(path=ROOT)
    address = cfg["doc_host"] + cfg["doc_baseurl"]
    index, section = [f"# {cfg['title']}", "", f"> {cfg['description']}", ""], None
    listed = sidebar(quarto_config(proc))
    for part, path in listed + [("Slides", path) for path in lectures(proc)]:
        if part != section:
            section = part
            index += ["", f"## {part or 'Reference'}", ""]
        text, title, told = page_text(proc, path)
        page = os.path.splitext(path)[0] + ".html.md"
        (site / page).parent.mkdir(parents=True, exist_ok=True)
        (site / page).write_text(text, encoding="utf-8")
        index.append(f"- [{title}]({address}/{page}): {told}")
    (site / "llms.txt").write_text("\n".join(index) + "\n", encoding="utf-8")


def build():
    "Process the notebooks, let Quarto render them, and move the site to its place"
    if not shutil.which("quarto"):
        sys.exit("Quarto is missing: install it from quarto.org, or run `make preview`")
    site = get_config(path=ROOT).doc_path
    proc = process(ROOT)
    done = subprocess.run(["quarto", "render", "--no-cache"], cwd=proc)
    if done.returncode:
        sys.exit("Quarto stopped; what it says is above")
    shutil.rmtree(site, ignore_errors=True)
    shutil.move(proc / site.name, site)
    tidy_pages(site)
    lighten(site)
    write_texts(proc, site)
    return site


if __name__ == "__main__":
    print(f"the site is in {build().name}")
