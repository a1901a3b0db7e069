"""The commands of an evaluation, from logs to an estimate; two models compared."""

import json
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
from helpers.small import files_in, fitted, halves, prepared, table

from benchnb.cli.app import main
from benchnb.data.scores import Scores
from benchnb.evaluation.registry import LIBRARY, find_class
from benchnb.live.bundles import publish
from benchnb.live.evaluation import Evaluation

RIGHT = {"sums": right_or_wrong(9, 30), "logic": right_or_wrong(9, 20, seed=1)}


@pytest.fixture
def place(tmp_path, monkeypatch):
    "A folder with the logs of eight models, where the commands are given"
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    for number in range(8):
        answers = {task: right[number].tolist() for task, right in RIGHT.items()}
        write_lm_eval("logs", f"m{number}", answers)
    return tmp_path


@pytest.fixture
def call(place, capsys):
    "Give a command; its exit code and what it printed"

    def say(*argv):
        try:
            code = main([str(word) for word in argv])
        except SystemExit as stop:
            code = stop.code or 0
        out, err = capsys.readouterr()
        assert "Traceback" not in err
        assert (
            max(map(len, out.splitlines()), default=0) <= 80
            or "--log" in out
            or "--json" in argv
        )
        return code, out, err

    return say


def run_harness(folder, wanted, model="new", row=8, **how):
    "What the harness would log about these items, sorted as it sorts them"
    answers = {
        t: {n: int(RIGHT[t][row][n]) for n in sorted(ids)} for t, ids in wanted.items()
    }
    return write_lm_eval(folder, model, answers, **how)


def truth(row=8):
    "Score of a model on everything"
    return np.concatenate([right[row] for right in RIGHT.values()]).mean()


def last_input(folder):
    "The newest input of the harness"
    files = sorted(Path(folder).glob("samples_*.json"), key=lambda f: int(f.stem[8:]))
    return json.loads(files[-1].read_text())


def tell_all(folder, row):
    "Tell what is asked, opening the folder anew each time; the sizes of the rounds"
    sizes = []
    while asked := Evaluation.load(folder).ask():
        sizes.append(len(asked))
        Evaluation.load(folder).tell({name: row[name] for name in asked})
    return sizes


def write_list(names, score=1, more="", head="item,score"):
    "A list of answers"
    lines = [head, *(f"{name},{score}" for name in names), *more.splitlines()]
    Path("answers.csv").write_text("\n".join(lines) + "\n")


@pytest.mark.parametrize("method", ["random", "aipw", "adaptive_irt", "tailored_bench"])
def test_from_logs_to_a_score(method, call):
    code, out, _ = call("import", "lm-eval", "logs", "--out", "scores.parquet")
    assert code == 0 and out.startswith("8 models x 50 items, 2 tasks")
    argv = [
        "plan",
        "scores.parquet",
        "--method",
        method,
        "--budget",
        20,
        "--out",
        "new",
    ]
    code, out, err = call(*argv, "--model", "org/new")
    assert code == 0, err
    assert "lm_eval --model hf" in out and "pretrained=org/new" in out
    assert "then: benchnb tell new new/logs" in out
    for number in range(30):
        wanted = last_input("new")
        assert all(ids == sorted(set(ids)) and ids for ids in wanted.values())
        assert f"--tasks {','.join(wanted)} " in out
        run_harness("new/logs", wanted, time=TIME.replace("03-44", f"03-{number:02d}"))
        code, out, err = call("tell", "new", "new/logs")
        assert code == 0, err
        if out.split("\n")[2].startswith("score"):
            break
    code, out, _ = call("estimate", "new", "--json")
    report = json.loads(out)
    assert report["items"] == {"spent": 20, "full": 50}
    low, high = report["interval"]
    if low is not None:
        assert low <= report["score"] <= high
        ranks = [report["rank_interval"][0], report["rank"], report["rank_interval"][1]]
        assert 1 <= ranks[0] <= ranks[1] <= ranks[2]
    assert abs(report["score"] - truth()) < 0.35
    assert set(report["tasks"]) <= {"sums", "logic"}
    assert call("estimate", "new")[1].startswith("score")


