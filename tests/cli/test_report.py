"""A report for a colleague: one HTML file and one Markdown file that say the same."""

import json
from dataclasses import replace
from datetime import date
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from helpers.small import halves, table

from benchnb.cli.app import main
from benchnb.cli.report import score_picture, task_results
from benchnb.data.render import format_points
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
    items = items.assign(metric="acc_norm", filter="none", harness="lm-eval")
    items.index = [HOSTILE, *items.index[1:]]
    Scores(scores.values, items).to_parquet("s.parquet")

    def give(*argv):
        code = main([str(word) for word in argv])
        out, err = capsys.readouterr()
        return err if code else out

    return give


FILES = ["new/report.html", "new/report.md"]
REPORT = ["estimate", "new", "--html", FILES[0]]


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
    assert call(*REPORT, "--md", "new/report.md").split() == FILES
    found, page = json.loads(call("estimate", "new", "--json")), Page("new/report.html")
    (low, high), (best, worst) = found["interval"], found["rank_interval"]
    for text in (page.text, Path("new/report.md").read_text()):
        assert (
            f"would score about {format_points(found['score'])} points on all 60"
            in text
        )
        assert f"(95% interval {format_points(low)} to {format_points(high)})" in text
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
    call(*REPORT, "--md", "new/report.md")
    text, report = Path("new/report.md").read_text(), Evaluation.load("new").report()
    assert report["notes"] and all(note[1:] in text for note in report["notes"])
    shown = call("estimate", "new")
    assert "0.0 to 100.0" not in text and "0.0 to 100.0" not in shown
    part = {"score": 1.0, "rank": 1, "items": 8, "few": False, "kind": "conformal"}
    tasks = {n: part | {"sources": n, "interval": [0.0, 1.0]} for n in (18, 19)}
    tasks["all of it"] = tasks[18] | {"kind": "exact"}
    found = task_results({"tasks": tasks, "level": 0.95, "flags": []}).cells["interval"]
    assert [*found] == ["too few sources", "too few items", "exact"]  # 95% takes 19


def test_hostile_names_do_nothing(call):
    run = begin(call, "--model", HOSTILE, "--budget", 60, method="random", folds=0)
    assert HOSTILE in run.ask()
    answer(run)
    call(*REPORT, "--md", "new/report.md")
    text, page = Path("new/report.md").read_text(), Page("new/report.html")
    assert not {"img", "script", "a"} & page.tags and "\x1b" not in page.text + text
    assert r"\<img src=x onerror=alert(1)\>\|\`x\`\[y\](http://z)" in text
    outside = [line for line in text.split("\n") if not line.startswith("    ")]
    assert "<img" not in "\n".join(outside).replace(r"\<", "")


def test_a_report_of_before_has_no_command_and_secrets_are_left_out(call):
    "Earlier versions kept a key that was among the arguments of the model"
    answer(begin(call, "--budget", 20, "--model", "max_tokens"))
    live = Evaluation.load("new")
    typed = live.plan.command
    secret = f"{typed} --model-args model=gpt,bearer=sk-123"
    with live.store.changing():
        live.store.write(
            replace(live._state(), plan=replace(live.plan, command=secret))
        )
    call("estimate", "new", "--md", "one.md")
    assert (
        not Path("new/report.md").exists() and "123" not in Path("one.md").read_text()
    )
    assert "--model-args model=gpt,bearer=..." in Path("one.md").read_text()
    assert typed.startswith("benchnb plan s.parquet")
    with live.store.changing():
        live.store.write(replace(live._state(), plan=replace(live.plan, command=None)))
    call("estimate", "new", "--md", "one.md")
    text = Path("one.md").read_text()
    assert "aipw(level=0.95" in text and "seed 3" in text and "benchnb plan" not in text


def test_mistakes_are_one_line(call):
    begin(call, "--budget", 20)
    for argv, words in [
        (["estimate", "nowhere", "--md", "a.md"], "no evaluation in 'nowhere'"),
        (REPORT, "20 items still to be told: benchnb tell new"),
        (["estimate", "new", "--html", "x.docx"], "--html 'x.docx' must end in .html"),
        (
            ["estimate", "x", "--bundle", "b", "--md", "a.md"],
            "are for the folder of an",
        ),
    ]:
        err = call(*argv)
        assert words in err and err.count("\n") == 1, err
    assert not Path("new/report.html").exists()


def text_of(call, *more):
    "The report of the folder new in Markdown"
    call(*REPORT, "--md", "new/report.md", *more)
    return Path("new/report.md").read_text()


def test_what_was_measured_when_and_how_to_begin_again(call):
    answer(begin(call, "--budget", 20))
    text = text_of(call)
    assert text.startswith("# new: estimated score\n")  # the folder's name
    first = text.split("\n\n")[1]
    assert "metric acc_norm, filter none, harness lm-eval" in first
    assert str(date.today()) in first
    assert "on all 60 items (acc_norm)" in text and "The model" not in text
    commands = [line[4:] for line in text.split("\n") if line.startswith("    ")]
    how = "--metric acc_norm --filter none --out s.parquet"
    assert commands[0] == f"benchnb import lm-eval LOGS {how}"
    assert commands[1].startswith("benchnb plan s.parquet")
    alike = str(Scores.from_parquet("s.parquet").likeness())
    assert "unrelated ones" in alike and alike in text


