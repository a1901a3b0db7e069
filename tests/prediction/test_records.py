"Records: what is refused and how, the files of each schema, the features"

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from benchnb.prediction import records as module
from benchnb.prediction.records import (
    COLUMNS,
    KEY,
    METRICS,
    NUMBERS,
    PARAMS,
    RECORDS,
    RecordFeatures,
    check_records,
    describe_records,
    filter_steps,
    from_bigbench,
    from_lm_eval,
    load_records,
    made_records,
    plot_scaling,
    read_authors_csv,
    read_bigbench,
    record_numbers,
    record_sets,
    size_in_name,
    unit_scores,
)


@pytest.fixture
def made():
    return made_records()


def with_value(column, value, row=3):
    "Made-up records with one wrong cell"
    frame = made_records().astype({column: object})
    frame.loc[row, column] = value
    return frame


def one_line(error):
    "The message of an error, which must be one line"
    assert "\n" not in str(error.value)
    return str(error.value)


# the table

CELLS = {
    "family": (None, "row 3 has no family: name it"),
    "task": ("  ", "row 3 has no task"),
    "metric": ("vibes", "unknown metric 'vibes'"),
    "shots": (1.5, "row 3 .*shots must be 0, 1, 2, ..., got 1.5"),
    "score": (np.nan, "row 3 .*has no score: drop"),
    "total_params": (0, "row 3 .*total_params must be above 0; unknown is NaN"),
}


@pytest.mark.parametrize("column", CELLS)
def test_a_wrong_cell_is_refused_by_name(column):
    value, words = CELLS[column]
    with pytest.raises(ValueError, match=words) as error:
        check_records(with_value(column, value))
    one_line(error)


@pytest.mark.parametrize("shots", [-1, np.inf, np.nan])
def test_shots_are_whole_numbers(shots):
    with pytest.raises(ValueError, match="shots must be 0, 1, 2"):
        check_records(with_value("shots", shots))


@pytest.mark.parametrize("score", [-0.2, 1.3, np.inf, 250])
def test_a_score_outside_is_refused(score):
    with pytest.raises(ValueError, match=r"row 3 \(A-0.1b, t1\) has score") as error:
        check_records(with_value("score", score))
    one_line(error)


@pytest.mark.parametrize("column", ["score", "shots", "total_params"])
def test_words_for_numbers_are_refused(column):
    with pytest.raises(ValueError, match=f"column '{column}' holds no numbers"):
        check_records(with_value(column, "many"))


def test_two_shots_as_a_number_in_words():
    assert check_records(with_value("shots", "7"))["shots"][3] == 7


def test_percent_is_refused_or_converted(made):
    percent = made.assign(score=100 * made["score"])
    with pytest.raises(ValueError, match="as if on 0-100; .*pass scale='percent'"):
        check_records(percent)
    again = check_records(percent, scale="percent")
    np.testing.assert_allclose(again["score"], made["score"], atol=1e-12)
    with pytest.raises(ValueError, match="scale is unit, percent or metric"):
        check_records(made, scale="per mille")


def test_each_metric_has_its_range(made):
    mixed = made.assign(metric=np.where(made["shots"] == 0, "rougeLsum", "acc"))
    mixed["score"] *= np.where(made["shots"] == 0, 100, 1)
    again = check_records(mixed, scale="metric")
    np.testing.assert_allclose(again["score"], made["score"], atol=1e-12)


@pytest.mark.parametrize("scale, metric", [("percent", "acc"), ("metric", "rouge1")])
def test_unit_scores_are_not_divided(made, scale, metric):
    named = made.assign(metric=metric)
    with pytest.raises(
        ValueError, match=f"of '{metric}' is above 1.*scale='unit'"
    ) as e:
        check_records(named, scale)
    one_line(e)
    both = pd.concat([named, made.assign(metric="f1", score=100 * made["score"])])
    with pytest.raises(ValueError, match=f"of '{metric}' is above 1"):
        check_records(both, scale, metrics=METRICS | {"f1": (0, 100)})
    for small in (named[:2], named.assign(score=0.0)):  # too few to tell; nobody knows
        found = check_records(small, scale)["score"]
        np.testing.assert_allclose(found, small["score"] / 100)
    one_above = named.assign(score=named["score"].where(named.index > 0, 1.5))
    assert check_records(one_above, scale)["score"].max() == 0.015


