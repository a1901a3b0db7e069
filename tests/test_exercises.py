"""The first exercise of a chapter asks for a line of its equation: the blank gets the
first hint, a typical mistake another, and the equation is right."""

import json
import re
import sys
from types import ModuleType

import matplotlib.pyplot as plt
import pytest

from benchnb.tutorials.your_course import check
from tools.run import ROOT

FLAGGED = re.compile(r"^#\| *(data|slow|gpu)|nbdev_export\(", flags=re.M)
ANSWERS = {  # chapter: signature, what is right, a typical mistake and its hint
    "data/leaderboards": (
        "scores_on(values, items)",
        "values[:, items].mean(axis=1)",
        "values.mean(axis=1)",
        "the mean of all items",
    ),
    "stats/intervals": (
        "n_star(n, N)",
        "n * (N - 1) / (N - n)",
        "n * N / (N - n)",
        "one item counts as one",
    ),
    "live/paired": (
        "s_squared(d)",
        "(1 + (d**2).sum()) / (len(d) + 2) - (d.sum() / (len(d) + 2)) ** 2",
        "(1 + (d**2).sum()) / (len(d) + 2)",
        "the squared mean is missing",
    ),
    "stats/irt": (
        "information(a, d, theta)",
        "a**2 * expit(a * theta + d) * expit(-a * theta - d)",
        "a * expit(a * theta + d) * expit(-a * theta - d)",
        "the slope is squared",
    ),
    "stats/genetic_search": (
        "child(a, b, xi)",
        "(a & xi) | (b & ~xi)",
        "(a & xi) | b",
        "a copy of a",
    ),
    "stats/transport": (
        "projected(answers, plan)",
        "answers @ plan / plan.sum(axis=0)",
        "4 * answers @ plan",
        "may differ in size",
    ),
    "evaluation/guard": (
        "l_z(p, y)",
        "(y - p) @ logit(p) / np.sqrt((p * (1 - p) * logit(p) ** 2).sum())",
        "(y - p) @ logit(p)",
        "look below the root",
    ),
    "live/stopping": (
        "capital(d, stake, m)",
        "np.cumprod(1 + stake * (d - m))",
        "np.cumprod(1 + stake * d)",
        "exceeds the claim",
    ),
    "live/race": (
        "weight_of_first(p)",
        "p.sum() / (len(p) * p[0])",
        "p.sum() / p[0]",
        "counts once",
    ),
    "live/certificate": (
        "smallest_difference(errors)",
        "1.96 * 2**0.5 * errors.std(ddof=1)",
        "1.96 * errors.std(ddof=1)",
        "a difference has two",
    ),
    "live/gate": (
        "verdict(a, b, alpha=0.05)",
        "'PASS' if a * alpha >= 1 else 'FAIL' if b * alpha >= 1 else 'go on'",
        "'PASS' if a >= 20 else 'FAIL' if b >= 20 else 'go on'",
        "takes a capital of 100",
    ),
    "live/audit": (
        "fisher_z(r, n)",
        "np.arctanh(r) * np.sqrt(n - 3)",
        "r * np.sqrt(n - 3)",
        "artanh",
    ),
}


def run_to_exercise(chapter, monkeypatch):
    "The names of a chapter when a reader reaches its first exercise, and the blank"
    monkeypatch.chdir((ROOT / "nbs" / chapter).parent)
    module = ModuleType("chapter")  # dataclasses look their module up
    monkeypatch.setitem(sys.modules, module.__name__, module)
    text = (ROOT / f"nbs/{chapter}.ipynb").read_text("utf-8")
    code = [
        "".join(cell["source"])
        for cell in json.loads(text)["cells"]
        if cell["cell_type"] == "code"
    ]
    first = next(n for n, cell in enumerate(code) if "...  # your code" in cell)
    for cell in code[:first]:
        if not FLAGGED.search(cell):
            exec(cell, module.__dict__)
            plt.close("all")
    exec(code[first + 1].partition("\n\n\ncheck(")[0], module.__dict__)
    return module.__dict__, code[first]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("chapter", ANSWERS)
def test_a_line_of_the_equation_is_right_and_a_mistake_gets_its_hint(
    chapter, monkeypatch
):
    names, blank = run_to_exercise(chapter, monkeypatch)
    signature, right, wrong, hint = ANSWERS[chapter]
    function = signature.partition("(")[0]

    def marked(code):
        exec(code, names)
        return check(names["exercise_1"], names[function])

    assert marked(blank).startswith("not yet: ")
    assert hint in marked(f"def {signature}:\n    return {wrong}")
    assert marked(f"def {signature}:\n    return {right}") == "right"
