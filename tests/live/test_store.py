"""An evaluation on disk: killed, shared, linked, read only, from others, damaged."""

import json
import os
import shutil
import signal
import sqlite3
import time
from contextlib import closing, suppress

import numpy as np
import pandas as pd
import pytest
from helpers.crash import on_sql, run
from helpers.evaluations import in_child, known_answers, tell_all
from helpers.power import DISKS, cuts
from helpers.small import files_in, fitted, halves, prepared

from benchnb.cli.app import main
from benchnb.evaluation.left_out import read_left_out_errors, write_left_out_errors
from benchnb.evaluation.registry import get_method
from benchnb.evaluation.simulate import AskTellSession
from benchnb.harnesses.logs import Failure
from benchnb.live import store
from benchnb.live.bundles import publish, read_bundle
from benchnb.live.evaluation import Evaluation


def begin(folder, method="random", **how):
    "An evaluation of 12 items that has been told nothing"
    return Evaluation(prepared(fitted(method), 12), folder=folder, **how)


# Links, and folders that cannot be written -------------------------------------


@pytest.mark.parametrize("target", ["file", "nowhere", "folder"])
@pytest.mark.parametrize(
    "link", ["evaluation.db", "evaluation.db-journal", "told.csv", "subset_2.json"]
)
def test_no_change_goes_through_a_link(link, target, tmp_path):
    live, outside = begin(tmp_path / "mine", harness="list"), tmp_path / "outside"
    (outside / "folder").mkdir(parents=True)
    (outside / "file").write_text("years of work")
    place = tmp_path / "mine" / link
    if link == "evaluation.db":
        place = place.rename(outside / "evaluation.db")
        (tmp_path / "mine" / link).symlink_to(place)
    else:
        place.unlink(missing_ok=True)
        place.symlink_to(outside / target)
    before = files_in(tmp_path)
    with pytest.raises(OSError, match="is a link.*delete it") as caught:
        live.tell(known_answers())
    assert "\n" not in str(caught.value)
    assert files_in(tmp_path) == before and sorted(os.listdir(outside)) == sorted(
        {"file", "folder"} | ({link} if link == "evaluation.db" else set())
    )


def test_a_stage_that_is_a_link_is_not_written_through(tmp_path):
    source, outside = halves()[0], tmp_path / "outside"
    live = Evaluation(get_method("random").fit(source), width=0.15, source=source,
                      folder=tmp_path / "mine")  # fmt: skip
    outside.mkdir()
    for number in range(60):
        (tmp_path / "mine" / f"stage-{number}").symlink_to(outside)
    with pytest.raises(OSError, match="stage-.*is a link"):
        tell_all(live, known_answers())
    assert not any(outside.iterdir())


def test_reading_changes_nothing(tmp_path):
    "The commands that read make no call that could change a file"
    for name in ("one", "two"):
        live = begin(tmp_path / name, harness="list")
        live.tell(known_answers(int(name == "two")))
        for path in (tmp_path / name).iterdir():
            path.chmod(0o444)
        (tmp_path / name).chmod(0o555)
    before = files_in(tmp_path)
    for command in ("estimate one", "estimate one --json", "paired one two"):
        done = run(command.split(), tmp_path, stop=1, mode="full")
        assert (done.status, done.changes, done.err) == (0, 0, "")
        assert done.out
    assert files_in(tmp_path) == before


# Killed, and the power is cut ------------------------------------------------------