def test_a_new_metric_needs_a_range(made):
    named = made.assign(metric="logprob", score=10 * made["score"] - 10)
    metrics = METRICS | {"logprob": (-10, 0)}
    again = check_records(named, scale="metric", metrics=metrics)
    np.testing.assert_allclose(again["score"], made["score"], atol=1e-12)
    assert "logprob" not in METRICS


@pytest.mark.parametrize("column", sorted({*COLUMNS} - {"subtask", *PARAMS[1:]}))
def test_a_missing_column_is_refused(made, column):
    with pytest.raises(ValueError, match=f"no column '{column}'"):
        check_records(made.drop(columns=column).drop(columns="subtask"))


def test_what_may_be_missing_is_filled(made):
    short = made.drop(columns=["subtask", *PARAMS[1:]]).assign(note="x")
    pd.testing.assert_frame_equal(check_records(short), made)


def test_no_table_and_no_rows_are_refused(made):
    with pytest.raises(TypeError, match="pandas DataFrame, got list"):
        check_records([1, 2])
    with pytest.raises(ValueError, match="no records"):
        check_records(made[:0])


def test_the_given_table_is_not_changed(made):
    percent = made.assign(score=100 * made["score"]).sample(frac=1, random_state=0)
    before = percent.copy()
    found = check_records(percent, "percent")
    pd.testing.assert_frame_equal(percent, before)
    assert found.index.tolist() == list(range(len(made)))


def test_duplicates_are_refused_or_merged(made):
    twice = pd.concat([made, made[5:7].assign(score=[0.9, 0.9])])
    with pytest.raises(
        ValueError, match="2 duplicated records, first row 288"
    ) as error:
        check_records(twice)
    one_line(error)
    first = check_records(twice, duplicates="first")
    pd.testing.assert_frame_equal(first, made)
    mean = check_records(twice, duplicates="mean")
    expected = made["score"].copy()
    expected[5:7] = (expected[5:7] + 0.9) / 2
    np.testing.assert_allclose(mean["score"], expected, atol=1e-12)
    with pytest.raises(ValueError, match="duplicates is refuse, first or mean"):
        check_records(made, duplicates="last")


def test_other_shots_metric_or_family_is_no_duplicate(made):
    one = made[:1]
    others = [one, one.assign(shots=9), one.assign(metric="f1"), one.assign(family="Z")]
    assert len(check_records(pd.concat(others))) == 4


def test_parts_of_one_name_in_two_tasks_are_no_duplicates(made):
    two = pd.concat([made[:3].assign(subtask="law"), made[:3].assign(subtask="law")])
    two["task"] = ["mmlu"] * 3 + ["agieval"] * 3
    for how in ("refuse", "first", "mean"):
        found = check_records(two, duplicates=how)
        assert found["task"].value_counts().to_dict() == {"mmlu": 3, "agieval": 3}
    assert KEY[2] == "task"


def test_blanks_around_names_do_not_count(made):
    spoilt = made.assign(family=made["family"] + " ", metric=" acc\t")
    spoilt.loc[::2, "family"] = made["family"][::2]
    pd.testing.assert_frame_equal(check_records(spoilt), made)
    twice = pd.concat([made, made[:1].assign(family=" A")])
    with pytest.raises(ValueError, match="1 duplicated records"):
        check_records(twice)


def test_unknown_sizes_as_told(made):
    holes = made.assign(total_params=made["total_params"].where(made["family"] != "B"))
    with pytest.raises(
        ValueError, match="no total_params for model 'B-0.11b'"
    ) as error:
        check_records(holes)
    one_line(error)
    kept = check_records(holes, unknown_size="keep")
    assert kept["total_params"].isna().sum() == (made["family"] == "B").sum()
    assert "B" not in set(check_records(holes, unknown_size="drop")["family"])
    nothing = made.assign(total_params=np.nan)
    with pytest.raises(ValueError, match="no model has a known size"):
        check_records(nothing, unknown_size="drop")
    with pytest.raises(ValueError, match="unknown_size is refuse, keep or drop"):
        check_records(made, unknown_size="zero")


