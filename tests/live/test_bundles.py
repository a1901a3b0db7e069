"Bundles give the estimate that we would have made, and hold no table of sources"

import json
import pickle
import re
import shlex
import shutil
from pathlib import Path

import numpy as np
import pytest
from helpers.small import estimates, files_in, fitted, halves, prepared, table

from benchnb.cli.app import main
from benchnb.data.scores import Scores
from benchnb.data.sources import load
from benchnb.evaluation import registry
from benchnb.evaluation.compare import average_over_trials, compare, summarize_trials
from benchnb.evaluation.left_out import left_out_errors, read_left_out_errors
from benchnb.evaluation.recommend import default_method, rests_on_random_sample
from benchnb.evaluation.registry import get_method
from benchnb.live.bundles import (
    find_bundle,
    list_shipped_bundles,
    load_bundle,
    publish,
    read_bundle,
)
from benchnb.live.certificate import (
    certify_subset,
    format_certificate,
    format_measured,
    split_figures,
)
from benchnb.live.evaluation import Evaluation
from benchnb.live.in_lm_eval import make_task_file
from benchnb.live.report import drop_empty_interval
from benchnb.stats.intervals import conformal_interval


@pytest.mark.parametrize(
    "name", ["random", "aipw", "anchor_points", "gp_irt", "metabench"]
)
def test_a_bundle_gives_the_estimate_without_the_sources(name, tmp_path):
    target = halves()[1]
    method = prepared(fitted(name), 15)
    expected = drop_empty_interval(estimates(method, target, None)[0])
    publish(method, tmp_path / "bundle", "A test")
    files = files_in(tmp_path / "bundle")
    assert {"README.md", "method.json", "arrays.npz", "subset.json"} <= set(files)
    for content in files.values():
        with pytest.raises(Exception):  # noqa: B017 (pickle has many ways to refuse)
            pickle.loads(content)
    run = load_bundle(tmp_path / "bundle")
    row = dict(zip(target.items.index, target.values[0].astype(float), strict=True))
    run.tell({n: row[n] for n in run.ask()})
    assert run.estimate().score == expected.score
    np.testing.assert_array_equal(run.estimate().interval, expected.interval)


