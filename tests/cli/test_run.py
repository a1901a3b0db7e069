"benchnb run: after a kill the same command goes on, and ends at the same estimate"

import signal
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from benchnb.cli.app import main
from benchnb.data.scores import Scores
from benchnb.evaluation.registry import get_method
from benchnb.evaluation.simulate import simulate
from benchnb.live.evaluation import Evaluation

# answers what is asked; in the round that the file kill names it kills benchnb
PROGRAM = """
import csv, os, signal, sys
from pathlib import Path
items, answers = sys.argv[1:]
truth = dict(csv.reader(open("truth.csv")))
wanted = [line.strip() for line in open(items) if line[0] != "#"]
with open("ran.txt", "a") as file:
    file.writelines(name + "\\n" for name in wanted)
rows = [("item", "score"), *((name, truth[name]) for name in wanted if name in truth)]
csv.writer(open(answers, "w")).writerows(rows)
kill = Path("kill")
if kill.exists() and f"round_{kill.read_text()}.part" in answers:
    kill.unlink()
    os.kill(os.getppid(), signal.SIGKILL)
"""
RUN = ["run", "mine", "--", sys.executable, "program.py", "{items}", "{answers}"]


@pytest.fixture
def place(tmp_path, monkeypatch):
    "A plan of several rounds, a true model, and the estimate of a simulation"
    rng = np.random.default_rng(0)
    skill, hard = np.linspace(-2, 2, 31), np.linspace(-1, 1, 60)
    chance = 1 / (1 + np.exp(hard - skill[:, None]))
    items = pd.DataFrame({"task": "t"}, [f"t/{n}" for n in range(60)])
    table = Scores((rng.random(chance.shape) < chance).astype(float), items)
    sources = table.select(models=table.models.index.drop(table.models.index[20]))
    truth = table.select(models=table.models.index[20:21])
    method = get_method("guarded_irt").fit(sources)
    Evaluation(method, 20, folder=tmp_path / "mine", harness="list", source=sources)
    answers = pd.Series(truth.values[0], items.index, name="score")
    answers.to_csv(tmp_path / "truth.csv", index_label="item")
    (tmp_path / "program.py").write_text(PROGRAM)
    monkeypatch.chdir(tmp_path)
    return tmp_path, simulate(get_method("guarded_irt").fit(sources), truth, 20)[0]


@pytest.mark.parametrize("round", [1, 3])
def test_a_killed_run_goes_on(place, round):
    folder, wanted = place
    (folder / "kill").write_text(str(round))
    done = subprocess.run([sys.executable, "-m", "benchnb", *RUN], capture_output=True)
    assert done.returncode == -9
    lost = set(Evaluation.load("mine").ask())
    assert main(RUN) == 0
    assert Evaluation.load("mine").estimate().score == pytest.approx(wanted.score, 1e-9)
    ran = pd.Series((folder / "ran.txt").read_text().split()).value_counts()
    assert set(ran.index) == set(wanted.items)
    assert set(ran.index[ran > 1]) <= lost  # only the round that was killed


def test_a_round_that_was_only_run_is_read(place):
    folder, wanted = place
    (folder / "kill").write_text("2")
    subprocess.run([sys.executable, "-m", "benchnb", *RUN], capture_output=True)
    (folder / "mine/logs/round_2.part").rename(folder / "mine/logs/round_2")
    assert main(RUN) == 0
    assert Evaluation.load("mine").estimate().score == pytest.approx(wanted.score, 1e-9)
    assert len((folder / "ran.txt").read_text().split()) == 20


@pytest.mark.parametrize(
    "typed, words",
    [
        (["no-such-program", "{items}"], "no program 'no-such-program'"),
        (["false", "{items}"], "'false' stopped with status 1"),
        (["true"], "say {items} where your command"),
        (["inspect", "--model", "m"], "say inspect eval TASK"),
        ([sys.executable, "empty.py", "{items}", "{answers}"], "none of the"),
    ],
)
def test_a_command_that_cannot_work_is_one_line(place, typed, words, capfd):
    program = "import sys; open(sys.argv[2], 'w').write('item,score\\nx,1\\n')"
    (place[0] / "empty.py").write_text(program)
    assert main(["run", "mine", "--", *typed]) == 2
    said = capfd.readouterr().err.strip().splitlines()[-1]
    assert said.startswith("benchnb: error: ") and words in said
    assert not Evaluation.load("mine").answers


# Two at once, and commands that outlive their parent ------------------------------

NESTED = """
import pathlib, subprocess, sys
if not pathlib.Path("second.txt").exists():  # a second run, while the first one runs
    pathlib.Path("second.txt").touch()
    words = [sys.executable, "-m", "benchnb", "run", "mine", "--", sys.executable]
    words += ["program.py", "{items}", "{answers}"]
    done = subprocess.run(words, capture_output=True, text=True)
    pathlib.Path("second.txt").write_text(f"{done.returncode} {done.stderr}")
"""
FIRST = [*RUN[:4], "first.py", *RUN[5:]]


def test_of_two_runs_at_once_the_second_is_one_line(place):
    folder, wanted = place
    (folder / "first.py").write_text(NESTED + PROGRAM)
    done = subprocess.run(
        [sys.executable, "-m", "benchnb", *FIRST], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    said = (folder / "second.txt").read_text()
    assert said.startswith("2 benchnb: error: process ") and said.count("\n") == 1
    assert " on " in said and "'mine'" in said and "run.lock" in said
    assert Evaluation.load("mine").estimate().score == pytest.approx(wanted.score, 1e-9)
    assert len((folder / "ran.txt").read_text().split()) == 20
    assert not list((folder / "mine").glob("run.lock*"))


STAYS = """
import os, signal, subprocess, sys
from pathlib import Path
if not Path("stayed.txt").exists():
    Path("stayed.txt").touch()
    subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"])
    os.kill(os.getppid(), signal.SIG)
    signal.pause()
"""


@pytest.mark.parametrize("by", ["SIGKILL", "SIGTERM", "SIGINT", "SIGHUP"])
def test_a_command_ends_with_its_run(by, place):
    "Its output is read until all that it started has closed it"
    folder, wanted = place
    (folder / "first.py").write_text(STAYS.replace("SIG)", f"{by})") + PROGRAM)
    words = [sys.executable, "-m", "benchnb", *FIRST]
    done = subprocess.run(words, capture_output=True, timeout=100)
    assert done.returncode in (130, -getattr(signal, by))
    assert main(FIRST) == 0
    assert Evaluation.load("mine").estimate().score == pytest.approx(wanted.score, 1e-9)
