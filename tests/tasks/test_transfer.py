"""What the chapter on transfer does not show: other models, kills, servers, faults"""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

from benchnb.tasks.transfer import (
    FLAN,
    MMLU,
    SCORINGS,
    Endpoint,
    Example,
    LocalModel,
    Prompt,
    Task,
    answer_place,
    as_model,
    draw_exemplars,
    draw_queries,
    found_groups,
    from_frame,
    load_model,
    read_tasks,
    read_transfer,
    small_model,
    toy_tasks,
    toy_transfer,
    transfer_matrix,
)

TOYS = [toy_tasks(12)[place] for place in (0, 1, 9)]
FEW = dict(exemplars=3, seeds=2, prompt=FLAN)


def uneven():
    "Questions of very different length; options of one word and of several"
    words = "red green blue pink grey".split()
    rng = np.random.default_rng(3)
    examples = []
    for n in range(10):
        text = " ".join(rng.choice(words, 1 + 3 * n))
        options = ("red", "green blue", "pink grey red") if n % 2 else ("red", "blue")
        examples.append((f"{n} {text}", options[n % len(options)], options))
    return Task("uneven", examples)


LONG = uneven()
ALL = [*TOYS, LONG]


def made(kind="llama", **more):
    "A small model with weights large enough that exemplars matter"
    texts = [p.context(t, t.examples) for t in ALL for p in (FLAN, MMLU)]
    return small_model(texts, kind, spread=0.2, positions=400, **more)


@pytest.fixture(scope="module", params=["llama", "gpt2"])
def pair(request):
    return made(request.param)


@pytest.fixture(scope="module")
def llama():
    return made()


def asks_of(task, prompt=FLAN):
    options = [tuple(f" {option}" for option in e.options) for e in task.examples]
    queries = [prompt.query.format(input=e.input) for e in task.examples]
    return list(zip(queries, options, strict=True))


# The cache changes nothing but the speed --------------------------------------------


def by_hand(pair, context, query, option):
    "The log-probability of an option: one prompt, no padding, no cache"
    import torch

    model, tokenizer = pair
    ids = [tokenizer(text)["input_ids"] for text in (context, query, option)]
    with torch.inference_mode():
        logits = model(torch.tensor([sum(ids, [])]), use_cache=False).logits[0]
    start = len(ids[0]) + len(ids[1])
    steps = [logits[start + n - 1].log_softmax(-1)[t] for n, t in enumerate(ids[2])]
    return float(sum(steps))


@pytest.mark.parametrize("cache", [True, False])
@pytest.mark.parametrize("batch", [1, 3, 64])
def test_padded_and_cached_is_the_plain_sum_of_log_probabilities(pair, cache, batch):
    model = LocalModel(*pair, batch=batch, cache=cache)
    context = FLAN.context(TOYS[2], TOYS[2].examples[:3])
    found = model.logprobs(model.start(context), asks_of(LONG))
    for (query, options), values in zip(asks_of(LONG), found, strict=True):
        truth = [by_hand(pair, context, query, option) for option in options]
        np.testing.assert_allclose(values[:, 0], truth, atol=1e-4)
        assert values[:, 1].tolist() == [len(option.split()) for option in options]


def test_exemplars_matter_to_these_models(pair):
    "So that a cache that is lost on the way would show"
    model, asks = LocalModel(*pair), asks_of(LONG)
    starts = [model.start(FLAN.context(t, t.examples[:3])) for t in (TOYS[0], LONG)]
    first, second = (model.logprobs(start, asks) for start in starts)
    assert max(abs(a - b).max() for a, b in zip(first, second, strict=True)) > 0.1


@pytest.mark.parametrize("scoring", list(SCORINGS))
def test_with_the_cache_as_without(pair, scoring):
    few = FEW | dict(scoring=scoring, seeds=1)
    cached = transfer_matrix(ALL, pair, **few)
    naive = transfer_matrix(ALL, pair, cache=False, batch=1, **few)
    np.testing.assert_allclose(cached.values, naive.values, atol=1e-4)


def test_what_is_written_is_what_transformers_writes(pair):
    import torch

    model, tokenizer = pair
    context, queries = FLAN.context(LONG, LONG.examples[:2]), asks_of(LONG)[2:8]
    local = LocalModel(model, tokenizer, batch=4)
    found = local.generate(local.start(context), [q for q, _ in queries], 6)
    for (query, _), text in zip(queries, found, strict=True):
        ids = tokenizer(context)["input_ids"] + tokenizer(query)["input_ids"]
        more = dict(max_new_tokens=6, do_sample=False, pad_token_id=1)
        out = model.generate(torch.tensor([ids]), **more)[0, len(ids) :].tolist()
        out = out[: out.index(1)] if 1 in out else out
        assert tokenizer.decode(out).split("\n")[0].strip() == text