def test_few_sources_measure_nothing_and_have_no_interval(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    table().select(models=np.arange(8)).to_parquet("few.parquet")
    argv = ["publish", "few.parquet", "--method", "kmeans", "--budget", "12"]
    assert main([*argv, "--out", "small"]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "8 sources are few" in printed and "measured in" not in printed
    readme, text = (tmp_path / "small/README.md").read_text(), "measured: too few sour"
    assert f"Not {text}ces (8)." in readme and f"certificate: not {text}" in printed
    assert "Valid for" not in readme and "| models" not in readme
    none = "no usable 95% interval, and so no rank: 8 earlier models are too few"
    assert none in printed and "with aipw" in printed
    assert main(["plan", "small", "--out", "new"]) == 0
    planned = " ".join(capsys.readouterr().out.split())
    assert none in planned and " wide" not in planned
    live = Evaluation.load("new")
    live.tell(dict.fromkeys(live.ask(), 1.0))
    assert main(["estimate", "new"]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert f"not {text}ces (8)" in printed and "valid for" not in printed
    assert (
        "outside the certificate" not in printed
        and "rank " not in printed.replace("no rank", "").partition("task ")[0]
    )


def test_a_task_of_the_makers_own_is_to_be_obtained(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    table = halves()[0]
    table.items["call"] = "elsewhere/sums.yaml"
    table.to_parquet("s.parquet")
    argv = "publish s.parquet --method kmeans --budget 12 --folds 0 --out small"
    assert main(argv.split()) == 0 and main("plan small --out new".split()) == 0
    for text in (Path("small/README.md").read_text(), capsys.readouterr().out):
        assert "the harness knows no task" in text and "--include_path FOLDER" in text


def test_its_readme_names_the_task_of_the_harness(tmp_path, capsys):
    halves()[0].to_parquet(tmp_path / "s.parquet")
    argv = ["publish", str(tmp_path / "s.parquet"), "--method", "kmeans", "--budget"]
    argv += ["12", "--folds", "0", "--harness", "lm-eval", "--out"]
    assert main([*argv, str(tmp_path / "smallh")]) == 0
    readme = (tmp_path / "smallh/README.md").read_text()
    assert "`smallh.yaml`" in readme
    assert "    lm_eval --include_path . --tasks smallh --model hf " in readme


@pytest.mark.parametrize("numbered", [True, False])
def test_the_commands_of_its_readme_work(numbered, tmp_path, monkeypatch, capsys):
    source = halves()[0]
    if not numbered:  # names that lm-evaluation-harness does not take
        names = [f"{name}?" for name in source.items.index]
        source = Scores(source.values, source.items.set_axis(names), source.models)
    method = prepared(get_method("kmeans").fit(source), 15)
    publish(method, tmp_path / "bundle", "A test")
    monkeypatch.chdir(tmp_path / "bundle")
    readme = (tmp_path / "bundle" / "README.md").read_text()
    names = {}
    exec(re.sub("(?m)^    ", "", readme.partition("In Python\n")[2]), names)
    assert names["evaluation"].ask() == []
    np.testing.assert_allclose(names["evaluation"].estimate().score, 1, atol=0.1)
    assert capsys.readouterr().out.strip() == repr(names["evaluation"].estimate())
    lines = re.findall("(?m)^    benchnb ([a-z].*?)(?: +#.*)?$", readme)
    made, plan, tell, estimate, at_once = map(shlex.split, lines)
    assert made[:2] == ["publish", "TABLE"]
    assert main(plan) == 0
    assert f"benchnb {shlex.join(tell)}" in capsys.readouterr().out.replace("'", "")
    live = Evaluation.load(tmp_path / "my_model")
    if not numbered:
        rows = [f"{name},1" for name in live.ask()]
        (tmp_path / "bundle" / "answers.csv").write_text(
            "\n".join(["item,score", *rows])
        )
        assert main(tell) == 0
    live.tell(names["scores"])
    assert main(estimate) == 0
    assert capsys.readouterr().out.count("score  ") >= 1
    if not numbered:
        assert main(at_once) == 0


@pytest.mark.slow
def test_a_bundle_carries_its_accuracy(tmp_path):
    source, target = table(1, 60).split("random", seed=0)
    source.to_parquet(tmp_path / "s.parquet")
    place = str(tmp_path / "small")
    publish_ = ["publish", str(tmp_path / "s.parquet"), "--method", "kmeans"]
    publish_ += ["--budget", "20", "--seed", "3"]
    assert main([*publish_, "--folds", "4", "--out", place]) == 0
    said = json.loads((tmp_path / "small" / "certificate.json").read_text())
    near = compare(source, ["kmeans"], [20], trials=4, seed=3).frame
    mean = average_over_trials(summarize_trials(near)).loc[0, "mae"]
    like = said["measured"]["like the sources"]
    assert like["error"] == pytest.approx(mean, 1e-3) and like["width"] < 1
    assert like["usable"] == like["estimates"]
    assert said["sources"] == source.fingerprint() and "newer" in said["measured"]
    kept = read_left_out_errors(tmp_path / "small", 20)
    assert not {*kept.index} & {*source.models.index}  # no names of models
    row = dict(zip(target.items.index, target.values[0].tolist(), strict=True))
    live = load_bundle(place)
    live.tell({name: row[name] for name in live.ask()})
    wide, narrow = live.estimate().interval, live.estimate(0.8).interval
    assert narrow[1] - narrow[0] < wide[1] - wide[0]


def test_a_bundle_of_agents_is_for_their_harness(tmp_path, monkeypatch, capsys):
    "What its README tells to read is what the plan will read"
    monkeypatch.chdir(tmp_path)
    method = prepared(get_method("random").fit(load("swebench_verified")), 5)
    publish(method, tmp_path / "small")
    assert main(["plan", "small", "--out", "my_model"]) == 0
    out = capsys.readouterr().out
    assert "swebench.harness.run_evaluation" in out and "'*.YOUR_MODEL.json'" in out
    readme = (tmp_path / "small" / "README.md").read_text()
    assert "benchnb tell ../my_model '*.YOUR_MODEL.json'" in readme


@pytest.mark.parametrize("kind", ["report", "mapping", "csv"])
def test_one_line_from_results_to_an_estimate(kind, tmp_path, monkeypatch, capsys):
    "benchnb estimate --bundle NAME, on a report of SWE-bench, a mapping, a list"
    monkeypatch.chdir(tmp_path)
    agents = load("swebench_verified")
    scores = dict(zip(agents.items.index, agents.values[7].tolist(), strict=True))
    if kind == "report":
        parts = {"resolved_ids": 1.0, "unresolved_ids": 0.0}
        report = {k: [n for n, x in scores.items() if x == v] for k, v in parts.items()}
        name = write_json("results.json", report)
    elif kind == "mapping":
        name = write_json("results.json", scores)
    else:
        name = "results.csv"
        lines = [f"{item},{x}" for item, x in scores.items()]
        (tmp_path / name).write_text("\n".join(["item,score", *lines]))
    assert main(["estimate", "--bundle", "swebench-verified-50", name, "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["items"] == {"spent": 50, "full": 500}
    live = load_bundle(find_bundle("swebench-verified-50"))
    live.tell({item: scores[item] for item in live.ask()})
    assert report["score"] == pytest.approx(live.estimate().score, abs=1e-6)


def write_json(name, value):
    "A file of JSON; its name"
    with open(name, "w") as file:
        json.dump(value, file)
    return name


def test_an_array_that_was_emptied_is_damage(tmp_path):
    "Anybody who changes a bundle can sign it anew"
    source = find_bundle("swebench-verified-50")
    with np.load(source / "arrays.npz") as file:
        arrays = dict(file)
    raw = json.loads((source / "method.json").read_text())
    for name in (
        "banks_.0.4.1",
        "inclusion_probabilities_",
        "first_",
        "weights_",
        "coreset_",
    ):
        shutil.copytree(source, folder := tmp_path / name)
        np.savez(folder / "arrays.npz", **arrays | {name: arrays[name][:0]})
        data = (folder / "arrays.npz").read_bytes()
        raw["digest"] = registry._digest(raw["method"], data)
        (folder / "method.json").write_text(json.dumps(raw))
        with pytest.raises(ValueError, match="is damaged, copy the bundle again"):
            load_bundle(folder)


def test_a_published_folder_holds_no_path_of_its_maker(tmp_path):
    source = table(3)
    source.items["call"] = f"{tmp_path}/tasks/sums.yaml"
    method = prepared(get_method("aipw").fit(source), 15)
    files = make_task_file(method, tmp_path / "small")
    publish(method, tmp_path / "small", files=files)
    found = files_in(tmp_path / "small")
    assert b'"sums.yaml"' in found["method.json"] and "small.yaml" in found
    assert not [name for name, data in found.items() if str(tmp_path).encode() in data]
    assert method.items_["call"].iloc[0] == f"{tmp_path}/tasks/sums.yaml"
    assert "is not the score" in found["README.md"].decode()
    assert "sources are few" not in found["README.md"].decode()


@pytest.mark.slow
def test_an_interval_of_0_to_1_holds_nothing(tmp_path):
    "Nor does a bundle's README keep quiet about few sources, or Python about a note"
    few = table(3).select(models=np.arange(0, 24, 2))
    method = prepared(get_method("kmeans").fit(few), 12)
    errors = left_out_errors(get_method("kmeans"), few, 12, 6, progress=False)
    certificate = certify_subset(method, few, errors, trials=2)
    kinds = certificate.measured.values()
    assert all(x["usable"] == 0 and x["coverage"] is None for x in kinds)
    assert "no usable interval in 6 of 6" in format_certificate(certificate)
    publish(method, tmp_path / "small", errors=errors, certificate=certificate)
    assert "12 sources are few" in (tmp_path / "small/README.md").read_text()
    live = load_bundle(tmp_path / "small")
    live.tell(dict.fromkeys(live.ask(), 1.0))
    assert live.report()["notes"] == list(live.estimate().notes)
    assert "no usable 95% interval" in repr(live.estimate())


@pytest.mark.slow
def test_a_certificate_of_a_method_without_intervals_has_both_ends():
    "Both from left-out errors; the upper end is not lost once the lower one is known"
    scores = table(1, 60)
    bare = get_method("kmeans", folds=0)
    errors = left_out_errors(bare, scores, 15)
    found = split_figures(scores, bare, 15, "random", errors, trials=3)
    frame = compare(scores, {"method": bare}, [15], trials=3).frame
    assert frame["low"].isna().all()
    ends = [conformal_interval(score, errors) for score in frame["score"]]
    low, high = np.transpose(ends)
    held = (low <= frame["truth"]) & (frame["truth"] <= high)
    assert found["coverage"] == pytest.approx(held.mean(), abs=0.01) and held.mean() > 0
    assert found["width"] == pytest.approx(np.mean(high - low), abs=1e-3)
    assert found["usable"] == found["estimates"] == len(frame)


def test_worse_than_random_items_by_two_standard_errors():
    figures = {"trials": 9, "error": 0.137, "error_se": 0.02, "random_error": 0.038}
    fields = {"measured": {"stronger": figures, "like the sources": figures}}
    text = "worse than random items for stronger models (13.7 against 3.8 points), for"
    assert f"{text} models like the sources (" in format_measured(fields)
    figures["random_error_se"] = 0.05
    assert "worse" not in format_measured(fields)


@pytest.mark.parametrize("name", ["aipw", "proeval"])
def test_as_many_items_as_sources_are_no_table_of_sources(name, tmp_path):
    table = Scores(np.random.default_rng(0).integers(0, 2, (12, 40)).astype(float))
    method = get_method(name).fit(table).prepare(12, np.random.default_rng(0))
    publish(method, tmp_path / "small")
    assert {p.name for p in (tmp_path / "small").iterdir()} >= {"subset.json"}


@pytest.mark.parametrize("name", [*list_shipped_bundles()])
def test_what_ships_is_made_by_the_recommended_method(name):
    "None of them by a method that `benchnb recommend` calls risky"
    place = list_shipped_bundles()[name]
    method = read_bundle(place)
    assert rests_on_random_sample(method) and method.static
    table = load(place.name.rpartition("_")[0])
    assert method.name == default_method(table)[0]
    assert method.fingerprint_ == table.fingerprint()
    certificate = json.loads((place / "certificate.json").read_text())
    assert certificate["method"] == method.name
    assert f"--method {method.name} " in (place / "README.md").read_text()


@pytest.mark.parametrize("file", ["method.json", "certificate.json"])
def test_a_bundle_of_a_newer_version_is_not_called_damaged(file, tmp_path):
    folder = tmp_path / "bundle"
    shutil.copytree(find_bundle("swebench-verified-50"), folder)
    raw = json.loads((folder / file).read_text())
    raw["benchnb" if file == "method.json" else "invented_later"] = 99
    (folder / file).write_text(json.dumps(raw))
    with pytest.raises(ValueError, match="newer version of benchnb: update") as caught:
        load_bundle(folder)
    assert str(folder / file) in str(caught.value)
    assert "damaged" not in str(caught.value)