def test_a_model_with_two_sizes_is_refused():
    with pytest.raises(ValueError, match="A/A-0.1b has two sizes"):
        check_records(with_value("total_params", 7e9))
    half = with_value("total_params", np.nan)
    with pytest.raises(ValueError, match="A/A-0.1b has two sizes"):
        check_records(half, unknown_size="keep")


def test_scores_of_an_unknown_scale():
    with pytest.raises(ValueError, match="unknown metric 'elo': drop its records"):
        unit_scores([1200.0], ["elo"], "metric")


# features


def test_features_are_those_of_scikit_learn(made):
    "Appendix B by OneHotEncoder and StandardScaler, as in the authors' code"
    train = made.sample(frac=0.6, random_state=1)
    found = RecordFeatures().fit(train)
    named = made.assign(model=made["family"] + "/" + made["model"])
    names = ["task", "subtask", "family", "model", "metric"]
    encoder = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    encoder.fit(named.loc[train.index, names])
    scaler = StandardScaler().fit(record_numbers(train))
    parts = [encoder.transform(named[names]), scaler.transform(record_numbers(made))]
    np.testing.assert_allclose(found.transform(made), np.hstack(parts), atol=1e-5)
    assert found.transform(made).dtype == np.float32


def test_feature_names_fit_the_columns(made):
    features = RecordFeatures().fit(made)
    names = features.get_feature_names_out().tolist()
    table = pd.DataFrame(features.transform(made), columns=names)
    assert names[-7:] == NUMBERS and len(set(names)) == len(names)
    assert (table["family=B"] == (made["family"] == "B")).all()
    assert (table["model=B/B-0.11b"] == (made["model"] == "B-0.11b")).all()


def test_features_can_be_chosen_cloned_and_piped(made):
    from sklearn.linear_model import Ridge

    small = clone(RecordFeatures(one_hot=("task",), numbers=False))
    assert small.fit_transform(made).shape == (len(made), 8)
    assert len(small.get_feature_names_out()) == 8
    line = make_pipeline(RecordFeatures(), Ridge()).fit(made, made["score"])
    assert line.score(made, made["score"]) > 0.7
    with pytest.raises(ValueError, match="one_hot takes names from"):
        RecordFeatures(one_hot=["score"]).fit(made)
    with pytest.raises(ValueError, match="no features: name columns in one_hot") as e:
        RecordFeatures(one_hot=(), numbers=False).fit(made)
    one_line(e)
    assert RecordFeatures(one_hot=()).fit_transform(made).shape == (len(made), 7)


def test_same_model_name_in_two_families():
    two = made_records().assign(model=lambda t: t["model"].str[2:])
    names = RecordFeatures().fit(two).get_feature_names_out()
    assert {"model=A/0.1b", "model=B/0.11b"} <= set(names)


def test_features_do_not_see_the_score_or_the_order(made):
    features = RecordFeatures().fit(made)
    mixed = made.sample(frac=1, random_state=0)
    other = features.transform(mixed.assign(score=np.nan).iloc[:, ::-1])
    np.testing.assert_array_equal(other, features.transform(made)[mixed.index])


def test_unknown_names_and_sizes_are_zeros(made):
    features = RecordFeatures().fit(made)
    new = made[:1].assign(task="new", subtask="new", family="new", metric="f1")
    row = features.transform(
        new.assign(total_params=np.nan, shots=made["shots"].mean())
    )
    np.testing.assert_allclose(row, 0, atol=1e-6)


def test_all_sizes_unknown_makes_no_nan(made):
    nothing = made.assign(total_params=np.nan)
    found = RecordFeatures().fit_transform(nothing)
    assert np.isfinite(found).all() and not found[:, -7:-1].any()


def test_other_counts_stand_in_for_nothing(made):
    counts = made.assign(non_embedding_params=made["total_params"] / 2)
    numbers = record_numbers(counts)
    np.testing.assert_allclose(numbers[:, 1], numbers[:, 0] / 2)
    np.testing.assert_array_equal(numbers[:, 2], numbers[:, 0])
    np.testing.assert_allclose(np.exp(numbers[:, 3:6]), numbers[:, :3])


def test_features_refuse_what_is_no_table_of_records(made):
    with pytest.raises(ValueError, match="records need a column 'family'"):
        RecordFeatures().fit(made.drop(columns="family"))
    with pytest.raises(ValueError, match="records need a column"):
        RecordFeatures().fit(np.zeros((3, 4)))
    from sklearn.exceptions import NotFittedError

    with pytest.raises(NotFittedError):
        RecordFeatures().transform(made)


