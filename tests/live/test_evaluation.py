"""Running evaluations: a process is killed and another goes on, several tell at once,
bad answers and damaged files are refused and change nothing, scores arrive late."""

import json
import os
import shutil
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from helpers.evaluations import evaluate, in_child, known_answers, tell_all
from helpers.small import (
    METHODS,
    NESTED,
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
from benchnb.evaluation.left_out import left_out_errors
from benchnb.evaluation.method import (
    Cohort,
    Coreset,
    Estimate,
    Flag,
    IntervalKind,
    Method,
)
from benchnb.evaluation.registry import get_method, register, save_method
from benchnb.live.evaluation import Evaluation
from benchnb.methods.guarded_irt import GuardedIRT

TESTS = Path(__file__).parents[1]
NAMES = [*METHODS, *NESTED]
every_method = pytest.mark.parametrize("name", METHODS)
SOME = ["aipw", "adaptive_irt", "guarded_irt", "tailored_bench", "per_task(random)"]
some_methods = pytest.mark.parametrize("name", SOME)
BUDGET, SEED = 12, 3


def target(row=0):
    "Known scores of one target, by item"
    return pd.Series(known_answers(row))


def simulated(name, row=0):
    "What the simulation says about that target; a new model has no name to draw by"
    one, method = halves()[1].select(models=[row]), fitted(name)
    method.fresh_per_target = False
    return estimates(method, one, BUDGET, SEED)[0]


def begin(name, folder):
    "An evaluation that has not been told anything"
    return Evaluation(prepared(fitted(name), BUDGET, SEED), folder=folder)


def finish(evaluation, known):
    "Answer what is asked; what the method itself says in the end"
    tell_all(evaluation, known)
    return evaluation.conversation.estimate


# Killed, and resumed by another process ----------------------------------------

KILLED = """
import os, signal, sys
from pathlib import Path
sys.path[:0] = [sys.argv[1], sys.argv[1] + "/live"]
from test_evaluation import NAMES, begin, target
for name in NAMES:
    run = begin(name, Path(sys.argv[2], name))
    run.tell(target()[run.ask()])
print("told", flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture(scope="module")
def killed(tmp_path_factory):
    "A folder of evaluations, one per method, whose process was killed after one answer"
    folder = tmp_path_factory.mktemp("killed")
    command = [sys.executable, "-c", KILLED, str(TESTS), str(folder)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (-signal.SIGKILL, "told\n"), done.stderr
    return folder


@pytest.mark.parametrize("name", NAMES)
def test_a_killed_evaluation_ends_like_the_simulation(name, killed, tmp_path):
    folder = shutil.copytree(killed / name, tmp_path / "new")
    before = files_in(folder)
    assert {*before} == {"arrays.npz", "method.json", "evaluation.json", ".lock"}
    run = Evaluation.load(folder, halves()[0])
    assert files_in(folder) == before  # going on is no change
    assert len(run.rounds) == 1
    assert shown(finish(run, target())) == shown(simulated(name))
    again = Evaluation.load(folder)  # and once more, when all is told
    assert again.ask() == [] and again.rounds == run.rounds
    assert shown(again.estimate()) == shown(run.estimate())


@pytest.mark.parametrize("name", NAMES)
def test_an_evaluation_in_memory_ends_like_the_simulation(name):
    assert shown(finish(begin(name, None), target(4))) == shown(simulated(name, 4))


@every_method
def test_nothing_is_fitted_again(name, killed, tmp_path, monkeypatch):
    def refuse(*args, **kwargs):
        raise AssertionError("fitted or prepared again")

    folder = shutil.copytree(killed / name, tmp_path / "new")
    kind = type(fitted(name))
    monkeypatch.setattr(kind, "fit", refuse)
    monkeypatch.setattr(kind, "prepare", refuse)
    assert 0 <= finish(Evaluation.load(folder), target()).score <= 1


# Bad answers -------------------------------------------------------------------


def put(value):
    return lambda good: {**good, good.index[1 % len(good)]: value}


BAD = {
    "an item of another benchmark": (
        lambda good: {**good, "poems/1": 1.0},
        ValueError,
        "'poems/1' is no item of this benchmark",
    ),
    "a repeated item": (
        lambda good: pd.concat([good, good.iloc[:1]]),
        ValueError,
        "has two scores",
    ),
    "a negative score": (put(-0.5), ValueError, "score -0.5 of item '{1}'"),
    "a percentage": (put(57.0), ValueError, "score 57 of item '{1}'"),
    "an infinite score": (put(np.inf), ValueError, "score inf of item '{1}'"),
    "text": (put("right"), TypeError, "score 'right' of item '{1}'"),
    "a number as text": (put("1.0"), TypeError, "score '1.0' of item '{1}'"),
    "a list": (put([1]), TypeError, "item '{1}'"),
    "nothing": (lambda good: {}, ValueError, "none of the"),
    "positions": (lambda good: pd.Series(good.to_numpy()), ValueError, "'0' is no"),
    "a bare list": (lambda good: good.tolist(), TypeError, "dict or Series"),
    "None": (lambda good: None, TypeError, "dict or Series"),
}


@some_methods
def test_bad_answers_are_named_and_change_nothing(name, killed, tmp_path):
    folder = shutil.copytree(killed / name, tmp_path / "copy")
    for run in (begin(name, tmp_path / "new"), Evaluation.load(folder)):
        if not run.ask():
            continue  # a method of one round has its answer
        (run.folder / ".lock").touch()
        asked, before = run.ask(), files_in(tmp_path)
        good = target()[asked]
        for make, kind, words in BAD.values():
            with pytest.raises(kind) as caught:
                run.tell(make(good))
            message = str(caught.value)
            assert words.replace("{1}", asked[1 % len(asked)]) in message, message
            assert "\n" not in message
            assert run.ask() == asked
            assert files_in(tmp_path) == before
        assert shown(finish(run, target())) == shown(simulated(name))


@some_methods
def test_answers_may_come_in_parts_and_with_others(name):
    run, known = begin(name, None), target()
    while asked := run.ask():
        run.tell(known[asked[:1]])
        if asked[1:]:
            assert run.ask()[: len(asked) - 1] == asked[1:]
        run.tell(known)  # everything else, though most of it was not asked
        assert set(run.answers) == {item for part in run.rounds for item in part}
    assert shown(run.conversation.estimate) == shown(simulated(name))


def test_answers_after_the_end_are_refused(tmp_path):
    run = begin(METHODS[0], tmp_path)
    finish(run, target())
    before, known = files_in(tmp_path), target()
    for answers in ({}, known.drop(list(run.answers))):
        with pytest.raises(ValueError, match="nothing is asked for"):
            run.tell(answers)
    run.tell(known)  # the same again is no news
    assert files_in(tmp_path) == before


@some_methods
def test_an_estimate_before_the_end_is_refused(name, tmp_path):
    run = begin(name, None)
    with pytest.raises(ValueError, match=f"still to be told: {len(run.ask())}"):
        run.estimate()


@some_methods
def test_truth_values_and_numpy_numbers_are_answers(name):
    run, known = begin(name, None), target().astype(bool)
    finish(run, {item: np.bool_(known[item]) for item in known.index})
    assert shown(run.conversation.estimate) == shown(simulated(name))


def test_an_answer_that_contradicts_an_earlier_one_changes_nothing(tmp_path):
    run, known = begin("random", tmp_path), known_answers()
    asked = run.ask()
    run.tell({name: known[name] for name in asked[:5]})
    before = files_in(tmp_path)
    with pytest.raises(ValueError, match="was told . before and . now"):
        run.tell(known | {asked[2]: 1 - known[asked[2]]})
    assert files_in(tmp_path) == before
    assert not run.tell({name: known[name] for name in asked}).ask()


def test_another_model_is_refused(tmp_path):
    run, known = begin("random", tmp_path), known_answers()
    first, second = run.ask()[:1], run.ask()[1:2]
    run.tell({name: known[name] for name in first}, model="org/one")
    with pytest.raises(ValueError, match="those of 'org/one', these of 'org/two'"):
        run.tell({name: known[name] for name in second}, model="org/two")
    Evaluation.load(tmp_path).tell(
        {name: known[name] for name in second}, model="org__one"
    )
    assert Evaluation.load(tmp_path).model == "org/one"


# Answers without a score -------------------------------------------------------


@pytest.mark.parametrize("unknown", [np.nan, None])
@some_methods
def test_items_without_a_score_are_named(name, unknown, tmp_path):
    run, dropped = begin(name, tmp_path), []
    while asked := run.ask():
        dropped += asked[::2]
        answers = target()[asked].astype(object)
        answers[asked[::2]] = unknown
        run.tell(answers)
    estimate = run.estimate()
    assert estimate.unscored == dropped
    assert 0 <= estimate.score <= 1
    text = (tmp_path / "evaluation.json").read_text()
    assert "null" in text and "NaN" not in text  # plain JSON, for every reader
    assert shown(Evaluation.load(tmp_path).estimate()) == shown(estimate)


@every_method
def test_without_any_score_the_sources_speak(name, tmp_path):
    run = begin(name, tmp_path)
    tell_all(run, dict.fromkeys(target().index, np.nan))
    estimate = run.estimate()
    assert estimate.score == pytest.approx(halves()[0].performance().mean())
    assert estimate.interval == (0, 1)
    assert Flag.NOTHING_SCORED in estimate.flags
    assert estimate.unscored == estimate.items and estimate.items
    assert "mean of the sources" in repr(estimate)


@pytest.mark.parametrize("method", ["random", "adaptive_irt"])
def test_an_unscored_answer_may_be_scored_later(method, tmp_path):
    source, known = halves()[0], known_answers()
    runs = [
        Evaluation(get_method(method).fit(source), 20, folder=tmp_path / name)
        for name in ("late", "fresh")
    ]
    tell_all(runs[0], dict.fromkeys(known, np.nan))
    late = Evaluation.load(tmp_path / "late")
    assert not late.ask() and np.isnan(list(late.answers.values())).all()
    late.tell(known)
    tell_all(Evaluation.load(tmp_path / "late"), known)
    late = Evaluation.load(tmp_path / "late")
    late.tell(dict.fromkeys(late.answers, np.nan))  # the old log again is no news
    assert not late.estimate().unscored
    tell_all(runs[1], known)
    assert late.estimate().score == runs[1].estimate().score


# Folders of others, and damage -------------------------------------------------


def test_a_folder_with_an_evaluation_is_not_begun_again(tmp_path):
    run = begin(METHODS[0], tmp_path)
    run.tell(target()[run.ask()])
    before = files_in(tmp_path)
    with pytest.raises(FileExistsError, match="not empty.*benchnb tell"):
        begin(METHODS[0], tmp_path)
    assert files_in(tmp_path) == before
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("x")
    with pytest.raises(FileExistsError, match="not empty"):
        begin(METHODS[0], tmp_path / "mine")


def test_a_folder_with_a_saved_method_is_no_new_one(tmp_path):
    "A killed start leaves no such folder: it is somebody's method"
    save_method(prepared(fitted("kmeans"), BUDGET), tmp_path)
    before = files_in(tmp_path)
    with pytest.raises(FileNotFoundError, match="no evaluation in"):
        Evaluation.load(tmp_path)
    with pytest.raises(FileExistsError, match="is not empty: name a new folder"):
        begin(METHODS[0], tmp_path)
    assert files_in(tmp_path) == before


@some_methods
def test_an_evaluation_of_other_sources_is_refused(name, killed, tmp_path):
    folder = shutil.copytree(killed / name, tmp_path / "new")
    before = files_in(folder)
    source = halves()[0]
    values = source.values.copy()
    values[0, 0] = 1 - values[0, 0]
    for other in (with_values(source, values), source.select(models=range(9))):
        with pytest.raises(ValueError, match="other sources") as caught:
            Evaluation.load(folder, other)
        assert str(folder) in str(caught.value)
    assert files_in(folder) == before


def test_a_method_of_other_sources_is_refused(killed, tmp_path):
    folder = shutil.copytree(killed / METHODS[0], tmp_path / "new")
    other = prepared(type(fitted(METHODS[0]))().fit(halves(table(seed=5))[0]), BUDGET)
    save_method(other, folder)
    with pytest.raises(ValueError, match="other sources"):
        Evaluation.load(folder)


def test_an_evaluation_of_another_budget_or_seed_is_refused(killed, tmp_path):
    "The method beside it now asks for other items"
    folder = shutil.copytree(killed / "random", tmp_path / "new")
    save_method(prepared(fitted("random"), BUDGET, SEED + 1), folder)
    with pytest.raises(ValueError, match="in round 1 the method now asks for other"):
        Evaluation.load(folder)


FILES = ["evaluation.json", "method.json", "arrays.npz"]


@pytest.mark.parametrize("file", FILES)
@pytest.mark.parametrize("name", ["aipw", "adaptive_irt"])
def test_files_cut_short_are_refused(name, file, killed, tmp_path):
    folder = shutil.copytree(killed / name, tmp_path / "new")
    path = folder / file
    whole = path.read_bytes()
    places = {0, 1, 2, len(whole) // 2, *range(len(whole) - 3, len(whole))}
    for cut in sorted({*places, *np.linspace(3, len(whole) - 4, 12, dtype=int)}):
        path.write_bytes(whole[:cut])
        with pytest.raises(ValueError, match="damaged") as caught:
            Evaluation.load(folder)
        assert str(folder) in str(caught.value) and "\n" not in str(caught.value)
    path.unlink()
    with pytest.raises((ValueError, FileNotFoundError)) as caught:
        Evaluation.load(folder)
    assert str(folder) in str(caught.value)


@pytest.mark.parametrize("file", FILES)
@pytest.mark.parametrize("name", ["aipw", "adaptive_irt"])
def test_files_with_wrong_bytes_are_refused_or_harmless(name, file, killed, tmp_path):
    folder = shutil.copytree(killed / name, tmp_path / "new")
    path, rng, refused = folder / file, np.random.default_rng(0), 0
    whole = path.read_bytes()
    for _ in range(25):
        odd = bytearray(whole)
        for place in rng.integers(0, len(odd), rng.integers(1, 4)):
            odd[place] = rng.integers(256)
        path.write_bytes(odd)
        try:
            run = Evaluation.load(folder)
        except ValueError as error:
            assert str(folder) in str(error)
            refused += 1
        else:
            known = target().to_dict() | run.answers
            assert 0 <= finish(run, known).score <= 1
            shutil.rmtree(folder)
            shutil.copytree(killed / name, folder)
    assert refused >= (5 if file == "evaluation.json" else 24)


def state(**changes):
    "The text of an evaluation, changed"
    plain = {"plan": {}, "model": None, "sources": "x", "answers": {}, "rounds": []}
    return json.dumps(plain | changes)


ODD_JSON = {
    "a list": "[]",
    "a number": "3",
    "null": "null",
    "deep": "[" * 100_000,
    "no rounds": '{"sources": "x"}',
    "rounds that are none": state(rounds=3),
    "a number as round": state(rounds=[3]),
    "a round without its answers": state(rounds=[["algebra/0"]]),
    "answers that are none": state(answers=["a"]),
    "a score in words": state(answers={"algebra/0": "b"}),
    "a score of 7": state(answers={"algebra/0": 7}),
    "an infinite score": state(answers={"algebra/0": float("inf")}),
    "a plan of something else": state(plan={"menu": 3}),
    "a plan that cannot be": state(plan={"shift": "ignore"}),
}


@pytest.mark.parametrize("case", ODD_JSON)
@pytest.mark.parametrize("file", ["evaluation.json", "method.json"])
def test_files_of_something_else_are_refused(case, file, killed, tmp_path):
    folder = shutil.copytree(killed / METHODS[0], tmp_path / "new")
    (folder / file).write_text(ODD_JSON[case])
    with pytest.raises(ValueError, match="damaged") as caught:
        Evaluation.load(folder)
    assert str(folder) in str(caught.value)


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
    run = Evaluation(method, 3)
    run.tell(target()[run.ask()])  # a live target is alone
    np.testing.assert_array_equal(heard[-1], answers[:1])
    alone = estimates(method, targets.select(models=[0]), 3)[0]
    assert shown(run.conversation.estimate) == shown(alone)


# Faults while saving -----------------------------------------------------------


@pytest.mark.parametrize("name", ["aipw", "adaptive_irt"])
def test_a_full_disk_leaves_the_evaluation_as_it_was(name, tmp_path, monkeypatch):
    run = begin(name, tmp_path)
    (tmp_path / ".lock").touch()
    asked, before = run.ask(), files_in(tmp_path)

    def full(*args):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", full)
        with pytest.raises(OSError, match="evaluation.json.*No space left"):
            run.tell(target()[asked])
    assert files_in(tmp_path) == before
    assert run.ask() == asked
    assert shown(finish(run, target())) == shown(simulated(name))


def test_a_method_that_fails_leaves_the_evaluation_as_it_was(tmp_path, monkeypatch):
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
    run = Evaluation(Fragile().fit(halves()[0]), 3, folder=tmp_path)
    (tmp_path / ".lock").touch()
    asked, before = run.ask(), files_in(tmp_path)
    with pytest.raises(ZeroDivisionError):
        run.tell(target()[asked])
    assert (run.ask(), files_in(tmp_path)) == (asked, before)
    monkeypatch.setattr(Fragile, "broken", False)
    assert run.tell(target()[asked]).estimate().items == asked


def test_a_kill_in_the_middle_of_saving_leaves_the_last_answer(tmp_path):
    "The new file is complete beside the old one, but not yet in its place"
    code = f"""
        import os, signal, sys
        sys.path[:0] = [{str(TESTS)!r}, {str(TESTS / "live")!r}]
        from test_evaluation import METHODS, Path, begin, target
        run = begin(METHODS[0], Path({str(tmp_path)!r}))
        os.replace = lambda *args: os.kill(os.getpid(), signal.SIGKILL)
        run.tell(target()[run.ask()])
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)])
    assert done.returncode == -signal.SIGKILL
    run = Evaluation.load(tmp_path)
    assert run.rounds == []
    assert shown(finish(run, target())) == shown(simulated(METHODS[0]))


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
        Evaluation(method, 3, folder=tmp_path / "mine")
    assert not Path(tmp_path, "mine", "evaluation.json").exists()


