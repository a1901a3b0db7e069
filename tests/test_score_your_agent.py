"""The demonstration in JavaScript beside the library in Python, step by step"""

import json
import shutil
import subprocess

import numpy as np
import pytest

from benchnb import load
from benchnb.harnesses.swebench import report_scores
from benchnb.methods.adaptive_irt import take_test
from benchnb.stats.hold_out import hold_out
from benchnb.stats.intervals import effective_size, wilson_interval
from benchnb.stats.irt import IRT
from tools.demonstration import STEPS, adaptive_test, demonstration, estimates
from tools.run import ROOT

TASK = "psf__requests-1142"


@pytest.fixture(scope="module")
def data():
    return demonstration()


@pytest.fixture(scope="module")
def javascript(tmp_path_factory, data):
    "Values of an expression for a list of inputs, in Node"
    if not shutil.which("node"):
        pytest.skip("no Node")
    folder = tmp_path_factory.mktemp("js")

    def values(expression, inputs):
        code = (ROOT / "nbs/score_your_agent.js").read_text("utf-8")
        code += f"\nconst DATA = {json.dumps(data)}, INPUTS = {json.dumps(inputs)};\n"
        code += f"const VALUE = (input) => {expression};\n"
        code += "console.log(JSON.stringify(INPUTS.map(VALUE)));\n"
        (folder / "page.js").write_text(code, encoding="utf-8")
        done = subprocess.run(
            ["node", folder / "page.js"], capture_output=True, text=True, check=True
        )
        return json.loads(done.stdout)

    return values


def bank_of(part):
    slopes = np.array(part["slopes"])[:, np.newaxis]
    return IRT(slopes, np.array(part["intercepts"]))


def test_every_step_of_every_agent_is_that_of_the_library(data, javascript):
    found = javascript(
        "adaptiveTest(DATA.banks[DATA.fold[input]], bits(DATA.answers[input], 500))",
        [*range(len(data["agents"]))],
    )
    values, fold = load("swebench_verified").values.astype(float), data["fold"]
    for k, part in enumerate(data["banks"][:-1]):
        held, bank = np.flatnonzero(np.array(fold) == k), bank_of(part)
        asked, seen = take_test(adaptive_test(bank), values[held])
        theta, score, error = estimates(bank, values[held], asked)
        half, ends = np.array(part["factors"]) * error, {}
        ends["low"], ends["high"] = np.clip([score - half, score + half], 0, 1)
        wanted = {"item": asked, "right": seen, "theta": theta, "score": score}
        for name, table in {**wanted, "se": error, **ends}.items():
            here = np.array([[step[name] for step in found[i]] for i in held])
            assert here.shape == (len(held), STEPS)
            assert np.abs(here - table).max() < 1e-9, name


def test_the_curves_of_an_agent_have_not_seen_it_or_a_copy(data):
    values = load("swebench_verified").values.astype(float)
    for k, (fit, held) in enumerate(hold_out(values, 5)):
        assert set(held) == {i for i, fold in enumerate(data["fold"]) if fold == k}
        assert not fit[held].any()
    assert min(data["holds"]) > 0.9 and data["error"][24] < 0.03


def test_the_random_tasks_have_the_interval_of_the_library(data, javascript):
    call = "randomSample(bits(DATA.answers[input], 500), 60, input)"
    drawn = javascript(call, [3, 77])
    values = load("swebench_verified").values.astype(float)
    for agent, steps in zip([3, 77], drawn, strict=True):
        items = [step["item"] for step in steps]
        assert len(set(items)) == STEPS
        for n, step in enumerate(steps, 1):
            score = values[agent, items[:n]].mean()
            low, high = wilson_interval(score, effective_size(n, 500))
            here = [step["score"], step["low"], step["high"]]
            assert np.abs(np.array(here) - [score, low, high]).max() < 1e-9


def reports(tasks):
    solved, failed, rest = [*tasks[:20]], [*tasks[20:50]], [*tasks[50:]]
    yield {"resolved_ids": solved, "unresolved_ids": failed, "submitted_ids": [*tasks]}
    yield {"resolved_ids": solved, "submitted_ids": solved + failed}
    yield {"resolved_ids": solved, "unresolved_ids": failed + rest}
    yield {"resolved_ids": solved, "error_ids": failed, "pending_ids": rest[:9]}


def test_a_dropped_report_is_read_and_estimated_as_in_python(data, javascript):
    tasks = load("swebench_verified").items.index
    told = [*reports(tasks)]
    answers = javascript("readReport(input, DATA.tasks)", told)
    for report, here in zip(told, answers, strict=True):
        known = report_scores(report)
        row = np.array([known.get(task, np.nan) for task in tasks])
        np.testing.assert_equal(np.array(here, dtype=float), row)
    again = javascript("unpacked(packed(input), 500)", answers)
    assert again == answers
    call = "adaptiveTest(DATA.banks.at(-1), input).at(-1)"
    last, bank = javascript(call, answers[:1])[0], bank_of(data["banks"][-1])
    asked = np.flatnonzero(~np.isnan(np.array(answers[0], dtype=float)))
    row = np.array(answers[:1], dtype=float)
    theta, score, error = (x[0, -1] for x in estimates(bank, row, asked[np.newaxis]))
    gap = [last["theta"] - theta, last["score"] - score, last["se"] - error]
    assert np.abs(gap).max() < 1e-9


def test_a_wrong_report_is_refused_and_a_strong_agent_flagged(data, javascript):
    call = "(() => { try { return readReport(input, DATA.tasks); }"
    call += " catch (error) { return error.message; } })()"
    both = {"resolved_ids": [TASK], "unresolved_ids": [TASK]}
    said = javascript(call, [{}, both, {"resolved_ids": ["nothing"]}])
    assert "resolved_ids" in said[0] and TASK in said[1] and "No task" in said[2]
    call = "adaptiveTest(DATA.banks.at(-1), Array(500).fill(input)).at(-1).outside"
    assert javascript(call, [1, 0]) == ["above", "below"]
