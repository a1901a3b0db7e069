"""The commands of an evaluation, from logs to an estimate; two models compared."""

import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from helpers.logs import (
    TIME,
    inspect_log,
    lm_eval_row,
    right_or_wrong,
    write_eval,
    write_lm_eval,
    write_rows,
)
from helpers.small import files_in, halves

from benchnb.cli.app import main
from benchnb.data.scores import Scores
from benchnb.live.evaluation import Evaluation

RIGHT = {"sums": right_or_wrong(9, 30), "logic": right_or_wrong(9, 20, seed=1)}


@pytest.fixture(scope="module")
def logged(tmp_path_factory):
    "The logs of eight models, and their table"
    folder = tmp_path_factory.mktemp("logged")
    for number in range(8):
        answers = {task: right[number].tolist() for task, right in RIGHT.items()}
        write_lm_eval(folder / "logs", f"m{number}", answers)
    argv = ["import", "lm-eval", f"{folder}/logs", "--out", f"{folder}/s.parquet"]
    assert main(argv) == 0
    halves()[0].to_parquet(folder / "made.parquet")
    return folder


@pytest.fixture
def call(logged, tmp_path, monkeypatch, capsys):
    "Give a command beside these; its exit code and what it printed"
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    shutil.copytree(logged, tmp_path, dirs_exist_ok=True)

    def give(*argv):
        code = main([str(word) for word in argv])
        out, err = capsys.readouterr()
        wide = max(map(len, out.splitlines()), default=0) > 80
        assert not wide or "--log" in out or "--json" in argv
        begins = re.compile(r"\S+: \d+ models x |  ")
        read = all(map(begins.match, out.splitlines()))
        assert code == 0 or (code == 2 and read and err.count("\n") == 1), err
        return code, out, err

    return give


def plan(call, *more, out="new", method="random", budget=20, table="s.parquet"):
    "Begin an evaluation; what was printed"
    argv = ["--method", method, "--budget", budget, "--folds", 0, "--out", out]
    code, text, err = call("plan", table, *argv, *more)
    assert code == 0, err
    return text


def listed(call, out="new", method="random"):
    "An evaluation that asks for a list of items of the small table; what it asks"
    given = dict(out=out, method=method, budget=12, table="made.parquet")
    plan(call, "--harness", "list", **given)
    return Evaluation.load(out).ask()


def write_list(names, score=1, more="", head="item,score"):
    "A list of answers"
    lines = [head, *(f"{name},{score}" for name in names), *more.splitlines()]
    Path("answers.csv").write_text("\n".join(lines) + "\n")


def wanted(folder="new"):
    "Task -> numbers, in the newest input of the harness"
    files = sorted(Path(folder).glob("samples_*.json"), key=lambda f: int(f.stem[8:]))
    return json.loads(files[-1].read_text())


def run_harness(folder, ids, model="new", row=8, **how):
    "What the harness would log about these items, sorted as it sorts them"
    answers = {t: {n: int(RIGHT[t][row][n]) for n in sorted(ids[t])} for t in ids}
    return write_lm_eval(folder, model, answers, **how)


@pytest.mark.parametrize("method", ["adaptive_irt", "tailored_bench"])
def test_from_logs_to_a_score(method, call):
    out = plan(call, "--model", "org/new", method=method)
    assert "lm_eval --model hf" in out and "pretrained=org/new" in out
    assert "then: benchnb tell new new/logs" in out
    for number in range(30):
        assert all(ids == sorted(set(ids)) and ids for ids in wanted().values())
        assert f"--tasks {','.join(wanted())} " in out
        time = TIME.replace("03-44", f"03-{number:02d}")
        run_harness("new/logs", wanted(), time=time)
        code, out, err = call("tell", "new", "new/logs")
        assert code == 0, err
        if out.split("\n")[2].startswith("score"):
            break
    report = json.loads(call("estimate", "new", "--json")[1])
    assert report["items"] == {"spent": 20, "full": 50}
    truth = np.concatenate([right[8] for right in RIGHT.values()]).mean()
    assert abs(report["score"] - truth) < 0.35
    assert call("estimate", "new")[1].startswith("score")


