"""What a log says of itself is read: the harness's own number, which system it is, what
was asked, which direction is better, and which scores count."""

import json
import warnings

import numpy as np
import pytest
from helpers.logs import (
    TIME,
    digest,
    document,
    inspect_log,
    lm_eval_row,
    of_vintage,
    refused,
    write_json,
    write_lm_eval_run,
    write_results,
    write_rows,
)

from benchnb.cli.app import main
from benchnb.data.directions import metric_direction
from benchnb.data.scores import describe_scores
from benchnb.data.sources import load_table
from benchnb.harnesses.harness import get_harness, import_logs
from benchnb.harnesses.logs import Choices, Log, join_logs
from benchnb.harnesses.measured import (
    common_sampling,
    name_systems,
    other_sampling,
    setting_words,
)
from benchnb.live.answers import log_answers


def read(*paths, **choices):
    "An import, and the lines that it said"
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        scores = import_logs("lm-eval", [*paths], Choices(**choices))
    return scores, [str(warning.message) for warning in caught]


def means(scores):
    "Model -> score, rounded"
    return {name: round(float(x), 4) for name, x in scores.performance().items()}


def grouped(mean):
    "A results file's part about one group of two tasks"
    groups = {"group_subtasks": {"both": ["small", "large"]}}
    return groups | {"groups": {"both": {"alias": "both", "acc,none": mean}}}


# The harness's own number ----------------------------------------------------------


def test_a_group_that_is_a_plain_mean_of_tasks_is_weighed_like_that(tmp_path):
    a = {"small": [1] * 9 + [0], "large": [1] * 5 + [0] * 35}  # .9 and .125
    b = {"small": [1, 0, 0, 0, 0] * 2, "large": [1, 0, 0, 0] * 5 + [1, 0] * 10}
    write_lm_eval_run(tmp_path, "org/a", a, **grouped((0.9 + 0.125) / 2))
    write_lm_eval_run(tmp_path, "org/b", b, **grouped((0.2 + 0.375) / 2))
    scores, _ = read(tmp_path)
    assert means(scores) == {"org/a": 0.5125, "org/b": 0.2875}
    assert {*scores.models["reconciled"]} == {"equal"}
    weight = scores.items.groupby("task")["weight"].sum()
    assert np.isclose(weight["small"], weight["large"])


def test_a_group_over_documents_is_equal_and_has_no_weights(tmp_path):
    a = {"small": [1, 0], "large": [1, 1, 0, 0, 0, 0]}
    write_lm_eval_run(tmp_path, "org/a", a, **grouped(3 / 8))
    scores, said = read(tmp_path)
    assert {*scores.items["weight"]} == {1.0} and not said
    assert [*scores.models["reconciled"]] == ["equal"]


def test_nested_groups_over_documents_give_no_alarm(tmp_path):
    tasks = {"one": [1, 1, 0, 0], "two": [0] * 5 + [1], "three": [1] * 10}
    groups = {"all": ["inner", "three"], "inner": ["one", "two"]}
    about = {"group_subtasks": groups}
    about["groups"] = {"all": {"acc,none": 13 / 20}, "inner": {"acc,none": 3 / 10}}
    write_lm_eval_run(tmp_path, "org/a", tasks, **about)
    scores, said = read(tmp_path)
    assert [*scores.models["reconciled"]] == ["equal"] and not said


def test_a_plain_mean_of_nested_groups_is_one_line(tmp_path):
    tasks = {"one": [1, 1, 0, 0], "two": [0] * 5 + [1], "three": [1] * 10}
    groups = {"all": ["inner", "three"], "inner": ["one", "two"]}
    about = {"group_subtasks": groups}
    about["groups"] = {"all": {"acc,none": 0.65}, "inner": {"acc,none": 3 / 10}}
    about["groups"]["all"]["acc,none"] = (0.3 + 1.0) / 2
    write_lm_eval_run(tmp_path / "x", "org/a", tasks, **about)
    assert [*read(tmp_path / "x")[0].models["reconciled"]] == ["equal"]  # the same here
    tasks["three"] = [1] * 20
    write_lm_eval_run(tmp_path / "y", "org/a", tasks, **about)
    scores, _ = read(tmp_path / "y")
    (line,) = scores.models["reconciled"]
    assert "all" in line and "65.0" in line and "76.7" in line
    assert "over the groups in the group" in line


