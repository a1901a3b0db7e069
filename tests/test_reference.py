"""The index of names: what `benchnb` offers comes first, with examples that run and the
chapters that use each name."""

import doctest

import pytest

import benchnb
from benchnb.evaluation.registry import unregister
from tools.reference import (
    MOST_CHAPTERS,
    chapters_using,
    example_imports,
    example_text,
    names_used,
    read_examples,
)

EXAMPLES = {
    name: statements
    for examples in read_examples().values()
    for name, statements in examples.items()
}


def test_every_public_name_has_an_example_that_uses_it():
    assert sorted(EXAMPLES) == benchnb.__all__
    for name, statements in EXAMPLES.items():
        code = "".join(part.source for part in statements)
        assert name in example_imports(code), f"the example of {name} does not use it"


@pytest.mark.slow
@pytest.mark.parametrize("name", EXAMPLES)
def test_examples_print_what_they_show(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    statements = EXAMPLES[name]
    code = "".join(part.source for part in statements)
    names = {"__name__": "__main__"}
    exec(example_imports(code), names)
    test = doctest.DocTest(statements, names, name, "tools/examples.md", None, None)
    runner = doctest.DocTestRunner(optionflags=doctest.REPORT_NDIFF)
    report = []
    runner.run(test, out=report.append)
    if name == "register":
        unregister("nothing")
    assert not runner.failures, "".join(report)


def test_an_example_shows_its_code_without_prompts_and_what_it_prints():
    statements = doctest.DocTestParser().get_examples(
        '>>> scores = load("ifeval")\n>>> scores.shape\n(448, 541)\n'
    )
    assert example_text(statements) == (
        '``` python\nfrom benchnb import load\n\nscores = load("ifeval")\n'
        "scores.shape\n```\n\n``` {.printed}\n(448, 541)\n```"
    )


def test_chapters_that_use_a_name_are_read_from_their_code(tmp_path):
    cells = ["from benchnb import gate\nimport numpy", "%magic", "def f(): gate(1, 2)"]
    cells += ["from benchnb.live.race import race", "a: race = race()", "x.audit()"]
    path = tmp_path / "page.ipynb"
    made = [f'{{"cell_type": "code", "source": [{cell!r}]}}' for cell in cells]
    path.write_text(f'{{"cells": [{", ".join(made)}]}}'.replace("'", '"'), "utf-8")
    assert list(names_used(path)) == ["gate", "race"]
    using = chapters_using()
    assert "tutorials/your_model.ipynb" in using["paired"]
    assert "live/paired.ipynb" not in using["paired"]  # there it is told
    assert len(using["load"]) > MOST_CHAPTERS
