"""Killed and given again, a transfer command makes the matrix of an undisturbed run,
and asks no question twice but those of the cell that it was measuring: on every path.
"""

import signal
import subprocess
import sys
import threading
from collections import Counter

import helpers.vllm_server as server
import numpy as np
import pytest
from helpers.kills import asked, environment, killed, run
from helpers.language_models import linked, tasks_and_model

from benchnb.bento.transfer import journal_cells, read_transfer, transfer_matrix
from benchnb.cli.app import main

TASKS, SEEDS, ROWS = ("art", "law", "sea"), 2, 12
CELL = ROWS - 2  # questions of a cell; two are exemplars
WORDS = ["transfer", "tasks", "--out", "m.csv", "--exemplars", "2", "--seeds", "2"]
WORDS += ["--batch", "4"]  # three batches in a cell
LOCAL = [*WORDS, "--model", "model"]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    "Three tasks, a small model in a folder, its matrix and what it was asked for it"
    folder = tmp_path_factory.mktemp("killed")
    tasks, pair = tasks_and_model(folder, TASKS, ROWS)
    return folder, pair, transfer_matrix(tasks, pair, exemplars=2, seeds=2, batch=4)


@pytest.fixture
def here(made, tmp_path, monkeypatch):
    return linked(made[0], tmp_path, monkeypatch)


def records(folder):
    "Finished cells, in all journals"
    return sum(len(journal_cells(path)) for path in folder.glob("*.journal"))


def same_matrix(made):
    np.testing.assert_allclose(read_transfer("m.csv").values, made[2].values, atol=1e-9)


def twice(counts):
    "Questions that were asked once more than needed"
    assert len(counts) == SEEDS * len(TASKS) ** 2 * CELL
    return sum(counts.values()) - len(counts)


MOMENTS = {  # when, and finished cells and questions asked in vain by then
    "after the fifth record": ("record 5 self", 5, 0),
    "in the middle of the fifth cell": ("batch 14 self", 4, 8),
}
first, *others = MOMENTS
EVERY = [pytest.param(first, marks=pytest.mark.slow)]
EVERY += [pytest.param(moment, marks=pytest.mark.night) for moment in others]


@pytest.mark.parametrize("moment", EVERY)
def test_a_local_model(here, made, moment):
    kill, cells, vain = MOMENTS[moment]
    assert killed(run(LOCAL, here, kill=kill))
    assert records(here) == cells and not (here / "m.csv").exists()
    assert sum(asked(here).values()) == cells * CELL + vain
    done = run(LOCAL, here)
    assert done.returncode == 0, done.stderr
    left = 18 - cells
    assert f"{left * CELL} questions, {left * CELL} prompts" in done.stdout
    same_matrix(made)
    assert twice(asked(here)) == vain


@pytest.mark.parametrize("moment", EVERY)
def test_a_shard_among_others(here, made, moment):
    "The first shard is whole, the second is killed: it alone goes on"
    kill, cells, vain = MOMENTS[moment]
    first, second = ([*LOCAL, "--shard", f"{n}/2"] for n in (1, 2))
    assert run(first, here).returncode == 0
    assert killed(run(second, here, kill=kill))
    assert records(here) == 9 + cells
    assert main([*WORDS, "--merge"]) == 2  # a cell is missing
    assert run(second, here).returncode == 0
    assert main([*WORDS, "--merge"]) == 0
    same_matrix(made)
    assert twice(asked(here)) == vain


AT = [pytest.param(5 * CELL, marks=pytest.mark.night, id="the last of a cell")]


@pytest.mark.slow
@pytest.mark.parametrize("at", [*AT, pytest.param(5 * CELL + 3, id="the third")])
def test_a_model_on_a_server(here, made, monkeypatch, at):
    "The server kills its client while it answers a certain prompt"
    prompts, answer, client = Counter(), server.choice_of, threading.Event()
    process = []

    def counted(pair, number, prompt, body):
        prompts[tuple(prompt)] += 1
        if sum(prompts.values()) == at:
            client.wait(60)
            process[0].send_signal(signal.SIGKILL)
        return answer(pair, number, prompt, body)

    monkeypatch.setattr(server, "choice_of", counted)
    with server.vllm_like(made[1]) as (url, _):
        command = [*WORDS, "--model", "m", "--url", url, "--tokenizer", "model"]
        argv = [sys.executable, "-m", "benchnb", *command]
        process.append(subprocess.Popen(argv, env=environment(here)))
        client.set()
        assert process[0].wait(120) == -signal.SIGKILL
        assert records(here) == at // CELL - (at % CELL == 0)
        assert main(command) == 0
    same_matrix(made)
    assert twice(prompts) == CELL  # one request, which is one cell here
