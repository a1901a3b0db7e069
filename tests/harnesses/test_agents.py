"Coding agents: from chosen tasks through the harness's report to an estimate"

import json
import re
import shlex

import numpy as np
import pytest

from benchnb.cli.app import main
from benchnb.data.render import format_points
from benchnb.data.sources import load
from benchnb.harnesses.harness import get_harness
from benchnb.live.bundles import find_bundle, load_bundle


def swebench_report(scores, model, asked):
    row = scores.values[scores.models.index.get_loc(model)]
    at = scores.items.index.get_indexer(asked)
    solved = [name for name, i in zip(asked, at, strict=True) if row[i] == 1]
    lists = {"submitted_ids": list(asked), "resolved_ids": solved}
    return lists | {"unresolved_ids": sorted(set(asked) - set(solved))}


def test_patches_that_were_not_evaluated_are_no_failures(tmp_path):
    "submitted_ids are all patches of the file, also those of an earlier round"
    path = tmp_path / "agent.run.json"
    report = {"submitted_ids": ["a__a-1", "a__a-2"], "resolved_ids": ["a__a-2"]}
    path.write_text(json.dumps(report | {"unresolved_ids": []}))
    (log,) = get_harness("swebench").read(path)
    assert list(log.ids) == ["a__a-2"]
    path.write_text(json.dumps(report))  # an old report, without the list
    (log,) = get_harness("swebench").read(path)
    assert dict(zip(log.ids, log.scores, strict=True)) == {"a__a-1": 0, "a__a-2": 1}


def planned(name, capsys):
    "Begin an evaluation; the words of the printed commands, and the items"
    words = ["plan", name, "--method", "random", "--budget", "12"]
    words += ["--model", "org/new", "--out", "my_agent"]  # the table knows its harness
    assert main(words) == 0
    lines = capsys.readouterr().out.splitlines()
    at = next(n for n, line in enumerate(lines) if line.startswith("then: benchnb "))
    with open("my_agent/items_1.txt") as file:
        return lines[at - 2].split(), shlex.split(lines[at])[2:], file.read().split()


def test_tell_reads_the_report_of_the_planned_harness(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    scores = load("swebench_verified")
    command, then, asked = planned("swebench_verified", capsys)
    assert command[command.index("--instance_ids") + 1 :] == asked and len(asked) == 12
    report = swebench_report(scores, scores.models.index[-1], asked[:7])
    report["submitted_ids"] = asked  # five were not evaluated
    run = command[command.index("--run_id") + 1]
    (tmp_path / f"my__agent.{run}.json").write_text(json.dumps(report))
    assert main(then) == 0  # as it was printed, without a format
    out = capsys.readouterr().out
    assert "7 told, 7 of 500 items" in out and asked[8] in out
    assert main(["estimate", "my_agent"]) == 2  # five are still to be run
    assert "5 items still to be told" in capsys.readouterr().err
    report = swebench_report(scores, scores.models.index[-1], asked)
    (tmp_path / "my__agent.second.json").write_text(json.dumps(report))
    assert main(["tell", "my_agent", "my__agent.second.json"]) == 0
    out = capsys.readouterr().out
    truth = len(report["resolved_ids"]) / 12
    assert "5 told, 12 of 500" in out and f"score     {format_points(truth)} " in out


def test_tell_counts_several_trials_of_harbor(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    command, then, asked = planned("terminal_bench", capsys)
    assert [command[n + 1] for n, word in enumerate(command) if word == "-i"] == asked
    job = tmp_path / command[command.index("--jobs-dir") + 1] / "2026-01-21"
    successes = [number % 4 for number in range(len(asked))]  # of three trials
    for task, times in zip(asked, successes, strict=True):
        for number in range(3):
            folder = job / f"{task}__{number}"
            folder.mkdir(parents=True)
            reward = {"rewards": {"reward": float(number < times)}}
            trial = {"task_name": f"terminal-bench/{task}", "verifier_result": reward}
            (folder / "result.json").write_text(json.dumps(trial))
    (job / "result.json").write_text(json.dumps({"n_total_trials": 36}))
    assert main(then) == 0
    out = capsys.readouterr().out
    assert "12 told, 12 of 89 items" in out
    assert f"score     {format_points(np.mean(successes) / 3)} " in out


ESTIMATE = ["estimate", "--bundle", "swebench-verified-50"]


def write(path, value):
    "A file of JSON, in folders that are made"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value))
    return path