# Several processes, and death ------------------------------------------------------


def test_four_processes_tell_at_once(tmp_path):
    folder, known = tmp_path / "new", known_answers()
    asked = Evaluation(fitted("random"), 20, folder=folder).ask()
    shares = [asked[n::4] for n in range(4)]
    children = [
        in_child(
            lambda names=names: [
                Evaluation.load(folder).tell({n: known[n]}) for n in names
            ]
        )
        for names in shares
    ]
    assert [os.waitpid(child, 0)[1] for child in children] == [0] * 4
    run = Evaluation.load(folder)
    assert not run.ask() and set(run.answers) == set(asked)
    assert all(run.answers[name] == known[name] for name in asked)


def test_an_open_evaluation_takes_in_what_others_told(tmp_path):
    one, known = begin("random", tmp_path), known_answers()
    two, asked = Evaluation.load(tmp_path), one.ask()
    two.tell({name: known[name] for name in asked[:6]})
    one.tell({name: known[name] for name in asked[6:]})
    assert not one.ask() and set(one.answers) == set(asked)


@pytest.mark.parametrize("method", ["random", "adaptive_irt"])
def test_killed_at_every_write_nothing_told_is_lost(method, tmp_path):
    folder, known = tmp_path / "new", known_answers()
    Evaluation(fitted(method), 20, folder=folder)
    for at in range(40):
        kept = dict(Evaluation.load(folder).answers)
        done = []

        def die(*args, at=at, done=done, replace=os.replace):
            done.append(1)
            if len(done) == at % 4 + 1:
                os.kill(os.getpid(), signal.SIGKILL)
            replace(*args)

        def work(die=die):
            os.replace = die
            one = Evaluation.load(folder)
            one.tell({name: known[name] for name in one.ask()[:7]})

        os.waitpid(in_child(work), 0)
        run = Evaluation.load(folder)
        assert kept.items() <= run.answers.items()
        assert all(known[name] == score for name, score in run.answers.items())
        if not run.ask():
            break
    fresh = Evaluation(fitted(method), 20)
    tell_all(fresh, known)
    assert run.estimate().score == fresh.estimate().score