def test_exact_match_sees_an_answer_that_is_right(llama):
    "The targets are what the model writes; one has a word too many"
    model = LocalModel(*llama)
    prefix = model.start(FLAN.context(LONG, LONG.examples[:2]))
    queries = [FLAN.query.format(input=e.input) for e in LONG.examples]
    texts = model.generate(prefix, queries, 4)
    good = [
        Example(e.input, t or "x") for e, t in zip(LONG.examples, texts, strict=True)
    ]
    bad = [Example(e.input, f"{e.target} red") for e in good]
    assert SCORINGS["exact"](model, prefix, FLAN, good, 4).mean() == 1
    assert SCORINGS["exact"](model, prefix, FLAN, bad, 4).mean() == 0


def test_the_order_of_tasks_changes_nothing(llama):
    forth = transfer_matrix(ALL, llama, **FEW)
    back = transfer_matrix(ALL[::-1], llama, batch=5, **FEW)
    np.testing.assert_array_equal(forth.values, back.values[:, ::-1, ::-1])


def test_a_source_is_encoded_once_per_seed(llama):
    model = LocalModel(*llama)
    starts = []
    start = model.start
    model.start = lambda context: starts.append(context) or start(context)
    transfer_matrix(ALL, model, **FEW)
    assert len(starts) == len(set(starts)) == 2 * len(ALL)


def test_a_model_in_training_is_asked_without_dropout_and_left_as_it_was():
    model, tokenizer = made("gpt2")
    calm = transfer_matrix(TOYS, (model, tokenizer), scoring="perplexity", **FEW)
    model.train()
    again = transfer_matrix(TOYS, (model, tokenizer), scoring="perplexity", **FEW)
    np.testing.assert_array_equal(calm.values, again.values)
    assert model.training


# Draws ------------------------------------------------------------------------------


def test_no_question_is_among_its_own_exemplars():
    twins = Task("twins", [("same?", "yes")] * 6 + [(f"{n}?", "no") for n in range(6)])
    for seed in range(20):
        shown = draw_exemplars(twins, 4, seed)
        asked = draw_queries(twins, shown, seed)
        assert len(shown) == 4
        assert not {e.input for e in shown} & {e.input for e in asked}


def test_dev_examples_are_the_exemplars_and_all_questions_are_asked():
    task = Task("t", [(f"{n}?", "a") for n in range(5)], dev=[("d1", "a"), ("d2", "a")])
    assert set(draw_exemplars(task, 2, 0)) == set(task.dev)
    assert draw_queries(task, draw_exemplars(task, 2, 0), 0) == list(task.examples)


def test_fewer_questions_are_the_same_for_all_sources(llama):
    found = transfer_matrix(ALL, llama, queries=4, **FEW)
    assert (found.queries == 4).all()
    assert set(np.unique(found.values * 4 % 1)) == {0}


# Memory, kills, journals ------------------------------------------------------------


class Tight(LocalModel):
    "Holds so many rows at once"

    def __init__(self, *pair, rows, error, **more):
        super().__init__(*pair, **more)
        self.rows, self.error, self.sizes = rows, error, []

    def _inputs(self, prefix, rows):
        self.sizes.append(len(rows))
        if len(rows) > self.rows:
            raise self.error("CUDA out of memory. Tried to allocate 2.00 GiB")
        return super()._inputs(prefix, rows)


@pytest.mark.parametrize("scoring", list(SCORINGS))
def test_short_of_memory_the_batch_is_halved_and_nothing_changes(llama, scoring):
    import torch

    few = FEW | dict(scoring=scoring, seeds=1)
    tight = Tight(*llama, rows=3, error=torch.OutOfMemoryError, batch=16)
    found = transfer_matrix(ALL, tight, **few)
    whole = transfer_matrix(ALL, llama, **few)
    np.testing.assert_allclose(found.values, whole.values, atol=1e-5)
    assert tight.batch <= 3 and sum(size > 3 for size in tight.sizes) <= 3


def test_no_room_for_one_row_is_an_error_and_other_errors_are_their_own(llama):
    import torch

    tight = Tight(*llama, rows=0, error=torch.OutOfMemoryError)
    with pytest.raises(MemoryError, match="a text of .* take fewer exemplars"):
        transfer_matrix(TOYS, tight, **FEW)
    model = LocalModel(*llama)
    model._remember = lambda ids: tight._inputs(None, [ids])
    with pytest.raises(MemoryError, match="take fewer exemplars"):
        model.start("Input:")
    broken = Tight(*llama, rows=0, error=lambda text: RuntimeError("shapes differ"))
    with pytest.raises(RuntimeError, match="shapes differ"):
        transfer_matrix(TOYS, broken, **FEW)


KILLED = """
import sys, time
sys.path.insert(0, "tests")
import test_transfer as t

class Slow(t.LocalModel):
    def logprobs(self, *given):
        time.sleep(0.05)
        return super().logprobs(*given)

t.transfer_matrix(t.ALL, Slow(*t.made()), journal=sys.argv[1], **t.FEW)
"""