def test_what_a_tell_has_returned_is_there_after_a_kill_at_any_moment(tmp_path):
    "The process that tells is killed by another one, which does not look"
    known, folder = known_answers(), tmp_path / "mine"
    begin(folder, "tailored_bench")
    rng = np.random.default_rng(0)
    for _ in range(20):
        told = []
        read, write = os.pipe()

        def work(write=write):
            live = Evaluation.load(folder)
            while asked := live.ask():
                live.tell({name: known[name] for name in asked[:1]})
                os.write(write, f"{asked[0]}\n".encode())

        child = in_child(work)
        os.close(write)
        time.sleep(rng.uniform(0, 0.06))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        with open(read) as pipe:
            told = pipe.read().split()
        answers = Evaluation.load(folder).answers
        assert {*told} <= {*answers} and answers.items() <= known.items()
    tell_all(Evaluation.load(folder), known)
    fresh = Evaluation(prepared(fitted("tailored_bench"), 12))
    tell_all(fresh, known)
    assert Evaluation.load(folder).estimate().score == fresh.estimate().score


@pytest.mark.parametrize("how", ["killed", "interrupted", "failed"])
@pytest.mark.parametrize("late", [False, True], ids=["new", "late"])
def test_answers_are_kept_before_the_method_computes(late, how, tmp_path, monkeypatch):
    "A kill while it computes undoes no answer; where the method fails all are undone"
    known, folder = known_answers(), tmp_path / "mine"
    live = begin(folder, "tailored_bench")
    first = live.ask()
    if late:  # one was unscored: its score lets the method compute anew
        live.tell({name: known[name] for name in first[1:]} | {first[0]: np.nan})
    before = Evaluation.load(folder).told
    stops = {"killed": None, "interrupted": KeyboardInterrupt, "failed": OverflowError}

    def compute(*args, **kwargs):
        if stops[how]:
            raise stops[how]
        os.kill(os.getpid(), signal.SIGKILL)

    def tell():
        AskTellSession.tell = compute
        live.tell({name: known[name] for name in (first[:1] if late else first)})

    monkeypatch.setattr(AskTellSession, "tell", AskTellSession.tell)
    if how == "killed":
        child = in_child(tell)
        assert os.waitpid(child, 0)[1] == signal.SIGKILL
    else:
        with pytest.raises(stops[how]):
            tell()
    monkeypatch.undo()
    again = Evaluation.load(folder)
    if how == "failed":
        assert str(again.told) == str(before)
        return
    assert {name: known[name] for name in first}.items() <= again.answers.items()
    live.tell({name: known[name] for name in first})  # once more does no harm
    assert live.ask() == again.ask() != first
    tell_all(again, known)
    fresh = Evaluation(prepared(fitted("tailored_bench"), 12))
    tell_all(fresh, known)
    assert Evaluation.load(folder).estimate().score == fresh.estimate().score


def half_written(folder):
    "Copy a folder while a large change is written: some pages are new, some old"
    with closing(
        sqlite3.connect(folder / store.STORE_FILE, isolation_level=None)
    ) as base:
        base.execute("PRAGMA cache_size = 1")
        base.execute("BEGIN IMMEDIATE")
        base.execute("DELETE FROM answers")
        rows = [(f"{n}" * 50, 1.0, 1) for n in range(999)]
        base.executemany("INSERT INTO answers VALUES (?, ?, ?)", rows)
        shutil.copytree(folder, folder.with_name("copy"))
    return folder.with_name("copy")


def test_what_was_half_written_is_undone(tmp_path):
    live = begin(tmp_path / "mine")
    live.tell({name: 1.0 for name in live.ask()[:5]})
    copy = half_written(tmp_path / "mine")
    assert (copy / "evaluation.db-journal").stat().st_size > 1000
    whole = (tmp_path / "mine" / store.STORE_FILE).stat().st_size
    assert (copy / store.STORE_FILE).stat().st_size > whole  # new pages are there
    assert Evaluation.load(copy).told == live.told
    assert not (copy / "evaluation.db-journal").exists()


def test_every_change_is_synced(tmp_path):
    "SQLite keeps what it has committed through a power cut, if it is told to"
    live, settings = begin(tmp_path / "mine"), {}
    with live.store.changing():
        base = live.store._base
        for name in ("synchronous", "journal_mode"):
            ((settings[name],),) = base.execute(f"PRAGMA {name}")
    assert settings == {"synchronous": 3, "journal_mode": "delete"}  # 3: EXTRA


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
            if store.holds_evaluation(place):
                assert len(Evaluation.load(place).ask()) == 12, (at, kind)
                assert Evaluation.load(place).left_out(12) is not None
            else:
                store.check_new_folder(place)
    assert len(Evaluation.load(found[-1] / "synced" / "new" / "mine").ask()) == 12


