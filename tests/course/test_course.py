"""Every exercise of the course: the blank gets a hint, a typical mistake its own hint,
and the solution is right. The cells of a unit run once for all answers."""

import ast
import json
import re
from pathlib import Path

import pytest

from tools.run import ROOT

COURSE = ROOT / "nbs/course"
UNITS = sorted(path.stem for path in COURSE.glob("*.ipynb"))
BLANK = "...  # your code"
FIGURES = {  # sentences of the solutions, with what the right answers give
    "coresets": [
        "'{medoids} points for 30 medoids and {random} for'.format(**coreset_errors())",
        "'{:.2f} with all sources and {:.2f} with the native third, which is better '"
        "'for {:.0%} of'.format(*relatives().values())",
    ],
    "tasks": [
        "'With one task both have {:.1f} points'.format(task_errors(1)['greedy'])"
    ],
    "records": [
        "'{:.2f} for a new pair of known parts, {:.2f} for a new scaffold, and {:.2f} '"
        "'for a new'.format(*honest().values())"
    ],
    "shift": [
        "'{:.2f} and {:.2f} for `difference`'"
        ".format(*two_columns()['difference'].values())",
        "'{:.2f} and {:.2f} for `anchor_points`'"
        ".format(*two_columns()['anchor_points'].values())",
    ],
}


def code_cells(path):
    "Sources of the code cells without a flag"
    cells = json.loads(path.read_text("utf-8"))["cells"]
    code = ["".join(c["source"]) for c in cells if c["cell_type"] == "code"]
    return [source for source in code if not source.startswith("#| hide")]


def sections(path):
    "Unit -> its section of a text"
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


def checked(answer, check, names):
    "What the check after an exercise returns for an answer"
    run(answer, names)
    return run(check, names)


@pytest.mark.parametrize("unit", UNITS)
def test_blanks_and_typical_mistakes_get_hints_and_solutions_are_right(unit):
    import matplotlib.pyplot as plt

    names, cells, right = {}, code_cells(COURSE / f"{unit}.ipynb"), solutions(unit)
    blanks = [n for n, source in enumerate(cells) if BLANK in source]
    assert len(blanks) == len(right) >= 3
    for n, source in enumerate(cells):
        if n not in blanks:
            if not re.search(r"^check\(", source, flags=re.M):
                run(source, names)
            continue
        number, check = blanks.index(n), cells[n + 1]
        assert re.match("not yet: .{20}", checked(source, check, names))
        wrong = [(h, a) for at, h, a in wrong_answers(unit) if at == number + 1]
        hints = [checked(answer, check, names) for _, answer in wrong]
        assert len(set(hints)) == len(hints) >= 2
        for (piece, _), hint in zip(wrong, hints, strict=True):
            assert hint.startswith("not right: ") and piece in hint
        solution = right[number]
        assert checked(solution, check, names) == "right"
        assert source.splitlines()[:2] == solution.splitlines()[:2]  # the signature
        lines = [line.strip() for line in solution.splitlines()[2:]]
        longest = max(lines, key=len).removeprefix("return ")
        assert not any(longest in cell for cell in cells), "the solution is given away"
    text = sections(COURSE / "solutions.qmd")[unit]
    for sentence in FIGURES.get(unit, ()):
        assert eval(sentence, names) in text
    plt.close("all")