def test_a_killed_run_goes_on_and_gives_the_same_matrix(llama, tmp_path):
    journal = tmp_path / "cells.jsonl"
    process = subprocess.Popen([sys.executable, "-c", KILLED, str(journal)])
    until = time.monotonic() + 60
    while time.monotonic() < until and process.poll() is None:
        if journal.exists() and journal.read_bytes().count(b"\n") >= 6:
            break
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    done = journal.read_text().count("\n") - 1
    assert 5 <= done < 32
    model = LocalModel(*llama)
    cells = []
    logprobs = model.logprobs
    model.logprobs = lambda *given: cells.append(1) or logprobs(*given)
    resumed = transfer_matrix(ALL, model, journal=journal, **FEW)
    assert len(cells) == 32 - done
    whole = transfer_matrix(ALL, llama, **FEW)
    np.testing.assert_array_equal(resumed.values, whole.values)
    np.testing.assert_array_equal(resumed.queries, whole.queries)


def test_a_torn_last_line_is_measured_again(llama, tmp_path):
    journal = tmp_path / "cells.jsonl"
    whole = transfer_matrix(TOYS, llama, journal=journal, **FEW)
    text = journal.read_text()
    journal.write_text(text[:-25])
    again = transfer_matrix(TOYS, llama, journal=journal, **FEW)
    np.testing.assert_array_equal(again.values, whole.values)
    third = transfer_matrix(TOYS, llama, journal=journal, **FEW)
    np.testing.assert_array_equal(third.values, whole.values)


@pytest.mark.parametrize(
    "change",
    [
        dict(prompt=MMLU),
        dict(exemplars=2),
        dict(queries=3),
        dict(scoring="exact"),
        dict(tasks=TOYS[:2]),
        dict(model="other weights"),
    ],
    ids=lambda change: next(iter(change)),
)
def test_a_foreign_journal_is_refused_by_name(llama, tmp_path, change):
    journal = tmp_path / "cells.jsonl"
    transfer_matrix(TOYS, llama, journal=journal, **FEW)
    given = dict(tasks=TOYS, model=llama, journal=journal, **FEW) | change
    if "model" in change:
        given["model"] = made(seed=1)
    before = journal.read_bytes()
    with pytest.raises(ValueError, match=r"cells\.jsonl' is the journal of another m"):
        transfer_matrix(**given)
    assert journal.read_bytes() == before


def test_more_seeds_go_on_in_the_same_journal(llama, tmp_path):
    journal = tmp_path / "cells.jsonl"
    two = transfer_matrix(TOYS, llama, journal=journal, **FEW)
    three = transfer_matrix(TOYS, llama, journal=journal, **FEW | dict(seeds=3))
    np.testing.assert_array_equal(three.values[:2], two.values)
    assert journal.read_text().count("\n") == 1 + 27


def test_progress_is_on_demand_only(llama, capsys):
    transfer_matrix(TOYS, llama, **FEW)
    assert capsys.readouterr() == ("", "")
    transfer_matrix(TOYS, llama, progress=True, **FEW)
    shown = capsys.readouterr().err
    assert "18/18" in shown and "tokens=" in shown and "cell/s" in shown


# Results and files ------------------------------------------------------------------


def test_a_matrix_is_stored_and_read_back(llama, tmp_path):
    found = transfer_matrix(TOYS, llama, **FEW)
    found.to_csv(tmp_path / "a.csv")
    again = read_transfer(tmp_path / "a.csv")
    np.testing.assert_allclose(again.values, found.values)
    np.testing.assert_array_equal(again.queries, found.queries)
    assert again.tasks == found.tasks
    np.testing.assert_allclose(found.matrix, found.values.mean(0))
    np.testing.assert_allclose(found.spread, found.values.std(0, ddof=1))


def test_a_matrix_with_a_gap_is_refused(llama):
    rows = transfer_matrix(TOYS, llama, **FEW).frame()
    gap = "18 cells, got 17; the cell of seed 0, source 'first of i-p', .* is missing"
    with pytest.raises(ValueError, match=gap):
        from_frame(rows.drop(index=4))
    with pytest.raises(ValueError, match="got 19; .*target 'first of i-p' is there tw"):
        from_frame(rows.iloc[[*range(18), 1]])
    other = rows.iloc[:1].assign(source="x", target="y")
    with pytest.raises(ValueError, match="4 cells, got 1; .* 'y', target 'y' is miss"):
        from_frame(other)
    with pytest.raises(
        ValueError, match="'first of a-h', target 'first of i-p'.*no score"
    ):
        from_frame(rows.assign(score=rows["score"].where(rows.index != 1)))
    with pytest.raises(ValueError, match="lack \\['queries'\\]"):
        from_frame(rows.drop(columns="queries"))


HEAD = "seed,source,target,score,queries\n"