def test_groups_three_deep_are_means_of_means(tmp_path):
    tasks = {"a": [1, 0], "b": [1] * 6, "c": [0] * 4, "d": [1] * 6}
    groups = {"top": ["mid", "d"], "mid": ["low", "c"], "low": ["a", "b"]}
    means = {"low": 0.75, "mid": 0.375, "top": 0.6875}
    about = {"groups": {name: {"acc,none": x} for name, x in means.items()}}
    write_lm_eval_run(tmp_path, "org/a", tasks, group_subtasks=groups, **about)
    (line,) = read(tmp_path)[0].models["reconciled"]
    causes = [part.rpartition(": ")[2] for part in line.split("; ")]
    assert sum("groups in the group" in cause for cause in causes) == 2
    assert sum("mean over tasks" in cause for cause in causes) == 1


def test_a_number_on_another_scale_is_said_in_its_unit(tmp_path):
    "As a BLEU of the corpus beside sentences' BLEU"
    answers = {"t": [0.9, 0.4, 1.0]}
    write_lm_eval_run(tmp_path, "m", answers, metric="bleu", scores={"t": 37.2})
    (line,) = read(tmp_path)[0].models["reconciled"]
    assert "the harness reports 37.2 by bleu, the items give 0.767" in line


def test_the_largest_score_is_no_mean(tmp_path):
    write_lm_eval_run(tmp_path, "m", {"t": [1, 0, 0, 0]}, scores={"t": 1.0})
    (line,) = read(tmp_path)[0].models["reconciled"]
    assert "takes the largest score of an item" in line


def test_a_base_model_beside_its_chat_model_are_two(tmp_path):
    for name, template in (("base", None), ("chat", "ab")):
        about = {"chat_template_sha": template}
        write_lm_eval_run(tmp_path, f"org/{name}", {"t": [1, 0]}, **about)
    words = "as org/base and org/chat may each need their own, let chat_template differ"
    refused(lambda: read(tmp_path), words)


def test_another_number_than_the_items_give_is_one_line(tmp_path):
    write_lm_eval_run(tmp_path, "org/a", {"t": [1, 1, 0, 0]}, scores={"t": 0.9})
    scores, _ = read(tmp_path)
    (line,) = scores.models["reconciled"]
    assert "org/a" in line and "90.0" in line and "50.0" in line


# Another system under one name -----------------------------------------------------


def config(**args):
    "The part of a results file about the model's arguments"
    return {"config": {"model": "hf", "model_args": {"pretrained": "org/m"} | args}}


@pytest.mark.parametrize(
    "name,value",
    [
        ("peft", "me/lora"),
        ("load_in_4bit", True),
        ("gguf_file", "m.Q4_K_M.gguf"),
        ("enable_thinking", True),
        ("reasoning_effort", "low"),
        ("revision", "step-10"),
        ("dtype", "float16"),
        ("temperature", 0.7),
    ],
)
def test_what_changes_answers_makes_another_model(name, value, tmp_path):
    other = "bfloat16" if name == "dtype" else 0.0 if name == "temperature" else None
    before = {name: other} if other is not None else {}
    tasks = {"t": [1, 1, 0, 0]}
    write_lm_eval_run(tmp_path / "a", "org/m", tasks, **config(**before))
    tasks = {"t": [1, 0, 1, 1]}
    write_lm_eval_run(tmp_path / "b", "org/m", tasks, **config(**{name: value}))
    scores, _ = read(tmp_path)
    assert sorted(means(scores).values()) == [0.5, 0.75]
    text = json.dumps(value).strip('"')
    assert any(f"{name}={text}" in m or f"@{text}" in m for m in scores.models.index)


def test_an_adapter_is_called_by_its_base_and_its_own_name(tmp_path):
    base, tuned, apart = (tmp_path / name for name in ("base", "tuned", "apart"))
    tasks = {"t": [1, 1, 1, 0, 0]}
    write_lm_eval_run(base, "org/m", tasks, **config())
    adapter = config(peft="me/lora")
    write_lm_eval_run(tuned, "org/m", {"t": [1, 0, 0, 0, 0]}, **adapter)
    write_lm_eval_run(apart, "org/m", {"u": [1, 0]}, **config())
    write_lm_eval_run(apart / "2", "org/m", {"t": [1, 0]}, **adapter)
    both, _ = read(base, tuned)
    assert means(both) == {"org/m": 0.6, "org/m (peft=me/lora)": 0.2}
    assert len(read(apart)[0]) == 2
    assert means(read(tuned)[0]) == {"org/m (peft=me/lora)": 0.2}


