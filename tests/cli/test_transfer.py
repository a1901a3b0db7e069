"The command that measures a transfer matrix: shards, GPUs, a server, kills"

import numpy as np
import pandas as pd
import pytest
from helpers.language_models import linked, tasks_and_model
from helpers.vllm_server import vllm_like

from benchnb.bento.transfer import read_transfer, transfer_matrix
from benchnb.cli.app import main

FEW = ["--exemplars", "2", "--seeds", "2", "--batch", "5"]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    "Three tasks and a small model in a folder"
    folder = tmp_path_factory.mktemp("transfer")
    tasks, pair = tasks_and_model(folder, ("art", "law", "sea"), 9)
    whole = transfer_matrix(tasks, pair, exemplars=2, seeds=2, batch=5)
    return folder, pair, whole


@pytest.fixture
def here(made, tmp_path, monkeypatch):
    return linked(made[0], tmp_path, monkeypatch)


def measured(*more):
    return main(["transfer", "tasks", "--out", "m.csv", *FEW, *more])


@pytest.mark.slow
def test_shards_make_the_matrix_and_what_is_missing_is_named(here, made, capsys):
    for part in ("1/3", "3/3"):
        assert measured("--model", "model", "--shard", part) == 0
    assert measured("--merge") == 2
    assert "source 'law'" in capsys.readouterr().err
    assert measured("--model", "model", "--shard", "2/3") == 0
    assert measured("--merge", "--answers", "answers.parquet") == 0
    np.testing.assert_allclose(read_transfer("m.csv").values, made[2].values)
    answers = pd.read_parquet("answers.parquet")
    assert len(answers) == made[2].queries.sum() * 3


def test_a_model_on_a_server_gives_the_same_matrix(here, made, capsys):
    with vllm_like(made[1]) as (url, seen):
        assert measured("--model", "m", "--url", url, "--tokenizer", "model") == 0
    np.testing.assert_allclose(read_transfer("m.csv").values, made[2].values)
    questions = made[2].queries.sum() * 3
    said = f"{questions} questions, {questions} prompts in 18 requests"
    assert said in capsys.readouterr().out
    assert (seen["prompts"], len(seen["bodies"])) == (questions, 18)


@pytest.mark.parametrize(
    "words, message",
    [
        (["--shard", "9/8"], "--shard is such as 3/8, counted from 1, got '9/8'"),
        (["--merge"], "no journals of shards beside 'm.csv': measure them first"),
        ([], "name a model: --model FOLDER or --model NAME"),
        (["--model", "none"], "'none' is no model"),
        (["--model", "model", "--prompt", "x"], "--prompt is mmlu or flan, got 'x'"),
        (["--model", "model", "--scoring", "x"], "scoring must be one of"),
        (["--model", "model", "--exemplars", "99"], "has 9 examples to draw"),
    ],
)
def test_mistakes_are_one_line(here, capsys, words, message):
    assert measured(*words) == 2
    said = capsys.readouterr().err.strip()
    assert message in said and "\n" not in said.replace("benchnb: note", "")
