"""The estimates in JavaScript beside those of the library in Python"""

import json
import shutil
import subprocess

import numpy as np
import pytest

from benchnb import Evaluation, get_method, load
from benchnb.evaluation.left_out import left_out_errors
from benchnb.evaluation.method import Flag
from benchnb.evaluation.simulate import keep_estimate_to_certain, prepare_method
from benchnb.harnesses.swebench import report_scores
from benchnb.live.bundles import find_bundle, load_bundle
from benchnb.stats.intervals import effective_size, keep_to_certain, wilson_interval
from benchnb.stats.irt import IRT, pool_predictions
from tools.demonstration import BUNDLE, demonstration, report_data
from tools.run import ROOT

TASK = "psf__requests-1142"
SCRIPTS = ("charts.js", "guarded_irt.js", "score_your_agent.js")


@pytest.fixture(scope="module")
def table():
    return load("swebench_verified")


@pytest.fixture(scope="module")
def older(table):
    "guarded_irt fitted on the older agents"
    return get_method("guarded_irt").fit(table.split("date")[0])


@pytest.fixture(scope="module")
def newest(older):
    return demonstration(budgets=(15, 25), draws=1, method=older)


@pytest.fixture(scope="module")
def reports():
    return report_data()


@pytest.fixture(scope="module")
def javascript(tmp_path_factory, newest, reports):
    "Values of an expression for a list of inputs, in Node"
    if not shutil.which("node"):
        pytest.skip("no Node")
    folder = tmp_path_factory.mktemp("js")

    def values(expression, inputs):
        code = "".join((ROOT / "nbs" / name).read_text("utf-8") for name in SCRIPTS)
        code += f"\nconst DATA = {json.dumps(newest)}, REPORTS = {json.dumps(reports)};"
        code += "\nconst NEWEST = readFitted(DATA.fitted);"
        code += "\nconst FITTED = readFitted(REPORTS.fitted);"
        code += f"\nconst INPUTS = {json.dumps(inputs)};"
        code += f"\nconst VALUE = (input) => {expression};"
        code += "\nconsole.log(JSON.stringify(INPUTS.map(VALUE)));\n"
        (folder / "page.js").write_text(code, encoding="utf-8")
        done = subprocess.run(
            ["node", folder / "page.js"], capture_output=True, text=True, check=True
        )
        return json.loads(done.stdout)

    return values


def scores(told):
    "Answers as Python has them: NaN where there is none"
    return np.array(told, dtype=float)


def told(row):
    "Answers as JSON has them: null where there is none"
    return [None if np.isnan(answer) else float(answer) for answer in row]


def three(estimate):
    "Score and ends of an estimate in [0, 1]"
    return np.clip([estimate.score, *estimate.interval], 0, 1)


def gap(shown, estimate):
    here = [shown["score"], shown["low"], shown["high"]]
    return np.abs(np.array(here) - three(estimate)).max()