@pytest.mark.parametrize(
    "text, message",
    [
        ("", r"a\.csv' is no table \(No columns to parse.*that to_csv has written"),
        ("a,b\n1,2,3\n1\n1,2,3,4\n", r"a\.csv' is no table"),
        (HEAD, r"a\.csv': a transfer matrix without a row"),
        (HEAD + "0,NA,NA,good,3\n", r"'NA' has no score \(score is good\): measure it"),
        (HEAD + "0,a,a,,3\n", "'a' has no score"),
        (HEAD + "0,a,a,inf,3\n", r"'a' has no score \(score is inf\)"),
        (HEAD + "0,a,a,.5,many\n", r"has no queries \(queries is many\)"),
        (HEAD + "0,a,a,.5,2.5\n", r"has no queries \(queries is 2.5\)"),
        (HEAD + "0,a,b,.5,2\n", "4 cells, got 1; .* is missing"),
    ],
)
def test_bad_matrices(tmp_path, text, message):
    (tmp_path / "a.csv").write_text(text)
    with pytest.raises(ValueError, match=message) as error:
        read_transfer(tmp_path / "a.csv")
    assert "\n" not in str(error.value)


def test_a_task_may_be_called_NA(tmp_path):
    (tmp_path / "a.csv").write_text(HEAD + "0,NA,NA,.5,3\n")
    assert read_transfer(tmp_path / "a.csv").tasks == ("NA",)


def test_the_stored_matrices_have_the_groups_that_the_chapter_names():
    from sklearn.metrics import adjusted_rand_score

    groups = np.repeat(np.arange(4), 3)
    found = toy_transfer()
    assert found.values.shape == (5, 12, 12)
    assert list(found.tasks) == [task.name for task in toy_tasks()]
    assert adjusted_rand_score(groups, found_groups(found.matrix, 4)) >= 0.9
    plain = toy_transfer("untrained")
    assert adjusted_rand_score(groups, found_groups(plain.matrix, 4)) < 0.5
    with pytest.raises(ValueError, match="one of untrained, trained, apart, got 'gpt'"):
        toy_transfer("gpt")


