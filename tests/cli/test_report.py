"""A report for a colleague: one HTML file and one Markdown file that say the same."""

import json
from html.parser import HTMLParser
from pathlib import Path

import pytest
from helpers.small import halves

from benchnb.cli.app import main
from benchnb.cli.estimate import task_results
from benchnb.data.scores import Scores
from benchnb.live.evaluation import Evaluation

HOSTILE = "<img src=x onerror=alert(1)>|`x`[y](http://z)\x1b[2J"


class Page(HTMLParser):
    "What elements a page has, all their attributes, and its text"

    def __init__(self, path):
        super().__init__()
        self.tags, self.values, self.text = set(), [], ""
        self.feed(Path(path).read_text())

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.values += attrs

    def handle_data(self, data):
        self.text += data


@pytest.fixture
def call(tmp_path, monkeypatch, capsys):
    "Give a command beside the table of sources; what it printed, or its error"
    monkeypatch.chdir(tmp_path)
    scores = halves()[0]
    items = scores.items.assign(weight=1.0, cost=100.0)
    items.index = [HOSTILE, *items.index[1:]]
    Scores(scores.values, items).to_parquet("s.parquet")

    def give(*argv):
        code = main([str(word) for word in argv])
        out, err = capsys.readouterr()
        return err if code else out

    return give


def begin(call, *more, method="aipw", folds=6):
    "An evaluation in the folder new"
    how = ["--method", method, "--folds", folds, "--seed", 3, "--harness", "list"]
    call("plan", "s.parquet", *how, "--out", "new", *more)
    return Evaluation.load("new")


def answer(run, score=None):
    "Answer what is asked: alternately, or always alike"
    asked = run.ask()
    run.tell({n: i % 2 if score is None else score for i, n in enumerate(asked)})


def test_both_files_say_the_same_and_need_nothing_else(call):
    answer(begin(call, "--model", "org/new", "--budget", 20))
    assert call("report", "new").split() == ["new/report.html", "new/report.md"]
    found, page = json.loads(call("estimate", "new", "--json")), Page("new/report.html")
    (low, high), (best, worst) = found["interval"], found["rank_interval"]
    for text in (page.text, Path("new/report.md").read_text()):
        assert f"org/new would score about {found['score']:.3f} on all 60" in text
        assert f"(95% interval {low:.3f} to {high:.3f})" in text
        assert f"rank {found['rank']:g} of {found['models']} models" in text
        assert f"({best:g} to {worst:g} at the ends" in text
        assert "20 of 60 (33.3%)" in text and "2,000 of 6,000 (33.3%)" in text
        assert "benchnb plan s.parquet --method aipw --folds 6 --seed 3" in text
        assert "benchnb tell new answers.csv" in text and found["sources"] in text
        assert all(task in text for task in found["tasks"])
        assert all(
            name in text for name in {*Evaluation.load("new").answers} - {HOSTILE}
        )
    assert "svg" in page.tags and not page.tags & {"script", "img", "link", "a"}
    for name, value in page.values:
        assert name not in ("src", "href") and not name.startswith("on")
        assert name == "xmlns" or "//" not in (value or "")


def test_all_caveats_stand_in_it_and_tasks_without_an_interval_say_why(call):
    answer(begin(call, "--budget", 20), 1.0)
    call("report", "new")
    text, report = Path("new/report.md").read_text(), Evaluation.load("new").report()
    assert report["notes"] and all(note[1:] in text for note in report["notes"])
    shown = call("estimate", "new")
    assert "0.000 to 1.000" not in text and "0.000 to 1.000" not in shown
    part = {"score": 1.0, "rank": 1, "items": 8, "few": False, "kind": "conformal"}
    tasks = {n: part | {"sources": n, "interval": [0.0, 1.0]} for n in (18, 19)}
    found = task_results({"tasks": tasks, "level": 0.95}).cells["interval"]
    assert [*found] == ["too few sources", "too few items"]  # 95% takes 19


def test_hostile_names_do_nothing(call):
    run = begin(call, "--model", HOSTILE, "--budget", 60, method="random", folds=0)
    assert HOSTILE in run.ask()
    answer(run)
    call("report", "new")
    text, page = Path("new/report.md").read_text(), Page("new/report.html")
    assert not {"img", "script", "a"} & page.tags and "\x1b" not in page.text + text
    assert r"\<img src=x onerror=alert(1)\>\|\`x\`\[y\](http://z)" in text
    outside = [line for line in text.split("\n") if not line.startswith("    ")]
    assert "<img" not in "\n".join(outside).replace(r"\<", "")


def test_a_report_of_before_has_no_command_and_secrets_are_left_out(call):
    "Earlier versions kept a key that was among the arguments of the model"
    answer(begin(call, "--budget", 20, "--model", "max_tokens"))
    path = Path("new/evaluation.json")
    state = json.loads(path.read_text())
    state["plan"]["command"] += " --model-args model=gpt,api_key=sk-123"
    path.write_text(json.dumps(state))
    call("report", "new", "--out", "one.md")
    assert (
        not Path("new/report.md").exists() and "123" not in Path("one.md").read_text()
    )
    assert "--model-args model=gpt,api_key=..." in Path("one.md").read_text()
    assert state["plan"].pop("command").startswith("benchnb plan s.parquet")
    path.write_text(json.dumps(state))
    call("report", "new", "--out", "one.md")
    text = Path("one.md").read_text()
    assert "aipw(level=0.95" in text and "seed 3" in text and "benchnb plan" not in text


def test_mistakes_are_one_line(call):
    begin(call, "--budget", 20)
    for argv, words in [
        (["report", "nowhere"], "no evaluation in 'nowhere'"),
        (["report", "new"], "20 items still to be told: benchnb tell new"),
        (["report", "new", "--out", "x.docx"], "--out 'x.docx' must end in .html"),
    ]:
        err = call(*argv)
        assert words in err and err.count("\n") == 1, err
    assert not Path("new/report.html").exists()