def test_a_lock_that_is_a_link_destroys_nothing(tmp_path):
    run, precious = begin("random", tmp_path / "new"), tmp_path / "precious"
    precious.write_text("years of work")
    (tmp_path / "new" / ".lock").unlink(missing_ok=True)
    (tmp_path / "new" / ".lock").symlink_to(precious)
    before = files_in(tmp_path / "new")
    with pytest.raises(OSError, match="lock"):
        run.tell(known_answers())
    assert precious.read_text() == "years of work"
    assert files_in(tmp_path / "new") == before


def test_reading_writes_nothing_and_needs_no_lock(tmp_path):
    run = begin("random", tmp_path / "new")
    run.tell(known_answers())
    (tmp_path / "new" / ".lock").unlink()
    before = files_in(tmp_path)
    again = Evaluation.load(tmp_path / "new")
    assert again.report()["items"]["spent"] == BUDGET and not again.command()
    assert files_in(tmp_path) == before


# Stages ------------------------------------------------------------------------


def test_a_width_is_reached(tmp_path):
    source, known = halves()[0], known_answers()
    run = Evaluation(get_method("random").fit(source), width=0.15, source=source,
                     folder=tmp_path / "new")  # fmt: skip
    sizes = tell_all(run, known)
    low, high = run.estimate().interval
    assert high - low <= 0.15 or sum(sizes) == 60
    assert len(sizes) > 1 and sum(sizes) == len(run.answers)
    assert shown(Evaluation.load(tmp_path / "new").estimate()) == shown(run.estimate())
    memory = Evaluation(get_method("random").fit(source), width=0.15)
    assert tell_all(memory, known) == sizes
    assert memory.estimate().score == run.estimate().score
    capped = Evaluation(get_method("random").fit(source), 22, width=0.05)
    tell_all(capped, known)
    assert capped.method.budget_ == 22


