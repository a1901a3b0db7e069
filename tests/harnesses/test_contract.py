"""The contract of harnesses for each of ours, and for one of somebody else: damaged and
malicious logs give a table or one line, never a crash, a hang, or a file outside."""

import os
import re
import shlex
import zipfile
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest
from helpers.logs import EXAMPLES, inspect_log, lm_eval, write_eval
from helpers.small import files_in
from helpers.variants import VARIANTS

from benchnb import harnesses
from benchnb.cli.app import main
from benchnb.data.sources import load
from benchnb.evaluation.checks import BrokenRule
from benchnb.harnesses.checks import PROPERTIES, check_harness, outcome
from benchnb.harnesses.harness import (
    HARNESSES,
    Harness,
    Round,
    Subset,
    get_harness,
    list_harnesses,
)
from benchnb.harnesses.logs import Choices
from benchnb.live.evaluation import Evaluation
from tools import matrix

metrics = ("acc", "choice", "exact_match", "correct")
LENIENT = {
    "helm": Choices(metrics, repeated="mean"),
    "inspect": Choices(metrics, repeated="mean", interrupted="keep"),
}
STRICT = Choices(model="m", task="t")
named = pytest.mark.parametrize("writer", EXAMPLES, ids=lambda w: w.__name__)


def lenient(writer):
    "The choices with which an example is read"
    return LENIENT.get(EXAMPLES[writer], Choices(repeated="mean"))


@named
def test_every_harness_keeps_the_contract(writer):
    if writer.__name__ == "wide":
        pytest.skip("a wide table has no unscored item here")
    name = EXAMPLES[writer]
    result = check_harness(
        get_harness(name), writer, lenient(writer), variants=VARIANTS[name]
    )
    assert all(result.values())


def test_the_matrix_of_harnesses_and_properties_is_whole_and_on_the_page():
    assert {*VARIANTS} == {*HARNESSES} == {*matrix.WRITERS}
    for name in HARNESSES:
        cannot = get_harness(name).cannot
        assert {*cannot} <= {*PROPERTIES} and all(map(str.split, cannot.values()))
        assert not {*cannot} & {*VARIANTS[name]}
    table = matrix.matrix()
    assert table == matrix.on_page(), "python -m tools.matrix writes it"
    assert "|  |" not in table


def test_a_harness_that_passes_over_a_property_is_found_out():
    class Silent(get_harness("lm-eval").__class__):
        cannot = {}

    with pytest.raises(BrokenRule, match="nothing is said of 'validity'"):
        check_harness(Silent, lm_eval, damages=1, variants=VARIANTS["lm-eval"])


def test_every_harness_has_an_example():
    assert {*EXAMPLES.values()} == {*list_harnesses()}


@pytest.mark.parametrize("name", HARNESSES)
def test_the_list_says_of_each_harness_what_its_class_says(name):
    entry = HARNESSES[name]
    harness = get_harness(name)
    cls = type(harness)
    assert harness.name == name
    assert entry.place == f"{cls.__module__}:{cls.__qualname__}"
    assert entry.runs_items == harness.runs_items
    assert entry.numbers == harness.numbers
    assert entry.program == harness.program
    assert entry.signs == harness.signs
    assert entry.looks_inside == (cls.holds is not Harness.holds)
    assert entry.agents == cls.agents


@pytest.mark.slow
@named
def test_much_damage(writer):
    times = int(os.environ.get("BENCHNB_EXAMPLES") or 1) * 500
    name = EXAMPLES[writer]
    check_harness(get_harness(name), writer, lenient(writer), times, VARIANTS[name])


def test_deep_nesting_in_a_line(tmp_path):
    path = lm_eval(tmp_path)
    deep = "[" * 100_000 + "]" * 100_000
    path.write_text('{"doc_id": 0, "doc": ' + deep + ', "acc": 1}\n')
    with pytest.raises(ValueError, match="line 1 .* nested too deeply"):
        get_harness("lm-eval").read(path)


# Names ---------------------------------------------------------------------------


@pytest.mark.parametrize("task", ["a,b", "-a", "", " a", "a*", "a\nb", "\x1b[2J"])
@pytest.mark.parametrize("name", ["lm-eval", "inspect"])
def test_a_task_that_a_harness_would_take_for_something_else(name, task):
    subset = Subset({task: [1]}, {task: ["x"]})
    with pytest.raises(ValueError, match="no harness can be given the task") as no:
        get_harness(name).command(subset, Round(Path()))
    assert "\n" not in str(no.value)


def test_a_command_is_words_for_the_shell():
    subset = Subset({"a; rm x": [1], "$(b)": [2]}, {"a; rm x": ["x"], "$(b)": ["y"]})
    words = shlex.split(get_harness("lm-eval").command(subset, Round(Path("my plan"))))
    assert words[words.index("--tasks") + 1] == "a; rm x,$(b)"
    assert words[words.index("--samples") + 1] == "my plan/samples.json"
    assert shlex.split(get_harness("inspect").command(subset, Round(Path())))[2] == (
        "a; rm x"
    )


# Archives ------------------------------------------------------------------------


