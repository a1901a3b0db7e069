"benchnb gate: exit codes, files for a job, mistakes, and a command that is driven"

import json
import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml
from helpers.logs import write_lm_eval
from helpers.small import table

import benchnb
from benchnb.cli.app import main
from benchnb.cli.decide import task_order
from benchnb.live.evaluation import Evaluation

TASKS = [f"t{k:03}" for k in range(200)]


@pytest.fixture
def call(tmp_path, monkeypatch, capsys):
    "Three versions in tables; gives exit code and what was printed"
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    rng = np.random.default_rng(0)
    right = rng.random(200) < 0.6
    kinds = {"old": right, "same": right, "bad": right & (rng.random(200) < 0.5)}
    for name, scores in kinds.items():
        frame = pd.DataFrame({"item": TASKS, "score": scores * 1.0})
        frame.to_csv(f"{name}.csv", index=False)

    def give(*words):
        code = main([*map(str, words)])
        out, err = capsys.readouterr()
        return code, out + err

    return give


def test_exit_codes_and_files_for_a_job(call, monkeypatch):
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", "page.md")
    Path("page.md").write_text("before\n")
    code, out = call("gate", "old.csv", "same.csv", "--junit", "a.xml")
    assert code == 0 and out.startswith("PASS: new is at least as good as old, less 5")
    suite = ET.parse("a.xml").getroot()
    assert (suite.get("failures"), suite.get("skipped")) == ("0", "0")
    code, out = call("gate", "old.csv", "bad.csv", "--junit", "b.xml", "--json")
    found = json.loads(out)
    assert code == 1 and found["outcome"] == "FAIL" and found["tasks"] < 200
    failure = ET.parse("b.xml").getroot().find("testcase/failure")
    assert failure.get("message").startswith("FAIL: new is worse than old by more")
    page = Path("page.md").read_text()
    assert page.index("before") < page.index("## PASS") < page.index("## FAIL")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", "page.md/no")
    code, out = call("gate", "old.csv", "same.csv", "--junit", "c.xml")
    assert (
        code == 2 and "cannot write 'page.md/no'" in out and not Path("c.xml").exists()
    )
    monkeypatch.delenv("GITHUB_STEP_SUMMARY")
    code, out = call("gate", "old.csv", "same.csv", "--margin", 0.5)
    assert code == 3 and out.startswith("INCONCLUSIVE: it is open")


def test_only_tasks_in_the_drawn_order_count(call):
    code, out = call("gate", "old.csv", "same.csv", "--next", 3)
    assert code == 0 and out == ""  # nothing is left to run
    order = task_order(TASKS, 0)
    frame = pd.read_csv("same.csv").set_index("item").loc[[*order[:8], order[9]]]
    frame.reset_index().to_csv("part.csv", index=False)
    code, out = call("gate", "old.csv", "part.csv")
    assert code == 3 and " 8 of 200 tasks" in out
    words = "`benchnb gate old.csv part.csv --next 20` prints; 1 task that you ran is "
    assert words + "not among the first" in " ".join(out.split())
    assert "The 9 of 200 tasks with a score of both" in out
    assert call("gate", "old.csv", "part.csv", "--next", 2)[1].split() == [
        order[8],
        order[10],
    ]
    frame.iloc[1:].reset_index().to_csv("late.csv", index=False)
    code, out = call("gate", "old.csv", "late.csv", "--summary", "page.md")
    assert code == 3 and "no task of 200 counts yet" in out and "nan" not in out
    page = Path("page.md").read_text()
    assert "nan" not in page and "8 tasks that you ran are not among the first" in page
    more = pd.read_csv("same.csv")
    more.loc[len(more)] = ["another", 1.0]
    more.to_csv("more.csv", index=False)
    assert "that the old version lacks: 1" in call("gate", "old.csv", "more.csv")[1]


def test_the_scores_are_those_of_all_tasks_that_both_have(call):
    "Not only of the tasks up to the decision; in the same words for every reader"
    code, out = call("gate", "old.csv", "bad.csv", "--junit", "a.xml", "--summary", "a")
    old, bad = (pd.read_csv(f"{name}.csv")["score"].mean() for name in ("old", "bad"))
    scores = f"All 200 tasks that both have: new {100 * bad:.1f}, old {100 * old:.1f}"
    assert code == 1 and scores in out
    found = json.loads(call("gate", "old.csv", "bad.csv", "--json")[1])
    both = found["common"]
    assert found["tasks"] < 200 == both["tasks"]
    assert both["new"] - both["old"] == pytest.approx(both["difference"])
    pair = json.loads(call("paired", "bad.csv", "old.csv", "--json")[1])
    assert both["difference"] == pytest.approx(pair["difference"])
    assert both["interval"] == pytest.approx(pair["interval"])
    failure = ET.parse("a.xml").getroot().find("testcase/failure")
    assert scores in failure.get("message")
    cells = f"| all tasks that both have | 200 | {100 * old:.1f} | {100 * bad:.1f} |"
    assert cells in Path("a").read_text()


