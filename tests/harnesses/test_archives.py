"""What archives and exchange formats say of their scores: HELM, lighteval and the
leaderboard, OpenCompass, Every Eval Ever. The numbers are the harness's own."""

import json

import numpy as np
import pandas as pd
import pytest
from helpers.logs import (
    eee_line,
    eee_result,
    refused,
    write_details,
    write_eee_file,
    write_helm_run,
    write_lighteval,
    write_opencompass,
    write_rows,
)

from benchnb.cli.app import main
from benchnb.harnesses.harness import import_logs
from benchnb.harnesses.logs import Choices, choices_of_sources, store_choices

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


def means(scores):
    "Each model's score, with the weights of the items"
    return {name: float(x) for name, x in scores.performance().round(4).items()}


def differing(scores):
    "How many common items have other scores of the first two models"
    first, second = scores.values[:2]
    return int((np.abs(first - second) > 1e-9).sum())


# HELM ----------------------------------------------------------------------------


@pytest.mark.parametrize("metric", ["toxic_frac", "ece_10_bin", "bbq_ambiguous_bias"])
def test_helm_metrics_that_are_better_when_lower(metric, tmp_path):
    write_helm_run(tmp_path, "rtp", "o/a", {metric: [0.9, 0.5, 0.4]})
    write_helm_run(tmp_path, "rtp", "o/b", {metric: [0.1, 0.0, 0.2]})
    refused(lambda: import_logs("helm", tmp_path), metric, "direction='lower'")
    scores = import_logs("helm", tmp_path, Choices(direction="lower"))
    assert means(scores) == {"o/a": 0.4, "o/b": 0.9}
    assert set(scores.models["reconciled"]) == {"equal"}
    assert set(scores.items["metric"]) == {metric}


def test_a_direction_that_nobody_knows_is_asked(tmp_path):
    write_helm_run(tmp_path, "quiz", "o/a", {"gizmo": [0.9, 0.5]})
    refused(lambda: import_logs("helm", tmp_path), "gizmo", "'higher' or 'lower'")
    scores = import_logs("helm", tmp_path, Choices(direction="higher"))
    assert means(scores) == {"o/a": 0.7}


def test_a_metric_that_was_turned_is_said(tmp_path):
    write_helm_run(tmp_path, "air:subset=all", "o/a", {"air_score": [1, 0.5]})
    with pytest.warns(UserWarning, match="air_score of air.* not in the log"):
        import_logs("helm", tmp_path)


def test_a_judge_that_could_not_be_read(tmp_path):
    stats = {"safety_gpt_annotator_success": [1, 0, 1, 1]}
    stats |= {"safety_gpt_score": [1, None, 0.5, 0]}
    stats |= {"safety_score": [1, 0.5, 0.5, 0]}
    write_helm_run(tmp_path, "bench", "o/a", stats)
    with pytest.raises(ValueError, match="choose metric") as caught:
        import_logs("helm", tmp_path)
    assert "annotator_success" not in str(caught.value)
    with pytest.warns(UserWarning, match="1 of 4 instances safety_gpt could not"):
        scores = import_logs("helm", tmp_path, Choices(("safety_score",)))
    assert means(scores) == {"o/a": 0.5}
    scores = import_logs("helm", tmp_path, Choices(("safety_gpt_score",)))
    assert np.isnan(scores.values).sum() == 1
    assert scores.models["reconciled"].tolist() == ["equal"]


def test_a_judge_of_one_to_five(tmp_path):
    write_helm_run(tmp_path, "audio", "o/a", {"judge_score": [5, None, 3, 1, None]})
    refused(lambda: import_logs("helm", tmp_path), "scale='LOW,HIGH'")
    scores = import_logs("helm", tmp_path, Choices(scale=(1, 5)))
    assert scores.values[0, [0, 2, 3]].tolist() == [1, 0.5, 0]
    assert scores.models["reconciled"].tolist() == ["equal"]


def test_the_metric_within_the_scale_is_the_one(tmp_path):
    stats = {"rating_score": [1, 5.5, 10], "rating_score_rescaled": [0, 0.5, 1]}
    write_helm_run(tmp_path, "chat", "o/a", stats)
    scores = import_logs("helm", tmp_path)
    assert means(scores) == {"o/a": 0.5}
    assert set(scores.items["metric"]) == {"rating_score_rescaled"}
    asked = Choices(("rating_score",), scale=(1, 10))
    assert means(import_logs("helm", tmp_path, asked)) == {"o/a": 0.5}


