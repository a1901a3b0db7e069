"""Chapters and the laboratory run in the page, with what a desktop gives.

Chromium plays them in the slow tier, after `make docs`."""

# ruff: noqa: F811 (fixtures)

import importlib.util
import json
import os
import shutil
import subprocess
import sys

import numpy as np
import pytest
from helpers.in_page import opened, other_values, run_all, settle
from test_rendered import address, browser, docs, visit  # noqa: F401

from benchnb.data.files import resource_path
from benchnb.data.scores import Scores
from benchnb.data.sources import load
from tools.in_page import package, page_cells, plain_table, with_needs
from tools.run import ROOT


def script(name):
    "A module that only pages import"
    spec = importlib.util.spec_from_file_location(name, ROOT / f"nbs/run/{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("seed", range(12))
def test_medoids_are_those_of_the_compiled_package(seed):
    import kmedoids

    rng, ours = np.random.default_rng(seed), script("kmedoids")
    count, k = rng.integers(15, 200), rng.integers(2, 9)
    points = rng.integers(0, 2, (count, 9)) if seed % 2 else rng.normal(size=(count, 4))
    apart = np.abs(points[:, np.newaxis] - points).sum(axis=2).astype(np.float32)
    begin = rng.choice(count, k, replace=False)
    found = ours.fasterpam(apart, begin, random_state=seed)
    known = kmedoids.fasterpam(apart, begin, random_state=seed, n_cpu=1)
    np.testing.assert_array_equal(found.medoids, known.medoids)
    known = kmedoids.fastpam1(apart, begin, max_iter=count)
    found = ours.fastpam1(apart, begin, max_iter=count)
    np.testing.assert_array_equal(found.medoids, known.medoids)


@pytest.mark.parametrize(
    "name", "swebench_verified terminal_bench_trials mmlu_pro".split()
)
def test_a_table_in_the_page_is_the_one_in_the_package(name, tmp_path):
    path = resource_path(f"{name}.parquet")
    (tmp_path / f"{path.name}.npz").write_bytes(plain_table(path))
    found = Scores.from_arrow(script("cells").read_parquet(tmp_path / path.name))
    known = Scores.from_parquet(path)
    assert found.fingerprint() == known.fingerprint()
    assert found.models.equals(known.models) and [*found.items] == [*known.items]


def test_a_cell_runs_as_in_a_notebook():
    cells = script("cells")
    assert cells.run("x = 2\nx + 1", "cell 1") == ([("text", "3")], None)
    assert cells.run("x;", "cell 2") == ([], None)
    assert cells.run("x\n1 / 0", "cell 3")[1] == (
        "ZeroDivisionError: division by zero (line 2)"
    )
    assert cells.run("x = = 2", "cell 4")[1].startswith("SyntaxError: invalid syntax")
    (shown,) = cells.run("__import__('pandas').DataFrame({'a': [1]})", "cell 5")[0]
    assert shown[0] == "html" and "<td>1</td>" in shown[1]


IN_PAGE = """
import cells
cells.prepare()
source = "import pandas as pd; len(pd.read_csv('../results/field.csv'))"
print(cells.run(source, "cell 1"))
"""


def test_what_a_page_unpacks_has_the_stored_results_where_chapters_read_them(tmp_path):
    package(tmp_path / "benchnb.zip")
    shutil.unpack_archive(tmp_path / "benchnb.zip", tmp_path)
    command = [sys.executable, "-c", IN_PAGE]
    env = {**os.environ, "PYTHONPATH": ""}
    done = subprocess.run(
        command, cwd=tmp_path, env=env, capture_output=True, text=True
    )
    rows = len((ROOT / "nbs/results/field.csv").read_text("utf-8").splitlines()) - 1
    assert done.stdout.strip() == f"([('text', '{rows}')], None)", done.stderr


def test_a_cell_that_cannot_run_says_why_and_so_do_those_that_need_it(tmp_path):
    sources = ["import torch\nx = torch.ones(3)", "y = x + 1", "z = 1", "x = z\nx"]
    sources += ["#| data\nload('gsm8k')", "shell('benchnb list data')"]
    cells = [
        {"cell_type": "code", "id": str(n), "source": s, "metadata": {}, "outputs": []}
        | {"execution_count": None}
        for n, s in enumerate(sources)
    ]
    path = tmp_path / "a.ipynb"
    text = {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    path.write_text(json.dumps(text), encoding="utf-8")
    found = [cell.get("why", "") for cell in page_cells(path)]
    data = "it reads data that does not come with benchnb"
    torch = "it needs PyTorch"
    assert found == [torch, torch, "", "", data, "it needs a terminal"]


@pytest.mark.parametrize("count, chosen", [(30, "guarded_irt"), (14, "stratified")])
def test_the_laboratory_recommends_what_the_site_recommends(
    count, chosen, tmp_path, monkeypatch, capsys
):
    laboratory = script("laboratory")
    monkeypatch.setattr(laboratory, "FITTED", 1)
    monkeypatch.setattr(laboratory, "DRAWS", 2)
    medqa = load("helm_medqa").select(
        models=np.arange(count), items=np.arange(0, 1000, 10)
    )
    import pandas as pd

    frame = pd.DataFrame(medqa.values, medqa.models.index, medqa.items.index)
    frame.rename_axis("model").to_csv(tmp_path / "table.csv")
    name = str(tmp_path / "table.csv")
    study = laboratory.study(name, 20)
    assert study["method"] == chosen == study["sentence"].split()[1]
    errors = {r["method"]: r["mae"] for r in study["rows"] if r["budget"] == 20}
    assert {"random", "stratified", chosen} == {*errors}
    for method in (chosen, "random"):
        assert f"{100 * errors[method]:.1f}" in study["sentence"]
    assert ("needs 20 sources" in study["sentence"]) == (chosen == "stratified")
    assert len(study["list"]) == 20 and "parts are done" in capsys.readouterr().out
    model = laboratory.models(name)[0]
    path = laboratory.steps(name, model, chosen, 20)
    assert path["steps"][-1]["items"] == path["random"][-1]["items"] == 20
    assert json.loads(laboratory.Text(path))["truth"] == pytest.approx(path["truth"])


def test_the_laboratory_begins_with_a_likely_model():
    laboratory = script("laboratory")
    newest = load("swebench_verified").models["released"].astype(str)
    assert newest[laboratory.models("swebench_verified")[0]] == newest.max()
    scores = load("helm_medqa").performance()
    first = scores[laboratory.models("helm_medqa")[0]]
    assert scores.quantile(0.7) < first < scores.quantile(0.8)


def test_an_exercise_runs_what_its_check_rests_on():
    sources = ["import math", "rows = []", "rows.append(2)", "big = 1", "rows[0] = 3"]
    sources += ["answer = ...  # your code", "def one(x):\n    assert x == rows[0]"]
    sources += ["check(one, answer)", "other = big"]
    sources[3] += "\n@patch\ndef top(self: Rows):\n    return 1"
    cells = with_needs([{"source": source} for source in sources])
    assert cells[5]["needs"] == [1, 2, 4, 5, 6, 7]
    sources[6] += ", Rows(x).top()"  # a method that another cell gives to the class
    cells = with_needs([{"source": source} for source in sources])
    assert cells[5]["needs"] == [1, 2, 3, 4, 5, 6, 7]
    assert [n for n, cell in enumerate(cells) if "needs" in cell] == [5]


slow = pytest.mark.slow


@pytest.fixture
def chapter(visit, address, docs):
    "Open a chapter with its buttons"
    if not (docs / "run").exists():
        pytest.skip("the site was made without Pyodide")

    def go(here, width=1280):
        tab = visit(f"{here}.html", width)
        opened(tab, address, here)
        return tab

    return go


@slow
def test_a_page_that_is_read_loads_nothing_of_it(visit, address, docs):
    tab, asked = visit("index.html"), []
    tab.on("request", lambda request: asked.append(request.url))
    tab.goto(f"{address}methods/faq.html")
    tab.wait_for_timeout(500)
    assert tab.locator(".run-bar button").count() > 10
    assert not [url for url in asked if "/run/" in url]


@slow
@pytest.mark.parametrize("here", ["stats/logistic", "stats/conformal"])
def test_a_chapter_runs_in_its_page_with_the_stored_values(chapter, here):
    rows = run_all(chapter(here))
    assert not [(name, error) for name, error, _ in rows if error]
    assert not other_values(here, rows)


@slow
def test_cells_are_edited_stopped_and_reset_with_the_keyboard(chapter):
    tab = chapter("stats/intervals")
    places = "page.cells.map((c, n) => c.bar ? n : -1).filter((n) => n >= 0)"
    place = tab.evaluate(places)[0]
    tab.evaluate(f"page.cells[{place}].bar.children[2].focus()")
    tab.keyboard.press("Enter")  # Edit or Code
    assert tab.evaluate("document.activeElement.tagName") == "TEXTAREA"
    tab.keyboard.press("Control+a")
    tab.keyboard.type("print('seen'); 6 * 7")
    tab.keyboard.press("Control+Enter")
    settle(tab)
    shown = tab.locator(".run-output").first
    assert shown.inner_text().split() == ["seen", "42"]
    tab.keyboard.press("Control+a")
    tab.keyboard.type("while True: pass")
    tab.keyboard.press("Control+Enter")
    tab.locator(".run-status button", has_text="Stop").press("Enter")
    assert "stopped" in tab.locator(".run-status").inner_text()
    tab.locator(".run-status button", has_text="Reset").press("Enter")
    assert not tab.evaluate(f"page.cells[{place}].output.children.length")
    tab.evaluate("localStorage.clear()")


@slow
def test_exercises_say_not_yet_a_hint_and_right(chapter):
    from course.test_course import wrong_answers

    from benchnb.tutorials.your_course import defined
    from tools.teachers import COURSE, solutions

    tab, page = chapter("course/sampling"), COURSE / "sampling.ipynb"
    blanks = tab.evaluate("page.cells.map((c) => c.exercise ? c.source : null)")
    for place, source in enumerate(blanks):
        if source is None:
            continue
        names = defined(source)
        (right,) = [s for s in solutions(page) if defined(s) & names][:1]
        hint, wrong = next(iter(wrong_answers("sampling", names)), ("", None))
        expected = [(source, "not yet"), (wrong, hint), (right, "right")]
        for answer, said in expected:
            if answer is None:
                continue
            tab.evaluate(
                "([n, text]) => { page.cells[n].editor.value = text;"
                " page.cells[n].editor.oninput(); page.run(n); }",
                [place, answer],
            )
            settle(tab)
            check = "find((c) => /^check\\(/m.test(c.source)).shown"
            shown = tab.evaluate(f"page.cells.slice({place}).{check}")
            assert said in shown[0][1]


@slow
def test_the_laboratory_studies_a_file_and_names_what_is_wrong(visit, docs, tmp_path):
    if not (docs / "run").exists():
        pytest.skip("the site was made without Pyodide")
    medqa = load("helm_medqa").select(items=np.arange(0, 1000, 5))
    wide, long, bad = (tmp_path / f"{n}.csv" for n in ("wide", "long", "bad"))
    values = dict(zip(medqa.items.index, medqa.values.T, strict=True))
    import pandas as pd

    frame = pd.DataFrame({"model": medqa.models.index} | values)
    frame.to_csv(wide, index=False)
    frame.melt("model", var_name="item", value_name="score").to_csv(long, index=False)
    bad.write_text("model,item,score\na,x,1\na,y,maybe\n", encoding="utf-8")
    tab, advice = visit("laboratory.html"), []
    for path in (wide, long):
        tab.set_input_files("#file", path)
        tab.click("#study")
        tab.wait_for_function(
            "document.getElementById('study').disabled === false", timeout=600_000
        )
        assert tab.locator("#advice").inner_text().startswith("83 models, 200 items.")
        assert "Use guarded_irt with 40 items" in tab.locator("#advice").inner_text()
        assert tab.locator("#curves polygon").count() == 3
        assert f"benchnb plan {path.name}" in tab.locator("#command").inner_text()
        advice.append(tab.locator("#advice").inner_text())
    assert advice[0] == advice[1]
    tab.click("#watch")
    tab.wait_for_selector("#path polygon", timeout=600_000)
    assert "on all items" in tab.locator("#path-caption").inner_text()
    tab.set_input_files("#file", bad)
    tab.click("#study")
    tab.wait_for_function("document.getElementById('study').disabled === false")
    said = tab.locator("#laboratory-says").inner_text()
    assert "maybe" in said and "bad.csv" in said and "\n" not in said