def test_arguments_that_older_versions_wrote_as_a_text(tmp_path):
    for number, args in enumerate(["pretrained=org/m", "pretrained=org/m,peft=me/x"]):
        about = {"config": {"model": "hf", "model_args": args}}
        write_lm_eval_run(tmp_path / str(number), "org/m", {"t": [number, 0]}, **about)
    assert len(read(tmp_path)[0]) == 2


def test_generation_settings_of_one_model_keep_its_runs_apart(tmp_path):
    for name, temperature in (("cold", 0.0), ("hot", 0.6)):
        about = config()
        about["config"]["gen_kwargs"] = {"temperature": temperature}
        write_lm_eval_run(tmp_path / name, "org/m", {"t": [1, 0]}, **about)
    scores, said = read(tmp_path)
    assert len(scores) == 2
    assert any("temperature" in line for line in said)


def test_settings_of_the_engine_make_no_other_model(tmp_path):
    "Neither with values that differ, nor in one log only"
    neutral = {"enforce_eager": True, "download_dir": "/a", "max_num_seqs": 64}
    neutral |= {"seed": 1, "gpu_memory_utilization": 0.9, "tensor_parallel_size": 2}
    neutral |= {"device": "cuda", "batch_size": 8, "trust_remote_code": True}
    neutral |= {"cache_dir": "/c", "token": "t", "session_id": "s", "baseUrl": "http"}
    others = {name: f"{value}0" for name, value in neutral.items()}
    for task, args in (("t", neutral), ("u", others), ("v", {})):
        write_lm_eval_run(tmp_path / task, "org/m", {task: [1, 0]}, **config(**args))
    scores, said = read(tmp_path)
    assert [*scores.models.index] == ["org/m"] and not said
    assert setting_words(neutral | {"dtype": 1}) == {"dtype": "1"}


def generation(**values):
    "The part of a results file about a task's own generation"
    return {"configs": {"t": {"generation_kwargs": {"until": ["a"]} | values}}}


@pytest.mark.parametrize("name", ["temperature", "top_p", "max_gen_toks", "do_sample"])
def test_a_task_that_generates_otherwise_is_refused_by_name(name, tmp_path):
    write_lm_eval_run(tmp_path / "a", "org/a", {"t": [1, 0]}, **generation(**{name: 0}))
    write_lm_eval_run(tmp_path / "b", "org/b", {"t": [1, 1]}, **generation(**{name: 1}))
    refused(lambda: read(tmp_path), f"has {name} 1", f"let {name} differ")
    scores, _ = read(tmp_path, differing=(name,))
    assert means(scores) == {"org/a": 0.5, "org/b": 1.0}


@pytest.mark.parametrize("kind", [dict, str])
def test_what_was_chosen_for_all_tasks_is_no_setting_of_one(kind, tmp_path):
    for name, value in (("a", 0.5), ("b", 1.0)):
        chosen = {"temperature": value} if kind is dict else f"temperature={value}"
        about = config() | generation(temperature=value)
        about["config"]["gen_kwargs"] = chosen
        write_lm_eval_run(tmp_path, f"org/{name}", {"t": [1, 0]}, **about)
    _, said = read(tmp_path)
    assert any("other gen_kwargs" in line for line in said)


def test_generation_settings_of_two_models_are_said(tmp_path):
    for name, tokens in (("a", 2048), ("b", 32768)):
        about = config()
        about["config"]["gen_kwargs"] = {"max_gen_toks": tokens}
        write_lm_eval_run(tmp_path, f"org/{name}", {"t": [1, 0]}, **about)
    _, said = read(tmp_path)
    assert any("max_gen_toks" in line for line in said)


def test_settings_are_said_also_where_a_model_is_kept_apart_by_others(tmp_path):
    for name, dtype, heat in (("a", "f16", 0), ("a", "f32", 0), ("b", "f16", 1)):
        about = config(dtype=dtype, temperature=heat)
        write_lm_eval_run(tmp_path / dtype, f"org/{name}", {"t": [1, 0]}, **about)
    scores, said = read(tmp_path)
    assert len(scores) == 3 and sum("other temperature" in x for x in said) == 1
    assert any("kept apart by dtype" in x for x in said) and len(said) == 2


