"""Metric, filter and harness of the sources' logs are remembered; results that were not
asked are kept, and the exact score is given where all are there."""

import json
import os
import shutil
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from helpers.logs import (
    TIME,
    inspect_log,
    lm_eval_row,
    right_or_wrong,
    write_eval,
    write_results,
    write_rows,
)

from benchnb.cli.app import main
from benchnb.data.render import format_points
from benchnb.data.scores import Scores
from benchnb.live.bundles import read_bundle
from benchnb.live.evaluation import Evaluation

SUMS, GEN = right_or_wrong(9, 40), right_or_wrong(9, 20, seed=1)


def rows_of(task, number, right):
    "Two metrics, or two filters; what is not meant is the contrary"
    if task == "sums":
        more = {"metrics": ["acc", "acc_norm"], "acc_norm": 1 - right}
        return [lm_eval_row(task, number, right, **more)]
    pairs = (("strict", right), ("loose", 1 - right))
    return [lm_eval_row(task, number, x, "exact_match", f) for f, x in pairs]


def log(folder, model, ids, row, tasks="tasks", **more):
    "What lm-evaluation-harness writes for two tasks"
    place = Path(folder, model.replace("/", "__"))
    for task, numbers in ids.items():
        right = (SUMS if task == "sums" else GEN)[row]
        lines = [r for n in numbers for r in rows_of(task, n, int(right[n]))]
        write_rows(place / f"samples_{task}_{TIME}.jsonl", lines)
    where = {t: {"metadata": {"config_source": f"{tasks}/{t}.yaml"}} for t in ids}
    write_results(place, model, ids, configs=where, **more)


ALL = {"sums": range(40), "gen": range(20)}


@pytest.fixture(scope="module")
def logged(tmp_path_factory):
    "Logs of eight models with two metrics and two filters, and their table"
    folder = tmp_path_factory.mktemp("logged")
    for number in range(8):
        log(folder / "logs", f"m{number}", ALL, number)
    read = ["--metric", "acc,exact_match", "--filter", "none,strict"]
    argv = ["import", "lm-eval", f"{folder}/logs", "--out", f"{folder}/s.parquet"]
    assert main([*argv, *read]) == 0
    bare = Scores.from_parquet(folder / "s.parquet")
    facts = ["metric", "filter", "harness", "call", "reading"]
    bare.items = bare.items.drop(columns=facts, errors="ignore")
    bare.to_parquet(folder / "bare.parquet")  # as a table from another place
    (folder / "tasks").mkdir()
    for task in ALL:
        (folder / "tasks" / f"{task}.yaml").write_text(f"task: {task}\n")
    return folder


@pytest.fixture
def give(logged, tmp_path, monkeypatch, capfd):
    "Give a command beside these; what it printed, or its error"
    shutil.copytree(logged, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)

    def call(line, wrong=False):
        code = main(line.split())
        out, err = capfd.readouterr()
        assert (code != 0) == wrong, out + err
        return err if wrong else out

    return call


def plan(give, more="", table="s.parquet", budget=12):
    how = f"--method random --budget {budget} --folds 0 --out new"
    return give(f"plan {table} {how} --model o/new {more}")


def asked():
    return json.loads(Path("new/samples_1.json").read_text())


def check_answers():
    "Those of acc and of strict"
    found, right = Evaluation.load("new").answers, {"sums": SUMS, "gen": GEN}
    wanted = {n: right[n.split("/")[0]][8][int(n.split("/")[1])] for n in found}
    assert found == wanted and len(found) == 12


def read_as(give, logs, metric="acc,exact_match", filter="none,strict"):
    "Say at import how a log is to be read"
    how = f"--metric {metric} --filter {filter} --out read.parquet"
    give(f"import lm-eval {logs} {how}")


def test_tell_reads_as_the_sources_were_read(give):
    plan(give)
    log("new/logs", "o/new", asked(), 8)
    before = Path("new/evaluation.db").read_bytes()
    for metric, filter, odd in (
        ("acc_norm,exact_match", "none,strict", "'acc_norm' on sums"),
        ("acc,exact_match", "none,loose", "'loose' on gen"),
    ):
        read_as(give, "new/logs", metric, filter)
        err = give("tell new read.parquet", wrong=True)
        assert odd in err and "the sources have" in err and err.count("\n") == 1
    err = give("tell new new/logs --format inspect", wrong=True)
    assert "the numbers that lm-eval gave them" in err
    assert Path("new/evaluation.db").read_bytes() == before
    give("tell new new/logs")
    check_answers()


