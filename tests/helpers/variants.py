"""Logs of every harness with a property that check_harness tries: a mark of validity, a
wrong aggregate, two settings under one name, another order, less is better, two runs"""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from .logs import (
    EARLIER,
    TIME,
    eee_line,
    eee_result,
    harbor_trial,
    inspect_log,
    lm_eval_row,
    promptfoo_row,
    promptfoo_sums,
    swebench_run,
    tau_run,
    write_details,
    write_eee_file,
    write_eval,
    write_harbor,
    write_helm_run,
    write_json,
    write_lighteval,
    write_lm_eval,
    write_lm_eval_run,
    write_opencompass,
    write_promptfoo,
    write_rows,
)

# lm-eval -----------------------------------------------------------------------------


def lm_number(folder):
    write_lm_eval_run(folder, "m", {"t": [1, 0]}, scores={"t": 0.9})


def lm_model(folder):
    for name, adapter in (("a", {}), ("b", {"peft": "me/x"})):
        config = {"model": "hf", "model_args": {"pretrained": "m"} | adapter}
        answers = {"t": [1, int(name == "a")]}
        write_lm_eval_run(folder / name, "m", answers, config=config)


def lm_item(folder):
    rows = [lm_eval_row("t", n, n % 2) for n in range(4)]
    for model, own in (("m", rows), ("n", [rows[3], rows[0], rows[1]])):
        write_rows(folder / model / "samples_t_2026-01-21T03-44-18.458309.jsonl", own)


def lm_lower(folder):
    about = {"higher_is_better": {"t": {"wer": False}}}
    write_lm_eval_run(folder, "m", {"t": [0.25, 0.5]}, metric="wer", **about)


def lm_runs(folder):
    for name, score in (("a", 1), ("b", 0)):
        write_lm_eval(folder / name, "m", {"t": [score, 1]})


# Inspect -----------------------------------------------------------------------------


def write_inspect(path, scores, model="m", shuffle=False, epochs=1, invalid=0, **about):
    header, samples = inspect_log(model, "quiz", scores, epochs)
    results = about.pop("results", [])
    header["results"]["scores"] = results
    header["plan"] = {"config": {}, "steps": []}
    empty = {"task_args": {}, "model_generate_config": {}, "model_args": {}}
    header["eval"] |= empty | {"config": {"epochs": epochs}} | about
    for sample in samples[:invalid]:
        sample["invalidation"] = {"author": "reader", "reason": "broken"}
    samples = [*samples[::-1]][1:] if shuffle else samples
    return write_json(path, header | {"samples": samples})


def inspect_validity(folder):
    write_inspect(folder / "a.json", ["C", "I", "C"], invalid=1)


def inspect_number(folder):
    entry = {"name": "choice", "scorer": "choice"}
    entry["metrics"] = {"accuracy": {"name": "accuracy", "value": 0.9}}
    write_inspect(folder / "a.json", ["C", "I"], results=[entry])


def inspect_model(folder):
    for name, effort in (("low", "I"), ("high", "C")):
        config = {"model_generate_config": {"reasoning_effort": name}}
        write_inspect(folder / f"{name}.json", [effort, "C"], **config)


def inspect_item(folder):
    write_inspect(folder / "a.json", ["C", "I", "C", "I"])
    header, samples = inspect_log("n", "quiz", ["C", "I", "C", "I"])
    header["results"]["total_samples"] = 3
    write_eval(folder / "b.eval", header, [samples[n] for n in (3, 0, 2)])


def inspect_lower(folder):
    write_inspect(folder / "a.json", [{"wer": 0.5}, {"wer": 1}])


def inspect_runs(folder):
    header, samples = inspect_log("m", "quiz", ["C", "I"], epochs=2)
    samples[0]["scores"]["choice"]["value"] = "I"
    write_json(folder / "a.json", header | {"samples": samples})


# Harbor ------------------------------------------------------------------------------


def harbor_validity(folder):
    trials = [harbor_trial("a"), harbor_trial("b", 0.0, reward_valid=False)]
    write_harbor(folder / "job", trials)


def harbor_number(folder):
    write_harbor(folder / "job", [harbor_trial("a"), harbor_trial("b", 0.0)], 0.9)


def harbor_model(folder):
    for name, score in (("low", 0.0), ("high", 1.0)):
        trial = harbor_trial("a", score, kwargs={"reasoning_effort": name})
        write_harbor(folder / name, [trial])


