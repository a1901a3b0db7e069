"What the chapter on prompts does not show: draws, files in many layouts, bad input"

import json

import pandas as pd
import pytest

from benchnb.bento.prompts import (
    Task,
    draw_exemplars,
    questions_besides_exemplars,
    read_tasks,
)


def test_draws_from_the_questions_share_no_exemplar():
    "Fifty in ten draws, as in the authors' program; then it begins again"
    task = Task("t", [(f"{n}?", "a") for n in range(60)], dev=[("d", "a")] * 5)
    draws = [draw_exemplars(task, 5, seed, pool="test") for seed in range(13)]
    assert len({e.input for shown in draws[:10] for e in shown}) == 50
    assert draws[12] == draws[0] and "d" not in {e.input for e in draws[0]}
    assert len(questions_besides_exemplars(task, draws[0], 0)) == 55


FILES = {
    "free.jsonl": ('{"input": "2+2", "target": 4}', "2+2", "4"),
    "list.json": ('{"examples": [{"query": "q", "label": "yes"}]}', "q", "yes"),
    "plain.csv": ("\ufeffq,x,y,z,C\n", "q\nA. x\nB. y\nC. z", "C"),
    "head.csv": ("question,A,B,answer\nq,x,y,B\n", "q\nA. x\nB. y", "B"),
    "two.csv": ('"a\nb",yes\n', "a\nb", "yes"),
}


@pytest.mark.parametrize("name", FILES)
def test_importers(tmp_path, name):
    text, question, target = FILES[name]
    (tmp_path / name).write_text(text, encoding="utf-8")
    (task,) = read_tasks(tmp_path)
    assert task.examples[0][:2] == (question, target)
    assert task.name == name.split(".")[0]
    assert read_tasks(tmp_path / name) == [task]


@pytest.mark.parametrize(
    "name, text, message",
    [
        ("a.csv", "q,x,y,E\n", "a.csv' in record 1: answer 'E' is none of the options"),
        ("a.jsonl", '{"question": "q"}', "record 1: no target: name it one of answer"),
        ("a.jsonl", "{", "a.jsonl' is no list of records"),
        ("a_dev.csv", "q,yes\n", "task 'a' has no questions: add a_test"),
        ("a.txt", "q", "holds no csv, json, jsonl or par"),
        ("a.csv", "", "task 'a' has no examples"),
        ("a.csv", "q,x,,A\n", "a.csv' in record 1: .* options are texts, got ''"),
        ("a.csv", f"q{',x' * 27},A\n", "27 options, but 26 letters: use letters="),
        ("a.jsonl", '{"input": "q", "choices": "x;y", "target": 0}',
         "record 1: its options must be a list, got 'x;y'"),
    ],
)  # fmt: skip
def test_bad_files(tmp_path, name, text, message):
    (tmp_path / name).write_text(text)
    with pytest.raises(ValueError, match=message) as error:
        read_tasks(tmp_path)
    assert "\n" not in str(error.value)


def test_equal_options_differ_by_letter_only(tmp_path):
    "Real benchmarks have a few such questions"
    (tmp_path / "a.csv").write_text("q,x,x,B\n")
    (task,) = read_tasks(tmp_path)
    assert task.examples[0].target == "B"
    with pytest.raises(ValueError, match="needs two or more different options"):
        read_tasks(tmp_path, letters=False)


@pytest.mark.parametrize("other", ["y/a_test.csv", "x/a_test.json", "a.csv"])
def test_a_task_in_two_files(tmp_path, other):
    for name in ("x/a_test.csv", other):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("q,yes\n")
    with pytest.raises(ValueError, match="task 'a' is in two files: ") as error:
        read_tasks(tmp_path)
    assert str(tmp_path / "x/a_test.csv") in str(error.value)
    assert str(tmp_path / other) in str(error.value)


@pytest.mark.parametrize(
    "examples, message",
    [
        ([("q", "a", ("a", "a"))], r"examples\[0\] needs two or more different"),
        ([("q", "a"), (" ", "a")], r"examples\[1\] needs a text"),
        ([], "task 't' has no examples"),
    ],
)
def test_bad_tasks(examples, message):
    with pytest.raises(ValueError, match=message):
        Task("t", examples)