def test_another_metric_is_taken_only_where_the_log_lacks_that_of_the_sources(give):
    plan(give)
    log("new/logs", "o/new", asked(), 8)
    for path in Path("new/logs").rglob("samples_*"):
        path.write_text(path.read_text().replace('"acc"', '"accuracy"'))
    err = give("tell new new/logs", wrong=True)
    assert "has no metric 'acc': choose from 'accuracy', 'acc_norm'" in err
    read_as(give, "new/logs", "accuracy,exact_match")
    err = give("tell new read.parquet", wrong=True)
    assert "'accuracy' on sums" in err and "--other-metric" in err
    give("tell new read.parquet --other-metric")
    check_answers()


def test_a_table_from_elsewhere_learns_it_from_the_first_table_that_is_told(give):
    plan(give, "--harness lm-eval", "bare.parquet")
    ids = asked()
    first = {task: numbers[::2] for task, numbers in ids.items()}
    log("part", "o/new", first, 8)
    err = give("tell new part", wrong=True)
    assert "benchnb import lm-eval part --filter" in err and err.count("\n") == 1
    read_as(give, "part")
    give("tell new read.parquet")
    log("rest", "o/new", {task: numbers[1::2] for task, numbers in ids.items()}, 8)
    give("tell new rest")  # read in the same way
    check_answers()


def test_what_the_import_was_told_holds_for_the_target(give):
    "Repeated answers in the sources' logs, and then in the target's"
    words = "model,item,score\na,q1,0\na,q1,1\nb,q1,0\n"
    rows = [f"{m},q{n},{n % 2}" for m in "abcdefgh" for n in range(2, 30)]
    Path("twice.csv").write_text(words + "\n".join(rows))
    give("import twice.csv --repeated last --out t.parquet")
    give("plan t.parquet --method random --budget 29 --folds 0 --out t")
    names = Evaluation.load("t").ask()
    lines = [f"{name},{score}" for score in (0, 1) for name in names]
    Path("answers.csv").write_text("\n".join(["item,score", *lines]))
    give("tell t answers.csv")
    assert {*Evaluation.load("t").answers.values()} == {1.0}


def run_as(shots, version):
    "What the results file says of how the tasks were run"
    return {"n-shot": {"sums": shots, "gen": 5}, "versions": {"sums": version}}


@pytest.mark.slow
def test_other_shots_or_another_version_than_the_sources_are_refused(give, harness):
    for number in range(8):
        log("logs", f"m{number}", ALL, number, **run_as(5, 2.0))
    read = "--metric acc,exact_match --filter none,strict"
    out = give(f"import lm-eval logs --out s.parquet {read}")
    assert "shots: 5\nversion: 2\n" in out
    assert "--num_fewshot 5" in plan(give)
    for one, said in (run_as(0, 2), "shots 0"), (run_as(5, 3), "version 3"):
        log("new/logs", "o/new", asked(), 8, **one)
        err, what = give("tell new new/logs", wrong=True), said.split()[0]
        own = {"shots": "5", "version": "2"}[what]
        assert f"task sums has {said} in '" in err and err.count("\n") == 1
        assert f"but {own} in the sources: leave one out, run it again with" in err
        assert err.endswith(f"or let {what} differ (--differing {what})\n")
        assert not Evaluation.load("new").answers
        give("publish s.parquet --method kmeans --budget 12 --folds 0 --out small")
        log("whole", "o/new", ALL, 8, **one)
        err = give("estimate whole --bundle small --format lm-eval", wrong=True)
        assert said in err and "the sources" in err
        shutil.rmtree("small")
        log("logs", "m3", ALL, 3, **one)
        err = give(f"import lm-eval logs --out t.parquet {read}", wrong=True)
        assert said in err and f"but {own} in 'logs/m0/" in err
    log("new/logs", "o/new", asked(), 8, **run_as(5, 2))
    give("tell new new/logs")
    check_answers()
    for more in "", " -f 5":
        shutil.rmtree("new")
        plan(give)
        give("run new -- lm_eval --model hf" + more)
        assert ("--num_fewshot 5" in ran()[-1]) == (not more)
    log("logs", "m3", ALL, 3)  # older versions do not say it
    give(f"import lm-eval logs --out t.parquet {read}")


