"""lm-evaluation-harness evaluates small models, and its own log files give an estimate
(`make harnesses`); Inspect is in tests/live."""

import json
from dataclasses import replace

import numpy as np
import pytest
from helpers.harnesses import PYTHON, benchnb, call, needed, start

from benchnb.data.scores import Scores
from benchnb.evaluation.registry import get_method
from benchnb.evaluation.simulate import simulate
from benchnb.harnesses.harness import import_logs
from benchnb.harnesses.logs import Choices
from benchnb.live.bundles import load_bundle
from benchnb.live.evaluation import Evaluation

pytestmark = [needed, pytest.mark.slow]
ACC = Choices(metric=("acc",))
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
  - metric: acc_norm
    aggregation: mean
    higher_is_better: true
"""


def lm_eval(argvs, cwd):
    "Several calls of lm_eval"
    (cwd / "driver.py").write_text(LM_EVAL)
    (cwd / "calls.json").write_text(json.dumps([list(map(str, a)) for a in argvs]))
    call(PYTHON, "driver.py", "calls.json", cwd=cwd)


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    "Seven small language models with random weights, and two tasks of 100 and 20 items"
    from benchnb.bento.local_model import make_small_model

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
        model, tokenizer = make_small_model(texts, spread=0.5, seed=seed)
        for part in (model, tokenizer):
            part.save_pretrained(place / "models" / f"m{seed}")
    return place


def full(model, output):
    "The arguments of a full run"
    argv = ["--model", "hf", "--model_args", f"pretrained=models/{model}"]
    argv += ["--tasks", "alpha,beta", "--include_path", ".", "--log_samples"]
    return [*argv, "--output_path", output, "--device", "cpu", "--batch_size", "16"]


def planned(out):
    "The printed line of lm_eval as arguments, for a slow machine"
    line = next(line for line in out.splitlines() if line.startswith("lm_eval "))
    return [*line.split()[1:], "--device", "cpu", "--batch_size", "16"]


@pytest.fixture(scope="module")
def truth(world):
    "The scores of the last model on all items; those of the others are in s.parquet"
    lm_eval([full(f"m{n}", "logs") for n in range(6)] + [full("m6", "truth")], world)
    argv = ["import", "lm-eval", "logs", "--metric", "acc", "--out", "s.parquet"]
    assert benchnb(*argv, cwd=world).startswith("6 models x 120 items, 2 tasks")
    return import_logs("lm-eval", world / "truth", ACC)  # said no more below


def test_lm_eval_from_logs_to_a_score(world, truth):
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
    numbers = {f"{task}/{n}" for task, ids in wanted.items() for n in ids}
    assert numbers == {*live.answers}
    report = json.loads(benchnb("estimate", "new", "--json", cwd=world))
    assert report["items"] == {"spent": 40, "full": 120}
    low, high = report["interval"]
    score = truth.performance().iloc[0]
    assert low <= score <= high and abs(report["score"] - score) < 0.2
    benchnb("paired", "new", "truth", "--format", "lm-eval", cwd=world)

    disorder(world)


def disorder(world):
    "A list that is not sorted logs wrong ids in this harness; the hash finds out"
    (world / "bad.json").write_text(json.dumps({"alpha": [90, 3, 57]}))
    argv = full("m6", "bad")
    argv[argv.index("alpha,beta")] = "alpha"
    lm_eval([[*argv, "--samples", "bad.json"]], world)
    logs = [world / "logs", world / "bad"]
    truth = import_logs("lm-eval", world / "truth", ACC)
    right = {name: truth.values[0, n] for n, name in enumerate(truth.items.index)}
    try:
        found = import_logs("lm-eval", logs, ACC)  # a later version that is right
    except ValueError as error:
        assert "unsorted list" in str(error)
        found = import_logs("lm-eval", logs, replace(ACC, match="hash"))
    new = found.values[6]
    for name in ("alpha/3", "alpha/57", "alpha/90"):
        assert new[found.items.index.get_loc(name)] == right[name]
    assert (~np.isnan(new)).sum() == 3


def publish(world, table, name):
    "A bundle that is also a task of the harness"
    argv = ["publish", table, "--method", "kmeans", "--budget", 12, "--out", name]
    benchnb(*argv, "--harness", "lm-eval", cwd=world)


def logged(place, task):
    "Results and samples of the only run in a folder"
    (results,) = place.rglob("results_*.json")
    (samples,) = place.rglob(f"samples_{task}_*.jsonl")
    rows = [json.loads(line) for line in samples.read_text().splitlines()]
    return json.loads(results.read_text())["results"][task], rows


def test_a_bundle_is_a_task_that_prints_the_estimate(world, truth):
    scores = Scores.from_parquet(world / "s.parquet")
    alpha = scores.select(items=scores.items.index[scores.items["task"] == "alpha"])
    alpha.to_parquet(world / "alpha.parquet")
    publish(world, "alpha.parquet", "one")
    publish(world, "s.parquet", "both")
    out = benchnb("plan", "one", "--model", "models/m6", "--out", "by_hand", cwd=world)
    argvs = [planned(out)]
    for task in ("one", "both"):
        argv = full("m6", f"logs_{task}")
        argv[argv.index("alpha,beta")] = task
        argvs.append(argv)
    shots = [*argvs[1][:-6], "--output_path", "logs_shots", "--num_fewshot", "3"]
    lm_eval([*argvs, [*shots, "--device", "cpu", "--batch_size", "16"]], world)

    benchnb("tell", "by_hand", "by_hand/logs", cwd=world)
    by_hand = json.loads(benchnb("estimate", "by_hand", "--json", cwd=world))
    row = dict(zip(truth.items.index, truth.values[0], strict=True))
    for task in ("one", "both"):
        found, rows = logged(world / f"logs_{task}", task)
        live = load_bundle(world / task)
        asked = live.ask()
        wanted = live.tell({name: row[name] for name in asked}).estimate()
        assert found["estimate,none"] == pytest.approx(wanted.score, abs=1e-9)
        read = ["estimate", "--bundle", task, f"logs_{task}", "--json"]
        read = json.loads(benchnb(*read, cwd=world))  # by the names of the originals
        assert read["score"] == pytest.approx(wanted.score, abs=1e-6)
        unknown = [found[f"{name},none"] for name in ("low", "high", "rank")]
        assert np.isnan(unknown).all()  # 6 sources are too few
        assert found["estimate_stderr,none"] == "N/A" and len(rows) == 12
        if task == "one":
            assert found["estimate,none"] == pytest.approx(by_hand["score"], abs=1e-6)
            assert {f"alpha/{one['doc_id']}" for one in rows} == set(asked)

    (world / "calls.json").write_text(json.dumps([["--limit", "5", *argvs[1]]]))
    done = start(PYTHON, "driver.py", "calls.json", cwd=world)
    assert "one needs its 12 documents, fewer give no estimate" in done.stderr
    _, rows = logged(world / "logs_shots", "one")
    docs = (world / "alpha.jsonl").read_text().splitlines()
    ids = {one["doc_id"] for one in rows}
    others = [json.loads(d)["question"] for n, d in enumerate(docs) if n not in ids]
    seen = json.dumps([one["arguments"] for one in rows])
    assert any(text in seen for text in others)  # examples are from the whole task


@pytest.mark.night
def test_a_bundle_is_found_beside_its_file(world, truth):
    publish(world, "s.parquet", "near")
    (world / "around/inner").mkdir(parents=True)
    argv = ["--include_path", "."] + full("m6", "logs_near")[:4]
    inner = ["--include_path", "../..", *argv[2:], "--tasks", "../../near"]
    argvs = {".": ["--tasks", "near"], "near": ["--tasks", "near"]}
    argvs |= {"around": ["--tasks=../near/near.yaml"], "around/inner": inner[-2:]}
    code = """
