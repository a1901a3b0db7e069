"""Live evaluations: a process is killed and another goes on; bad answers and damaged
files are refused and change nothing; nothing that is read runs code."""

import json
import os
import shutil
import signal
import subprocess
import sys
import textwrap
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from helpers.small import (
    METHODS,
    estimates,
    files_in,
    fitted,
    halves,
    prepared,
    shown,
    table,
    with_values,
)

from benchnb.data.scores import Scores
from benchnb.evaluation import registry
from benchnb.evaluation.method import Cohort, Coreset, Estimate, Method
from benchnb.evaluation.registry import _digest, load_method, register, save_method
from benchnb.live.session import Session

TESTS = Path(__file__).parent
NAMES = [*METHODS, *(f"per_task({name})" for name in METHODS)]
every_method = pytest.mark.parametrize("name", METHODS)
BUDGET, SEED = 12, 3


def target(row=0):
    "Known scores of one target, by item"
    scores = halves()[1]
    return pd.Series(scores.values[row].astype(float), scores.items.index)


def simulated(name, row=0):
    "What the simulation says about that target"
    one = halves()[1].select(models=[row])
    return estimates(fitted(name), one, BUDGET, SEED)[0]


def start(name, folder):
    "A session that has not been told anything"
    return Session(prepared(fitted(name), BUDGET, SEED), folder=folder)


def finish(session, known):
    "Answer whatever is asked"
    while session.ask():
        session.tell(known[session.ask()])
    return session.estimate()


# Killed, and resumed by another process ----------------------------------------