def harbor_item(folder):
    for model, names in (("m", "abcd"), ("n", "dba")):
        trials = [harbor_trial(x, float(x in "ab"), model=model) for x in names]
        write_harbor(folder / model, trials)


def harbor_runs(folder):
    write_harbor(folder / "job", [harbor_trial("a", 1.0), harbor_trial("a", 0.0)])


# SWE-bench ---------------------------------------------------------------------------


def swebench_validity(folder):
    report = swebench_run(["a-1"], ["a-2", "a-3"], infra_failure_ids=["a-3"])
    write_json(folder / "agent.run.json", report)


def swebench_number(folder):
    report = swebench_run(["a-1"], ["a-2"]) | {"resolved_instances": 2}
    write_json(folder / "agent.run.json", report)


def swebench_item(folder):
    write_json(folder / "m.run.json", swebench_run(["a-1", "a-3"], ["a-2"]))
    write_json(folder / "n.run.json", swebench_run(["a-3"], ["a-2"]))


def swebench_runs(folder):
    write_json(folder / "m.one.json", swebench_run(["a-1"], ["a-2"]))
    write_json(folder / "m.two.json", swebench_run(["a-2"], ["a-1"]))


# promptfoo ---------------------------------------------------------------------------


def promptfoo_validity(folder):
    rows = [promptfoo_row("a", 1), promptfoo_row("b", None, 1)]
    write_promptfoo(folder / "a.json", rows)


def promptfoo_number(folder):
    rows = [promptfoo_row("a", 1), promptfoo_row("b", 0.0, 1)]
    sums = promptfoo_sums(rows, "m")
    sums["metrics"] |= {"testPassCount": 2, "testFailCount": 0, "score": 2}
    write_promptfoo(folder / "a.json", rows, [sums])


def promptfoo_model(folder):
    rows = []
    for label, score in (("cold", 0.0), ("hot", 1.0)):
        provider = {"provider": {"id": "m", "label": label}}
        rows.append(promptfoo_row("a", score, **provider))
    write_promptfoo(folder / "a.json", rows)


def promptfoo_item(folder):
    for model, names in (("m", "abcd"), ("n", "dba")):
        rows = [
            promptfoo_row(x, float(x in "ab"), place, model)
            for place, x in enumerate(names)
        ]
        write_promptfoo(folder / f"{model}.json", rows)


def promptfoo_runs(folder):
    rows = [promptfoo_row("a", 1, 0), promptfoo_row("a", 0.0, 1)]
    write_promptfoo(folder / "a.json", rows)


# HELM --------------------------------------------------------------------------------


def helm_number(folder):
    write_helm_run(folder, "q", "m", {"acc": [1, 0]}, mean={"acc": 0.9})


def helm_model(folder):
    for name, score in (("one/m", 1), ("two/m", 0)):
        write_helm_run(folder, "q", "m", {"acc": [score, 1]}, model_deployment=name)


def change_rows(place, change):
    path = place / "per_instance_stats.json"
    write_json(path, change(json.loads(path.read_text())))


def helm_item(folder):
    for model in "mn":
        place = write_helm_run(folder, "q", model, {"acc": [1, 0, 1, 0]})
    change_rows(place, lambda rows: [rows[n] for n in (3, 0, 2)])


def helm_lower(folder):
    write_helm_run(folder, "q", "m", {"toxic_frac": [0.5, 0]})


def helm_runs(folder):
    place = write_helm_run(folder, "q", "m", {"acc": [1, 1, 0]})
    change_rows(
        place,
        lambda rows: [
            *rows[:2],
            rows[2] | {"instance_id": "id0", "train_trial_index": 1},
        ],
    )


# lighteval and the leaderboard -------------------------------------------------------


def light_number(folder):
    write_lighteval(folder, "m", {"t|0": {"em": [1.0, 0]}}, means={"t|0": {"em": 0.9}})


def light_model(folder):
    for revision, time, score in (("main", TIME, 1.0), ("step-9", EARLIER, 0.0)):
        config = {"revision": revision}
        write_lighteval(folder, "m", {"t|0": {"em": [score, 1]}}, time, config=config)


def light_item(folder):
    write_lighteval(folder, "m", {"t|0": {"em": [1.0, 0, 1, 0]}})
    write_lighteval(folder, "n", {"t|0": {"em": [0.0, 1, 1]}}, ids=[3, 0, 2])