def test_two_models_that_a_seed_named_alike_are_told_by_their_folders(tmp_path):
    for name, answers in (("a", [1, 1, 0, 0]), ("b", [0, 0, 0, 1])):
        about = {"config": {"model": "dummy", "model_args": "", "random_seed": 0}}
        write_lm_eval_run(tmp_path / name, "qwertyui", {"t": answers}, **about)
    refused(lambda: read(tmp_path), "qwertyui", "two scores")
    (line,) = read(tmp_path / "a")[1]
    assert "named qwertyui by its seed" in line


# What was asked ---------------------------------------------------------------------


@pytest.mark.parametrize(
    "name,before,after",
    [
        ("chat_template", {"chat_template_sha": None}, {"chat_template_sha": "ab12"}),
        (
            "system_instruction",
            {"system_instruction_sha": None},
            {"system_instruction_sha": "cd34", "system_instruction": "Be brief."},
        ),
        ("shots", {"n-shot": {"t": 0}}, {"n-shot": {"t": 5}}),
        ("version", {"versions": {"t": 1.0}}, {"versions": {"t": 2.0}}),
    ],
)
def test_another_way_to_ask_is_refused_by_name(name, before, after, tmp_path):
    write_lm_eval_run(tmp_path / "a", "org/a", {"t": [1, 0]}, **before)
    write_lm_eval_run(tmp_path / "b", "org/b", {"t": [1, 1]}, **after)
    refused(lambda: read(tmp_path), name, f"let {name} differ")
    scores, _ = read(tmp_path, differing=(name,))
    assert means(scores) == {"org/a": 0.5, "org/b": 1.0}


# Direction, missing scores, ids -----------------------------------------------------


def test_a_metric_whose_direction_nobody_knows_is_asked_for(tmp_path):
    about = {"higher_is_better": {"t": {"zeta": None}}}
    write_lm_eval_run(tmp_path, "m", {"t": [0.25, 0.75, 1, 0]}, metric="zeta", **about)
    refused(lambda: read(tmp_path), "zeta", "direction")
    assert means(read(tmp_path, direction="higher")[0]) == {"m": 0.5}
    scores, _ = read(tmp_path, direction="lower")
    assert scores.values.tolist() == [[0.75, 0.25, 0, 1]]
    assert {*scores.items["direction"]} == {"lower"}
    assert [*scores.models["reconciled"]] == ["equal"]


@pytest.mark.parametrize("metric", ["wer", "word_perplexity", "toxicity", "brier"])
def test_a_metric_that_is_lower_by_its_name_is_no_score(metric, tmp_path):
    about = {"higher_is_better": {"t": {metric: None}}}
    write_lm_eval_run(tmp_path, "m", {"t": [0.1, 0.3]}, metric=metric, **about)
    refused(lambda: read(tmp_path), metric, "direction")
    assert means(read(tmp_path, direction="lower")[0]) == {"m": 0.8}


LESS = (
    "attack_success_rate hallucinated hallucination_rate latency num_errors error_rate "
    "false_positive_rate toxicity_score unsafe loss nll brier_score ece edit_distance "
    "jailbreakRate cost_usd n_failures wrong FPR cer mean_squared_error runtime_sec"
).split()
MORE = (
    "acc acc_norm exact_match f1 macro_f1 bleu rougeL chrf++ pass@1 pass_at_1 score "
    "mean correct mcc ndcg@10 prompt_level_strict_acc quasi_exact_match qa_f1_score "
    "reward likelihood bert_score math_verify consistency_rate non_greedy_accuracy "
    "HasAns_exact safety_score win_rate r@1 eqbench"
).split()
ASKED = "zeta refusal_rate refusals likelihood_diff non_toxic harmlessness rate".split()


@pytest.mark.parametrize("names, way", [(LESS, "lower"), (MORE, "higher"), (ASKED, "")])
def test_a_name_says_which_way_is_better_or_nothing(names, way):
    assert [n for n in names if metric_direction(n) != way] == []


def test_a_score_on_a_task_of_harm_is_asked_for():
    for task in ("strongreject", "realtoxicityprompts", "jailbreaks"):
        assert metric_direction("score", task=task) == ""
        assert metric_direction("acc", task=task) == "higher"
        assert metric_direction("score", True, task=task) == "higher"