@pytest.mark.parametrize("budget", [pytest.param(15, marks=pytest.mark.slow), 25])
def test_the_newest_agents_have_the_estimates_of_the_library(
    table, older, newest, javascript, budget
):
    _, targets = table.split("date")
    assert newest["agents"] == [*targets.models.index]
    method = prepare_method(older, budget, 0)
    [chosen] = newest["lists"][budget]
    items = np.array(chosen["items"])
    assert sorted(items) == sorted(method.coreset_)
    rows = targets.values[:, items].astype(float)
    rows[::3, budget // 2 :] = np.nan  # some of whom only the first half is in
    call = f"guardedEstimate(NEWEST, DATA.lists[{budget}][0], input)"
    shown = javascript(call, [told(row) for row in rows])
    order = np.argsort(items)[np.searchsorted(np.sort(items), method.coreset_)]
    weights = np.full(len(table.items), 1 / len(table.items))
    estimates = [
        keep_estimate_to_certain(
            method.estimate(row[order]), weights, method.coreset_, row[order]
        )
        for row in rows
    ]
    assert max(map(gap, shown, estimates)) < 1e-6
    for one, estimate in zip(shown, estimates, strict=True):
        flags = set() if one["guard"] == "in range" else {one["guard"]}
        assert estimate.flags == flags
    assert {"in range", "out of range"} <= {one["guard"] for one in shown}


def whole_reports(table, items):
    "Answers of some agents, and of four that no earlier agent resembles"
    count = table.shape[1]
    yield from table.values[::20].astype(float)
    yield from (np.zeros(count), np.ones(count))
    hard = table.values.mean(axis=0) < 0.5
    yield hard.astype(float)  # solves only what the others fail
    yield np.where(np.arange(count) % 2, 1.0, 0.0)
    mixed = table.values[::12].astype(float)  # half an agent, half another profile
    yield from np.where(np.arange(count) % 3 > 0, mixed, 1 - mixed)[:10]


def test_a_report_is_estimated_as_by_the_command(table, reports, javascript):
    items, names = reports["list"]["items"], table.items.index
    answers = np.array([row[items] for row in whole_reports(table, items)])
    shown = javascript(
        "reportedEstimate(FITTED, REPORTS.list, input)", answers.tolist()
    )
    flagged = 0
    unchecked = 0
    for row, one in zip(answers, shown, strict=True):
        live = load_bundle(find_bundle(BUNDLE))
        live.tell(dict(zip(names[items], row, strict=True)))
        estimate = live.estimate()
        assert gap(one, estimate) < 1e-6
        flagged += bool(estimate.flags)
        assert bool(estimate.flags) == (
            one["guard"] != "in range"
            or one["flags"] != []
            or one.get("unchecked", False)
        )
        assert (Flag.UNCHECKED in estimate.flags) == one.get("unchecked", False)
        unchecked += one.get("unchecked", False)
    assert 0 < unchecked < len(answers)
    assert 3 <= flagged < len(answers)


@pytest.mark.slow
def test_aipw_takes_the_place_of_curves_as_in_the_library(table, reports, javascript):
    "With narrower ranges of what is usual, so that the other branch is taken, too"
    method = load_bundle(find_bundle(BUNDLE)).method
    errors = left_out_errors(get_method("guarded_irt"), table, method.budget_, folds=3)
    errors["fit"] = errors["fit"] + 2.5  # agents that fit better than any
    ease = [*map(float, reports["fitted"]["ease"])]
    live = Evaluation(method, errors=errors, ease=ease)
    data = report_data(live)
    rows = table.values[::12, method.coreset_].astype(float)
    narrow = json.dumps({"usualFit": data["fitted"]["usualFit"]})
    both = json.dumps({"usualCorrection": data["fitted"]["usualCorrection"]})
    call = (
        f"reportedEstimate({{...FITTED, ...{narrow}, ...{both}}}, REPORTS.list, input)"
    )
    shown = javascript(call, rows.tolist())
    replaced = 0
    for row, one in zip(rows, shown, strict=True):
        live = Evaluation(method, errors=errors, ease=ease)
        live.tell(dict(zip(method.items_.index[method.coreset_], row, strict=True)))
        estimate = live.estimate()
        assert gap(one, estimate) < 1e-6
        replaced += "fallback" in map(str, estimate.flags)
        assert one.get("fallback", False) == ("fallback" in map(str, estimate.flags))
    assert 0 < replaced < len(rows)


def test_part_of_the_list_and_other_tasks(table, reports, javascript):
    method = load_bundle(find_bundle(BUNDLE)).method
    banks = [IRT(**dict(arrays)) for arrays in method.banks_]
    rng, items = np.random.default_rng(0), np.array(reports["list"]["items"])
    rows = table.values[[3, 60, 120]].astype(float)
    part = rows.copy()
    for row in part:
        row[rng.permutation(items)[:18]] = np.nan
    call = "(() => { const r = reportKind(REPORTS.list, input);"
    call += " return [r.kind, estimateAfter(FITTED, REPORTS.list, r, r.items.length)]"
    call += "; })()"
    for row, (kind, one) in zip(
        part, javascript(call, [told(row) for row in part]), strict=True
    ):
        assert kind == "part" and one["count"] == len(items) - 18
        assert gap(one, method.estimate(row[method.coreset_])) < 1e-6
    other = np.full(rows.shape, np.nan)
    for row, known in zip(other, rows, strict=True):
        chosen = rng.permutation(rows.shape[1])[:30]
        row[chosen] = known[chosen]
    for row, (kind, one) in zip(
        other, javascript(call, [told(row) for row in other]), strict=True
    ):
        asked = np.flatnonzero(~np.isnan(row))
        model = pool_predictions(banks, asked[np.newaxis], row[np.newaxis, asked])
        half = reports["fitted"]["z"] * method.se_inflation_ * np.sqrt(model.variance)
        ends = model.score + half * [0, -1, 1]
        score, *ends = np.clip(ends, 0, 1)
        weights = np.full(row.size, 1 / row.size)
        ends = keep_to_certain(tuple(ends), weights, asked, row[asked])
        assert kind == "other" and one["guard"] == "none"
        shown = one["score"], one["low"], one["high"]
        assert np.allclose([score, *ends], shown, rtol=0, atol=1e-6)


def test_what_is_said_of_a_report(table, reports, javascript):
    items, answers = reports["list"]["items"], table.values[40].astype(float)
    two = np.full(len(answers), np.nan)
    two[[0, 7]] = 1, 0
    part = np.full(len(answers), np.nan)
    part[items[:32]] = answers[items[:32]]
    call = "reportSentence(REPORTS, reportKind(REPORTS.list, input), input)"
    rows = [told(row) for row in (two, part, answers)]
    said = javascript(call, rows)
    assert "not a random sample" in said[0] and "curves alone" in said[0]
    assert "32 of the list's 50 tasks" in said[1]
    assert "All 500 tasks" in said[2]


def test_the_chart_names_the_stored_errors(newest):
    measured = newest["measured"]
    for n in (15, 25, 50, 100):
        assert measured["guarded_irt"]["points"][n] < measured["random"]["points"][n]
        assert 0.9 < measured["guarded_irt"]["holds"][n] < 1


def test_the_random_tasks_have_the_interval_of_the_library(table, newest, javascript):
    call = "randomSample(bits(DATA.answers[input], 500), DATA.random[0])"
    values = table.split("date")[1].values.astype(float)
    for agent, steps in zip([3, 17], javascript(call, [3, 17]), strict=True):
        items = [step["item"] for step in steps]
        assert items == newest["random"][0] and len({*items}) == 100
        for n, step in enumerate(steps, 1):
            score = values[agent, items[:n]].mean()
            low, high = wilson_interval(score, effective_size(n, 500))
            here = [step["score"], step["low"], step["high"]]
            assert np.abs(np.array(here) - [score, low, high]).max() < 1e-9


def written_reports(tasks):
    solved, failed, rest = [*tasks[:20]], [*tasks[20:50]], [*tasks[50:]]
    yield {"resolved_ids": solved, "unresolved_ids": failed, "submitted_ids": [*tasks]}
    yield {"resolved_ids": solved, "submitted_ids": solved + failed}
    yield {"resolved_ids": solved, "unresolved_ids": failed + rest}
    yield {"resolved_ids": solved, "error_ids": failed, "pending_ids": rest[:9]}


def test_a_dropped_report_is_read_as_in_python(table, javascript):
    tasks = table.items.index
    files = [*written_reports(tasks)]
    answers = javascript("readReport(input, DATA.tasks)", files)
    for report, here in zip(files, answers, strict=True):
        known = report_scores(report)
        row = np.array([known.get(task, np.nan) for task in tasks])
        np.testing.assert_equal(scores(here), row)
    assert javascript("unpacked(packed(input), 500)", answers) == answers


def test_a_wrong_report_is_refused(javascript):
    call = "(() => { try { return readReport(input, DATA.tasks); }"
    call += " catch (error) { return error.message; } })()"
    both = {"resolved_ids": [TASK], "unresolved_ids": [TASK]}
    said = javascript(call, [{}, both, {"resolved_ids": ["nothing"]}])
    assert "resolved_ids" in said[0] and TASK in said[1] and "No task" in said[2]


def test_an_interval_is_written_in_points(javascript):
    inputs = [
        {"score": 0.555, "low": 0.466, "high": 0.644},
        {"score": 0.96, "low": 0.8, "high": 1},
    ]
    said = javascript("withInterval(input).join('')", inputs)
    assert said == ["55.5 ± 8.9 points", "96.0 points (80.0 to 100.0)"]