def light_lower(folder):
    write_lighteval(folder, "m", {"t|0": {"wer": [0.25, 0.5]}})


def light_runs(folder):
    for time, score in ((TIME, 1.0), (EARLIER, 0.0)):
        write_lighteval(folder, "m", {"t|0": {"em": [score, 1]}}, time)


def details_item(folder):
    write_details(folder, "o/m", "t", [1, 0, 1, 0])
    path = write_details(folder, "o/n", "t", [1, 0, 1, 0])
    pq.write_table(pq.read_table(path).take([3, 0, 2]), path)


def details_runs(folder):
    for name, score in (("a", 1), ("b", 0)):
        write_details(folder / name, "o/m", "t", [score, 1])


# OpenCompass -------------------------------------------------------------------------


def compass_number(folder):
    rows = [{"correct": True}, {"correct": False}]
    write_opencompass(folder, "m", "t", rows, accuracy=90.0)


def compass_item(folder):
    rows = [{"example_abbr": f"t_{n}", "correct": n % 2 == 0} for n in range(4)]
    write_opencompass(folder, "m", "t", rows)
    write_opencompass(folder, "n", "t", [rows[n] for n in (3, 0, 2)])


def compass_runs(folder):
    rows = {"0": {"correct": [True, False]}, "1": {"correct": [True, True]}}
    write_json(folder / "a.json", {"accuracy": 75.0, "details": rows})


# Every Eval Ever ---------------------------------------------------------------------


def eee_metric(folder):
    rows = [eee_line("a", 1), eee_line("b", 0)]
    rows = [row | {"evaluation_result_id": "acc"} for row in rows]
    write_eee_file(folder, rows, [eee_result("t", 0.5, "acc")])


def eee_validity(folder):
    rows = [eee_line("a", 1), eee_line("b", -1), eee_line("c", 0)]
    write_eee_file(folder, rows, [eee_result("t", 0.5, has_unknown_level=True)])


def eee_number(folder):
    rows = [eee_line("a", 1), eee_line("b", 0)]
    write_eee_file(folder, rows, [eee_result("t", 0.9)])


def eee_model(folder):
    for name, score in (("low", 0), ("high", 1)):
        result = eee_result("t", score, args={"reasoning": name == "high"})
        write_eee_file(folder, [eee_line("a", score)], [result], name=name)


def eee_item(folder):
    for model, names in (("m", "abcd"), ("n", "dba")):
        rows = [eee_line(x, int(x in "ab"), model) for x in names]
        write_rows(folder / f"{model}_samples.jsonl", rows)


def eee_lower(folder):
    rows = [eee_line("a", 0.5), eee_line("b", 0.25)]
    write_eee_file(folder, rows, [eee_result("t", 0.375, lower=True)])


def eee_runs(folder):
    rows = [eee_line("a", 1), eee_line("a", 0), eee_line("b", 1)]
    write_rows(folder / "m_samples.jsonl", rows)


# tau-bench and tau2 ------------------------------------------------------------------


def tau_validity(folder):
    trials = [("0", 1.0), ("1", "infrastructure_error"), ("2", 0.0)]
    write_json(folder / "a.json", tau_run(trials))


def tau_model(folder):
    for number, score in ((0, 0.0), (1, 1.0)):
        agent = {"llm": "m", "llm_args": {"temperature": number}}
        raw = tau_run([("0", score)], agent_info=agent)
        write_json(folder / f"{number}.json", raw)


def tau_item(folder):
    trials = [("0", 1.0), ("1", 0.0), ("2", 1.0), ("3", 0.0)]
    write_json(folder / "a.json", tau_run(trials))
    other = tau_run([trials[n] for n in (3, 0, 2)], model="n")
    write_json(folder / "b.json", other)


def tau_runs(folder):
    write_json(folder / "a.json", tau_run([("0", 1.0), ("0", 0.0), ("1", 1.0)]))


# Plain rows --------------------------------------------------------------------------

ORDER = [("m", "a", 1), ("m", "b", 0), ("m", "c", 1), ("n", "c", 1), ("n", "a", 1)]
RUNS = [("m", "a", 1), ("m", "a", 0), ("m", "b", 1)]


def irt_item(folder):
    rows = {"m": {"a": 1, "b": 0, "c": 1}, "n": {"c": 1, "a": 1}}
    lines = [{"subject_id": name, "responses": own} for name, own in rows.items()]
    write_rows(folder / "a.jsonl", lines)