# BIG-bench's JSON files

BIG_FAMILIES = ["BIG-G T=0", "BIG-G T=1", "BIG-G sparse", "GPT", "PaLM", "Gopher"]


def score_file(family, model, size, entries):
    "A score file as BIG-bench writes them; entries: (part, shots, metric, score)"
    scores = [
        {
            "subtask_description": part,
            "number_of_shots": shots,
            "preferred_score": metric,
            "score_dict": {metric: score, "log_likelihood": -3.0},
        }
        for part, shots, metric, score in entries
    ]
    counts = {
        "total_params": size,
        "non_embedding_params": 0.9 * size,
        "flop_matched_non_embedding_params": 0,  # BIG-bench's "unknown"
    }
    model = {"model_family": family, "model_name": model, **counts}
    return {"model": model, "scores": scores}


def write_bigbench(folder, families=(*BIG_FAMILIES, "T5")):
    "A small BIG-bench: a task with two parts, one of ROUGE, and one per filter"
    tasks = {
        "sums": [
            ("sums:one", 0, "exact_str_match", 0.5),
            ("sums:one", 2, "exact_str_match", 0.6),
            ("sums:two", 0, "exact_str_match", 0.1),
            ("sums", 0, "exact_str_match", 0.3),
        ],
        "retell": [("retell", 1, "rougeLsum", 42.0)],
        "dialogue": [("dialogue", 0, "exact_str_match", 0.9)],
        "zeros": [("zeros", 0, "exact_str_match", 0.0)],
        "tiny": [("tiny", 0, "multiple_choice_grade", 0.4)],
        "odd": [("odd", 0, "bleu", 20.0)],
    }
    for task, entries in tasks.items():
        results = folder / task / "results"
        results.mkdir(parents=True)
        for number, family in enumerate(families):
            for size in (1e9, 8e9):
                found = score_file(family, f"{size / 1e9:.0f}b", size, entries)
                path = results / f"scores_{number}_{size:.0f}.json"
                path.write_text(json.dumps(found))
        (results / "plot.json").write_text("[1, 2]")  # no score file
    (folder / "dialogue" / "task.py").touch()
    for part, count in {"sums/one": 200, "sums/two": 101, "tiny": 100}.items():
        (folder / part).mkdir(exist_ok=True)
        examples = json.dumps({"examples": [{"input": "", "target": ""}] * count})
        (folder / part / "task.json").write_text(examples)


def test_six_filters_of_json_files(tmp_path):
    write_bigbench(tmp_path)
    steps = filter_steps(read_bigbench(tmp_path))
    models, entries = 14, 9
    counts = [2 * models * entries, 2 * models * (entries - 1), 2 * 12 * (entries - 1)]
    counts += [2 * 12 * (entries - 2), 12 * 6, 12 * 5, 12 * 4]
    assert [len(left) for _, left in steps] == counts
    found = from_bigbench(read_bigbench(tmp_path))
    assert set(found["subtask"]) == {"sums:one", "sums:two", "retell"}
    assert set(found["family"]) == set(BIG_FAMILIES)
    rouge = found[found["metric"] == "rougeLsum"]
    np.testing.assert_allclose(rouge["score"], 0.42)
    assert found["flop_matched_params"].isna().all()
    np.testing.assert_allclose(
        found["non_embedding_params"], 0.9 * found["total_params"]
    )


def test_bigbench_that_is_not_there_or_damaged(tmp_path):
    with pytest.raises(FileNotFoundError, match="no score files in"):
        read_bigbench(tmp_path)
    write_bigbench(tmp_path)
    path = next(tmp_path.glob("sums/results/scores*.json"))
    path.write_text(path.read_text()[:50])
    with pytest.raises(ValueError, match="is no readable JSON") as error:
        read_bigbench(tmp_path)
    one_line(error)


# the authors' CSV

AUTHORS = (
    "task,subtask,model_family,model_name,non_embedding_params,"
    "flop_matched_non_embedding_params,total_params,n_shot,metric_name,"
    "is_preferred_metric,score"
)


