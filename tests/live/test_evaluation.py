"""Running evaluations: a process is killed and another goes on, several tell at once,
bad answers and damaged files are refused and change nothing, scores arrive late."""

import os
import resource
import shutil
import signal
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from helpers.crash import on_sql
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
    with_values,
)

from benchnb.data.scores import Scores
from benchnb.data.sources import load
from benchnb.evaluation import registry
from benchnb.evaluation.method import (
    BudgetError,
    CohortRequest,
    Coreset,
    Estimate,
    Flag,
    IntervalKind,
    Method,
)
from benchnb.evaluation.registry import get_method, register, save_method
from benchnb.live.evaluation import Evaluation
from benchnb.live.store import read_state
from benchnb.methods.guarded_irt import GuardedIRT

NAMES = [*METHODS, "guarded_irt(rounds=5)", *NESTED]
SOME = [
    "aipw",
    "adaptive_irt",
    "guarded_irt(rounds=5)",
    "tailored_bench",
    "per_task(random)",
]
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


@pytest.fixture(scope="module")
def killed(tmp_path_factory):
    "The folder of an evaluation by a method, whose process was killed after one answer"
    place = tmp_path_factory.mktemp("killed")

    def folder(name):
        if (place / name).exists():
            return place / name
        fitted(name)  # once, for this process and the one that is killed

        def work():
            run = begin(name, place / name)
            run.tell(target()[run.ask()])
            os.kill(os.getpid(), signal.SIGKILL)

        status = os.waitpid(in_child(work), 0)[1]
        assert os.waitstatus_to_exitcode(status) == -signal.SIGKILL
        return place / name

    return folder


# what is tested is shared by all methods: the others come in the longer run
EACH = [pytest.param(n, marks=[pytest.mark.slow] * (n not in SOME)) for n in NAMES]


@pytest.mark.parametrize("name", EACH)
def test_a_killed_evaluation_ends_like_the_simulation(name, killed, tmp_path):
    folder = shutil.copytree(killed(name), tmp_path / "new")
    before = files_in(folder)
    assert {*before} == {"arrays.npz", "method.json", "evaluation.db", "told.csv"}
    run = Evaluation.load(folder, halves()[0])
    assert files_in(folder) == before  # going on is no change
    assert len(run.rounds) == 1
    assert shown(finish(run, target())) == shown(simulated(name))
    again = Evaluation.load(folder)  # and once more, when all is told
    assert again.ask() == [] and again.rounds == run.rounds
    assert shown(again.estimate()) == shown(run.estimate())


@pytest.mark.parametrize("name", [each for each in EACH if each.values[0] in METHODS])
def test_nothing_is_fitted_again(name, killed, tmp_path, monkeypatch):
    def refuse(*args, **kwargs):
        raise AssertionError("fitted or prepared again")

    folder = shutil.copytree(killed(name), tmp_path / "new")
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
    folder = shutil.copytree(killed(name), tmp_path / "copy")
    for run in (begin(name, tmp_path / "new"), Evaluation.load(folder)):
        if not run.ask():
            continue  # a method of one round has its answer
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


def test_answers_after_the_end_are_kept(tmp_path):
    run = begin(METHODS[0], tmp_path)
    finish(run, target())
    before, known = files_in(tmp_path), target()
    with pytest.raises(ValueError, match="nothing is asked for"):
        run.tell({})
    run.tell(known[list(run.answers)])  # the same again is no news
    assert files_in(tmp_path) == before and run.full_score() is None
    score = shown(run.estimate())
    run.tell(known.drop(list(run.answers)))  # what was not asked is kept
    again = Evaluation.load(tmp_path)
    weighted = np.average(known, weights=run.items["weight"][known.index])
    assert again.full_score() == pytest.approx(weighted)
    assert shown(again.estimate()) == score and again.answers == run.answers
    with pytest.raises(ValueError, match="was told . before and . now"):
        run.tell(1 - known)


def test_another_model_is_refused(tmp_path):
    run, known = begin("random", tmp_path), known_answers()
    first, second = run.ask()[:1], run.ask()[1:2]
    run.tell({name: known[name] for name in first}, model="org/one")
    with pytest.raises(ValueError, match="those of 'org/one', these of 'org/two'"):
        run.tell({name: known[name] for name in second}, model="org/two")
    Evaluation.load(tmp_path).tell(
        {name: known[name] for name in second}, model="org__one"
    )
    assert Evaluation.load(tmp_path).told.model == "org/one"


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
    table = pd.read_csv(tmp_path / "told.csv", index_col="item")
    assert list(table.index[table["score"].isna()]) == dropped  # for every reader
    assert shown(Evaluation.load(tmp_path).estimate()) == shown(estimate)


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
    folder = shutil.copytree(killed(name), tmp_path / "new")
    before = files_in(folder)
    source = halves()[0]
    values = source.values.copy()
    values[0, 0] = 1 - values[0, 0]
    for other in (with_values(source, values), source.select(models=range(9))):
        with pytest.raises(ValueError, match="other sources") as caught:
            Evaluation.load(folder, other)
        assert str(folder) in str(caught.value)
    assert files_in(folder) == before


