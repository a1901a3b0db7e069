"""Saved methods: damage is refused, and nothing that is read runs code."""

import json
import os
import zipfile

import numpy as np
import pytest
from helpers.small import METHODS, fitted, prepared, table

from benchnb.cli.app import main
from benchnb.data.sources import load
from benchnb.evaluation.registry import (
    _digest,
    flatten,
    get_method,
    list_methods,
    load_method,
    restore,
    save_method,
)
from benchnb.evaluation.simulate import prepare_method, simulate

BUDGET = 12


def test_a_method_that_is_not_there_or_damaged_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere.*check the path"):
        load_method(tmp_path / "nowhere")
    (tmp_path / "method.json").write_text("{}")
    with pytest.raises(ValueError, match="damaged"):
        load_method(tmp_path)


def test_what_a_newer_version_wrote_is_not_called_damaged(tmp_path):
    save_method(prepared(fitted("random"), BUDGET), tmp_path)
    path = tmp_path / "method.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"benchnb": 99}))
    with pytest.raises(ValueError, match="newer version of benchnb: update") as caught:
        load_method(tmp_path)
    assert str(path) in str(caught.value) and "damaged" not in str(caught.value)


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


def test_a_method_whose_package_is_missing_is_left_out_with_what_to_install(
    monkeypatch, capsys
):
    "The light core lacks what three methods of the papers need"
    monkeypatch.setattr("benchnb.evaluation.method.find_spec", lambda name: None)
    lacking = {"collaborative_filtering", "essence_bench", "metabench"}
    assert not lacking & {*list_methods(load("helm_gsm8k"))}
    assert lacking <= {*list_methods()}  # they are listed all the same
    for name in lacking:
        with pytest.raises(ImportError, match=r'pip install "\.\[papers\]'):
            get_method(name).fit(load("helm_gsm8k"))
    given = ["helm_gsm8k", "--methods", "metabench", "--trials", "1"]
    assert main(["compare", *given]) == 2
    assert "pygam is not installed: pip install" in capsys.readouterr().err


@pytest.mark.parametrize(
    "name, words",
    [
        ("guarded_irt(rounds=5", "close it"),
        (
            "guarded_irt(round=5)",
            "guarded_irt has no parameter 'round': did you mean 'rou",
        ),
        ("guarded_irt(5)", "write them as in guarded_irt(rounds=5)"),
        ("guarded_irt(rounds=exit())", "write them as in guarded_irt(rounds=5)"),
        ("guarded_irt(rounds=1).fit()", "write them as in guarded_irt(rounds=5)"),
        ("guarded_irt(**{'rounds': 5})", "write them as in guarded_irt(rounds=5)"),
        ("guarded_irt(rounds=0)", "rounds must be a whole number of at least 1, got 0"),
        ("guarded_irt_static", "did you mean 'guarded_irt'"),
        ("per_task(guarded_irt(round=5))", "did you mean 'rounds'"),
    ],
)
def test_a_wrong_parameter_in_a_name_is_one_line(name, words):
    with pytest.raises(ValueError) as error:
        get_method(name)
    assert words in str(error.value) and "\n" not in str(error.value)


@pytest.mark.parametrize(
    "name, given, words",
    [
        ("guarded_irt", "round", "has no parameter 'round': did you mean 'rounds'?"),
        ("per_task(guarded_irt)", "round", "guarded_irt has no parameter 'round': did"),
        ("guarded_irt(rounds=5)", "round", "has no parameter 'round': did you mean"),
        (
            "random",
            "xyz",
            "random has no parameter 'xyz': help(benchnb.get_method('rand",
        ),
    ],
)
def test_a_wrong_parameter_beside_a_name_has_the_same_message(name, given, words):
    with pytest.raises(ValueError) as error:
        get_method(name, **{given: 5})
    assert words in str(error.value) and "\n" not in str(error.value)


def test_a_name_holds_parameters():
    assert get_method("guarded_irt").rounds == 1
    method = get_method("guarded_irt(rounds=5, level=0.9)", folds=0)
    assert (method.rounds, method.level, method.folds) == (5, 0.9, 0)
    assert not get_method("per_task(guarded_irt(rounds=2))").static
    assert get_method("per_task(guarded_irt)").static


@pytest.mark.parametrize("name, size", [("guarded_irt", 40), ("guarded_irt", 8)])
def test_what_was_saved_under_earlier_names_is_read(name, size):
    source, target = table(1, 80).split("random", seed=0)
    method = get_method(name).fit(source.select(models=np.arange(size)))
    method = prepare_method(method, 20, 0)
    arrays = {}
    part = flatten(method, "", arrays)
    state = part["method"]["state"]
    state["chance_"] = state.pop("inclusion_probabilities_")
    state["few_"] = {"value": 0 if size > 20 else size}
    del state["n_sources_"]
    state["stretch_"] = state.pop("se_inflation_")
    part["method"]["parameters"]["ranking"] = {"value": False}
    again = restore(part, arrays)
    assert again.se_inflation_ == method.se_inflation_
    assert again.n_sources_ == size and again.too_few_sources == (size < 20)
    before = simulate(method, target)
    after = simulate(again, target)
    assert [e.interval for e in after] == [e.interval for e in before]


@pytest.mark.parametrize(
    "name, value, words",
    [
        ("ranking", True, "guarded_irt has no parameter 'ranking'"),
        ("beyond", "free curves", "beyond must be one of"),
    ],
)
def test_a_saved_method_with_an_option_that_is_gone_is_refused(name, value, words):
    method = get_method("guarded_irt").fit(table(1, 40))
    arrays = {}
    part = flatten(prepare_method(method, 20, 0), "", arrays)
    part["method"]["parameters"][name] = {"value": value}
    with pytest.raises(ValueError, match=words):
        restore(part, arrays)