def hub_folder(folder):
    "MMLU as the hub has it: a folder for each subject, and two that are none"
    rows = {
        "law": ("Who judges?", ["a cook", "a court", "a cow", "a cat"], 1),
        "art": ("Who paints?", ["a painter", "a tree", "a sea", "an oak"], 0),
    }
    records = {
        name: {"question": q, "subject": name, "choices": c, "answer": a}
        for name, (q, c, a) in rows.items()
    }
    for name, record in records.items():
        for part in ("test", "validation", "dev"):
            write_parquet(folder / name / f"{part}-00000-of-00001.parquet", [record])
    every = list(records.values())
    write_parquet(folder / "all" / "test-00000-of-00001.parquet", every)
    other = [{"question": "?", "subject": "", "choices": ["a", "b"], "answer": 0}]
    for place in ("all", "auxiliary_train"):
        path = folder / place / "auxiliary_train-00000-of-00001.parquet"
        write_parquet(path, other)


def write_parquet(path, records):
    path.parent.mkdir(parents=True, exist_ok=True)
    pd.DataFrame(records).to_parquet(path)


def test_mmlu_as_the_hub_has_it(tmp_path):
    hub_folder(tmp_path)
    tasks = read_tasks(tmp_path)
    assert [task.name for task in tasks] == ["art", "law"]
    assert tasks[1].examples[0].target == "B" and len(tasks[1].dev) == 1
    assert read_tasks(tmp_path / "all/test-00000-of-00001.parquet")[0].name == "art"


@pytest.mark.parametrize("layout", ["jsonl", "parquet"])
def test_flan_in_one_file_and_in_many(tmp_path, layout):
    rows = [
        {"inputs": f"{t} {n}", "targets": "yes", "_task_name": t}
        for t in ("rte", "anli") for n in range(2)
    ]  # fmt: skip
    if layout == "jsonl":
        for name in ("rte", "anli"):
            some = [json.dumps(r) for r in rows if r["_task_name"] == name]
            path = tmp_path / "test" / f"{name}_test.jsonl"
            path.parent.mkdir(exist_ok=True)
            path.write_text("\n".join(some))
    else:
        write_parquet(tmp_path / "train-00000-of-00001.parquet", rows)
    tasks = read_tasks(tmp_path)
    assert [(t.name, len(t.examples)) for t in tasks] == [("anli", 2), ("rte", 2)]
    assert tasks[0].examples[0][:2] == ("anli 0", "yes")


COT = """Evaluate the result of a random Boolean expression.

Q: not ( True ) is
A: Let's think step by step.
Not True is False. So the answer is False.

Q: True and True is
A: Let's think step by step.
So the answer is True."""


def test_bbh_with_its_reasoning(tmp_path):
    for folder in ("bbh", "cot-prompts"):
        (tmp_path / folder).mkdir()
    one = {"input": "not False is", "target": "True"}
    examples = {"canary": "x", "examples": [one]}
    (tmp_path / "bbh/boolean_expressions.json").write_text(json.dumps(examples))
    (tmp_path / "cot-prompts/boolean_expressions.txt").write_text(COT)
    (tmp_path / "README.txt").write_text("no task")
    (task,) = read_tasks(tmp_path)
    assert task.examples[0][:2] == ("not False is", "True")
    assert [e.target for e in task.dev] == ["False", "True"]
    assert task.dev[0].input == "not ( True ) is"
    assert task.dev[0].reason.endswith("Not True is False. So the answer is False.")


AGIEVAL = {
    "passage": "Three cats.", "question": "How many?", "options": ["(A)2", "(B)3"],
    "label": "B", "answer": None, "other": {"solution": "count"},
}  # fmt: skip
HUB_AGIEVAL = {"query": "How many?", "choices": ["(A)2", "(B)3"], "gold": [1]}


def test_agieval_in_both_layouts(tmp_path):
    (tmp_path / "lsat-ar.jsonl").write_text(json.dumps(AGIEVAL))
    math = AGIEVAL | {"options": None, "label": None, "answer": "3", "passage": None}
    (tmp_path / "math.jsonl").write_text(json.dumps(math))
    path = tmp_path / "agieval-sat-math/data/test-00000-of-00001-abc.parquet"
    write_parquet(path, [HUB_AGIEVAL])
    hub, lsat, free = read_tasks(tmp_path)
    assert (hub.name, hub.examples[0].target) == ("agieval-sat-math", "B")
    assert hub.examples[0].input == "How many?\nA. 2\nB. 3"
    assert lsat.examples[0].input == "Three cats.\nHow many?\nA. 2\nB. 3"
    assert free.examples[0][:3] == ("How many?", "3", None)
