"""Run notebooks and store their outputs; leave out the cells that carry a flag.

python -m tools.run [--flags "slow data"] [notebook ...]     (all notebooks by default)
"""

import argparse
import multiprocessing
import os
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# imported once, in the process from which that of each notebook is forked
WARM = """execnb.shell nbdev.showdoc nbdev.process nbdev.clean fastcore.all numpy pandas
pyarrow.parquet scipy.stats scipy.optimize scipy.spatial sklearn.cluster sklearn.metrics
sklearn.linear_model matplotlib.pyplot seaborn joblib pooch tqdm.auto httpx kmedoids
typer torch transformers"""
HEAVIEST = 120_000  # characters of a figure as SVG; with more it is stored as PNG
FORMATS = """
import matplotlib
matplotlib.rcParams["svg.hashsalt"] = "benchnb"  # the same names in every run
matplotlib.rcParams["svg.fonttype"] = "none"  # text stays text: in the page's letters
set_matplotlib_formats("retina", "svg", metadata={"Date": None})
"""


def notebooks(folder=ROOT / "nbs"):
    "Every chapter, in order; names with a leading _ or . are none"
    paths = sorted(folder.rglob("*.ipynb"))
    parts = [path.relative_to(folder).parts for path in paths]
    hidden = [any(part[0] in "_." for part in names) for names in parts]
    return [path for path, hide in zip(paths, hidden, strict=True) if not hide]


def one_format(cell):
    "Of each figure its SVG, or its PNG (of twice the dots) where that is much lighter"
    for output in cell.get("outputs", []):
        data = output.get("data", {})
        if {"image/png", "image/svg+xml"} <= data.keys():
            heavy = len("".join(data["image/svg+xml"])) > HEAVIEST
            kind = "image/svg+xml" if heavy else "image/png"
            del data[kind]
            output.get("metadata", {}).pop(kind, None)


def stay_offline():
    "This process sees the data that ship, as a reader's does: no others, no network"
    import socket

    import pooch

    os.environ.pop("BENCHNB_DATA", None)
    pooch.os_cache = lambda project: Path(os.devnull, project)  # of earlier downloads
    connect = socket.socket.connect

    def connect_here(self, address):
        local = self.family == socket.AF_UNIX or address[0] in ("127.0.0.1", "::1")
        if not local and address[0] != "localhost":
            raise OSError(f"a cell without the flag 'data' asked for {address[0]}")
        return connect(self, address)

    socket.socket.connect = connect_here


def run(path, flags=(), store=False, data=None):
    "Run a notebook in its own folder up to its first error; how many cells were run"
    from execnb.nbio import read_nb, write_nb
    from execnb.shell import CaptureShell
    from fastcore.xtras import working_directory
    from joblib.externals.loky import get_reusable_executor
    from nbdev.clean import clean_nb
    from nbdev.config import get_config
    from nbdev.process import extract_directives

    # lines of progress come on a slow machine only: no part of a page
    os.environ |= {"IN_TEST": "1", "BENCHNB_PROGRESS": "0"}
    if "data" not in flags:
        stay_offline()
    elif not data:
        raise RuntimeError("set BENCHNB_DATA to the folder that data cells read")
    else:  # the process that was forked knows an older environment
        os.environ["BENCHNB_DATA"] = data
    skip, ran = set(get_config(path=ROOT).tst_flags.split()) - set(flags), []

    def leave(cell):
        if cell.cell_type != "code" or "nbdev_export" + "(" in cell.source:
            return True
        directives = extract_directives(cell, remove=False)
        never = directives.get("eval:", [""])[0].lower() == "false"
        if never or skip & directives.keys():
            return True
        ran.append(cell.id)
        if store:  # execnb keeps the old ones where a cell shows nothing now
            cell.outputs = []

    nb = read_nb(path)
    shell = CaptureShell(path, mpl_format="svg")
    if store:
        shell._run(FORMATS)
    with working_directory(path.parent):
        try:
            shell.run_all(nb, exc_stop=True, preproc=leave)
        except Exception:
            raise RuntimeError(shell.prettytb(fname=path)) from None
        finally:  # joblib's workers would keep the process for five minutes
            get_reusable_executor().shutdown(kill_workers=True)
    if store:
        for cell in nb.cells:
            one_format(cell)
        clean_nb(nb)
        write_nb(nb, path)
    return len(ran)


def apart(function, *args):
    "Call a function in a process of its own, forked from one that has imported WARM"
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(WARM.split())
    with ProcessPoolExecutor(1, mp_context=context) as pool:
        return pool.submit(function, *args).result()


def run_apart(path, flags=(), store=False):
    "Run a notebook in a process of its own"
    return apart(run, path, flags, store, os.environ.get("BENCHNB_DATA"))


if __name__ == "__main__":
    from tools.run import run_apart  # a process that is forked finds it there

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--flags", default="", help='such as "slow data"')
    parser.add_argument("notebooks", nargs="*", type=Path)
    args = parser.parse_args()
    for path in args.notebooks or notebooks():
        try:
            run_apart(path.resolve(), args.flags.split(), store=True)
        except RuntimeError as error:
            sys.exit(str(error))