def irt_runs(folder):
    counts = {"a": {"successes": 1, "trials": 2}, "b": {"successes": 2, "trials": 2}}
    write_rows(folder / "a.jsonl", [{"subject_id": "m", "responses": counts}])


def in_parquet(make):
    "Both variants as rows of a Parquet file"

    def writer(rows):
        def write(folder):
            pq.write_table(
                pa.table(make(*zip(*rows, strict=True))), folder / "a.parquet"
            )

        return write

    return {"item": writer(ORDER), "runs": writer(RUNS)}


def of_wild(models, items, scores):
    columns = {"model": models, "task": ["t"] * len(items), "item_id": items}
    counts = {"input_tokens": [1] * len(items), "output_tokens": [1] * len(items)}
    return columns | {"score": [float(x) for x in scores]} | counts


def of_measurement_db(models, items, scores):
    columns = {"subject_id": models, "item_id": items}
    columns |= {"response": [float(x) for x in scores]}
    more = {"benchmark_id": ["t"] * len(items), "test_condition": ["none"] * len(items)}
    return columns | more


def of_openeval(models, items, scores):
    places = [
        f"{x}_{m}_{n}" for n, (m, x) in enumerate(zip(models, items, strict=True))
    ]
    metrics = [{"metric": [{"name": "acc"}], "value": [float(x)]} for x in scores]
    return {
        "response_id": places,
        "model": [{"name": name} for name in models],
        "scores": metrics,
    }


def in_table(rows, *more):
    "A table of model, item, score, and of more columns"

    def write(folder):
        head = ",".join(["model", "item", "score", *more])
        lines = [",".join(map(str, row)) for row in rows]
        Path(folder, "a.csv").write_text("\n".join([head, *lines]))

    return write


TABLES = {
    "validity": in_table([("m", "q1", 1, True), ("m", "q2", 0, False)], "valid"),
    "item": in_table(ORDER),
    "metric": in_table([("m", "q1", 1, "acc"), ("m", "q2", 0, "acc")], "metric"),
    "direction": in_table([("m", "q1", 1, "wer"), ("m", "q2", 0.5, "wer")], "metric"),
    "runs": in_table(RUNS),
}
VARIANTS = {
    "lm-eval": {
        "own number": lm_number,
        "model": lm_model,
        "item": lm_item,
        "direction": lm_lower,
        "runs": lm_runs,
    },
    "inspect": {
        "validity": inspect_validity,
        "own number": inspect_number,
        "model": inspect_model,
        "item": inspect_item,
        "direction": inspect_lower,
        "runs": inspect_runs,
    },
    "harbor": {
        "validity": harbor_validity,
        "own number": harbor_number,
        "model": harbor_model,
        "item": harbor_item,
        "runs": harbor_runs,
    },
    "swebench": {
        "validity": swebench_validity,
        "own number": swebench_number,
        "item": swebench_item,
        "runs": swebench_runs,
    },
    "promptfoo": {
        "validity": promptfoo_validity,
        "own number": promptfoo_number,
        "model": promptfoo_model,
        "item": promptfoo_item,
        "runs": promptfoo_runs,
    },
    "tau": {
        "validity": tau_validity,
        "model": tau_model,
        "item": tau_item,
        "runs": tau_runs,
    },
    "helm": {
        "own number": helm_number,
        "model": helm_model,
        "item": helm_item,
        "direction": helm_lower,
        "runs": helm_runs,
    },
    "lighteval": {
        "own number": light_number,
        "model": light_model,
        "item": light_item,
        "direction": light_lower,
        "runs": light_runs,
    },
    "openllm": {"item": details_item, "runs": details_runs},
    "opencompass": {
        "own number": compass_number,
        "item": compass_item,
        "runs": compass_runs,
    },
    "eee": {
        "metric": eee_metric,
        "validity": eee_validity,
        "own number": eee_number,
        "model": eee_model,
        "item": eee_item,
        "direction": eee_lower,
        "runs": eee_runs,
    },
    "py-irt": {"item": irt_item, "runs": irt_runs},
    "wild": in_parquet(of_wild),
    "measurement-db": in_parquet(of_measurement_db),
    "openeval": in_parquet(of_openeval),
    "table": TABLES,
    "list": TABLES,
}