def test_an_open_gate_with_all_tasks_run_says_what_is_left_to_do(call):
    code, out = call("gate", "old.csv", "same.csv", "--margin", 0.5)
    assert code == 3 and "All tasks are run, and do not settle it" in out
    assert "--next" not in out


HARNESS = """
import sys, pandas as pd
old, names = pd.read_csv(sys.argv[1]).set_index("item"), sys.argv[2].split(",")
from pathlib import Path
new = Path("new/a.csv")
new.parent.mkdir(exist_ok=True)
rows = [pd.read_csv(new)] if new.exists() else []
rows.append(old.loc[names].reset_index())
pd.concat(rows).to_csv(new, index=False)
print(len(names), file=open("calls", "a"))
"""


def test_a_command_is_driven_until_it_is_decided(call):
    Path("harness.py").write_text(HARNESS)
    words = ["--batch", 50, "--", sys.executable, "harness.py"]
    code, out = call("gate", "old.csv", "new", *words, "bad.csv", "{tasks}")
    assert code == 1 and "FAIL" in out
    calls = Path("calls").read_text().count("50")
    assert Path("calls").read_text() == "50\n" * calls
    assert len(pd.read_csv("new/a.csv")) < 200
    code, out = call("gate", "old.csv", "new", *words, "bad.csv", "{tasks}")
    assert code == 1  # nothing is run again
    Path("file.csv").write_bytes(Path("new/a.csv").read_bytes())  # one file, no folder
    again = call("gate", "old.csv", "file.csv", *words, "bad.csv", "{tasks}")
    same = out.replace("new: 'new'", "new: 'file.csv'")
    assert same != out and again == (code, same)  # both versions by their names
    assert Path("calls").read_text().count("50") == calls
    none = call("gate", "old.csv", "none", "--", sys.executable, "-c", "1", "{tasks}")
    assert none[0] == 2 and "logged nothing new in 'none'" in none[1]
    ends = ["--", sys.executable, "-c", "import sys; sys.exit(7)", "{tasks}"]
    failed = call("gate", "old.csv", "none", "--junit", "gate.xml", *ends)
    assert failed[0] == 2 and "ended with 7" in failed[1]
    suite = ET.parse("gate.xml").getroot()
    assert [suite.get(kind) for kind in ("errors", "failures")] == ["1", "0"]
    assert "ended with 7" in suite.find("testcase/error").get("message")
    assert "no {tasks}" in call("gate", "old.csv", "none", "--", "true")[1]


def test_a_command_does_not_run_again_what_the_new_version_has(call):
    Path("harness.py").write_text(HARNESS)
    order = task_order(TASKS, 0)
    done = [order[k] for k in range(3, 60, 2)]  # not among the first
    Path("new").mkdir()
    have = pd.DataFrame({"item": done, "score": 1.0})
    have.to_csv("new/b.csv", index=False)
    words = ["--batch", 50, "--", sys.executable, "harness.py"]
    call("gate", "old.csv", "new", *words, "bad.csv", "{tasks}")
    ran = pd.read_csv("new/a.csv")["item"]
    assert len(ran) and not set(ran) & set(done)


def test_an_evaluation_is_said_to_be_a_part_of_the_benchmark(call):
    table().to_parquet("earlier.parquet")
    for name, score in (("one", 1.0), ("two", 0.0)):
        plan = ["plan", "earlier.parquet", "--budget", 20, "--harness", "list"]
        assert call(*plan, "--out", name)[0] == 0
        run = Evaluation.load(name)
        run.tell({item: score if k % 5 else 0.5 for k, item in enumerate(run.ask())})
    code, out = call("gate", "one", "two", "--margin", 50)
    text = " ".join(out.split())
    assert "'one' has 20 of 60 items, chosen by guarded_irt" in text
    if code == 3:
        assert "benchnb paired one two" in text


