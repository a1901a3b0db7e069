"Small logs in every format, written as their harnesses write them"

import hashlib
import json
import zipfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

TIME = "2026-01-21T03-44-18.458309"
EARLIER = "2026-01-20T03-44-18.458309"


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


def write_results(folder, model, tasks, time=TIME, **more):
    "The file of results beside the samples"
    about = {
        "model_name": model,
        "date": 1768964383.8,
        "results": {t: {} for t in tasks},
    }
    about["config"] = {"model": "hf", "model_args": f"pretrained={model}"}
    path = Path(folder, f"results_{time}.json")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(about | more))
    return path


def write_lm_eval(folder, model, answers, time=TIME, vintage="2024-11", **more):
    "A run: a file for each task, and the results"
    place = Path(folder, model.replace("/", "__"))
    for task, scores in answers.items():
        pairs = scores.items() if isinstance(scores, dict) else enumerate(scores)
        rows = [of_vintage(lm_eval_row(task, n, s, **more), vintage) for n, s in pairs]
        write_rows(place / f"samples_{task}_{time}.jsonl", rows)
    write_results(place, model, answers, time)
    return place


def inspect_log(model, task, scores, epochs=1, **header):
    "Header and samples of a log of Inspect"
    head = {"version": 2, "status": "success"}
    head["eval"] = {
        "task": task,
        "model": model,
        "created": "2025-12-19T12:36:45+00:00",
    }
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
    (place / "per_instance_stats.json").write_text(json.dumps(rows))
    spec = {"name": name, "adapter_spec": {"model": model}}
    (place / "run_spec.json").write_text(json.dumps(spec))
    states = [
        {"instance": {"id": f"id{n}", "input": {"text": f"{scenario} question {n}"}}}
        for n in range(len(scores))
    ]
    (place / "scenario_state.json").write_text(json.dumps({"request_states": states}))
    return place


def write_details(folder, model, task, scores, dialect="first"):
    "A file of the leaderboard's details"
    texts = [document(task, n)["question"] for n in range(len(scores))]
    scores = list(map(float, scores))
    columns = {
        "first": {"example": texts, "acc": scores},
        "second": {"example": texts, "metrics.acc": scores},
        "third": {"example": texts, "metrics": [{"acc": s} for s in scores]},
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


def right_or_wrong(models, items, seed=0):
    "A matrix of 0 and 1 with good and bad models"
    rng = np.random.default_rng(seed)
    skill = np.linspace(0.2, 0.9, models)[:, None]
    return (rng.random((models, items)) < skill).astype(int)
