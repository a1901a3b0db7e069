"""Every command that writes, stopped at every change of a file: what was there is old
or new, always whole, and the same command goes on and leaves nothing behind."""

import os

import matplotlib.pyplot  # here, and not in each child  # noqa: F401
import pytest
import seaborn  # noqa: F401
import sklearn.cluster  # noqa: F401
from helpers.crash import MODES, contents, run, sweep
from helpers.evaluations import known_answers
from helpers.small import halves

PLAN = "plan scores.parquet --method"
TABLE = '"answers"'
COMMANDS = {
    "compare": "compare scores.parquet --methods random,kmeans --budgets 10 --trials 2"
    " --out out.csv --rows rows.parquet --plot plot.png",
    "import": "import table long.csv --out out.parquet",
    "plan": f"{PLAN} kmeans --budget 10 --folds 3 --out mine",
    "plan, inspect": f"{PLAN} random --budget 10 --harness inspect --out new/mine",
    "plan, width": f"{PLAN} aipw --plus-minus 15 --harness list --out mine",
    "plan, bundle": "plan small --out mine",
    "publish": "publish scores.parquet --method random --budget 10 --folds 3"
    " --out small",
    "tell": "tell told answers.csv --format list",
    "tell, rounds": "tell rounds answers.csv --format list",
    "tell, width": "tell wide answers.csv --format list",
    "recommend": "recommend scores.parquet --budget 10 --methods random,aipw --trials 1"
    " --out out.csv",
}
NEEDS = {  # made before, in the folder where the command is given
    "plan, bundle": f"{COMMANDS['publish']}",
    "tell": f"{PLAN} random --budget 10 --harness list --out told",
    "tell, rounds": f"{PLAN} tailored_bench --budget 10 --harness list --out rounds",
    "tell, width": f"{PLAN} aipw --plus-minus 15 --harness list --out wide",
}


pytestmark = pytest.mark.usefixtures("few_trials")  # files are what counts here


@pytest.fixture(scope="module")
def start(tmp_path_factory):
    "For each command the folder where it is given"
    made = {}

    def folder(name):
        if name not in made:
            made[name] = tmp_path_factory.mktemp("start")
            source, known = halves()[0], known_answers()
            source.to_parquet(made[name] / "scores.parquet")
            lines = [f"{item},{score}" for item, score in known.items()]
            text = "\n".join(["item,score", *lines])
            (made[name] / "answers.csv").write_text(text)
            lines = [f"{m},{line}" for m in "ab" for line in lines]
            text = "\n".join(["model,item,score", *lines])
            (made[name] / "long.csv").write_text(text)
            if name in NEEDS:
                done = run(NEEDS[name].split(), made[name])
                assert done.status == 0, done.err
        return made[name]

    return folder


def answers(dump):
    "Item and score of the answers in a database; when an item is asked comes later"
    insert = f"INSERT INTO {TABLE}"
    rows = [line for line in dump.split("\n") if line.startswith(insert)]
    return {line.rpartition(",")[0] for line in rows}


def check(name, mode, stops, wanted, old):
    "Old or new, whole; and the same command goes on"
    new = {file: wanted[file] for file in wanted.keys() - old.keys()}
    for stop in stops:
        where = f"{name}, {mode} at {stop.at}"
        assert mode == "kill" or "Traceback" not in stop.first.err, where
        lines = {*stop.first.err.splitlines()}  # a note may come at each change
        assert mode == "kill" or len(lines) <= 1, stop.first.err
        for file, content in stop.between.items():
            versions = [had[file] for had in (old, wanted) if file in had]
            if name.startswith("tell") and file.endswith(".db") and len(versions) > 1:
                sets = [answers(text) for text in (old[file], content, wanted[file])]
                assert sets[0] <= sets[1] <= sets[2], f"{where} lost answers"
                assert sets[1] in (sets[0], sets[2]), f"{where}: a part of a tell"
                continue  # how the logs are read is remembered after they are told
            assert content in versions, f"{where}: {file}"
        made = new.keys() & stop.between.keys()
        done = stop.first.status == 0  # it could write all that matters: a plan stands
        if name.startswith(("plan", "publish")):  # a folder: all of it or nothing
            assert not made or made == new.keys(), f"{where}: only {sorted(made)}"
            done |= bool(made)  # and is not made again
        assert mode == "kill" or not stop.left, f"{where} left {stop.left}"
        assert done or stop.again.status == 0, f"{where}: {stop.again.err}"
        assert stop.after == wanted, where
        assert not stop.left_after, f"{where} leaves {stop.left_after} for ever"


QUICK = ["tell"]
MOST = None if os.environ.get("BENCHNB_EXAMPLES") else 4  # every stop, by night
MARKS = pytest.mark.slow, pytest.mark.night, pytest.mark.night
CASES = [(name, MODES[0], 2) for name in QUICK]
CASES += [
    pytest.param(name, mode, MOST, marks=mark)
    for mode, mark in zip(MODES, MARKS, strict=True)
    for name in COMMANDS
]


@pytest.mark.parametrize("name, mode, most", CASES)
def test_stopped_anywhere_a_command_goes_on(name, mode, most, start, tmp_path):
    folder = start(name)
    wanted, stops = sweep(COMMANDS[name].split(), folder, tmp_path, mode, most)
    assert len(stops) >= 2
    if mode == "full" and name.startswith("tell"):  # the database needs no new file
        assert "evaluation.db has the answers all the same" in stops[0].first.err
    else:
        assert all(stop.first.status for stop in stops[:1])
    check(name, mode, stops, wanted, contents(folder))
