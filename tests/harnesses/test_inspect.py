"""A log of Inspect means what Inspect means by it: marks of validity, its own numbers,
the system and the question, ids that are places, and which direction is better"""

import json
import warnings

import numpy as np
import pytest
from helpers.harnesses import PYTHON, call, needed
from helpers.logs import inspect_log, refused, write_eval, write_json

from benchnb.harnesses.harness import Round, get_harness, import_logs, make_subset
from benchnb.harnesses.logs import Choices, Failure

MARK = {"timestamp": "2026-01-01T00:00:00Z", "author": "reader", "reason": "no grader"}


def read(*paths, **choices):
    "An import, and the lines that it said"
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        scores = import_logs("inspect", [*paths], Choices(**choices))
    return scores, [str(warning.message) for warning in caught]


def means(scores):
    "Model -> score, rounded"
    return {name: round(float(x), 4) for name, x in scores.performance().items()}


def reported(value, metric="accuracy", scorer="choice", name=None, **more):
    "An entry of the results"
    metrics = value if isinstance(value, dict) else {metric: value}
    entry = {"name": name or scorer, "scorer": scorer, "scored_samples": None}
    entry["metrics"] = {n: {"name": n, "value": x} for n, x in metrics.items()}
    return entry | more


def write(
    path, scores, model="m", entries=(), plan=(), invalid=(), histories=(), **about
):
    "A log; .eval or .json by its name; its summaries keep no mark of a person"
    header, samples = inspect_log(model, about.pop("task", "quiz"), list(scores))
    header["results"]["scores"] = list(entries)
    header["plan"] = {"config": {}, "steps": []} | dict(plan)
    empty = {"task_args": {}, "model_generate_config": {}, "model_args": {}}
    header["eval"] |= empty | {"config": {"epochs": 1}} | about
    path.parent.mkdir(parents=True, exist_ok=True)
    whole = [sample | {"messages": ["long"]} for sample in samples]
    for number in invalid:
        whole[number - 1]["invalidation"] = MARK
        header["invalidated"] = True
    for number, history in dict(histories).items():
        by_scorer = whole[number - 1]["scores"]["choice"]
        whole[number - 1]["scores"] = {"choice": by_scorer | {"history": history}}
    if path.suffix == ".json":
        return write_json(path, header | {"samples": whole})
    names = [f"samples/{s['id']}_epoch_{s['epoch']}.json" for s in whole]
    return write_eval(path, header, samples, **dict(zip(names, whole, strict=True)))


def with_samples(path, change):
    "Change the samples of a .json log"
    raw = json.loads(path.read_text())
    for sample in raw["samples"]:
        change(sample)
    return write_json(path, raw)


# Scores that do not count ------------------------------------------------------------


@pytest.mark.parametrize("kind", ["eval", "json"])
def test_invalidated_samples_are_missing_and_the_harness_counts_them(tmp_path, kind):
    answers = ["C", "C", "P", "I", "I", "C", "I"]
    entry = reported(3.5 / 7)
    path = write(tmp_path / f"a.{kind}", answers, entries=[entry], invalid=(4, 6))
    (log,) = get_harness("inspect").read(path)
    assert [*log.failures] == ["", "", "", Failure.INVALID, "", Failure.INVALID, ""]
    scores, _ = read(path)
    assert means(scores) == {"m": 0.5}
    assert scores.models["reconciled"].iloc[0] == "equal"  # by chance
    path = write(tmp_path / f"b.{kind}", answers, entries=[entry], invalid=(5, 7))
    scores, _ = read(path)
    assert means(scores) == {"m": 0.7}
    line = scores.models["reconciled"].iloc[0]
    assert "counts scores that are marked as invalid (2 of 7)" in line
    assert "50.0 points by accuracy" in line and "70.0" in line


@pytest.mark.parametrize("kind", ["eval", "json"])
def test_a_score_that_a_person_changed_counts_as_changed_and_is_said(tmp_path, kind):
    by_scorer = {"value": "I", "answer": "A"}
    words_only = {"value": "UNCHANGED", "explanation": "as the key has it"}
    histories = {2: [by_scorer, {"value": "C"}], 3: [by_scorer, words_only]}
    path = write(
        tmp_path / f"a.{kind}",
        ["C", "C", "I", "I"],
        entries=[reported(0.5)],
        histories=histories,
    )
    scores, said = read(path)
    assert means(scores) == {"m": 0.5}
    assert [line for line in said if "changed" in line] == [
        "task quiz: 1 of 4 scores of m were changed in the log after the run, and "
        "count as changed"
    ]


