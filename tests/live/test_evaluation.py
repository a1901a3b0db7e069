"""From logs to an estimate: subsets that harnesses run, bundles, live evaluations that
several processes tell and that may be killed at any moment."""

import json
import os
import pickle
import signal
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
    write_lm_eval,
    write_rows,
)
from helpers.small import estimates, files_in, fitted, halves, prepared, table
from hypothesis import given
from hypothesis import strategies as st

from benchnb.cli.app import main
from benchnb.cli.commands import format_report
from benchnb.data.scores import Scores
from benchnb.evaluation.method import Estimate
from benchnb.evaluation.registry import get_method
from benchnb.evaluation.simulate import ready
from benchnb.harnesses.inspect import inspect_ids
from benchnb.harnesses.leaderboards import import_logs
from benchnb.harnesses.lm_eval import Choices, lm_eval_samples
from benchnb.harnesses.subsets import make_subset
from benchnb.live.bundles import kept_tables, load_bundle, publish
from benchnb.live.evaluation import (
    Live,
    items_for_tokens,
    next_budget,
    paired,
    paired_runs,
    start,
)
from benchnb.live.shift import left_out_errors
from benchnb.methods.guarded_irt import GuardedIRT
from benchnb.methods.sampling import RandomSampling

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


# The whole road ------------------------------------------------------------------


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
    answers = Live("new").answers
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
        (["plan", "s.parquet", "--budget", 0, "--out", "x"], ["--budget", "got 0"]),
        ([*plan[:-1], "x", "--budget", 9, "--level", 95], ["--level", "95"]),
        ([*plan[:-1], "x", "--budget", 9, "--shift", "no"], ["--shift", "'no'"]),
        ([*plan[:-1], "x", "--budget", 9, "--folds", 1], ["--folds", "got 1"]),
        (["paired", "new", "new", "--level", 2], [" --level", "got 2"]),
        (["tell", "new", "nowhere"], ["nowhere"]),
        (["tell", "new"], ["name the logs"]),
        (["tell", "logs", "logs"], ["no evaluation in 'logs'"]),
        (["tell", "new", "two"], ["2 models"]),
        (["tell", "new", "other"], ["none of the 10 items"]),
        (["estimate", "new"], ["10 items are still to be told"]),
        (["paired", "new", "logs"], ["--format"]),
        (["import", "excel", "logs", "--out", "x.parquet"], ["'excel'", "lm-eval"]),
        (["import", "lm-eval", "logs", "--out", "x.csv"], ["x.csv", ".parquet"]),
        (["import", "lm-eval", "logs", "--match", "x", "--out", "x.parquet"],
         ["--match x "]),
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
    code, _, err = call("methods", "qqqqqq")
    assert code == 2 and "did you mean" not in err and "tailored_bench" in err


def test_who_names_no_method_gets_one(call):
    call("import", "lm-eval", "logs", "--out", "s.parquet")
    code, out, err = call("plan", "s.parquet", "--budget", 9, "--out", "x")
    assert code == 0 and out.startswith("method: "), err
    name = out.split()[1].strip(",")
    assert name in ("aipw", "guarded_irt") and f"\n{name}, " in out


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
    live = Live("z")
    live.tell({name: 1.0 for name in live.ask()[:4]})
    assert "--model_args model=m,base_url=u" in live.command()  # the next round too


# Subsets and bundles -------------------------------------------------------------


@given(st.sets(st.integers(0, 59), min_size=1), st.randoms())
def test_subsets_are_sorted_unique_and_never_empty(places, luck):
    items = halves()[0].items
    names = [items.index[n] for n in places] * 2
    luck.shuffle(names)
    subset = make_subset(items, names)
    found = json.loads(lm_eval_samples(subset.ids))
    assert len(subset) == len(places)
    for task, ids in found.items():
        assert ids and ids == sorted(set(ids))
        assert {f"{task}/{n}" for n in ids} <= set(names)
    assert subset.hash == make_subset(items, sorted(set(names))).hash