def write_authors_csv(path):
    "Two families of two sizes on three parts, with a metric that is not preferred"
    lines = [AUTHORS]
    for family, sizes in {"PaLM": ["8b", "64b"], "GPT": ["3B", "200B"]}.items():
        for size in sizes:
            n = float(size[:-1]) * 1e9
            for part, shots in [("sums:a", 0), ("sums:a", 1), ("sums:b", 0)]:
                head = f"sums,{part},{family},{size},{0.9 * n},{0.8 * n},{n},{shots}"
                lines.append(f"{head},exact_str_match,1,0.25")
                lines.append(f"{head},bleu,0,31.0")
            head = f"gem,gem,{family},{size},{0.9 * n},{0.8 * n},{n},0"
            lines.append(f"{head},rougeLsum,1,31.0")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines))


@pytest.mark.parametrize("name", ["all.csv", "filtered_v2.csv"])
def test_bigbench_by_name_from_the_authors_csv(tmp_path, name):
    write_authors_csv(tmp_path / "bigbench" / name)
    found = load_records("bigbench", tmp_path)
    assert len(found) == 4 * 4 and set(found["task"]) == {"sums", "gem"}
    np.testing.assert_allclose(found.loc[found["task"] == "gem", "score"], 0.31)
    ratio = found["flop_matched_params"] / found["total_params"]
    np.testing.assert_allclose(ratio, 0.8)
    assert record_sets(tmp_path).loc["bigbench", "records"] == 16


def test_bigbench_by_name_from_json_files(tmp_path, monkeypatch):
    write_bigbench(tmp_path / "bigbench" / "benchmark_tasks")
    monkeypatch.setenv("BENCHNB_DATA", str(tmp_path))
    assert len(load_records("bigbench")) == 48


def test_the_unnamed_column_of_the_splits_is_no_harm(tmp_path):
    path = tmp_path / "train.csv"
    write_authors_csv(path)
    pd.read_csv(path).drop(columns="is_preferred_metric")[::2].to_csv(path)
    raw = read_authors_csv(path)
    assert raw["preferred"].all() and list(raw)[: len(COLUMNS)] == COLUMNS


@pytest.mark.parametrize("theirs", ["n_shot", "model_family", "score"])
def test_another_csv_is_refused_in_the_authors_words(tmp_path, theirs):
    path = tmp_path / "all.csv"
    write_authors_csv(path)
    pd.read_csv(path).drop(columns=theirs).to_csv(path, index=False)
    with pytest.raises(ValueError, match=f"has no column '{theirs}'") as error:
        read_authors_csv(path)
    one_line(error)


# lm-evaluation-harness


def harness_run(**changes):
    "A results file of the harness"
    run = {
        "results": {
            "gsm8k": {
                "alias": "gsm8k",
                "exact_match,strict-match": 0.2,
                "exact_match,flexible-extract": 0.3,
                "exact_match_stderr,strict-match": 0.01,
            },
            "mmlu": {"acc,none": 0.5},
            "mmlu_art": {"acc,none": 0.6, "acc_norm,none": 0.7},
            "wikitext": {"word_perplexity,none": 9.9},
        },
        "group_subtasks": {"mmlu": ["mmlu_art"], "gsm8k": []},
        "n-shot": {"gsm8k": 8, "mmlu_art": 5},
        "config": {
            "model_args": {"pretrained": "lab/Qwen2-x"},
            "model_num_parameters": 7_600_000_000,
        },
    }
    return run | changes


def test_a_run_of_the_harness(tmp_path):
    path = tmp_path / "results.json"
    path.write_text(json.dumps(harness_run()))
    found = from_lm_eval(path)
    assert found["subtask"].tolist() == ["gsm8k", "mmlu_art"]
    assert found["task"].tolist() == ["gsm8k", "mmlu"]
    assert found["shots"].tolist() == [8, 5]
    assert found["score"].tolist() == [0.3, 0.6]  # flexible-extract: first by name
    assert found["family"].unique().tolist() == ["qwen"]
    assert found["total_params"].unique().tolist() == [7.6e9]
    assert from_lm_eval(path, prefer=["acc_norm"])["score"].tolist() == [0.7]