@pytest.mark.parametrize("metric", ["attack_success_rate", "zeta", "num_errors"])
def test_a_log_without_directions_does_not_make_the_worst_the_best(metric, tmp_path):
    for name, answers in (("bad", [0.9, 0.8]), ("good", [0.1, 0.2])):
        place = write_lm_eval_run(
            tmp_path, name, {"t": answers}, metric=metric, higher_is_better={}
        )
    refused(lambda: read(tmp_path), metric, "direction")
    scores, _ = read(tmp_path, direction="lower")
    assert means(scores) == {"bad": 0.15, "good": 0.85}
    for file in place.glob("results*"):
        file.unlink()
    refused(lambda: read(place), metric, "direction")


def test_a_length_needs_no_direction(tmp_path):
    about = {"higher_is_better": {}}
    write_lm_eval_run(tmp_path, "m", {"t": [1, 0]}, metric="4096", **about)
    assert means(read(tmp_path)[0]) == {"m": 0.5}


@pytest.mark.parametrize("where", [0, 3, 5])
def test_a_document_without_the_metric_has_no_score(where, tmp_path):
    answers = [1, 1, 1, 0, 0, 1]
    answers[where] = None
    write_lm_eval_run(tmp_path, "m", {"t": answers})
    scores, _ = read(tmp_path)
    assert np.flatnonzero(np.isnan(scores.values[0])).tolist() == [where]
    assert [*scores.models["reconciled"]] == ["equal"]


@pytest.mark.parametrize("vintage", ["2024-11", "2023-12"])
@pytest.mark.parametrize("kind", [str, float])
def test_a_document_whose_log_likelihoods_are_nan_has_no_score(kind, vintage, tmp_path):
    "lm-eval writes texts; of NaN the first choice is the likeliest, right or wrong"
    rows = []
    for number, score in enumerate([1, 0, 0, 1, 1, 1]):
        lost = number >= 3
        pair = ("nan", "False") if kind is str else (float("nan"), False)
        resps = [["-1.5", "True"], pair if lost else ["-2", "False"]]
        row = lm_eval_row("t", number, score, resps=[[r] for r in resps])
        rows.append(of_vintage(row | {"filtered_resps": resps}, vintage))
    about = {"results": {"t": {"acc,none": 4 / 6}}}
    place = tmp_path / "m"
    write_rows(place / f"samples_t_{TIME}.jsonl", rows)
    write_results(place, "m", ["t"], **about)
    scores, said = read(tmp_path)
    assert np.isnan(scores.values[0]).tolist() == [False] * 3 + [True] * 3
    assert any("of 3 of 6 documents of t are NaN" in line for line in said)
    assert "marked as invalid (3 of 6)" in scores.models["reconciled"].iloc[0]


def test_a_text_that_speaks_of_nan_is_an_answer(tmp_path):
    rows = [
        lm_eval_row("t", n, 1, "exact_match", filtered_resps=[text])
        for n, text in enumerate(['["nan", "False"]', "nan", "NaN, True"])
    ]
    write_rows(tmp_path / "m" / f"samples_t_{TIME}.jsonl", rows)
    assert not np.isnan(read(tmp_path)[0].values).any()


def write_lengths(folder):
    "A metric for each length, and -1 where the document has another"
    rows = []
    for number, (short, long) in enumerate([(1, -1), (0.5, -1), (-1, 1), (-1, 0)]):
        row = lm_eval_row("niah", number, short, "4096")
        row |= {"8192": long, "16384": -1, "metrics": ["4096", "8192", "16384"]}
        rows.append(row)
    place = folder / "m"
    write_rows(place / f"samples_niah_{TIME}.jsonl", rows)
    return place


def test_minus_one_of_another_length_is_no_score(tmp_path):
    write_lengths(tmp_path)
    scores, _ = read(tmp_path, metric=("4096",))
    assert means(scores) == {"m": 0.75}
    assert np.isnan(scores.values).sum() == 2
    assert means(read(tmp_path, metric=("8192",))[0]) == {"m": 0.5}
    scores, _ = read(tmp_path, metric=("16384",))
    assert np.isnan(scores.values).all()