def test_subjects_weigh_alike_as_in_the_tables_of_helm(tmp_path):
    for model, few, many in (("o/a", [1] * 4, [1] * 3 + [0] * 13),
                             ("o/b", [1, 0, 0, 0], [1] * 12 + [0] * 4)):  # fmt: skip
        for subject, answers in (("anatomy", few), ("law", many)):
            name = f"mmlu:subject={subject}"
            write_helm_run(tmp_path, name, model, {"exact_match": answers})
    scores = import_logs("helm", tmp_path)
    assert means(scores) == {"o/a": 0.5938, "o/b": 0.5}
    assert set(scores.models["reconciled"]) == {"equal"}


def test_a_mean_that_the_items_do_not_give_is_said(tmp_path):
    write_helm_run(
        tmp_path, "quiz", "o/a", {"exact_match": [1, 0]}, mean={"exact_match": 0.9}
    )
    (line,) = import_logs("helm", tmp_path).models["reconciled"]
    assert "reports 90.0 points" in line and "give 50.0" in line


def test_two_deployments_are_two_models(tmp_path):
    for place, scores in (("together/x", [1, 0]), ("huggingface/x", [1, 1])):
        stats = {"exact_match": scores}
        write_helm_run(tmp_path, "gsm", "meta/x", stats, model_deployment=place)
    table = import_logs("helm", tmp_path)
    assert means(table) == {
        "meta/x (model_deployment=together/x)": 0.5,
        "meta/x (model_deployment=huggingface/x)": 1,
    }


def test_settings_of_scenarios_do_not_make_several_models(tmp_path):
    for scenario, temperature in (("gsm", 0.0), ("chat", 0.7)):
        stats = {"exact_match": [1, 0]}
        write_helm_run(tmp_path, scenario, "o/a", stats, temperature=temperature)
    assert len(import_logs("helm", tmp_path)) == 1
    write_helm_run(tmp_path, "gsm", "o/a", {"exact_match": [1, 1]}, temperature=1)
    names = import_logs("helm", tmp_path).models.index
    assert "o/a (temperature of gsm=1)" in names


@pytest.mark.parametrize(
    "name", ["temperature", "max_tokens", "instructions", "method"]
)
def test_settings_of_a_scenario_that_differ_between_models_are_said(name, tmp_path):
    for task in ("one", "two"):
        for model, value in (("o/a", 0), ("o/b", "0.7")):
            write_helm_run(tmp_path, task, model, {"em": [1, 0]}, **{name: value})
    with pytest.warns(UserWarning, match=f"other {name} of one: 0 .o/a., 0.7 .o/b."):
        scores = import_logs("helm", tmp_path)
    assert len(scores) == 2


def test_a_limit_is_named_and_common_items_are_compared(tmp_path, capsys):
    write_helm_run(
        tmp_path / "r", "gsm", "o/a", {"exact_match": [1, 1, 0, 0]},
        max_eval_instances=4,
    )  # fmt: skip
    stats = {"exact_match": [1, 1]}
    write_helm_run(tmp_path / "r", "gsm", "o/b", stats, max_eval_instances=2)
    with pytest.warns(UserWarning, match="max_eval_instances 4 and max_eval_inst"):
        import_logs("helm", tmp_path)
    out = str(tmp_path / "o.parquet")
    assert main(["import", "helm", str(tmp_path / "r"), "--out", out]) == 0
    assert "highest score: 100.0 points (o/a)" in capsys.readouterr().out


# lighteval and the leaderboard ----------------------------------------------------


def test_token_counts_are_no_metrics(tmp_path):
    write_lighteval(tmp_path, "o/m", {"sum|0": {"em": [1.0, 0], "f1": [1.0, 0.5]}})
    with pytest.raises(ValueError, match="choose metric from 'em', 'f1'$"):
        import_logs("lighteval", tmp_path)


def test_ids_are_those_of_the_documents(tmp_path):
    write_lighteval(tmp_path, "o/a", {"s|0": {"em": [1.0, 0, 1]}}, ids=[0, 1, 2])
    write_lighteval(tmp_path, "o/b", {"s|0": {"em": [1.0, 0]}}, ids=[2, 1])
    scores = import_logs("lighteval", tmp_path)
    assert scores.shape == (2, 3) and differing(scores) == 0
    assert "by_position" not in scores.items


