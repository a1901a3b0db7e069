"""Chapters run in their page, in Chromium: which cells stop, which show other values.

python -m helpers.in_page [chapter ...]      (all; after `make docs`; prints a table)
"""

import contextlib
import functools
import http.server
import json
import re
import shutil
import sys
import threading
import time

import numpy as np

from tools.run import ROOT

NUMBER = re.compile(r"(?<![\w.])[-−]?(?:\d[\d,]*\.?\d*|\.\d+)(?:e[-+]?\d+)?(?![\w.])")
OPEN = """async ([at, here]) => {
  const { Page } = await import(`${at}run/page.js`);
  window.page = new Page(here, `${at}run/`);
  await page.open();
}"""
IDLE = "() => /^$|stopped|could not/.test(page.says.textContent)"


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@contextlib.contextmanager
def served(folder):
    "The address of a site"
    handler = functools.partial(Quiet, directory=folder)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()


def opened(tab, address, here):
    "A chapter whose cells have their buttons"
    tab.goto(f"{address}{here}.html")
    tab.evaluate(OPEN, [address, here])


def settle(tab, seconds=600):
    "Wait until nothing runs"
    tab.wait_for_function(IDLE, timeout=1000 * seconds)


def run_all(tab):
    "Run every cell in order; id, error and shown texts of each that ran"
    count = tab.evaluate("page.cells.length")
    for place in range(count):
        if tab.evaluate(f"!page.cells[{place}].why"):
            tab.evaluate(f"page.all({place})")
            settle(tab)
    ran = "page.cells.filter((c) => !c.why).map((c) => [c.id, c.error, c.shown])"
    return tab.evaluate(ran)


def numbers(text):
    "The numbers in a text, without its tags and styles"
    text = re.sub(r"<style.*?</style>|<[^>]*>", " ", text, flags=re.S)
    return [float(n.replace(",", "").replace("−", "-")) for n in NUMBER.findall(text)]


def stored(here):
    "What the last output of each cell of a notebook says"
    nb, found = json.loads((ROOT / f"nbs/{here}.ipynb").read_text("utf-8")), {}
    for cell in nb["cells"]:
        for output in cell.get("outputs", ()):
            data = output.get("data", {})
            text = data.get("text/html") or data.get("text/plain")
            if text and not any(kind.startswith("image") for kind in data):
                found[cell["id"]] = "".join(text)
    return found


def other_values(here, rows):
    "Cells whose numbers are not those stored, to two percent or a hundredth"
    known, odd = stored(here), []
    for name, error, shown in rows:
        texts = [text for kind, text in shown or () if kind in ("html", "text")]
        if error or name not in known or not texts:
            continue
        mine, theirs = numbers(texts[-1]), numbers(known[name])
        same = len(mine) == len(theirs)
        if not same or not np.allclose(mine, theirs, rtol=0.02, atol=0.011):
            odd.append(name)
    return odd


def main(wanted):
    from playwright.sync_api import sync_playwright

    files = sorted((ROOT / "_docs/run/cells").glob("*.json"))
    with served(ROOT / "_docs") as address, sync_playwright() as player:
        path = shutil.which("chromium")
        browser = player.chromium.launch(executable_path=path, args=["--no-sandbox"])
        context = browser.new_context()
        for file in files:
            here = json.loads(file.read_text("utf-8"))["here"]
            if wanted and not here.startswith(tuple(wanted)):
                continue
            tab, start = context.new_page(), time.perf_counter()
            opened(tab, address, here)
            rows = run_all(tab)
            seconds = time.perf_counter() - start
            stopped = [f"{name}: {error}"[:90] for name, error, _ in rows if error]
            why = tab.evaluate("page.cells.filter((c) => c.why).length")
            odd = other_values(here, rows)
            print(f"{here},{len(rows)},{why},{seconds:.0f},{stopped},{odd}", flush=True)
            tab.close()


if __name__ == "__main__":
    main(sys.argv[1:])