def test_another_version_of_a_task_of_inspect_is_refused(give):
    for number in range(3):
        head, samples = inspect_log(f"m{number}", "quiz", ["C", "I"])
        head["eval"]["task_version"] = 1 + number // 2
        write_eval(f"evals/{number}.eval", head, samples)
    err = give("import inspect evals --out q.parquet", wrong=True)
    assert "task quiz has version 2 in 'evals/2.eval', but 1 in 'evals/0.eval'" in err
    Path("evals/2.eval").unlink()
    give("import inspect evals --out q.parquet")
    assert {*Scores.from_parquet("q.parquet").items["version"]} == {"1"}


PROGRAM = """#!{python}
import pathlib, sys
sys.path[:0] = {path}
with open("ran.txt", "a") as file:
    file.write(" ".join(sys.argv[1:]) + chr(10))
import test_metric
test_metric.log(sys.argv[-1], "o/new", test_metric.asked(), 8)
"""


@pytest.fixture
def harness(give, monkeypatch):
    "A program named lm_eval, which logs what was asked"
    path = [str(Path(__file__).parent), *sys.path]
    Path("bin").mkdir()
    Path("bin/lm_eval").write_text(PROGRAM.format(python=sys.executable, path=path))
    Path("bin/lm_eval").chmod(0o755)
    monkeypatch.setenv(
        "PATH", f"{Path('bin').absolute()}{os.pathsep}{os.environ['PATH']}"
    )


def ran():
    path = Path("ran.txt")
    return path.read_text().splitlines() if path.exists() else []


@pytest.mark.slow
def test_run_inherits_all_and_finds_the_tasks(give, harness):
    out = plan(give)
    assert "--include_path tasks" in out
    run = "run new {} -- lm_eval --model hf{}"
    for more in ("--limit 5", "--limit=5", "-L 5", "--samples x.json"):
        err = give(run.format("", f" {more}"), wrong=True)
        assert f"leave {more.partition('=')[0].split()[0]} out" in err
    assert not ran()  # it is refused before anything runs
    assert "score  " in give(run.format("", ""))
    check_answers()
    assert "--include_path tasks" in ran()[0]
    shutil.rmtree("new")
    plan(give)
    give(run.format("", " --include_path here"))
    assert "--include_path here" in ran()[1]
    assert ran()[1].count("--include_path") == 1
    Path("tasks/method.json").touch()  # a published folder, perhaps a stranger's
    shutil.rmtree("new")
    assert "--include_path tasks" not in plan(give)


@pytest.mark.slow
def test_what_run_is_told_is_remembered_and_no_run_is_lost(give, harness):
    plan(give, table="bare.parquet")
    err = give("run new -- lm_eval --model hf", wrong=True)
    assert "choose filter from 'strict', 'loose'" in err and "nothing runs twice" in err
    assert "benchnb import lm-eval new/logs/round_1 --filter" in err
    read_as(give, "new/logs/round_1")
    give("tell new read.parquet")
    give("run new -- lm_eval --model hf")
    assert len(ran()) == 1
    check_answers()
    choices = Evaluation.load("new").plan.choices
    assert {*choices["metric"].split(",")} == {"acc", "exact_match"}
    assert {*choices["filter"].split(",")} == {"none", "strict"}


def test_a_bundle_hands_it_on(give):
    how = "--method kmeans --budget 12 --folds 0 --harness lm-eval"
    give(f"publish s.parquet {how} --out small")
    items = read_bundle("small").items_
    assert items.groupby("task")["metric"].first().to_dict() == {
        "gen": "exact_match", "sums": "acc"
    }  # fmt: skip
    give("plan small --out new --model o/new")
    log("new/logs", "o/new", asked(), 8)
    give("tell new new/logs")
    check_answers()