LOG = {
    "doc_id": 0,
    "doc": {"question": "Where?", "choices": ["here", "there"], "answer": 1},
    "target": "1",
}
ARC = {"question": "Q", "choices": {"text": ["x", "y"], "label": ["1", "2"]}}
FILES = {
    "log.jsonl": (json.dumps(LOG), "Where?\nA. here\nB. there", "B"),
    "arc.json": (json.dumps([ARC | {"answerKey": "2"}]), "Q\nA. x\nB. y", "B"),
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


def test_importer_of_a_benchmark_folder(tmp_path):
    for part in ("test", "dev"):
        (tmp_path / part).mkdir()
        for name in ("law", "art"):
            text = f"{part}?,one,two,three,four,D\n" * 2
            (tmp_path / part / f"{name}_{part}.csv").write_text(text)
    stamp = "samples_mmlu_2025-01-02T03-04-05.6.jsonl"
    (tmp_path / stamp).write_text(json.dumps(LOG))
    tasks = read_tasks(tmp_path, letters=False)
    assert [task.name for task in tasks] == ["art", "law", "mmlu"]
    assert tasks[1].dev[0] == ("dev?", "four", ("one", "two", "three", "four"))


def test_what_an_answer_means():
    assert answer_place("1", ["1", "2"]) == 0  # a text before a position
    assert answer_place(1, ["1", "2"]) == 1
    assert answer_place("B", ["b", "c"]) == 1
    assert answer_place(7, ["x", "y"]) == answer_place("x y", ["x", "y"]) == -1


@pytest.mark.parametrize(
    "name, text, message",
    [
        ("a.csv", "q,x,y,E\n", "a.csv', record 1: answer 'E' is none of the options"),
        ("a.jsonl", '{"question": "q"}', "record 1: no target: name it one of answer"),
        ("a.jsonl", '{"answer": "q"}', "record 1: no input: name it one of question"),
        ("a.jsonl", "{", "a.jsonl' is no list of records"),
        ("a.json", '{"a": 1}', "a.json' is no list of records"),
        ("a_dev.csv", "q,yes\n", "task 'a' has no questions: add a_test"),
        ("a.txt", "q", "holds no csv, json or jsonl file"),
        ("a.csv", "", "task 'a' has no examples"),
        ("a.csv", "q,x,,A\n", "a.csv', record 1: option 2 is empty: mend the record"),
        ("a.csv", "q,x,y,\n", "record 1: its answer is empty"),
        ("a.csv", ",x,y,A\n", "record 1: its question is empty"),
        ("a.csv", "q1\nq2\n", r"record 1: it needs a question and an answer, got \["),
        ("a.csv", f"q{',x' * 27},A\n", "27 options, but only 26 letters: use letters="),
        ("a.csv", "question,A,B,C,answer\nq,x,,y,C\n", "record 1: option 2 is empty"),
        ("a.json", '["abc"]', "record 1: it needs a question and .*, got 'abc'"),
        ("a.jsonl", '{"input": "q", "target": ["x"]}', r"its answer is \[.*, no text"),
        ("a.jsonl", json.dumps(ARC | {"choices": {"text": ["x", "y"]}, "answer": "A"}),
         "record 1: its choices need text and label"),
        ("a.jsonl", '{"input": "q", "choices": ["x", null], "target": 0}',
         "record 1: option 2 is empty"),
        ("a.jsonl", '{"input": "q", "choices": "x;y", "target": 0}',
         "record 1: options 'x;y' are no JSON list"),
    ],
)  # fmt: skip
def test_bad_files(tmp_path, name, text, message):
    (tmp_path / name).write_text(text)
    with pytest.raises(ValueError, match=message) as error:
        read_tasks(tmp_path)
    assert "\n" not in str(error.value)


def test_equal_options_are_told_apart_by_letters_alone(tmp_path):
    "Real benchmarks have a few such questions"
    (tmp_path / "a.csv").write_text("q,x,x,B\n")
    (task,) = read_tasks(tmp_path)
    assert task.examples[0].target == "B"
    with pytest.raises(ValueError, match="option 'x' is there twice: mend the record"):
        read_tasks(tmp_path, letters=False)


def test_many_options_are_no_fault_without_letters(tmp_path):
    texts = [str(n) for n in range(100, 130)]
    (tmp_path / "a.csv").write_text(",".join(["q", *texts, "129"]))
    (task,) = read_tasks(tmp_path, letters=False)
    assert task.examples[0].target == "129"


def test_rows_with_fewer_options_than_the_header(tmp_path):
    (tmp_path / "a.csv").write_text("question,A,B,C,answer\nq,x,y,,B\n")
    assert read_tasks(tmp_path)[0].examples[0].options == ("A", "B")


@pytest.mark.parametrize("other", ["y/a_test.csv", "x/a_test.json", "a.csv"])
def test_a_task_in_two_files(tmp_path, other):
    for name in ("x/a_test.csv", other):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("q,yes\n")
    with pytest.raises(ValueError, match="task 'a' is in two files: ") as error:
        read_tasks(tmp_path)
    assert str(tmp_path / "x/a_test.csv") in str(error.value)
    assert str(tmp_path / other) in str(error.value)


def test_a_path_that_does_not_exist(tmp_path):
    with pytest.raises(ValueError, match="none': no such file or folder"):
        read_tasks(tmp_path / "none")


# Bad input --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "examples, message",
    [
        ([("q", "a", ("a", "a"))], r"examples\[0\] needs two or more different"),
        ([("q", "a", ("a",))], "needs two or more different options"),
        ([("q", "c", ("a", "b"))], "target 'c' is not among its options"),
        ([("q", "a"), (" ", "a")], r"examples\[1\]: its input must be a text"),
        ([("q", 3)], "its target must be a text"),
        ([("q", "a", ("a", ""))], "each option must be a text"),
        ([], "task 't' has no examples"),
    ],
)
def test_bad_tasks(examples, message):
    with pytest.raises(ValueError, match=message):
        Task("t", examples)


@pytest.mark.parametrize(
    "change, message",
    [
        (dict(exemplars=12), "task 'first of a-h' has 12 examples .* 13 are needed"),
        (dict(exemplars=-1), "exemplars must be a whole number from 0, got -1"),
        (dict(seeds=0), "seeds must be a whole number from 1, got 0"),
        (dict(queries=0), "queries must be a whole number from 1, got 0"),
        (dict(scoring="bleu"), "scoring must be one of .*, got 'bleu'"),
        (dict(tasks=[TOYS[0]] * 2), "task 'first of a-h' is there twice"),
        (dict(tasks=[]), "no tasks to measure"),
        (dict(tasks=[Task("t", [("q", "a")] * 9)]), "'t' has examples without options"),
        (dict(exemplars=0, prompt=Prompt("", "{input} {target}", "{input}")),
         "nothing stands before the questions"),
    ],
)  # fmt: skip
def test_bad_settings(llama, change, message):
    with pytest.raises(ValueError, match=message):
        transfer_matrix(**dict(tasks=TOYS, model=llama, **FEW) | change)


LEAST = dict(batch=1, seeds=1, seed=0, limit=1, exemplars=0, queries=1)
WRONG = [(name, value) for name in LEAST for value in (-1, 0.5, "a", True)]
WRONG += [("batch", 0), ("limit", 0), ("batch", None), ("seed", None)]


@pytest.mark.parametrize("name, value", WRONG)
def test_bad_counts_are_seen_before_any_work(name, value):
    "The model is not even looked for"
    message = f"{name} must be a whole number from {LEAST[name]}, got {value!r}"
    with pytest.raises(ValueError, match=f"^{message}$"):
        transfer_matrix(**dict(tasks=TOYS, model="/none", **FEW) | {name: value})