EDITS = """
from inspect_ai import Task, eval
from inspect_ai.dataset import Sample
from inspect_ai.log import edit_score, read_eval_log, write_eval_log
from inspect_ai.model import ModelOutput
from inspect_ai.scorer import ScoreEdit, match
from inspect_ai.solver import solver

@solver
def says_its_input():
    async def solve(state, generate):
        state.output = ModelOutput.from_content("m", state.input_text)
        return state
    return solve

samples = [Sample(input=text, target="A") for text in "AABB"]
task = Task(dataset=samples, solver=says_its_input(), scorer=match(), name="quiz")
log = read_eval_log(eval(task, model="mockllm/model", display="none")[0].location)
write_eval_log(log, "same.eval")
edit_score(log, 3, "match", ScoreEdit(value="C"))
write_eval_log(log, "changed.eval")
write_eval_log(log, "changed.json")
"""


@needed
@pytest.mark.slow
def test_inspect_changes_a_score_as_it_is_read_here(tmp_path):
    (tmp_path / "edits.py").write_text(EDITS)
    call(PYTHON, "edits.py", cwd=tmp_path)
    scores, said = read(tmp_path / "same.eval")
    assert means(scores) == {"mockllm/model": 0.5} and not said
    for name in ("changed.eval", "changed.json"):
        scores, said = read(tmp_path / name)
        assert means(scores) == {"mockllm/model": 0.75}
        assert len(said) == 1 and "1 of 4 scores" in said[0]


def test_a_score_that_the_grader_failed_to_give_does_not_count(tmp_path):
    path = write(tmp_path / "a.json", ["C", "I", 0, 0, "I", float("nan")])
    reasons = {3: "grader_failed", 4: "scoring_failed", 5: "refusal"}

    def mark(sample):
        score = sample["scores"]["choice"]
        score["reason"] = reasons.get(sample["id"])
        if sample["id"] == 6:
            score["metadata"] = {"unscored_reason": "grade not found"}

    with_samples(path, mark)
    (log,) = get_harness("inspect").read(path)
    assert np.array_equal(log.scores, [1, 0, np.nan, np.nan, 0, np.nan], equal_nan=True)
    assert [*log.failures[2:]] == [Failure.INVALID] * 2 + ["", Failure.INVALID]


def test_of_several_epochs_only_the_invalid_one_is_left_out(tmp_path):
    header, samples = inspect_log("m", "quiz", ["I", "C"], epochs=2)
    samples[0]["invalidation"] = MARK  # of the first sample's first epoch
    samples[2]["scores"]["choice"]["value"] = "C"
    path = write_json(tmp_path / "a.json", header | {"samples": samples})
    scores, _ = read(path)
    assert [*scores.values[0]] == [1, 1]


def test_a_reduced_score_with_an_invalid_epoch_in_it_is_missing(tmp_path):
    header, samples = inspect_log("m", "quiz", ["I", "C"], epochs=2)
    header["eval"]["config"] = {"epochs": 2, "epochs_reducer": ["at_least_1"]}
    rows = [{"sample_id": n, "value": 1} for n in (1, 2)]
    reduced = [{"scorer": "choice", "reducer": "at_least_1", "samples": rows}]
    samples[1]["invalidation"] = MARK
    raw = header | {"samples": samples, "reductions": reduced}
    scores, said = read(write_json(tmp_path / "a.json", raw))
    assert np.array_equal(scores.values[0], [1, np.nan], equal_nan=True)
    assert any("by at_least_1" in line for line in said)


# Inspect's own number ----------------------------------------------------------------


