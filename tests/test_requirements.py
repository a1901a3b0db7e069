"""What the package imports is what settings.ini requires, and nothing else is required.

The core stands at the top of modules or inside functions, an extra inside functions."""

import ast
import re
import sys
from configparser import ConfigParser
from functools import cache
from importlib.metadata import packages_distributions

import pytest

from tools.run import ROOT

PACKAGE = ROOT / "benchnb"
SETTINGS = ConfigParser(delimiters=["="])
SETTINGS.read(ROOT / "settings.ini", encoding="utf-8")
EXTRAS = "plots papers llm inspect cluster hub new".split()
TORCH = {"bento/local_model.py": {"torch", "transformers"}}  # imported where it is used
HOSTS = {"live/in_lm_eval.py": {"lm-eval"}}  # a program that loads the module
installed = cache(packages_distributions)  # slow, and for one process only


def normal(name):
    "The name of a distribution as the package index compares it"
    return re.sub(r"[-_.]+", "-", name).lower()


def required(*sections):
    "Names of the distributions that a setting lists"
    lines = " ".join(SETTINGS["DEFAULT"][section] for section in sections).split()
    return {normal(re.match(r"[\w.-]+", line)[0]) for line in lines}


CORE = required("requirements")
OPTIONAL = required(*(f"{name}_requirements" for name in EXTRAS))


@cache
def imported(path):
    "Distributions that a module imports: when it is loaded, and inside functions"
    at_once = set()
    in_functions = set()
    todo = [(ast.parse(path.read_text("utf-8")), False)]
    while todo:
        node, late = todo.pop()
        late |= isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        # for type checkers alone: never executed
        late |= isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        todo += [(child, late) for child in ast.iter_child_nodes(node)]
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names = [node.module]
        tops = {name.partition(".")[0] for name in names}
        for top in tops - sys.stdlib_module_names - {"benchnb"}:
            distribution = normal(installed().get(top, [top])[0])
            (in_functions if late else at_once).add(distribution)
    return at_once, in_functions


MODULES = {
    path.relative_to(PACKAGE).as_posix(): path
    for path in sorted(PACKAGE.rglob("*.py"))
    if "resources" not in path.parts and path.name != "_modidx.py"
}


@pytest.mark.parametrize("module", MODULES)
def test_a_module_imports_what_is_required(module):
    at_once, in_functions = imported(MODULES[module])
    allowed = TORCH.get(module, set()) | HOSTS.get(module, set())
    assert at_once - CORE - allowed == set(), "no requirement; or import it where used"
    assert in_functions - CORE - OPTIONAL - allowed == set(), "not in settings.ini"


def test_nothing_is_required_that_no_module_imports():
    used = set().union(*(set().union(*imported(path)) for path in MODULES.values()))
    assert CORE - used == set()
    by_name = {"distributed"}  # joblib loads it: parallel_config("dask")
    assert OPTIONAL - used - by_name == set()


def test_an_import_that_is_not_required_is_found(tmp_path):
    path = tmp_path / "module.py"
    path.write_text("import yaml\n\ndef read():\n    import requests.api\n")
    assert imported(path) == ({"pyyaml"}, {"requests"})
