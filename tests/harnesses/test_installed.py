"""lm-evaluation-harness and Inspect evaluate small models, and their own log files
give an estimate (`make harnesses`)."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from benchnb.harnesses.logs import Choices, import_logs
from benchnb.live.evaluation import Evaluation
from tools.run import ROOT

PYTHON = Path(os.environ.get("HARNESSES", ROOT / ".venv-harnesses")) / "bin/python"
pytestmark = pytest.mark.skipif(
    not PYTHON.exists(), reason="run `make harnesses` first"
)

# Several calls of lm_eval in one process: importing it takes longer than the models
LM_EVAL = """
import json, sys
from lm_eval.__main__ import cli_evaluate
for argv in json.load(open(sys.argv[1])):
    sys.argv = ["lm_eval", *argv]
    cli_evaluate()
"""
TASK = """
task: {name}
dataset_path: json
dataset_kwargs:
  data_files:
    test: {place}/{name}.jsonl
test_split: test
output_type: multiple_choice
doc_to_text: "{{{{question}}}}"
doc_to_target: answer
doc_to_choice: "{{{{choices}}}}"
metric_list:
  - metric: acc
    aggregation: mean
    higher_is_better: true
"""
INSPECT = """
import zlib
from inspect_ai import Task, task
from inspect_ai.dataset import Sample
from inspect_ai.model import ModelOutput
from inspect_ai.scorer import match
from inspect_ai.solver import solver


@solver
def guess():
    "Right for some samples, by the names of model and sample"
    async def solve(state, generate):
        # not generate(state): to count tokens it would ask the network
        name = f"{state.model}{state.sample_id}".encode()
        right = zlib.crc32(name) % 10 < 3 + len(str(state.model)) % 7
        text = "yes" if right else "no"
        state.output = ModelOutput.from_content(str(state.model), text)
        return state
    return solve


@task
def tiny():
    questions = [(n, f"Is {n} a number?") for n in range(1, 91)]
    samples = [Sample(id=n, input=text, target="yes") for n, text in questions]
    return Task(dataset=samples, solver=guess(), scorer=match())