def test_accuracy_and_mean_are_equal_to_what_is_read(tmp_path):
    write(tmp_path / "a.json", ["C", "P", "N", "I"], entries=[reported(0.375)])
    scores, _ = read(tmp_path)
    assert {*scores.models["reconciled"]} == {"equal"}
    write(tmp_path / "a.json", [0.25, 0.5, 0.75], entries=[reported(0.5, "mean")])
    scores, _ = read(tmp_path)
    assert {*scores.models["reconciled"]} == {"equal"}


def test_a_number_that_does_not_follow_is_a_line(tmp_path):
    write(tmp_path / "a.json", ["C", "I", "I", "I"], entries=[reported(0.75)])
    scores, _ = read(tmp_path)
    line = scores.models["reconciled"].iloc[0]
    assert "reports 75.0 points by accuracy, the items give 25.0" in line


def test_none_in_a_dict_is_unscored_and_inspect_counts_it_as_wrong(tmp_path):
    values = [{"acc": 1, "b": None}, {"acc": None, "b": 1}, {"acc": 0, "b": 1}]
    entry = reported(1 / 3, "mean", name="acc")
    write(tmp_path / "a.json", values, entries=[entry])
    scores, _ = read(tmp_path, metric=("choice/acc",))
    assert means(scores) == {"m": 0.5}
    assert (
        "counts what has no score as 0 (1 of 3)" in scores.models["reconciled"].iloc[0]
    )


@pytest.mark.parametrize("named", [True, False])
def test_a_mean_over_groups_becomes_weights(tmp_path, named):
    values = {
        "a": ["C", "C"] + ["I"] * 6 + ["C"] * 2,
        "b": ["I", "I"] + ["C"] * 6 + ["I"] * 2,
    }
    numbers = {"a": (1, 0.25), "b": (0, 0.75)}
    for model, answers in values.items():
        law, art = numbers[model]
        entry = reported({"law": law, "art": art, "all": (law + art) / 2})
        if named:  # as Inspect writes it since it has parameters
            for metric in entry["metrics"].values():
                metric["params"] = {"group_key": "subject", "all": "groups"}
        path = write(tmp_path / f"{model}.json", answers, model, entries=[entry])

        def subject(sample):
            area = "law" if sample["id"] < 3 else "art"
            sample["metadata"] = {"subject": area, "n": 7, "long": ["x"]}

        with_samples(path, subject)
    scores, _ = read(tmp_path)
    assert means(scores) == {"a": 0.625, "b": 0.375}
    assert {*scores.models["reconciled"]} == {"equal"}
    assert np.isclose(scores.items["weight"].sum(), 10)


def test_groups_whose_number_is_over_samples_have_no_weights(tmp_path):
    entry = reported({"law": 1, "art": 0.25, "all": 0.5})
    write(tmp_path / "a.json", ["C"] * 2 + ["I"] * 3 + ["C"], entries=[entry])
    scores, _ = read(tmp_path)
    assert means(scores) == {"m": 0.5} and (scores.items["weight"] == 1).all()


# The system --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "a, b",
    [
        ({"model_generate_config": {"reasoning_effort": "low"}},) * 2,
        (
            {"model_generate_config": {"reasoning_effort": "low"}},
            {"model_generate_config": {"reasoning_effort": "high"}},
        ),
        ({}, {"model_generate_config": {"temperature": 0.7}}),
        ({}, {"model_args": {"quantization": "int4"}}),
        ({}, {"plan": {"config": {"reasoning_tokens": 4000}}}),
        ({}, {"solver": "my_agent", "solver_args": {"tries": 3}}),
        (
            {"solver": "my_agent", "solver_args": {"tries": 1}},
            {"solver": "my_agent", "solver_args": {"tries": 3}},
        ),
    ],
)
def test_other_settings_are_other_systems(tmp_path, a, b):
    write(tmp_path / "a.json", "CCI", **a)
    write(tmp_path / "b.json", "CII" if a != b else "CCI", **b)
    scores, _ = read(tmp_path)
    assert len(scores) == (1 if a == b else 2)
    names = " ".join(scores.models.index)
    for name in b.get("model_generate_config", {}):
        assert name in names


def test_a_setting_that_may_differ_is_one_system_again(tmp_path):
    write(tmp_path / "a.json", "CCI", model_generate_config={"temperature": 0})
    write(tmp_path / "b.json", "CCI", model_generate_config={"temperature": 1})
    scores, _ = read(tmp_path, differing=("temperature",))
    assert [*scores.models.index] == ["m"]


