"Small logs in every format, written as their harnesses write them"

import hashlib
import json
import zipfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

TIME = "2026-01-21T03-44-18.458309"
EARLIER = "2026-01-20T03-44-18.458309"


def refused(make, *words):
    "The error is one line with these words"
    with pytest.raises((ValueError, OSError)) as caught:
        make()
    message = str(caught.value)
    assert "\n" not in message and len(message) < 600
    assert not [word for word in words if word not in message], message


def document(task, number):
    "One made-up question"
    return {"question": f"{task}: what is {number} + 1?", "answer": number + 1}


def digest(value):
    "A hash as lm-evaluation-harness makes it"
    text = json.dumps(value, indent=2, ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


def lm_eval_row(task, number, score, metric="acc", filter="none", pad=0, **more):
    "One line of samples, newest vintage"
    doc = document(task, number)
    prompt = doc["question"] + " x" * pad
    row = {"doc_id": number, "doc": doc, "target": "B"}
    row["arguments"] = {"gen_args_0": {"arg_0": prompt, "arg_1": " B"}}
    row |= {"resps": [[["-24.03", "False"]]], "filtered_resps": [["-24.03", "False"]]}
    row |= {"filter": filter, "metrics": [metric], "doc_hash": digest(doc)}
    row |= {"prompt_hash": digest(prompt), "target_hash": digest("B")}
    return row | {metric: score} | more


VINTAGES = {
    "2024-11": (),
    "2024-05": ("filter", "metrics"),
    "2023-12": ("filter", "metrics", "doc_hash", "prompt_hash", "target_hash"),
}


def of_vintage(row, vintage):
    "The row as an earlier version wrote it"
    return {key: value for key, value in row.items() if key not in VINTAGES[vintage]}


def write_rows(path, rows, end="\n"):
    "Lines of JSON"
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = "\n".join(json.dumps(row, ensure_ascii=False) for row in rows)
    path.write_text(lines + end, "utf-8")
    return path


def write_json(path, value):
    "A file of JSON"
    path.write_text(json.dumps(value))
    return path


def write_results(folder, model, tasks, time=TIME, **more):
    "The file of results beside the samples"
    about = {"model_name": model, "date": 1768964383.8}
    about["results"] = {task: {} for task in tasks}
    about["config"] = {"model": "hf", "model_args": f"pretrained={model}"}
    Path(folder).mkdir(parents=True, exist_ok=True)
    return write_json(Path(folder, f"results_{time}.json"), about | more)


def write_lm_eval(folder, model, answers, time=TIME, vintage="2024-11", **more):
    "A run: a file for each task, and the results"
    place = Path(folder, model.replace("/", "__"))
    for task, scores in answers.items():
        pairs = scores.items() if isinstance(scores, dict) else enumerate(scores)
        rows = [of_vintage(lm_eval_row(task, n, s, **more), vintage) for n, s in pairs]
        write_rows(place / f"samples_{task}_{time}.jsonl", rows)
    write_results(place, model, answers, time)
    return place


def write_lm_eval_run(folder, model, tasks, *, metric="acc", scores=None, **results):
    "A run with all that its results file says: scores, groups, directions, settings"
    place = Path(folder, model.replace("/", "__"))
    about = {"higher_is_better": {}, "n-samples": {}, "n-shot": {}, "versions": {}}
    about["results"] = {}
    for task, answers in tasks.items():
        pairs = answers.items() if isinstance(answers, dict) else enumerate(answers)
        rows = [lm_eval_row(task, n, s, metric) for n, s in pairs]
        for row in rows:
            if row[metric] is None:  # the task gave no such metric for the document
                del row[metric]
        write_rows(place / f"samples_{task}_{TIME}.jsonl", rows)
        values = [row[metric] for row in rows if metric in row]
        mean = (scores or {}).get(task, sum(values) / max(len(values), 1))
        about["results"][task] = {"alias": task, f"{metric},none": mean}
        about["higher_is_better"][task] = {metric: True}
        about["n-samples"][task] = {"original": len(rows), "effective": len(rows)}
        about["n-shot"][task] = 0
        about["versions"][task] = 1.0
    write_results(place, model, tasks, **(about | results))
    return place


def inspect_log(model, task, scores, epochs=1, **header):
    "Header and samples of a log of Inspect"
    head = {"version": 2, "status": "success"}
    head["eval"] = {"task": task, "model": model}
    head["eval"]["created"] = "2025-12-19T12:36:45+00:00"
    head["results"] = {"total_samples": len(scores) * epochs}
    samples = []
    for epoch in range(1, epochs + 1):
        for number, value in enumerate(scores, 1):
            one = {"id": number, "epoch": epoch, "target": "A"}
            one["input"] = document(task, number)["question"]
            one["scores"] = {"choice": {"value": value, "answer": "A"}}
            one["model_usage"] = {model: {"input_tokens": 100, "output_tokens": 5}}
            samples.append(one)
    return head | header, samples


def write_eval(path, header, samples, zstd=False, **entries):
    "An .eval file"
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    texts = {"header.json": header, "summaries.json": samples} | entries
    method = zipfile.ZIP_STORED if zstd else zipfile.ZIP_DEFLATED
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, content in texts.items():
            if content is not None:
                data = json.dumps(content).encode()
                data = pa.compress(data, "zstd", asbytes=True) if zstd else data
                archive.writestr(name, data)
    if zstd:  # the number of the method, in both places where it stands
        data = path.read_bytes()
        for sign, at in ((b"PK\x03\x04", 8), (b"PK\x01\x02", 10)):
            head, *parts = data.split(sign)
            parts = [p[: at - 4] + b"\x5d\x00" + p[at - 2 :] for p in parts]
            data = sign.join([head, *parts])
        path.write_bytes(data)
    return path


def helm_instance(name, score, split="test", trial=0, **more):
    "One entry of per_instance_stats.json"

    def stat(name, mean):
        return {"name": {"name": name, "split": split}, "count": 1, "mean": mean}

    stats = [stat("exact_match", score), stat("quasi_exact_match", 1.0)]
    stats += [stat("num_prompt_tokens", 300), stat("num_output_tokens", 2)]
    stats += [stat("inference_runtime", 0.5), {"name": {"name": "training_co2_cost"}}]
    return {"instance_id": name, "train_trial_index": trial, "stats": stats} | more


def write_helm(folder, model, scenario, scores):
    "The folder of a run"
    name = f"{scenario},model={model.replace('/', '_')}"
    place = Path(folder, name.replace(":", "-"))
    place.mkdir(parents=True, exist_ok=True)
    rows = [helm_instance(f"id{n}", score) for n, score in enumerate(scores)]
    write_json(place / "per_instance_stats.json", rows)
    spec = {"name": name, "adapter_spec": {"model": model}}
    write_json(place / "run_spec.json", spec)
    states = [
        {"instance": {"id": f"id{n}", "input": {"text": f"{scenario} question {n}"}}}
        for n in range(len(scores))
    ]
    write_json(place / "scenario_state.json", {"request_states": states})
    return place


def write_details(folder, model, task, scores, dialect="first"):
    "A file of the leaderboard's details"
    texts = [document(task, n)["question"] for n in range(len(scores))]
    scores = list(map(float, scores))
    columns = {
        "first": {"example": texts, "acc": scores},
        "lighteval": {
            "__doc__": [{"query": t, "id": str(n)} for n, t in enumerate(texts)],
            "__metric__": [{"acc": s} for s in scores],
        },
    }[dialect]
    place = Path(folder, f"details_{model.replace('/', '__')}")
    place.mkdir(parents=True, exist_ok=True)
    path = place / f"details_{task}_2023-09-18T10-11-12.345678.parquet"
    pq.write_table(pa.table(columns), path)
    return path


def write_helm_run(folder, name, model, stats, mean=None, split="test", **adapter):
    "A run with statistics of your own: a dict of values each, None: not there"
    name = f"{name}{',' if ':' in name else ':'}model={model.replace('/', '_')}"
    place = Path(folder, name)
    while place.exists():
        place = place.with_name(f"{place.name}_")
    place.mkdir(parents=True)

    def stat(metric, value):
        about = {"name": {"name": metric, "split": split}, "count": 0}
        return about if value is None else about | {"count": 1, "mean": value}

    size = max(map(len, stats.values()))
    rows = [
        {
            "instance_id": f"id{n}",
            "train_trial_index": 0,
            "stats": [
                stat(metric, values[n])
                for metric, values in stats.items()
                if n < len(values)
            ],
        }
        for n in range(size)
    ]
    write_json(place / "per_instance_stats.json", rows)
    spec: dict = {"name": name}
    spec["adapter_spec"] = {"model": model, "model_deployment": model} | adapter
    write_json(place / "run_spec.json", spec)
    means = {
        metric: np.mean([value for value in values if value is not None])
        for metric, values in stats.items()
    } | (mean or {})
    write_json(
        place / "stats.json",
        [stat(metric, float(value)) for metric, value in means.items()],
    )
    return place


def write_lighteval(folder, model, tasks, time=TIME, ids=None, config=None, **results):
    "Details of lighteval 0.13 and its results; tasks: name -> metric -> scores"
    means = {}
    for task, metrics in tasks.items():
        size = len(next(iter(metrics.values())))
        numbers = list(ids or range(size))
        rows = [{name: x[n] for name, x in metrics.items()} for n in range(size)]
        docs = [
            {"query": document(task, number)["question"], "id": str(number)}
            for number in numbers
        ]
        answer = {"input_tokens": [1, 2, 3], "output_tokens": [[4]]}
        answers = [answer | {"truncated_tokens_count": 0} for _ in range(size)]
        place = Path(folder, "details", model, time)
        place.mkdir(parents=True, exist_ok=True)
        columns = {"doc": docs, "metric": rows, "model_response": answers}
        pq.write_table(pa.table(columns), place / f"details_{task}_{time}.parquet")
        plain = {n: x for n, x in metrics.items() if not isinstance(x[0], dict)}
        means[task] = {name: float(np.mean(x)) for name, x in plain.items()}
    about = {"config_general": {"model_config": {"model_name": model} | (config or {})}}
    about |= {"results": means | results.pop("means", {})}
    place = Path(folder, "results", model)
    place.mkdir(parents=True, exist_ok=True)
    write_json(place / f"results_{time}.json", about | results)


def write_opencompass(folder, model, task, rows, **more):
    "A result file of OpenCompass; its accuracy is the mean of `correct`"
    place = Path(folder, "results", model)
    place.mkdir(parents=True, exist_ok=True)
    values = [row["correct"] for row in rows if row.get("correct") is not None]
    raw = {"accuracy": 100 * float(np.mean(values))} if values else {}
    return write_json(place / f"{task}.json", raw | {"details": rows} | more)


def write_eee_file(folder, rows, results, name="u1", **about):
    "Samples of Every Eval Ever and the file beside them"
    path = write_rows(Path(folder, f"{name}_samples.jsonl"), rows)
    raw = {"schema_version": "0.3.0", "evaluation_results": results}
    write_json(path.with_name(f"{name}.json"), raw | about)
    return path


def eee_result(task, score, key=None, lower=False, samples=None, args=None, **config):
    "An entry of evaluation_results"
    details = {"score": score, "uncertainty": {"num_samples": samples}}
    entry = {"evaluation_name": task, "score_details": details}
    entry["metric_config"] = {"lower_is_better": lower} | config
    entry |= {"generation_config": {"generation_args": args}} if args else {}
    return entry | ({"evaluation_result_id": key} if key else {})


def right_or_wrong(models, items, seed=0):
    "A matrix of 0 and 1 with good and bad models"
    rng = np.random.default_rng(seed)
    skill = np.linspace(0.2, 0.9, models)[:, None]
    return (rng.random((models, items)) < skill).astype(int)


# A small log of every harness: an item that was right, one wrong, one never scored ----


def lm_eval(folder):
    return write_lm_eval(folder, "m", {"t": [1, 0, None]}) / f"samples_t_{TIME}.jsonl"


def inspect_eval(folder, **how):
    head, samples = inspect_log("m", "quiz", ["C", "I", None], epochs=2)
    return write_eval(folder / "a.eval", head, samples, **how)


def inspect_zstd(folder):
    return inspect_eval(folder, zstd=True)


def inspect_json(folder):
    head, samples = inspect_log("m", "quiz", ["C", "I", None])
    return write_json(folder / "a.json", head | {"samples": samples})


def helm(folder):
    place = write_helm(folder, "m", "quiz", [1, 0, 0])
    path = place / "per_instance_stats.json"
    rows = json.loads(path.read_text())
    del rows[2]["stats"][:2]  # no metric of the last
    return write_json(path, rows)


def details(folder, dialect="first"):
    return write_details(folder, "o/m", "t", [1, 0, np.nan], dialect)


def lighteval(folder):
    return details(folder, "lighteval")


def swebench(folder):
    lists = {"submitted_ids": ["a-1", "a-2"], "resolved_ids": ["a-1"]}
    lists |= {"unresolved_ids": ["a-2"], "pending_ids": ["a-3"]}
    return write_json(folder / "agent.run.json", lists)


def harbor(folder):
    outcomes = [("a", True), ("b", False), ("b", False), ("c", None)]
    trials = [{"task_id": name, "is_resolved": x} for name, x in outcomes]
    return write_json(folder / "results.json", {"results": trials})


def harbor_trial(name, rewards=1.0, agent="terminus-2", model="m", **more):
    "What Harbor writes of one trial; rewards None: it was not graded"
    known = rewards if isinstance(rewards, dict) else {"reward": rewards}
    about = {"name": agent, "version": more.pop("version", "2.0")}
    about["model_info"] = {"name": model, "provider": more.pop("provider", "p")}
    config = {"agent": {"name": agent, "kwargs": more.pop("kwargs", {})}}
    trial = {"task_name": name, "source": "exam", "agent_info": about}
    trial |= {"task_checksum": digest(name), "config": config}
    trial["verifier_result"] = None if rewards is None else {"rewards": known}
    return trial | {"exception_info": None, "step_results": None} | more


def raised(kind, valid=None):
    "An exception, perhaps with what it means for the reward"
    error = {"exception_type": kind, "exception_message": "it failed"}
    return error if valid is None else error | {"policy": {"has_valid_reward": valid}}


def write_harbor(folder, trials, mean=None, rewards=("reward",), **entry):
    "A job: a folder for each trial, and what Harbor makes of them"
    for number, trial in enumerate(trials):
        name = f"{trial['task_name'].replace('/', '_')}__{number}"
        place = Path(folder, name)
        place.mkdir(parents=True, exist_ok=True)
        write_json(place / "result.json", trial | {"trial_name": name})
    if mean is not None:
        means = mean if isinstance(mean, dict) else {"mean": mean}
        about = {"n_trials": len(trials), "metrics": [means]} | entry
        about["reward_stats"] = {name: {} for name in rewards}
        stats = {"evals": {"terminus-2__m__exam": about}}
        write_json(Path(folder, "result.json"), {"n_total_trials": 1, "stats": stats})
    return folder


def swebench_run(resolved, unresolved, total=None, **lists):
    "The report of a run, with its counts"
    report = {"resolved_ids": resolved, "unresolved_ids": unresolved} | lists
    report["resolved_instances"] = len(resolved)
    return report | {"total_instances": total or len(resolved) + len(unresolved)}


def promptfoo_row(says, score=None, place=0, model="m", metrics=None, **more):
    "One row: the variable says what is right, score None is an error of the provider"
    asked = {"q": says}
    test = {"vars": asked, "assert": [{"type": "equals", "value": says}]}
    row = {"promptIdx": 0, "promptId": "8a", "testIdx": place, "testCase": test}
    row |= {"vars": asked, "provider": {"id": model, "label": ""}}
    row |= {"prompt": {"raw": f"Q: {says}", "label": "Q: {{q}}"}}
    row |= {"score": score or 0, "success": bool(score), "namedScores": metrics or {}}
    row |= {"error": None if score else "it failed", "latencyMs": 500, "cost": 0.25}
    row["failureReason"] = 2 if score is None else 0 if score else 1
    row["response"] = {"output": says, "tokenUsage": {"total": 12}}
    return row | more


def promptfoo_sums(rows, provider):
    "What promptfoo adds up for a column"
    kinds = [row["failureReason"] for row in rows]
    sums = {"score": sum(row["score"] for row in rows)}
    for name, kind in (("Pass", 0), ("Fail", 1), ("Error", 2)):
        sums[f"test{name}Count"] = kinds.count(kind)
    return {"raw": "Q: {{q}}", "label": "Q: {{q}}", "provider": provider} | {
        "metrics": sums
    }


def write_promptfoo(path, rows, columns=(), providers=()):
    "What promptfoo eval --output writes"
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    results = {"version": 3, "timestamp": "2026-01-05T10:00:00.000Z"}
    results |= {"prompts": list(columns), "results": rows, "stats": {}}
    about = {"evalId": f"eval-{path.stem}", "config": {"providers": list(providers)}}
    return write_json(path, about | {"results": results})


def promptfoo(folder):
    rows = [promptfoo_row(says, x) for says, x in (("a", 1), ("b", 0), ("c", None))]
    return write_promptfoo(folder / "a.json", rows)


def tau_run(trials, domain="airline", model="m", **info):
    "What tau2 writes: pairs of task and reward; a word ended the trial without one"
    simulations = [
        {"id": f"s{n}", "task_id": task, "agent_cost": 0.5, "duration": 3.0}
        | {"reward_info": None if isinstance(x, str) else {"reward": x}}
        | {"termination_reason": x if isinstance(x, str) else "user_stop"}
        for n, (task, x) in enumerate(trials)
    ]
    about = {"agent_info": {"llm": model, "implementation": "llm_agent"}}
    about["environment_info"] = {"domain_name": domain}
    return {"info": about | info, "tasks": [], "simulations": simulations}


def tau(folder):
    outcomes = [("0", 1.0), ("1", 0.0), ("2", "infrastructure_error")]
    return write_json(folder / "a.json", tau_run(outcomes))


def opencompass(folder):
    rows = {"0": {"correct": True}, "1": {"correct": [False] * 2}}
    rows |= {"2": {"correct": None}, "type": "GEN"}
    return write_json(folder / "a.json", {"accuracy": 75.0, "details": rows})


def eee_line(sample, score=1.0, model="m", task="t", **more):
    "A line of the schema 0.3.0"
    row = {"schema_version": "0.3.0", "evaluation_id": f"x/{model}/1"}
    row |= {"model_id": model, "evaluation_name": task, "sample_id": sample}
    row |= {"answer_attribution": [], "interaction_type": "single_turn"}
    row |= {"input": {"raw": sample, "reference": []}, "output": {"raw": [""]}}
    return row | {"evaluation": {"score": score, "is_correct": score == 1}} | more


def eee(folder):
    more = {"sample_hash": "9c94305328f8e703", "token_usage": {"total_tokens": 3}}
    rows = [eee_line("a", 1, **more), eee_line("b", 0), eee_line("c", None)]
    return write_rows(folder / "f3_samples.jsonl", rows)


def py_irt(folder):
    wins = {"q1": (2, 2), "q2": (0, 1), "q3": (0, 0)}
    counts = {q: {"successes": won, "trials": n} for q, (won, n) in wins.items()}
    rows = [{"subject_id": name, "responses": counts} for name in "mn"]
    return write_rows(folder / "a.jsonl", rows)


def parquet(folder, **columns):
    path = folder / "a.parquet"
    pq.write_table(pa.table(columns), path)
    return path


def wild(folder):
    columns = {"model": ["m"] * 3, "task": ["t"] * 3, "item_id": [*"abc"]}
    columns |= {"score": [1, 0, None], "input_tokens": [1] * 3}
    return parquet(folder, **columns, output_tokens=[1] * 3)


def measurement_db(folder):
    columns = {"subject_id": ["m"] * 3, "item_id": [*"abc"], "response": [1.0, 0, None]}
    return parquet(
        folder, **columns, benchmark_id=["t"] * 3, test_condition=["none", None, None]
    )


def openeval(folder):
    metric = [{"metric": [{"name": "acc"}], "value": [x]} for x in (1.0, 0.0, None)]
    columns = {"response_id": [f"{n}_m_0" for n in "abc"], "model": [{"name": "m"}] * 3}
    return parquet(folder, **columns, scores=metric)


def table(folder):
    path = folder / "a.csv"
    path.write_text("model,item,score,task\nm,q1,1,a\nm,q2,0,a\nm,q3,,a\n")
    return path


def wide(folder):
    path = folder / "a.tsv"
    path.write_text("model\tq1\tq2\nm\t1\t0\nn\t\t0.5\n")
    return path


EXAMPLES = {
    lm_eval: "lm-eval",
    inspect_eval: "inspect",
    inspect_zstd: "inspect",
    inspect_json: "inspect",
    helm: "helm",
    details: "openllm",
    lighteval: "lighteval",
    swebench: "swebench",
    harbor: "harbor",
    promptfoo: "promptfoo",
    tau: "tau",
    opencompass: "opencompass",
    eee: "eee",
    py_irt: "py-irt",
    wild: "wild",
    measurement_db: "measurement-db",
    openeval: "openeval",
    table: "list",
    wide: "table",
}