def test_positions_are_said_and_matched_by_the_text(tmp_path, capsys):
    write_details(tmp_path, "o/a", "arc", [1, 0, 1, 0])
    path = write_details(tmp_path, "o/b", "arc", [1, 0, 1, 0])
    shuffled = pd.read_parquet(path).iloc[[3, 1, 2, 0]]
    shuffled.to_parquet(path, index=False)
    scores = import_logs("openllm", tmp_path)
    assert scores.shape == (2, 4) and differing(scores) == 0
    out = str(tmp_path / "o.parquet")
    assert main(["import", "openllm", str(tmp_path), "--out", out]) == 0
    assert "ids are the positions of rows in the files" in capsys.readouterr().out


def test_groups_are_plain_means_of_tasks(tmp_path):
    for model, few, many, mean in (("o/a", 4, 2, 0.55), ("o/b", 2, 6, 0.4)):
        few = [1.0] * few + [0.0] * (4 - few)
        many = [1.0] * many + [0.0] * (20 - many)
        tasks = {"mmlu:law|5": {"acc": few}, "mmlu:art|5": {"acc": many}}
        groups = {name: {"acc": mean} for name in ("mmlu:_average|5", "all")}
        write_lighteval(tmp_path, model, tasks, means=groups)
    scores = import_logs("lighteval", tmp_path)
    assert means(scores) == {"o/a": 0.55, "o/b": 0.4}


def test_an_aggregate_that_is_no_mean_is_said(tmp_path):
    answers = {"em": [1.0, 0, 0, 0, 0]}
    write_lighteval(tmp_path, "o/a", {"drop|3": answers}, means={"drop|3": {"em": 1.0}})
    scores = import_logs("lighteval", tmp_path)
    assert means(scores) == {"o/a": 0.2}
    assert "reports 100.0 points by em" in scores.models["reconciled"].iloc[0]


def test_a_metric_of_the_corpus_is_refused_by_name(tmp_path):
    answers = {"acc": [1.0, 0], "f1": [{"golds": [0], "preds": [1]}] * 2}
    write_lighteval(tmp_path, "o/a", {"mrpc|0": answers})
    assert means(import_logs("lighteval", tmp_path)) == {"o/a": 0.5}
    asked = Choices(("f1",))
    refused(lambda: import_logs("lighteval", tmp_path, asked), "f1", "whole corpus")


def test_revisions_and_settings_are_models(tmp_path):
    for revision, time in (("main", "2026-01-21T03-44-18.458309"),
                           ("step-9", "2026-01-22T03-44-18.458309")):  # fmt: skip
        config = {"revision": revision, "generation_parameters": {"temperature": 0}}
        write_lighteval(
            tmp_path, "o/a", {f"t{revision}|0": {"acc": [1.0, 0]}}, time, config=config
        )
    assert set(import_logs("lighteval", tmp_path).models.index) == {"o/a", "o/a@step-9"}
    config = {"generation_parameters": {"temperature": 0.6}, "api_key": "x"}
    write_lighteval(tmp_path, "o/a", {"hot|0": {"acc": [1.0, 0]}}, config=config,
                    time="2026-01-23T03-44-18.458309")  # fmt: skip
    names = set(import_logs("lighteval", tmp_path).models.index)
    assert {"o/a (temperature=0)", "o/a (temperature=0.6)"} <= names


def test_the_configuration_knows_the_direction(tmp_path):
    for model, scores in (("o/a", [0.9, 0.7]), ("o/b", [0.1, 0.2])):
        metric = {"metric_name": ["gap"], "higher_is_better": {"gap": False}}
        metric["corpus_level_fn"] = {"gap": "min"}
        config = {"v|0": {"metrics": [metric]}}
        write_lighteval(tmp_path, model, {"v|0": {"gap": scores}}, config_tasks=config)
    refused(lambda: import_logs("lighteval", tmp_path), "'gap'", "direction='lower'")
    lower = Choices(direction="lower")
    with pytest.warns(UserWarning, match="takes the min over items"):
        assert means(import_logs("lighteval", tmp_path, lower)) == {
            "o/a": 0.2,
            "o/b": 0.85,
        }