def test_an_evaluation_of_another_budget_or_seed_is_refused(killed, tmp_path):
    "The method beside it now asks for other items"
    folder = shutil.copytree(killed("random"), tmp_path / "new")
    save_method(prepared(fitted("random"), BUDGET, SEED + 1), folder)
    with pytest.raises(ValueError, match="in round 1 the method now asks for other"):
        Evaluation.load(folder)


FILES = ["evaluation.db", "method.json", "arrays.npz"]


@pytest.mark.parametrize("file", FILES)
@pytest.mark.parametrize("name", ["aipw", "adaptive_irt"])
def test_files_cut_short_are_refused(name, file, killed, tmp_path):
    folder = shutil.copytree(killed(name), tmp_path / "new")
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
    folder = shutil.copytree(killed(name), tmp_path / "new")
    path, rng, refused = folder / file, np.random.default_rng(0), 0
    whole = path.read_bytes()
    written = np.flatnonzero(np.frombuffer(whole, np.uint8))  # a database has gaps
    for _ in range(25):
        odd = bytearray(whole)
        for place in rng.choice(written, rng.integers(1, 4)):
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
            shutil.copytree(killed(name), folder)
    assert refused >= (15 if file == "evaluation.db" else 24)  # free space is free


# Looking at all targets at once ------------------------------------------------


def test_a_request_to_a_cohort_is_answered_own_row_first():
    heard = []

    class Curious(Method):
        name = "curious"

        def run(self, rng):
            rows = yield CohortRequest(np.array([3, 1, 4]))
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
    single = estimates(method, targets.select(models=[0]), 3)[0]
    assert shown(run.conversation.estimate) == shown(single)


# Faults while saving -----------------------------------------------------------


@pytest.mark.parametrize("name", ["aipw", "adaptive_irt"])
def test_a_full_disk_leaves_the_evaluation_as_it_was(name, tmp_path):
    run = begin(name, tmp_path)
    asked, before = run.ask(), files_in(tmp_path)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, limits[1]))
    try:
        with pytest.raises(OSError, match="evaluation.db.*another place") as caught:
            run.tell(target()[asked])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert "\n" not in str(caught.value)
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
    asked, before = run.ask(), files_in(tmp_path) | {"evaluation.db": None}
    rows = read_state(tmp_path).rows()
    with pytest.raises(ZeroDivisionError):
        run.tell(target()[asked])
    after = files_in(tmp_path) | {"evaluation.db": None}
    assert (run.ask(), after) == (asked, before)
    assert read_state(tmp_path).rows() == rows
    monkeypatch.setattr(Fragile, "broken", False)
    assert run.tell(target()[asked]).estimate().items == asked


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
    assert not Path(tmp_path, "mine", "evaluation.db").exists()


# Several processes, and death ------------------------------------------------------


ADAPTIVE = pytest.param("adaptive_irt", marks=pytest.mark.slow)


@pytest.mark.parametrize("method", ["random", ADAPTIVE])
def test_killed_at_every_write_no_answer_is_lost(method, tmp_path):
    folder, known = tmp_path / "new", known_answers()
    Evaluation(fitted(method), 20, folder=folder)
    for at in range(40):
        kept = dict(Evaluation.load(folder).answers)
        done = []

        def die(path, at=at, done=done):
            done.append(1)
            if len(done) == 3 * at + 1:
                os.kill(os.getpid(), signal.SIGKILL)

        def work(die=die):
            on_sql(die)
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


# Stages ------------------------------------------------------------------------


GROWING = ["random", "stratified", "difference", "aipw", "adaptive_irt"]


OTHERS = ["kmeans", "gp_irt", "p_irt", "tailored_bench", "anchor_points"]


@pytest.mark.parametrize("name", [*GROWING[:-1], ADAPTIVE, *OTHERS])
def test_every_method_reaches_a_width_or_is_refused_at_once(name, tmp_path):
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