def test_what_goes_wrong_is_an_error_in_junit_too(call):
    code, out = call("gate", "old.csv", "nowhere.csv", "--junit", "none.xml")
    suite = ET.parse("none.xml").getroot()
    assert code == 2 and suite.get("errors") == "1"
    assert "nowhere.csv" in suite.find("testcase/error").get("message")


def test_runs_of_a_task_become_one_figure(call):
    rows = [(t, s) for t in TASKS[:60] for s in (1.0, 1.0, 0.0)]
    pd.DataFrame(rows, columns=["item", "score"]).to_csv("three.csv", index=False)
    pd.DataFrame(rows, columns=["item", "score"]).to_csv("again.csv", index=False)
    words = ["gate", "three.csv", "again.csv", "--json"]
    for score, mean in [("mean", 2 / 3), ("pass^2", 1 / 3), ("pass@2", 1.0)]:
        found = json.loads(call(*words, "--measure", score)[1])
        assert found["new"] == pytest.approx(mean) == found["old"]
    assert "several times: 60 of the old version and 60 of the new" in found["note"]
    code, out = call(*words, "--measure", "pass^4")
    assert code == 2 and "60 tasks have fewer than 4 runs" in out


MISTAKES = {
    "gate old.csv nothing.csv": "nothing.csv",
    "gate old.csv old.csv": "name two runs",
    "gate old.csv other.csv": "no task in common",
    "gate old.csv failed.csv": "no task of the new version has a score",
    "gate old.csv same.csv --margin 0.05": "--margin is in points",
    "gate old.csv same.csv --measure best": "--measure 'best' is none",
    "gate old.csv same.csv --data helm_gsm8k": "earlier models has no task 't",
    "gate old.csv empty.csv": "'empty.csv': it is empty: write a line of column names",
    "gate old.csv bytes.csv": "'bytes.csv': it is no text in UTF-8: save it as UTF-8",
    "gate old.csv renamed.csv": "or a table with the columns item and score",
    "gate old.csv same.csv --junit old.csv/a.xml": "cannot write 'old.csv/a.xml'",
    "gate old.csv same.csv --batch 0": "--batch and --next count tasks",
    "gate old.csv same.csv --next 0": "--batch and --next count tasks",
    "gate old.csv same.csv --next 3 --json": "--next only prints tasks",
    "gate lines.csv begun.csv --next 3": "cannot stand on a line",
    "gate old.csv head.csv": "'head.csv' has no rows",
    "gate old.csv same.csv --seed -1": "--seed is a whole number from 0",
    "gate old.csv same.csv --junit same.csv": "'same.csv' is named twice",
    "gate old.csv same.csv --summary old.csv": "'old.csv' is named twice",
    "gate old.csv same.csv --junit a.xml --summary a.xml": "'a.xml' is named twice",
    "gate old.csv part.csv -- nobody {tasks}": "no program 'nobody'",
}


@pytest.mark.parametrize("line", MISTAKES)
def test_a_mistake_is_one_line_and_exit_code_2(call, line):
    other = pd.DataFrame({"item": ["x", "y"], "score": [1.0, 0.0]})
    other.to_csv("other.csv", index=False)
    failed = pd.DataFrame({"item": TASKS, "score": np.nan})
    failed.to_csv("failed.csv", index=False)
    other = pd.read_csv("old.csv").set_axis(["task", "result"], axis=1)
    other.to_csv("renamed.csv", index=False)
    Path("empty.csv").touch()
    frame = pd.DataFrame({"item": [f"a\n{k}" for k in TASKS], "score": 1.0})
    frame.to_csv("lines.csv", index=False)
    frame.head(9).to_csv("begun.csv", index=False)
    Path("head.csv").write_text("item,score\n")
    pd.read_csv("old.csv").head(8).to_csv("part.csv", index=False)
    before = Path("same.csv").read_bytes(), Path("old.csv").read_bytes()
    Path("bytes.csv").write_bytes(bytes(range(256)))
    code, out = call(*line.split())
    assert (code, out.count("\n")) == (2, 1) and MISTAKES[line] in out
    assert before == (Path("same.csv").read_bytes(), Path("old.csv").read_bytes())


FEW = pytest.param("few", 3, marks=pytest.mark.slow)