KILLED = """
import os, signal, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from test_method import NAMES, start, target
for name in NAMES:
    session = start(name, Path(sys.argv[2], name))
    session.tell(target()[session.ask()])
print("told", flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture(scope="module")
def killed(tmp_path_factory):
    "A folder of sessions, one per method, whose process was killed after one answer"
    folder = tmp_path_factory.mktemp("killed")
    command = [sys.executable, "-c", KILLED, str(TESTS), str(folder)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (-signal.SIGKILL, "told\n"), done.stderr
    return folder


@pytest.mark.parametrize("name", NAMES)
def test_a_killed_session_ends_like_the_simulation(name, killed, tmp_path):
    folder = shutil.copytree(killed / name, tmp_path / "session")
    before = files_in(folder)
    assert sorted(before) == ["arrays.npz", "method.json", "session.json"]
    session = Session.load(folder, halves()[0])
    assert files_in(folder) == before  # going on is no change
    assert len(session.rounds) == 1
    assert shown(finish(session, target())) == shown(simulated(name))
    again = Session.load(folder)  # and once more, when all is told
    assert again.ask() == [] and len(again.rounds) == len(session.rounds)
    assert shown(again.estimate()) == shown(session.estimate())


@pytest.mark.parametrize("name", NAMES)
def test_a_session_without_a_folder_ends_like_the_simulation(name):
    assert shown(finish(start(name, None), target(4))) == shown(simulated(name, 4))


@every_method
def test_nothing_is_fitted_again(name, killed, tmp_path, monkeypatch):
    def refuse(*args, **kwargs):
        raise AssertionError("fitted or prepared again")

    folder = shutil.copytree(killed / name, tmp_path / "session")
    kind = type(fitted(name))
    monkeypatch.setattr(kind, "fit", refuse)
    monkeypatch.setattr(kind, "prepare", refuse)
    assert 0 <= finish(Session.load(folder), target()).score <= 1


# Bad answers -------------------------------------------------------------------


def drop(good):
    return good.iloc[:-1]


def add(good):
    return {**good, "geometry/1": 1.0}


def swap(good):
    return {**good.iloc[1:], "geometry/1": 1.0}


def double(good):
    return pd.concat([good, good.iloc[:1]])


def put(value):
    return lambda good: {**good, good.index[1 % len(good)]: value}


BAD = {
    "a missing item": (drop, ValueError, "has no score: give NaN"),
    "an extra item": (add, ValueError, "'geometry/1' was not asked for"),
    "another item": (swap, ValueError, "'geometry/1'"),
    "a repeated item": (double, ValueError, "has two scores"),
    "a negative score": (put(-0.5), ValueError, "score -0.5 of item '{1}'"),
    "a percentage": (put(57.0), ValueError, "score 57 of item '{1}'"),
    "an infinite score": (put(np.inf), ValueError, "score inf of item '{1}'"),
    "text": (put("right"), TypeError, "score 'right' of item '{1}'"),
    "a number as text": (put("1.0"), TypeError, "score '1.0' of item '{1}'"),
    "a list": (put([1]), TypeError, "item '{1}'"),
    "nothing": (lambda good: {}, ValueError, "has no score"),
    "positions": (lambda good: pd.Series(good.to_numpy()), ValueError, "'0' was not"),
    "a bare list": (lambda good: good.tolist(), TypeError, "dict or Series"),
    "None": (lambda good: None, TypeError, "dict or Series"),
}


@every_method
def test_bad_answers_are_named_and_change_nothing(name, killed, tmp_path):
    folder = shutil.copytree(killed / name, tmp_path / "session")
    for session in (start(name, tmp_path / "new"), Session.load(folder)):
        if not session.ask():
            continue  # a method of one round has its answer
        asked, before = session.ask(), files_in(tmp_path)
        good = target()[asked]
        for make, kind, words in BAD.values():
            with pytest.raises(kind) as caught:
                session.tell(make(good))
            message = str(caught.value)
            assert words.replace("{1}", asked[1 % len(asked)]) in message, message
            assert "\n" not in message
            assert session.ask() == asked
            assert files_in(tmp_path) == before
        assert shown(finish(session, target())) == shown(simulated(name))


def test_answers_after_the_end_are_refused(tmp_path):
    session = start(METHODS[0], tmp_path)
    finish(session, target())
    before = files_in(tmp_path)
    with pytest.raises(ValueError, match="nothing is asked for"):
        session.tell({})
    assert files_in(tmp_path) == before


@every_method
def test_an_estimate_before_the_end_is_refused(name, tmp_path):
    session = start(name, None)
    with pytest.raises(ValueError, match=f"{len(session.ask())} items are still"):
        session.estimate()


@every_method
def test_truth_values_and_numpy_numbers_are_answers(name):
    session = start(name, None)
    known = target().astype(bool)
    while session.ask():
        session.tell({item: np.bool_(known[item]) for item in session.ask()})
    assert shown(session.estimate()) == shown(simulated(name))


# Answers without a score -------------------------------------------------------


@pytest.mark.parametrize("unknown", [np.nan, None, float("nan")])
@every_method
def test_items_without_a_score_are_named(name, unknown, tmp_path):
    session, dropped = start(name, tmp_path), []
    while session.ask():
        asked = session.ask()
        dropped += asked[::2]
        answers = target()[asked].astype(object)
        answers[asked[::2]] = unknown
        session.tell(answers)
    estimate = session.estimate()
    assert estimate.unscored == dropped
    assert 0 <= estimate.score <= 1
    text = (tmp_path / "session.json").read_text()
    assert "null" in text and "NaN" not in text  # plain JSON, for every reader
    assert shown(Session.load(tmp_path).estimate()) == shown(estimate)


@every_method
def test_without_any_score_the_sources_speak(name, tmp_path):
    session = start(name, tmp_path)
    while session.ask():
        session.tell(dict.fromkeys(session.ask(), np.nan))
    estimate = session.estimate()
    assert estimate.score == pytest.approx(halves()[0].performance().mean())
    assert estimate.interval == (0, 1)
    assert any("no item was scored" in note for note in estimate.notes)
    assert estimate.unscored == estimate.items and estimate.items
    assert "mean of the sources" in repr(estimate)


# Folders of others, and damage -------------------------------------------------


def test_a_folder_with_a_session_is_not_begun_again(tmp_path):
    session = start(METHODS[0], tmp_path)
    session.tell(target()[session.ask()])
    before = files_in(tmp_path)
    with pytest.raises(FileExistsError, match=r"Session\.load"):
        start(METHODS[0], tmp_path)
    assert files_in(tmp_path) == before


def test_a_folder_that_was_left_before_the_session_began_can_be_used(tmp_path):
    "Killed between saving the method and the session"
    start(METHODS[0], tmp_path)
    (tmp_path / "session.json").unlink()
    with pytest.raises(FileNotFoundError, match="no session in"):
        Session.load(tmp_path)
    session = start(METHODS[0], tmp_path)
    assert shown(finish(session, target())) == shown(simulated(METHODS[0]))


@every_method
def test_a_session_of_other_sources_is_refused(name, killed, tmp_path):
    folder = shutil.copytree(killed / name, tmp_path / "session")
    before = files_in(folder)
    source = halves()[0]
    values = source.values.copy()
    values[0, 0] = 1 - values[0, 0]
    for other in (with_values(source, values), source.select(models=range(9))):
        with pytest.raises(ValueError, match="other sources") as caught:
            Session.load(folder, other)
        assert str(folder) in str(caught.value)
    assert files_in(folder) == before


def test_a_method_of_other_sources_is_refused(killed, tmp_path):
    folder = shutil.copytree(killed / METHODS[0], tmp_path / "session")
    other = prepared(type(fitted(METHODS[0]))().fit(halves(table(seed=5))[0]), BUDGET)
    save_method(other, folder)
    with pytest.raises(ValueError, match="other sources"):
        Session.load(folder)


def test_a_session_of_another_budget_or_seed_is_refused(killed, tmp_path):
    "The method beside it now asks for other items"
    name = "random" if "random" in METHODS else METHODS[0]
    folder = shutil.copytree(killed / name, tmp_path / "session")
    save_method(prepared(fitted(name), BUDGET, SEED + 1), folder)
    with pytest.raises(ValueError, match="in round 1 the method now asks for other"):
        Session.load(folder)


def test_a_session_that_is_not_there_is_named(tmp_path):
    for load in (Session.load, load_method):
        with pytest.raises(FileNotFoundError, match="check the path") as caught:
            load(tmp_path / "nowhere")
        assert "nowhere" in str(caught.value)
    with pytest.raises(ValueError, match="damaged"):
        (tmp_path / "session.json").mkdir()
        (tmp_path / "method.json").write_text("{}")
        load_method(tmp_path)


FILES = ["session.json", "method.json", "arrays.npz"]


@pytest.mark.parametrize("file", FILES)
@every_method
def test_files_cut_short_are_refused(name, file, killed, tmp_path):
    folder = shutil.copytree(killed / name, tmp_path / "session")
    path = folder / file
    whole = path.read_bytes()
    places = {0, 1, 2, len(whole) // 2, *range(len(whole) - 3, len(whole))}
    for cut in sorted({*places, *np.linspace(3, len(whole) - 4, 12, dtype=int)}):
        path.write_bytes(whole[:cut])
        with pytest.raises(ValueError, match="damaged") as caught:
            Session.load(folder)
        assert str(folder) in str(caught.value)
    path.unlink()
    with pytest.raises((ValueError, FileNotFoundError)) as caught:
        Session.load(folder)
    assert str(folder) in str(caught.value)


@pytest.mark.parametrize("file", FILES)
@every_method
def test_files_with_wrong_bytes_are_refused_or_harmless(name, file, killed, tmp_path):
    folder = shutil.copytree(killed / name, tmp_path / "session")
    path, rng, refused = folder / file, np.random.default_rng(0), 0
    whole = path.read_bytes()
    for _ in range(25):
        odd = bytearray(whole)
        for place in rng.integers(0, len(odd), rng.integers(1, 4)):
            odd[place] = rng.integers(256)
        path.write_bytes(odd)
        try:
            session = Session.load(folder)
        except ValueError as error:
            assert str(folder) in str(error) or "in round" in str(error)
            refused += 1
        else:
            assert 0 <= finish(session, target()).score <= 1
            shutil.copytree(killed / name, folder, dirs_exist_ok=True)
    assert refused >= (5 if file == "session.json" else 24)


def one_round(text):
    "A session file of one round"
    return f'{{"sources": "x", "rounds": [{text}]}}'


ODD_JSON = {
    "a list": "[]",
    "a number": "3",
    "null": "null",
    "deep": "[" * 100_000,
    "no rounds": '{"sources": "x"}',
    "rounds that are none": '{"sources": "x", "rounds": 3}',
    "a number as round": one_round("3"),
    "a round without scores": one_round('{"asked": []}'),
    "more items than scores": one_round('{"asked": ["a"], "scores": []}'),
    "a score in words": one_round('{"asked": ["a"], "scores": ["b"]}'),
    "a score of 7": one_round('{"asked": ["a"], "scores": [7]}'),
    "an infinite score": one_round('{"asked": ["a"], "scores": [Infinity]}'),
    "a list as item": one_round('{"asked": [["a"]], "scores": [1]}'),
    "an item twice": one_round('{"asked": ["a", "a"], "scores": [1, 1]}'),
}


@pytest.mark.parametrize("case", ODD_JSON)
@pytest.mark.parametrize("file", ["session.json", "method.json"])
def test_files_of_something_else_are_refused(case, file, killed, tmp_path):
    folder = shutil.copytree(killed / METHODS[0], tmp_path / "session")
    (folder / file).write_text(ODD_JSON[case])
    with pytest.raises(ValueError, match="damaged") as caught:
        Session.load(folder)
    assert str(folder) in str(caught.value)


# Nothing that is read runs code ------------------------------------------------


class Bomb:
    "An object whose pickle makes a file when it is opened"

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


def sign(folder, change):
    "Change the saved method and make its digest fit again, as an attacker would"
    path = folder / "method.json"
    raw = json.loads(path.read_text())
    change(raw["method"])
    raw["digest"] = _digest(raw["method"], (folder / "arrays.npz").read_bytes())
    path.write_text(json.dumps(raw))


def test_an_attacker_could_sign(tmp_path):
    "Else the two tests below would show nothing"
    save_method(prepared(fitted(METHODS[0]), BUDGET), tmp_path)
    sign(tmp_path, lambda raw: raw["state"].update(extra_={"value": 3}))
    assert load_method(tmp_path).extra_ == 3


def test_a_pickle_among_the_arrays_is_not_opened(tmp_path):
    name = METHODS[0]
    save_method(prepared(fitted(name), BUDGET), tmp_path)
    array, *_ = zipfile.ZipFile(tmp_path / "arrays.npz").namelist()
    with np.load(tmp_path / "arrays.npz") as file:
        arrays = dict(file)
    evil = np.empty(1, dtype=object)
    evil[0] = Bomb(tmp_path / "opened")
    arrays[array.removesuffix(".npy")] = evil
    np.savez_compressed(tmp_path / "arrays.npz", **arrays)
    sign(tmp_path, lambda raw: None)
    with pytest.raises(ValueError, match="damaged"):
        load_method(tmp_path)
    assert not (tmp_path / "opened").exists()
    with np.load(tmp_path / "arrays.npz", allow_pickle=True) as file:
        file[array.removesuffix(".npy")]
    assert (tmp_path / "opened").exists()  # the bomb was a real one


def test_a_pickle_instead_of_the_arrays_is_not_opened(tmp_path):
    import pickle

    save_method(prepared(fitted(METHODS[0]), BUDGET), tmp_path)
    (tmp_path / "arrays.npz").write_bytes(pickle.dumps(Bomb(tmp_path / "opened")))
    sign(tmp_path, lambda raw: None)
    with pytest.raises(ValueError, match="damaged"):
        load_method(tmp_path)
    assert not (tmp_path / "opened").exists()


@pytest.mark.parametrize("call", ["os:mkdir", "per_task(os:mkdir)", "evil_module:Mine"])
def test_a_file_names_registered_methods_only(call, tmp_path, monkeypatch):
    (tmp_path / "evil_module.py").write_text("import os; os.mkdir('opened')\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    save_method(prepared(fitted(METHODS[0]), BUDGET), tmp_path / "saved")
    opened = {"path": {"value": "opened"}} if "os:" in call else {}
    sign(tmp_path / "saved", lambda raw: raw.update(name=call, parameters=opened))
    with pytest.raises(ValueError, match="damaged"):
        load_method(tmp_path / "saved")
    assert not (tmp_path / "opened").exists()


def test_objects_are_not_pickled_on_the_way_out(tmp_path):
    method = fitted(METHODS[0])
    for state in (np.array([{}], dtype=object), {"a": 1}, Bomb("x"), lambda: 1):
        method.extra_ = state
        with pytest.raises(TypeError, match="'extra_'"):
            save_method(method, tmp_path / "saved")
    assert not (tmp_path / "saved").exists()


# Looking at all targets at once ------------------------------------------------


def test_a_request_to_a_cohort_is_answered_own_row_first():
    heard = []

    class Curious(Method):
        name = "curious"

        def run(self, rng):
            rows = yield Cohort(np.array([3, 1, 4]))
            heard.append(rows)
            return Estimate(float(rows[0].mean()), notes=(f"{len(rows)} targets",))

    source, targets = halves()
    method = Curious().fit(source)
    answers = targets.values[:, [3, 1, 4]].astype(float)
    for row, estimate in enumerate(estimates(method, targets, 3)):
        others = np.delete(answers, row, axis=0)
        np.testing.assert_array_equal(heard[row], [answers[row], *others])
        assert estimate.items == list(targets.items.index[[3, 1, 4]])
        assert estimate.notes == ("6 targets",)
    session = Session(method, 3)
    session.tell(target()[session.ask()])  # a live target is alone
    np.testing.assert_array_equal(heard[-1], answers[:1])
    alone = estimates(method, targets.select(models=[0]), 3)[0]
    assert shown(session.estimate()) == shown(alone)


# Faults while saving -----------------------------------------------------------


@every_method
def test_a_disk_that_is_full_leaves_the_session_as_it_was(name, tmp_path, monkeypatch):
    session = start(name, tmp_path)
    asked, before = session.ask(), files_in(tmp_path)

    def full(*args):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", full)
        with pytest.raises(OSError, match="session.json.*No space left"):
            session.tell(target()[asked])
    assert files_in(tmp_path) == before
    assert session.ask() == asked
    assert shown(finish(session, target())) == shown(simulated(name))


def test_a_method_that_fails_leaves_the_session_as_it_was(tmp_path, monkeypatch):
    class Fragile(Method):
        name = "fragile"
        broken = True

        def run(self, rng):
            seen = yield np.arange(3)
            if type(self).broken:
                raise ZeroDivisionError("not today")
            return Estimate(float(seen.mean()))

    monkeypatch.setattr(registry, "_METHODS", dict(registry._METHODS))
    register(Fragile)
    session = Session(Fragile().fit(halves()[0]), 3, folder=tmp_path)
    asked, before = session.ask(), files_in(tmp_path)
    with pytest.raises(ZeroDivisionError):
        session.tell(target()[asked])
    assert (session.ask(), files_in(tmp_path)) == (asked, before)
    monkeypatch.setattr(Fragile, "broken", False)
    assert session.tell(target()[asked]).estimate().items == asked


def test_a_kill_in_the_middle_of_saving_leaves_the_last_answer(tmp_path):
    "The new file is complete beside the old one, but not yet in its place"
    code = f"""
        import os, signal, sys
        sys.path[:0] = [{str(TESTS)!r}, {str(TESTS.parent)!r}]
        from test_method import METHODS, Path, start, target
        session = start(METHODS[0], Path({str(tmp_path)!r}))
        os.replace = lambda *args: os.kill(os.getpid(), signal.SIGKILL)
        session.tell(target()[session.ask()])
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)])
    assert done.returncode == -signal.SIGKILL
    session = Session.load(tmp_path)
    assert session.rounds == []
    assert shown(finish(session, target())) == shown(simulated(METHODS[0]))


def test_a_method_that_could_not_be_loaded_again_is_not_saved(tmp_path):
    "An unregistered class is refused before the first answer, not after the last"

    class Nameless(Coreset):
        name = "nameless"

        def prepare(self, budget, rng):
            super().prepare(budget, rng)
            self.coreset_ = np.arange(budget)
            return self

    method = Nameless().fit(Scores(np.eye(6)))
    with pytest.raises(ValueError, match="put @register above its class"):
        Session(method, 3, folder=tmp_path / "mine")
