"""Plain tables: every shape and format gives the same scores, whole or in pieces, and
what is wrong in a file is one line."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from helpers.logs import refused, right_or_wrong

from benchnb.data.files import AmbiguousFile
from benchnb.data.scores import Scores
from benchnb.data.sources import as_scores, load, load_table, read_tables
from benchnb.harnesses.harness import import_logs
from benchnb.harnesses.logs import Choices

# tables by name or path


LONG = pd.DataFrame(
    {
        "model": ["NA", "NA", "007", "007"],
        "item": ["1", "02", "1", "02"],
        "score": [1, 0.5, 0, np.nan],
        "task": ["a", "b", "a", "b"],
        "n_params": [7e9, 7e9, 1e9, 1e9],
    }
)


@pytest.mark.parametrize("kind", ["csv", "csv.gz", "jsonl", "long.parquet", "parquet"])
def test_load_table_from_files(tmp_path, kind):
    path = tmp_path / f"table.{kind}"
    if kind.startswith("csv"):
        LONG.to_csv(path, index=False)
    elif kind == "jsonl":
        LONG.to_json(path, orient="records", lines=True)
    elif kind == "long.parquet":
        LONG.to_parquet(path)
    else:
        Scores.from_long(LONG).to_parquet(path)
    table = load_table(str(path))
    assert list(table.models.index) == ["NA", "007"]
    assert list(table.items.index) == ["1", "02"]
    assert list(table.items["task"]) == ["a", "b"]
    np.testing.assert_array_equal(table.values, [[1, 0.5], [0, np.nan]])
    assert list(table.models["n_params"]) == [7e9, 1e9]


def test_load_table_names_what_is_wrong(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    refused(lambda: load_table("."), "'.' is a folder, not a table")
    wanted = "no file or data set 'nowhere'", "data_sets()"
    refused(lambda: load_table("nowhere"), *wanted)
    bad = {
        "empty.csv": "",
        "words.jsonl": "model item score\n",
        "list.jsonl": "[1, 2]\n",
    }
    bad |= {"uneven.csv": "model,item,score\na,b,1\na,b,1,1,1\n", "empty.parquet": ""}
    bad |= {"foreign.csv": "name,model_name,correct\na,1,b\n", "picture.png": "\x89PNG"}
    bad["latin.csv"] = "model,item,score\n\xe9\xff,b,1\n"
    bad["a.tsv"] = "model,item,score\nm,q1,1\n"
    for name, content in bad.items():
        Path(name).write_text(content, encoding="latin-1")
        refused(lambda name=name: load_table(name), name)
    LONG.to_parquet("unnamed")
    assert load_table("unnamed").shape == (2, 2)


def test_a_name_comes_before_a_file_of_that_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Scores(np.ones((2, 2))).to_parquet("ifeval")
    assert load_table("ifeval").shape != (2, 2)
    assert load_table("./ifeval").shape == (2, 2)


def test_tables_long_and_wide(tmp_path):
    values = right_or_wrong(4, 5).astype(float)
    values[1, 2] = np.nan
    names, items = [f"m{n}" for n in range(4)], [f"q{n}" for n in range(5)]
    wide = pd.DataFrame(values, pd.Index(names, name="model"), items)
    long = wide.reset_index().melt("model", var_name="item", value_name="score")
    turned = wide.T.rename_axis("item").reset_index()
    wide = wide.reset_index()
    long.to_csv(tmp_path / "long.csv", index=False)
    long.to_json(tmp_path / "long.jsonl", orient="records", lines=True)
    long.to_parquet(tmp_path / "long.parquet")
    wide.to_csv(tmp_path / "wide.tsv", index=False, sep="\t")
    wide.to_csv(tmp_path / "wide.csv.gz", index=False)
    wide.set_index("model").to_parquet(tmp_path / "wide.parquet")
    turned.to_csv(tmp_path / "turned.csv", index=False)
    for path in sorted(tmp_path.iterdir()):
        found = read_tables([path])
        frame = pd.DataFrame(found.values, found.models.index, found.items.index)
        np.testing.assert_array_equal(frame.loc[names, items], values, path.name)
    assert read_tables(sorted(tmp_path.iterdir())).shape == (4, 5)  # all say the same


def test_tables_that_say_nonsense(tmp_path):
    path = tmp_path / "a.csv"
    for text, words in {
        "": ("a.csv",),
        "q1,q2\n1,0\n": ("no column of names",),
        "model,score\nm,1\n": ("no column 'item'", "found 'model', 'score'"),
        "model,item,score\nm,q1,62\n": ("62", "divide by 100"),
        "model,size,q1\nm,7,1\nn,70,0\n": ("size", "leave it out if it is no item"),
        "model,item,correct\n1,2,1\n": ("no column 'score'", "'correct'"),
        "model,question,correct\na,1,1\na,2,0\nb,1,1\nb,2,1\n": ("no column 'score'",),
        "item,who,right\n1,2,1\n1,3,0\n2,2,1\n2,3,0\n": ("no column 'score'",),
        "model,item,score\nm,q1,1\nm,q1,0\n": ("two scores", "repeated="),
        "model,item,score\nm,q1,1\nn,q2,bad\n": ("'bad'", "'n'", "'q2'", "a.csv"),
        "model,q1\nm,1\n,0\n": ("row 2", "no model"),
    }.items():
        path.write_text(text)
        refused(lambda: read_tables([path]), *words)


def test_counts_of_runs_come_from_every_kind_of_long_table(tmp_path):
    rng = np.random.default_rng(0)
    runs = pd.DataFrame(
        [(m, i) for m in "ab" for i in "xyz" for _ in range(rng.integers(1, 6))],
        columns=["model", "item"],
    )
    runs["score"] = rng.integers(0, 2, len(runs))
    counts = runs.groupby(["model", "item"])["score"].agg(["sum", "size"])
    counts = counts.set_axis(["successes", "trials"], axis=1).reset_index()
    runs.to_csv(tmp_path / "runs.csv", index=False)
    counts.to_csv(tmp_path / "counts.csv", index=False)
    counts.to_json(tmp_path / "counts.jsonl", orient="records", lines=True)
    counts.to_parquet(tmp_path / "counts.parquet")
    score = counts["successes"] / counts["trials"]
    shares = counts.drop(columns="successes").assign(score=score)
    found = [Scores.from_long(counts), Scores.from_long(shares)]
    names = ("counts.csv", "counts.jsonl", "counts.parquet")
    found += [load_table(tmp_path / name) for name in names]
    found += [read_tables([tmp_path / "runs.csv"], "trials")]
    wanted = counts["trials"].to_numpy().reshape(2, 3)
    for table in found:
        np.testing.assert_array_equal(table.trials, wanted)
        np.testing.assert_allclose(table.values.ravel(), score, rtol=1e-6)
        assert table.fingerprint() == found[0].fingerprint()
    both = read_tables([tmp_path / "counts.csv"] * 2, "trials")  # counts add up
    np.testing.assert_array_equal(both.trials, 2 * wanted)
    np.testing.assert_allclose(both.values, found[0].values, rtol=1e-6)
    assert read_tables([tmp_path / "runs.csv"], "mean").trials is None


def test_counts_that_contradict_each_other_or_are_missing_are_refused(tmp_path):
    row = {"model": ["a"], "item": ["x"], "score": [0.5], "trials": [2]}
    once, more = pd.DataFrame(row), pd.DataFrame(row | {"trials": [4]})
    refused(lambda: Scores.from_long(pd.concat([once, more])), "'a'", "'x'", "trials")
    kept = Scores.from_long(pd.concat([once, more]), repeated="last")
    assert kept.trials.tolist() == [[4]]
    other = pd.DataFrame({"model": ["a"], "item": ["y"], "score": [1.0]})
    refused(lambda: Scores.from_long(pd.concat([once, other])), "trials", "give all")
    for odd in (0, 2.5, -1):
        wrong = once.assign(trials=odd)
        refused(lambda wrong=wrong: Scores.from_long(wrong), "whole numbers from 1")


def written(tmp_path, text, name="t.csv"):
    "A file with this text"
    path = tmp_path / name
    path.write_text(text)
    return path


def test_columns_with_other_names(tmp_path):
    text = "model_name,question_id,correct,category\nm1,007,1,a\nm1,2,0,b\nm2,007,0,a"
    path = written(tmp_path, text)
    columns = dict(model="model_name", item="question_id", score="correct")
    found = load_table(path, columns=columns | {"task": "category"})
    assert list(found.items.index) == ["007", "2"]  # names stay text
    assert list(found.items["task"]) == ["a", "b"]
    np.testing.assert_array_equal(found.values, [[1, 0], [0, np.nan]])
    with pytest.raises(ValueError, match="there are 'model_name', 'question_id'"):
        load_table(path, columns={"model": "modelname"})
    with pytest.raises(ValueError, match="'question' is no column here"):
        load_table(path, columns={"question": "question_id"})
    with pytest.raises(ValueError, match="name the columns"):
        load_table(
            written(tmp_path, text.replace("model_name", "model") + "\nm2,2,1,b")
        )


def test_a_table_on_its_side_is_noticed(tmp_path):
    rows = "\n".join(f"q{n},{n % 2},{n % 3 // 2}" for n in range(12))
    path = written(tmp_path, f"name,org/one,org/two\n{rows}")
    with pytest.raises(ValueError, match="look like items"):
        load_table(path)
    found = load_table(path, columns={"item": "name"})
    assert list(found.models.index) == ["org/one", "org/two"]
    assert load_table(path, columns={"model": "name"}).shape == (12, 2)
    by_word = written(tmp_path, "question_id,a,b\nx,1,0\ny,0,0\n")
    with pytest.raises(ValueError, match="look like items"):
        load_table(by_word)


def test_columns_that_are_tasks_are_asked_for(tmp_path):
    text = "name,mmlu,gsm8k,rte\nm1,0.5,0.4,0.7\nm2,0.6,0.9,0.8\n"
    path = written(tmp_path, text)
    with pytest.raises(AmbiguousFile, match="or whole tasks") as error:
        load_table(path)
    assert error.value.choices == ["items", "tasks"]
    assert load_table(path, columns_are="items").items["task"].nunique() == 1
    found = load_table(path, columns_are="tasks")
    assert list(found.items["task"]) == list(found.items.index)


# data frames and arrays


def frames():
    "One table as a person holds it in memory, in every usual form"
    values = right_or_wrong(4, 15).astype(float)
    values[1, 2] = np.nan
    names, items = [f"org/m{n}" for n in range(4)], [f"q{n}" for n in range(15)]
    wide = pd.DataFrame(values, names, items)
    named = wide.rename_axis("model")
    long = named.reset_index().melt("model", var_name="item", value_name="score")
    forms = {"wide": wide, "named": named, "column": named.reset_index()}
    forms["first column"] = wide.rename_axis("name").reset_index()
    forms["booleans"] = wide.fillna(1).astype(bool)
    forms |= {"long": long, "filtered": long[long["score"].notna()]}
    forms["indexed"] = long.set_index(["model", "item"])
    forms["turned"] = wide.T.rename_axis("item")
    forms |= {"array": values, "nested list": values.tolist()}
    forms["unnamed"] = pd.DataFrame(values)
    forms["unnamed models"] = pd.DataFrame(values, columns=items)
    full = {"booleans": np.nan_to_num(values, nan=1)}
    return [pytest.param(f, full.get(n, values), id=n) for n, f in forms.items()]


@pytest.mark.parametrize(("form", "values"), frames())
def test_every_form_in_memory_is_the_same_table(form, values):
    found = load_table(form)
    np.testing.assert_array_equal(found.values, values)
    assert found.models.index[1] in ("org/m1", "model1")
    assert found.items.index[2] in ("q2", "item2", "2")


def test_a_table_of_scores_passes_through_untouched(capsys):
    table = Scores(np.eye(2))
    assert load_table(table) is table and as_scores(table) is table
    as_scores("ifeval")  # nothing was guessed
    assert capsys.readouterr().err == ""


def test_what_was_understood_is_one_line(tmp_path, capsys):
    path = tmp_path / "long.csv"
    LONG.to_csv(path, index=False)
    read = "2 models x 2 items"
    for form, line in {
        "frame": (LONG, f"{read}; 2 tasks from column 'task'"),
        "file": (path, f"{path}: {read}; 2 tasks from column 'task'"),
        "array": (np.eye(2), f"{read}; one task"),
        "row": (np.eye(1), "1 model x 1 item; one task"),
    }.values():
        as_scores(form)
        assert capsys.readouterr() == ("", f"benchnb: read {line}\n")


def test_a_data_frame_that_cannot_be_read_is_one_line():
    odd = LONG.rename(columns={"score": "correct"})
    how = "load_table(table, columns={'model': 'NAME', 'item': 'NAME', 'score': 'NAME'"
    for read in (load_table, as_scores):
        refused(lambda read=read: read(odd), "no column 'score'", "'correct'", how)
    assert load_table(odd, columns={"score": "correct"}).shape == (2, 2)
    items = pd.DataFrame(np.eye(12), [f"q{n}" for n in range(12)], [*"abcdefghijkl"])
    refused(lambda: as_scores(items), "look like items", "columns={'item': 'index'}")
    refused(lambda: load_table(items.reset_index(drop=True)), "rows have no names")
    partial = pd.DataFrame(np.full((3, 4), 0.5), [*"abc"], [*"wxyz"])
    both = "columns_are='items') or load_table(table, columns_are='tasks')"
    with pytest.raises(ValueError, match=re.escape(both)) as failed:
        as_scores(partial)
    assert "whole tasks" in str(failed.value) and failed.value.__suppress_context__
    assert load_table(partial, columns_are="tasks").items["task"].nunique() == 4
    refused(lambda: load_table(np.zeros(3)), "models x items")
    for columns in (["a", "a"], pd.MultiIndex.from_product([["t"], ["a", "b"]])):
        frame = pd.DataFrame(np.eye(2), [*"mn"], columns)
        refused(lambda frame=frame: load_table(frame), "different ones")
    with pytest.raises(TypeError, match="a data frame, an array or Scores, got dict"):
        load_table({"a": 1})
    refused(lambda: load_table("x" * 300), "no file or data set")


def test_repeats_and_empty_models_are_settled_in_memory_too():
    twice = pd.concat([LONG, LONG.assign(score=[0, 0.5, 0, 1])])
    refused(lambda: load_table(twice), "two scores", "repeated=")
    assert load_table(twice, repeated="mean").values.tolist() == [[0.5, 0.5], [0, 1]]
    silent = LONG.assign(score=[1, 0.5, np.nan, np.nan])
    assert load_table(silent, skip_empty=True).models.index.tolist() == ["NA"]
    assert load_table(silent).shape == (2, 2)


def test_facts_about_models_in_a_wide_table_are_no_items(tmp_path):
    known = {"model": ["a", "b"], "n_params": [7.0, 3.0]}
    frame = pd.DataFrame(known | {f"q{n}": [1.0, 0.0] for n in range(20)})
    frame.to_csv(tmp_path / "wide.csv", index=False)
    table = load_table(tmp_path / "wide.csv")
    assert table.shape == (2, 20) and [*table.models["n_params"]] == [7, 3]


def test_a_frame_that_grew_column_by_column_is_read_without_a_warning(recwarn):
    frame = pd.DataFrame(index=["a", "b"])
    for n in range(150):
        frame[f"q{n}"] = [1.0, 0.0]
    recwarn.clear()
    assert load_table(frame).shape == (2, 150) and not recwarn.list


def test_what_is_most_likely_a_slip_is_one_line(tmp_path):
    names = ["gpt", "llama", "qwen", "phi"]
    long = pd.DataFrame([(m, f"q{n}", n % 2) for m in names for n in range(6)])
    swapped = long.set_axis(["item", "model", "score"], axis=1)
    with pytest.raises(ValueError, match="its models look like items, its items"):
        read_tables([swapped])
    settled = read_tables([swapped], columns={"item": "model", "model": "item"})
    assert settled.shape == (4, 6)
    blank = long.set_axis(["model", "item", "score"], axis=1)
    blank.loc[3, "model"] = "gpt "
    with pytest.raises(ValueError, match="'gpt ' and 'gpt' are two models: write"):
        read_tables([blank])
    wide = pd.DataFrame(np.eye(4, 6), names, [f"q{n}" for n in range(6)])
    assert read_tables([wide.rename_axis("model")]).shape == (4, 6)
    wide["average"] = wide.mean(axis=1).round(2)
    with pytest.raises(ValueError, match="'average' is the mean of the others: drop"):
        read_tables([wide.rename_axis("model")])


def test_an_empty_cell_is_no_score_in_a_column_of_another_name(tmp_path):
    path = tmp_path / "answers.csv"
    path.write_text("system,question,points\na,1,1\na,2,\nb,1,0\nb,2,NA\n")
    names = {"model": "system", "item": "question", "score": "points"}
    values = load_table(path, columns=names).values
    assert np.array_equal(values, [[1, np.nan], [0, np.nan]], equal_nan=True)


def test_a_missing_column_is_told_with_the_names_of_the_file(tmp_path):
    path = tmp_path / "answers.csv"
    rows = [f"{model},q{number},1" for model in "abc" for number in range(4)]
    path.write_text("\n".join(["system,question,points", *rows]))
    with pytest.raises(AmbiguousFile, match="found 'system', 'question', 'points'"):
        load_table(path)


def test_a_table_of_another_scale_is_refused_with_the_way_on(tmp_path):
    path = tmp_path / "judge.csv"
    path.write_text("model,item,score\nm,a,7\nm,b,3\n")
    with pytest.raises(AmbiguousFile, match="outside .* say scale=") as caught:
        import_logs("table", path)
    assert caught.value.option == "scale"
    scores = import_logs("table", path, Choices(scale=(1, 10)))
    assert np.allclose(scores.values, [[6 / 9, 2 / 9]])


def test_files_without_a_result_are_named(tmp_path):
    path = tmp_path / "result.json"
    path.write_text('{"x": 1}')
    with pytest.raises(ValueError, match="no result in 1 files .* harbor.*result"):
        import_logs("harbor", path)


def task_scores(n_models=12, n_tasks=6):
    "Graded scores, and their mean"
    rng = np.random.default_rng(0)
    names = [f"model-{row}" for row in range(n_models)]
    frame = pd.DataFrame(rng.random((n_models, n_tasks)).round(4), names)
    frame.columns = [*"abcdefghij"[:n_tasks]]
    return frame, frame.mean(axis=1)


@pytest.mark.parametrize("digits", [2, 3, 4, 15])
@pytest.mark.parametrize("name", ["overall_acc", "x", "helm_lite"])
@pytest.mark.parametrize("form", ["wide", "long", "file"])
def test_a_mean_is_found_under_any_name(digits, name, form, tmp_path):
    frame, mean = task_scores()
    frame.insert(2, name, mean.round(digits))
    given = frame.rename_axis("model").reset_index()
    if form == "long":
        given = given.melt("model", var_name="item", value_name="score")
    if form == "file":
        given.to_csv(given := tmp_path / "t.csv", index=False)
    with pytest.raises(ValueError, match=f"{name!r} is the mean of the others: leave"):
        load_table(given)


def test_what_is_like_a_mean_and_none_is_an_item():
    frame, mean = task_scores()
    near = frame.assign(x=(mean + np.resize([0.003, -0.003], len(mean))).round(3))
    same = pd.DataFrame({name: mean for name in "abcd"})
    few = frame[:2].assign(x=mean[:2].round(1))  # two numbers may agree by chance
    binary = (frame > 0.5) * 1.0
    for table in (frame, near, same, few, binary, binary.assign(x=binary["a"])):
        named = table.rename_axis("model").reset_index()
        assert load_table(named, columns_are="items").shape == table.shape


SHIPPED = ["swebench_verified", "gso", "terminal_bench", "mmlu_pro"]


@pytest.mark.parametrize("name", SHIPPED)
@pytest.mark.parametrize("head", ["model", "name", "long", "item"])
def test_a_known_table_on_its_side_is_asked_about(name, head, tmp_path):
    scores = load(name)
    values = pd.DataFrame(scores.values, scores.models.index, scores.items.index)
    values = values.iloc[: max(4, len(values) // 3), :400]
    path = tmp_path / "t.csv"
    if head == "long":
        right = values.rename_axis("item").reset_index()
        right = right.melt("item", var_name="model", value_name="score")
        right.to_csv(path, index=False)
        settled = {"model": "item", "item": "model"}
    elif head == "item":  # its rows are models
        values.rename_axis("item").to_csv(path)
        settled = {"model": "item"}
    else:
        values.T.rename_axis(head).to_csv(path)
        settled = {"item": head}
    with pytest.raises(AmbiguousFile, match="look like") as caught:
        load_table(str(path))
    assert ",".join(f"{n}={x}" for n, x in settled.items()) in caught.value.choices
    assert load_table(str(path), columns=settled).shape == values.shape
    values.rename_axis("model").to_csv(path)
    assert load_table(str(path)).shape == values.shape  # it is asked of no other


@pytest.mark.parametrize("repeated", ["mean", "trials"])
def test_a_mean_hides_no_value_outside_the_scale(tmp_path, repeated):
    path = tmp_path / "judged.csv"  # -1: the judge could not be read
    path.write_text("model,item,score\na,q1,9\na,q1,-1\na,q2,5\n")
    choices = Choices(repeated=repeated, scale=(0, 10))
    refused(lambda: import_logs("table", path, choices), "item 'q1'", "outside [0, 1]")


def test_objects_are_no_names_and_json_is_no_table(tmp_path):
    events = tmp_path / "events.jsonl"
    events.write_text('{"spec": {"name": "e"}}\n{"sample": 1, "type": "match"}\n')
    refused(lambda: import_logs("table", events), "column 'spec' holds objects")
    listed = tmp_path / "all.json"
    listed.write_text('[{"model": "m", "item": "a", "score": 1}]')
    refused(lambda: import_logs("table", listed), "write an object a line")


def test_a_row_of_means_is_no_model(tmp_path):
    rows = pd.DataFrame([[1, 0, 1, 0], [1, 1, 1, 0], [1, 1, 1, 1]], [*"abc"], [*"wxyz"])
    rows.loc["Average"] = rows.mean().round(3)
    rows.rename_axis("model").to_csv(tmp_path / "a.csv")
    how = {"columns_are": "items"}
    refused(
        lambda: import_logs("table", tmp_path / "a.csv", **how),
        "'Average' is the mean of the others: leave it out",
    )
    refused(lambda: import_logs("table", tmp_path / "a.xlsx"), "no file")
    (tmp_path / "a.xlsx").write_bytes(b"PK")
    refused(lambda: import_logs("table", tmp_path / "a.xlsx"), "save its sheet as CSV")
