"""A folder of an evaluation: shared, linked, read only, from others, or damaged."""

import json
import os
import shutil
import signal

import pandas as pd
import pytest
from helpers.crash import run
from helpers.evaluations import in_child, known_answers, tell_all
from helpers.small import files_in, fitted, halves, prepared

from benchnb.cli.app import main
from benchnb.evaluation.registry import get_method
from benchnb.live import folder as disk
from benchnb.live.bundles import publish, read_bundle
from benchnb.live.evaluation import Evaluation


def begin(folder, method="random", **how):
    "An evaluation of 12 items that has been told nothing"
    return Evaluation(prepared(fitted(method), 12), folder=folder, **how)


# Links, and folders that cannot be written -------------------------------------


@pytest.mark.parametrize("target", ["file", "nowhere", "folder"])
@pytest.mark.parametrize(
    "link", [".lock", "evaluation.json", "left_out_12.npz", "subset_2.json"]
)
def test_no_change_goes_through_a_link(link, target, tmp_path):
    live, outside = begin(tmp_path / "mine", harness="list"), tmp_path / "outside"
    (outside / "folder").mkdir(parents=True)
    (outside / "file").write_text("years of work")
    place = tmp_path / "mine" / link
    if link == "evaluation.json":
        place = place.rename(outside / "evaluation.json")
        (tmp_path / "mine" / link).symlink_to(place)
    else:
        place.unlink(missing_ok=True)
        place.symlink_to(outside / target)
    before = files_in(tmp_path)
    with pytest.raises(OSError, match="is a link.*delete it") as caught:
        live.tell(known_answers())
    assert "\n" not in str(caught.value)
    assert files_in(tmp_path) == before and sorted(os.listdir(outside)) == sorted(
        {"file", "folder"} | ({link} if link == "evaluation.json" else set())
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


@pytest.mark.parametrize("lock", ["folder", "none"])
def test_reading_changes_nothing_and_needs_no_lock(lock, tmp_path):
    "The commands that read make no call that could change a file"
    for name in ("one", "two"):
        live = begin(tmp_path / name, harness="list")
        live.tell(known_answers(int(name == "two")))
        (tmp_path / name / ".lock").unlink()
        if lock == "folder":
            (tmp_path / name / ".lock").mkdir()
    for command in ("estimate one", "estimate one --json", "paired one two"):
        done = run(command.split(), tmp_path, stop=1, mode="full")
        assert (done.status, done.changes, done.err) == (0, 0, "")
        assert done.out


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
    for at in range(1, 9):  # killed at every rename, and another goes on at once
        asked, replace = Evaluation.load(folder).ask(), os.replace
        if not asked:
            break

        def tell(names, stop=0, replace=replace):
            calls = []

            def count(*args):
                calls.append(args)
                if len(calls) == stop:
                    os.kill(os.getpid(), signal.SIGKILL)
                replace(*args)

            os.replace = count
            Evaluation.load(folder).tell({name: known[name] for name in names})

        work = [(asked[:2], at % 3 + 1), (asked[1:4], 0), (asked[3:5], 0)]
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


# What a file says is not believed ---------------------------------------------------


def damage(text, **changes):
    "The text of an evaluation, changed in its parts"
    raw = json.loads(text)
    for name, value in changes.items():
        part, _, key = name.partition("__")
        raw[part] = raw[part] | {key: value} if key else value
    return json.dumps(raw)


ITEM = "algebra/1"
ODD = {
    "a score of 500": {"answers": {ITEM: 500}},
    "NaN as text": {"answers": {ITEM: "NaN"}},
    "a score in a list": {"answers": {ITEM: [1]}},
    "an unknown item": {"answers": {"poems/1": 1}},
    "a round that nobody told": {"rounds": [[ITEM]]},
    "a width of nothing": {"plan__width": 1e-300},
    "a budget beyond the items": {"plan__most": 61},
    "a negative seed": {"plan__seed": -1},
    "a level of 7": {"plan__level": 7},
    "a harness that is a number": {"plan__harness": 7},
    "ease of another benchmark": {"plan__ease": [0.5] * 30},
    "a model's name that is a number": {"model": 5},
    "a plan in a list": {"plan": [1]},
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
    path = tmp_path / "mine" / "evaluation.json"
    text = path.read_text()
    path.write_text(damage(text, **ODD[case]))
    assert "other sources" in refused(tmp_path / "mine") or "damaged" in refused(
        tmp_path / "mine"
    )
    path.write_text(text)
    assert len(Evaluation.load(tmp_path / "mine").answers) == 3


def test_a_repeated_item_is_refused(tmp_path):
    folder = tmp_path / "mine"
    live = begin(folder)
    live.tell({name: known_answers()[name] for name in live.ask()[:1]})
    path = folder / "evaluation.json"
    text = path.read_text()
    name, score = next(iter(live.answers.items()))
    answers = text.index("{", text.index('"answers"')) + 1
    twice = f'"{name}": {score}, "{name}": {1 - score}, '
    path.write_text(text[:answers] + twice + text[answers:])
    refused(folder, f"it has '{name}' twice")


@pytest.mark.parametrize("file", ["evaluation.json", "subset.json"])
def test_a_file_that_would_take_too_much_memory_is_refused(file, tmp_path, monkeypatch):
    folder = tmp_path / "mine"
    if file == "subset.json":
        publish(prepared(fitted("kmeans"), 12), folder)
    else:
        begin(folder)
    read = read_bundle if file == "subset.json" else Evaluation.load
    read(folder)
    (folder / file).write_text('{"rounds": [' + "[]," * 2_000_000 + "[]]}")
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
    path = tmp_path / "mine" / "evaluation.json"
    state = json.loads(path.read_text())
    if change == "number":
        state["benchnb"] = 99
    else:
        state["plan"]["invented_later"] = True
    path.write_text(json.dumps(state))
    with pytest.raises(ValueError, match="newer version of benchnb: update") as caught:
        Evaluation.load(tmp_path / "mine")
    assert str(path) in str(caught.value) and "damaged" not in str(caught.value)


@pytest.mark.parametrize("length", [0, 40, -9])
def test_cut_left_out_errors_are_refused_by_name(length, tmp_path):
    errors = pd.DataFrame({"truth": [0.5], "estimate": [0.4], "fold": [0]}, ["a"])
    disk.write_errors(tmp_path, 12, errors)
    kept = disk.read_errors(tmp_path, 12)
    assert kept.index.tolist() == ["a"] and kept["truth"].tolist() == [0.5]
    path = tmp_path / "left_out_12.npz"
    path.write_bytes(path.read_bytes()[:length])
    with pytest.raises(ValueError, match="left_out_12.npz' is damaged") as caught:
        disk.read_errors(tmp_path, 12)
    assert "\n" not in str(caught.value)
