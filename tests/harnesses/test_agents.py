"Coding agents: from chosen tasks through the harness's report to an estimate"

import json
import shlex

import numpy as np

from benchnb.cli.app import main
from benchnb.data.sources import load
from benchnb.harnesses.harness import get_harness


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


def planned(name, harness, capsys):
    "Begin an evaluation; the words of the printed commands, and the items"
    words = ["plan", name, "--method", "random", "--budget", "12"]
    words += ["--harness", harness, "--model", "org/new", "--out", "my_agent"]
    assert main(words) == 0
    lines = capsys.readouterr().out.splitlines()
    at = next(n for n, line in enumerate(lines) if line.startswith("then: benchnb "))
    with open("my_agent/items_1.txt") as file:
        return lines[at - 2].split(), shlex.split(lines[at])[2:], file.read().split()


def test_tell_reads_the_report_of_the_planned_harness(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    scores = load("swebench_verified")
    command, then, asked = planned("swebench_verified", "swebench", capsys)
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
    assert "5 told, 12 of 500" in out and f"score     {truth:.3f}" in out


def test_tell_counts_several_trials_of_harbor(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    command, then, asked = planned("terminal_bench", "harbor", capsys)
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
    assert f"score     {np.mean(successes) / 3:.3f}" in out
