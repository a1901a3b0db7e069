"""The site with Quarto (`make docs`): notebooks in _proc, pages in _docs.

As nbdev_docs does it; but pages come from tools/chapters.py and tools/reference.py,
and README.md is left alone."""

import re
import shutil
import subprocess
import sys

import yaml
from nbdev.config import get_config

from tools.assets import lighten, pages
from tools.in_page import run_in_page
from tools.process import process, quarto_config
from tools.run import ROOT
from tools.search import write_search

TABLE = re.compile(r"<table\b.*?</table>", flags=re.S)
ROW = re.compile(r"<tr.*?</tr>", flags=re.S)
CELL = re.compile(r"<t[dh]\b[^>]*>(.*?)</t[dh]>", flags=re.S)
HEAD = re.compile(r"(<th)(?![^>]*colspan)([^>]*>)(.*?)(</th>)", flags=re.S)
NUMBER = re.compile(r"^[\s\d.,+<>%±–−()*/$-]*$")
SKIP = re.compile(r'<a class="skip"[^>]*>[^<]*</a>')
UNUSED = re.compile(  # scripts of widgets that no page has
    r'<script src="[^"]*(?:require|jquery)[^"]*"[^>]*></script>'
    r'|<script type="application/javascript">define\(.*?</script>'
)


def row_labels(table):
    "Names of the labels of rows stand left, above them, and in a row less"
    head, mark, rest = table.partition("</thead>")
    first = ROW.search(rest)
    kinds = re.findall(r"<t[dh]([^>]*)>", first[0]) if mark and first else []
    count = next((n for n, k in enumerate(kinds) if 'role="th"' not in k), 0)
    if not count:
        return table
    rows = ROW.findall(head)
    texts = [CELL.findall(row) for row in rows]
    if len(rows) > 1 and not any(texts[-1][count:]):  # only names of the labels
        numbers = NUMBER.match("".join(texts[-2][count:]))
        if not (numbers and any(texts[-2][:count])):
            names = iter(texts[-1][:count])
            row = HEAD.sub(lambda m: m[1] + m[2] + next(names) + m[4], rows[-2], count)
            head = head.replace(rows[-1], "").replace(rows[-2], row)
            rows = [*rows[:-2], row]
    for row in rows:
        head = head.replace(row, HEAD.sub(r'\1 class="label"\2\3\4', row, count))
    return head + mark + rest


def tidy_table(match):
    "A table in a box; cells of words wrap, numbers with errors do not"

    def cell(found):
        attributes, text = found.groups()
        words = re.sub(r"<[^>]*>", "", text)
        if words.strip() in ("NaN", "nan", "None", "&lt;NA&gt;"):
            text = ""
        if "±" in words:
            text = text.replace(" ± ", "&nbsp;±&nbsp;")
        wide = len(words) > 24 and not NUMBER.match(words)
        mark = ' class="words"' if wide and "class=" not in attributes else ""
        return f"<td{attributes}{mark}>{text}</td>"

    table = re.sub(r"<colgroup>.*?</colgroup>", "", match[0], flags=re.S)
    table = row_labels(re.sub(r"<td([^>]*)>(.*?)</td>", cell, table, flags=re.S))
    nothing = r"<th\b([^>]*)>(?:\s|&nbsp;)*</th>"  # a head of no column
    table = re.sub(nothing, r"<td\1></td>", table)
    return f'<div class="table-scroll">{table}</div>'


def tidy_pages(site):
    "What Quarto has no option for: tables in boxes, no scripts that no page needs"
    for path in pages(site):
        head, main, rest = path.read_text("utf-8").partition("<main")
        if skip := SKIP.search(rest):  # before the menus that it skips
            rest = rest.replace(skip[0], "")
            head = re.sub(r"<body[^>]*>", lambda m: m[0] + skip[0], head)
        text = UNUSED.sub("", head) + main + TABLE.sub(tidy_table, rest)
        path.write_text(text, encoding="utf-8")


def render(proc):
    "Let Quarto render the pages; from 1.9 on it writes llms.txt and each as Markdown"
    done = subprocess.run(["quarto", "--version"], capture_output=True, text=True)
    if tuple(map(int, re.findall(r"\d+", done.stdout)[:2])) >= (1, 9):
        config = quarto_config(proc)
        config["website"]["llms-txt"] = True
        text = yaml.safe_dump(config, sort_keys=False, allow_unicode=True)
        (proc / "_quarto.yml").write_text(text, encoding="utf-8")
    if subprocess.run(["quarto", "render", "--no-cache"], cwd=proc).returncode:
        sys.exit("Quarto stopped; the reason is above")


def build():
    "Process the notebooks, let Quarto render them, and move the site to its place"
    if not shutil.which("quarto"):
        sys.exit("Quarto is missing: install it from quarto.org")
    site, proc = get_config(path=ROOT).doc_path, process(ROOT)
    render(proc)
    shutil.rmtree(site, ignore_errors=True)
    shutil.move(proc / site.name, site)
    tidy_pages(site)
    write_search(proc, site)
    lighten(site)
    run_in_page(site)
    return site


if __name__ == "__main__":
    print(f"the site is in {build().name}")