def test_a_zstd_frame_with_a_wrong_size(tmp_path):
    path = tmp_path / "a.eval"
    data = bytearray(pa.compress(b"[]" + b" " * 1000, "zstd", asbytes=True))
    data[5:9] = b"\xff\xff\xff\x7f"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("header.json", bytes(data))
    method = b"\x14\x00\x00\x00\x5d\x00"  # zstd
    path.write_bytes(path.read_bytes().replace(b"\x14" + bytes(5), method))
    assert "a.eval" in outcome(get_harness("inspect"), path, LENIENT["inspect"])


@pytest.mark.parametrize("name", ["../out.json", "/etc/x.json", "samples/../../x.json"])
def test_names_that_lead_out_of_an_archive(name, tmp_path):
    place = tmp_path / "deep" / "logs"
    head, samples = inspect_log("m", "quiz", ["C", "I"])
    path = write_eval(place / "a.eval", head, samples, **{name: {"evil": 1}})
    before = files_in(tmp_path)
    assert get_harness("inspect").read(path)[0].scores.tolist() == [1, 0]
    assert files_in(tmp_path) == before


def test_nothing_is_unpickled_or_evaluated():
    folder = Path(harnesses.__file__).parent
    text = "".join(path.read_text() for path in folder.glob("*.py"))
    for word in (r"pickle\.load", r"\beval\(", r"\bexec\(", "allow_pickle=True"):
        assert not re.search(word, text), word


# A harness of an installed package -----------------------------------------------

QUIZ = """
import csv, shlex
import numpy as np
from benchnb.data.files import naming
from benchnb.harnesses.harness import Harness, Round, Subset
from benchnb.harnesses.logs import ASK, Log

class Quiz(Harness):
    name, logs, pattern, program = "quiz", "quiz_*.csv", r"^quiz_.*[.]csv$", "quiz"
    cannot = {
        "validity": "a row has a score or none",
        "own number": "only items are written",
        "model": "the file's name is all that is written of it",
        "metric": "right or wrong, there is no other",
        "direction": "right is better",
    }

    def variants(self):
        def item(folder):
            (folder / "quiz_m.csv").write_text("a,1\\nb,0\\nc,1\\n")
            (folder / "quiz_n.csv").write_text("c,1\\na,1\\n")

        def runs(folder):
            (folder / "quiz_m.csv").write_text("a,1\\na,0\\nb,0\\n")

        return {"item": item, "runs": runs}

    def read(self, path, choices=ASK):
        with naming(path, "is no log of quiz"), open(path) as file:
            rows = [(name, float(x or "nan")) for name, x in csv.reader(file)]
            ids, scores = zip(*rows)
            model = str(path).rpartition("quiz_")[2].removesuffix(".csv")
            return [Log(model, "", np.array(ids, object), scores)]

    def command(self, subset, round):
        items = round.folder / self.items.format(round.suffix)
        return shlex.join(["quiz", "--items", str(items), "--model", round.model])

    def round_words(self, typed, place):
        return [*typed, place["items"], place["logs"]]

    def example(self, folder):
        path = folder / "quiz_m.csv"
        path.write_text("a,1\\nb,0\\nc,\\n")
        return path
"""
PROGRAM = """#!/usr/bin/env python3
import sys
items, logs = sys.argv[1:]
truth = dict(line.strip().split(",") for line in open("truth.csv"))
with open(logs + "/quiz_new.csv", "w") as file:
    file.writelines(f"{name.strip()},{truth[name.strip()]}\\n" for name in open(items))
"""


@pytest.fixture
def quiz(tmp_path, monkeypatch):
    "A package with a harness, as pip installs it: one module and its entry point"
    site = tmp_path / "site"
    (site / "quiz-1.0.dist-info").mkdir(parents=True)
    (site / "quiz_harness.py").write_text(QUIZ)
    about = site / "quiz-1.0.dist-info"
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: quiz\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(
        "[benchnb.harnesses]\nquiz = quiz_harness:Quiz\n"
    )
    program = tmp_path / "bin" / "quiz"
    program.parent.mkdir()
    program.write_text(PROGRAM)
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    monkeypatch.syspath_prepend(site)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_harness_in_one_file_imports_plans_and_runs(quiz, capsys):
    table = load("helm_gsm8k")
    for number, values in enumerate(table.values[:80]):
        row = pd.Series(values, table.items.index.str.replace("/", "_"))
        name = f"logs/quiz_m{number}.csv" if number else "truth.csv"
        Path(name).parent.mkdir(exist_ok=True)
        row.to_csv(name, header=False)
    assert main(["import", "quiz", "logs", "--out", "s.parquet"]) == 0
    plan = ["plan", "s.parquet", "--method", "tailored_bench", "--budget", "20"]
    assert main([*plan, "--folds", "0", "--out", "mine"]) == 0
    assert (
        "\nquiz --items mine/items_1.txt --model YOUR_MODEL\n"
        in capsys.readouterr().out
    )
    assert main(["run", "mine", "--", "quiz"]) == 0
    live = Evaluation.load("mine")
    assert live.plan.harness == "quiz" and len(live.answers) == 20
    assert len(list(Path("mine/logs").glob("round_*/quiz_new.csv"))) > 1
    assert main(["estimate", "--bundle", "helm-none", "mine/logs"]) == 2
    assert main(["import", "quizz", "logs", "--out", "x.parquet"]) == 2
    assert "no harness 'quizz': did you mean 'quiz'?" in capsys.readouterr().err
    check_harness(get_harness("quiz"))