def test_ids_that_are_no_numbers():
    items = pd.DataFrame({"task": "t"}, ["t/x", "t/10", "t/9", "t/*"])
    subset = make_subset(items, list(items.index))
    assert subset.ids == {"t": ["*", "10", "9", "x"]}
    assert inspect_ids(subset.ids["t"]) == "[*],10,9,x"
    with pytest.raises(ValueError, match="no document number"):
        lm_eval_samples(subset.ids)


@pytest.mark.parametrize(
    "name", ["random", "aipw", "anchor_points", "gp_irt", "metabench"]
)
def test_a_bundle_gives_the_estimate_without_the_sources(name, tmp_path):
    target = halves()[1]
    method = prepared(fitted(name), 15)
    expected = estimates(method, target, None)[0]
    publish(method, tmp_path / "bundle", "A test")
    files = files_in(tmp_path / "bundle")
    assert {"README.md", "method.json", "arrays.npz", "subset.json"} <= set(files)
    for content in files.values():
        with pytest.raises(Exception):  # noqa: B017 (pickle has many ways to refuse)
            pickle.loads(content)
    session = load_bundle(tmp_path / "bundle")
    row = dict(zip(target.items.index, target.values[0].astype(float), strict=True))
    session.tell({n: row[n] for n in session.ask()})
    assert session.estimate().score == expected.score
    assert session.estimate().interval == expected.interval


def test_a_bundle_is_a_plan(call):
    method = prepared(fitted("kmeans"), 15)
    publish(method, "bundle", "A test")
    code, out, err = call("plan", "bundle", "--out", "new", "--harness", "list")
    assert code == 0 and "kmeans, 15 items" in out, err
    assert Live("new").session.method.budget_ == 15


def test_a_method_that_keeps_its_sources_says_so(tmp_path):
    method = prepared(fitted("tailored_bench"), 15)
    assert kept_tables(method) == ["table_"]
    with pytest.raises(TypeError, match="asks each model other items"):
        publish(method, tmp_path / "b")
    assert not (tmp_path / "b").exists()


# Budgets -------------------------------------------------------------------------


def test_tokens_are_never_exceeded():
    for name in ("random", "kmeans", "adaptive_irt"):
        method = fitted(name)
        cost = method.items_["cost"]
        for tokens in (600, 3000, 9000):
            budget = items_for_tokens(method, tokens)
            asked = getattr(prepared(method, budget), "coreset_", None)
            if asked is not None:
                assert cost.to_numpy()[asked].sum() <= tokens
    assert items_for_tokens(fitted("random"), 10**9) == 60


@given(st.integers(1, 500), st.floats(0.01, 1), st.floats(0.01, 0.99))
def test_the_next_budget_grows_until_it_is_enough(budget, width, wanted):
    found = next_budget(budget, width, wanted, 500)
    assert budget <= found <= 500
    assert (found == budget) == (width <= wanted or budget == 500)


def test_a_width_is_reached(place):
    scores = import_logs("lm-eval", "logs")
    live = start(get_method("random").fit(scores), "new", width=0.15)
    row = {
        f"{t}/{n}": float(x)
        for t, right in RIGHT.items()
        for n, x in enumerate(right[8])
    }
    sizes = []
    while live.ask():
        sizes.append(len(live.ask()))
        live.tell({name: row[name] for name in live.ask()})
    low, high = live.session.estimate().interval
    assert high - low <= 0.15 and len(sizes) > 1 and sum(sizes) == len(live.answers)
    again = Live("new")
    assert again.session.estimate().score == live.session.estimate().score
    live = start(get_method("random").fit(scores), "capped", budget=22, width=0.05)
    while live.ask():
        live.tell({name: row[name] for name in live.ask()})
    assert live.session.method.budget_ == 22


# What is said in the end -----------------------------------------------------------


def run_live(method, place, row=0, budget=20, errors=True, many=False, **how):
    "A finished evaluation of a target of the small table, or of one of 80 models"
    source, target = table(1, 80).split("random", seed=0) if many else halves()
    left = left_out_errors(get_method(method), source, budget, 6) if errors else None
    one = get_method(method).fit(source)
    live = start(one, place, budget, errors=left, source=source, **how)
    answers = target.values[row].astype(float) if isinstance(row, int) else row
    known = dict(zip(target.items.index, answers.tolist(), strict=True))
    while live.ask():
        live.tell({name: known[name] for name in live.ask()})
    return live