@pytest.mark.parametrize("weight", [1, 2], ids=["equal items", "unequal items"])
@pytest.mark.parametrize("name", [*GROWING[:-1], ADAPTIVE])
def test_a_budget_caps_all_items_on_the_way_to_a_width(name, weight, tmp_path):
    right = np.random.default_rng(0).integers(0, 2, (25, 300)).astype(float)
    items = pd.DataFrame({"weight": np.r_[np.ones(150), np.full(150, weight)]})
    source, folder = Scores(right[:24], items), tmp_path / "new"
    known, rounds = dict(zip(source.items.index, right[24], strict=True)), []
    method = get_method(name).fit(source)
    Evaluation(method, 100, width=0.1, folder=folder, source=source)
    while asked := (live := Evaluation.load(folder)).ask():
        rounds.append(len(asked))
        live.tell({item: known[item] for item in asked[:30]})  # a part at a time
    spent, (low, high) = len(live.answers), live.conversation.estimate.interval
    full = weight == 1 and name in ("random", "difference", "aipw")
    assert (spent == 100 if full else spent <= 100) and len(rounds) > 2
    text = "budget spent before" if spent == 100 else "too few for a new choice"
    asked = f"reached: the interval is ± {50 * (high - low):.1f} points"
    assert text in live.report()["notes"][-1] and asked in live.report()["notes"][-1]


# What is said in the end -------------------------------------------------------


def test_a_model_method_that_drew_at_random_falls_back_to_aipw(monkeypatch):
    def in_range(self, model, asked, seen):
        self.source_scores_ = np.minimum(self.source_scores_, 0.5)  # all are weak
        return Estimate(
            0.6, (0.59, 0.61), level=self.level, interval_method="factor model"
        )

    monkeypatch.setattr(GuardedIRT, "estimate_in_range", in_range)
    unguarded = "guarded_irt(limit=1.1, misfit_limit=-99.0)"
    run = evaluate(unguarded, errors=False, many=True)
    assert "factor model" in run.conversation.estimate.interval_method
    found = run.estimate()
    notes = " ".join(found.notes)  # of the interval that is shown, AIPW's
    assert "falls back to AIPW" in notes and "the interval holds all the same" in notes
    assert "less often" not in notes
    assert found.flags >= {Flag.FALLBACK, Flag.OUT_OF_RANGE}
    assert found.kind is IntervalKind.DESIGN and found.score != 0.99
    assert found.interval[0] <= found.score <= found.interval[1]


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
    shown += [
        run._repr_html_(),
        Estimate(0.5, interval_method=evil, notes=(evil,))._repr_html_(),
    ]
    assert "finished" in shown[2]
    for html in shown:
        assert "<script" not in html
    assert all("&lt;script" in shown[n] for n in (0, 1, 3))


def test_a_name_with_a_line_break_is_not_put_into_a_list(tmp_path):
    method = get_method("random").fit(Scores(np.eye(4), ["a", "b", "c\nd", "e"]))
    with pytest.raises(ValueError, match="'c\\\\nd' has a line break"):
        Evaluation(method, 4, folder=tmp_path / "new", harness="list")
    assert not files_in(tmp_path)


def test_the_callers_method_stays_as_it_is():
    source, _ = halves()
    fitted = get_method("aipw").fit(source)
    first = Evaluation(fitted, 10, level=0.8)
    assert not hasattr(fitted, "budget_") and fitted.level == 0.95
    again = Evaluation(fitted, 20, seed=3)
    assert (first.method.budget_, again.method.budget_) == (10, 20)
    assert len(first.ask()) == 10


def test_only_a_budget_that_cannot_be_is_an_unmet_width(monkeypatch):
    source, _ = halves()

    def ask(error):
        run = Evaluation(get_method("random").fit(source), width=0.05, source=source)
        monkeypatch.setattr(run, "_larger_stage", lambda budget: raise_(error))
        run.tell({name: float(k % 2) for k, name in enumerate(run.ask())})
        return run.unmet_width_reason

    def raise_(error):
        raise error

    assert "is not reached (no such budget)" in ask(BudgetError("no such budget"))
    with pytest.raises(ValueError, match="a fault"):
        ask(ValueError("a fault"))


def test_a_fitted_method_knows_enough_of_its_sources_to_rank_a_model_like_them():
    "Without `source`, which is for flags and widths: not every model is unchecked"
    table = load("helm_medqa")
    source, target = table.split("random", seed=0)
    method = get_method("guarded_irt", folds=0).fit(source)
    ranked = []
    for row in target.values[:6]:
        answers = pd.Series(row.astype(float), target.items.index)
        evaluation = Evaluation(method, budget=40)
        evaluation.tell(answers[evaluation.ask()].to_dict())
        ranked.append(np.isfinite(evaluation.estimate().rank))
    assert sum(ranked) >= 4