# Two at once ------------------------------------------------


WORDS = "plan scores.parquet --method random --budget 12 --harness list --out mine"


def test_of_two_plans_for_one_folder_one_wins(tmp_path):
    "The other writes the folder just before this one renames its own into place"
    halves()[0].to_parquet(tmp_path / "scores.parquet")
    rename = os.rename

    def late(*args):
        os.rename = rename
        begin(tmp_path / "mine")
        rename(*args)

    def plan():
        os.rename = late
        return main(WORDS.split())

    done = run(plan, tmp_path)
    said = "benchnb: error: another run has written 'mine' meanwhile: name a new folder"
    assert (done.status, done.err) == (2, said + "\n")
    assert Evaluation.load(tmp_path / "mine").plan.harness is None  # the other's
    assert sorted(os.listdir(tmp_path)) == ["mine", "scores.parquet"]
    again = run(WORDS.split(), tmp_path)
    assert again.status == 2 and "it holds an evaluation" in again.err


@pytest.mark.parametrize("name", ["aipw", "tailored_bench"])
def test_several_tell_one_folder_and_are_killed(name, tmp_path):
    folder, known, expected = tmp_path / "mine", known_answers(), {}
    begin(folder, name)
    shutil.copytree(folder, tmp_path / "fresh")
    for at in range(1, 9):  # killed at some statement, and another goes on at once
        asked = Evaluation.load(folder).ask()
        if not asked:
            break

        def tell(names, stop=0):
            calls = []

            def count(path):
                calls.append(path)
                if len(calls) == stop:
                    os.kill(os.getpid(), signal.SIGKILL)

            on_sql(count)
            Evaluation.load(folder).tell({name: known[name] for name in names})

        work = [(asked[:2], 2 * at), (asked[1:4], 0), (asked[3:5], 0)]
        work = [(names, stop) for names, stop in work if names]
        children = [in_child(lambda w=w: tell(*w)) for w in work]
        codes = [os.waitpid(child, 0)[1] for child in children]
        assert set(codes[1:]) <= {0} and codes[0] in (0, signal.SIGKILL)
        now = Evaluation.load(folder).answers
        expected |= {name: known[name] for names, _ in work[1:] for name in names}
        assert expected.items() <= now.items()
    live, fresh = Evaluation.load(folder), Evaluation.load(tmp_path / "fresh")
    tell_all(live, known)
    tell_all(fresh, known)
    assert live.estimate().score == fresh.estimate().score


def test_a_held_lock_is_one_line_and_no_silent_wait(tmp_path, monkeypatch):
    live = begin(tmp_path / "mine")
    other = Evaluation.load(tmp_path / "mine")
    monkeypatch.setattr(store, "LOCK_TIMEOUTS", (0, 0))
    with other.store.changing():
        with pytest.warns(UserWarning, match="mine.* waiting"):
            with pytest.raises(OSError, match="another process .*mine.*again") as error:
                live.tell({live.ask()[0]: 1.0})
    assert "\n" not in str(error.value)
    live.tell({live.ask()[0]: 1.0})


def test_two_that_have_read_the_same_keep_both_answers(tmp_path):
    "The second reads what the first has told, before it tells"
    first, known = begin(tmp_path / "mine"), known_answers()
    second = Evaluation.load(tmp_path / "mine")
    one, two = first.ask()[:2]
    first.tell({one: known[one]})
    second.tell({two: known[two]})
    with pytest.raises(ValueError, match="was told . before and . now"):
        first.tell({two: 1 - known[two]})
    for live in (first, second, Evaluation.load(tmp_path / "mine")):
        assert {one, two} <= {*live.told.results}
        assert live.told.results.items() <= known.items()