def test_a_judge_of_one_to_ten(tmp_path):
    answers = {"judge_score_turn_1": [10.0, 5, 1, 4]}
    write_lighteval(tmp_path, "o/a", {"mt|0": answers})
    refused(lambda: import_logs("lighteval", tmp_path), "scale='LOW,HIGH'")
    scores = import_logs("lighteval", tmp_path, Choices(scale=(1, 10)))
    assert means(scores) == {"o/a": 0.4444}
    assert scores.models["reconciled"].tolist() == ["equal"]


# OpenCompass ---------------------------------------------------------------------


def test_the_accuracy_is_compared(tmp_path):
    rows = [{"correct": n < 8} for n in range(10)]
    write_opencompass(tmp_path, "a", "arc", rows, accuracy=36.0)
    (line,) = import_logs("opencompass", tmp_path / "results").models["reconciled"]
    assert "reports 36.0 points by accuracy" in line and "give 80.0" in line
    write_opencompass(tmp_path, "a", "arc", rows)
    assert import_logs("opencompass", tmp_path).models["reconciled"].item() == "equal"


@pytest.mark.parametrize("suffix", ["csv", "txt"])
def test_groups_of_a_summary(suffix, tmp_path):
    for model, few, many in (("a", [1] * 4, [1] * 3 + [0] * 13),
                             ("b", [1, 0, 0, 0], [1] * 12 + [0] * 4)):  # fmt: skip
        for task, answers in (("cmmlu-law", few), ("cmmlu-art", many)):
            rows = [{"correct": bool(x)} for x in answers]
            write_opencompass(tmp_path, model, task, rows)
    folder = tmp_path / "summary"
    folder.mkdir()
    folder.joinpath(f"summary_20261102_090000.{suffix}").write_text(
        "csv format\n^^^^^\ndataset,version,metric,mode,a,b\n"
        "cmmlu,-,naive_average,gen,59.38,50.00\n"
        "cmmlu-law,1,accuracy,gen,100.00,25.00\ncmmlu-art,1,accuracy,gen,18.75,75.00\n"
    )
    scores = import_logs("opencompass", tmp_path / "results")
    assert means(scores) == {"a": 0.5938, "b": 0.5}
    assert set(scores.models["reconciled"]) == {"equal"}


def test_a_range_of_the_data_set_is_matched(tmp_path):
    right = [True, False, True, False, True, False]
    rows = [{"example_abbr": f"m_{n}", "correct": x} for n, x in enumerate(right)]
    write_opencompass(tmp_path / "new", "a", "m", rows)
    write_opencompass(tmp_path / "new", "b", "m", rows[2:])
    scores = import_logs("opencompass", tmp_path / "new")
    assert scores.shape == (2, 6) and differing(scores) == 0
    assert "by_position" not in scores.items
    rows = [
        {"prompt": [{"role": "HUMAN", "prompt": f"topic {n}"}], "correct": x}
        for n, x in enumerate(right)
    ]
    write_opencompass(tmp_path / "old", "a", "m", rows)
    write_opencompass(tmp_path / "old", "b", "m", rows[2:])
    scores = import_logs("opencompass", tmp_path / "old")
    assert scores.shape == (2, 6) and differing(scores) == 0
    assert scores.items["by_position"].all()


def test_other_questions_at_the_same_positions_are_refused(tmp_path):
    for model, topic in (("a", "law"), ("b", "art")):
        rows = [{"prompt": f"{topic} {n}", "correct": True} for n in range(3)]
        write_opencompass(tmp_path, model, "m", rows)
    refused(lambda: import_logs("opencompass", tmp_path), "another document", "hash")


def test_rule_and_cascade_are_two_metrics(tmp_path, capsys):
    write_opencompass(tmp_path / "1", "a", "m", [{"correct": True}, {"correct": False}])
    rows = [{"cascade_correct": [True]}, {"cascade_correct": [True]}]
    write_opencompass(tmp_path / "2", "b", "m", rows, accuracy=100.0)
    both = [tmp_path / "1", tmp_path / "2"]
    refused(
        lambda: import_logs("opencompass", both), "correct in", "cascade_correct in"
    )
    out = str(tmp_path / "o.parquet")
    assert main(["import", "opencompass", str(both[1]), "--out", out]) == 0
    assert "metric: cascade_correct" in capsys.readouterr().out


# Every Eval Ever -----------------------------------------------------------------