@pytest.mark.parametrize(
    "change, message",
    [
        (dict(prompt="x"), "prompt must be a Prompt such as MMLU or FLAN, got 'x'"),
        (dict(prompt=None), "prompt must be a Prompt"),
        (dict(tasks=TOYS[0]), r"a list of Task, got Task: use \[task\]"),
        (dict(tasks=None), "a list of Task, got NoneType"),
        (dict(tasks="folder"), "a list of Task, got str"),
        (dict(tasks=["folder"]), "'folder' is no Task"),
    ],
)
def test_bad_kinds_are_seen_before_any_work(change, message):
    with pytest.raises(TypeError, match=message):
        transfer_matrix(**dict(tasks=TOYS, model="/none", **FEW) | change)


def test_zero_exemplars_is_the_score_without_context(llama):
    found = transfer_matrix(TOYS, llama, **FEW | dict(exemplars=0))
    assert (found.values == found.values[:, :1]).all()  # FLAN's header names no task


@pytest.mark.parametrize("exemplars", [0, 3])
@pytest.mark.parametrize("kind", ["gpt2", "llama"])
def test_a_prompt_too_long_for_the_model_is_refused(kind, exemplars):
    texts = [FLAN.context(LONG, LONG.examples)]
    pair = small_model(texts, kind, positions=40)
    with pytest.raises(ValueError, match="tokens is too long for the model, .* 40"):
        transfer_matrix([LONG], pair, **FEW | dict(exemplars=exemplars))


def test_options_that_the_tokenizer_cannot_tell_apart(llama):
    task = Task("t", [(f"{n}", "yes", ("yes", "no")) for n in range(5)])
    with pytest.raises(ValueError, match="to the tokenizer, some are alike .*yes"):
        transfer_matrix([task], llama, **FEW)


def test_models_that_are_none(llama, tmp_path):
    with pytest.raises(ValueError, match="holds no model: config.json is missing"):
        as_model(tmp_path)
    llama[0].save_pretrained(tmp_path)
    with pytest.raises(ValueError, match="has no tokenizer: save it there with"):
        as_model(tmp_path)
    with pytest.raises(ValueError, match="LlamaForCausalLM comes without a tokenizer"):
        as_model((llama[0], None))
    with pytest.raises(TypeError, match="int is no model: give a folder"):
        as_model(3)
    with pytest.raises(ValueError, match="no language model at 'no/such'"):
        as_model("no/such")
    with pytest.raises(TypeError, match=r"in the order \(model, tokenizer\)"):
        as_model(llama[::-1])
    with pytest.raises(ValueError, match="batch must be a whole number from 1, got 0"):
        LocalModel(*llama, batch=0)
    for name in ("/nope/model", "./nope", "../nope", "~/nope/model"):
        with pytest.raises(ValueError, match=f"'{name}': no such folder"):
            as_model(name)
    with pytest.raises(ValueError, match="is a file: name the folder of the model"):
        as_model(tmp_path / "config.json")


@pytest.mark.parametrize("damage", ["cut", "noise", "config"])
def test_a_folder_with_damaged_files(llama, tmp_path, damage):
    for part in llama:
        part.save_pretrained(tmp_path)
    name = "config.json" if damage == "config" else "model.safetensors"
    kept = (tmp_path / name).read_bytes()
    damaged = {"cut": kept[:-1000], "noise": b"\xff" * 1000, "config": b"[]"}
    (tmp_path / name).write_bytes(damaged[damage])
    with pytest.raises(ValueError, match="no language model at .*fetch it again") as e:
        load_model(tmp_path)
    assert "\n" not in str(e.value) and str(tmp_path) in str(e.value)


def test_a_model_that_looks_ahead_is_refused(llama, tmp_path):
    from transformers import AutoModel, BertConfig, BertForMaskedLM

    size = dict(hidden_size=32, num_hidden_layers=1, num_attention_heads=2)
    size |= dict(initializer_range=0.5)  # large enough that the context matters
    bert = BertForMaskedLM(BertConfig(vocab_size=80, intermediate_size=32, **size))
    for part in (bert, llama[1]):
        part.save_pretrained(tmp_path)
    with pytest.raises(ValueError, match="is no causal language model .*BertLMHead"):
        load_model(tmp_path)
    with pytest.raises(ValueError, match="is no causal language model .*MaskedLM"):
        as_model((bert, llama[1]))
    bare = AutoModel.from_config(llama[0].config)
    with pytest.raises(ValueError, match="is no causal language model .*has no head"):
        as_model((bare, llama[1]))


def test_a_folder_is_the_model_that_was_saved_there(llama, tmp_path):
    for part in llama:
        part.save_pretrained(tmp_path)
    found = transfer_matrix(TOYS, tmp_path, scoring="perplexity", **FEW)
    truth = transfer_matrix(TOYS, llama, scoring="perplexity", **FEW)
    np.testing.assert_allclose(found.values, truth.values, atol=1e-5)


