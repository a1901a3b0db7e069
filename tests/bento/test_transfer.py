"What the chapter on transfer does not show: scorings, kills, journals, bad input"

import re
import signal
import subprocess
import sys

import numpy as np
import pytest
from helpers.language_models import ALL, FEW, TOYS, made

from benchnb.bento.local_model import LocalModel
from benchnb.bento.prompts import MMLU, Example, Prompt, Task
from benchnb.bento.transfer import (
    journal_answers,
    journal_cells,
    read_journal,
    read_transfer,
    resample_transfer,
    transfer_matrix,
)

SCORINGS = ("likelihood", "perplexity", "exact", "last_character")


@pytest.mark.equation("bento", "1")
@pytest.mark.parametrize("scoring", list(SCORINGS))
def test_with_the_cache_as_without(pair, scoring):
    few = FEW | dict(scoring=scoring, seeds=1)
    cached = transfer_matrix(ALL, pair, **few)
    naive = transfer_matrix(ALL, pair, cache=False, batch=1, **few)
    np.testing.assert_allclose(cached.values, naive.values, atol=1e-4)


class Tight(LocalModel):
    "Holds so many rows at once"

    def __init__(self, *pair, rows, error, **more):
        super().__init__(*pair, **more)
        self.rows, self.error, self.sizes = rows, error, []

    def padded(self, prefix, rows):
        self.sizes.append(len(rows))
        if len(rows) > self.rows:
            raise self.error("CUDA out of memory. Tried to allocate 2.00 GiB")
        return super().padded(prefix, rows)


@pytest.mark.parametrize("scoring", list(SCORINGS))
def test_short_of_memory_the_batch_is_halved_and_nothing_changes(llama, scoring):
    import torch

    few = FEW | dict(scoring=scoring, seeds=1)
    tight = Tight(*llama, rows=3, error=torch.OutOfMemoryError, batch=16)
    found = transfer_matrix(ALL, tight, **few)
    whole = transfer_matrix(ALL, llama, **few)
    np.testing.assert_allclose(found.values, whole.values, atol=1e-5)
    assert tight.size <= 3 and sum(size > 3 for size in tight.sizes) <= 2 * len(ALL)


def test_no_room_for_one_row_is_an_error_and_other_errors_are_their_own(llama):
    import torch

    tight = Tight(*llama, rows=0, error=torch.OutOfMemoryError)
    with pytest.raises(MemoryError, match="a text of .* take fewer exemplars"):
        transfer_matrix(TOYS, tight, **FEW)
    broken = Tight(*llama, rows=0, error=lambda text: RuntimeError("shapes differ"))
    with pytest.raises(RuntimeError, match="shapes differ"):
        transfer_matrix(TOYS, broken, **FEW)


@pytest.mark.parametrize(
    "change",
    [
        dict(prompt=MMLU),
        dict(scoring="exact"),
        dict(model="other weights"),
    ],
    ids=lambda change: next(iter(change)),
)
def test_a_foreign_journal_is_refused_by_name(llama, tmp_path, change):
    journal = tmp_path / "cells.journal"
    transfer_matrix(TOYS, llama, journal=journal, **FEW)
    given = dict(tasks=TOYS, model=llama, journal=journal, **FEW) | change
    if "model" in change:
        given["model"] = made(seed=1)
    before = journal.read_bytes()
    with pytest.raises(ValueError, match=r"cells\.journal' is the journal of another"):
        transfer_matrix(**given)
    assert journal.read_bytes() == before


def test_journals_of_two_measurements_are_not_mixed(llama, tmp_path):
    one, other = tmp_path / "one.journal", tmp_path / "other.journal"
    for path, tasks in ((one, TOYS[:2]), (other, TOYS)):
        transfer_matrix(tasks, llama, journal=path, **FEW)
    with pytest.raises(ValueError, match="other.journal' belongs to another measure"):
        read_journal(one, other)


