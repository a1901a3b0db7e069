"""Every exercise and homework: the blank gets a hint, a typical mistake its own hint,
and the solution is right. The cells of a page run once for all answers."""

import json
import re
from pathlib import Path
from zipfile import ZipFile

import pytest

from benchnb.tutorials.your_course import code_cells, defined, grade, run_cell
from tools import teachers
from tools.teachers import BLANK, COURSE, PAGES, filled, solutions

SLIDES = sorted(COURSE.glob("slides/*.ipynb"))
NAMES = [page.relative_to(COURSE).with_suffix("").as_posix() for page in PAGES]
FIGURES = {  # page -> sentences of its solutions, with what the right answers give
    "irt": [
        "'an error of {} points, and its first'.format(cost(best_task)[0])",
        "'the varied one has {} points, and its most used task goes to {:.0%}'"
        ".format(*cost(varied_task))",
    ],
    "coresets": [
        "'of {} points, nearly all of it in one direction ({} on average)'"
        ".format(*compared()['equation 1'])",
        "'has {} points, and {} on average'.format(*compared()['equation 2'])",
    ],
    "homework/coresets": [
        "f'error is {family_error(table, families, 20):.1f} points with 20 medoids'"
    ],
    "decisions": [
        "'{} with ten items, {} with 20 and {} with 50; the textbook has {}, {} and "
        "{}.'.format(*(coverage(i, n) for i in (repaired, textbook) for n in (10, 20, 50)))",
        "f'Of these runs {100 * alarms(looks):.0f} in 100 are wrong.'",
    ],
    "homework/decisions": [
        "'for {:,.0f} answers of 8,000'.format(np.mean([race(eight, 50, 3.0, "
        "np.random.default_rng(s))[1] for s in range(40)]))"
    ],
    "tasks": [
        "'{items:,} items, with an error of {whole tasks} points; as many random items '"
        "'have {random items}'.format(**budget_errors())",
    ],
    "homework/tasks": [
        "'it is {:.2f}, and {:.2f} with single models held out'.format(*(family_r2("
        "scores.to_numpy(), x, [0, 5, 9]) for x in (families, np.arange(29))))",
        "'{:.2f} for new scaffolds and {:.2f} for new language models'.format("
        "*(grouped_r2(records[x].to_numpy()) for x in ('scaffold', 'llm')))",
    ],
    "measurement": [
        "f'{typical(1)} points with one run of each task, and {typical(5)} with five'"
    ],
    "homework/irt": ["f'the gap is {held_out_gap():.2f}'"],
}
GIVEN = {  # lines that a page hands to its students, to be changed
    "value = information(theta, a, b)",
    "theta = ability(row[asked], a[asked], b[asked])",
}


def wrong_answers(page, names):
    "Piece of the hint, and answer, for a blank of this page"
    text = Path(__file__).with_name("wrong.md").read_text("utf-8")
    part = re.search(rf"^## {page}\n(.*?)(?=^## |\Z)", text, flags=re.S | re.M)
    found = part and re.findall(
        r"^- (.*?)\n\n```python\n(.*?)\n```", part[1], flags=re.S | re.M
    )
    return [(hint, answer) for hint, answer in found or [] if defined(answer) & names]


def lines(source):
    "What stands in a cell, without signatures and docstrings"
    kept = [line.strip() for line in source.splitlines()]
    return [x for x in kept if x and not x.startswith(("def ", '"', "#", "for "))]


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_blanks_and_typical_mistakes_get_hints_and_solutions_are_right(page):
    import matplotlib.pyplot as plt

    name = page.relative_to(COURSE).with_suffix("").as_posix()
    names, cells, right = {}, code_cells(page), solutions(page)
    blanks = [n for n, source in enumerate(cells) if BLANK in source]
    assert len(blanks) >= (2 if name == "measurement" else 3)
    pending, mistakes = None, 0
    for source in cells:
        if BLANK in source:
            pending = source
            run_cell(source, names)
        elif re.search(r"^check\(", source, flags=re.M):
            assert re.match("not yet: .{20}", run_cell(source, names))
            test = source[: source.index("\n\n\ncheck(")].strip()
            judge = source[source.rindex("check(") :]
            hints = []
            for piece, answer in wrong_answers(name, defined(pending)):
                run_cell(answer, names)
                hints.append(run_cell(judge, names))
                assert hints[-1].startswith("not right: ") and piece in hints[-1]
            assert len(set(hints)) == len(hints)
            mistakes += len(hints)
            (solution,) = [s for s in right if defined(s) & defined(pending)]
            run_cell(solution, names)
            assert run_cell(judge, names) == "right", (test[:40], solution)
        else:
            run_cell(source, names)
    assert mistakes >= (4 if page.parent == COURSE else 1)
    text = (teachers.TEXTS / f"{page.stem}.md").read_text("utf-8")
    for sentence in FIGURES.get(name, ()):
        assert eval(sentence, names) in text
    plt.close("all")


def test_no_page_and_no_slide_shows_an_answer():
    shown = []
    for path in [*PAGES, *SLIDES]:
        cells = json.loads(path.read_text("utf-8"))["cells"]
        code = {x for cell in cells for x in lines("".join(cell["source"]))}
        answer = {x for text in solutions(path) for x in lines(text) if len(x) > 24}
        shown += [f"{path.parent.name}/{path.name}: {x}" for x in answer & code - GIVEN]
    assert not shown


def test_pages_of_the_course_do_not_lead_to_the_solutions():
    pages = [*PAGES, *SLIDES, COURSE.parent / "tutorials/your_course.ipynb"]
    links = [re.findall(r"\]\(([^)]*)\)", page.read_text("utf-8")) for page in pages]
    assert not [x for x in sum(links, []) if "teachers" in x or "solution" in x]


def test_the_archive_for_teachers_has_every_page_solved(tmp_path, monkeypatch):
    monkeypatch.setattr(teachers, "ROOT", tmp_path)
    teachers.main()
    with ZipFile(tmp_path / "out/teachers.zip") as archive:
        solved = {n for n in archive.namelist() if n.endswith(".ipynb")}
        texts = [archive.read(name).decode("utf-8") for name in solved]
    assert len(solved) == len(teachers.PAGES)
    assert not any(
        BLANK in "".join(c["source"])
        for t in texts
        for c in json.loads(t)["cells"]
        if c["cell_type"] == "code"
    )


def test_a_solved_notebook_is_graded_right(tmp_path):
    page = COURSE / "homework/sampling.ipynb"
    (tmp_path / "anna.ipynb").write_text(filled(page), "utf-8")
    assert set(grade(page, tmp_path / "anna.ipynb").values()) == {"right"}
    assert all(x.startswith("not yet") for x in grade(page, page).values())
