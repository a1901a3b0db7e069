"""Cells of a notebook, run in a page: what they print, show, draw and end with"""

import ast
import importlib
import io
import json
import linecache
import logging
import os
import sys
import traceback
import types
import warnings
from pathlib import Path

import numpy as np

NAMES = {"__name__": "__main__"}
shown = []  # of the running cell: (kind, text)


class Markup:
    "What IPython.display has: text of some kind"

    kind = "html"

    def __init__(self, data=""):
        self.data = data


class Markdown(Markup):
    kind = "markdown"


def render(value):
    "Kind and text of a value, as a notebook shows it"
    if isinstance(value, Markup):
        return value.kind, value.data
    for kind in ("html", "markdown", "svg"):
        made = getattr(value, f"_repr_{kind}_", None)
        if made and (text := made()) is not None:
            return kind, text
    return "text", repr(value)


def display(*values):
    "Show values below the cell"
    shown.extend(render(value) for value in values)


class Table:
    "What Scores.from_arrow asks of an Arrow table, from tools/in_page.py's arrays"

    def __init__(self, facts, scores, metadata):
        self.facts, self.scores = facts, scores
        self.column_names = [*facts, *scores]
        meta = {key.encode(): text.encode() for key, text in metadata.items()}
        self.schema = types.SimpleNamespace(metadata=meta)

    def __len__(self):
        return len(next(iter(self.facts.values())))

    def __getitem__(self, name):
        return types.SimpleNamespace(to_numpy=lambda: self.scores[name])

    def select(self, names):
        return Table({n: self.facts[n] for n in names}, {}, {})

    def to_pandas(self):
        import pandas as pd

        return pd.DataFrame(self.facts)


def read_parquet(path, columns=None):
    "A table that comes with the package"
    try:
        with np.load(Path(f"{path}.npz"), allow_pickle=False) as arrays:
            scores, about = arrays["scores"], bytes(arrays["about"])
    except FileNotFoundError:
        raise ValueError(f"{path} cannot be read in a page: use a CSV file") from None
    about = json.loads(about)
    columns = dict(zip(about["columns"], scores, strict=True))
    return Table(about["facts"], columns, about["metadata"])


class Struct:
    "What readers of logs are made of; a page reads none"

    def __init_subclass__(cls, **_):
        pass


class SemLock:
    "joblib asks for one, and does without"

    SEM_VALUE_MAX = 1

    def __init__(self, *_, **__):
        raise OSError("a page has one process")


def bincount(x, weights=None, minlength=0, count=np.bincount):
    "numpy.bincount, which refuses integers of 64 bits where addresses have 32"
    return count(np.asarray(x).astype(np.intp), weights, minlength)


def enter_folder():
    "Work beside the stored results, as a notebook does: it reads ../results"
    sys.path.insert(0, os.getcwd())  # what was unpacked is still found
    Path("page").mkdir(exist_ok=True)
    os.chdir("page")


def prepare():
    "A folder to work in, and modules that a page does without"
    enter_folder()
    os.environ |= {"MPLBACKEND": "agg", "BENCHNB_PROGRESS": "0"}
    logging.getLogger("matplotlib.font_manager").setLevel(logging.ERROR)
    warnings.filterwarnings("ignore", message=".*serial mode")  # of joblib
    np.bincount = bincount
    module = types.ModuleType("IPython.display")
    module.HTML, module.Markdown, module.display = Markup, Markdown, display
    module.SVG = type("SVG", (Markup,), {"kind": "svg"})
    parent = types.ModuleType("IPython")
    parent.display, parent.get_ipython = module, lambda: None
    processes = types.ModuleType("_multiprocessing")  # there is one, but fastcore asks
    processes.SemLock = SemLock
    sys.modules |= {"IPython": parent, "IPython.display": module}
    sys.modules["_multiprocessing"] = processes
    sys.modules["msgspec"] = types.ModuleType("msgspec")
    sys.modules["msgspec"].Struct = Struct
    importlib.import_module("benchnb.data.files")
    for module in [*sys.modules.values()]:
        if module.__name__.startswith("benchnb") and hasattr(module, "read_parquet"):
            module.read_parquet = read_parquet


def figures():
    "Draw what pyplot has open, and close it"
    pyplot = sys.modules.get("matplotlib.pyplot")
    for number in pyplot.get_fignums() if pyplot else ():
        buffer = io.StringIO()
        pyplot.figure(number).savefig(buffer, format="svg", bbox_inches="tight")
        text = buffer.getvalue()
        shown.append(("svg", text[text.index("<svg") :]))
        pyplot.close(number)


def run(source, name):
    "Run a cell; what it shows, and its error or None"
    shown.clear()
    linecache.cache[name] = len(source), None, source.splitlines(True), name
    try:
        body = ast.parse(source, name).body
        quiet = source.rstrip().endswith(";")
        last = body.pop() if body and isinstance(body[-1], ast.Expr) else None
        exec(compile(ast.Module(body, []), name, "exec"), NAMES)
        if last:
            value = eval(compile(ast.Expression(last.value), name, "eval"), NAMES)
            if value is not None and not quiet:
                display(value)
        figures()
    except BaseException as error:
        figures()
        frames = traceback.extract_tb(error.__traceback__)
        own = [frame for frame in frames if frame.filename.startswith("cell ")]
        place = f" (line {own[-1].lineno})" if own else ""
        if isinstance(error, SyntaxError):
            place = f" (line {error.lineno})"
        return list(shown), f"{type(error).__name__}: {error}{place}"
    return list(shown), None