GROWING = ["random", "stratified", "difference", "aipw", "adaptive_irt"]


@pytest.mark.parametrize(
    "name", [*GROWING, "kmeans", "gp_irt", "p_irt", "tailored_bench", "anchor_points"]
)
def test_every_method_reaches_a_width_or_says_no_at_once(name, tmp_path):
    source, folder, known = halves()[0], tmp_path / "new", known_answers()
    method = get_method(name).fit(source)
    try:
        Evaluation(method, width=0.2, folder=folder, source=source)
    except ValueError as error:
        assert "gives no interval" in str(error) and name not in GROWING
        assert not folder.exists()
        return
    sizes = []
    while asked := Evaluation.load(folder).ask():  # as many processes would
        sizes.append(len(asked))
        Evaluation.load(folder).tell({item: known[item] for item in asked})
    found = Evaluation.load(folder).estimate()
    wide = found.interval[1] - found.interval[0]
    assert wide <= 0.2 and len(sizes) > 1 or sum(sizes) == 60 or found.notes


def test_a_method_that_cannot_grow_alone_is_refused_before_the_pilot(tmp_path):
    method = get_method("aipw").fit(halves()[0])
    with pytest.raises(ValueError, match="needs its sources to grow"):
        Evaluation(method, width=0.2, folder=tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_the_last_whole_stage_is_the_estimate_meanwhile(tmp_path):
    source, known = halves()[0], known_answers()
    run = Evaluation(get_method("random").fit(source), width=0.15, folder=tmp_path)
    with pytest.raises(ValueError, match="still to be told: 20"):
        run.estimate()
    run.tell({name: known[name] for name in run.ask()})
    left = len(run.ask())
    for one in (run, Evaluation.load(tmp_path)):
        found = one.estimate()
        assert left and any(f"still to be told: {left}" in n for n in found.notes)
        assert len(found.items) == len(one.answers)


def test_a_late_score_in_a_small_stage_is_taken_in(tmp_path):
    source, known = halves()[0], known_answers()
    runs = [
        Evaluation(get_method("random").fit(source), width=0.2, source=source,
                   folder=tmp_path / name)
        for name in ("late", "fresh")
    ]  # fmt: skip
    first = runs[0].ask()[0]
    tell_all(runs[0], known | {first: np.nan})
    runs[0].tell({first: known[first]})
    for run in runs:
        tell_all(run, known)
    assert runs[0].estimate().score == runs[1].estimate().score
    again = Evaluation.load(tmp_path / "late")
    assert not again.ask() and not again.estimate().unscored


# What is said in the end -------------------------------------------------------


@pytest.mark.parametrize("method", ["random", "aipw", "kmeans", "tailored_bench"])
def test_the_level_is_a_choice(method, tmp_path):
    widths = []
    for level in (0.6, 0.75):
        run = evaluate(method, tmp_path / f"{level}", level=level)
        report = run.report()
        low, high = report["interval"]
        assert report["level"] == level and low <= report["score"] <= high
        assert report["how"]
        widths.append(high - low)
    assert widths[0] < widths[1]
    later = Evaluation.load(tmp_path / "0.6").report(0.75)  # another than was planned
    assert later["level"] == 0.75
    with pytest.raises(ValueError, match="level must lie in"):
        run.report(7)


def test_a_level_that_cannot_be_had_is_refused(tmp_path):
    run = evaluate("kmeans", errors=False)
    with pytest.raises(ValueError, match="made its interval for 95%.*level=0.8"):
        run.report(0.8)
    with pytest.raises(ValueError, match="choose them anew for 80%"):
        Evaluation(prepared(fitted("kmeans"), 15), level=0.8)
    Evaluation(prepared(fitted("random"), 15), level=0.8)


@pytest.mark.parametrize("shift", ["report", "aipw", "abstain"])
@pytest.mark.parametrize("method", ["random", "kmeans", "per_task(random)"])
def test_what_is_done_with_a_model_beyond_the_sources(method, shift):
    run = evaluate(method, row=np.ones(60), errors=False, shift=shift)
    found, notes = run.estimate(), " ".join(run.estimate().notes)
    assert "stronger than the best source" in notes
    assert Flag.OUT_OF_RANGE in found.flags
    if "random" in method:  # nothing is wrong
        assert found.kind is IntervalKind.DESIGN and "holds all the same" in notes
        assert "far less often" not in notes
        return
    assert "far less often" in notes
    if shift == "abstain":
        assert np.isnan(found.score) and np.isnan(found.interval).all()
        assert Flag.ABSTAINED in found.flags and np.isnan(found.rank)
        assert run.report()["score"] is None and "no score" in repr(found)
    else:
        assert not np.isnan(found.score)
        assert ("did not draw its items at random" in notes) == (shift == "aipw")


def test_a_design_based_interval_of_guarded_irt_is_not_warned_of():
    "In its guard's own case, a model beyond the sources, its interval holds"
    source, targets = table(1, 60).split("ability", seed=0)
    method = get_method("guarded_irt").fit(source)
    seen = set()
    for row in targets.values.astype(float):
        run = Evaluation(method, 30, source=source)
        tell_all(run, dict(zip(targets.items.index, row.tolist(), strict=True)))
        found = run.estimate()
        notes = " ".join(found.notes)
        if Flag.OUT_OF_RANGE in found.flags:
            seen.add(found.kind)
            warned = "far less often" in notes
            assert warned == (run.conversation.estimate.kind is IntervalKind.MODEL)
    assert IntervalKind.DESIGN in seen


def test_a_model_method_that_drew_at_random_falls_back_to_aipw(monkeypatch):
    def in_range(self, models, asked, seen):  # no guard of its own
        return Estimate(0.99, (0.98, 1.0), level=self.level, how="factor model")

    monkeypatch.setattr(GuardedIRT, "in_range", in_range)
    monkeypatch.setattr(GuardedIRT, "judge", lambda *_: (0.0, False))
    run = evaluate("guarded_irt", errors=False, many=True)
    assert "factor model" in run.conversation.estimate.how
    found = run.estimate()
    assert "falls back to AIPW" in " ".join(found.notes)
    assert found.flags >= {Flag.FALLBACK, Flag.OUT_OF_RANGE}
    assert found.kind is IntervalKind.DESIGN and found.score != 0.99
    assert found.interval[0] <= found.score <= found.interval[1]


def test_answers_unlike_the_sources_are_flagged():
    source, targets = table(1, 60).split("random", seed=0)
    upside = np.argsort(np.argsort(source.values.mean(axis=0)))
    strange = (upside < 30).astype(float)  # knows what is hard, and nothing else
    errors = left_out_errors(get_method("random"), source, 40, 5)
    flags = []
    for row in (strange, targets.values[0].astype(float)):
        run = Evaluation(get_method("random").fit(source), 40, errors=errors,
                         source=source)  # fmt: skip
        tell_all(run, dict(zip(targets.items.index, row.tolist(), strict=True)))
        flags.append(run.estimate().flags)
    assert Flag.MISFIT in flags[0] and Flag.MISFIT not in flags[1]


def test_notebooks_show_what_comes_next_and_nothing_is_obeyed():
    source, _ = halves()
    evil = "<script>alert(1)</script>"
    names = [f"{evil}{number}" for number in range(60)]
    items = source.items.set_axis(names).assign(task=evil)
    scores = Scores(source.values, items, [evil, *source.models.index[1:]])
    run = Evaluation(get_method("random").fit(scores), 60)
    shown = [scores._repr_html_(), run._repr_html_()]
    assert "next: 60" in shown[1]
    run.tell(dict.fromkeys(run.ask(), 1.0))
    shown += [run._repr_html_(), Estimate(0.5, how=evil, notes=(evil,))._repr_html_()]
    assert "finished" in shown[2]
    for html in shown:
        assert "<script" not in html
    assert all("&lt;script" in shown[n] for n in (0, 1, 3))


def test_a_name_with_a_line_break_is_not_put_into_a_list(tmp_path):
    method = get_method("random").fit(Scores(np.eye(4), ["a", "b", "c\nd", "e"]))
    with pytest.raises(ValueError, match="'c\\\\nd' has a line break"):
        Evaluation(method, 4, folder=tmp_path / "new", harness="list")
    assert not files_in(tmp_path)
