"benchnb run: after a kill the same command goes on, and ends at the same estimate"

import fcntl
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from helpers.crash import run
from helpers.forked import forked

from benchnb.cli.app import main
from benchnb.cli.score import Rounds
from benchnb.data.scores import Scores
from benchnb.evaluation.registry import get_method
from benchnb.evaluation.simulate import simulate
from benchnb.live.evaluation import Evaluation
from benchnb.live.repair import hold_run_lock
from benchnb.live.store import STORE_FILE

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


@pytest.fixture(scope="module")
def planned(tmp_path_factory):
    "A plan of several rounds, a true model, and the estimate of a simulation"
    rng, folder = np.random.default_rng(0), tmp_path_factory.mktemp("planned")
    skill, hard = np.linspace(-2, 2, 31), np.linspace(-1, 1, 60)
    chance = 1 / (1 + np.exp(hard - skill[:, None]))
    items = pd.DataFrame({"task": "t"}, [f"t/{n}" for n in range(60)])
    table = Scores((rng.random(chance.shape) < chance).astype(float), items)
    sources = table.select(models=table.models.index.drop(table.models.index[20]))
    truth = table.select(models=table.models.index[20:21])
    method = get_method("guarded_irt(rounds=5)").fit(sources)
    Evaluation(method, 20, folder=folder / "mine", harness="list", source=sources)
    answers = pd.Series(truth.values[0], items.index, name="score")
    answers.to_csv(folder / "truth.csv", index_label="item")
    (folder / "program.py").write_text(PROGRAM)
    again = get_method("guarded_irt(rounds=5)").fit(sources)
    return folder, simulate(again, truth, 20)[0]