def test_the_same_with_inspect(call):
    "The harness is that of the logs; a task in a file is run as arith.py@arith"
    for number in range(6):
        head, samples = inspect_log("m", "arith", RIGHT["sums"][number].tolist())
        head["eval"] |= {"task_file": "arith.py", "model": f"m{number}"}
        write_eval(f"inspect/{number}.eval", head, samples, zstd=number % 2)
    assert call("import", "inspect", "inspect", "--out", "i.parquet")[0] == 0
    out = plan(call, "--model", "o/new", budget="1200tokens", table="i.parquet")
    assert "random, 11 items" in out  # 105 tokens each
    assert "inspect eval arith.py@arith --model o/new" in out
    ids = list(map(int, out.split("--sample-id ")[1].split()[0].split(",")))
    head, samples = inspect_log("o/new", "arith", RIGHT["sums"][8].tolist())
    head["results"]["total_samples"] = len(ids)
    write_eval("new/logs/a.eval", head, [s for s in samples if s["id"] in ids])
    out = call("tell", "new", "new/logs")[1]
    assert "tokens    1,155 of 3,150 (36.7%)" in out


def test_a_run_that_broke_off_is_continued(call):
    plan(call)
    first = wanted()
    part = {task: ids[: len(ids) // 2] for task, ids in first.items()}
    run_harness("part", {task: ids for task, ids in part.items() if ids})
    assert call("tell", "new", "part")[0] == 0
    done = {(t, n) for t, ids in part.items() for n in ids}
    asked = {(t, n) for t, ids in first.items() for n in ids}
    assert {(t, n) for t, ids in wanted().items() for n in ids} == asked - done
    before = files_in(Path("new"))
    assert call("tell", "new", "part")[1].startswith("0 told")
    assert files_in(Path("new")) == before
    out = call("tell", "new", "--give-up")[1]
    assert f"unscored  {len(asked - done)} items" in out


def test_logs_of_an_unsorted_list_are_refused(call):
    plan(call)
    ids = wanted()["sums"]
    rows = [lm_eval_row("sums", n, int(RIGHT["sums"][8][n])) for n in ids]
    for row, wrong in zip(rows, ids[::-1], strict=True):
        row["doc_id"] = wrong
    write_rows(f"bad/new/samples_sums_{TIME}.jsonl", rows)
    before = files_in(Path("new"))
    err = call("tell", "new", "bad")[2]
    line = "benchnb import lm-eval bad --match hash --out read.parquet"
    assert "unsorted list" in err and line in err
    assert files_in(Path("new")) == before
    assert call(*line.split()[1:])[0] == 0
    assert call("tell", "new", "read.parquet")[0] == 0
    answers = Evaluation.load("new").answers
    assert all(answers[f"sums/{n}"] == RIGHT["sums"][8][n] for n in ids)


MISTAKES = {
    "plan s.parquet --out new --method random --budget 9": "'new' is not empty",
    "plan s.parquet --out x --method nonsense --budget 9": "no method 'nonsense'",
    "plan s.parquet --out x --budget 99tokens": "the table has no costs",
    "plan s.parquet --out x --budget 0": "--budget must be a whole number from 1 to",
    "plan s.parquet --budget 9": "Missing option '--out'",
    "plan s.parquet --out x": "benchnb recommend s.parquet --plus-minus 5",
    "plan s.parquet --out x --plus-minus 0.05": "--plus-minus is in points, from 0.1",
    "plan s.parquet --out x --budget 9 --level 95": "--level must lie in [0.5, 1)",
    "plan s.parquet --out x --budget 9 --folds 1": "--folds is 0 (none), or 2",
    "plan s.parquet --out x --budget 9 --harness no": "no harness 'no'",
    "plan new --out x": "is an evaluation that has begun",
    "paired new new": "A and B are both 'new'",
    "paired new other --level 2": "--level must lie in [0.5, 1)",
    "paired new logs": "'logs' has 8 models",
    "tell new nowhere": "no file or folder 'nowhere'",
    "tell new": "name the logs to tell",
    "tell new two": "2 models",
    "tell new other": "none of the items asked (10",
    "tell new poems --give-up": "nothing in 'poems' belongs to the items",
    "estimate new": "10 items still to be told: benchnb tell new new/logs",
    "import lm-eval logs --match x --out x.parquet": "--match 'x' is no choice",
}


def test_mistakes_are_one_line_and_change_nothing(call, monkeypatch):
    plan(call, budget=10)
    measured = "benchnb.evaluation.recommend.default_method"
    monkeypatch.setattr(measured, None)  # what is wrong is found before anything
    others = [n for n in range(30) if n not in wanted()["sums"]]
    run_harness("other", {"sums": others})
    write_lm_eval("poems", "new", {"poems": [1, 0, 1]})
    for number in (1, 2):
        run_harness("two", wanted(), f"new{number}")
    before = files_in(Path("new"))
    for line, words in MISTAKES.items():
        code, out, err = call(*line.split())
        assert code == 2 and words in err, (line, err)
        assert files_in(Path("new")) == before and not Path("x").exists(), line


@pytest.mark.slow
def test_who_names_no_method_gets_one(call):
    argv = ["plan", "s.parquet", "--budget", 9, "--out"]
    code, out, err = call(*argv, "x")
    assert code == 0 and "\nsources: 8 models" in out, err
    assert "\nmethod: stratified, " in out and "\nstratified, " in out
    assert len(json.loads(call(*argv, "y", "--json")[1])["ask"]) <= 9


@pytest.mark.usefixtures("few_trials")
def test_publish_and_plan_from_it(call):
    publish = ["publish", "made.parquet", "--budget", 12, "--method"]
    code, out, err = call(*publish, "kmeans", "--folds", 2, "--out", "small one")
    assert code == 0 and "benchnb plan 'small one' --out my_model" in out, err
    assert call("plan", "small one", "--out", "new", "--budget", 12)[0] == 0
    assert Evaluation.load("new").method.budget_ == 12
    bundle = ["plan", "small one", "--out", "x"]
    for argv, words in [
        ([*publish, "kmeans", "--out", "small one"], "not empty"),
        ([*publish, "kmeans", "--out", "s.parquet/x"], "'s.parquet' is a file"),
        ([*publish, "adaptive_irt", "--out", "x"], "other items"),
        ([*bundle, "--budget", 20], "12 items with kmeans: leave --budget out"),
        ([*bundle, "--plus-minus", 5], "leave --plus-minus out"),
        ([*bundle, "--method", "aipw"], "leave --method out"),
    ]:
        code, _, err = call(*argv)
        assert code == 2 and words in err and not Path("x").exists(), err


def test_a_file_of_many_models_needs_a_choice(call):
    names = listed(call)
    rows = [f"{m},{name},{m != 'm2':d}" for m in ("m1", "m2", "m3") for name in names]
    Path("all.csv").write_text("\n".join(["model,item,score", *rows]))
    err = call("tell", "new", "all.csv")[2]
    assert "3 models, the first is 'm1': choose one, as --model 'm1'" in err
    assert not Evaluation.load("new").answers
    assert call("tell", "new", "all.csv", "--model", "m2")[0] == 0
    live = Evaluation.load("new")
    assert set(live.answers.values()) == {0.0} and live.told.model == "m2"


def test_what_is_told_shows_its_format(call):
    "A list of answers, or a mapping, also where the harness writes logs"
    for name in ("answers.csv", "answers.json"):
        plan(call, out=name[-4:])
        names = Evaluation.load(name[-4:]).ask()
        if name.endswith("json"):
            Path(name).write_text(json.dumps(dict.fromkeys(names, 1)))
        else:
            Path(name).write_text("\n".join(["item,score", *(f"{n},1" for n in names)]))
        code, out, err = call("tell", name[-4:], name)
        assert code == 0 and "20 told" in out, err


LISTS = {
    "": "it is empty",
    "item;score\nq;1\n": "are separated by semicolons",
    "item,score,score\nq,1,0\n": "it has 'score' twice",
    "id,acc\nq,1\n": "id, acc: a list of answers has the columns item and score",
    "item,score\nq,good\n": "score 'good' of model",
    "item,successes,trials\nNAME,6,5": "score 1.2 of item",
}


def test_a_list_that_is_none_is_one_line(call):
    names = listed(call)
    for text, words in LISTS.items():
        Path("odd.csv").write_text(text.replace("NAME", names[0]))
        code, _, err = call("tell", "new", "odd.csv")
        assert code == 2 and words in err, (text, err)
    assert not Evaluation.load("new").answers


def test_two_answers_to_one_item_are_a_choice(call):
    names = listed(call)
    write_list(names, more=f"{names[0]},0")
    err = call("tell", "new", "answers.csv")[2]
    assert names[0] in err and "--repeated 'first', 'last', 'mean' or 'trials'" in err
    assert not Evaluation.load("new").answers
    for choice, score in {"first": 1, "last": 0, "mean": 0.5}.items():
        listed(call, choice)
        assert call("tell", choice, "answers.csv", "--repeated", choice)[0] == 0
        assert Evaluation.load(choice).answers[names[0]] == score
    write_list(names, more=f"{names[0]},1")  # the same twice is no contradiction
    assert call("tell", "new", "answers.csv")[0] == 0


def test_how_logs_are_read_is_said_once(call):
    "Two filters in every log: the choice of the first import holds for the next log"
    plan(call)
    first = {t: sorted(ids) for t, ids in wanted().items()}
    for part in (0, 1):
        for task, ids in first.items():
            rows = [
                lm_eval_row(task, n, int(RIGHT[task][8][n]) * good, filter=name)
                for name, good in (("loose", 1), ("strict", 0))
                for n in ids[part::2]
            ]
            write_rows(f"part{part}/new/samples_{task}_{TIME}.jsonl", rows)
    assert "choose filter from 'loose', 'strict'" in call("tell", "new", "part0")[2]
    assert Evaluation.load("new").plan.choices is None
    read = ["import", "lm-eval", "part0", "--filter", "loose", "--out", "read.parquet"]
    assert call(*read)[0] == 0 and call("tell", "new", "read.parquet")[0] == 0
    assert Evaluation.load("new").plan.choices == {"filter": "loose"}
    out = call("tell", "new", "part1")[1]
    assert out.split("\n")[2].startswith("score")
    found = Evaluation.load("new").answers
    assert all(found[f"{t}/{n}"] == RIGHT[t][8][n] for t in first for n in first[t])


@pytest.mark.slow
def test_methods_that_choose_tasks_need_tasks(call):
    "A wide table is asked what its columns are; the tasks are chosen, not drawn"
    head = "name," + ",".join(f"task{n}" for n in range(20))
    rows = [f"m{m}," + ",".join(f"0.{(7 * m * n + n + m) % 90 + 10}" for n in range(20))
            for m in range(1, 25)]  # fmt: skip
    Path("wide.csv").write_text("\n".join([head, *rows]))
    publish = ["publish", "wide.csv", "--method", "results_sim", "--budget", 5]
    line = "benchnb import table wide.csv --columns-are items or tasks"
    assert line in call(*publish, "--out", "small")[2]
    for kind in ("items", "tasks"):
        read = ["wide.csv", "--columns-are", kind, "--out", f"{kind}.parquet"]
        assert call("import", *read)[0] == 0
    err = call("publish", "items.parquet", *publish[2:], "--out", "small")[2]
    assert "results_sim chooses among tasks, and this table has one" in err
    chosen = []
    for seed in (0, 1):
        more = [*publish[2:], "--seed", seed, "--out", f"small{seed}"]
        assert call("publish", "tasks.parquet", *more)[0] == 0
        chosen.append(json.loads(Path(f"small{seed}", "subset.json").read_text()))
    assert chosen[0]["names"] == chosen[1]["names"] and len(chosen[0]["names"]) == 5


def test_a_run_may_stop_when_it_is_decided(call):
    scores = halves()[0]
    table = Scores(scores.values, scores.items.assign(weight=1.0))
    table.to_parquet("equal.parquet")
    more = ["--batch", 20, "--harness", "list"]
    for name in ("a", "b"):
        given = dict(out=name, method="aipw", budget=40, table="equal.parquet")
        out = plan(call, *more, **given)
        assert "20 items to run first, 40 at most, in batches" in out
        write_list(Evaluation.load(name).ask(), score=int(name == "b"))
        out = call("tell", name, "answers.csv", "--within", 30)[1]
        assert "score lies between" in out
    out = call("tell", "b", "--against", "a")[1]
    assert out.startswith("You may stop: b is better than a. After 20 of 60 items")
    assert "To go on all the same:\n" in out and "then: benchnb tell b" in out
    found = json.loads(call("tell", "b", "--against", "a", "--json")[1])
    assert found["standing"]["decision"] == "A is better" and len(found["ask"]) == 20
    assert found["standing"]["decided"] is True
    assert "is the same evaluation" in call("tell", "b", "--against", "./b")[2]
    assert "--within is in points, from 0.1" in call("tell", "b", "--within", 0.02)[2]


def test_what_was_given_up_was_not_answered(call):
    asked = listed(call)
    write_list(asked[:10])
    assert "10 told, 10 of 60 items in all" in call("tell", "new", "answers.csv")[1]
    out = call("tell", "new", "--give-up")[1]
    assert "10 of 60 items answered, 2 given up" in out


def test_a_gap_in_the_order_is_named(call):
    table = halves()[0]
    Scores(table.values, table.items.assign(weight=1.0)).to_parquet("equal.parquet")
    plan(call, "--batch", 20, "--harness", "list", budget=40, table="equal.parquet")
    live = Evaluation.load("new")
    order = list(live.items.index[live.method.coreset_])
    write_list([n for n in live.ask() if n != order[1]])
    out = call("tell", "new", "answers.csv", "--within", 30)[1]
    assert "After 1 of 60 items" in out
    assert f"Later ones count once {order[1]!r} is answered" in " ".join(out.split())


@pytest.mark.parametrize("more", [(), ("--format", "list"), ("--format", "table")])
def test_two_lists_of_answers_are_compared(more, call):
    names = [f"i{n}" for n in range(30)]
    write_list(names[:28])
    Path("answers.csv").rename("a.csv")
    write_list(names[2:], score=0)
    out = call("paired", "a.csv", "answers.csv", *more)
    assert out[0] == 0 and "a.csv is better than answers.csv" in out[1]
    text = " ".join(out[1].split())
    assert "2 items of A have no score in B, such as 'i0'" in text
    assert "2 items of B have no score in A, such as 'i28'" in text


def test_what_a_file_of_answers_lacks_is_said(call, tmp_path):
    call("plan", "made.parquet", "--method", "aipw", "--budget", 6, "--out", "part")
    asked = Evaluation.load("part").ask()
    rows = [f"{name},1" for name in asked[:4]]
    Path("some.csv").write_text("\n".join(["item,score", *rows]))
    out = call("tell", "part", "some.csv")[1]
    assert "not among these results: 2 of the 6 asked" in " ".join(out.split())
    out = " ".join(call("tell", "part", "--give-up")[1].split())
    assert "6 of 60 (10.0%), 4 of them with a score" in out
    Path("none.csv").write_text("item,score\n")
    assert "has no rows" in call("tell", "part", "none.csv")[2]
