"""On disk means on disk: the power is cut at every point, and locks that do nothing."""

import errno
import fcntl
import os

import pytest
from helpers.evaluations import known_answers, tell_all
from helpers.power import DISKS, cuts
from helpers.small import fitted, halves, prepared

from benchnb.cli.app import main
from benchnb.evaluation.registry import get_method
from benchnb.live import folder as disk
from benchnb.live.evaluation import Evaluation


def begin(folder, method="random", **how):
    "An evaluation of 12 items that has been told nothing"
    return Evaluation(prepared(fitted(method), 12), folder=folder, **how)


# The power is cut -----------------------------------------------------------------


@pytest.mark.parametrize("name", ["random", "tailored_bench", "a width"])
def test_answers_survive_a_cut_at_every_point(name, tmp_path):
    "What load gives is old or new; what tell has returned is there"
    start, known = tmp_path / "start", known_answers()
    start.mkdir()
    if name == "a width":
        source = halves()[0]
        method = get_method("random").fit(source)
        Evaluation(method, width=0.2, source=source, folder=start / "mine")
    else:
        begin(start / "mine", name)
    before = dict(Evaluation.load(start / "mine").answers)
    told = {n: known[n] for n in Evaluation.load(start / "mine").ask()[:7]}

    def tell():
        live = Evaluation.load("mine")
        live.tell(told)
        tell_all(live, known)

    found = cuts(tell, start, tmp_path / "cuts")
    assert len(found) > 8
    for at in found:
        for kind in DISKS:
            live = Evaluation.load(at / kind / "mine")
            assert before.items() <= live.answers.items() <= known.items(), (at, kind)
    whole = Evaluation.load(found[-1] / "synced" / "mine")
    assert whole.ask() == []
    assert whole.estimate().score == Evaluation.load(start / "mine").estimate().score


def test_a_plan_survives_a_cut_at_every_point(tmp_path):
    "The folder is there and can be used, or it is not there and can be made"
    start = tmp_path / "start"
    start.mkdir()
    halves()[0].to_parquet(start / "scores.parquet")
    words = "plan scores.parquet --method random --budget 12 --folds 3 --harness list"
    words = [*words.split(), "--out", "new/mine"]

    def plan():
        assert main(words) == 0

    found = cuts(plan, start, tmp_path / "cuts")
    for at in found:
        for kind in DISKS:
            place = at / kind / "new" / "mine"
            if disk.holds_evaluation(place):
                assert len(Evaluation.load(place).ask()) == 12, (at, kind)
                assert Evaluation.load(place).left_out(12) is not None
            else:
                disk.check_new(place)
    assert len(Evaluation.load(found[-1] / "synced" / "new" / "mine").ask()) == 12


# Locks that do nothing --------------------------------------------------------


def test_a_disk_without_locks_is_one_line(tmp_path, monkeypatch):
    live, known = begin(tmp_path / "mine"), known_answers()

    def none(*args):
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", none)
    with pytest.warns(UserWarning, match="mine.*No locks available") as caught:
        live.tell({live.ask()[0]: 1.0})
    assert "\n" not in str(caught[0].message)
    tell_all(live, known | live.answers)
    assert Evaluation.load(tmp_path / "mine").ask() == []


def test_a_held_lock_is_one_line_and_no_silent_wait(tmp_path, monkeypatch):
    live = begin(tmp_path / "mine")
    monkeypatch.setattr(disk, "PATIENCE", (0, 0))
    with open(tmp_path / "mine" / ".lock") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with pytest.warns(UserWarning, match="mine.* waiting"):
            with pytest.raises(OSError, match="another process .*mine.*again") as error:
                live.tell({live.ask()[0]: 1.0})
    assert "\n" not in str(error.value)
    live.tell({live.ask()[0]: 1.0})