def test_a_run_may_be_told_more():
    found = from_lm_eval(harness_run(config={}), "Owl", "owl-1b", 1e9)
    assert found[["family", "model"]].drop_duplicates().to_numpy().tolist() == [
        ["Owl", "owl-1b"]
    ]
    with pytest.raises(ValueError, match="does not name its model: pass model="):
        from_lm_eval(harness_run(config={}))
    with pytest.raises(ValueError, match="no total_params for model 'lab/x'"):
        from_lm_eval(harness_run(config={}), "Owl", "lab/x")


@pytest.mark.parametrize("found", [{}, {"results": []}, [1]])
def test_a_file_without_results_is_refused(found):
    with pytest.raises(ValueError, match="no results in the file"):
        from_lm_eval(found)


def test_a_run_without_usable_metrics_is_refused():
    run = harness_run(results={"wikitext": {"word_perplexity,none": 9.9}})
    with pytest.raises(ValueError, match="score by acc, exact_match, .*prefer=") as e:
        from_lm_eval(run)
    one_line(e)
    with pytest.raises(ValueError, match="score by mc1: name one"):
        from_lm_eval(harness_run(), prefer="mc1")


def test_a_missing_score_of_a_run_is_passed_over():
    results = {
        "a": {"acc,none": float("nan"), "f1,none": 0.4},
        "b": {"exact_match,none": float("nan"), "exact_match,strict": 0.3},
        "c": {"acc,none": float("nan")},
        "d": {"acc,none": 0.5},
    }
    found = from_lm_eval(harness_run(results=results))
    assert found["task"].tolist() == ["a", "b", "d"]
    assert found["score"].tolist() == [0.4, 0.3, 0.5]
    one_pass = from_lm_eval(harness_run(results=results), prefer=iter(["f1", "acc"]))
    assert one_pass["task"].tolist() == ["a", "d"]


def test_what_a_run_complains_of_can_be_settled():
    run = {"a": {"acc": 0.5}, "b": {"acc": 0.2}, "c": {"acc": 0.4}, "d": {"f1": 61.0}}
    run = {"results": run, "config": {"model_args": "pretrained=lab/Mixtral-8x7B"}}
    with pytest.raises(ValueError, match="unknown_size='keep'"):
        from_lm_eval(run | {"results": {"a": {"acc": 0.5}}})
    with pytest.raises(ValueError, match=r"'f1': \(0, 100\) in metrics"):
        from_lm_eval(run, unknown_size="keep")
    with pytest.raises(ValueError, match="none of the 3 scores of 'acc'"):
        from_lm_eval(run, unknown_size="keep", scale="percent")
    told = dict(scale="metric", metrics=METRICS | {"f1": (0, 100)})
    found = from_lm_eval(run, unknown_size="keep", **told)
    np.testing.assert_allclose(found["score"], [0.5, 0.2, 0.4, 0.61])
    assert from_lm_eval(run, unknown_size="keep", **told)["total_params"].isna().all()


SIZES = {
    "pythia-70m": 7e7,
    "opt-6.7b": 6.7e9,
    "bloom-1b7": 1.7e9,
    "llama-30B": 3e10,
    "LLama-2-70B": 7e10,
    "Llama 3 8B": 8e9,
    "J1-Large v1 (7.5B)": 7.5e9,
    "Mixtral (8x7B 32K seqlen)": np.nan,
    "gpt-4": np.nan,
    "text-davinci-002": np.nan,
    "olmo-1b_7": np.nan,
    "stablelm-2-1_6b": np.nan,
    "llama_7b_chat": 7e9,
    "opt-6.7b_8bit": 6.7e9,
}


@pytest.mark.parametrize("name", SIZES)
def test_size_in_a_name(name):
    np.testing.assert_allclose(size_in_name(name), SIZES[name])


# the named tables, from small files of each schema


def write_bbh(path):
    "Two models, two tasks and their mean, two prompts, two ways to read answers"
    rows = [
        [model, kind, task, 3, how, 0.4, family, size]
        for model, family, size in [("lab/owl-1b", "Owl", 1.1), ("lab/fox", "Fox", 7)]
        for kind in ("bbh_fewshot", "bbh_cot_fewshot")
        for task in ("navigate", "snarks", "overall")
        for how in ("flexible-extract", "strict-match")
    ]
    names = ["model", "kind", "task", "shots", "filter", "score", "family", "size_B"]
    pd.DataFrame(rows, columns=names).to_csv(path, index=False)