def test_tasks_have_intervals_and_counts(tmp_path):
    live = run_live("aipw", tmp_path / "a")
    session = live.session.method
    for task, part in live.report()["tasks"].items():
        low, high = part["interval"]
        assert 0 <= low <= part["score"] <= high <= 1
        names = live.items["task"][list(live.answers)]
        assert part["items"] == (names == task).sum()
        assert part["few"] == (part["items"] < 5)
    assert session.budget_ == sum(x["items"] for x in live.report()["tasks"].values())
    bare = run_live("aipw", tmp_path / "b", errors=False).report()
    assert all(part["interval"] == [None, None] for part in bare["tasks"].values())


def test_a_task_that_was_asked_in_full_is_exact(tmp_path):
    live = run_live("random", tmp_path / "a", budget=60)
    for part in live.report()["tasks"].values():
        assert part["interval"] == [part["score"]] * 2 and not part["few"]


@pytest.mark.parametrize("method", ["random", "aipw", "kmeans", "tailored_bench"])
def test_the_level_is_a_choice(method, tmp_path):
    widths = []
    for level in (0.6, 0.75):
        live = run_live(method, tmp_path / f"{level}", level=level)
        report = live.report()
        low, high = report["interval"]
        assert report["level"] == level and low <= report["score"] <= high
        assert report["how"]
        widths.append(high - low)
    assert widths[0] < widths[1]
    later = Live(tmp_path / "0.6").report(0.75)  # another than was planned
    assert later["level"] == 0.75
    with pytest.raises(ValueError, match="level must lie in"):
        live.report(7)


def test_a_level_that_cannot_be_had_is_refused(tmp_path):
    live = run_live("kmeans", tmp_path / "a", errors=False)
    with pytest.raises(ValueError, match="made its interval for 95%.*--level 0.8"):
        live.report(0.8)
    ready_one = prepared(fitted("kmeans"), 15)
    with pytest.raises(ValueError, match="choose them anew for 80%"):
        start(ready_one, tmp_path / "b", level=0.8)
    start(prepared(fitted("random"), 15), tmp_path / "c", level=0.8)


@pytest.mark.parametrize("shift", ["report", "aipw", "abstain"])
@pytest.mark.parametrize("method", ["random", "kmeans", "per_task(random)"])
def test_what_is_done_with_a_stranger(method, shift, tmp_path):
    live = run_live(method, tmp_path / "a", np.ones(60), errors=False, shift=shift)
    report = live.report()
    notes = " ".join(report["notes"])
    assert "stronger than the best source" in notes
    if "random" in method:  # sampled: nothing is wrong
        assert report["score"] is not None and "holds all the same" in notes
    elif shift == "abstain":
        assert report["score"] is None and report["interval"] == [None, None]
        assert report["rank"] is None and "abstains" in notes
        assert format_report(report).startswith("score     none")
        assert "no score" in repr(live.estimate())
    else:
        assert report["score"] is not None
        assert ("did not draw its items by lot" in notes) == (shift == "aipw")


def test_a_model_method_that_drew_by_lot_falls_back_to_aipw(tmp_path, monkeypatch):
    def in_range(self, models, asked, seen):  # no guard of its own
        return Estimate(0.99, (0.98, 1.0), level=self.level, how="factor model")

    monkeypatch.setattr(GuardedIRT, "in_range", in_range)
    monkeypatch.setattr(GuardedIRT, "judge", lambda *_: (0.0, False))
    live = run_live("guarded_irt", tmp_path / "a", errors=False)
    found = live.estimate()
    if "factor model" in live.session.estimate().how:
        assert "falls back to AIPW" in " ".join(found.notes)
        assert "drawn by lot" in found.how and found.score != 0.99
        assert found.interval[0] <= found.score <= found.interval[1]