# The version before ---------------------------------------------------------------


def earlier_version(folder, live):
    "What the last version has kept of an evaluation; one answer is in a record only"
    rows = live._state().rows()
    runs = {}
    for item, name, *value in rows["runs"]:
        runs.setdefault(item, {})[name] = value
    parts = {True: {}, False: {}}
    for item, score, asked in rows["answers"]:
        parts[bool(asked)][item] = runs.get(item, score)
    plan = json.loads(rows["evaluation"][0][1])
    state = {"benchnb": 2, "sources": live.method.fingerprint_, "plan": plan}
    state |= {"model": live.told.model, "answers": parts[True], "rounds": live.rounds}
    (folder / "answers").mkdir()
    first, late = folder / "answers" / "000001-0.json", dict([parts[False].popitem()])
    first.write_text(json.dumps(state | {"others": parts[False]}))
    record = folder / "answers" / "000002-0.json"
    record.write_text(json.dumps({"model": live.told.model, "answers": late}))
    (folder / "evaluation.json").write_text(first.read_text())
    (folder / "evaluation.db").unlink()
    (folder / "told.csv").unlink()


def test_a_folder_of_the_version_before_is_read_and_carried_over(tmp_path):
    folder, known = tmp_path / "mine", known_answers()
    live = begin(folder, harness="list")
    asked = live.ask()
    rest = {name: known[name] for name in known if name not in asked}
    runs = {asked[0]: {"a": 1, "b": 0}, asked[1]: Failure.TIMEOUT}
    live.tell(rest | runs | {asked[2]: known[asked[2]]}, model="mine")
    earlier_version(folder, live)
    before = files_in(folder)
    again = Evaluation.load(folder)
    assert str(again.told) == str(live.told) and again.rounds == live.rounds
    assert files_in(folder) == before  # reading is no change
    again.tell({name: known[name] for name in again.ask()})
    assert "evaluation.json.old" in files_in(folder)
    last = Evaluation.load(folder)
    assert str(last.told) == str(again.told) and last.ask() == []
    assert last.plan == live.plan and last.told.failures == live.told.failures


STOPS = [pytest.param(n, marks=[pytest.mark.slow] * (n % 4 > 0)) for n in range(1, 14)]


@pytest.mark.parametrize("stop", STOPS)
def test_killed_while_it_is_carried_over_nothing_is_lost(stop, tmp_path):
    live, known = begin(tmp_path / "mine"), known_answers()
    asked = live.ask()
    live.tell({name: known[name] for name in [*asked[:3], *list(known)[-3:]]})
    told = live.told
    earlier_version(tmp_path / "mine", live)
    line = f"{asked[5]},{known[asked[5]]}"
    (tmp_path / "more.csv").write_text(f"item,score\n{line}\n")
    words = "tell mine more.csv --format list".split()
    run(words, tmp_path, stop=stop)
    now = Evaluation.load(tmp_path / "mine").told.results
    assert told.results.items() <= now.items() and now.items() <= known.items()
    assert run(words, tmp_path).status == 0
    now = Evaluation.load(tmp_path / "mine").told.results
    assert now == told.results | {asked[5]: known[asked[5]]}


# What a file says is not believed ---------------------------------------------------


def damage(folder, *statements):
    "Change the database of an evaluation; its digest fits all the same"
    with closing(sqlite3.connect(folder / store.STORE_FILE)) as base:
        for statement in statements:
            base.execute(statement)
        rows = {}
        for table in store.STORE_TABLES:
            rows[table] = base.execute(f"SELECT * FROM {table}").fetchall()
        about = [row[:-1] for row in rows["evaluation"]]
        with suppress(TypeError):  # bytes have no digest
            digest = store._digest(about, rows)
            base.execute("UPDATE evaluation SET digest = ?", [digest])
        base.commit()


