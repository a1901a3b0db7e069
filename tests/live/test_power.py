"""On disk means on disk: the power is cut at every point, and locks that do nothing."""

import errno
import fcntl
import json
import os
import shutil
from functools import partial

import pytest
from helpers.evaluations import in_child, known_answers, tell_all
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


LATE = [pytest.param(n, marks=pytest.mark.slow) for n in ("random", "tailored_bench")]


@pytest.mark.parametrize("name", [*LATE, "a width"])
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


@pytest.mark.slow
def test_no_answer_is_lost_where_each_host_sees_its_own_locks_only(
    tmp_path, monkeypatch
):
    "One host has read, 24 others tell, then the first one writes"
    known, folder = known_answers(), tmp_path / "mine"
    Evaluation(prepared(fitted("random"), 25), folder=folder)
    first, *others = Evaluation.load(folder).ask()
    replace = os.replace

    def late(*names):
        os.replace = replace
        for name in others:
            answer = {name: known[name]}
            child = in_child(partial(Evaluation.load(folder).tell, answer))
            assert os.waitpid(child, 0)[1] == 0
        replace(*names)

    monkeypatch.setattr(fcntl, "flock", lambda *args: None)
    monkeypatch.setattr(os, "replace", late)
    Evaluation.load(folder).tell({first: known[first]})
    live = Evaluation.load(folder)
    assert {*live.answers} == {first, *others} and live.ask() == []
    assert live.answers.items() <= known.items()


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
    monkeypatch.setattr(disk, "LOCK_TIMEOUTS", (0, 0))
    with open(tmp_path / "mine" / ".lock") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with pytest.warns(UserWarning, match="mine.* waiting"):
            with pytest.raises(OSError, match="another process .*mine.*again") as error:
                live.tell({live.ask()[0]: 1.0})
    assert "\n" not in str(error.value)
    live.tell({live.ask()[0]: 1.0})


# Records ------------------------------------------------------------------


def test_what_is_in_a_record_only_is_an_answer(tmp_path):
    "evaluation.json of before the answers, as a host keeps it that was slow"
    live, known = begin(tmp_path / "mine", "tailored_bench"), known_answers()
    old = (tmp_path / "mine" / disk.FILE).read_bytes()
    live.tell({n: known[n] for n in live.ask()[:2]})
    live.tell({n: np_nan(n, known) for n in live.ask()[:2]})
    tell_all(live, known)
    (tmp_path / "mine" / disk.FILE).write_bytes(old)
    again = Evaluation.load(tmp_path / "mine")
    assert str(again.answers) == str({n: again.answers[n] for n in live.answers})
    assert (
        again.told.fingerprint() == live.told.fingerprint()
        and again.rounds == live.rounds
    )


def np_nan(name, known):
    return float("nan") if name.endswith("1") else known[name]


def test_a_folder_of_before_the_records_is_loaded_and_goes_on(tmp_path):
    live, known = begin(tmp_path / "mine"), known_answers()
    live.tell({n: known[n] for n in live.ask()[:5]})
    shutil.rmtree(tmp_path / "mine" / "answers")
    again = Evaluation.load(tmp_path / "mine")
    assert again.answers == live.answers
    tell_all(again, known)
    assert Evaluation.load(tmp_path / "mine").ask() == []


@pytest.mark.parametrize("damage", ["cut", "empty", "changed"])
def test_a_damaged_record_is_refused_by_name(damage, tmp_path):
    live = begin(tmp_path / "mine")
    live.tell(dict.fromkeys(live.ask()[:5], 1.0))
    (path,) = (tmp_path / "mine" / "answers").iterdir()
    text = path.read_text()
    text = {"cut": text[:-9], "empty": "", "changed": text.replace("1.0", "0.0")}[
        damage
    ]
    path.write_text(text)
    with pytest.raises(ValueError, match=f"{path.name}.* not those that") as caught:
        Evaluation.load(tmp_path / "mine")
    assert "\n" not in str(caught.value)


def test_two_hosts_that_tell_different_scores_are_refused(tmp_path):
    live = begin(tmp_path / "mine")
    shutil.copytree(tmp_path / "mine", tmp_path / "other")
    other, name = Evaluation.load(tmp_path / "other"), live.ask()[0]
    live.tell({name: 1.0})
    other.tell({name: 0.0})
    (path,) = (tmp_path / "other" / "answers").iterdir()
    shutil.copy(path, tmp_path / "mine" / "answers")
    with pytest.raises(ValueError, match=f"{path.name}.*{name}.* 1 before and 0"):
        Evaluation.load(tmp_path / "mine")
    assert json.loads(path.read_text())["answers"] == {name: 0.0}