def test_wrong_ids_of_an_unsorted_list_are_settled_by_hash(tmp_path):
    order = [5, 2, 9]  # in which the documents were run; ids were written sorted
    answers = {5: 1, 2: 0, 9: 1}
    rows = []
    for wrong, number in zip(sorted(order), order, strict=True):
        row = lm_eval_row("t", wrong, answers[number])
        doc = document("t", number)
        rows.append(row | {"doc": doc, "doc_hash": digest(doc)})
    write_rows(tmp_path / "b" / f"samples_t_{TIME}.jsonl", rows)
    right = [lm_eval_row("t", number, answers[number]) for number in sorted(order)]
    write_rows(tmp_path / "a" / f"samples_t_{TIME}.jsonl", right)
    refused(lambda: read(tmp_path), "match='hash'")
    scores, _ = read(tmp_path, match="hash")
    assert scores.values.shape == (2, 3)
    assert (scores.values[0] == scores.values[1]).all()


def test_a_filter_or_metric_for_one_task_does_not_close_another(tmp_path):
    place = tmp_path / "m"
    for task, names in (("a", ["strict", "flexible"]), ("b", ["none"])):
        rows = [
            lm_eval_row(task, n, int(name != "strict"), filter=name)
            for n in range(3)
            for name in names
        ]
        write_rows(place / f"samples_{task}_{TIME}.jsonl", rows)
    scores, _ = read(tmp_path, filter=("flexible",))
    assert means(scores) == {"m": 1.0}
    refused(lambda: read(place / f"samples_a_{TIME}.jsonl", filter=("x",)), "flexible")


def test_a_run_of_the_first_documents_says_so(tmp_path):
    write_lm_eval_run(tmp_path, "strong", {"t": [1] * 5 + [0, 1] * 5})
    counts = {"n-samples": {"t": {"original": 15, "effective": 5}}}
    about = counts | {"config": {"model": "hf", "limit": 5.0}}
    write_lm_eval_run(tmp_path, "weak", {"t": [1, 1, 1, 1, 0]}, **about)
    scores, said = read(tmp_path)
    assert any("weak" in line and "5 of 15" in line for line in said), said


def test_what_is_written_is_read_again_with_all_of_it(tmp_path):
    write_lm_eval_run(tmp_path, "org/a", {"t": [1, 1, 0, 0]}, scores={"t": 0.9})
    scores, _ = read(tmp_path)
    scores.to_parquet(tmp_path / "s.parquet")
    again = type(scores).from_parquet(tmp_path / "s.parquet")
    assert [*again.models["reconciled"]] == [*scores.models["reconciled"]]
    assert (
        json.loads(again.items["settings"].iloc[0]) if "settings" in again.items else 1
    )


# In tell, estimate, reports, paired and gate ----------------------------------------


def plan_of(folder, n_items=12, **results):
    "An evaluation planned from logs of six models"
    rng = np.random.default_rng(0)
    for number in range(6):
        answers = (rng.random(n_items) < 0.2 + 0.12 * number).astype(int).tolist()
        write_lm_eval_run(folder / "logs", f"org/m{number}", {"t": answers}, **results)
    table = str(folder / "s.parquet")
    assert main(["import", "lm-eval", str(folder / "logs"), "--out", table]) == 0
    mine = str(folder / "mine")
    words = ["--method", "aipw", "--budget", str(n_items), "--folds", "0"]
    assert main(["plan", table, *words, "--out", mine]) == 0
    return mine


def test_a_line_of_a_told_log_stands_in_every_report(tmp_path, capsys):
    mine = plan_of(tmp_path)
    run = {"t": [1] * 6 + [0] * 6}
    place = write_lm_eval_run(tmp_path / "new", "org/new", run, scores={"t": 0.9})
    assert main(["tell", mine, str(place)]) == 0
    capsys.readouterr()
    line = "the harness reports 90.0 points by acc, the items give 50.0"
    assert main(["estimate", mine]) == 0
    assert "90.0 points by acc" in capsys.readouterr().out
    assert main(["estimate", mine, "--json"]) == 0
    notes = json.loads(capsys.readouterr().out)["notes"]
    assert any(line in note for note in notes)
    page = tmp_path / "r.html"
    assert main(["estimate", mine, "--html", str(page)]) == 0
    assert line in page.read_text()
    other = write_lm_eval_run(tmp_path / "other", "org/other", run)
    assert main(["paired", mine, str(other)]) == 0
    assert "90.0 points" in capsys.readouterr().out
    assert main(["gate", str(other), str(place), "--margin", "40", "--json"]) in (0, 3)
    assert line in json.loads(capsys.readouterr().out)["note"]