def with_metric(sample, metric, score, **more):
    "A line of one of several metrics"
    return eee_line(sample, score, evaluation_result_id=metric, **more)


def test_one_metric_that_is_better_when_lower_closes_no_file(tmp_path):
    rows = [with_metric(s, "acc", x) for s, x in (("a", 1), ("b", 0), ("c", 1))]
    rows += [with_metric(s, "harmful", 0.4) for s in "abc"]
    results = [eee_result("t", 0.667, "acc"), eee_result("t", 0.4, "harmful", True)]
    path = write_eee_file(tmp_path, rows, results)
    scores = import_logs("eee", path, Choices(("acc",)))
    assert means(scores) == {"m": 0.6667}
    assert set(scores.items["metric"]) == {"acc"}
    assert scores.models["reconciled"].item() == "equal"
    for metric, words in (
        ("harmful", ("'harmful'", "direction='lower'")),
        ("nonsense", ("no metric 'nonsense'", "'acc', 'harmful'")),
    ):
        refused(lambda m=metric: import_logs("eee", path, Choices((m,))), *words)
    asked = Choices(("acc", "is_correct"))
    assert means(import_logs("eee", path, asked)) == {"m": 0.6667}


def test_two_filters_are_one_task(tmp_path):
    rows = [
        with_metric(str(n), f"em:{name}", score, task=f"gsm/{name}")
        for name, scores in (("strict", [0, 0, 0]), ("last", [1, 0, 0]))
        for n, score in enumerate(scores)
    ]
    results = [eee_result("gsm/strict", 0.0, "em:strict")]
    results.append(eee_result("gsm/last", 0.33333333, "em:last"))
    path = write_eee_file(tmp_path, rows, results)
    refused(lambda: import_logs("eee", path), "choose filter from 'strict', 'last'")
    refused(lambda: import_logs("eee", path, Choices(("x",))), "choose from 'em'")
    scores = import_logs("eee", path, Choices(filter=("last",)))
    assert scores.shape == (1, 3) and means(scores) == {"m": 0.3333}
    about = scores.items[["task", "metric", "filter"]].drop_duplicates()
    assert about.values.tolist() == [["gsm", "em", "last"]]
    assert scores.models["reconciled"].item() == "equal"


@pytest.mark.parametrize(
    "low, high, values, wanted",
    [
        (1, 10, [8, 6, 10, 1], 0.5833),
        (0, 100, [60, 40, 80, 100], 0.7),
        (0, 100, [1, 0, 0, 1], 0.5),  # the number of all is in percent, not these
        (-1, 1, [-1, 0, 1, 1], 0.625),
    ],
)
def test_the_scale_of_the_file_beside(low, high, values, wanted, tmp_path):
    rows = [eee_line(str(n), x) for n, x in enumerate(values)]
    mean = float(np.mean(values))
    reported = 100 * mean if high == 100 and mean <= 1 else mean
    result = eee_result("t", reported, "score", min_score=low, max_score=high)
    scores = import_logs("eee", write_eee_file(tmp_path, rows, [result]))
    assert means(scores) == {"m": wanted}
    assert scores.models["reconciled"].item() == "equal"


def test_a_number_over_other_samples(tmp_path):
    rows = [eee_line(str(n), int(n < 2)) for n in range(5)]
    result = eee_result("t", 70.0, samples=10, max_score=100, min_score=0)
    path = write_eee_file(tmp_path, rows, [result])
    (line,) = import_logs("eee", path).models["reconciled"]
    assert "70.0" in line and "40.0" in line and "10 and 5" in line


def test_an_unknown_level_is_no_score(tmp_path):
    rows = [eee_line(str(n), x) for n, x in enumerate([1, 0, 1, -1, 1, -1])]
    result = eee_result("t", 0.75, has_unknown_level=True, score_type="levels")
    scores = import_logs("eee", write_eee_file(tmp_path, rows, [result]))
    assert np.isnan(scores.values).sum() == 2 and means(scores) == {"m": 0.75}
    assert scores.models["reconciled"].item() == "equal"


def test_levels_are_a_scale(tmp_path):
    rows = [eee_line(str(n), x) for n, x in enumerate([0, 1, 2, 3])]
    result = eee_result("t", 1.5, level_names=["no", "part", "most", "all"])
    scores = import_logs("eee", write_eee_file(tmp_path, rows, [result]))
    assert means(scores) == {"m": 0.5}