import json, os, sys
from lm_eval.config.evaluate_config import EvaluatorConfig
for place, words in json.loads(sys.argv.pop()).items():
    os.chdir(os.path.join(sys.argv[1], place))
    sys.argv[2:] = words
    config = EvaluatorConfig(tasks=words[-1].removeprefix("--tasks="))
    if place == "near":
        config.include_path = "."
    manager = config.process_tasks()
    print(place, [t.folder.name for t in manager.load(config.tasks)["tasks"].values()])
"""
    out = call(PYTHON, "-c", code, world, json.dumps(argvs), cwd=world)
    for place in argvs:
        assert f"{place} ['near']" in out


@pytest.mark.night
def test_a_bundle_refuses_an_edited_task_and_lost_originals(world, truth, tmp_path):
    publish(world, "s.parquet", "two")
    code = "import lm_eval.tasks as t; t.TaskManager(include_path='.').load(['two'])"
    (world / "two").rename(tmp_path / "two")
    for name in ("alpha", "beta"):
        lines = (world / f"{name}.jsonl").read_text().replace("word1", "word2")
        (tmp_path / f"{name}.jsonl").write_text(lines)
        yaml = (world / f"{name}.yaml").read_text()
        (tmp_path / f"{name}.yaml").write_text(yaml.replace(str(world), str(tmp_path)))
    done = start(PYTHON, "-c", code, cwd=tmp_path)
    assert "is another than when the bundle was made" in done.stderr
    (tmp_path / "alpha.yaml").unlink()
    done = start(PYTHON, "-c", code, cwd=tmp_path)
    assert "the harness knows no task 'alpha'" in done.stderr.splitlines()[-1]
    assert done.returncode == 1 and "Traceback" not in done.stderr


def test_all_rounds_run_in_one_process(world, truth):
    argv = ["plan", "s.parquet", "--method", "tailored_bench", "--budget", 30]
    benchnb(*argv, "--out", "driven", "--model", "models/m6", cwd=world)
    argv = "-m benchnb run driven --json -- lm_eval --model hf".split()
    argv += ["--model_args", "pretrained=models/m6"]
    out = call(PYTHON, *argv, "--device", "cpu", "--batch_size", "16", cwd=world)
    live = Evaluation.load(world / "driven")
    assert len(live.rounds) == len(list(world.glob("driven/logs/round_*"))) == 2
    scores = Scores.from_parquet(world / "s.parquet")
    method = get_method("tailored_bench").fit(scores)
    (wanted,) = simulate(method, truth.select(items=scores.items.index), 30)
    assert live.answers == {n: live.answers[n] for n in wanted.items}
    assert live.estimate().score == pytest.approx(wanted.score, abs=1e-9)
    assert json.loads(out)["score"] == pytest.approx(live.estimate().score, abs=1e-6)