def test_the_module_loads_where_torch_is_missing():
    code = (
        "import sys; sys.modules['torch'] = sys.modules['transformers'] = None\n"
        "import benchnb.tasks.transfer as t\n"
        "task = t.toy_tasks(9)[0]\n"
        "try: t.transfer_matrix([task], 'folder')\n"
        "except ImportError as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == "models need: pip install 'benchnb[llm]'\n", done.stderr


# Servers ----------------------------------------------------------------------------


@contextmanager
def served(reply):
    "A server on a free port; reply gets the number of the request and its body"
    seen = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            seen.append((dict(self.headers), body))
            status, head, data = reply(len(seen), body)
            self.send_response(status)
            for name, value in head.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", seen
    finally:
        server.shutdown()
        server.server_close()


def said(text, logprobs=None):
    choice = {"text": text, "logprobs": logprobs}
    answer = {"choices": [choice], "usage": {"total_tokens": 7}}
    return 200, {}, json.dumps(answer).encode()


def echo_of(pair):
    "A server with log-probabilities: the small model behind vLLM's format"
    import torch

    def reply(_, body):
        text, (model, tokenizer) = body["prompt"], pair
        coded = tokenizer(text, return_offsets_mapping=True)
        ids, starts = coded["input_ids"], [a for a, _ in coded["offset_mapping"]]
        with torch.inference_mode():
            steps = model(torch.tensor([ids])).logits[0].log_softmax(-1)
        found = [steps[n - 1, ids[n]].item() for n in range(1, len(ids))]
        more = {"text_offset": [*starts, len(text)]}
        more["token_logprobs"] = [None, *found, -1.0]
        return said(text + " red", more)

    return reply


@pytest.mark.parametrize("scoring", ["likelihood", "perplexity"])
def test_an_endpoint_with_log_probabilities_agrees_with_the_model(llama, scoring):
    few = FEW | dict(scoring=scoring, seeds=1, queries=4)
    with served(echo_of(llama)) as (url, seen):
        server = Endpoint(url, "m", key="secret", workers=2)
        found = transfer_matrix([*TOYS[:2], LONG], server, **few)
        assert server.tokens == 7 * len(seen)
    truth = transfer_matrix([*TOYS[:2], LONG], llama, **few)
    np.testing.assert_allclose(found.values, truth.values, atol=1e-4)
    assert seen[0][0]["Authorization"] == "Bearer secret"
    assert "secret" not in repr(server) + server.identity()


FAULTS = {
    "429": (429, {"Retry-After": "0.01"}, b"{}"),
    "500": (500, {}, b"oops"),
    "garbage": (200, {}, b"<html>gateway</html>"),
    "no choices": (200, {}, b'{"choices": []}'),
    "empty": (200, {}, b""),
}


def quick(url, **more):
    return Endpoint(url, "m", **dict(retries=3, wait=0.001, workers=2) | more)


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_that_passes_is_no_fault(fault):
    def reply(number, body):
        return FAULTS[fault] if number % 2 else said(" a\nb")

    few = FEW | dict(scoring="exact", queries=2)
    with served(reply) as (url, seen):
        found = transfer_matrix(TOYS[:1], quick(url, workers=1), **few)
    assert len(seen) == 8 and 0 <= found.values.min() <= 1


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_that_stays_is_one_clear_line_and_nothing_is_lost(tmp_path, fault):
    journal, few = tmp_path / "cells.jsonl", FEW | dict(scoring="exact", queries=2)
    with served(lambda n, body: FAULTS[fault] if n > 4 else said(" a")) as (url, _):
        with pytest.raises(ConnectionError, match="no answer in 4 tries") as error:
            transfer_matrix(TOYS[:2], quick(url), journal=journal, **few)
        assert "\n" not in str(error.value)
        assert f"finished cells are in the journal '{journal}'" in str(error.value)
        assert journal.read_text().count("\n") == 1 + 2
    with served(lambda n, body: said(" a")) as (url, seen):
        server = quick(url)
        server.identity = lambda: journal_of(error)  # the same server, mended
        transfer_matrix(TOYS[:2], server, journal=journal, **few)
    assert len(seen) == 2 * 6


def journal_of(error):
    "The identity of the server that an error names"
    return f"{str(error.value).split()[0]} m"


def test_the_pause_that_a_server_asks_for_is_kept():
    times = []

    def reply(number, body):
        times.append(time.monotonic())
        return (429, {"Retry-After": "0.4"}, b"") if number == 1 else said("a")

    with served(reply) as (url, _):
        assert quick(url).ask({"prompt": "p"})["choices"][0]["text"] == "a"
    assert times[1] - times[0] >= 0.4


def test_a_server_that_says_nothing_times_out():
    with served(lambda n, body: time.sleep(1) or said("a")) as (url, seen):
        with pytest.raises(ConnectionError, match="2 tries .*timed out"):
            quick(url, timeout=0.1, retries=1).ask({"prompt": "p"})
        time.sleep(1)


def test_no_journal_is_spoken_of_where_none_was_named():
    server = quick("http://127.0.0.1:9", retries=0)
    with pytest.raises(ConnectionError, match="run the same call again$"):
        transfer_matrix(TOYS, server, **FEW | dict(scoring="exact"))


@pytest.mark.parametrize(
    "change, message",
    [
        (dict(retries=-1), "retries must be a whole number from 0, got -1"),
        (dict(workers=0), "workers must be a whole number from 1, got 0"),
        (dict(workers=1.5), "workers must be a whole number from 1, got 1.5"),
        (dict(timeout="a"), "timeout must be seconds above 0, got 'a'"),
        (dict(timeout=0), "timeout must be seconds above 0, got 0"),
        (dict(timeout=None), "timeout must be seconds above 0, got None"),
        (dict(wait=float("nan")), "wait must be seconds above 0, got nan"),
        (dict(key="secret\n"), "^key must be one line of plain ASCII: strip its newl"),
        (dict(key=7), "^key must be one line"),
        (dict(model=""), "the name of the model must be a text"),
        (dict(url="http://a b"), "url must be without blanks"),
    ],
)
def test_a_server_that_cannot_be_asked(change, message):
    with pytest.raises(ValueError, match=message) as error:
        Endpoint(**dict(url="http://localhost:1", model="m") | change)
    assert "\n" not in str(error.value) and "secret" not in str(error.value)


def test_what_will_not_pass_is_not_tried_again():
    with served(lambda n, body: (404, {}, b'{"error": "no model m"}')) as (url, seen):
        with pytest.raises(
            ValueError, match="HTTP 404: .*no model m.*check url, model"
        ):
            transfer_matrix(TOYS, quick(url, workers=1), **FEW | dict(scoring="exact"))
    assert len(seen) == 1


def test_without_log_probabilities_only_exact_match_is_left():
    with served(lambda n, body: said(" a")) as (url, seen):
        for scoring in ("likelihood", "perplexity"):
            with pytest.raises(ValueError, match="gives no log-prob.*scoring='exact'"):
                transfer_matrix(TOYS, quick(url), scoring=scoring, **FEW)
        assert len(seen) == 2  # it is noticed at the first answer


# A real server ----------------------------------------------------------------------


@pytest.fixture(scope="module")
def transformers_serve(llama, tmp_path_factory):
    "transformers serve on a folder, on a free port, ended by its own pid"
    pytest.importorskip("fastapi")
    pytest.importorskip("uvicorn")
    folder = tmp_path_factory.mktemp("served")
    for part in llama:
        part.save_pretrained(folder)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    code = "from transformers.cli.transformers import main; main()"
    command = [sys.executable, "-c", code, "serve", str(folder), "--port", str(port)]
    environment = os.environ | {"HF_HUB_OFFLINE": "1", "CUDA_VISIBLE_DEVICES": ""}
    with open(folder / "log.txt", "w") as log:
        server = subprocess.Popen(
            [*command, "--device", "cpu"], env=environment, stdout=log, stderr=log
        )
    url, until = f"http://127.0.0.1:{port}", time.monotonic() + 90
    try:
        while server.poll() is None and time.monotonic() < until:
            try:
                urllib.request.urlopen(f"{url}/health", timeout=2)
                break
            except OSError:
                time.sleep(0.2)
        else:
            pytest.fail((folder / "log.txt").read_text()[-2000:])
        yield url, str(folder)
    finally:
        server.terminate()
        try:
            server.wait(20)
        except subprocess.TimeoutExpired:
            server.kill()


def test_a_real_server_writes_what_the_model_writes(transformers_serve, llama):
    server = Endpoint(*transformers_serve, workers=2, retries=2, stop=False)
    local = LocalModel(*llama)
    context = FLAN.context(TOYS[0], TOYS[0].examples[:3])
    queries = [FLAN.query.format(input=e.input) for e in TOYS[1].examples[:4]]
    found = server.generate(server.start(context), queries, 3)
    assert found == local.generate(local.start(context), queries, 3)
    assert server.tokens > 0


def test_a_real_server_gives_a_matrix_by_exact_match(transformers_serve, llama):
    few = FEW | dict(scoring="exact", queries=2, seeds=1, limit=3)
    server = Endpoint(*transformers_serve, workers=2, retries=2, stop=False)
    found = transfer_matrix(TOYS[:2], server, **few)
    truth = transfer_matrix(TOYS[:2], llama, **few)
    np.testing.assert_array_equal(found.values, truth.values)


def test_a_real_server_without_log_probabilities_says_so(transformers_serve):
    server = Endpoint(*transformers_serve, retries=0)
    with pytest.raises(ValueError, match="use scoring='exact'|HTTP 4"):
        transfer_matrix(TOYS[:2], server, **FEW)