def test_answers_unlike_the_sources_are_flagged(tmp_path):
    source, target = table(1, 60).split("random", seed=0)
    upside = np.argsort(np.argsort(source.values.mean(axis=0)))
    strange = (upside < 30).astype(float)  # knows what is hard, and nothing else
    errors = left_out_errors(get_method("random"), source, 40, 5)
    notes = []
    for row in (strange, target.values[0].astype(float)):
        place = tmp_path / str(len(notes))
        live = start(get_method("random").fit(source), place, 40, errors=errors,
                     source=source)  # fmt: skip
        known = dict(zip(target.items.index, row.tolist(), strict=True))
        live.tell({name: known[name] for name in live.ask()})
        notes.append(" ".join(live.estimate().notes))
    assert "answers unlike the sources" in notes[0]
    assert "unlike" not in notes[1]


def test_two_runs_are_compared_by_their_method(tmp_path):
    runs = [run_live("kmeans", tmp_path / f"{n}", n, many=True) for n in (0, 5)]
    found, back = paired_runs(*runs), paired_runs(*runs[::-1])
    estimates = [run.session.estimate().score for run in runs]
    assert found.difference == pytest.approx(estimates[0] - estimates[1])
    assert "own estimates" in found.how and "by lot" not in found.note
    assert found.interval[0] == pytest.approx(-back.interval[1])
    assert found.better == pytest.approx(1 - back.better)
    bare = run_live("kmeans", tmp_path / "bare", 5, errors=False, many=True)
    found = paired_runs(runs[0], bare)
    assert found.how == "single items" and "no sources were left out" in found.note
    few = [run_live("kmeans", tmp_path / f"few{n}", n) for n in (0, 5)]
    assert "18 left-out sources are too few for 95%" in paired_runs(*few).note
    other = run_live("kmeans", tmp_path / "seed", 5, seed=1, many=True)
    assert "other seeds" in paired_runs(runs[0], other).note
    drawn = [run_live("random", tmp_path / f"r{n}", n, errors=False) for n in (0, 5)]
    assert paired_runs(*drawn).how == "single items" and not paired_runs(*drawn).note


def test_adaptive_runs_need_no_common_items(tmp_path):
    how = dict(budget=12, many=True)
    runs = [run_live("adaptive_irt", tmp_path / f"{n}", n, **how) for n in (0, 5)]
    runs[1].answers = {f"other {n}": x for n, x in runs[1].answers.items()}
    found = paired_runs(*runs)
    assert found.items == 0 and "own estimates" in found.how


def test_notebooks_show_what_comes_next_and_nothing_is_obeyed(tmp_path):
    source, _ = halves()
    evil = "<script>alert(1)</script>"
    names = [f"{evil}{number}" for number in range(60)]
    items = source.items.set_axis(names).assign(task=evil)
    scores = Scores(source.values, items, [evil, *source.models.index[1:]])
    live = start(get_method("random").fit(scores), tmp_path / "a", 60, harness="list")
    shown = [scores._repr_html_(), live._repr_html_(), live.session._repr_html_()]
    assert "next: 60" in shown[1] and "next: 60" in shown[2]
    live.tell(dict.fromkeys(live.ask(), 1.0))
    shown += [live._repr_html_(), live.session._repr_html_()]
    shown += [Estimate(0.5, how=evil, notes=(evil,))._repr_html_()]
    assert "finished" in shown[3] and "finished" in shown[4]
    for html in shown:
        assert "<script" not in html
    assert all("&lt;script" in shown[n] for n in (0, 1, 2, 5))


# Several processes, and death ------------------------------------------------------


def in_child(work):
    "Do it in a process of its own; how it ended"
    child = os.fork()
    if not child:
        try:
            work()
        except BaseException:
            os._exit(1)
        os._exit(0)
    return child


def a_live(method="adaptive_irt"):
    "A live evaluation and the answers of the new model"
    scores = import_logs("lm-eval", "logs")
    live = start(get_method(method).fit(scores), "new", 20)
    row = {
        f"{t}/{n}": float(x)
        for t, right in RIGHT.items()
        for n, x in enumerate(right[8])
    }
    return live, row