def test_no_secret_and_nothing_neutral_is_in_a_name(tmp_path):
    args = {"api_key": "sk-123", "base_url": "http://a", "device": "cuda:0"}
    asked = {"max_retries": 3, "max_connections": 10, "extra_headers": {"a": "sk-9"}}
    about = {"model_args": args, "model_generate_config": asked}
    write(tmp_path / "a.json", "CCI", model_base_url="https://a", **about)
    about["model_args"] = args | {"api_key": "sk-456", "device": "cuda:1"}
    write(tmp_path / "b.json", "CCI", model_base_url="https://b", **about)
    scores, said = read(tmp_path)
    assert [*scores.models.index] == ["m"] and not said
    write(tmp_path / "b.json", "CCI", model_args={"endpoint": "secret text"})
    write(tmp_path / "c.json", "CCI", model_args={"endpoint": "another text"})
    scores, _ = read(tmp_path)
    assert "text" not in " ".join(scores.models.index)


# What was asked ----------------------------------------------------------------------


@pytest.mark.parametrize(
    "name, a, b",
    [
        ("fewshot", {"task_args": {"fewshot": 5}}, {"task_args": {"fewshot": 0}}),
        ("task_args.version", *({"task_args": {"version": n}} for n in (1, 2))),
        (
            "system_message",
            {},
            {"model_generate_config": {"system_message": "Be brief."}},
        ),
        ("temperature", *({"plan": {"config": {"temperature": n}}} for n in (0, 1))),
        ("message_limit", {}, {"config": {"message_limit": 30}}),
        (
            "role_grader",
            *({"model_roles": {"grader": {"model": n}}} for n in ("a/b", "a/c")),
        ),
        (
            "scorer_options",
            *({"scorers": [{"name": "choice", "options": {"n": n}}]} for n in (1, 2)),
        ),
        (
            "solver",
            *({"plan": {"steps": [{"solver": n}]}} for n in ("generate", "critique")),
        ),
        (
            "solver_params",
            *(
                {"plan": {"steps": [{"solver": "s", "params_passed": {"n": n}}]}}
                for n in (1, 2)
            ),
        ),
    ],
)
def test_another_question_is_refused_by_the_name_of_the_setting(tmp_path, name, a, b):
    write(tmp_path / "a.json", "CCI", model="a", **a)
    write(tmp_path / "b.json", "CII", model="b", **b)
    refused(lambda: read(tmp_path), f" {name} ", f"let {name} differ")
    scores, _ = read(tmp_path, differing=(name,))
    assert len(scores) == 2


def test_a_limit_on_the_items_makes_no_other_question(tmp_path):
    write(tmp_path / "a.json", "CCI", model="a")
    write(tmp_path / "b.json", "CC", model="b", config={"epochs": 1, "limit": 2})
    assert len(read(tmp_path)[0]) == 2


# Items -------------------------------------------------------------------------------


def test_a_number_and_a_text_that_look_alike_are_two_samples(tmp_path):
    path = write(tmp_path / "a.json", "CIIC", entries=[reported(0.5)])
    names = {1: 1, 2: "1", 3: 2, 4: "x"}
    with_samples(path, lambda sample: sample.update(id=names[sample["id"]]))
    scores, _ = read(path)
    assert means(scores) == {"m": 0.5}
    assert [*scores.items.index] == ["quiz/1", "quiz/'1'", "quiz/2", "quiz/x"]


def test_places_after_a_shuffle_are_no_ids(tmp_path):
    ids = [1, 2, 3, 4]
    dataset = {"shuffled": True, "sample_ids": ids}
    write(tmp_path / "a.json", "CIIC", dataset=dataset)
    scores, _ = read(tmp_path)
    subset = make_subset(scores.items, [*scores.items.index[:2]])
    place = Round(tmp_path)
    refused(
        lambda: get_harness("inspect").command(subset, place),
        "places after a shuffle",
        "give the samples ids",
    )
    dataset["sample_ids"] = [3, 1, 4, 2]  # own ids, which the shuffle has moved
    write(tmp_path / "a.json", "CIIC", dataset=dataset)
    scores, _ = read(tmp_path)
    subset = make_subset(scores.items, [*scores.items.index[:2]])
    assert "--sample-id 1,2" in get_harness("inspect").command(subset, place)