ITEM = "algebra/1"
PLAN = "UPDATE evaluation SET plan = json_set(plan, '$.{}', json('{}'))"
ANSWER = "UPDATE answers SET {} WHERE item = (SELECT min(item) FROM answers)"
ODD = {
    "a score of 500": ANSWER.format("score = 500"),
    "NaN as text": ANSWER.format("score = 'NaN'"),
    "a score of bytes": ANSWER.format("score = x'00'"),
    "an unknown item": ANSWER.format("item = 'poems/1'"),
    "an item without a name": ANSWER.format("item = NULL"),
    "a mark that is none": ANSWER.format("asked = 7"),
    "a repeated item": "INSERT INTO answers SELECT * FROM answers LIMIT 1",
    "a run that counts 0 times": "INSERT INTO runs SELECT item, 'a', 1, 0 FROM answers",
    "a round that nobody told": f"UPDATE evaluation SET rounds = '[[\"{ITEM}\"]]'",
    "rounds that are no JSON": "UPDATE evaluation SET rounds = 'one'",
    "a width of nothing": PLAN.format("width", "1e-300"),
    "a budget beyond the items": PLAN.format("most", "61"),
    "a negative seed": PLAN.format("seed", "-1"),
    "a level of 7": PLAN.format("level", "7"),
    "a harness that is a number": PLAN.format("harness", "7"),
    "ease of another benchmark": PLAN.format("ease", json.dumps([0.5] * 30)),
    "a model's name that is bytes": "UPDATE evaluation SET model = x'00'",
    "a plan in a list": "UPDATE evaluation SET plan = '[1]'",
    "another table": "CREATE TABLE more (item TEXT)",
    "a trigger": "CREATE TRIGGER t AFTER INSERT ON runs BEGIN DELETE FROM runs; END",
    "no row": "DELETE FROM evaluation",
    "two rows": "INSERT INTO evaluation SELECT * FROM evaluation",
}


def refused(folder, *words):
    "The folder is refused in one line, and nothing in it is lost"
    before = files_in(folder)
    with pytest.raises(ValueError) as caught:
        Evaluation.load(folder)
    message = str(caught.value)
    assert str(folder) in message and "\n" not in message and len(message) < 600
    assert all(word in message for word in words), message
    assert files_in(folder) == before
    return message


@pytest.mark.parametrize("case", ODD)
def test_an_evaluation_that_cannot_be_is_refused(case, tmp_path):
    live = begin(tmp_path / "mine")
    live.tell({name: known_answers()[name] for name in live.ask()[:3]})
    path = tmp_path / "mine" / "evaluation.db"
    whole = path.read_bytes()
    damage(tmp_path / "mine", ODD[case])
    assert "other sources" in refused(tmp_path / "mine") or "damaged" in refused(
        tmp_path / "mine"
    )
    path.write_bytes(whole)
    assert len(Evaluation.load(tmp_path / "mine").answers) == 3


def test_a_view_in_place_of_a_table_is_refused(tmp_path):
    begin(tmp_path / "mine")
    rename = "ALTER TABLE answers RENAME TO kept"
    damage(tmp_path / "mine", rename, "CREATE VIEW answers AS SELECT * FROM kept")
    refused(tmp_path / "mine", "its tables are not those of an evaluation")


def test_a_changed_value_is_refused(tmp_path):
    live = begin(tmp_path / "mine")
    live.tell({name: 1.0 for name in live.ask()[:5]})
    with closing(sqlite3.connect(tmp_path / "mine" / store.STORE_FILE)) as base:
        base.execute(ANSWER.format("score = 0.0"))
        base.commit()
    refused(tmp_path / "mine", "not those that were written")