def test_two_processes_tell_at_once(place):
    live, row = a_live("random")
    asked = live.ask()
    shares = [asked[n::4] for n in range(4)]
    children = [
        in_child(lambda names=names: [Live("new").tell({n: row[n]}) for n in names])
        for names in shares
    ]
    assert [os.waitpid(child, 0)[1] for child in children] == [0] * 4
    live = Live("new")
    assert not live.ask() and set(live.answers) == set(asked)
    assert all(live.answers[name] == row[name] for name in asked)


@pytest.mark.parametrize("method", ["random", "adaptive_irt"])
def test_killed_at_every_write_nothing_told_is_lost(method, place, monkeypatch):
    live, row = a_live(method)
    expected = None
    for at in range(40):
        kept = dict(Live("new").answers)
        done = []

        def die(*args, at=at, done=done, replace=os.replace):
            done.append(1)
            if len(done) == at % 4 + 1:
                os.kill(os.getpid(), signal.SIGKILL)
            replace(*args)

        def work(die=die):
            os.replace = die
            one = Live("new")
            one.tell({name: row[name] for name in one.ask()[:7]})

        os.waitpid(in_child(work), 0)
        live = Live("new")
        assert kept.items() <= live.answers.items()
        assert all(row[name] == score for name, score in live.answers.items())
        if not live.ask():
            expected = live.session.estimate().score
            break
    assert expected is not None
    os.rename("new", "old")
    fresh, _ = a_live(method)
    while fresh.ask():
        fresh.tell(row)
    assert fresh.session.estimate().score == expected


def test_an_answer_that_contradicts_an_earlier_one_changes_nothing(place):
    live, row = a_live("random")
    asked = live.ask()
    live.tell({name: row[name] for name in asked[:5]})
    before = files_in(Path("new"))
    other = {name: row[name] for name in asked} | {asked[2]: 1 - row[asked[2]]}
    with pytest.raises(ValueError, match="was told . before and . now"):
        live.tell(other)
    assert files_in(Path("new")) == before
    assert not live.tell({name: row[name] for name in asked}).ask()