def test_two_shuffles_are_never_compared_by_place(tmp_path):
    dataset = {"shuffled": True, "sample_ids": [1, 2, 3]}
    write(tmp_path / "a.json", "CII", model="a", dataset=dataset)
    path = write(tmp_path / "b.json", "CII", model="b", dataset=dataset)
    texts = {n: f"quiz: what is {4 - n} + 1?" for n in (1, 2, 3)}
    with_samples(path, lambda sample: sample.update(input=texts[sample["id"]]))
    scores, _ = read(tmp_path, match="hash")
    assert [*scores.values[0]] == [1, 0, 0] and [*scores.values[1]] == [0, 0, 1]
    with_samples(path, lambda sample: sample.update(input=""))
    _, said = read(path)
    assert any("places after a shuffle" in line for line in said)


# Metric, direction, scale ------------------------------------------------------------


def test_scores_of_harm_are_asked_about(tmp_path):
    values = [{"score": 0.9, "refusal": 0}, {"score": 0.3, "refusal": 1}]
    entry = reported({"avg_score": 0.6, "avg_refusals": 0.5})
    write(tmp_path / "a.json", values, task="suite/agentharm", entries=[entry])
    refused(lambda: read(tmp_path), "choice/score", "choice/refusal")
    refused(lambda: read(tmp_path, metric=("choice/score",)), "direction")
    scores, _ = read(tmp_path, metric=("choice/score",), direction="lower")
    assert means(scores) == {"m": 0.4}
    assert {*scores.models["reconciled"]} == {"equal"}
    scores, _ = read(tmp_path, metric=("choice/refusal",), direction="higher")
    assert {*scores.models["reconciled"]} == {"equal"}


def test_what_is_correct_is_better_and_an_unknown_number_is_asked_for(tmp_path):
    path = write(tmp_path / "a.json", "CCI", task="suite/agentharm")
    assert read(path)[0].items["direction"].iloc[0] == "higher"
    write(tmp_path / "a.json", [{"depth": 0.5}, {"depth": 1}])
    refused(lambda: read(tmp_path, metric=("choice/depth",)), "'depth'", "direction")
    _, said = read(tmp_path, metric=("choice/depth",), direction="higher")
    assert not said
    write(tmp_path / "a.json", [{"wer": 0.5}, {"wer": 1}])
    refused(lambda: read(tmp_path, metric=("choice/wer",)), "lower is better")


@pytest.mark.parametrize(
    "values, scale, right",
    [([1, 10, 5.5], (1, 10), 0.5), ([-1, 0, 1, 1], (-1, 1), 0.625)],
)
def test_judges_have_scales(tmp_path, values, scale, right):
    entry = reported(float(np.mean(values)), "mean")
    write(tmp_path / "a.json", values, entries=[entry])
    refused(lambda: read(tmp_path), "scale='LOW,HIGH'")
    scores, _ = read(tmp_path, scale=scale)
    assert means(scores) == {"m": right}
    assert {*scores.models["reconciled"]} == {"equal"}


def test_yes_and_no_are_verdicts(tmp_path):
    write(tmp_path / "a.json", ["YES", "No", "true", "false", "0.5"])
    assert [*read(tmp_path)[0].values[0]] == [1, 0, 1, 0, 0.5]


def scored_by(path, scorer, **more):
    "Verdicts of a scorer of this name"
    raw = json.loads(write(path, "CCI", **more).read_text())
    for sample in raw["samples"]:
        sample["scores"] = {scorer: sample["scores"]["choice"]}
    return write_json(path, raw)


@pytest.mark.parametrize("scorer", ["jailbroken", "unsafe", "sandbagging"])
def test_a_verdict_on_what_is_bad_is_asked_for(scorer, tmp_path):
    scored_by(tmp_path / "a.json", scorer)
    refused(lambda: read(tmp_path), scorer, "direction")
    scores, _ = read(tmp_path, direction="lower")
    assert means(scores) == {"m": 0.3333}