def test_the_same_with_inspect(call):
    for number in range(6):
        head, samples = inspect_log(
            f"o/m{number}", "quiz", RIGHT["sums"][number].tolist()
        )
        write_eval(f"inspect/{number}.eval", head, samples, zstd=number % 2)
    assert call("import", "inspect", "inspect", "--out", "s.parquet")[0] == 0
    argv = ["plan", "s.parquet", "--method", "random", "--harness", "inspect"]
    code, out, err = call(
        *argv, "--budget", "1200tokens", "--out", "new", "--model", "o/new"
    )
    assert code == 0, err
    assert "random, 11 items" in out  # 105 tokens each
    ids = list(map(int, out.split("--sample-id ")[1].split()[0].split(",")))
    head, samples = inspect_log("o/new", "quiz", RIGHT["sums"][8].tolist())
    head["results"]["total_samples"] = len(ids)
    write_eval("new/logs/a.eval", head, [s for s in samples if s["id"] in ids])
    code, out, err = call("tell", "new", "new/logs")
    assert code == 0 and "tokens    1,155 of 3,150 (36.7%)" in out, err + out


def test_a_list_of_items_and_a_csv(call):
    call("import", "lm-eval", "logs", "--out", "s.parquet")
    argv = ["plan", "s.parquet", "--method", "random", "--harness", "list"]
    assert call(*argv, "--budget", 10, "--out", "new")[0] == 0
    lines = Path("new/items_1.txt").read_text().splitlines()
    assert lines[0].startswith("# subset ") and len(lines) == 11
    rows = [f"{name},1" for name in lines[1:-1]] + [f"{lines[-1]},"]
    Path("a.csv").write_text("item,score\n" + "\n".join(rows) + "\n")
    code, out, err = call("tell", "new", "a.csv")
    assert code == 0 and "unscored  1 item: " in out, err