def write_harness(path):
    "Pythia with checkpoints and another batch size; LLaMA in the folder beside it"
    rows = []
    for family, folder, last in [
        ("pythia-v0", "pythia-1.4b", 71500),
        ("pythia-v1", "pythia-1.4b", 143000),
        ("pythia-v1", "pythia-1b-bf16", 143000),
        ("pythia-v1", "pythia-70m-deduped", 143000),
        ("pythia-v1", "pythia-1b-0.5MtokBS", 572000),
    ]:
        for step in (1000, last):
            for shots, setting in [(0, "zero-shot"), (5, "five-shot")]:
                for task in ("hendrycksTest-art", "blimp_x", "piqa"):
                    score = 0.25 if step == 1000 else 0.5
                    rows.append([family, folder, step, setting, task, shots, score, ""])
    rows.append(["opt", "", -1, "", "piqa", 0, 0.6, "opt-1.3b.json"])
    names = "family model_dir step setting task num_fewshot score file".split()
    frame = pd.DataFrame(rows, columns=names).assign(metric="acc")
    worse = frame.assign(metric="acc_norm")
    pd.concat([frame, worse]).to_parquet(path)
    rows = [
        ["llama", "llama-7B", "piqa", "acc", 0.8, 0.0],
        ["llama", "llama-7B", "piqa", "acc", 0.7, 0.0],  # told twice
        ["llama", "llama-7B", "hendrycksTest-art", "acc", 0.4, 5.0],
        ["llama", "llama-7B", "triviaqa", "acc", 0.4, 5.0],  # not in Pythia's
        ["opt", "opt-1.3b", "piqa", "acc", 0.1, 0.0],  # there already
        ["llama", "llama-7B", "piqa", "acc", 0.8, 8.0],
    ]
    names = "family model task metric score num_fewshot".split()
    more = path.parents[1] / "lm-eval-harness-results"
    more.mkdir()
    pd.DataFrame(rows, columns=names).to_parquet(more / "results_long.parquet")


def write_openllm(path):
    "Four models: one fine, one without a size, one without a family, one with holes"
    rows = [
        ["lab/llama-7b", 50, 60, 70, 40, 80, 0, "LlamaForCausalLM", 7],
        ["lab/llama-x", 50, 60, 70, 40, 80, 10, "LlamaForCausalLM", -1],
        ["lab/who", 50, 60, 70, 40, 80, 10, "error", 7],
        ["lab/what", 50, None, 70, 0, 80, 10, "PhiForCausalLM", 3],
    ]
    names = [*"name arc hellaswag mmlu truthfulqa winogrande gsm8k arch size".split()]
    pd.DataFrame(rows, columns=names).to_csv(path, index=False)


def write_helm(path):
    "Three metrics, of which perplexity has no range; a size in one name"
    frame = pd.DataFrame(
        {
            "Metric": ["MMLU - EM", "QuAC - F1", "The Pile - BPB"],
            "GPT-J (6B)": [0.3, 0.4, 0.9],
            "text-davinci-002": ["0.5", "-", "0.8"],
        }
    )
    frame.to_csv(path, index=False)


def write_papers(path):
    "Two models, of which one is described; three ways to write shots"
    frame = pd.DataFrame({"BoolQ(0-shot)": [60, 70], "MMLU(5-shot)": [30, None]})
    frame["LogiQA"] = ["20", "x"]
    frame.index = ["LLama-2-7B", "Luminous Base-13B"]
    frame.to_csv(path)
    facts = {"Model Name": ["LLama-2-7B"], "family": ["LLama-2"]}
    facts["Parameter Size(M)"] = [7000]
    pd.DataFrame(facts).to_csv(path.parent / "cpp_model_feature.csv", index=False)


def write_benchpress(path):
    "Two models; a benchmark in Elo is left out"
    frame = pd.DataFrame(
        {"id": ["a-1", "b-2"], "gpqa": [50, None], "elo": [1200, 1300]}
    )
    frame.to_csv(path, index=False)
    facts = pd.DataFrame({"id": ["a-1", "b-2"], "provider": ["A", "B"]})
    facts.to_csv(path.parent / "benchpress_models.csv", index=False)