def test_the_remedy_of_a_damaged_store_helps(tmp_path):
    "Plan it anew and tell it told.csv, and it goes on where it was"
    halves()[0].to_parquet(tmp_path / "scores.parquet")
    words = "plan scores.parquet --method tailored_bench --budget 12 --harness list"
    assert run([*words.split(), "--out", "mine"], tmp_path).status == 0
    live, known = Evaluation.load(tmp_path / "mine"), known_answers()
    live.tell({name: known[name] for name in live.ask()}, model="=mine")
    live.tell({live.ask()[0]: Failure.TIMEOUT} | dict([[*known.items()][-1]]))
    path = tmp_path / "mine" / "evaluation.db"
    path.write_bytes(path.read_bytes()[:3000])
    done = run("estimate mine".split(), tmp_path)
    assert done.status == 2 and done.err.count("\n") == 1, done.err
    assert "or plan it anew elsewhere and tell it 'mine/told.csv'" in done.err
    assert run([*words.split(), "--out", "new"], tmp_path).status == 0
    done = run("tell new mine/told.csv".split(), tmp_path)
    assert done.status == 0, done.err
    new = Evaluation.load(tmp_path / "new")
    assert new.ask() == live.ask() and new.rounds == live.rounds
    assert str(new.answers) == str(live.answers) and new.told.model == live.told.model


@pytest.mark.parametrize("file", ["evaluation.db", "subset.json"])
def test_a_file_that_would_take_too_much_memory_is_refused(file, tmp_path, monkeypatch):
    folder = tmp_path / "mine"
    if file == "subset.json":
        publish(prepared(fitted("kmeans"), 12), folder)
    else:
        begin(folder)
    read = read_bundle if file == "subset.json" else Evaluation.load
    read(folder)
    if file == "subset.json":
        (folder / file).write_text('{"rounds": [' + "[]," * 2_000_000 + "[]]}")
    else:
        damage(folder, "UPDATE evaluation SET rounds = hex(zeroblob(1000000))")
    monkeypatch.setenv("BENCHNB_MEMORY_GB", "0.04")  # 6 MB, as objects 128 MB
    with pytest.raises(ValueError, match=f"{file}': it takes over 0.04 GB"):
        read(folder)


# Bundles that are not whole ---------------------------------------------------------


@pytest.mark.parametrize(
    "file", ["README.md", "arrays.npz", "method.json", "samples.json", "subset.json"]
)
def test_a_bundle_without_one_of_its_files_is_refused(file, tmp_path):
    publish(prepared(fitted("kmeans"), 12), tmp_path / "small")
    assert len(read_bundle(tmp_path / "small").coreset_) == 12
    (tmp_path / "small" / file).unlink()
    done = run("plan small --out mine".split(), tmp_path)
    assert done.status == 2 and done.err.count("\n") == 1
    assert "the bundle 'small' lacks " in done.err and file in done.err
    assert not (tmp_path / "mine").exists()


@pytest.mark.parametrize("change", ["number", "field"])
def test_a_folder_of_a_newer_version_is_not_called_damaged(change, tmp_path):
    begin(tmp_path / "mine", harness="list")
    path = tmp_path / "mine" / "evaluation.db"
    odd = "PRAGMA user_version = 99"
    damage(path.parent, odd if change == "number" else PLAN.format("later", "true"))
    with pytest.raises(ValueError, match="newer version of benchnb: update") as caught:
        Evaluation.load(tmp_path / "mine")
    assert str(path) in str(caught.value) and "damaged" not in str(caught.value)


@pytest.mark.parametrize("length", [0, 40, -9])
def test_cut_left_out_errors_are_refused_by_name(length, tmp_path):
    errors = pd.DataFrame({"truth": [0.5], "estimate": [0.4], "fold": [0]}, ["a"])
    write_left_out_errors(tmp_path, 12, errors)
    kept = read_left_out_errors(tmp_path, 12)
    assert kept.index.tolist() == ["a"] and kept["truth"].tolist() == [0.5]
    path = tmp_path / "left_out_12.npz"
    path.write_bytes(path.read_bytes()[:length])
    with pytest.raises(ValueError, match="left_out_12.npz' is damaged") as caught:
        read_left_out_errors(tmp_path, 12)
    assert "\n" not in str(caught.value)