def test_a_run_that_broke_off_is_continued(call):
    call("import", "lm-eval", "logs", "--out", "s.parquet")
    call("plan", "s.parquet", "--method", "random", "--budget", 20, "--out", "new")
    first = last_input("new")
    part = {task: ids[: len(ids) // 2] for task, ids in first.items()}
    run_harness("part", {task: ids for task, ids in part.items() if ids})
    code, out, _ = call("tell", "new", "part")
    rest = last_input("new")
    told = {(t, n) for t, ids in part.items() for n in ids}
    asked = {(t, n) for t, ids in first.items() for n in ids}
    assert {(t, n) for t, ids in rest.items() for n in ids} == asked - told
    code, out, _ = call("tell", "new", "--give-up")
    assert code == 0 and f"unscored  {len(asked - told)} items" in out


def test_logs_of_an_unsorted_list_are_refused(call):
    call("import", "lm-eval", "logs", "--out", "s.parquet")
    call("plan", "s.parquet", "--method", "random", "--budget", 20, "--out", "new")
    wanted = last_input("new")["sums"]
    rows = [lm_eval_row("sums", n, int(RIGHT["sums"][8][n])) for n in wanted]
    for row, wrong in zip(rows, wanted[::-1], strict=True):
        row["doc_id"] = wrong
    write_rows(f"bad/new/samples_sums_{TIME}.jsonl", rows)
    before = files_in(Path("new"))
    code, _, err = call("tell", "new", "bad")
    assert code == 2 and "unsorted list" in err and err.count("\n") == 1
    assert files_in(Path("new")) == before
    assert call("tell", "new", "bad", "--match", "hash")[0] == 0
    answers = Evaluation.load("new").answers
    assert all(answers[f"sums/{n}"] == RIGHT["sums"][8][n] for n in wanted)


def test_mistakes_are_one_line_and_change_nothing(call):
    call("import", "lm-eval", "logs", "--out", "s.parquet")
    plan = ["plan", "s.parquet", "--method", "random", "--out", "new"]
    call(*plan, "--budget", 10)
    run_harness(
        "other", {"sums": [n for n in range(30) if n not in last_input("new")["sums"]]}
    )
    for number in (1, 2):
        run_harness("two", last_input("new"), f"new{number}")
    before = files_in(Path("new"))
    for argv, words in [
        ([*plan, "--budget", 10], ["'new'", "not empty"]),
        (["plan", "s.parquet", "--method", "nonsense", "--budget", 9, "--out", "x"],
         ["'nonsense'"]),
        ([*plan[:-1], "x", "--budget", 99], ["99"]),
        ([*plan[:-1], "x", "--budget", "99tokens"], ["no costs"]),
        (["plan", "s.parquet", "--method", "random", "--budget", 9], ["--out DIR"]),
        (["plan", "s.parquet", "--budget", 0, "--out", "x"], ["budget", "at least 1"]),
        ([*plan[:-1], "x", "--budget", 9, "--level", 95], ["level", "95"]),
        ([*plan[:-1], "x", "--budget", 9, "--shift", "no"], ["shift", "'no'"]),
        ([*plan[:-1], "x", "--budget", 9, "--folds", 1], ["--folds", "got 1"]),
        (["paired", "new", "new", "--level", 2], [" --level", "got 2"]),
        (["tell", "new", "nowhere"], ["nowhere"]),
        (["tell", "new"], ["name the logs"]),
        (["tell", "logs", "logs"], ["no evaluation in 'logs'"]),
        (["tell", "new", "two"], ["2 models"]),
        (["tell", "new", "other"], ["none of the items asked (10"]),
        (["estimate", "new"], ["10 items still to be told: benchnb tell new new/logs"]),
        (["paired", "new", "logs"], ["--format"]),
        (["import", "excel", "logs", "--out", "x.parquet"], ["'excel'", "lm-eval"]),
        (["import", "lm-eval", "logs", "--out", "x.csv"], ["x.csv", ".parquet"]),
        (["import", "lm-eval", "logs", "--match", "x", "--out", "x.parquet"],
         ["match='x'", "id"]),
    ]:  # fmt: skip
        code, out, err = call(*argv)
        assert code == 2 and err.count("\n") == 1, (argv, err)
        assert not [word for word in words if word not in err], (argv, err)
        assert files_in(Path("new")) == before and not Path("x").exists(), argv


def test_methods_are_listed(call):
    code, out, _ = call("methods")
    assert code == 0 and "random " in out and "adaptive" in out
    code, out, _ = call("methods", "aipw")
    assert code == 0 and "level = 0.95" in out and "one subset" in out
    assert "promised coverage (a number between 0.01 and 0.999)" in out
    for name, place in LIBRARY.items():  # every parameter says what it means
        if find_class(name).__module__ not in f"benchnb.{place}":
            continue  # another test has put a method of this name in its place
        facts = json.loads(call("methods", name, "--json")[1])
        for one, said in facts["parameters"].items():
            assert said["meaning"], (name, one)
            assert said["allowed"], (name, one)
            assert f"  {one} = " in call("methods", name)[1]
    code, _, err = call("methods", "qqqqqq")
    assert code == 2 and "no method 'qqqqqq': 'benchnb methods' lists all" in err


def test_who_names_no_method_gets_one(call):
    call("import", "lm-eval", "logs", "--out", "s.parquet")
    code, out, err = call("plan", "s.parquet", "--budget", 9, "--out", "x")
    assert code == 0 and out.startswith("method: "), err
    name = out.split()[1].strip(",")
    assert name in ("aipw", "guarded_irt_static") and f"\n{name}, " in out
    assert "9 items to run in one round; the interval will be" in " ".join(out.split())
    code, out, err = call("plan", "s.parquet", "--budget", 9, "--out", "y", "--json")
    assert code == 0 and len(json.loads(out)["ask"]) <= 9, err


@pytest.mark.parametrize(
    ("option", "says"),
    [
        (["--shift", "no"], "shift is report, aipw or abstain, got 'no'"),
        (["--level", 95], "level must lie in [0.5, 1), got 95"),
        (["--harness", "no"], "no harness 'no': choose from lm-eval, inspect, "),
        (["--harness", "lm-eval"], "is no document number: lm-evaluation-harness"),
        (["--folds", 1], "--folds is 0 (none), or 2 or more, got 1"),
        (["--seed", -1], "seed must be at least 0, got -1"),
        (["--budget", "99tokens"], "the table has no costs: give the budget in items"),
        (["--budget", 99], "from 1 to 50"),
        (["--width", 4], "width must lie between 0.001 and 1, got 4"),
        (["--budget", "many"], "--budget: 'many' is no amount: write 50 (items)"),
        (["--budget", "0"], "--budget: '0' is no budget: give a whole number of items"),
    ],
)
def test_options_are_checked_before_anything_is_measured(
    option, says, call, monkeypatch
):
    call("import", "lm-eval", "logs", "--out", "s.parquet")
    table = Scores.from_parquet("s.parquet")
    names = ["sums/one", *table.items.index[1:]]
    items = table.items.set_axis(names).drop(
        columns=["doc_id", "hash"], errors="ignore"
    )
    Scores(table.values, items, table.models).to_parquet("s.parquet")
    monkeypatch.setattr("benchnb.studies.recommend.default_method", None)  # not called
    budget = [] if option[0] in ("--budget", "--width") else ["--budget", 9]
    code, out, err = call("plan", "s.parquet", *budget, *option, "--out", "x")
    assert (code, out) == (2, "") and says in err, err
    assert not Path("x").exists()


def test_the_harness_is_told_how_to_reach_the_model(call):
    call("import", "lm-eval", "logs", "--out", "s.parquet")
    plan = ["plan", "s.parquet", "--method", "random", "--budget", 9]
    _, out, _ = call(*plan, "--out", "x", "--model-type", "vllm", "--model", "org/m")
    assert "--model vllm --model_args pretrained=org/m" in out
    kind = ["--model-type", "local-completions"]
    _, out, _ = call(*plan, "--out", "y", *kind, "--model", "m")
    assert "--model local-completions --model_args model=m" in out
    _, out, _ = call(*plan, "--out", "z", *kind, "--model-args", "model=m,base_url=u")
    assert "--model_args model=m,base_url=u" in out
    live = Evaluation.load("z")
    live.tell({name: 1.0 for name in live.ask()[:4]})
    assert "--model_args model=m,base_url=u" in live.command()  # the next round too


def test_a_bundle_is_a_plan(call):
    method = prepared(fitted("kmeans"), 15)
    publish(method, "bundle", "A test")
    code, out, err = call("plan", "bundle", "--out", "new", "--harness", "list")
    assert code == 0 and "kmeans, 15 items" in out, err
    assert Evaluation.load("new").method.budget_ == 15
    assert call("plan", "bundle", "--out", "same", "--budget", 15)[0] == 0
    for option in (["--budget", 20], ["--width", 0.1], ["--method", "aipw"],
                   ["--budget", "900tokens"], ["--level", 0.8]):  # fmt: skip
        code, _, err = call("plan", "bundle", "--out", "x", *option)
        wanted = f"'bundle' is a bundle of 15 items with kmeans: leave {option[0]} out"
        if option[0] == "--level" and code == 0:
            continue
        assert code == 2 and wanted in err, err
        assert not Path("x").exists()


def test_a_file_of_many_models_needs_a_choice(call):
    call("import", "lm-eval", "logs", "--out", "s.parquet")
    plan = ["plan", "s.parquet", "--method", "random", "--budget", 10]
    call(*plan, "--harness", "list", "--out", "new")
    asked = Evaluation.load("new").ask()
    rows = [f"{m},{name},{m != 'm2':d}" for m in ("m1", "m2", "m3") for name in asked]
    Path("all.csv").write_text("\n".join(["model,item,score", *rows]))
    code, _, err = call("tell", "new", "all.csv")
    assert code == 2 and "'all.csv' has 3 models, the first is 'm1'" in err
    assert "choose one by --model NAME" in err and not Evaluation.load("new").answers
    code, out, err = call("tell", "new", "all.csv", "--model", "m2")
    assert code == 0 and set(Evaluation.load("new").answers.values()) == {0.0}, err
    assert Evaluation.load("new").model == "m2"
    call(*plan, "--out", "logged")
    for model, row in (("m1", 7), ("m2", 8)):
        run_harness("two", last_input("logged"), model, row)
    code, _, err = call("tell", "logged", "two")
    assert code == 2 and "of 2 models, the first is 'm1': name the files of one" in err
    assert call("tell", "logged", "two/m2")[0] == 0


def test_paired_by_hand_and_by_command(call):
    call("import", "lm-eval", "logs", "--out", "s.parquet")
    for name, row in (("a", 7), ("b", 8)):
        argv = [
            "plan",
            "s.parquet",
            "--method",
            "random",
            "--budget",
            20,
            "--out",
            name,
        ]
        call(*argv)
        run_harness(f"{name}/logs", last_input(name), name, row)
        assert call("tell", name, f"{name}/logs")[0] == 0
    found = json.loads(call("paired", "a", "b", "--json")[1])
    a, b = Evaluation.load("a").answers, Evaluation.load("b").answers
    d = np.array([a[name] - b[name] for name in a])
    assert found["items"] == 20 and np.isclose(found["difference"], d.mean())
    mean = d.sum() / 22
    error = np.sqrt(((1 + (d**2).sum()) / 22 - mean**2) * (1 - 20 / 50) / 22)
    np.testing.assert_allclose(
        found["interval"], [mean - 1.96 * error, mean + 1.96 * error], rtol=1e-4
    )
    code, out, _ = call("paired", "a", "b")
    assert "A - B" in out and "with probability" in out
    code, out, err = call("paired", "logs/m0", "logs/m7", "--format", "lm-eval")
    assert code == 0 and "50 in common" in out, err


def test_giving_up_with_a_wrong_file_changes_nothing(call):
    call("import", "lm-eval", "logs", "--out", "s.parquet")
    call("plan", "s.parquet", "--method", "random", "--budget", 10, "--out", "new")
    wanted = last_input("new")["sums"]
    run_harness("other", {"sums": [n for n in range(30) if n not in wanted]})
    write_lm_eval("foreign", "new", {"poems": [1, 0, 1]})
    before = files_in(Path("new"))
    for wrong in ("other", "foreign"):
        code, _, err = call("tell", "new", wrong, "--give-up")
        assert code == 2 and err.count("\n") == 1, err
        assert files_in(Path("new")) == before


def test_another_model_is_refused(call):
    call("import", "lm-eval", "logs", "--out", "s.parquet")
    call("plan", "s.parquet", "--method", "random", "--budget", 10, "--out", "new")
    first = last_input("new")
    run_harness("a", {t: ids[:1] for t, ids in first.items()}, "org/one")
    run_harness("b", {t: ids[1:] for t, ids in first.items()}, "org/two")
    assert call("tell", "new", "a")[0] == 0
    before = files_in(Path("new"))
    code, _, err = call("tell", "new", "b")
    assert code == 2 and "'org/one'" in err and "'org/two'" in err
    assert "model='org/one'" in err and files_in(Path("new")) == before
    assert call("tell", "new", "b", "--model", "org/one")[0] == 0


def test_edited_documents_are_left_out_and_counted(call):
    call("import", "lm-eval", "logs", "--out", "s.parquet")
    call("plan", "s.parquet", "--method", "random", "--budget", 20, "--out", "new")
    wanted = last_input("new")["sums"]
    rows = [lm_eval_row("sums", n, 1) for n in wanted]
    for row in rows[:2]:
        row["doc_hash"] = "f" * 63 + str(row["doc_id"] % 10)
    write_rows(f"edited/new/samples_sums_{TIME}.jsonl", rows)
    code, _, err = call("tell", "new", "edited", "--match", "hash")
    assert code == 0 and f"left out 2 of {len(wanted)} logged items" in err, err
    assert set(Evaluation.load("new").answers) == {f"sums/{n}" for n in wanted[2:]}


def test_tokens_get_an_interval_too(call):
    source = halves()[0]
    source.to_parquet("s.parquet")
    plan = ["plan", "s.parquet", "--method", "tailored_bench", "--harness", "list"]
    code, _, err = call(*plan, "--budget", "6000tokens", "--out", "new")
    assert code == 0, err
    tell_all("new", dict.fromkeys(source.items.index, 1.0))
    assert json.loads(call("estimate", "new", "--json")[1])["interval"][0] is not None
    call(*plan, "--budget", "6000tokens", "--folds", 0, "--out", "bare")
    tell_all("bare", dict.fromkeys(source.items.index, 1.0))
    assert "no interval: the method gives none" in call("estimate", "bare")[1]


def test_telling_nothing_new_writes_nothing_new(call):
    call("import", "lm-eval", "logs", "--out", "s.parquet")
    call("plan", "s.parquet", "--method", "random", "--budget", 10, "--out", "new")
    run_harness("a", {t: ids[:1] for t, ids in last_input("new").items()})
    call("tell", "new", "a")
    before = files_in(Path("new"))
    assert call("tell", "new", "a")[1].startswith("0 told")
    assert files_in(Path("new")) == before


def test_plans_that_cannot_be_meant(call):
    source = halves()[0]
    source.to_parquet("s.parquet")
    new = ["--method", "random", "--out", "my model"]
    code, out, err = call("plan", "s.parquet", *new, "--budget", 10)
    assert code == 0 and "benchnb tell 'my model' " in out, err
    assert (
        call("plan", "zoo", "--method", "random", "--budget", 9, "--out", "z")[0] == 0
    )
    publish(prepared(fitted("kmeans"), 15), "bundle", "A test")
    for argv, words in [
        (["plan", "my model", "--out", "x"], "is an evaluation that has begun"),
        (["plan", "bundle", "--method", "aipw", "--out", "x"], "leave --method out"),
        (["plan", "s.parquet", *new[:2], "--width", "1e-9", "--out", "x"], "0.001"),
    ]:
        code, _, err = call(*argv)
        assert code == 2 and words in err and not Path("x").exists(), err


def test_items_that_were_not_drawn_are_said(call):
    source = halves()[0]
    source.to_parquet("s.parquet")
    for name in ("a", "b"):
        plan = ["plan", "s.parquet", "--method", "kmeans", "--budget", 12]
        call(*plan, "--harness", "list", "--out", name)
        tell_all(name, dict.fromkeys(source.items.index, 1.0))
    code, out, err = call("paired", "a", "b")
    assert code == 0 and "note      the items were chosen by kmeans" in out, err


def test_publish_and_plan_from_it(call):
    halves()[0].to_parquet("s.parquet")
    publish = ["publish", "s.parquet", "--method", "kmeans", "--budget", 12]
    code, out, err = call(*publish, "--out", "small one")
    assert code == 0 and "benchnb plan 'small one' --out my_model" in out, err
    assert call("plan", "small one", "--out", "new")[0] == 0
    assert Evaluation.load("new").method.budget_ == 12
    for argv, words in [
        ([*publish, "--out", "small one"], "not empty"),
        ([*publish, "--out", "s.parquet/x"], "'s.parquet' is a file"),
        ([*publish[:3], "adaptive_irt", *publish[4:], "--out", "x"], "other items"),
    ]:
        code, _, err = call(*argv)
        assert code == 2 and words in err and not Path("x").exists(), err


def test_what_cannot_be_read_is_said(call):
    Path("empty.csv").write_text("")
    Path("wide.csv").write_text("model,q1,q2\nm1,1,0\nm2,0,0\n")
    Path("blank.csv").write_text("model,item,score\nm1,q1,\nm2,q1,\n")
    code, out, _ = call("import", "table", "wide.csv", "--out", "w.parquet")
    assert code == 0 and "read as a wide table: a row is a model" in out
    plan = ["--method", "random", "--budget", 1, "--out", "x"]
    code, out, err = call("plan", "wide.csv", *plan)  # a wide table is read too
    assert code == 0 and "random, 1 item" in out, err
    code, _, err = call("import", "table", "blank.csv", "--out", "b.parquet")
    assert code == 2 and "no item was scored" in err and not Path("b.parquet").exists()
    call("plan", "zoo", "--method", "random", "--budget", 9, "--out", "new")
    code, _, err = call("tell", "new", "empty.csv")
    assert code == 2 and "'empty.csv' holds no table" in err
    for text, why in [
        ("item;score\nq;1\n", "are separated by semicolons"),
        ("item,score,score\nq,1,0\n", "two columns are called 'score'"),
        ('item,score\nq,"1', "EOF inside string"),
        ("item,score\nq,1,2,3\nr,1,2,3,4\n", "Expected 4 fields"),
    ]:
        Path("odd.csv").write_text(text)
        code, _, err = call("tell", "new", "odd.csv")
        assert code == 2 and "'odd.csv' holds no table" in err and why in err, err
        assert err.count("\n") == 1


def a_plan(call, name="new", method="random"):
    "An evaluation that asks for a list of items; the names asked"
    if not Path("s.parquet").exists():
        halves()[0].to_parquet("s.parquet")
    plan = ["plan", "s.parquet", "--method", method, "--budget", 12, "--folds", 0]
    code, _, err = call(*plan, "--harness", "list", "--out", name)
    assert code == 0, err
    return Evaluation.load(name).ask()


def test_two_answers_to_one_item_are_a_choice(call):
    names = a_plan(call)
    write_list(names, more=f"{names[0]},0")
    for choice in ([], ["--repeated", "error"]):
        code, _, err = call("tell", "new", "answers.csv", *choice)
        assert code == 2 and names[0] in err and "--repeated first, last" in err
    assert not Evaluation.load("new").answers
    for choice, score in {"first": 1, "last": 0, "mean": 0.5}.items():
        a_plan(call, choice)
        code, _, err = call("tell", choice, "answers.csv", "--repeated", choice)
        assert code == 0 and Evaluation.load(choice).answers[names[0]] == score, err
    write_list(names, more=f"{names[0]},1")  # the same twice is no contradiction
    assert call("tell", "new", "answers.csv")[0] == 0


def test_a_list_that_is_none_is_told_what_it_lacks(call):
    names = a_plan(call)
    write_list(names, head="id,acc")
    code, _, err = call("tell", "new", "answers.csv")
    assert code == 2 and "id, acc" in err and "columns item and score" in err
    write_list(names[1:], more=f"{names[0]},good")
    code, _, err = call("tell", "new", "answers.csv")
    assert code == 2 and "'good'" in err and repr(names[0]) in err, err
    path = Path("answers.csv")
    path.write_text(path.read_text().replace(",", ";"))
    code, _, err = call("tell", "new", "answers.csv")
    assert code == 2 and "semicolons" in err
    assert "," not in Path("new/items_1.txt").read_text().splitlines()[0]


def test_what_cannot_be_paired_is_said(call):
    names = a_plan(call, "a", "kmeans"), a_plan(call, "b", "kmeans")
    write_list(names[0])
    assert call("tell", "a", "answers.csv")[0] == 0
    assert call("tell", "b", "--give-up")[0] == 0
    code, out, err = call("paired", "a", "b")
    assert (code, out) == (2, "") and "no answer of B ('b') has a score" in err
    code, out, err = call("paired", "a", "./a")
    assert (code, out) == (2, "") and "A and B are both 'a'" in err


def test_items_drawn_at_random_need_no_note(call):
    names = a_plan(call, "a", "aipw")
    write_list(names)
    assert call("tell", "a", "answers.csv")[0] == 0
    write_list([f"m,{name}" for name in names], 0, head="model,item,score")
    Path("answers.csv").rename("b.csv")
    code, out, err = call("paired", "a", "b.csv", "--format", "table")
    assert code == 0 and "A - B     +1.000" in out and "note" not in out, err


@pytest.mark.parametrize("columns", ["item", "item,answer"])
def test_a_list_without_scores_is_one_line(columns, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    table().to_parquet("scores.parquet")
    plan = ["--method", "random", "--budget", "5", "--harness", "list", "--out", "mine"]
    assert main(["plan", "scores.parquet", *plan]) == 0
    line = ",".join([table().items.index[0], "1"][: columns.count(",") + 1])
    (tmp_path / "list.csv").write_text(f"{columns}\n{line}\n")
    capsys.readouterr()
    assert main(["tell", "mine", "list.csv"]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and "has the columns item and score" in said


def test_a_list_of_counts_is_told_and_added_to(call):
    names = a_plan(call)
    for file, successes in {"monday.csv": 2, "tuesday.csv": 5}.items():
        rows = [f"{name},{successes},5" for name in names]
        Path(file).write_text("\n".join(["item,successes,trials", *rows]))
    code, _, err = call("tell", "new", "monday.csv")
    assert code == 0, err
    live = Evaluation.load("new")
    assert live.report()["runs"] == 60 and live.answers[names[0]] == 0.4
    code, _, err = call("tell", "new", "tuesday.csv")
    assert code == 0, err
    before, live = live.estimate(), Evaluation.load("new")
    assert live.report()["runs"] == 120 and live.answers[names[0]] == 0.7
    assert live.estimate().score == pytest.approx(0.7) != before.score
    assert live.report()["interval_of"] == "the expected score over runs"
    assert call("tell", "new", "tuesday.csv")[0] == 0  # the same runs again
    assert Evaluation.load("new").report()["runs"] == 120
    Path("odd.csv").write_text(f"item,successes,trials\n{names[0]},6,5")
    code, _, err = call("tell", "new", "odd.csv")
    assert code == 2 and repr(names[0]) in err and err.count("\n") == 1, err


def test_how_logs_are_read_is_said_once(call):
    "Two filters in every log: the choice of the first tell holds for the next"
    call("import", "lm-eval", "logs", "--out", "s.parquet")
    call("plan", "s.parquet", "--method", "random", "--budget", 20, "--out", "new")
    wanted = {t: sorted(ids) for t, ids in last_input("new").items()}
    for part in (0, 1):
        for task, ids in wanted.items():
            rows = [
                lm_eval_row(task, n, int(RIGHT[task][8][n]) * good, filter=name)
                for name, good in (("loose", 1), ("strict", 0))
                for n in ids[part::2]
            ]
            write_rows(f"part{part}/new/samples_{task}_{TIME}.jsonl", rows)
    code, _, err = call("tell", "new", "part0")
    assert code == 2 and "choose filter from 'loose', 'strict'" in err
    assert Evaluation.load("new").plan.choices is None
    assert call("tell", "new", "part0", "--filter", "loose")[0] == 0
    assert Evaluation.load("new").plan.choices == {"filter": "loose"}
    code, out, err = call("tell", "new", "part1")
    assert code == 0 and out.split("\n")[2].startswith("score"), err
    told = Evaluation.load("new").answers
    assert all(
        told[f"{t}/{n}"] == RIGHT[t][8][n] for t, ids in wanted.items() for n in ids
    )


def test_the_printed_command_of_inspect_names_the_file(call):
    "A task in a file is run as arith.py@arith; the harness is that of the logs"
    for number in range(6):
        head, samples = inspect_log("m", "arith", RIGHT["sums"][number].tolist())
        head["eval"] |= {"task_file": "arith.py", "model": f"m{number}"}
        write_eval(f"inspect/{number}.eval", head, samples)
    assert call("import", "inspect", "inspect", "--out", "s.parquet")[0] == 0
    plan = ["plan", "s.parquet", "--method", "random", "--budget", 5, "--out", "new"]
    code, out, err = call(*plan)
    assert code == 0 and "inspect eval arith.py@arith --model MODEL" in out, err
    assert Evaluation.load("new").plan.harness == "inspect"


def test_methods_that_choose_tasks_refuse_a_table_without_tasks(call):
    head = "name," + ",".join(f"task{n}" for n in range(20))
    rows = [f"m{m}," + ",".join(f"0.{(7 * m * n + n + m) % 90 + 10}" for n in range(20))
            for m in range(1, 25)]  # fmt: skip
    Path("wide.csv").write_text("\n".join([head, *rows]))
    publish = ["publish", "wide.csv", "--method", "results_sim", "--budget", 5]
    code, _, err = call(*publish, "--out", "small")
    assert code == 2 and "(--columns-are items or tasks)" in err
    code, _, err = call(*publish, "--columns-are", "items", "--out", "small")
    assert (
        code == 2 and "results_sim chooses among tasks, and this table has one" in err
    )
    said = []
    for seed in (0, 1):
        out = f"small{seed}"
        code, _, err = call(
            *publish, "--columns-are", "tasks", "--seed", seed, "--out", out
        )
        assert code == 0, err
        said.append(json.loads(Path(out, "subset.json").read_text())["names"])
    assert said[0] == said[1] and len(said[0]) == 5  # tasks are chosen, not drawn
    code, out, err = call("recommend", "wide.csv", "--tasks", "--trials", 2)
    assert code == 0 and "keep " in out and "drop " in out, err
    assert out.startswith("sources: ")
    code, out, _ = call("recommend", "wide.csv", "--tasks", "--budget", 4, "--json")
    found = json.loads(out)
    assert len(found["keep"]) == 4 and len(found["drop"]) == 16
    assert found["likeness"]["models"] > 0


def test_a_run_may_stop_when_it_is_decided(call):
    scores = halves()[0]
    Scores(scores.values, scores.items.assign(weight=1.0)).to_parquet("s.parquet")
    plan = ["plan", "s.parquet", "--method", "aipw", "--budget", 40, "--folds", 0]
    for name in ("a", "b"):
        code, out, err = call(*plan, "--batch", 20, "--harness", "list", "--out", name)
        assert code == 0 and "20 items to run first, 40 at most, in batches" in out, err
        write_list(Evaluation.load(name).ask(), score=int(name == "b"))
        code, out, err = call("tell", name, "answers.csv", "--within", 0.3)
        assert code == 0 and "the score lies" in out, err
    code, out, err = call("tell", "b", "--against", "a")
    assert code == 0 and "decided: A is better after 20 of 60 items" in out, err
    assert "A: b\nB: a" in out and "then: benchnb tell b" in out
    found = json.loads(call("tell", "b", "--against", "a", "--json")[1])
    assert found["standing"]["decision"] == "A is better" and len(found["ask"]) == 20
    assert "is the same evaluation" in call("tell", "b", "--against", "./b")[2]
    assert "0.04 for 4 points" in call("tell", "b", "--within", 2)[2]