def test_damaged_folders_are_refused(place):
    live, row = a_live("random")
    live.tell({name: row[name] for name in live.ask()[:5]})
    for name in (
        "plan.json",
        "answers.json",
        "session.json",
        "method.json",
        "arrays.npz",
    ):
        path = Path("new", name)
        whole = path.read_bytes()
        for data in (b"", whole[: len(whole) // 2], b"[]", b"\x00" * 10):
            path.write_bytes(data)
            with pytest.raises(ValueError) as caught:
                Live("new")
            assert "\n" not in str(caught.value)
        path.write_bytes(whole)
    assert len(Live("new").answers) == 5


# Two models ----------------------------------------------------------------------


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
    a, b = Live("a").answers, Live("b").answers
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


def test_paired_weighs_a_draw_by_lot_once():
    "Heavy items are drawn more often: the mean over many draws is the true difference"
    rng = np.random.default_rng(0)
    names = [f"i{n}" for n in range(200)]
    weights = pd.Series(np.exp(rng.normal(size=200)), names)
    weights /= weights.sum()
    a, b = rng.random(200) < 0.3 + 0.6 * (weights.rank(pct=True)), rng.random(200) < 0.4
    a, b = (dict(zip(names, x.astype(float), strict=True)) for x in (a, b))
    truth = sum((a[n] - b[n]) * weights[n] for n in names)
    items = pd.DataFrame({"task": "t", "weight": weights * 200}, names)
    method = RandomSampling().fit(Scores(rng.integers(0, 2, (6, 200)), items))
    found = []
    for seed in range(150):
        drawn = method.items_.index[ready(method, 50, seed).coreset_]
        mine = {name: a[name] for name in drawn}
        found.append(paired(mine, b, weights, 200).difference)
    assert abs(np.mean(found) - truth) < 4 * np.std(found) / np.sqrt(150) + 0.01
    assert abs(paired(a, b, weights, 200).difference - truth) < 1e-9


def test_paired_is_even_handed():
    rng = np.random.default_rng(0)
    a, b = (dict(enumerate(rng.random(30))) for _ in range(2))
    one, two = paired(a, b, total=200), paired(b, a, total=200)
    assert np.isclose(one.difference, -two.difference)
    assert np.allclose(one.interval, np.negative(two.interval)[::-1])
    assert np.isclose(one.better, 1 - two.better)
    exact = paired(a, b, total=30)
    assert np.allclose(exact.interval, exact.difference)


def test_choices_are_checked():
    with pytest.raises(ValueError, match="repeated='never' is no choice"):
        Choices(repeated="never")


# Widths, late answers, and whose answers they are ---------------------------------


def a_row(row=8):
    "All answers of the new model"
    return {
        f"{t}/{n}": float(x)
        for t, right in RIGHT.items()
        for n, x in enumerate(right[row])
    }


def tell_all(folder, row):
    "Tell what is asked, opening the folder anew each time; the sizes of the rounds"
    sizes = []
    while asked := Live(folder).ask():
        sizes.append(len(asked))
        Live(folder).tell({name: row[name] for name in asked})
    return sizes


GROWING = ["random", "stratified", "difference", "aipw", "adaptive_irt"]


@pytest.mark.parametrize(
    "name", [*GROWING, "kmeans", "gp_irt", "p_irt", "tailored_bench", "anchor_points"]
)
def test_every_method_reaches_a_width_or_says_no_at_once(name, place):
    source, target = halves()
    method = get_method(name)
    try:
        start(method.fit(source), "new", width=0.2, harness="list", source=source)
    except ValueError as error:
        assert "gives no interval" in str(error) and name not in GROWING
        assert not Path("new").exists()
        return
    names, values = target.items.index, target.values[0].astype(float)
    sizes = tell_all("new", dict(zip(names, values, strict=True)))
    found = Live("new").estimate()
    wide = found.interval[1] - found.interval[0]
    assert wide <= 0.2 and len(sizes) > 1 or sum(sizes) == 60 or found.notes


def test_a_method_that_cannot_grow_alone_is_refused_before_the_pilot(place):
    source = halves()[0]
    with pytest.raises(ValueError, match="needs its sources to grow"):
        start(get_method("aipw").fit(source), "new", width=0.2, harness="list")
    assert not Path("new").exists()


def test_the_last_whole_stage_is_the_estimate_meanwhile(place):
    scores, row = import_logs("lm-eval", "logs"), a_row()
    live = start(get_method("random").fit(scores), "new", width=0.15)
    with pytest.raises(ValueError, match="items are still to be told"):
        live.estimate()
    live.tell({name: row[name] for name in live.ask()})
    left = len(live.ask())
    found = live.estimate()
    assert left and any(f"{left} items are still to be told" in n for n in found.notes)
    assert len(found.items) == len(live.answers)


@pytest.mark.parametrize("method", ["random", "adaptive_irt"])
def test_an_unscored_answer_may_be_scored_later(method, place):
    live, row = a_live(method)
    tell_all("new", dict.fromkeys(row, np.nan))
    assert not Live("new").ask() and np.isnan(list(Live("new").answers.values())).all()
    Live("new").tell(row)
    tell_all("new", row)
    late = Live("new")
    late.tell(dict.fromkeys(row, np.nan))  # the old log again is no news
    assert not set(late.session.estimate().unscored)
    os.rename("new", "old")
    fresh, _ = a_live(method)
    tell_all("new", row)
    assert Live("new").session.estimate().score == late.session.estimate().score


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
    assert "--model 'org/one'" in err and files_in(Path("new")) == before
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
    assert set(Live("new").answers) == {f"sums/{n}" for n in wanted[2:]}


def test_adaptive_methods_stay_within_the_tokens(place):
    source, target = halves()
    for name in ("adaptive_irt", "tailored_bench", "random"):
        method = get_method(name).fit(source)
        cost = method.items_["cost"]
        for tokens in (3000, 6000):
            budget = items_for_tokens(method, tokens)
            for found in estimates(prepared(method, budget), target, None):
                assert cost[found.items].sum() <= tokens


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
    a, b = (dict(enumerate(row)) for row in np.eye(2, 30))
    assert paired(a, b).note == "" and "kmeans" in paired(a, b, method="kmeans").note
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
    assert Live("new").session.method.budget_ == 12
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
    code, _, err = call("plan", "wide.csv", *plan)
    assert code == 2 and "import table wide.csv" in err, err
    code, _, err = call("import", "table", "blank.csv", "--out", "b.parquet")
    assert code == 2 and "no item was scored" in err and not Path("b.parquet").exists()
    call("plan", "zoo", "--method", "random", "--budget", 9, "--out", "new")
    code, _, err = call("tell", "new", "empty.csv")
    assert code == 2 and "'empty.csv' holds no table" in err


# Lists of answers, and pairs, as people make them by hand --------------------------


def a_plan(call, name="new", method="random"):
    "An evaluation that asks for a list of items; the names asked"
    if not Path("s.parquet").exists():
        halves()[0].to_parquet("s.parquet")
    plan = ["plan", "s.parquet", "--method", method, "--budget", 12, "--folds", 0]
    code, _, err = call(*plan, "--harness", "list", "--out", name)
    assert code == 0, err
    return Live(name).ask()


def write_list(names, score=1, more="", head="item,score"):
    "A list of answers"
    lines = [head, *(f"{name},{score}" for name in names), *more.splitlines()]
    Path("answers.csv").write_text("\n".join(lines) + "\n")


def test_two_answers_to_one_item_are_a_choice(call):
    names = a_plan(call)
    write_list(names, more=f"{names[0]},0")
    for choice in ([], ["--repeated", "error"]):
        code, _, err = call("tell", "new", "answers.csv", *choice)
        assert code == 2 and names[0] in err and "--repeated first, last or" in err
    assert not Live("new").answers
    for choice, score in {"first": 1, "last": 0, "mean": 0.5}.items():
        a_plan(call, choice)
        code, _, err = call("tell", choice, "answers.csv", "--repeated", choice)
        assert code == 0 and Live(choice).answers[names[0]] == score, err
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


def test_a_name_with_a_line_break_is_not_put_into_a_list(tmp_path):
    table = Scores(np.eye(4), ["a", "b", "c\nd", "e"])
    method = get_method("random").fit(table)
    with pytest.raises(ValueError, match="'c\\\\nd' has a line break"):
        start(method, tmp_path / "new", 4, harness="list")
    assert not files_in(tmp_path)


def test_what_cannot_be_paired_is_said(call):
    names = a_plan(call, "a", "kmeans"), a_plan(call, "b", "kmeans")
    write_list(names[0])
    assert call("tell", "a", "answers.csv")[0] == 0
    assert call("tell", "b", "--give-up")[0] == 0
    code, out, err = call("paired", "a", "b")
    assert (code, out) == (2, "") and "no answer of B ('b') has a score" in err
    code, out, err = call("paired", "a", "./a")
    assert (code, out) == (2, "") and "A and B are both 'a'" in err


def test_items_drawn_by_lot_need_no_note(call):
    names = a_plan(call, "a", "aipw")
    write_list(names)
    assert call("tell", "a", "answers.csv")[0] == 0
    write_list([f"m,{name}" for name in names], 0, head="model,item,score")
    Path("answers.csv").rename("b.csv")
    code, out, err = call("paired", "a", "b.csv", "--format", "table")
    assert code == 0 and "A - B     +1.000" in out and "note" not in out, err


def test_few_sources_bound_a_probability(tmp_path):
    runs = [run_live("kmeans", tmp_path / f"{n}", n, many=True) for n in (0, 5)]
    found = paired_runs(*runs)
    count = len(runs[0].left_out(20))
    assert found.least == pytest.approx(1 / (count + 2))
    assert found.chance(1) == f"{found.better:.1%}" or found.chance()[0] in "<>"


def test_lost_answers_are_noticed(place):
    live, row = a_live("random")
    live.tell(row)
    Path("new/answers.json").unlink()
    with pytest.raises(ValueError, match="answers.json' lacks answers that were told"):
        Live("new")