def test_epochs_are_averaged_and_repeated_lines_count_once(tmp_path):
    runs = {"a": [1, 0, 0], "b": [0, 1, 1], "c": [0, 0, 1]}
    rows = [
        with_metric(name, "fx:accuracy", x, metadata={"epoch": str(epoch)})
        for epoch in range(3)
        for name, values in runs.items()
        for x in [values[epoch]] * 2
    ]
    results = [eee_result("t", x, "fx:accuracy") for x in (4 / 9, 1.0)]
    scores = import_logs("eee", write_eee_file(tmp_path, rows, results))
    assert means(scores) == {"m": 0.4444}
    assert scores.trials.tolist() == [[3, 3, 3]]
    assert scores.models["reconciled"].item() == "equal"


def test_scores_that_a_converter_lost(tmp_path):
    rows = [eee_line(name, 0) for name in "abc"]
    results = [eee_result("t", x, key) for key, x in (("a:mean", 0.5), ("b:mean", 0.3))]
    path = write_eee_file(tmp_path, rows, results)
    refused(lambda: import_logs("eee", path), "'a:mean', 'b:mean'")
    asked = Choices(("a:mean",))
    refused(lambda: import_logs("eee", path, asked), "reported by 'a:mean'", "lost")
    results = [eee_result("t", 0.44, "fx:accuracy", samples=3)]
    rows = [with_metric(name, "fx:accuracy", 0) for name in "abc"]
    path = write_eee_file(tmp_path, rows, results)
    assert "reports 44.0" in import_logs("eee", path).models["reconciled"].item()


def test_an_error_that_was_run_again(tmp_path):
    rows = [eee_line("a", 1), eee_line("b", 0, error="timeout"), eee_line("c", 0)]
    rows.append(eee_line("b", 1))
    path = write_eee_file(tmp_path, rows, [eee_result("t", 2 / 3)])
    scores = import_logs("eee", path)
    assert means(scores) == {"m": 0.6667}
    assert scores.models["reconciled"].item() == "equal"


def test_reasoning_and_platform_make_other_systems(tmp_path):
    for task, platform, reasoning, temperature in (
        ("gpqa", "together", False, 0.0),
        ("math", "openai", True, 1.0),
        ("code", "openai", True, 0.5),
    ):
        args = {"reasoning": reasoning, "temperature": temperature}
        rows = [eee_line("a", 1, task=task)]
        write_eee_file(
            tmp_path, rows, [eee_result(task, 1.0, args=args)], name=task,
            model_info={"inference_platform": platform},
        )  # fmt: skip
    names = set(import_logs("eee", tmp_path).models.index)
    assert names == {
        "m (inference_platform=together, reasoning=false)",
        "m (inference_platform=openai, reasoning=true)",
    }


@pytest.mark.parametrize("name", ["temperature", "top_p", "max_tokens", "reasoning"])
def test_settings_of_a_task_that_differ_between_models_are_said(name, tmp_path):
    for model, value in (("a", 0.25), ("b", 1)):
        rows = [eee_line(str(n), n, model, "quiz") for n in range(2)]
        result = eee_result("quiz", 0.5, args={name: value})
        write_eee_file(tmp_path, rows, [result], model)
    with pytest.warns(UserWarning, match=f"other {name}.*: 0.25 .a., 1 .b."):
        scores = import_logs("eee", tmp_path)
    assert len(scores) == 2


def test_a_group_without_samples_is_not_called_equal(tmp_path):
    rows = [eee_line(str(n), n % 2, "m", "law") for n in range(4)]
    results = [eee_result("law", 0.5), eee_result("all of it", 0.75)]
    write_eee_file(tmp_path, rows, results)
    with pytest.warns(UserWarning, match="all of it 0.75.*not compared"):
        scores = import_logs("eee", tmp_path)
    assert means(scores) == {"m": 0.5}
    assert "not compared" in scores.models["notes"].iloc[0]


def test_a_direction_that_the_converter_did_not_know(tmp_path):
    rows = [with_metric("a", "credit", 1)]
    more = {"additional_details": {"polarity": "unknown"}}
    path = write_eee_file(tmp_path, rows, [eee_result("t", 1.0, "credit", **more)])
    refused(lambda: import_logs("eee", path), "'credit'", "'higher' or 'lower'")


# Documents -----------------------------------------------------------------------


