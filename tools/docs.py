"""The site with Quarto (`make docs`): notebooks in _proc, pages in _docs.

As nbdev_docs does it; but pages get a link to Colab, and README.md is left alone."""

import shutil
import subprocess
import sys

from nbdev.config import get_config

from tools.preview import process
from tools.run import ROOT


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
    return site


if __name__ == "__main__":
    print(f"the site is in {build().name}")