@pytest.mark.parametrize(
    "given",
    [
        "evaluation/verified/20260101_mine/results/results.json",
        "evaluation/verified/20260101_mine/results",
        "evaluation/verified/20260101_mine",
        "results.json",
        "mine.first.json",
        "logs/run_evaluation/first/mine",
    ],
)
def test_an_estimate_from_what_is_there_of_swebench(given, tmp_path, capsys):
    "A submission to the leaderboard, a report of a run, or one of each instance"
    scores = load("swebench_verified")
    ids, row = scores.items.index, scores.values[-1] == 1
    place, solved = tmp_path / given, ids[row].tolist()
    if given.startswith("mine"):
        lists = {"resolved_ids": solved, "unresolved_ids": ids[~row].tolist()}
        more = {"total_instances": 500, "completed_ids": [*ids], "error_ids": []}
        write(place, lists | more | {"submitted_ids": [*ids], "schema_version": 2})
    elif given.startswith("logs"):
        for name, good in zip(ids, row.tolist(), strict=True):
            facts = {"patch_exists": True, "resolved": good, "tests_status": {}}
            write(place / name / "report.json", {name: facts})
    else:
        report = {"no_generation": ids[~row][:3].tolist(), "no_logs": []}
        file = place if place.suffix else place / "results.json"
        if given.endswith("_mine"):
            file = place / "results" / "results.json"
            lines = [json.dumps({"instance_id": n, "model_patch": "b"}) for n in ids]
            place.mkdir(parents=True)
            (place / "all_preds.jsonl").write_text("\n".join(lines))
            one = place / "logs" / ids[0] / "report.json"
            write(one, {ids[0]: {"resolved": bool(row[0])}})
        write(file, report | {"resolved": solved})
        write(file.parent / "resolved_by_repo.json", {"django": {"resolved": 3}})
    assert main([*ESTIMATE, str(place), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["items"]["spent"] == 50
    assert found["interval"][0] <= row.mean() <= found["interval"][1]


@pytest.mark.parametrize("name", ["preds.json", "list.json", "all_preds.jsonl", "run"])
def test_predictions_are_to_be_run_first(name, tmp_path, capsys):
    "Patches are no results: one line with the harness's command"
    one = {"instance_id": "django__django-11099", "model_name_or_path": "mine"}
    one["model_patch"] = "diff --git a/x b/x"
    whole = [one] if name == "list.json" else {one["instance_id"]: one}
    path = tmp_path / name / "preds.json" if name == "run" else tmp_path / name
    write(path, one if name.endswith("l") else whole)
    assert main([*ESTIMATE, str(tmp_path / name)]) == 2
    said = capsys.readouterr().err
    command = "python -m swebench.harness.run_evaluation --dataset_name "
    assert said.count("\n") == 1 and command in said
    assert f"--predictions_path {shlex.quote(str(path))}" in said


@pytest.mark.parametrize("beside", ["nothing", "50", "500"])
def test_what_was_never_run_did_not_fail(beside, tmp_path, capsys):
    "results.json names what was resolved; predictions beside it say what was run"
    live = load_bundle(find_bundle("swebench-verified-50"))
    asked, ids = live.ask(), live.items.index.tolist()
    path = write(tmp_path / "results.json", {"resolved": asked[:23], "no_logs": []})
    if beside != "nothing":
        run = asked if beside == "50" else ids
        lines = [json.dumps({"instance_id": n, "model_patch": "x"}) for n in run]
        (tmp_path / "all_preds.jsonl").write_text("\n".join(lines))
    assert main([*ESTIMATE, str(path), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["items"]["spent"] == 50 and found["score"] > 0.3
    assert found["exact"] == (pytest.approx(23 / 500) if beside == "500" else None)


@pytest.mark.parametrize("given", ["report", "folder", "runs"])
@pytest.mark.parametrize("begun", [True, False])
def test_a_shipped_bundle_knows_its_harness(
    begun, given, tmp_path, monkeypatch, capsys
):
    "A report of a run, a folder of reports, or two runs of one agent, without a format"
    monkeypatch.chdir(tmp_path)
    asked = load_bundle(find_bundle("swebench-verified-50")).ask()
    if begun:
        assert main(["plan", "swebench-verified-50", "--out", "b"]) == 0
        assert "swebench.harness.run_evaluation" in capsys.readouterr().out
        assert sorted((tmp_path / "b" / "items_1.txt").read_text().split()) == sorted(
            asked
        )
    lists = {"resolved_ids": asked[:20], "unresolved_ids": asked[20:]}
    path = write(tmp_path / "reports" / "agent.first.json", lists)
    if given == "runs":
        write(tmp_path / "reports" / "agent.second.json", lists)
    place = str(path if given == "report" else path.parent)
    words = ["tell", "b", place] if begun else [*ESTIMATE, place]
    assert main(words) == 0, capsys.readouterr().err
    assert re.search(r"score     [\d.]+ .*points", capsys.readouterr().out)


def test_reports_that_contradict_themselves_or_lack_items(tmp_path, capsys):
    asked = load_bundle(find_bundle("swebench-verified-50")).ask()
    both = {"resolved_ids": asked, "unresolved_ids": asked[:1]}
    assert main([*ESTIMATE, str(write(tmp_path / "agent.run.json", both))]) == 2
    assert "is both in resolved_ids and unresolved_ids" in capsys.readouterr().err
    for name in asked[2:]:  # two had an empty patch
        write(tmp_path / "logs" / name / "report.json", {name: {"resolved": True}})
    assert main([*ESTIMATE, str(tmp_path / "logs")]) == 2
    said = capsys.readouterr().err
    assert "2 items" in said and "AGENT.RUN.json counts it as failed" in said
    for name, text in {"ids.json": json.dumps(asked), "ids.txt": asked[0]}.items():
        (tmp_path / name).write_text(text)
        assert main([*ESTIMATE, str(tmp_path / name)]) == 2
        assert "a list of ids is no result" in capsys.readouterr().err


def test_an_instance_has_one_outcome_and_a_list_of_ids_is_no_result(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    planned("swebench_verified", capsys)
    capsys.readouterr()
    one = load("swebench_verified").items.index[0]
    for names in (("resolved", "unresolved"), ("resolved_ids", "unresolved_ids")):
        path = tmp_path / "verified" / "agent" / "results" / "results.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(dict.fromkeys(names, [one])))
        message = f"{one!r} is both in {names[0]} and {names[1]}"
        with pytest.raises(ValueError, match=message):
            get_harness("swebench").read(path)
    (tmp_path / "ids.json").write_text(json.dumps([one]))
    for path in ("ids.json", "my_agent/items_1.txt"):
        assert main(["tell", "my_agent", path]) == 2
        assert "a list of ids is no result" in capsys.readouterr().err


def test_no_price_is_printed_that_nobody_named(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    scores, words = load("swebench_verified"), ["plan", "swebench_verified"]
    words += ["--method", "random", "--budget", "12", "--folds", "0", "--harness"]
    for dollars in ([], ["--dollars", "2"]):
        name = f"agent{len(dollars)}"
        assert main([*words, "list", "--out", name, *dollars]) == 0
        with open(f"{name}/items_1.txt") as file:
            rows = [f"{item},1" for item in file.read().split()]
        (tmp_path / "new.csv").write_text("\n".join(["item,score", *rows]))
        capsys.readouterr()
        assert main(["tell", name, "new.csv"]) == 0
        lines = capsys.readouterr().out.splitlines()
        known = [line for line in lines if "$" in line or line.startswith("usd")]
        wanted = ["usd       $24 of $1,000 (2.4%)"] if dollars else []
        assert known == wanted and len(scores.items) == 500