def test_a_table_of_document_numbers_is_for_its_harness(give):
    how = "plan s.parquet --method random --budget 12 --folds 0"
    err = give(f"{how} --harness inspect --out x", wrong=True)
    assert "lm-eval" in err and "inspect" in err
    err = give(f"{how} --harness what --out x", wrong=True)
    assert "helm" not in err and "lm-eval, inspect, swebench" in err
    err = give(f"{how} --harness helm --out x", wrong=True)
    assert "helm runs no items" in err and "lm-eval, inspect, swebench" in err


# All results, when some were asked ---------------------------------------------------


def exact():
    return (SUMS[8].sum() + GEN[8].sum()) / 60


def test_a_log_with_everything_gives_the_exact_score(give):
    plan(give)
    log("all", "o/new", ALL, 8)
    out = give("tell new all")
    assert "12 told, 12 of 60 items in all; 48 more are kept" in out
    give("paired new all --format lm-eval")  # reads them as the evaluation does
    report = json.loads(give("estimate new --json"))
    rank = 1 + (Scores.from_parquet("s.parquet").truth() > exact()).sum()
    assert report["exact_rank"] == pytest.approx(rank)
    line = (
        f"exact     {format_points(exact())} points, rank {rank}   (all 60 items have a"
    )
    assert line in out and line in give("estimate new")
    assert " models by the estimate" in out
    assert report["exact"] == pytest.approx(exact(), abs=1e-6)
    assert report["items"]["spent"] == 12
    check_answers()
    again = Evaluation.load("new")
    assert len(again.told.unrequested) == 48 and again.full_score() == pytest.approx(
        exact()
    )


def test_what_was_not_asked_is_kept_and_counts_when_it_is_asked(give):
    plan(give)
    part = {"sums": range(40)}
    log("part", "o/new", part, 8)
    out = give("tell new part")
    mine = len(asked()["sums"])
    assert f"{mine} told, {mine} of 60 items in all; {40 - mine} more are kept" in out
    log("rest", "o/new", {"gen": range(20)}, 8)
    assert f"exact     {format_points(exact())} points" in give("tell new rest")
    log("wrong", "o/new", part, 7)  # another run
    assert "before and" in give("tell new wrong", wrong=True)
    give("publish s.parquet --method kmeans --budget 12 --folds 0 --out small")
    out = give("estimate part --bundle small --format lm-eval", wrong=True)
    assert "missing" in out
    shutil.copytree("rest", "part", dirs_exist_ok=True)
    out = give("estimate part --bundle small --format lm-eval")
    assert f"exact     {format_points(exact())} points" in out


def begun(name, number, *more):
    "An evaluation from a table of its own; the table"
    source = Scores(np.random.default_rng(number).integers(0, 2, (24, 30)))
    source.to_parquet(f"{name}.parquet")
    words = ["plan", f"{name}.parquet", "--method", "random", "--budget", "9", *more]
    return main([*words, "--out", name]), source


def test_a_target_among_the_sources_is_said(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert begun("new", 1, "--model", "model3 ")[0] == 2
    assert "the model 'model3 ' is among the sources" in capsys.readouterr().err
    assert begun("new", 1)[0] == 0
    answers = {"item": Evaluation.load("new").ask(), "score": 1, "model": "model3"}
    pd.DataFrame(answers).to_csv("a.csv", index=False)
    assert main(["tell", "new", "a.csv"]) == 0
    assert "note: 'model3' is among the sources" in capsys.readouterr().err


def test_two_tables_of_sources_and_confidences_are_said(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for number, name in enumerate("ab"):
        source = begun(name, number)[1]
        live = Evaluation.load(name)
        live.tell({item: float(item[-1] > "4") for item in live.ask()})
    assert main(["paired", "a", "b"]) == 0
    assert "two tables of sources" in capsys.readouterr().out
    frame = pd.DataFrame(0.1 + 0.8 * source.values, source.models.index)
    long = frame.stack().rename_axis(["model", "item"]).rename("score").reset_index()
    long.to_csv("long.csv", index=False)
    assert main(["import", "table", "long.csv", "--out", "c.parquet"]) == 0
    assert "confidences in the answers are not right" in capsys.readouterr().out