def test_thinking_that_is_switched_off_is_part_of_the_name(tmp_path):
    args = [{}, {"enable_thinking": False}, {"reasoning_tokens": 0}, {"peft": False}]
    for number, values in enumerate(args):
        about = {"task": f"t{number}", "model_args": values}
        raw = json.loads(write(tmp_path / f"{number}.json", "CI").read_text())
        raw["eval"] |= about
        write_json(tmp_path / f"{number}.json", raw)
    names = {"m", "m (enable_thinking=false)", "m (reasoning_tokens=0)"}
    assert {*read(tmp_path)[0].models.index} == names


def test_where_and_how_fast_a_model_runs_makes_no_other(tmp_path):
    for number in range(2):
        raw = json.loads(write(tmp_path / f"{number}.json", "CI").read_text())
        raw["eval"]["task"] = f"t{number}"
        raw["eval"]["model_generate_config"] = {
            "seed": number,
            "max_connections": number,
        }
        raw["eval"]["model_args"] = {"device": f"cuda:{number}", "maxRetries": number}
        write_json(tmp_path / f"{number}.json", raw)
    scores, said = read(tmp_path)
    assert len(scores) == 1 and not said


# Runs that broke off -----------------------------------------------------------------


def test_a_run_and_its_retry_are_one(tmp_path):
    path = write(tmp_path / "a.json", ["C", "I", None])
    raw = json.loads(path.read_text())
    raw["status"] = "error"
    raw["samples"][2]["error"] = {"message": "x"}
    write_json(path, raw)
    write(tmp_path / "b.json", ["C", "I", "C", "C"])
    refused(lambda: read(tmp_path), "'keep' it beside its retry")
    scores, _ = read(tmp_path, interrupted="keep")
    assert means(scores) == {"m": 0.75}


# The command -------------------------------------------------------------------------


def test_the_new_model_is_asked_as_the_sources_were(tmp_path):
    passed = {"fewshot": 5, "cot": True, "style": "a b", "api_key": "sk-1", "x": [1]}
    about = {"task_args": passed, "task_args_passed": passed}
    about["config"] = {"message_limit": 30}
    write(tmp_path / "a.json", "CCI", model="a", **about)
    write(tmp_path / "b.json", "CII", model="b", **about)
    items = read(tmp_path)[0].items
    subset = make_subset(items, [*items.index])
    line = get_harness("inspect").command(subset, Round(tmp_path))
    wanted = "inspect eval quiz -T fewshot=5 -T cot=true -T 'style=a b' "
    assert line.startswith(wanted + "--message-limit 30 --model ")
    assert "sk-1" not in line and "x=" not in line
    items = items.assign(call_args="--solver evil.py")
    subset = make_subset(items, [*items.index])
    refused(lambda: get_harness("inspect").command(subset, Round(tmp_path)), "evil.py")


def test_a_likert_scale_in_texts(tmp_path):
    write(tmp_path / "a.json", ["1", "5", "4", "2"], entries=[reported(3.0)])
    scores, _ = read(tmp_path, scale=(1, 5))
    assert means(scores) == {"m": 0.5}
    assert {*scores.models["reconciled"]} == {"equal"}


def test_words_that_inspect_turned_into_0_are_worth_what_is_said(tmp_path):
    write(tmp_path / "a.json", ["GOOD", "BAD"], entries=[reported(0.0)])
    refused(lambda: read(tmp_path), "GOOD")
    scores, _ = read(tmp_path, values=(("GOOD", 1), ("BAD", 0)))
    assert means(scores) == {"m": 0.5}
    assert "reports 0.0 points" in scores.models["reconciled"].iloc[0]


@pytest.mark.parametrize("key, says", [("A", False), ("B", True), (None, False)])
def test_another_target_of_one_question_is_said(key, says, tmp_path):
    for model, target in (("m", "A"), ("n", key)):
        header, samples = inspect_log(model, "quiz", ["C", "I"])
        samples[1]["target"] = target
        write_json(tmp_path / f"{model}.json", header | {"samples": samples})
    scores, lines = read(tmp_path)
    assert scores.shape == (2, 2) and len(lines) == says
    assert not says or "right answer of 1 of 2 items is another one" in lines[0]
