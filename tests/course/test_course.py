"""Every exercise of the course: the blank gets a hint, a typical mistake its own hint,
and the solution is right. The cells of a unit run once for all answers."""

import ast
import json
import re
from pathlib import Path

import pytest

from tools.run import ROOT
from tools.tidy import format_cell

COURSE = ROOT / "nbs/course"
UNITS = sorted(path.stem for path in COURSE.glob("*.ipynb"))
BLANK = "...  # your code"


def code_cells(path):
    "Sources of the code cells without a flag"
    cells = json.loads(path.read_text("utf-8"))["cells"]
    code = ["".join(c["source"]) for c in cells if c["cell_type"] == "code"]
    return [source for source in code if not source.startswith("#| hide")]


def sections(path):
    "Unit -> what a text says about it"
    parts = re.split(r"^## ", path.read_text("utf-8"), flags=re.M)[1:]
    names = [re.search(r"\{#(\w+)\}|^(\w+)\n", part) for part in parts]
    return {n[1] or n[2]: part for n, part in zip(names, parts, strict=True)}


def solutions(unit):
    text = sections(COURSE / "solutions.qmd")[unit]
    return re.findall(r"```python\n(.*?)\n```", text, flags=re.S)


def wrong_answers(unit):
    "Number of the exercise, piece of the hint, and answer"
    text = sections(Path(__file__).with_name("wrong.md"))[unit]
    found = re.findall(
        r"^(\d): (.*?)\n\n```python\n(.*?)\n```", text, flags=re.S | re.M
    )
    return [(int(number), hint, answer) for number, hint, answer in found]


def run(source, names):
    "Run a cell as a notebook does: its value is that of its last expression"
    *rest, last = ast.parse(source).body
    exec(compile(ast.Module(rest, []), "cell", "exec"), names)
    if isinstance(last, ast.Expr):
        return eval(compile(ast.Expression(last.value), "cell", "eval"), names)
    exec(compile(ast.Module([last], []), "cell", "exec"), names)


def tell(answer, check, names):
    "What the check after an exercise says to an answer"
    run(answer, names)
    return run(check, names)


class Played:
    "What the checks of a unit say to blanks, to wrong answers, and to the solutions"

    def __init__(self, unit):
        self.blank, self.wrong, self.right = [], [], []
        names, number, cells = {}, 0, code_cells(COURSE / f"{unit}.ipynb")
        right, wrong = solutions(unit), wrong_answers(unit)
        for source, following in zip(cells, [*cells[1:], ""], strict=True):
            if BLANK not in source:
                if not re.search(r"^check\(", source, flags=re.M):
                    run(source, names)
                continue
            number += 1
            self.blank.append(tell(source, following, names))
            mine = [(hint, answer) for n, hint, answer in wrong if n == number]
            self.wrong.append([(h, tell(a, following, names)) for h, a in mine])
            self.right.append(tell(right[number - 1], following, names))


@pytest.fixture(scope="module", params=UNITS)
def played(request):
    import matplotlib.pyplot as plt

    yield Played(request.param)
    plt.close("all")


def test_a_blank_gets_a_hint(played):
    assert len(played.blank) >= 3
    assert all(re.match("not yet: .{20}", said) for said in played.blank), played.blank


def test_a_typical_mistake_gets_its_own_hint(played):
    for told in played.wrong:
        assert len({said for _, said in told}) == len(told) >= 2
        assert all(said.startswith("not right: ") for _, said in told), told
        assert all(hint in said for hint, said in told), told


def test_the_solution_is_right(played):
    assert played.right == ["right"] * len(played.right)


@pytest.mark.parametrize("unit", UNITS)
def test_solutions_keep_the_signature_and_are_not_given_away(unit):
    cells = code_cells(COURSE / f"{unit}.ipynb")
    blanks = [source for source in cells if BLANK in source]
    for blank, solution in zip(blanks, solutions(unit), strict=True):
        assert format_cell(solution) == solution
        assert blank.splitlines()[:2] == solution.splitlines()[:2]
        lines = [line.strip() for line in solution.splitlines()[2:]]
        longest = max(lines, key=len).removeprefix("return ")
        assert not any(longest in source for source in cells)


@pytest.mark.parametrize("unit", UNITS)
def test_a_unit_leads_to_its_reading_its_slides_and_its_solutions(unit):
    text = (COURSE / f"{unit}.ipynb").read_text("utf-8")
    lecture = json.loads((COURSE / f"slides/{unit}.ipynb").read_text("utf-8"))["cells"]
    assert f"(slides/{unit}.ipynb)" in text and f"(solutions.qmd#{unit})" in text
    assert len(re.findall(r"\]\(\.\./\w+/\w+\.ipynb\)", text)) >= 3
    titles = [c for c in lecture if "".join(c["source"]).startswith("## ")]
    notes = [c for c in lecture if "".join(c["source"]).startswith("::: {.notes}")]
    assert 12 <= len(titles) == len(notes) <= 15
