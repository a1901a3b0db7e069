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
    test = doctest.DocTest(
        statements, names, name, "benchnb/resources/examples.md", None, None
    )
    runner = doctest.DocTestRunner(optionflags=doctest.REPORT_NDIFF)
    report = []
    runner.run(test, out=report.append)
    if name == "register":
        unregister("nothing")
    assert not runner.failures, "".join(report)


def test_help_has_the_example_with_what_it_prints():
    for name in benchnb.__all__:
        text = getattr(benchnb, name).__doc__
        assert text.count("\nExamples\n") == 1, name
        assert ">>> " in text.partition("\nExamples\n")[2], name


def test_names_that_can_be_called_wrongly_show_an_error():
    without = {name for name, parts in EXAMPLES.items() if not errors_of(parts)}
    made_by_others = {"Advice", "Comparison", "Estimate"}
    without_choice = {"audit", "data_sets", "list_methods", "Harness"}
    assert without == made_by_others | without_choice


def errors_of(statements):
    "Errors that are raised, or caught and printed"
    return [p for p in statements if p.exc_msg or "except" in p.source]


def test_an_error_stands_apart_from_the_code_that_can_be_copied():
    statements = doctest.DocTestParser().get_examples(
        ">>> 1 + 1\n2\n>>> load(3)\nTraceback (most recent call last):\na.b.E: no: 3\n"
    )
    first, printed, failed = example_text(statements).split("\n\n``` {.printed}\n")
    assert "load(3)" not in first
    assert (printed, failed) == ("2\n```", "load(3)\nE: no: 3\n```")


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