SMALL = {  # name: writer, records, families
    "bbh": (write_bbh, 8, {"Owl", "Fox"}),
    "harness": (
        write_harness,
        4 * 6 + 1 + 2,
        {"pythia-v0", "pythia-v1", "pythia-v1-deduped", "opt", "llama"},
    ),
    "openllm-v1": (write_openllm, 6 + 4, {"llama", "phi"}),
    "cpp-helm": (write_helm, 3, {"gpt-j", "gpt-3"}),
    "cpp-papers": (write_papers, 4, {"llama-2", "luminous"}),
    "benchpress": (write_benchpress, 1, {"A"}),
}


@pytest.fixture(params=SMALL)
def small(request, tmp_path):
    "A folder of data sets with one small table: (folder, name, its path)"
    path = tmp_path / RECORDS[request.param].files[0]
    path.parent.mkdir()
    SMALL[request.param][0](path)
    return tmp_path, request.param, path


def test_small_file_of_each_schema(small):
    folder, name, _ = small
    _, count, families = SMALL[name]
    found = load_records(name, folder)
    assert (len(found), set(found["family"])) == (count, families)
    again = check_records(found, unknown_size="keep")
    pd.testing.assert_frame_equal(again, found)
    assert record_sets(folder).index.tolist() == [name]
    assert np.isfinite(RecordFeatures().fit_transform(found)).all()


def test_damaged_files_are_named(small):
    folder, name, path = small
    path.write_bytes(b"\x00\x01 no table")
    with pytest.raises((ValueError, FileNotFoundError), match=path.name) as error:
        load_records(name, folder)
    one_line(error)


def test_last_checkpoint_of_each_version(tmp_path):
    path = tmp_path / RECORDS["harness"].files[0]
    path.parent.mkdir()
    write_harness(path)
    found = load_records("harness", tmp_path)
    pythia = found[found["family"].str.startswith("pythia")]
    assert set(pythia["score"]) == {0.5}
    assert set(pythia["model"]) == {"pythia-1.4b", "pythia-1b", "pythia-70m"}
    assert set(found["task"]) == {"mmlu", "blimp", "piqa"}
    told = found[(found["family"] == "llama") & (found["shots"] == 0)]
    assert told["score"].tolist() == [0.8]


def test_records_that_are_not_there(tmp_path, monkeypatch):
    monkeypatch.delenv("BENCHNB_DATA", raising=False)
    with pytest.raises(ValueError, match="no records 'mmlu': there are bigbench, bbh"):
        load_records("mmlu")
    for folder in (None, tmp_path):
        with pytest.raises(
            FileNotFoundError, match="bbh is not here: set BENCHNB_DATA"
        ):
            load_records("bbh", folder)
        assert record_sets(folder).empty


# made-up records and the picture


def test_made_records_follow_the_seed_and_the_law():
    small = made_records(3, 4, 5, [0, 2], noise=0, seed=3)
    pd.testing.assert_frame_equal(small, made_records(3, 4, 5, [0, 2], 0, 3))
    assert not small.equals(made_records(3, 4, 5, [0, 2], 0, 4))
    found = describe_records(small)
    assert [found[k] for k in ("records", "families", "models")] == [120, 3, 12]
    by_size = small.sort_values("total_params").groupby(["family", "task", "shots"])
    assert by_size["score"].apply(lambda s: s.is_monotonic_increasing).all()


def test_many_made_families_have_names():
    many = made_records(60, 1, 1, [0])
    names = many["family"].tolist()
    assert len(set(names)) == 60 and all(name.isalpha() for name in names)
    assert names[25:28] == ["Z", "AA", "AB"]


@pytest.mark.parametrize("column", ["family", "task", "shots", "total_params"])
def test_a_description_needs_its_columns(made, column):
    with pytest.raises(ValueError, match=f"records need a column '{column}'") as e:
        describe_records(made.drop(columns=column))
    one_line(e)


def test_picture_has_a_panel_per_part(made):
    import matplotlib.pyplot as plt

    figure = plot_scaling(made, "AB", ["t1", "t3"])
    assert [ax.get_title() for ax in figure.axes] == ["t1", "t3"]
    drawn = [sum(len(line.get_xdata()) > 0 for line in ax.lines) for ax in figure.axes]
    assert drawn == [2, 2]
    plt.close(figure)


def test_every_name_is_exported():
    assert {"check_records", "RecordFeatures", "load_records"} <= set(module.__all__)