"""
OFFLINE = {
    "HF_HUB_OFFLINE": "1",
    "HF_DATASETS_OFFLINE": "1",
    "OMP_NUM_THREADS": "1",
    "TOKENIZERS_PARALLELISM": "false",
    "INSPECT_DISPLAY": "none",
}


def call(*argv, cwd):
    "A command of the harnesses' environment, or of this library in its own"
    env = os.environ | OFFLINE | {"HF_HOME": str(cwd / "hf"), "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [str(word) for word in argv], cwd=cwd, env=env, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-3000:]
    return done.stdout


def benchnb(*argv, cwd):
    "A command of this library"
    return call(sys.executable, "-m", "benchnb", *argv, cwd=cwd)


def lm_eval(argvs, cwd):
    "Several calls of lm_eval"
    (cwd / "driver.py").write_text(LM_EVAL)
    (cwd / "calls.json").write_text(json.dumps([list(map(str, a)) for a in argvs]))
    call(PYTHON, "driver.py", "calls.json", cwd=cwd)


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    "Seven small language models with random weights, and two tasks of 100 and 20 items"
    from benchnb.tasks.local_model import small_model

    place = tmp_path_factory.mktemp("world")
    rng = np.random.default_rng(0)
    words, texts = [f"word{n}" for n in range(40)], []
    for name, size in (("alpha", 100), ("beta", 20)):
        docs = []
        for _ in range(size):
            choices = rng.choice(words, 4, replace=False).tolist()
            doc = {"question": " ".join(rng.choice(words, 6)), "choices": choices}
            docs.append(doc | {"answer": int(rng.integers(4))})
            texts.append(" ".join([doc["question"], *choices]))
        lines = "".join(json.dumps(doc) + "\n" for doc in docs)
        (place / f"{name}.jsonl").write_text(lines)
        (place / f"{name}.yaml").write_text(TASK.format(name=name, place=place))
    for seed in range(7):
        model, tokenizer = small_model(texts, spread=0.5, seed=seed)
        for part in (model, tokenizer):
            part.save_pretrained(place / "models" / f"m{seed}")
    return place


def full(model, output):
    "The arguments of a full run"
    argv = ["--model", "hf", "--model_args", f"pretrained=models/{model}"]
    argv += ["--tasks", "alpha,beta", "--include_path", ".", "--log_samples"]
    return [*argv, "--output_path", output, "--device", "cpu", "--batch_size", "16"]


def planned(out):
    "The printed line of lm_eval as arguments, with what this world needs beside"
    line = next(line for line in out.splitlines() if line.startswith("lm_eval "))
    argv = line.split()[1:] + ["--include_path", "."]
    return [*argv, "--device", "cpu", "--batch_size", "16"]


def test_lm_eval_from_logs_to_a_score(world):
    lm_eval([full(f"m{n}", "logs") for n in range(6)] + [full("m6", "truth")], world)
    out = benchnb("import", "lm-eval", "logs", "--out", "s.parquet", cwd=world)
    assert out.startswith("6 models x 120 items, 2 tasks")
    truth = import_logs("lm-eval", world / "truth")
    results = json.loads(next((world / "truth").rglob("results_*.json")).read_text())
    for task, score in truth.performance(by="task").iloc[0].items():
        assert np.isclose(results["results"][task]["acc,none"], score)

    argv = ["plan", "s.parquet", "--method", "random", "--budget", 40, "--out", "new"]
    out = benchnb(*argv, "--model", "models/m6", cwd=world)
    wanted = json.loads((world / "new/samples_1.json").read_text())
    lm_eval([planned(out)], world)
    out = benchnb("tell", "new", "new/logs", cwd=world)
    assert "40 told, 40 of 120 items" in out

    live = Evaluation.load(world / "new")
    row = dict(zip(truth.items.index, truth.values[0], strict=True))
    assert {name: row[name] for name in live.answers} == live.answers
    assert {t: len(ids) for t, ids in wanted.items()} == {
        task: sum(name.startswith(f"{task}/") for name in live.answers)
        for task in wanted
    }
    report = json.loads(benchnb("estimate", "new", "--json", cwd=world))
    assert report["items"] == {"spent": 40, "full": 120}
    low, high = report["interval"]
    score = truth.performance().iloc[0]
    assert low <= score <= high and abs(report["score"] - score) < 0.2
    benchnb("paired", "new", "truth", "--format", "lm-eval", cwd=world)

    adaptive(world, row)
    disorder(world)


def adaptive(world, row):
    "A method that asks twice: the second file is run as well"
    argv = ["plan", "s.parquet", "--method", "tailored_bench", "--budget", 30]
    out = benchnb(*argv, "--out", "twice", "--model", "models/m6", cwd=world)
    for _ in range(3):
        lm_eval([planned(out)], world)
        out = benchnb("tell", "twice", "twice/logs", cwd=world)
        if "\nscore " in out:
            break
    answers = Evaluation.load(world / "twice").answers
    assert len(answers) == 30 and all(row[name] == x for name, x in answers.items())


def disorder(world):
    "A list that is not sorted logs wrong ids in this harness; the hash finds out"
    (world / "bad.json").write_text(json.dumps({"alpha": [90, 3, 57]}))
    argv = full("m6", "bad")
    argv[argv.index("alpha,beta")] = "alpha"
    lm_eval([[*argv, "--samples", "bad.json"]], world)
    logs = [world / "logs", world / "bad"]
    truth = import_logs("lm-eval", world / "truth")
    right = {name: truth.values[0, n] for n, name in enumerate(truth.items.index)}
    try:
        found = import_logs("lm-eval", logs)  # a later version that is right
    except ValueError as error:
        assert "unsorted list" in str(error)
        found = import_logs("lm-eval", logs, Choices(match="hash"))
    new = found.values[6]
    for name in ("alpha/3", "alpha/57", "alpha/90"):
        assert new[found.items.index.get_loc(name)] == right[name]
    assert (~np.isnan(new)).sum() == 3


def inspect(*argv, cwd):
    return call(PYTHON, "-m", "inspect_ai", "eval", "tiny.py", *argv, cwd=cwd)


def test_inspect_from_logs_to_a_score(tmp_path):
    (tmp_path / "tiny.py").write_text(INSPECT)
    models = ",".join("mockllm/" + "m" * n for n in range(1, 7))
    inspect("--model", models, "--log-dir", "logs", cwd=tmp_path)
    inspect("--model", "mockllm/new", "--log-dir", "truth", cwd=tmp_path)
    out = benchnb("import", "inspect", "logs", "--out", "s.parquet", cwd=tmp_path)
    assert out.startswith("6 models x 90 items, 1 task")
    argv = ["plan", "s.parquet", "--method", "random", "--budget", 40, "--out", "new"]
    argv += ["--harness", "inspect", "--model", "mockllm/new"]
    out = benchnb(*argv, cwd=tmp_path)
    line = next(
        line for line in out.splitlines() if line.startswith("inspect eval tiny ")
    )
    inspect(*line.split()[3:], cwd=tmp_path)
    out = benchnb("tell", "new", "new/logs", cwd=tmp_path)
    assert "40 told, 40 of 90 items" in out
    truth = import_logs("inspect", tmp_path / "truth")
    row = dict(zip(truth.items.index, truth.values[0], strict=True))
    live = Evaluation.load(tmp_path / "new")
    assert all(row[name] == score for name, score in live.answers.items())
    low, high = live.report()["interval"]
    assert low <= truth.performance().iloc[0] <= high
