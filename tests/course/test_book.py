"""The exercises of the book that ask for an equation in code: the blank gets a hint, a
typical mistake its own hint, and the solution is right. Only what they need is run."""

import re
from pathlib import Path

import pytest

from benchnb.tutorials.your_course import code_cells, defined, run_cell
from tools.in_page import with_needs
from tools.run import ROOT
from tools.teachers import TEXTS

CODE = re.compile(r"(?:^- (.*?)\n\n)?```python\n(.*?)\n```", flags=re.S | re.M)


def by_chapter(path):
    "Of each chapter what stands before its pieces of code, and the code"
    parts = re.split(r"^## (.*)\n", path.read_text("utf-8"), flags=re.M)[1:]
    return {
        name: CODE.findall(text)
        for name, text in zip(parts[::2], parts[1::2], strict=True)
    }


SOLUTIONS = by_chapter(TEXTS / "book.md")
MISTAKES = by_chapter(Path(__file__).with_name("wrong_book.md"))


def method_chapters():
    "Chapters of the book on methods, on tasks and on records"
    book = (ROOT / "_quarto.yml").read_text("utf-8").split("id: book")[1]
    rooms = r"href: ((?:methods|bento|bigbench)/\w+)\.ipynb"
    return re.findall(rooms, book.split("id: course")[0])


def test_every_chapter_on_a_method_asks_for_an_equation():
    assert list(SOLUTIONS) == list(MISTAKES) == method_chapters()
    assert {len(solutions) for solutions in SOLUTIONS.values()} == {1}


@pytest.mark.parametrize("chapter", SOLUTIONS)
def test_blank_and_mistakes_get_hints_and_the_solution_is_right(chapter):
    import matplotlib.pyplot as plt

    ((_, solution),) = SOLUTIONS[chapter]
    sources = code_cells(ROOT / f"nbs/{chapter}.ipynb")
    plain = [x for x in sources if not re.search(r"nbdev|default_exp", x)]
    cells = with_needs([{"source": source} for source in plain])
    (blank,) = [
        cell
        for cell in cells
        if "needs" in cell and defined(cell["source"]) & defined(solution)
    ]
    names = {"__name__": "chapter"}
    *before, last = blank["needs"]
    for place in before:
        run_cell(plain[place], names)
    assert re.match("not yet: .{20}", run_cell(plain[last], names))
    hints = []
    for piece, answer in MISTAKES[chapter]:
        run_cell(answer, names)
        hints.append(run_cell(plain[last], names))
        assert hints[-1].startswith("not right: ") and piece in hints[-1]
    assert len(set(hints)) == len(hints) >= 2
    run_cell(solution, names)
    assert run_cell(plain[last], names) == "right"
    plt.close("all")