def hashed(samples, digits, model, scores):
    "Lines with ids, and hashes of documents"
    return [
        eee_line(name, score, model=model, sample_hash=f"{digit + 1:064x}"[::-1])
        for name, digit, score in zip(samples, digits, scores, strict=True)
    ]


@pytest.mark.parametrize("ids", [[0, 1, 2, 3], [3, 0, 2, 1]])
def test_one_item_for_each_document(ids, tmp_path):
    rows = hashed([f"q{n}" for n in range(5)], range(5), "a", [1, 0, 1, 0, 1])
    scores = [[0, 1, 0, 1][n] for n in ids]
    rows += hashed([f"q{n}" for n in range(4)], [n + 1 for n in ids], "b", scores)
    path = write_rows(tmp_path / "u_samples.jsonl", rows)
    refused(lambda: import_logs("eee", path), "another document", "match='hash'")
    table = import_logs("eee", path, Choices(match="hash"))
    assert table.shape == (2, 5) and differing(table) == 0
    assert np.isnan(table.values).sum() == 1


def test_a_document_that_is_there_twice_stays_two_items(tmp_path):
    rows = hashed(["x", "y", "z", "w"], [1, 1, 2, 3], "a", [1, 0, 1, 1])
    rows += hashed(["x", "y", "w"], [1, 1, 2], "b", [1, 0, 1])
    path = write_rows(tmp_path / "u_samples.jsonl", rows)
    table = import_logs("eee", path, Choices(match="hash"))
    assert table.shape == (2, 4) and differing(table) == 0


@pytest.mark.parametrize("harness", ["helm", "lighteval", "eee", "opencompass"])
def test_sources_by_one_metric_and_a_target_by_another(harness, tmp_path):
    def write(place, model, metric, scores):
        if harness == "helm":
            write_helm_run(place, "quiz", model, {metric: scores})
        elif harness == "lighteval":
            write_lighteval(
                place, model, {"quiz|0": {metric: list(map(float, scores))}}
            )
        elif harness == "eee":
            rows = [
                with_metric(f"s{n}", metric, x, model=model, task="quiz")
                for n, x in enumerate(scores)
            ]
            write_rows(place / "u_samples.jsonl", rows)
        else:
            rows = [{metric: bool(x)} for x in scores]
            write_opencompass(place, model, "quiz", rows, accuracy=50)

    names = ("exact_match", "f1_score")
    if harness == "opencompass":
        names = ("correct", "cascade_correct")
    rng = np.random.default_rng(0)
    for n in range(4):
        answers = rng.integers(0, 2, 12).tolist()
        write(tmp_path / "sources" / str(n), f"m{n}", names[0], answers)
    write(tmp_path / "target", "new", names[1], rng.integers(0, 2, 12).tolist())
    write(tmp_path / "same", "new", names[0], rng.integers(0, 2, 12).tolist())
    table = import_logs(harness, tmp_path / "sources")
    assert set(table.items["metric"]) == {names[0]}
    asked = choices_of_sources(store_choices(table.items, Choices()))
    assert len(import_logs(harness, tmp_path / "same", asked)) == 1
    refused(lambda: import_logs(harness, tmp_path / "target", asked), names[0])


def test_a_choice_that_a_format_does_not_read_is_refused(tmp_path):
    path = write_rows(
        tmp_path / "a.jsonl", [{"subject_id": "m", "responses": {"q": 1}}]
    )
    asked = Choices(("acc",))
    refused(lambda: import_logs("py-irt", path, asked), "leave metric out")
    write_helm_run(tmp_path, "quiz", "o/a", {"exact_match": [1, 0]})
    asked = Choices(filter=("x",))
    refused(lambda: import_logs("helm", tmp_path, asked), "leave filter out")


def test_a_broken_file_beside_is_named(tmp_path):
    place = write_helm_run(tmp_path, "quiz", "o/a", {"exact_match": [1, 0]})
    place.joinpath("stats.json").write_text("{")
    refused(lambda: import_logs("helm", tmp_path), "stats.json")
    path = write_eee_file(tmp_path / "e", [eee_line("a", 1)], [])
    path.with_name("u1.json").write_text(json.dumps({"evaluation_results": [3, {}]}))
    assert means(import_logs("eee", path)) == {"m": 1}


# Further marks and settings --------------------------------------------------------