def test_without_a_usable_interval_one_box_says_why_and_what_to_do(call):
    answer(begin(call, "--budget", 20, method="kmeans"))  # 18 sources
    text, page = text_of(call), Path("new/report.html").read_text()
    boxes = [line for line in text.split("\n") if line.startswith("> ")]
    assert len(boxes) == 1 and "No usable 95% interval" in boxes[0]
    printed = call("estimate", "new")
    for words in ("18 earlier models", "at least 19", "run all items", "with aipw"):
        assert words in boxes[0] and words in " ".join(printed.split())
    assert printed.count("usable") == 1 and " of 19 models" not in printed
    found = json.loads(call("estimate", "new", "--json"))
    assert found["interval"] == [None, None] and found["rank"] is None
    top = text.partition("## Tasks")[0]
    for words in ("too few items", "0.0 to 100.0", " of 19 models", "(95% interval"):
        assert words not in top
    assert 'stroke-width="3"' not in page and "The score, above" in page


def test_the_exact_score_leads_where_all_items_have_results(call):
    run = begin(call, "--budget", 20, "--model", "org/new")
    names = list(run.items.index)
    run.tell({name: float(i % 3 == 0) for i, name in enumerate(names)})
    text, found = text_of(call), run.report()
    exact, known = found["exact"], run.method.source_scores_[:, 0]
    assert abs(found["score"] - exact) > 0.001
    head = text.partition("## Figures")[0]
    assert (
        f"scores {format_points(exact)} points on the 60 items (acc_norm), all of"
        in head
    )
    place = 1 + sum(known > exact + 1e-5) + sum(abs(known - exact) < 1e-5) / 2
    assert f"rank {place:g} of 19 models" in head
    assert f"{format_points(found['score'])} " not in head and "estimated" not in head
    assert f"this model {format_points(exact)}" in Path("new/report.html").read_text()
    assert f"| score | {format_points(exact)} points |" in text and "60 of 60" in text
    assert f"| estimate | {format_points(found['score'])} " in text
    assert " from the 20 items that were planned |" in text
    scores = np.array([i % 3 == 0 for i in range(60)], dtype=float)
    for task in run.items["task"].unique():
        own = scores[run.items["task"] == task]
        assert f"| {task} | {len(own)} | {format_points(own.mean())} | exact |" in text


def test_a_score_that_its_check_contradicts_is_not_to_be_relied_on(call):
    source = table(1, 80)
    items = source.items.assign(weight=1.0)
    Scores(source.values, items, source.models).to_parquet("s.parquet")
    ease = source.values.mean(0)
    run = begin(call, "--budget", 20, method="kmeans")
    other = dict(zip(items.index, (ease < np.median(ease)) * 1.0, strict=True))
    run.tell({name: other[name] for name in run.ask()})
    text, found = text_of(call), run.report()
    assert "misfit" in found["flags"] and found["kind"] == "none"
    assert found["interval"] == [None, None] and found["rank"] is None
    assert text.index("> Do not rely on this score") < text.index("would score about")
    assert "run all items" in text and "with aipw" in text
    top, printed = text.partition("## How")[0], call("estimate", "new")
    low, high = map(format_points, run.estimate().interval)
    for shown in (top, printed):
        assert " of 81 models" not in shown and "95% interval" not in shown
        assert f"{low} to {high}" not in shown and "±" not in shown
    assert printed.split()[1:3] == ["do", "not"]
    assert "usual is" in top.partition("would score")[0]
    assert printed.index("usual is") < printed.index("\nscore ")
    for word in ("AIPW: ", "person fit: "):
        assert (word[:-2] in top) == (word in top)


def test_outside_the_range_a_random_draw_holds_and_the_words_are_explained(call):
    answer(begin(call, "--budget", 20), 1.0)
    text = text_of(call)
    assert "> The model is unlike the 18 earlier models" in text
    assert "holds all the same, because the items were drawn at random" in text
    assert "Do not rely" not in text and "sources: the earlier models" in text


def test_the_page_suits_a_phone_and_the_axis_has_no_minus_zero(call):
    assert "-0.0" not in score_picture(0.1, [0.0, 0.3], np.array([0.0, 0.2]))
    answer(begin(call, "--budget", 20))
    text_of(call)
    page = Path("new/report.html").read_text()
    assert "pre { white-space: pre-wrap" in page and "how the interval was made" in page


def test_a_published_readme_names_metric_and_filter(call):
    call(
        "publish", "s.parquet", *"--method kmeans --budget 9 --folds 0 --out b".split()
    )
    words = "Scores: metric acc_norm, filter none, harness lm-eval."
    assert words in Path("b/README.md").read_text()