@pytest.fixture
def place(planned, tmp_path, monkeypatch):
    "A copy of them, in which a test may change what it likes"
    shutil.copytree(planned[0], tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path, planned[1]


@pytest.mark.parametrize("round", [1, 3])
def test_a_killed_run_goes_on(place, round):
    folder, wanted = place
    (folder / "kill").write_text(str(round))
    done = forked(RUN)
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
    forked(RUN)
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


@pytest.mark.parametrize("typed", ["lm_eval", "bin/lm_eval"])
def test_the_lm_eval_that_was_typed_is_run(typed, place, monkeypatch, capfd):
    "Not the package of this Python: the script may register a model of its own"
    program = place[0] / "bin" / "lm_eval"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\necho ours; exit 3\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    monkeypatch.setattr("benchnb.cli.score.find_spec", lambda name: True)
    typed = str(place[0] / typed) if "/" in typed else typed
    assert main(["run", "mine", "--", typed, "--model", "toy"]) == 2
    said = capfd.readouterr().err
    assert "ours" in said and "lm_eval' stopped with status 3" in said


def test_the_answers_of_an_unfinished_round_are_kept(place, capsys):
    "All but a line that was cut short, and an answer without a score"
    folder, wanted = place
    asked, truth = Evaluation.load("mine").ask(), pd.read_csv("truth.csv", dtype=str)
    given = truth.set_index("item").loc[asked[:3], "score"]
    part = folder / "mine" / "logs" / "round_1.part"
    part.mkdir(parents=True)
    lines = ["item,score", *(f"{n},{x}" for n, x in given.items()), f"{asked[3]},"]
    (part / "answers.csv").write_text("\n".join([*lines, f"{asked[4]},0"]))
    assert main(RUN) == 0
    assert "3 answers of a round that was not finished are kept" in (
        " ".join(capsys.readouterr().err.split())
    )
    ran = (folder / "ran.txt").read_text().split()
    assert sorted(ran) == sorted({*wanted.items} - {*asked[:3]})
    assert Evaluation.load("mine").estimate().score == pytest.approx(wanted.score, 1e-9)


def test_stopped_anywhere_the_rows_of_an_unfinished_round_are_kept(place):
    "They are in the file, byte by byte, until the store has them"
    asked = Evaluation.load("mine").ask()[:3]
    file = place[0] / "mine" / "logs" / "round_1.part" / "answers.csv"
    file.parent.mkdir(parents=True)
    file.write_text("\n".join(["item,score", *(f"{n},1" for n in asked), "t/5"]))
    rows = file.read_bytes()

    def run_until_a_round():
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(Rounds, "run_one", lambda rounds: sys.exit(0))
            with pytest.raises(SystemExit):
                main(RUN)

    for stop in range(1, 1000):
        copy = place[0] / f"copy_{stop}"
        shutil.copytree(place[0] / "mine", copy / "mine")
        done = run(run_until_a_round, copy, stop)
        left = copy / file.relative_to(place[0])
        assert left.read_bytes() == rows, stop
        if done.status >= 0:
            break
    assert done.status == 0 and stop > 5, done.err
    assert {*asked} <= Evaluation.load(copy / "mine").answers.keys()


@pytest.mark.parametrize("text", ["no table\n", "item,score\n{0},1\n{0},0\n"])
def test_an_unfinished_round_that_cannot_be_read_is_renamed(text, place, capsys):
    folder, wanted = place
    text = text.format(Evaluation.load("mine").ask()[0])
    part = folder / "mine" / "logs" / "round_1.part"
    part.mkdir(parents=True)
    (part / "answers.csv").write_text(text)
    assert main(RUN) == 0
    said = " ".join(capsys.readouterr().err.split())
    assert "cannot be read, it is renamed to round_1.part.aside" in said
    assert (part.parent / "round_1.part.aside" / "answers.csv").read_text() == text
    assert Evaluation.load("mine").estimate().score == pytest.approx(wanted.score, 1e-9)


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


@pytest.mark.slow
def test_of_two_runs_at_once_the_second_is_one_line(place):
    folder, wanted = place
    (folder / "first.py").write_text(NESTED + PROGRAM)
    done = forked(FIRST)
    assert done.returncode == 0, done.stderr
    said = (folder / "second.txt").read_text()
    assert said.startswith("2 benchnb: error: process ") and said.count("\n") == 1
    assert " on " in said and "'mine'" in said and "estimate mine --repair" in said
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
    number = getattr(signal, by)
    done = forked(FIRST)  # nohup and shells in the background have some ignored
    assert done.returncode in (130, -number)
    assert main(FIRST) == 0
    assert Evaluation.load("mine").estimate().score == pytest.approx(wanted.score, 1e-9)


def dies_when_it_starts(number):
    "A command runs, and nobody knows its number"

    class Popen(subprocess.Popen):
        def __init__(self, words, **how):
            super().__init__(words, **how)
            if words[1:2] == ["first.py"]:
                os.kill(os.getpid(), number)

    subprocess.Popen = Popen


PAUSES = """
import signal, sys
from pathlib import Path
if not Path("stayed.txt").exists():
    Path("stayed.txt").touch()
    signal.pause()
"""


@pytest.mark.parametrize("by", ["SIGKILL", "SIGTERM", "SIGINT"])
def test_a_command_that_is_starting_ends_with_its_run(by, place):
    folder, wanted = place
    (folder / "first.py").write_text(PAUSES + PROGRAM)
    number = getattr(signal, by)
    done = forked(FIRST, before=lambda: dies_when_it_starts(number))
    assert done.returncode == (130 if by == "SIGINT" else -number), done.stderr
    assert by != "SIGINT" or not (folder / "mine" / "run.lock").exists()
    (folder / "stayed.txt").touch()  # it may have ended before
    assert main(FIRST) == 0
    assert Evaluation.load("mine").estimate().score == pytest.approx(wanted.score, 1e-9)


def test_a_command_that_got_away_is_not_joined(place, capsys):
    "It keeps the folder of the logs, in which nobody else may write"
    part = place[0] / "mine" / "logs" / "round_1.part"
    part.mkdir(parents=True)
    handle = os.open(part.parent, os.O_RDONLY)
    fcntl.flock(handle, fcntl.LOCK_EX)
    assert main(RUN) == 2
    assert "still runs in 'mine/logs'" in capsys.readouterr().err
    assert part.exists()  # which it still writes
    os.close(handle)
    assert main(RUN) == 0


# benchnb estimate --repair ---------------------------------------------------------


REPAIR = ["estimate", "mine", "--repair"]


def test_repair_says_that_all_agrees(place, capsys):
    assert main(RUN) == 0
    capsys.readouterr()
    assert main(REPAIR) == 0
    said = capsys.readouterr().out
    assert "20 of 60 items" in said and "agree" in said


def test_rounds_are_repaired_that_contradict_each_other(place, capsys):
    "As two runs at once left them: the same items twice, with other scores"
    folder, wanted = place
    (folder / "kill").write_text("2")
    forked(RUN)
    rounds = folder / "mine" / "logs"
    table = pd.read_csv(rounds / "round_1" / "answers.csv")
    (rounds / "round_2").mkdir()
    table.assign(score=1 - table["score"]).to_csv(
        rounds / "round_2" / "answers.csv", index=False
    )
    capsys.readouterr()
    assert main(RUN) == 2
    assert "benchnb estimate mine --repair" in capsys.readouterr().err
    assert (rounds / "round_2").exists()
    assert main(REPAIR) == 0
    assert "renamed to round_2.aside: " in capsys.readouterr().out
    assert not (rounds / "round_2").exists() and len(list(rounds.glob("*.aside")))
    assert main(RUN) == 0
    assert Evaluation.load("mine").estimate().score == pytest.approx(wanted.score, 1e-9)


def test_repair_sets_a_damaged_log_aside(place, capsys):
    folder, wanted = place
    (folder / "kill").write_text("3")
    forked(RUN)
    last = folder / "mine" / "logs" / "round_2" / "answers.csv"
    last.write_bytes(b"\0" * 100)
    capsys.readouterr()
    assert main(RUN) == 2
    assert "benchnb estimate mine --repair" in capsys.readouterr().err
    assert main(REPAIR) == 0
    assert main(RUN) == 0
    assert Evaluation.load("mine").estimate().score == pytest.approx(wanted.score, 1e-9)


@pytest.mark.parametrize("host", ["node7", None])
def test_the_lock_of_a_run_that_is_gone(host, place, capsys):
    "Another host that has not renewed it, or a process of this one that has ended"
    lock = place[0] / "mine" / "run.lock"
    with hold_run_lock(place[0] / "mine"):
        text = lock.read_text()
    if host:
        text = re.sub("host=.*", f"host={host}", text)
        lock.write_text(text)
        assert main(RUN) == 2  # it may be alive
        said = capsys.readouterr().err
        assert f"process {os.getpid()} on {host} runs 'mine'" in said
        assert main(REPAIR) == 2 and lock.read_text() == text
        assert f"{host} runs 'mine'" in capsys.readouterr().err
        os.utime(lock, (0, 0))
    else:
        done = subprocess.Popen(["true"])
        done.wait()
        lock.write_text(re.sub("pid=.*", f"pid={done.pid}", text))
    old = lock.read_bytes()
    assert main(REPAIR) == 0 and not lock.exists()
    said = capsys.readouterr().err
    assert " is gone" in said and (host or f"{done.pid}") in said
    lock.write_bytes(old)
    if host:
        os.utime(lock, (0, 0))
    capsys.readouterr()
    assert main(RUN) == 0
    said = capsys.readouterr().err
    assert said.count(" is gone: going on") == 1 and (host or f"{done.pid}") in said


def test_a_lost_store_is_named_and_its_logs_are_told_again(place, capsys):
    folder, wanted = place
    shutil.copytree("mine", "planned")
    (folder / "kill").write_text("3")
    forked(RUN)
    told = Evaluation.load("mine").told.results
    Path("mine").rename("lost")
    Path("lost", STORE_FILE).write_bytes(b"")
    for words in (["estimate", "lost"], ["estimate", "lost", "--repair"]):
        capsys.readouterr()
        assert main(words) == 2
        said = capsys.readouterr().err
        assert "'lost/evaluation.db' is damaged, restore it from a copy" in said
        assert "tell it 'lost/told.csv'" in said and said.count("\n") == 1
    Path("planned").rename("mine")
    assert main(["tell", "mine", "lost/told.csv"]) == 0
    assert len(told) > 5 and Evaluation.load("mine").told.results == told
    assert main(RUN) == 0
    assert Evaluation.load("mine").estimate().score == pytest.approx(wanted.score, 1e-9)


def test_without_locks_of_files_the_commands_are_there(place):
    "As on Windows, where the module fcntl is missing"
    code = "import sys, tqdm, typer, benchnb.cli.report, benchnb.live.repair\n"
    code += "import benchnb.cli.app as app\n"
    code += "from threadpoolctl import ThreadpoolController as limits\n"
    code += "limits._load_libraries = lambda self: None  # it asks Windows itself\n"
    code += "sys.modules['fcntl'], sys.platform = None, 'win32'\nsys.exit(app.main())"
    done = subprocess.run([sys.executable, "-c", code, *RUN], capture_output=True)
    assert done.returncode == 0, done.stderr
    assert Evaluation.load("mine").ask() == []