@pytest.mark.parametrize(
    "about,name",
    [
        ({"n-shot": {"t": 5}}, "shots"),
        ({"versions": {"t": 2.0}}, "version"),
        ({"chat_template_sha": "ab12"}, "chat_template"),
        ({"higher_is_better": {"t": {"acc": False}}}, "direction"),
    ],
)
def test_a_tell_with_another_setting_than_the_sources_is_refused(
    about, name, tmp_path, capsys
):
    mine = plan_of(tmp_path, chat_template_sha=None)
    place = write_lm_eval_run(tmp_path / "new", "org/new", {"t": [1] * 12}, **about)
    other = write_lm_eval_run(tmp_path / "other", "org/other", {"t": [0] * 6 + [1] * 6})
    if name == "direction":
        assert main(["tell", mine, str(place), "--direction", "lower"]) == 2
        assert "direction" in capsys.readouterr().err
        return
    capsys.readouterr()
    assert main(["tell", mine, str(place)]) == 2
    assert f"--differing {name}" in capsys.readouterr().err
    assert main(["tell", mine, str(place), "--differing", name]) == 0
    assert main(["paired", str(other), mine]) == 0
    capsys.readouterr()
    if name != "chat_template":
        assert main(["paired", str(other), str(place)]) == 2
        assert f"--differing {name}" in capsys.readouterr().err
        assert main(["paired", str(other), str(place), "--differing", name]) == 0


def test_what_logs_alone_have_is_refused_where_there_are_none(tmp_path, capsys):
    mine = plan_of(tmp_path)
    table = tmp_path / "a.csv"
    table.write_text("item,score\nt/0,1\nt/1,0\n")
    for option in (["--scale", "1,10"], ["--direction", "lower"]):
        assert main(["tell", mine, str(table), *option]) == 2
        assert option[0] in capsys.readouterr().err
    other = tmp_path / "b.csv"
    other.write_text(table.read_text())
    assert main(["paired", str(table), str(other), "--differing", "shots"]) == 2
    assert "--differing" in capsys.readouterr().err


@pytest.mark.parametrize("measure", ["pass@2", "pass^2"])
def test_partial_credit_has_no_pass_at_k(measure, tmp_path, capsys):
    rows = {"old": [(1, 0)] * 30, "new": [(0.5, 0.5)] * 30}
    for name, runs in rows.items():
        lines = [f"t{n},{x}" for n, pair in enumerate(runs) for x in pair]
        (tmp_path / f"{name}.csv").write_text("\n".join(["item,score", *lines]))
    words = [str(tmp_path / f"{name}.csv") for name in rows]
    assert main(["gate", *words, "--measure", measure]) == 2
    assert "partial credit" in capsys.readouterr().err
    assert main(["gate", *words, "--measure", "mean"]) in (0, 3)


# Tables -----------------------------------------------------------------------------


def test_a_table_of_a_judge_has_a_scale(tmp_path, capsys):
    table = tmp_path / "judge.csv"
    table.write_text("model,item,score\nm,a,1\nm,b,10\nm,c,5.5\nm,d,\n")
    out = str(tmp_path / "o.parquet")
    words = ["import", "table", str(table), "--out", out]
    assert main(words) == 2
    capsys.readouterr()
    assert main([*words, "--scale", "1,10"]) == 0
    scores = load_table(out)
    assert scores.values[0, :3].tolist() == [0, 1, 0.5]
    assert main([*words, "--scale", "1,10", "--direction", "lower"]) == 0
    assert load_table(out).values[0, :3].tolist() == [1, 0, 0.5]
    for option in (["--differing", "shots"], ["--metric", "acc"], ["--match", "hash"]):
        assert main([*words, "--scale", "1,10", *option]) == 2
        assert option[0][2:] in capsys.readouterr().err


def test_a_range_of_scores_is_over_the_items_of_all_models(tmp_path):
    rows = [f"full,{n},{int(n < 7)}" for n in range(10)]
    rows += [f"part,{n},{int(n < 5)}" for n in range(6)]
    table = tmp_path / "a.csv"
    table.write_text("\n".join(["model,item,score", *rows]))
    text = describe_scores(load_table(str(table)))["scores"]
    assert text == "0.833 (part) to 1.000 (full), on the 6 items of all models"
    rows = ["a,1,1", "a,2,0", "b,3,1", "b,4,1"]
    table.write_text("\n".join(["model,item,score", *rows]))
    text = describe_scores(load_table(str(table)))["scores"]
    assert text == "no item has a score of every model"