BROKEN_OFF = """
import os, signal, sqlite3, sys
base = sqlite3.connect(sys.argv[1], isolation_level=None)
base.execute("PRAGMA cache_size = 1")  # what does not fit is written at once
base.execute("BEGIN EXCLUSIVE")
for n in range(2000):
    base.execute("INSERT INTO pieces VALUES (?, ?)", (str(n), "x" * 500))
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_write_that_was_broken_off_is_undone_when_it_is_read(llama, tmp_path):
    journal = tmp_path / "1.journal"
    transfer_matrix(TOYS, llama, journal=journal, **FEW)
    command = [sys.executable, "-c", BROKEN_OFF, str(journal)]
    assert subprocess.run(command, timeout=60).returncode == -signal.SIGKILL
    assert (tmp_path / "1.journal-journal").exists()  # of SQLite, to go back by
    assert len(journal_cells(journal)) == 2 * len(TOYS) ** 2


@pytest.mark.parametrize("scoring", ["likelihood", "perplexity"])
def test_answers_are_kept_and_other_questions_can_be_taken(llama, tmp_path, scoring):
    journal = tmp_path / "cells.journal"
    few = FEW | dict(scoring=scoring)
    found = transfer_matrix(ALL, llama, journal=journal, **few)
    answers = journal_answers(journal)
    assert len(answers) == found.queries.sum() * len(ALL)
    again = resample_transfer(answers, share=1.0)
    order = [again.tasks.index(task.name) for task in ALL]
    np.testing.assert_allclose(
        again.values[:, order][:, :, order], found.values, atol=1e-5
    )
    third = resample_transfer(answers, share=1 / 3, seed=1)
    assert (third.queries == (found.queries / 3).round()).all()
    draws = [resample_transfer(answers, seed=n).matrix for n in range(60)]
    one = answers[(answers["source"] == "uneven") & (answers["target"] == "uneven")]
    by_seed = one.groupby("seed")["score"].agg(["var", "size"])
    error = np.sqrt((by_seed["var"] / by_seed["size"]).sum()) / len(by_seed)
    place = again.tasks.index("uneven")
    spread = np.std([d[place, place] for d in draws])
    assert spread == pytest.approx(error, rel=0.3, abs=0.01)


def test_what_is_too_long_is_found_before_the_first_question(llama):
    "The last of the tasks is too long: not one prefix is read"
    model = LocalModel(*llama)
    words = " ".join(["red"] * 300)
    long = Task("long", [(f"{n} {words}", "red", ("red", "blue")) for n in range(6)])
    with pytest.raises(ValueError, match="takes 400 .*exemplars of '.*', questions of"):
        transfer_matrix([*TOYS, long], model, **FEW)
    assert model.tokens == 0


class Reasoner:
    "A model of one's own that reasons, and is right where the number is even"

    tokens, tokenizer, seen = 0, None, []
    identity = staticmethod(lambda: "reasoner")

    def start(self, context):
        self.seen.append(context)
        return context

    def generate(self, prefix, queries, limit, stop):
        self.seen.append((limit, stop))
        ends = (int(re.search(r"n(\d+)", query)[1]) % 2 for query in queries)
        return [f"Think.\nSo the answer is ({'BA'[n == 0]})." for n in ends]


def test_reasoning_is_shown_in_exemplars_and_the_answer_found_after_it():
    said = "Think. So the answer is A."
    reasoned = [Example(f"n{n}", "(A)", None, said) for n in range(12)]
    task, model = Task("reasoned", reasoned[:8], dev=reasoned[8:]), Reasoner()
    few = FEW | dict(scoring="chain_of_thought", seeds=1)
    found = transfer_matrix([task], model, **few)
    assert found.values.item() == 0.5
    assert model.seen[0].count(said) == 3 and model.seen[1] == (512, "\n\n")


HEAD = "seed,source,target,score,queries\n"


@pytest.mark.parametrize(
    "text, message",
    [
        (HEAD, "a transfer matrix with no row"),
        (HEAD + "0,NA,NA,good,3\n", "target 'NA' is missing or no number"),
        (HEAD + "0,a,a,.5,2.5\n", "target 'a' is missing or no number"),
        (HEAD + "0,a,b,.5,2\n", "is missing or"),
        (HEAD + "0,a,a,.5,2\n0,a,a,.5,2\n", "is repeated"),
        (HEAD.replace("queries", "x") + "0,a,a,.5,2\n", "no column"),
        ("x,a\nb,1\n", "a square table names the same tasks"),
    ],
)
def test_bad_matrices(tmp_path, text, message):
    (tmp_path / "a.csv").write_text(text)
    with pytest.raises(
        ValueError, match=rf"a\.csv' is no transfer matrix: .*{message}"
    ) as e:
        read_transfer(tmp_path / "a.csv")
    assert "\n" not in str(e.value)


@pytest.mark.parametrize(
    "change, message",
    [
        (dict(exemplars=12), "task 'first of a-h' has 12 examples .* 13 are needed"),
        (dict(queries=0.5), "queries must be a whole number of at least 1, or None"),
        (dict(tasks=[TOYS[0]] * 2), "task 'first of a-h' is there twice"),
        (dict(tasks=[Task("t", [("q", "a")] * 9)]), "'t' has examples without options"),
        (dict(exemplars=0, prompt=Prompt("", "{input} {target}", "{input}")),
         "nothing stands before the questions"),
    ],
)  # fmt: skip
def test_bad_settings(llama, change, message):
    with pytest.raises(ValueError, match=message):
        transfer_matrix(**dict(tasks=TOYS, model=llama, **FEW) | change)


def test_bad_kinds_are_seen_before_any_work():
    for change in (dict(prompt="x"), dict(tasks=["folder"])):
        with pytest.raises(TypeError, match="a Prompt such as MMLU|a list of Task"):
            transfer_matrix(**dict(tasks=TOYS, model="/none", **FEW) | change)
