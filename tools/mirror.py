"""How the package reads, in figures: `python -m tools.mirror [folder ...]`.

A mirror, not a gate: packed calls (a tuple or dict is bound to a name and starred in
the same function), parallel assignments, public names, words that say nothing as names
of locals, functions above a complexity of 20, errors of mypy. A folder of another code
base gives the same figures of it; CONTRIBUTING.md has the table.
"""

import ast
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

from tools.run import ROOT

VAGUE = "found known facts how given one some why place ends".split()
ROWS = ["files", "lines", "functions", "packed calls", "parallel assignments"]
ROWS += ["vague locals", "public names"]
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def own_nodes(function):
    "The nodes of a function, without those of functions inside it"
    todo = [*ast.iter_child_nodes(function)]
    while todo:
        node = todo.pop()
        yield node
        if not isinstance(node, (*FUNCTIONS, ast.Lambda)):
            todo += ast.iter_child_nodes(node)


def is_pack(value):
    "Is it a tuple or a dict, as it is written?"
    if isinstance(value, ast.BinOp):  # two of them, added or joined
        return is_pack(value.left) or is_pack(value.right)
    called = isinstance(value, ast.Call) and isinstance(value.func, ast.Name)
    if called and value.func.id in ("dict", "tuple"):
        return True
    return isinstance(value, (ast.Tuple, ast.Dict))


def packed_names(function):
    "Names that a function binds to a tuple or a dict"
    names = set()
    for node in own_nodes(function):
        if isinstance(node, ast.Assign):
            pairs = [(target, node.value) for target in node.targets]
        elif isinstance(node, (ast.AnnAssign, ast.NamedExpr)):
            pairs = [(node.target, node.value)]
        else:
            continue
        for target, value in pairs:
            both = isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple)
            each = (
                zip(target.elts, value.elts, strict=False)
                if both
                else [(target, value)]
            )
            for name, part in each:
                if isinstance(name, ast.Name) and is_pack(part):
                    names.add(name.id)
    return names


def packed_calls(function):
    "Calls that star such a name"
    names = packed_names(function)
    for node in own_nodes(function):
        if isinstance(node, ast.Call):
            stars = [a.value for a in node.args if isinstance(a, ast.Starred)]
            stars += [word.value for word in node.keywords if word.arg is None]
            if any(isinstance(s, ast.Name) and s.id in names for s in stars):
                yield node


def figures(folder):
    "The figures of all modules under a folder"
    total = Counter()
    for path in sorted(folder.rglob("*.py")):
        if "_modidx" in path.name or "tests" in path.parts:
            continue
        text = path.read_text("utf-8", errors="replace")
        try:
            tree = ast.parse(text)
        except SyntaxError:
            continue
        total["files"] += 1
        total["lines"] += text.count("\n")
        for node in ast.walk(tree):
            if isinstance(node, FUNCTIONS):
                total["functions"] += 1
                total["packed calls"] += sum(1 for _ in packed_calls(node))
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Tuple):
                pair = isinstance(node.targets[0], ast.Tuple)
                total["parallel assignments"] += pair and len(node.value.elts) > 1
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                total["vague locals"] += node.id in VAGUE
        for node in tree.body:
            names = [t.id for t in getattr(node, "targets", []) if hasattr(t, "id")]
            if "__all__" in names and isinstance(node.value, (ast.List, ast.Tuple)):
                total["public names"] += len(node.value.elts)
    return total


def complex_functions(folder, most=20):
    "Functions above a complexity, as ruff counts it"
    words = ["--isolated", "--select", "C901", "--output-format", "concise"]
    words += ["--config", f"lint.mccabe.max-complexity={most}", str(folder)]
    command = [sys.executable, "-m", "ruff", "check", *words]
    done = subprocess.run(command, capture_output=True, text=True)
    return re.findall(r"`(\w+)` is too complex \((\d+)", done.stdout)


def type_errors(folder):
    "Errors of mypy with its ordinary settings; None where it is not installed"
    command = [sys.executable, "-m", "mypy", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    if "No module named mypy" in done.stderr:
        return None
    return len(re.findall(r": error: ", done.stdout))


def title(folder):
    "What stands above the column: name and version of a wheel, or the folder's name"
    for info in folder.parent.glob("*.dist-info"):
        return info.name.removesuffix(".dist-info").replace("-", " ")
    return folder.name


def column(folder):
    "The figures of a folder as they are printed; counts by 100 functions in brackets"
    total = figures(folder)
    made = {}
    for name in ROWS:
        made[name] = f"{total[name]:,}"
        if name not in ("files", "lines", "functions"):
            share = 100 * total[name] / max(total["functions"], 1)
            made[name] += f" ({share:.1f})"
    made["complexity above 20"] = str(len(complex_functions(folder)))
    return made


def main(folders):
    "Print the figures as a table of Markdown, one column for each folder"
    folders = [Path(name).resolve() for name in folders] or [ROOT / "benchnb"]
    columns = {title(folder): column(folder) for folder in folders}
    print("| " + " | ".join(["", *columns]) + " |")
    print("|:--" + "|--:" * len(columns) + "|")
    for name in [*ROWS, "complexity above 20"]:
        print(
            "| " + " | ".join([name, *(made[name] for made in columns.values())]) + " |"
        )
    if ROOT / "benchnb" in folders:
        named = [" ".join(pair) for pair in complex_functions(ROOT / "benchnb")]
        print(f"\nabove 20 in benchnb: {', '.join(named) or 'none'}")
        print(f"errors of mypy in benchnb: {type_errors(ROOT / 'benchnb')}")


if __name__ == "__main__":
    main(sys.argv[1:])