def test_a_setting_in_one_log_only_makes_another_system_where_all_are_recorded():
    logs = [Log("m", "t", np.arange(2), np.ones(2)) for _ in range(2)]
    logs[1].system = {"max_turns": "5"}
    name_systems(logs)
    assert [log.model for log in logs] == ["m", "m"]  # the first may not say it
    for log in logs:
        log.system_is_whole = True
    (line,) = name_systems(logs)
    assert [log.model for log in logs] == ["m", "m (max_turns=5)"]
    assert "not set" in line


def test_a_login_in_an_address_is_in_no_name():
    "Also under a name whose texts are shown"
    for address in ("http://me:word@host/v1", "https://word@host", "me:word@host"):
        words = setting_words({"host": address}, shown=["host"], left_out=())
        assert "word" not in words["host"] and words["host"].startswith("#")
    plain = setting_words({"host": "host:80"}, shown=["host"], left_out=())
    assert plain == {"host": "host:80"}


def test_answers_without_scores_are_refused_as_such(tmp_path):
    write_lm_eval_run(tmp_path, "org/m", {"t": [999, 999]}, metric="bypass")
    refused(lambda: read(tmp_path), "without scores (--predict_only)")


@pytest.mark.parametrize("shots, differs", [(5, True), (0, False)])
def test_other_examples_make_another_question(shots, differs, tmp_path):
    for model, seed in (("org/m", 1234), ("org/n", 42)):
        place = write_lm_eval_run(tmp_path, model, {"t": [1, 0]})
        (path,) = place.glob("results_*.json")
        results = json.loads(path.read_text())
        results["n-shot"]["t"] = shots
        results["config"]["fewshot_seed"] = seed
        path.write_text(json.dumps(results))
    if differs:
        refused(lambda: read(tmp_path), "let fewshot_seed differ", "('fewshot_seed',)")
    both, _ = read(tmp_path, differing=("fewshot_seed",))
    assert both.shape == (2, 2)


def test_a_setting_of_one_model_alone_is_said(tmp_path):
    for model, args in (("org/m", {"temperature": 1.0}), ("org/n", {})):
        config = {"model_args": {"pretrained": model} | args}
        write_lm_eval_run(tmp_path, model, {"t": [1, 0]}, config=config)
    _, lines = read(tmp_path)
    (line,) = [line for line in lines if "temperature" in line]
    assert line.endswith("temperature: 1.0 (org/m), not set (org/n)")


def test_an_item_of_no_task_is_called_by_its_id():
    logs = [Log("m", "", np.array(["a"], object), np.array([x])) for x in (0.0, 1.0)]
    with pytest.raises(ValueError, match="two scores on item a "):
        join_logs(logs)


@pytest.mark.parametrize("key", [None, "B"])
@pytest.mark.parametrize("temperature", [0.0, 1.0, None])
def test_what_a_told_log_has_other_than_the_sources_is_said(key, temperature, tmp_path):
    "Another temperature of its own, another right answer: the score is of these"
    logs = []
    for model, heat, target in (("s", 0.0, None), ("new", temperature, key)):
        header, samples = inspect_log(model, "quiz", ["C", "I"] * 6)
        config = {} if heat is None else {"temperature": heat}
        header["eval"]["model_generate_config"] = config
        samples[2]["target"] = target or "A"
        folder = tmp_path / model
        folder.mkdir()
        logs.append(write_json(folder / "a.json", header | {"samples": samples}))
    sources = import_logs("inspect", logs[0])
    said: list[str] = []
    log_answers(get_harness("inspect").read(logs[1]), sources.items, notes=said)
    notes = " ".join(said)
    word = "default" if temperature is None else f"{temperature:g}"
    is_other = f"other temperature than the sources: {word}" in notes
    assert is_other == (temperature != 0.0)
    assert ("right answer of 1 of 12 items" in notes) == (key is not None)


def test_settings_that_sources_do_not_share_are_compared_with_none():
    logs = [Log("m", "t", np.arange(2), np.ones(2)) for _ in range(2)]
    logs[0].system = {"temperature": "1", "top_p": "0.9"}
    logs[1].system = {"top_p": "0.9"}
    for log in logs:
        log.system_is_whole = True
    common = common_sampling(logs)
    assert common == {"temperature": "", "top_p": "0.9", "*": "not set"}
    assert not other_sampling({"temperature": "2", "top_p": "0.9"}, common)
    (line,) = other_sampling({"*": "not set"}, common)
    assert line.endswith("top_p than the sources: not set, theirs was 0.9")
