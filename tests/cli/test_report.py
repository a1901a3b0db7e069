"""A report for a colleague: one HTML file and its Markdown form, finished or not."""

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from helpers.small import halves

from benchnb.cli.app import main
from benchnb.data.scores import Scores
from benchnb.live.evaluation import Evaluation

HOSTILE = "<img src=x onerror=alert(1)>|`x`[y](http://z)\x1b[2J"


class Tags(HTMLParser):
    "What elements a page has, and all values of their attributes"

    def __init__(self, text):
        super().__init__()
        self.tags, self.values = [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.values += [(tag, name, value) for name, value in attrs]


@pytest.fixture
def call(tmp_path, monkeypatch, capsys):
    "Give a command beside the table of sources; what it printed, or its error"
    monkeypatch.chdir(tmp_path)
    scores = halves()[0]
    items = scores.items.assign(weight=1.0)
    names = items.index.to_series().replace({items.index[0]: HOSTILE})
    items.index, items["cost"] = names.to_numpy(), 100.0
    Scores(scores.values, items).to_parquet("s.parquet")

    def give(*argv):
        code = main([str(word) for word in argv])
        out, err = capsys.readouterr()
        assert not out.splitlines() or max(map(len, out.splitlines())) <= 80
        return err if code else out

    return give


def begin(call, *more, method="aipw", budget=20, folds=6):
    "An evaluation in the folder new"
    how = ["--method", method, "--budget", budget, "--folds", folds, "--seed", 3]
    call("plan", "s.parquet", *how, "--harness", "list", "--out", "new", *more)
    return Evaluation.load("new")


def answer(run, score=None):
    "Answer what is asked: alternately, or always alike"
    asked = run.ask()
    run.tell({n: i % 2 if score is None else score for i, n in enumerate(asked)})


def test_a_report_stands_in_one_file(call):
    answer(begin(call, "--model", "org/new"))
    out = call("report", "new")
    assert "new/report.html" in out and "new/report.md" in out
    html, plain = (Path("new", f"report.{end}").read_text() for end in ("html", "md"))
    found = json.loads(call("estimate", "new", "--json"))
    for text in (html, plain):
        assert f"{found['score']:.3f}" in text and "org/new" in text
        low, high = found["interval"]
        assert f"95% interval {low:.3f} to {high:.3f}" in text
        assert f"rank {found['rank']:g} of {found['models']}" in text
        assert "20 of 60" in text and "2,000 of 6,000 tokens" in text
        assert "benchnb plan s.parquet --out new --method aipw --budget 20" in text
        assert "--seed 3" in text and "benchnb tell new answers.csv" in text
        assert found["sources"] in text and "items_1.txt" in text
        assert "logic" in text and "algebra" in text
    page = Tags(html)
    assert "svg" in page.tags and "script" not in page.tags and "img" not in page.tags
    for _, name, value in page.values:
        assert name not in ("src", "srcset") and not name.startswith("on")
        assert name == "href" or name == "xmlns" or "//" not in (value or "")
    assert "default-src 'none'" in html and "prefers-color-scheme: dark" in html
    assert 'name="viewport"' in html


def test_the_guard_and_tasks_with_too_few_items(call):
    answer(begin(call, folds=6), 1.0)
    call("report", "new")
    text, report = Path("new/report.md").read_text(), Evaluation.load("new").report()
    assert report["notes"] and all(note[:40] in text for note in report["notes"])
    for ends in (report["tasks"][name]["interval"] for name in report["tasks"]):
        assert ends != [0, 1] or "too few items" in text
    assert "0.000 to 1.000" not in text


def test_hostile_names_do_nothing(call):
    run = begin(call, "--model", HOSTILE, method="random", budget=60, folds=0)
    assert HOSTILE in run.ask()
    answer(run)
    call("report", "new")
    html, text = (Path("new", f"report.{end}").read_text() for end in ("html", "md"))
    page = Tags(html)
    assert not {"img", "script", "a"} & {*page.tags} and "\x1b" not in html + text
    outside = re.sub(r"(?ms)^(```+).*?^\1$", "", text)
    assert "<img" not in outside.replace("\\<img", "")
    assert "[y](" not in outside.replace("\\[y\\](", "")


def test_an_evaluation_that_is_not_finished(call):
    run = begin(call, "--batch", 8)
    answer(run)
    call("report", "new", "--out", "half.md")
    assert not Path("new/report.html").exists()
    text = Path("half.md").read_text()
    assert "Not finished" in text and "8 of 60" in text and "12 are missing" in text
    assert "The score lies between" in text
    assert all(name in text for name in Evaluation.load("new").ask() if name != HOSTILE)
    assert "benchnb tell new answers.csv" in text


def test_a_method_that_chooses_its_items_has_no_score_before_the_end(call):
    run = begin(call, method="kmeans", folds=0)
    run.tell({run.ask()[0]: 1.0})
    call("report", "new", "--out", "half.html")
    html = Path("half.html").read_text()
    assert "Not finished" in html and "The score lies" not in html


def test_evaluations_of_before_and_of_python_have_reports(call):
    answer(begin(call))
    path = Path("new/evaluation.json")
    state = json.loads(path.read_text())
    assert state["plan"].pop("made_with")["command"].startswith("benchnb plan s.parquet")
    path.write_text(json.dumps(state))
    call("report", "new", "--out", "old.md")
    text = Path("old.md").read_text()
    assert "AIPW(" in text and "benchnb plan" not in text


def test_mistakes_are_one_line(call):
    answer(begin(call))
    for argv, words in [
        (["report", "nowhere"], "no evaluation in 'nowhere'"),
        (["report", "new", "--out", "x.docx"], "--out 'x.docx' must end in"),
        (["report", "new", "--out", "s.parquet/x.md"], "s.parquet"),
    ]:
        err = call(*argv)
        assert words in err and err.count("\n") == 1, err