def lines_of(harness, place):
    "The lines that an import says"
    with pytest.warns(UserWarning) as caught:
        import_logs(harness, place)
    return [str(warning.message) for warning in caught]


def test_a_request_that_failed_is_said(tmp_path):
    place = write_helm_run(tmp_path, "gsm:", "o/m", {"exact_match": [1, 0, 0, 1]})
    states = [
        {
            "instance": {"id": f"id{n}", "input": {"text": f"question {n}"}},
            "result": {"success": n != 1, "completions": [{"text": ""}]},
        }
        for n in range(4)
    ]
    path = place / "scenario_state.json"
    path.write_text(json.dumps({"request_states": states}))
    (line,) = lines_of("helm", tmp_path)
    assert "on 1 of 4 instances the request of o/m failed" in line


def test_a_prefix_of_every_prompt_is_said(tmp_path):
    for model, prefix in (("o/m", "/no_think"), ("o/n", "")):
        stats = {"exact_match": [1, 0]}
        write_helm_run(tmp_path, "gsm:", model, stats, global_prefix=prefix)
    (line,) = lines_of("helm", tmp_path)
    assert "global_prefix of gsm: /no_think (o/m), none (o/n)" in line


@pytest.mark.parametrize("models", [("o/m", "o/n"), ("o/m", "o/m")])
def test_a_system_prompt_that_is_null_is_none(models, tmp_path):
    times = "2026-01-20T03-44-18.458309", "2026-01-21T03-44-18.458309"
    tasks = ("a|0", "a|0") if models[0] != models[1] else ("a|0", "b|0")
    prompts = ("think", None)
    for model, task, time, prompt in zip(models, tasks, times, prompts, strict=True):
        config = {"system_prompt": prompt}
        scores = {task: {"acc": [1.0, 0.0]}}
        write_lighteval(tmp_path, model, scores, time=time, config=config)
    (line,) = lines_of("lighteval", tmp_path)
    assert "system_prompt" in line and "none" in line


def test_pass_at_1_of_a_code_task_is_compared(tmp_path):
    rows = [{"is_correct": n < 2, "correct": None} for n in range(4)]
    more = {"humaneval_pass@1": 75.0}
    write_opencompass(tmp_path, "m", "code", rows, **more)
    scores = import_logs("opencompass", tmp_path, Choices(metric=("is_correct",)))
    assert "reports 75.0 points by humaneval_pass@1" in scores.models["reconciled"]["m"]


@pytest.mark.parametrize("name", ["judge", "eval_limits", "eval_plan", "hf_split"])
def test_another_judge_limit_or_split_is_refused_by_name(name, tmp_path):
    for model, own in (("m", "one"), ("n", "two")):
        judges = [{"model_info": {"name": own, "id": f"o/{own}"}}]
        args = {
            "eval_limits": {"eval_limits": {"message_limit": ord(model)}},
            "eval_plan": {"eval_plan": {"steps": [own]}},
        }.get(name)
        more = {"llm_scoring": {"judges": judges}} if name == "judge" else {}
        result = eee_result("t", 1.0, args=args, **more)
        if name == "hf_split":
            result["source_data"] = {"hf_split": own}
        write_eee_file(tmp_path / model, [eee_line("a", model=model)], [result])
    refused(lambda: import_logs("eee", tmp_path), f"let {name} differ")


def test_another_right_answer_to_one_question_is_said(tmp_path):
    for model, key in (("o/m", "B"), ("o/n", "C")):
        place = write_helm_run(tmp_path, "gsm:", model, {"exact_match": [1, 0]})
        instances = [
            {
                "id": f"id{n}",
                "input": {"text": f"question {n}"},
                "references": [
                    {"output": {"text": "A" if n else key}, "tags": ["correct"]},
                    {"output": {"text": model}, "tags": []},
                ],
            }
            for n in range(2)
        ]
        states = [{"instance": own} for own in instances]
        path = place / "scenario_state.json"
        path.write_text(json.dumps({"request_states": states}))
    (line,) = lines_of("helm", tmp_path)
    assert "right answer of 1 of 2 items is another one" in line and "gsm/id0" in line


def test_an_empty_error_is_none(tmp_path):
    rows = [eee_line("a", 1, error=""), eee_line("b", 0, error=None)]
    write_eee_file(tmp_path, rows, [eee_result("t", 0.5)])
    assert means(import_logs("eee", tmp_path)) == {"m": 0.5}