@pytest.mark.slow
@pytest.mark.parametrize("new, code", [("same", 0), ("bad", 1), FEW, ("", 2)])
def test_the_workflow_of_a_new_project_runs(call, new, code):
    "Its steps, as a runner would take them"
    assert call("new", "exam")[0] == 0
    flow = yaml.safe_load(Path("exam/.github/workflows/gate.yml").read_text())
    job = flow["jobs"]["gate"]
    lines = [step["run"] for step in job["steps"] if "gate" in step.get("run", "")]
    lines = [line for line in lines if "pip install" not in line]
    for folder in ("base/results", "new/results"):  # as it checks them out
        Path(folder).mkdir(parents=True)
    Path("base/results/released.csv").write_bytes(Path("old.csv").read_bytes())
    Path("new/results/released.csv").write_bytes(Path("bad.csv").read_bytes())
    frame = pd.read_csv("same.csv").set_index("item").loc[task_order(TASKS, 0)[:5]]
    frame.reset_index().to_csv("few.csv", index=False)
    if new:
        Path("new/results/new.csv").write_bytes(Path(f"{new}.csv").read_bytes())
    env = (
        os.environ
        | job["env"]
        | {"GITHUB_STEP_SUMMARY": str(Path("page.md").resolve())}
    )
    env["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), env["PATH"]])
    done = [subprocess.run(["bash", "-ec", x], env=env).returncode for x in lines]
    assert done == [code]
    suite = ET.parse("gate.xml").getroot()  # also where the new version is missing
    assert suite.get("errors") == str(int(not new))
    assert Path("page.md").exists() == bool(new)


def test_a_pull_request_brings_no_more_than_its_own_results(call):
    "The released results and the program are of the branch; actions are digests"
    assert call("new", "exam")[0] == 0
    flows = [yaml.safe_load(p.read_text()) for p in Path("exam").rglob("*/workflows/*")]
    steps = [s for flow in flows for job in flow["jobs"].values() for s in job["steps"]]
    used = [step["uses"] for step in steps if "uses" in step]
    assert len(used) > 5 and all(re.fullmatch(r"[\w/-]+@[0-9a-f]{40}", x) for x in used)
    job = yaml.safe_load(Path("exam/.github/workflows/gate.yml").read_text())
    assert "pull_request_target" not in job[True] and {*job["permissions"]} == {
        "contents"
    }
    base, new, *_ = [
        step["with"] for step in job["jobs"]["gate"]["steps"] if "with" in step
    ]
    assert base["path"] == "base" and "base.sha" in base["ref"]
    assert new["path"] == "new" and new["sparse-checkout"] == "/results/new.csv"
    lines = [step.get("run", "") for step in job["jobs"]["gate"]["steps"]]
    assert (
        f"pip install --find-links base/wheels benchnb=={benchnb.__version__}" in lines
    )
    assert [line.count("new/") for line in lines if "new/" in line] == [1]


def test_runs_are_read_as_an_imported_table_was(call):
    "What a log leaves open is said once, at the import"
    for name, task in (("old", [1, 0, 1, 1]), ("new", [1, 1, 1, 0])):
        more = {"metrics": ["acc", "acc_norm"], "acc_norm": 1.0}
        write_lm_eval(Path(name), f"o/{name}", {"t": task}, **more)
    code, out = call("gate", "old", "new")
    assert code == 2 and "benchnb import lm-eval" in out and "--metric acc" in out
    argv = ["import", "lm-eval", "old", "--metric", "acc", "--out", "old.parquet"]
    assert call(*argv)[0] == 0
    for command in ("gate", "paired"):
        code, out = call(command, "old.parquet", "new")
        assert code in (0, 3), out
    argv = ["import", "lm-eval", "new", "--metric", "acc_norm", "--out", "new.parquet"]
    assert call(*argv)[0] == 0
    code, out = call("paired", "old.parquet", "new.parquet")
    assert code == 2 and "import both by the same" in out


@pytest.mark.parametrize("suffix", ["csv", "json"])
def test_values_of_a_bare_list_have_a_direction_and_a_scale(call, suffix):
    values = {f"q{n}": 1 + n % 5 for n in range(200)}
    for name, shift in (("fast", 0), ("slow", 5)):
        run = {item: value + shift for item, value in values.items()}
        if suffix == "csv":
            pd.Series(run, name="score").rename_axis("item").to_csv(f"{name}.csv")
        else:
            Path(f"{name}.json").write_text(json.dumps(run))
    line = ("gate", f"fast.{suffix}", f"slow.{suffix}", "--scale", "1,10")
    assert call(*line)[0] == 0  # more is better
    assert call(*line, "--direction", "lower")[0] == 1
    code, out = call(*line, "--differing", "seed")
    assert code == 2 and "nothing is read from logs: leave --differing out" in out
